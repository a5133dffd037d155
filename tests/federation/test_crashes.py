"""A training that dies anywhere goes on, and makes no noise twice for one round.

What survives a crash is what was written. So a crash is tried before, within and after every single write:
there are no other states to go on from.
"""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.federation import summing
from cofactor.federation.books import released
from cofactor.federation.door import COORDINATOR, SUM, round_of
from cofactor.federation.halves import Facts, Home
from cofactor.federation.host import Host
from cofactor.federation.messages import Letter, Message
from cofactor.federation.run import Run
from cofactor.federation.transcript import Transcript
from cofactor.federation.verify import verify
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import SecureRandom
from cofactor.recipes import together
from cofactor.recipes.sums import IdealSum, SecureSum
from tests.federation.making import WHAT, Adder, Averager, ItemSums, Off, horizontal, trained

ROUNDS, PARTIES = 2, ("north", "south")
Which = tuple[str, int, str, str]
"""An answer: its party, its round, its kind and its protection, by which the steps of a sum differ."""
Left = dict[Which, set[bytes]]
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


PLAIN = ItemSums(rounds=ROUNDS)
IDEAL, SECURE = replace(PLAIN, aggregate=IdealSum()), ItemSums(rounds=1, aggregate=SecureSum())


def train(folder: Path, recipe: ItemSums) -> Run:
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
def sent(monkeypatch: pytest.MonkeyPatch) -> Left:
    """All answers that ever left a party."""
    left: Left = defaultdict(set)
    handle = Host.handle

    def recorded(self: Host, data: bytes) -> bytes:
        reply = handle(self, data)
        letter = Letter.from_bytes(reply, (*ItemSums.messages, *summing.SUM_MESSAGES))
        left[self.party, letter.round, type(letter.body).__name__, letter.protection].add(reply)
        return reply

    monkeypatch.setattr(Host, "handle", recorded)
    return left


def charged(folder: Path, party: str) -> list[int | None]:
    ledger = Ledger.open(folder / f"{party}.ledger")
    (run,) = {entry.run for entry in ledger.entries if entry.event is not None}
    return [round_of(event) for event in released(ledger, run)]


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
    [("before", PLAIN), ("within", PLAIN), ("after", IDEAL), ("after", SECURE)],
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
        lost |= {event.step for event in run.events if event.numbers["answered"] < len(PARTIES)}
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


WHERE = {
    "keys": (summing.CoordinatorSum, "__init__", 1),
    "shares": (summing.CoordinatorSum, "take", 1),
    "masked numbers": (summing.CoordinatorSum, "take", 2),
    "survivors": (summing.CoordinatorSum, "take", 3),
    "opening": (summing.CoordinatorSum, "opened", 1),
    "sum": (Averager, "take", 1),
    "begun": (summing.PartySum, "begun", 1),
    **{f"step {k}": (summing.PartySum, "step", k) for k in (1, 2, 3, 4)},
}


def stopped(
    recipe: ItemSums, folder: Path, where: tuple[Any, str, int], when: str = "before", *, round: int = 2
) -> None:
    """Train until a call in a round: before it, or after, when its work is done and nobody knows."""
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, where, when, round)
        with pytest.raises(Killed):
            trained(recipe, horizontal(3), folder=folder)


