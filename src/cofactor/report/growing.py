"""Files that another process is writing: read as far as they are, and never waited for."""

import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Growing:
    """A file of lines that grows: every complete line is returned once."""

    def __init__(self, path: Path) -> None:
        """Begin at its beginning, whether or not it is there yet."""
        self._path, self._at = path, 0

    def lines(self) -> Iterator[bytes]:
        """Yield what was added since the last time."""
        if not self._path.is_file():  # nobody waits for a pipe
            return
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # it is being written, or a crash cut it off
                self._at += len(line)
                yield line


def free(lock: Path) -> bool:
    """Say whether nobody holds a lock: a training does, as long as it lives."""
    if not lock.is_file():
        return False  # which tells nothing
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
    except OSError:
        return False


def version(path: Path) -> tuple[int, int, int] | None:
    """Return what tells a file from the one that was there before; None if there is none."""
    try:
        told = path.stat()
    except FileNotFoundError:
        return None
    return told.st_ino, told.st_mtime_ns, told.st_size


def table(path: Path) -> dict[str, Any] | None:
    """Return the table in a file; None if it is not there."""
    content = _content(path)
    return None if content is None else dict(json.loads(content))


def text(path: Path) -> str:
    """Return the text in a file; none if it is not there."""
    return (_content(path) or b"").decode(errors="replace")


def _content(path: Path) -> bytes | None:
    """Return what is in a file; None if it is not there, or is none."""
    try:
        return path.read_bytes() if path.is_file() else None
    except FileNotFoundError:
        return None
