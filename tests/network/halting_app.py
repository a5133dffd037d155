"""A coordinator that stands still before some kinds of questions, so that a crash can come just there."""

import json
import time
from collections.abc import Mapping
from pathlib import Path

from cofactor.federation.channel import Answers, Channel
from cofactor.federation.messages import heading
from cofactor.network.apps import CoordinatorApp

HALTS = "halts.json"
SECONDS = 5.0


class HaltingCoordinator(CoordinatorApp):
    """Conducts as all do; before phases that `halts.json` lists it makes a file once, and waits a while."""

    def conduct(self, folder: Path, channel: Channel) -> None:
        super().conduct(folder, _Halting(channel, folder))


class _Halting:
    def __init__(self, channel: Channel, folder: Path) -> None:
        self._channel, self._folder, self.parties = channel, folder, channel.parties

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:
        self._halt(phase_of(round, next(iter(letters.values())), step))
        return self._channel.ask(round, letters, step)

    def _halt(self, phase: str) -> None:
        file = self._folder / f"at-{phase}"
        if phase in json.loads((self._folder / HALTS).read_text()) and not file.exists():
            file.touch()
            time.sleep(SECONDS)


def phase_of(round: int, data: bytes, step: int | None) -> str:
    """Name a phase: the kind of letter, and in a sum the step; questions of rounds are told apart."""
    kind = heading(data).kind
    if kind == "SumStep":
        return f"step-{step}"
    return f"asking-{kind}" if round else kind
