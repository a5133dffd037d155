"""A coordinator that is not content with what was agreed on."""

import json
from collections.abc import Mapping
from pathlib import Path

from cofactor.federation.channel import Answers, Channel
from cofactor.federation.declining import code_in
from cofactor.federation.messages import MAGIC
from cofactor.network.apps import CoordinatorApp
from cofactor.network.conducting import conduct


class GreedyCoordinator(CoordinatorApp):
    """Conducts as all do, and then asks everybody for one round more than was planned."""

    def conduct(self, folder: Path, channel: Channel) -> None:
        seen = _Overheard(channel)
        conduct(folder, seen)
        more = {party: _next_round(data) for party, data in seen.last.items()}
        told = seen.ask(0, more)
        found = {"answers": list(told.by_party), "missing": dict(told.missing)}
        (folder / "greedy.json").write_text(json.dumps(found))


class _Overheard:
    def __init__(self, channel: Channel) -> None:
        self._channel, self.parties = channel, channel.parties
        self.last: dict[str, bytes] = {}

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:
        if round > 0 and step in (None, 0):
            self.last.update(letters)
        return self._channel.ask(round, letters, step)


def _next_round(data: bytes) -> bytes:
    head, _, rest = data[len(MAGIC) :].partition(b"\n")
    table = json.loads(head)
    table["round"] += 1
    assert code_in(data) is None
    return MAGIC + json.dumps(table, separators=(",", ":")).encode() + b"\n" + rest
