"""A training that dies anywhere goes on, and makes no noise twice for one round.

What survives a crash is what was written. So a crash is tried before, within and after every single write:
there are no other states to go on from.
"""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cofactor.federation.door import COORDINATOR
from cofactor.federation.run import Run
from cofactor.federation.transcript import Transcript
from cofactor.federation.verify import verify
from cofactor.randomness import SecureRandom
from cofactor.recipes.sums import IdealSum, SecureSum
from tests.federation.crashing import Killed, Left, Which, charged
from tests.federation.making import ItemSums, horizontal, trained

ROUNDS, PARTIES = 2, ("north", "south")
WORKER = Path(__file__).with_name("killing.py")


class Crash:
    """Ends everything at one write, and lets nothing be written afterwards."""

    def __init__(self, at: int, when: str) -> None:
        self.at, self.when, self.writes, self.dead = at, when, 0, False

    def around(self, write: Callable[..., Any], halved: bool = False) -> Callable[..., Any]:
        def wrapped(*given: Any) -> Any:
            # Only what takes several steps has a within.
            self.writes += self.when != "within" or halved
            now = self.writes == self.at and (self.when != "within" or halved)
            if self.dead:
                raise Killed
            if now and self.when == "before":
                self.die()
            if now and self.when == "within" and halved:
                write(given[0], given[1][: len(given[1]) // 2])
                self.die()
            result = write(*given)
            if now:
                self.die()
            return result

        return wrapped

    def die(self) -> None:
        self.dead = True
        raise Killed

    def install(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr("os.write", self.around(os.write, halved=True))
        for name in ("os.fsync", "os.link", "os.ftruncate"):
            patch.setattr(name, self.around(getattr(os, name.removeprefix("os."))))
        patch.setattr(Path, "replace", self.around(Path.replace))


PLAIN = ItemSums(rounds=ROUNDS)
IDEAL, SECURE = replace(PLAIN, aggregate=IdealSum()), ItemSums(rounds=1, aggregate=SecureSum())


def train(folder: Path, recipe: ItemSums) -> Run:
    return trained(recipe, horizontal(2), random=SecureRandom(), folder=folder)


def seen(folder: Path) -> dict[Which, set[str]]:
    found: dict[Which, set[str]] = defaultdict(set)
    for each in Transcript.open(folder / "transcript.jsonl").sent:
        if each.sender != COORDINATOR:
            found[each.sender, each.round, each.kind, each.protection].add(each.digest)
    return found


def crashed(folder: Path, patch: pytest.MonkeyPatch, at: int, when: str, recipe: ItemSums) -> bool:
    """Train until the crash; say whether there was one."""
    crash = Crash(at, when)
    with patch.context() as patched:
        crash.install(patched)
        try:
            train(folder, recipe)
        except Killed:
            return True
    return False


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("when", "recipe"),
    [
        ("before", PLAIN),
        ("within", PLAIN),
        pytest.param("after", IDEAL, marks=pytest.mark.slow),
        ("after", SECURE),
    ],
    ids=["before", "within", "after, ideal sum", "after, secure sum"],
)
def test_crash_at_any_write_loses_one_round_at_most_and_makes_no_noise_twice(
    when: str,
    recipe: ItemSums,
    sent: Left,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = 1
    while crashed(tmp_path / str(at), monkeypatch, at, when, recipe):
        folder = tmp_path / str(at)
        run = train(folder, recipe)
        assert run.model is not None, at
        assert all(len(replies) == 1 for replies in sent.values()), at
        assert all(len(digests) == 1 for digests in seen(folder).values()), at
        for party in PARTIES:
            rounds = charged(folder, party)
            assert len(set(rounds)) == len(rounds) <= ROUNDS, at
        there = {(party, round) for party, round, *_ in seen(folder)}
        every = range(1, recipe.rounds + 1)
        lost = {round for round in every for party in PARTIES if (party, round) not in there}
        lost |= {event.step for event in run.rounds if event.numbers["answered"] < len(PARTIES)}
        assert len(lost) <= 1, at
        sent.clear()
        at += 1
    # Session, transcript, ledgers, and for each round charges, answers, lines and the coordinator's state.
    assert at > (12 if when == "within" else 50)


@pytest.mark.usefixtures("quick")
def test_crashes_again_and_again_lose_their_rounds_and_nothing_else(
    sent: Left, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 1
    for _ in range(200):
        if not crashed(tmp_path, monkeypatch, at, "after", PLAIN):
            break
        at = at % 23 + 1
    assert all(len(replies) == 1 for replies in sent.values())
    for party in PARTIES:
        rounds = charged(tmp_path, party)
        assert len(set(rounds)) == len(rounds) <= ROUNDS


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["plain", "secure"])
def test_training_that_was_killed_for_real_can_be_finished_and_verified(recipe: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(WORKER), str(tmp_path), recipe],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    kills = int(done.stdout)
    assert kills >= 2
    verdict = verify(tmp_path / "run")
    assert verdict.holds, verdict
    run = Run.load(tmp_path / "run")
    assert run.guarantee.holds
    assert run.guarantee.epsilon is not None
    assert run.guarantee.epsilon <= 4.0
    for party in ("north", "south", "west"):
        rounds = charged(tmp_path / "folder", party)
        assert len(set(rounds)) == len(rounds) <= 8
        answered = {round for sender, round, *_ in seen(tmp_path / "folder") if sender == party}
        assert answered <= set(rounds)
        assert len(answered) >= 8 - kills
