"""Messages as the transcript has them: who saw what, and how it was protected."""

import json
from dataclasses import dataclass
from pathlib import Path

COORDINATOR = "coordinator"
SUM = "the sum of all answers"
"""Who receives what nobody sees by itself."""
PARTIES = "parties"
"""What all parties together are called here."""


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """Messages that are alike, but for the party and the round."""

    kind: str
    sender: str
    """"coordinator", "parties", or a role that holds no ratings."""
    receiver: str
    protection: str
    messages: int
    bytes: int
    rounds: tuple[int, int]
    """The first one and the last one."""
    after: frozenset[str] = frozenset()
    """How everything was protected that others than the coordinator had sent before the last of these."""


def read_transcript(path: Path, parties: frozenset[str]) -> tuple[tuple[Exchange, ...], dict[str, int]]:
    """Read a transcript line by line, and keep what is alike once: it can be long.

    Return that, and in which round each but the coordinator was last heard of.
    Whoever is neither the coordinator nor the sum, nor among the `parties`, is a role of another name.
    Without a file there was nothing.
    """
    groups: dict[tuple[str, str, str, str], list[int]] = {}
    after: dict[tuple[str, str, str, str], frozenset[str]] = {}
    heard: set[str] = set()
    last: dict[str, int] = {}
    if not path.is_file():
        return (), {}
    with path.open("rb") as lines:
        next(lines, None)  # the session's name
        for line in lines:
            if not line.endswith(b"\n"):
                break  # a crash cut it off
            sent = json.loads(line)
            number, length = int(sent["round"]), int(sent["bytes"])
            sender, receiver = str(sent["sender"]), str(sent["receiver"])
            key = str(sent["kind"]), _who(sender, parties), _who(receiver, parties), str(sent["protection"])
            group = groups.setdefault(key, [0, 0, number, number])
            group[0] += 1
            group[1] += length
            group[2], group[3] = min(group[2], number), max(group[3], number)
            after[key] = frozenset(heard)
            if sender != COORDINATOR:
                heard.add(key[-1])
                last[sender] = max(last.get(sender, 0), number)
    exchanges = tuple(
        Exchange(
            kind=kind,
            sender=sender,
            receiver=receiver,
            protection=protection,
            messages=group[0],
            bytes=group[1],
            rounds=(group[2], group[3]),
            after=after[kind, sender, receiver, protection],
        )
        for (kind, sender, receiver, protection), group in groups.items()
    )
    return exchanges, last


def _who(name: str, parties: frozenset[str]) -> str:
    """Return the role of somebody: all parties are alike."""
    if name in (COORDINATOR, SUM):
        return name
    return PARTIES if name in parties else name
