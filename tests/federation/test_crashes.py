"""A training that dies anywhere goes on, and makes no noise twice for one round.

What survives a crash is what was written. So a crash is tried before, within and after every single write:
there are no other states to go on from.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cofactor.federation.books import released
from cofactor.federation.door import COORDINATOR, round_of
from cofactor.federation.host import Host
from cofactor.federation.run import Run
from cofactor.federation.transcript import Transcript
from cofactor.federation.verify import verify
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import SecureRandom
from cofactor.recipes import together
from tests.federation.making import ItemSums, horizontal, trained

ROUNDS, PARTIES = 2, ("north", "south")
WORKER = Path(__file__).with_name("killing.py")


class Killed(BaseException):
    """The process is gone; nothing catches it."""


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


def train(folder: Path, *, summed: bool) -> Run:
    recipe = ItemSums(rounds=ROUNDS, summed=summed)
    return trained(recipe, horizontal(2), random=SecureRandom(), folder=folder)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the reckoning, which writes nothing, and the waiting for disks."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setattr(Ledger, "_within", lambda *_: True)
    monkeypatch.setattr(together, "_by_round", lambda *_: {})
    monkeypatch.setattr(together, "_loss", lambda *_: None)
    monkeypatch.setattr(together, "_guarantee", lambda *_: Guarantee.nothing("Not reckoned."))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, int], set[bytes]]:
    """All answers that ever left a party, by party and round."""
    left: dict[tuple[str, int], set[bytes]] = defaultdict(set)
    handle = Host.handle

    def recorded(self: Host, data: bytes) -> bytes:
        reply = handle(self, data)
        left[self.party, int(json.loads(reply.split(b"\n")[1])["round"])].add(reply)
        return reply

    monkeypatch.setattr(Host, "handle", recorded)
    return left


def charged(folder: Path, party: str) -> list[int | None]:
    ledger = Ledger.open(folder / f"{party}.ledger")
    (run,) = {entry.run for entry in ledger.entries if entry.event is not None}
    return [round_of(event) for event in released(ledger, run)]


def seen(folder: Path) -> dict[tuple[str, int], set[str]]:
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    for each in Transcript.open(folder / "transcript.jsonl").sent:
        if each.sender != COORDINATOR:
            found[each.sender, each.round].add(each.digest)
    return found


def crashed(folder: Path, patch: pytest.MonkeyPatch, at: int, when: str, *, summed: bool) -> bool:
    """Train until the crash; say whether there was one."""
    crash = Crash(at, when)
    with patch.context() as patched:
        crash.install(patched)
        try:
            train(folder, summed=summed)
        except Killed:
            return True
    return False


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("when", "summed"), [("before", False), ("within", False), ("after", True)])
def test_crash_at_any_write_loses_one_round_at_most_and_makes_no_noise_twice(
    when: str,
    summed: bool,
    sent: dict[tuple[str, int], set[bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = 1
    while crashed(tmp_path / str(at), monkeypatch, at, when, summed=summed):
        folder = tmp_path / str(at)
        run = train(folder, summed=summed)
        assert run.model is not None, at
        assert all(len(replies) == 1 for replies in sent.values()), at
        assert all(len(digests) == 1 for digests in seen(folder).values()), at
        for party in PARTIES:
            rounds = charged(folder, party)
            assert len(set(rounds)) == len(rounds) <= ROUNDS, at
        lost = {round for round in (1, 2) for party in PARTIES if (party, round) not in seen(folder)}
        assert len(lost) <= 1, at
        sent.clear()
        at += 1
    # Session, transcript, ledgers, and for each round charges, answers, lines and the coordinator's state.
    assert at > (12 if when == "within" else 50)


@pytest.mark.usefixtures("quick")
def test_crashes_again_and_again_lose_their_rounds_and_nothing_else(
    sent: dict[tuple[str, int], set[bytes]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 1
    for _ in range(200):
        if not crashed(tmp_path, monkeypatch, at, "after", summed=False):
            break
        at = at % 23 + 1
    assert all(len(replies) == 1 for replies in sent.values())
    for party in PARTIES:
        rounds = charged(tmp_path, party)
        assert len(set(rounds)) == len(rounds) <= ROUNDS


@pytest.mark.slow
def test_training_that_was_killed_for_real_can_be_finished_and_verified(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(WORKER), str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
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
        answered = {round for sender, round in seen(tmp_path / "folder") if sender == party}
        assert answered <= set(rounds)
        assert len(answered) >= 8 - kills
