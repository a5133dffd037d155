"""A channel whose parties are processes of their own. Bytes go to and fro, and nothing else: no objects.

    with SubprocessChannel(("north", "south"), recipes=["cofactor.recipes.vertical:VerticalMF"]) as channel:
        channel.begin(setups(federation, recipe, budget, session="s", seed=0, insecure=5))
        drive(coordinator, channel, session, listen)
        models = channel.finish(farewell(coordinator, session, channel.parties))

A party is told which file is its own, the public facts, and the recipe as a table; the rest it makes itself.
"""

import io
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from cofactor.config import as_table
from cofactor.errors import RunError
from cofactor.federation.channel import Answers
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts
from cofactor.privacy.budget import Budget

WORKER = Path(__file__).with_name("party_worker.py")
BEGIN, ASK, FINISH = b"b", b"a", b"f"
DONE, LOST, FAILED = b"d", b"l", b"e"


def send(pipe: IO[bytes], kind: bytes, content: bytes) -> None:
    pipe.write(kind + len(content).to_bytes(8, "little") + content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[bytes, bytes]:
    """Return what came next; nothing at all if the other end is gone."""
    head = pipe.read(9)
    return (head[:1], pipe.read(int.from_bytes(head[1:], "little"))) if len(head) == 9 else (b"", b"")


class SubprocessChannel:
    """One process for each party; `recipes` names the classes that a table may describe."""

    def __init__(self, parties: Sequence[str], *, recipes: Sequence[str]) -> None:
        self.parties = tuple(parties)
        self._recipes = list(recipes)
        self._workers = {party: self._started() for party in parties}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            _stop(worker)

    def begin(self, setups: Mapping[str, Mapping[str, Any]]) -> None:
        """Let each party begin a session, or take it up again."""
        told = {party: json.dumps({**setups[party], "recipes": self._recipes}) for party in self.parties}
        self._all(BEGIN, {party: text.encode() for party, text in told.items()})

    def ask(self, round: int, data: bytes) -> Answers:  # noqa: ARG002
        found = self._all(ASK, dict.fromkeys(self.parties, data))
        return Answers(
            by_party={party: content for party, (kind, content) in found.items() if kind == DONE},
            missing={party: content.decode() for party, (kind, content) in found.items() if kind == LOST},
            lost=frozenset(party for party, (kind, _) in found.items() if kind == LOST),
        )

    def finish(self, data: bytes) -> dict[str, dict[str, Any]]:
        """Return the arrays of each party's own model, which a real party would keep."""
        found = self._all(FINISH, dict.fromkeys(self.parties, data))
        return {
            party: dict(np.load(io.BytesIO(content), allow_pickle=False))
            for party, (_, content) in found.items()
        }

    def kill(self, party: str) -> None:
        """Kill a party's process, and start another that knows nothing."""
        self._workers[party].kill()
        _stop(self._workers[party])
        self._workers[party] = self._started()

    def _all(self, kind: bytes, contents: Mapping[str, bytes]) -> dict[str, tuple[bytes, bytes]]:
        for party, worker in self._workers.items():
            send(_pipe(worker.stdin), kind, contents[party])
        found = {party: receive(_pipe(worker.stdout)) for party, worker in self._workers.items()}
        for party, (answer, content) in found.items():
            if answer not in (DONE, LOST):
                raise RunError(f"{party}: {content.decode() or 'is gone'}")
        return found

    def _started(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, str(WORKER)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _stop(worker: "subprocess.Popen[bytes]") -> None:
    _pipe(worker.stdin).close()
    _pipe(worker.stdout).close()
    worker.wait(timeout=60)


def setups(
    federation: Federation,
    recipe: Any,
    budget: Budget | None,
    *,
    session: str,
    seed: int = 0,
    insecure: int | None = None,
    folder: Path | None = None,
) -> dict[str, dict[str, Any]]:
    """Return what each party is told: all of it public, but for where its own file lies."""
    common = {
        "session": session,
        "facts": facts_as_json(federation.facts),
        "recipe": as_table(recipe),
        "budget": None if budget is None else as_table(budget),
        "seed": seed,
        "insecure": insecure,
        "folder": None if folder is None else str(folder),
    }
    return {
        party.name: {
            **common,
            "party": party.name,
            "file": str(party.file),
            "features": None if party.features is None else party.features.tolist(),
        }
        for party in federation.parties
    }


def facts_as_json(facts: Facts) -> dict[str, Any]:
    plain = {
        name: getattr(facts, name) for name in ("split", "parties", "users", "items", "ratings", "features")
    }
    ids = {name: getattr(facts, name).tolist() for name in ("shared_ids", "catalogue")}
    return {**plain, **ids, "scale": [facts.scale.low, facts.scale.high, facts.scale.step]}
