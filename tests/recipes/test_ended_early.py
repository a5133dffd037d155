"""A training that is ended after any round: a run with a model, and a guarantee of what was released."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.data.ratings import Scale
from cofactor.data.synthetic import Shape, make
from cofactor.federation.channel import InProcess
from cofactor.federation.drive import STOP
from cofactor.federation.federation import Federation
from cofactor.federation.run import Run
from cofactor.federation.verify import verify
from cofactor.privacy.budget import Adjacency, Budget, Unit
from cofactor.progress import Progress
from cofactor.recipes.central import CentralDPSGD
from cofactor.recipes.hdpmf import HDPMF
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.local_reports import LocalReports
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.personal_biases import PersonalBiases
from cofactor.recipes.projected import ProjectedMF
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF
from cofactor.recipes.vertical_taste import VerticalTaste
from tests.recipes.parties import horizontal, small_ratings, vertical

SECURE = SecureSum(dropout=0.0)
Made = Callable[[], Federation]


def shops() -> Federation:
    return horizontal(small_ratings(), 3)


def halls() -> Federation:
    return vertical(small_ratings(), 2)


def square() -> Federation:
    """Parties with as many items as there are users: their vectors could pass for users' ones."""
    made = make(Shape(users=60, items=120, ratings=1_800), seed=1).ratings
    return vertical(made, 2)


def phones() -> Federation:
    return Federation.on_device(small_ratings(), scale=Scale(0.5, 5))


def hospital() -> Federation:
    return horizontal(small_ratings(), 1)


RECIPES: dict[str, tuple[Any, Made, float]] = {
    "horizontal": (HorizontalMF(factors=2, rounds=4, local_steps=2), shops, 4.0),
    "horizontal, summed": (HorizontalMF(factors=2, rounds=4, local_steps=1, aggregate=SECURE), shops, 4.0),
    "vertical": (VerticalMF(factors=2, rounds=4, local_steps=2), halls, 8.0),
    "vertical, summed": (VerticalMF(factors=2, rounds=4, local_steps=1, aggregate=SECURE), halls, 8.0),
    "vertical, square": (VerticalMF(factors=2, rounds=4, local_steps=2), square, 8.0),
    "taste": (VerticalTaste(), halls, 4.0),
    "taste, summed": (VerticalTaste(aggregate=SECURE), halls, 4.0),
    "taste, published": (VerticalTaste(publish=True), halls, 4.0),
    "secure als": (SecureALS(aggregate=PlainSum()), phones, 8.0),
    "shared biases": (SharedBiases(), shops, 2.0),
    "personal biases": (PersonalBiases(co_rating=2, aggregate=PlainSum()), phones, 2.0),
    "on device": (OnDeviceMF(factors=2, rounds=4, aggregate=PlainSum()), phones, 4.0),
    "local reports": (LocalReports(factors=2, rounds=4), phones, 4.0),
    "projected": (ProjectedMF(factors=2, rounds=4, aggregate=PlainSum()), phones, 8.0),
    "views": (MultiViewMF(factors=2, rounds=4, aggregate=PlainSum()), phones, 4.0),
    "hdpmf": (HDPMF(factors=2, rounds=4, aggregate=PlainSum()), phones, 4.0),
    "central": (CentralDPSGD(factors=2, rounds=4), hospital, 4.0),
}
LATER = (
    "vertical, square",
    "shared biases",
    "vertical, summed",
    "views",
    "on device",
    "taste, published",
    "hdpmf",
)
"""What takes longer, or is much like others."""


