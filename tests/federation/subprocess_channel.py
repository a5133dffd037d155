"""A channel whose parties are processes of their own. Bytes go to and fro, and nothing else: no objects.

    with SubprocessChannel(("north", "south"), recipes=["cofactor.recipes.vertical:VerticalMF"]) as channel:
        told = setups(federation, recipe, budget, session="s", roster=channel.roster(), seed=0, insecure=5)
        channel.begin(told)
        drive(coordinator, channel, session, listen)
        models = channel.finish(farewell(coordinator, session, channel.parties))

A party is told which file is its own, the public facts, and the recipe as a table; the rest it makes itself.
Its key for secure sums never leaves its process: it tells the public one, and is told those of all others.
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
KEY, BEGIN, ASK, FINISH = b"k", b"b", b"a", b"f"
DONE, LOST, STOPPED, FAILED, GONE = b"d", b"l", b"s", b"e", b""


def send(pipe: IO[bytes], kind: bytes, content: bytes) -> None:
    pipe.write(kind + len(content).to_bytes(8, "little") + content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[bytes, bytes]:
    """Return what came next; nothing at all if the other end is gone."""
    head = pipe.read(9)
    return (head[:1], pipe.read(int.from_bytes(head[1:], "little"))) if len(head) == 9 else (GONE, b"is gone")


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

    def roster(self) -> dict[str, bytes]:
        """Return the parties' public keys, in the order of the parties."""
        found = self._all(KEY, dict.fromkeys(self.parties, b""))
        return {party: content for party, (_, content) in found.items()}

    def begin(self, setups: Mapping[str, Mapping[str, Any]]) -> None:
        """Let each party begin a session, or take it up again."""
        told = {party: json.dumps({**setups[party], "recipes": self._recipes}) for party in self.parties}
        self._all(BEGIN, {party: text.encode() for party, text in told.items()})

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:  # noqa: ARG002
        found = self._all(ASK, letters)
        silent = {party: content.decode() for party, (kind, content) in found.items() if kind != DONE}
        return Answers(
            by_party={party: content for party, (kind, content) in found.items() if kind == DONE},
            missing=silent,
            lost=frozenset(party for party, (kind, _) in found.items() if kind == LOST),
        )

    def finish(self, data: bytes) -> dict[str, dict[str, Any]]:
        """Return the arrays of each party's own model, which a real party would keep."""
        found = self._all(FINISH, dict.fromkeys(self.parties, data))
        return {
            party: dict(np.load(io.BytesIO(content), allow_pickle=False))
            for party, (kind, content) in found.items()
            if kind == DONE
        }

    def kill(self, party: str, *, again: bool = True) -> None:
        """Kill a party's process, and start another that knows nothing."""
        self._workers[party].kill()
        _stop(self._workers[party])
        if again:
            self._workers[party] = self._started()

    def _all(self, kind: bytes, contents: Mapping[str, bytes]) -> dict[str, tuple[bytes, bytes]]:
        """Ask those who have something to read, all at the same time; a process that ended is gone."""
        there = {party: worker for party, worker in self._workers.items() if worker.returncode is None}
        asked = {party: there[party] for party in contents if party in there}
        for party, worker in asked.items():
            send(_pipe(worker.stdin), kind, contents[party])
        found = dict.fromkeys(contents, (GONE, b"is gone"))
        found |= {party: receive(_pipe(worker.stdout)) for party, worker in asked.items()}
        for party, (answer, content) in found.items():
            if answer == FAILED:
                raise RunError(f"{party}: {content.decode()}")
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
    roster: Mapping[str, bytes],
    seed: int = 0,
    insecure: int | None = None,
    folder: Path | None = None,
) -> dict[str, dict[str, Any]]:
    """Return what each party is told: all of it public, but for where its own file lies."""
    common = {
        "session": session,
        "roster": {party: key.hex() for party, key in roster.items()},
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
