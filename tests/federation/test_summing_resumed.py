"""A crash in the middle of a sum loses that round, at most, and nothing is charged or made twice."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.federation import summing
from cofactor.federation.door import SUM
from cofactor.federation.halves import Facts, Home
from cofactor.federation.messages import Message
from cofactor.privacy.bounding import Bounded
from cofactor.recipes.sums import IdealSum, SecureSum
from tests.federation.crashing import Killed, Left, charged
from tests.federation.making import WHAT, Adder, Averager, ItemSums, Off, horizontal, trained

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
    assert [event.numbers["answered"] for event in run.rounds] == [3.0, 0.0, 3.0]
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