def ended(name: str, folder: Path, after: int = 1) -> Run:
    """Train, and ask for the end while a round goes on."""
    recipe, made, epsilon = RECIPES[name]

    def ask(event: Progress) -> None:
        if event.step == after:
            (folder / STOP).touch()

    unit: Unit = recipe.units[0]
    adjacency: Adjacency = "value" if unit == "rating" else "empty"
    budget = Budget(epsilon=epsilon, delta=1e-6, unit=unit, adjacency=adjacency)
    return train(recipe, made(), budget=budget, progress=ask, folder=folder)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LATER else name for name in RECIPES]
)
def test_every_recipe_can_be_ended_after_its_first_round(name: str, tmp_path: Path) -> None:
    run = ended(name, tmp_path / "unfinished")
    together = run.together
    assert together is not None
    rounds = [event.step for event in run.rounds]
    closing = name.startswith("vertical")  # one more, in which parties give their items
    assert together.rounds == len(rounds) == 1 + closing
    assert (together.planned_rounds or 0) > together.rounds
    assert run.guarantee.holds
    all_at_once = name == "personal biases"  # its other rounds tell what is public
    assert 0 <= (run.guarantee.epsilon or 0) <= RECIPES[name][2] * (1 if all_at_once else 0.95)
    for party, model in run.homes.items():
        items = np.arange(len(model.item_ids), dtype=np.int32)
        predicted = model.predict_rows(np.zeros_like(items), items)
        assert np.isfinite(predicted).all(), party
    verdict = verify(run.save(tmp_path / "run"))
    assert verdict.holds, [check for check in verdict.checks if not check.holds]
    assert Run.load(tmp_path / "run").together == together


def test_vertical_parties_that_are_ended_early_publish_items_that_fit_their_users(tmp_path: Path) -> None:
    run = ended("vertical", tmp_path, after=3)
    assert run.model is not None
    assert run.together is not None
    assert run.together.rounds == 4
    for party in ("party-0", "party-1"):
        home = run.homes[party]
        shared = np.isin(run.model.item_ids, home.item_ids)
        assert np.array_equal(run.model.item_vectors[shared], home.item_vectors)


def test_ending_costs_what_was_released_and_no_more(tmp_path: Path) -> None:
    costs = [
        ended("vertical", tmp_path / str(after), after).guarantee.epsilon or 0 for after in (1, 2, 4, 99)
    ]
    assert costs == sorted(set(costs))


def test_the_smaller_promise_says_what_it_rests_on_and_what_holds_without_that(tmp_path: Path) -> None:
    early, whole = (ended("horizontal", tmp_path / str(after), after).guarantee for after in (1, 99))
    rests = [each for each in early.assumptions if "nobody ended it" in each.what]
    assert len(rests) == 1
    assert "after round 1 of 5" in rests[0].what
    assert "epsilon 4" in rests[0].met
    assert not any("nobody ended it" in each.what for each in whole.assumptions)


def test_a_wish_that_comes_with_the_last_round_changes_nothing(tmp_path: Path) -> None:
    recipe, made, _ = RECIPES["horizontal"]
    rounds = recipe.settled(made().facts, None).rounds
    run = ended("horizontal", tmp_path, after=rounds + 1)
    assert run.together is not None
    assert run.together.planned_rounds is None
    assert run.together.rounds == rounds + 1


class Cut(Exception):
    """A machine that is switched off."""


