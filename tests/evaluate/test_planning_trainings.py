"""What is tried on made-up ratings: really trained, beside what others reach on the same ratings."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import cofactor as cf
from cofactor.data.split import by_fraction
from cofactor.evaluate import planning_trainings
from cofactor.evaluate.planning import NO_TIME, Asked, Cell, Grid, planned
from cofactor.evaluate.planning_trainings import TEST_FRACTION, Tried, made_up, summary, tried
from cofactor.evaluate.rating_errors import rmse

LONG = 600.0
"""Seconds: more than any test takes, so that nothing depends on how fast a machine is."""


def grid_of(epsilon: float = 2, **changes: Any) -> Grid:
    sizes: dict[str, Any] = {"users": 300, "items": 60, "ratings": 4_500} | changes
    budget = cf.Budget(epsilon=epsilon, delta=1e-6, unit="user")
    return Grid.around(Asked(recipe=cf.SharedBiases(), budget=budget, **sizes))


def only(grid: Grid, *places: tuple[int, int, int, int]) -> list[Cell]:
    """Plan a few cells, so that only these are trained."""
    wanted = places or (grid.middle,)
    return [cell.planned() if cell.place in wanted else cell for cell in grid.cells()]


def at(found: Tried, cells: Sequence[Cell], place: tuple[int, int, int, int]) -> Any:
    training = found.of_cell[[cell.place for cell in cells].index(place)]
    assert training is not None
    return found.trainings[training]


def test_summary_has_the_interval_of_students_t() -> None:
    values = [0.91, 0.94, 0.92, 0.95]
    found = summary(values)
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert found["mean"] == pytest.approx(0.93)
    assert found["spread"] == pytest.approx(np.std(values, ddof=1))
    assert (found["low"], found["high"]) == pytest.approx((low, high))


def test_one_training_has_no_interval() -> None:
    assert summary([0.9]) == {"mean": 0.9, "spread": None, "low": None, "high": None}


def test_what_was_asked_for_is_trained_as_often_as_wanted_beside_what_others_reach() -> None:
    grid = grid_of()
    cells = only(grid)
    found = tried(grid, cells, repeats=2, seconds=LONG)
    told = at(found, cells, grid.middle).as_dict()
    assert (len(found.trainings), told["repeats"], told["users"], told["ratings"]) == (1, 2, 300, 4_500)
    assert list(told["rmse"]) == ["user_mean", "private", "pooled"]
    assert told["gain"]["over"] == "user_mean"
    means = {name: one["mean"] for name, one in told["rmse"].items()}
    assert told["gain"]["mean"] == pytest.approx(means["user_mean"] - means["private"])
    assert found.of_cell.count(None) == len(cells) - 1


def test_who_sends_nothing_is_measured_on_the_same_test_ratings() -> None:
    grid = grid_of()
    cells = only(grid)
    found = at(tried(grid, cells, repeats=2, seconds=LONG), cells, grid.middle)
    for repeat in range(2):
        train, test = by_fraction(made_up(grid.asked, (300, 4_500), repeat), test=TEST_FRACTION, seed=repeat)
        predicted = cf.UserMean().fit(train).predict_rows(test.users, test.items)
        assert found.errors[repeat]["user_mean"] == pytest.approx(rmse(test.values, predicted), abs=0.02)


def test_each_repeat_is_trained_with_a_seed_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[cf.Run] = []

    def watched(*words: Any, **names: Any) -> cf.Run:
        runs.append(cf.train(*words, **names))
        return runs[-1]

    monkeypatch.setattr(planning_trainings, "train", watched)
    grid = grid_of()
    tried(grid, only(grid), repeats=3, seconds=LONG)
    assert [run.seed for run in runs] == [0, 1, 2]


def test_a_large_budget_beats_who_sends_nothing_and_a_tiny_one_does_not_beat_pooling() -> None:
    grid = grid_of(epsilon=9.9)
    cells = only(grid)
    errors = at(tried(grid, cells, repeats=1, seconds=LONG), cells, grid.middle).errors[0]
    assert errors["pooled"] - 0.02 < errors["private"] < errors["user_mean"] - 0.05
    grid = grid_of(epsilon=0.01)
    cells = only(grid)
    tiny = at(tried(grid, cells, repeats=1, seconds=LONG), cells, grid.middle).errors[0]
    # The same seed makes the same ratings, and what needs no noise errs by the same.
    assert (tiny["pooled"], tiny["user_mean"]) == (errors["pooled"], errors["user_mean"])
    assert tiny["private"] > errors["private"] + 0.01


def test_parties_are_compared_with_staying_alone() -> None:
    grid = grid_of(parties=2)
    cells = only(grid)
    told = at(tried(grid, cells, repeats=1, seconds=LONG), cells, grid.middle).as_dict()
    assert list(told["rmse"]) == ["user_mean", "alone", "private", "pooled"]
    assert told["gain"]["over"] == "alone"


def test_vertical_parties_are_tried_too() -> None:
    budget = cf.Budget(epsilon=4, delta=1e-6, unit="rating")
    wanted = Asked(recipe=cf.VerticalTaste(), budget=budget, users=200, items=60, ratings=4_000, parties=2)
    grid = Grid.around(wanted)
    cells = only(grid)
    told = at(tried(grid, cells, repeats=1, seconds=LONG), cells, grid.middle).as_dict()
    assert told["rmse"]["private"]["mean"] < told["rmse"]["user_mean"]["mean"]


def test_without_time_nothing_is_trained_and_every_cell_says_so() -> None:
    grid = grid_of()
    cells = planned(grid, seconds=1e-9)
    found = tried(grid, cells, repeats=1, seconds=1e-9)
    assert (found.trainings, set(found.of_cell)) == ((), {None})
    middle = [cell.place for cell in cells].index(grid.middle)
    assert found.why_not[middle] == NO_TIME
    # Those without a plan have said why already.
    assert {why for at, why in enumerate(found.why_not) if at != middle} == {""}


def test_too_large_a_population_is_tried_with_fewer_people_and_says_with_how_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planning_trainings, "_MOST_RATINGS", 2_000)
    grid = grid_of()
    cells = only(grid, grid.middle, (0, *grid.middle[1:]))
    found = tried(grid, cells, repeats=1, seconds=LONG)
    smaller = at(found, cells, grid.middle)
    assert (smaller.users, smaller.ratings) == (75, 1_125)
    assert at(found, cells, (0, *grid.middle[1:])) is smaller


def test_a_shape_that_cannot_be_made_up_says_why() -> None:
    grid = grid_of(users=300, items=2, ratings=300)
    cells = only(grid)
    found = tried(grid, cells, repeats=1, seconds=LONG)
    assert found.trainings == ()
    assert any(why and why != NO_TIME for why in found.why_not)


def test_budgets_are_tried_in_turn_and_before_other_populations() -> None:
    grid = grid_of()
    cells = [replace(cell, plan="made") for cell in grid.cells()]
    turns = list(planning_trainings._in_turn(grid, cells, 2))
    first = [(cells[at].place[3], repeat) for at, repeat in turns[:10]]
    assert first == [(2, 0), (2, 1), *((place, repeat) for repeat in (0, 1) for place in (0, 1, 3, 4))]
    assert all(cells[at].place[:3] == grid.middle[:3] for at, _ in turns[:10])
    assert len(turns) == 2 * len(cells)