def stop_at(patch: pytest.MonkeyPatch, where: tuple[Any, str, int], when: str, round: int) -> None:
    kind, name, at = where
    original, calls, asked = getattr(kind, name), list[object](), Averager.ask
    now = [0]

    def told(self: Averager, number: int) -> Any:
        now[0] = number
        return asked(self, number)

    def stopping(self: Any, *given: Any, **more: Any) -> Any:
        if now[0] != round:
            return original(self, *given, **more)
        # Of parties, only the first that comes here so often dies; all are in one process.
        calls.append(self)
        dies = calls.count(self) == at
        if dies and when == "before":
            raise Killed
        result = original(self, *given, **more)
        if dies:
            raise Killed
        return result

    patch.setattr(Averager, "ask", told)
    patch.setattr(kind, name, stopping)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[str]]]:
    """What coordinators have taken in, round by round."""
    found: list[tuple[int, list[str]]] = []
    take = Averager.take

    def watched(self: Averager, round: int, replies: Any) -> None:
        take(self, round, replies)
        found.append((round, sorted(replies)))

    monkeypatch.setattr(Averager, "take", watched)
    return found


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("where", WHERE.values(), ids=WHERE)
def test_crash_in_the_middle_of_a_secure_sum_loses_that_round_only(
    where: tuple[Any, str, int],
    when: str,
    sent: Left,
    taken: list[tuple[int, list[str]]],
    tmp_path: Path,
) -> None:
    recipe = ItemSums(rounds=3, aggregate=SecureSum())
    stopped(recipe, tmp_path, where, when)
    assert [round for round, _ in taken][:1] == [1]
    taken[1:] = []
    run = trained(recipe, horizontal(3), folder=tmp_path)
    assert taken == [(1, [SUM]), (2, []), (3, [SUM])]
    assert [event.numbers["answered"] for event in run.events] == [3.0, 0.0, 3.0]
    assert all(len(replies) == 1 for replies in sent.values())
    for party in ("north", "south", "west"):
        assert charged(tmp_path, party) == [1, 2, 3]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "where", [(summing.Form, "message", 1), (Averager, "take", 1)], ids=["adding", "taking"]
)
def test_crash_in_a_simulated_sum_goes_on_with_stored_answers(
    where: tuple[Any, str, int],
    sent: Left,
    taken: list[tuple[int, list[str]]],
    tmp_path: Path,
) -> None:
    recipe = ItemSums(rounds=3, aggregate=IdealSum(dropout=0.34))
    stopped(recipe, tmp_path, where)
    assert len([which for which in sent if which[1] == 2]) == 3
    trained(recipe, horizontal(3), folder=tmp_path)
    assert taken == [(1, [SUM]), (2, [SUM]), (3, [SUM])]
    assert all(len(replies) == 1 for replies in sent.values())
    for party in ("north", "south", "west"):
        assert charged(tmp_path, party) == [1, 2, 3]


@dataclass(frozen=True, kw_only=True)
class EverySecond(ItemSums):
    """The toy, with sums in odd rounds only; in even ones all is seen, and has all of its noise."""

    def participant(self, home: Home) -> Adder:
        return SometimesSeen(self, home)

    def coordinator(self, facts: Facts, seed: int) -> Averager:  # noqa: ARG002
        return SometimesSums(self, facts)


class SometimesSeen(Adder):
    def handle(self, round: int, message: Message) -> Message:
        if round % 2:
            return super().handle(round, message)
        bounded, schedule = self._off(message.arrays["mean"]), self.home.schedule
        assert schedule is not None
        whole = Bounded(value=(100 * bounded.value).astype(np.int64), bound=schedule.releases[0].bound)
        return Off(sums=self.home.door.release(schedule.releases[0].mechanism, whole, what=WHAT))


class SometimesSums(Averager):
    def sums(self, round: int) -> bool:
        return round % 2 == 1


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("round", [2, 3])
def test_round_that_is_seen_is_not_lost_beside_sums(
    round: int,
    sent: Left,
    taken: list[tuple[int, list[str]]],
    tmp_path: Path,
) -> None:
    recipe, names = EverySecond(rounds=4, aggregate=SecureSum()), ["north", "south", "west"]
    stopped(recipe, tmp_path, (Averager, "take", 1), round=round)
    run = trained(recipe, horizontal(3), folder=tmp_path)
    assert run.model is not None
    assert taken == [(1, [SUM]), (2, names), (3, [SUM] if round == 2 else []), (4, names)]
    assert all(len(replies) == 1 for replies in sent.values())
    for party in names:
        assert charged(tmp_path, party) == [1, 2, 3, 4]


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
        answered = {round for sender, round, *_ in seen(tmp_path / "folder") if sender == party}
        assert answered <= set(rounds)
        assert len(answered) >= 8 - kills