@pytest.mark.parametrize("name", ["horizontal", "vertical", "horizontal, summed"])
def test_a_training_that_crashes_after_the_wish_ends_when_it_is_taken_up(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "unfinished"
    asked, whole = [0], InProcess.ask

    def breaking(self: InProcess, round: int, *rest: Any, **more: Any) -> Any:
        answers = whole(self, round, *rest, **more)
        if round == 3 and not asked[0]:
            asked[0] += 1
            (folder / STOP).touch()
            raise Cut  # the answers are given, and charged, and do not arrive
        return answers

    monkeypatch.setattr(InProcess, "ask", breaking)
    with pytest.raises(Cut):
        ended(name, folder, after=99)
    run = ended(name, folder, after=99)
    assert run.together is not None
    assert run.together.rounds == 3 + (name == "vertical")  # the round that was cut off is gone through
    assert run.together.planned_rounds is not None
    stages = [event.stage for event in run.events]
    assert stages.count("failed") == stages.count("resumed") == 1
    verdict = verify(run.save(tmp_path / "run"))
    assert verdict.holds, [check for check in verdict.checks if not check.holds]


@pytest.mark.parametrize("arrives", [True, False], ids=["answered", "asked"])
@pytest.mark.parametrize("name", ["vertical", "vertical, square", "vertical, summed"])
def test_a_crash_in_the_round_that_closes_a_training_does_not_open_it_again(
    name: str, arrives: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "unfinished"
    cut, whole = [0], InProcess.ask

    def breaking(self: InProcess, round: int, *rest: Any, **more: Any) -> Any:
        if round == 4 and not cut[0]:
            cut[0] += 1
            if arrives:
                whole(self, round, *rest, **more)
            raise Cut  # items are given, and what the coordinator knew of that is gone
        return whole(self, round, *rest, **more)

    monkeypatch.setattr(InProcess, "ask", breaking)
    with pytest.raises(Cut):
        ended(name, folder, after=3)
    run = ended(name, folder, after=3)
    assert run.together is not None
    assert run.together.rounds == 4
    assert run.model is not None
    assert len(run.model.item_ids) == sum(len(home.item_ids) for home in run.homes.values())
    verdict = verify(run.save(tmp_path / "run"))
    assert verdict.holds, [check for check in verdict.checks if not check.holds]


def test_implicit_ratings_can_be_ended_early_too(tmp_path: Path) -> None:
    chosen = Federation.on_device(small_ratings().without_values())

    def ask(event: Progress) -> None:
        (tmp_path / STOP).touch()

    budget = Budget(epsilon=8, delta=1e-6, unit="user")
    run = train(SecureALS(), chosen, budget=budget, progress=ask, folder=tmp_path)
    assert run.together is not None
    assert run.together.rounds == 1
    model = next(iter(run.homes.values()))
    assert len(model.recommend(model.user_ids[0], 3)) == 3


def test_numbers_without_noise_are_not_on_disk_while_a_training_goes_on(tmp_path: Path) -> None:
    recipe, made, epsilon = RECIPES["horizontal"]
    seen: list[str] = []

    def look(event: Progress) -> None:
        seen.append((tmp_path / "events.jsonl").read_text())

    budget = Budget(epsilon=epsilon, delta=1e-6, unit="user")
    run = train(recipe, made(), budget=budget, progress=look, folder=tmp_path)
    assert not any("simulation" in text for text in seen)
    assert "simulation" not in (tmp_path / "events.jsonl").read_text()
    assert sum(event.stage == "simulation" for event in run.events) >= recipe.rounds


@pytest.mark.parametrize("cuts", [(), (1,), (3,), (3, 5), (3, 3, 5)])
def test_a_training_that_crashed_tells_the_time_of_all_rounds(
    cuts: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every round takes longer than those before it, so that no clock that begins anew could pass for one."""
    now, left, whole = [0.0], list(cuts), InProcess.ask

    def slow(self: InProcess, round: int, *rest: Any, **more: Any) -> Any:
        now[0] += round
        if left and left[0] == round:
            left.pop(0)
            raise Cut
        return whole(self, round, *rest, **more)

    monkeypatch.setattr(InProcess, "ask", slow)
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    for _ in cuts:
        with pytest.raises(Cut):
            ended("horizontal", tmp_path, after=99)
    run = ended("horizontal", tmp_path, after=99)
    assert [event.numbers["seconds"] for event in run.rounds] == [1, 3, 6, 10, 15]
    assert run.phases == {"getting ready": 0, "rounds": 15, "finishing at home": 0}
    assert run.seconds == 15


def test_where_time_went_adds_up(tmp_path: Path) -> None:
    run = ended("horizontal", tmp_path, after=99)
    assert list(run.phases) == ["getting ready", "rounds", "finishing at home"]
    assert run.seconds == pytest.approx(sum(run.phases.values()))
    again = run.with_scores({}, 1.5)
    assert again.phases["measuring"] == 1.5
    again.save(tmp_path / "run")
    assert list(Run.load(tmp_path / "run").phases) == list(again.phases)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["phases"][3]["seconds"] == 1.5
