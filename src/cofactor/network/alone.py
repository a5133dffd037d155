"""One worker at a time: a worker may outlive its job by seconds, and two would answer the same round."""

import fcntl
import os
import signal
import time
from pathlib import Path
from typing import IO

from cofactor.errors import RunError

_PATIENCE = 5.0
"""Seconds that an older worker has to end by itself."""


class AloneInKit:
    """Holds a kit for one worker; an older one that lingers after its job has been ended is ended, too."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        """Hold nothing yet."""
        self._patience = patience
        self._file: IO[str] | None = None

    def take(self, kit: Path) -> None:
        """Wait until no other worker is there."""
        path = kit / "worker.lock"
        file = path.open("a+")
        began = time.monotonic()
        while not _locked(file):
            waited = time.monotonic() - began
            if waited > 3 * self._patience:
                file.close()
                raise RunError(f"{path}: another worker does not end. Restart the party.")
            if waited > self._patience:
                _end(path)
            time.sleep(0.05)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file

    def give_back(self) -> None:
        """Let the next one in."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _end(path: Path) -> None:
    """End the worker that holds the lock, and no other process that may have taken its number since."""
    try:
        number = int(path.read_text())
        command = Path(f"/proc/{number}/cmdline").read_bytes()
        if number != os.getpid() and b"nvflare" in command:
            os.kill(number, signal.SIGKILL)
    except (OSError, ValueError):
        return
