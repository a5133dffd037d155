"""What people read and type while real parties work: keys, plans, yes or no, and progress."""

import contextlib
import fcntl
import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cofactor.cli.text import ProgressLine, print_line
from cofactor.errors import ConfigError, Refused
from cofactor.progress import Progress

if TYPE_CHECKING:
    from cofactor.network.approval import Pending

EVENTS = "events.jsonl"
"""Where a session's folder keeps its progress, a line for each step."""


def say(text: str) -> None:
    """Print something that happened, beside whatever the command prints."""
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def alone(folder: Path, command: str) -> Iterator[None]:
    """Keep a second command out of a folder in which one is at work."""
    with (folder / ".running").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(f"another '{command}' is at work in {folder}. Stop it first, or wait.") from None
        yield


def check_engine() -> None:
    """Refuse to start what is not installed, and say how it is."""
    from cofactor.network.provisioning import INSTALL

    if find_spec("nvflare") is None:
        raise ConfigError(f"real parties need NVIDIA FLARE, and it is not installed. Install it: {INSTALL}")


def at_terminal() -> bool:
    """Say whether a person can be asked here."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str, instead: str) -> bool:
    """Ask a person for yes or no, and take nothing else for a yes; without a terminal say what to type."""
    if not at_terminal():
        raise ConfigError(f"{question} Nobody can be asked here: {instead}")
    while True:
        print(f"{question} [yes/no] ", end="", file=sys.stderr, flush=True)
        said = sys.stdin.readline()
        word = said.strip().lower()
        if word == "yes":
            return True
        if word == "no" or not said:
            return False
        say("Type yes or no.")


def compared(name: str, fingerprint: str, given: str | None, *, option: str = "") -> None:
    """See to it that a person compared a fingerprint: by naming it, or by saying so.

    `option` stands before the fingerprint where the command line names it.
    """
    if given is not None:
        if _digits(given) != _digits(fingerprint):
            raise Refused(f"{name} has the fingerprint {fingerprint}, not {given}. Do not go on: ask there.")
        return
    question = f"{name} has the fingerprint {fingerprint}. Do the people there say the same?"
    if not agreed(question, f'compare it with them, and add --fingerprint "{option}{fingerprint}".'):
        raise Refused(f"the fingerprint of {name} was not confirmed. Nothing was changed.")


def _digits(text: str) -> str:
    return "".join(text.split()).lower()


def print_pending(asked: "Pending") -> None:
    """Show what waits for a yes or no. Its lines hold nothing that a terminal would obey."""
    print_line("A plan waits for an answer:")
    for line in asked.lines:
        print_line(f"  {line}")


class Tail:
    """Follows the progress that other processes write into folders of sessions."""

    def __init__(self, progress: ProgressLine) -> None:
        self._progress = progress
        self._read: dict[Path, int] = {}

    def skip(self, folder: Path) -> None:
        """Leave out what was told before now."""
        with contextlib.suppress(OSError):
            self._read[folder] = (folder / EVENTS).stat().st_size

    def show(self, folder: Path) -> None:
        """Show what came since the last look."""
        for event in self._new(folder):
            self._progress(event)

    def _new(self, folder: Path) -> Iterator[Progress]:
        try:
            with (folder / EVENTS).open("rb") as file:
                file.seek(self._read.get(folder, 0))
                whole, _, _ = file.read().rpartition(b"\n")
        except OSError:
            return
        if not whole:
            return
        self._read[folder] = self._read.get(folder, 0) + len(whole) + 1
        for line in whole.splitlines():
            with contextlib.suppress(ValueError, TypeError):
                yield Progress(**json.loads(line))


class LogTail:
    """Shows what is added to a party's own log: what it has refused, and why."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = self._size()

    def show(self) -> None:
        """Show what came since the last look."""
        if self._size() < self._read:
            self._read = 0  # a new file was begun
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
            self._read += len(whole + end)
            for line in whole.decode(errors="replace").splitlines():
                say(line)

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0
