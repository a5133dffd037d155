"""A file of JSON lines, each sealed with the hash of the one before: what was written is not changed unseen.

Every line is written in one canonical way, so that no byte of the file can differ and still be accepted.
The seal shows accidents and careless hands. It cannot show that whole lines are missing from the end, nor
that somebody wrote the file anew from some line on: for that, keep `count` and `head` elsewhere.

A crash while a line is written leaves a torn last line. Whoever writes it does nothing that it tells of
before it is complete and on disk, so nothing that it tells of has happened.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from cofactor.errors import LedgerError, Refused

FORMAT = 1
"""Version of the file's layout; a reader refuses a newer one."""

NOTHING_BEFORE = "0" * 64

_BACKUP = (
    "Restore the file from a backup and change nothing in it: without it nobody knows what was released."
)
_CHANGED = f"was changed after it was written. {_BACKUP}"


@dataclass(frozen=True)
class Link:
    """One line of the file."""

    number: int
    """Its place, from 1 on: the line number."""
    facts: Mapping[str, Any]
    """What it says."""
    hash: str
    """Its seal: SHA-256 over its facts, its number and the seal of the line before."""


class Chain:
    """The lines of a file, or of memory alone if `path` is None; nothing is ever taken away."""

    def __init__(self, path: Path | None) -> None:
        """Start with nothing read; see `create` and `open`."""
        self.path = path
        self.links: list[Link] = []
        self._last_line = b""
        self._size = 0
        self._descriptor: int | None = None

    @property
    def head(self) -> str:
        """The seal of the last line: it stands for all that was ever written."""
        return self.links[-1].hash if self.links else NOTHING_BEFORE

    @classmethod
    def create(cls, path: Path | None, facts: Mapping[str, Any]) -> "Chain":
        """Write a file with its first line; one that exists is refused."""
        chain = cls(path)
        line = _sealed({"format": FORMAT, **facts}, 1, NOTHING_BEFORE)
        if path is not None:
            _write_new(path, line)
        chain._remember(line, _unsealed(line[:-1], 1, NOTHING_BEFORE))
        return chain

    @classmethod
    def open(cls, path: Path) -> "Chain":
        """Read and check a whole file."""
        if path.exists() and not path.is_file():
            raise LedgerError(f"{path}: cannot be read: it is no file.")
        chain = cls(path)
        chain.refresh()
        return chain

    @classmethod
    def of(cls, content: bytes) -> "Chain":
        """Read and check a whole file's bytes, from wherever they came; they live in memory."""
        chain = cls(None)
        *lines, rest = content.split(b"\n")
        for line in lines:
            chain._remember(line + b"\n", chain._checked(line))
        if rest or not chain.links:
            raise chain._unfinished(rest)
        return chain

    def refresh(self) -> None:
        """Read and check the lines that others wrote since the last look."""
        if self.path is not None:
            with _locked_file(self.path, os.O_RDONLY, fcntl.LOCK_SH) as descriptor:
                self._catch_up(descriptor)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out meanwhile, having read what they wrote since the last look."""
        if self.path is None:
            yield
            return
        with _locked_file(self.path, os.O_RDWR | os.O_APPEND, fcntl.LOCK_EX) as descriptor:
            self._catch_up(descriptor)
            self._descriptor = descriptor
            try:
                yield
            finally:
                self._descriptor = None

    def append(self, facts: Mapping[str, Any]) -> Link:
        """Write a line, on disk when this returns. Only while `locked`."""
        line = _sealed(facts, len(self.links) + 1, self.head)
        link = _unsealed(line[:-1], len(self.links) + 1, self.head)
        if self.path is not None:
            assert self._descriptor is not None, "append needs locked()"
            self._write(self._descriptor, line)
        self._remember(line, link)
        return link

    def content(self) -> bytes:
        """Return the file's bytes, whether or not there is a file."""
        before = [NOTHING_BEFORE, *(link.hash for link in self.links)]
        return b"".join(_sealed(link.facts, link.number, before[link.number - 1]) for link in self.links)

    def _remember(self, line: bytes, link: Link) -> None:
        self.links.append(link)
        self._last_line = line
        self._size += len(line)

    def _write(self, descriptor: int, line: bytes) -> None:
        try:
            written = 0
            while written < len(line):
                written += os.write(descriptor, line[written:])
            os.fsync(descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(descriptor, self._size)
            raise LedgerError(
                f"{self.path}: cannot be written ({error.strerror}). Nothing was released."
            ) from None

    def _catch_up(self, descriptor: int) -> None:
        """Read and check what was written since the last look; the last line seen must still be there."""
        read = self._read_from(descriptor, self._size - len(self._last_line))
        if not read.startswith(self._last_line):
            raise LedgerError(f"{self.path}: was cut or replaced since it was opened. {_BACKUP}")
        *lines, rest = read[len(self._last_line) :].split(b"\n")
        for line in lines:
            self._remember(line + b"\n", self._checked(line))
        if rest or not self.links:
            raise self._unfinished(rest)

    def _read_from(self, descriptor: int, start: int) -> bytes:
        try:
            size = os.fstat(descriptor).st_size
            return os.pread(descriptor, max(size - start, 0), start)
        except OSError as error:
            raise LedgerError(f"{self.path}: cannot be read ({error.strerror}).") from None

    def _checked(self, line: bytes) -> Link:
        number = len(self.links) + 1
        try:
            if number == 1:
                _check_format(line)
            return _unsealed(line, number, self.head)
        except ValueError as error:
            if number == 1 and not line.startswith(b"{"):
                raise LedgerError(f"{self.path}: is no ledger. Name the file that ends in .ledger.") from None
            raise LedgerError(f"{self.path}, line {number}: {error}") from None

    def _unfinished(self, rest: bytes) -> LedgerError:
        """Say what a file's end without a line end is: cut off by a crash, or damaged."""
        number = len(self.links) + 1
        if number == 1:
            return LedgerError(f"{self.path}: is no ledger, or lost even its first line. {_BACKUP}")
        if not _is_cut_off(rest, number, self.head):
            return LedgerError(f"{self.path}, line {number}: {_CHANGED}")
        return TornLine(
            f"{self.path}, line {number}: was not completely written, as after a crash, so nothing that it "
            "tells of was released. Drop it with 'cofactor budget FILE --recover', or Ledger.open(..., "
            "recover=True)."
        )

    @classmethod
    def mend(cls, path: Path) -> int:
        """Drop a torn last line, and return how many bytes it had; a line that only lacks its end is kept."""
        chain = cls(path)
        with _locked_file(path, os.O_RDWR | os.O_APPEND, fcntl.LOCK_EX) as descriptor:
            with suppress(TornLine):
                chain._catch_up(descriptor)
            rest = chain._read_from(descriptor, chain._size)
            if _is_line(rest, len(chain.links) + 1, chain.head):
                chain._size += len(rest)
                chain._write(descriptor, b"\n")
                return 0
            os.ftruncate(descriptor, chain._size)
            os.fsync(descriptor)
            return len(rest)


class TornLine(LedgerError):
    """The last line was not completely written."""


def _sealed(facts: Mapping[str, Any], number: int, previous: str) -> bytes:
    body = {**facts, "number": number, "previous": previous}
    return canonical({**body, "hash": sha256(canonical(body)).hexdigest()}) + b"\n"


def _unsealed(line: bytes, number: int, previous: str) -> Link:
    """Read a line without its end; ValueError says why it cannot be believed."""
    try:
        body = json.loads(line.decode("ascii"))
        as_written = canonical(body) == line
        seal = body.pop("hash")
        genuine = as_written and sha256(canonical(body)).hexdigest() == seal
        place = (body.pop("number"), body.pop("previous"))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        genuine = False
    if not genuine:
        raise ValueError(_CHANGED)
    if place != (number, previous):
        raise ValueError(f"does not belong here: lines are missing, or out of order. {_BACKUP}")
    return Link(number, body, seal)


def _is_line(line: bytes, number: int, previous: str) -> bool:
    try:
        _unsealed(line, number, previous)
    except ValueError:
        return False
    return True


def _is_cut_off(rest: bytes, number: int, previous: str) -> bool:
    """Say whether this is the beginning of a line: nothing short of the whole line is a whole object."""
    try:
        json.JSONDecoder().raw_decode(rest.decode("latin-1"))
    except (ValueError, RecursionError):
        return True
    return _is_line(rest, number, previous)


def _check_format(line: bytes) -> None:
    """Refuse a newer layout before anything else is read: even its seals may be made differently."""
    try:
        newer = json.loads(line.decode("ascii"))["format"] > FORMAT
    except (ValueError, TypeError, KeyError, RecursionError):
        return  # No format to be read: the seal will tell.
    if newer:
        raise ValueError("was written by a newer cofactor. Upgrade cofactor.")


def canonical(value: object) -> bytes:
    """Write a value as JSON in the one way that a line of the file may be written."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain)
    return text.encode("ascii")


def _plain(value: object) -> int | float:
    """Write numpy's numbers as plain ones."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"{type(value).__name__} cannot be written into a ledger")


@contextmanager
def _locked_file(path: Path, flags: int, lock: int) -> Iterator[int]:
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be opened ({error.strerror}).") from None
    try:
        _lock(descriptor, lock, path)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, lock: int, path: Path) -> None:
    """Wait for the lock; without one two runs could spend the same budget."""
    try:
        fcntl.flock(descriptor, lock)
    except OSError as error:
        raise LedgerError(
            f"{path}: cannot be locked ({error.strerror}). Keep the ledger on a disk that knows locks."
        ) from None


def _write_new(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: nobody sees it before it is complete, and none is replaced."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
        _sync_folder(path.parent)
    except FileExistsError:
        raise Refused(f"{path} exists already and is never replaced.") from None
    except OSError as error:
        raise LedgerError(f"{path}: cannot be made ({error.strerror}).") from None
    finally:
        draft.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
