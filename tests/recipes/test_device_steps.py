import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped, offsets
from cofactor.errors import RunError
from cofactor.federation.halves import Facts
from cofactor.privacy import fixed_point
from cofactor.privacy.fixed_point import FixedPoint
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.recipes.device_steps import (
    add_rows,
    bound_of,
    drawn,
    fitted_at_home,
    gradients,
    moved,
    summed,
)
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.steps import Steps
from tests.recipes.parties import ITEMS, SCALE

HIGHEST = SCALE.high
LONGEST = 2 * HIGHEST**1.5
GRID = FixedPoint(step=2.0**-9)
FACTORS = 3
Unit = tuple[NDArray[np.float32], tuple[float | None, ...]]
"""A user's vector, however it was made, and the ratings of all items."""
EMPTY: Unit = (np.zeros(FACTORS, np.float32), (None,) * ITEMS)


def steps() -> Steps:
    return OnDeviceMF(factors=FACTORS, centre=4.0, learning_rate=1.0).steps()


def facts(users: int = 4) -> Facts:
    return Facts(
        split="on-device",
        parties=("devices",),
        users=(users,),
        items=(ITEMS,),
        ratings=(10,),
        scale=SCALE,
        shared_ids=np.arange(ITEMS),
        catalogue=np.arange(ITEMS),
    )


def grouped(rows: list[list[tuple[int, float]]]) -> Grouped:
    """Return the (item, rating) pairs of each user."""
    flat = [pair for row in rows for pair in row]
    return Grouped(
        offsets(np.array([len(row) for row in rows])),
        np.array([item for item, _ in flat], np.int32),
        np.array([value for _, value in flat], np.float32),
    )


def many(seed: int, users: int = 5) -> Grouped:
    chance = np.random.default_rng(seed)
    return grouped(
        [
            [(i, float(chance.choice([0.5, 3.0, 5.0]))) for i in range(ITEMS) if chance.random() < 0.8]
            for _ in range(users)
        ]
    )


def away_from_zero(values: NDArray[Any], _: Any) -> NDArray[np.int64]:
    """Round as unluckily as chance can: one unit's part then depends on that unit alone."""
    return np.asarray(np.sign(values) * np.ceil(np.abs(values)), np.int64)


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(0, 2**32))
def test_rows_are_added_where_they_belong(places: list[int], seed: int) -> None:
    rows = np.random.default_rng(seed).integers(-(2**40), 2**40, (len(places), 3))
    table, twin = np.zeros((4, 3), np.int64), np.zeros((4, 3), np.int64)
    add_rows(table, np.array(places, np.int32), rows)
    np.add.at(twin, places, rows)
    np.testing.assert_array_equal(table, twin)


def test_a_gradient_is_the_slope_of_the_squared_error() -> None:
    chance = np.random.default_rng(0)
    user, item, value = chance.random((1, 4)), chance.random((1, 4)), np.array([4.5])
    slope = gradients(user, item, value)[0]
    for k, step in enumerate(1e-6 * np.eye(4)):
        ends = [float((value - user @ (item + s).T)[0, 0]) ** 2 for s in (-step, step)]
        assert slope[k] == pytest.approx((ends[1] - ends[0]) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("limit", [2.0, LONGEST])
@pytest.mark.parametrize("most_ratings", [1, 2, ITEMS])
def test_a_device_changes_the_sum_by_no_more_than_the_bound(
    monkeypatch: pytest.MonkeyPatch, most_ratings: int, limit: float
) -> None:
    monkeypatch.setattr(fixed_point, "rounded_by_chance", away_from_zero)
    chance = np.random.default_rng(1)
    items = np.abs(chance.normal(size=(ITEMS, FACTORS))).astype(np.float32)
    items[:most_ratings] = 0.0

    def release(units: tuple[Unit, ...]) -> Any:
        ratings = grouped([[(i, x) for i, x in enumerate(row) if x is not None] for _, row in units])
        users = np.stack([vector for vector, _ in units])
        random = InsecureRandom(0)
        some = drawn(ratings, most_ratings, np.ones(len(units), np.bool_), random)
        return summed(some, users, items, GRID, limit=limit, most_ratings=most_ratings, random=random)

    def draw(chance: np.random.Generator) -> Unit:
        row = tuple(float(chance.choice([0.5, 5.0])) if chance.random() < 0.7 else None for _ in range(ITEMS))
        vector = np.abs(chance.normal(size=FACTORS))
        return (vector * math.sqrt(HIGHEST) / np.linalg.norm(vector)).astype(np.float32), row

    # Nothing is predicted for items at 0: the error is the whole rating, and the user as long as can be.
    longest = np.array([math.sqrt(HIGHEST), 0, 0], np.float32)
    row = tuple(HIGHEST if i < most_ratings else None for i in range(ITEMS))
    others = tuple(draw(chance) for _ in range(3))
    assert_bounded(
        release,
        bound_of(GRID, limit=limit, factors=FACTORS, most_ratings=most_ratings),
        Datasets(draw=draw, count=4, empty=EMPTY),
        worst_case=Neighbours(units=((longest, row), *others), which=0, other=EMPTY),
        pairs=40,
        climbs=40,
    )


def test_more_ratings_than_the_bound_allows_are_not_summed() -> None:
    ratings, users = many(0), np.ones((5, FACTORS), np.float32)
    items = np.ones((ITEMS, FACTORS), np.float32)
    with pytest.raises(RunError, match="more ratings than its bound allows"):
        summed(ratings, users, items, GRID, limit=2.0, most_ratings=1, random=InsecureRandom(0))


def test_a_sum_stands_for_the_gradients_of_what_was_drawn() -> None:
    ratings, chance = many(3), np.random.default_rng(3)
    users = chance.random((5, FACTORS)).astype(np.float32)
    items = chance.random((ITEMS, FACTORS)).astype(np.float32)
    found = summed(
        ratings, users, items, GRID, limit=LONGEST, most_ratings=ITEMS, random=SecureRandom()
    ).value
    exact, owners = np.zeros((ITEMS, FACTORS)), ratings.members()
    np.add.at(exact, ratings.index, gradients(users[owners], items[ratings.index], ratings.values))
    # Each of at most five terms is rounded up or down by less than a step.
    assert np.abs(GRID.decoded(found, FACTORS) - exact).max() < 5 * GRID.step * 1.001


def test_devices_draw_anew_each_time_and_not_if_they_dropped_out() -> None:
    ratings, left = many(1, users=40), np.arange(40) % 4 != 0
    draws = [drawn(ratings, 1, left, SecureRandom()) for _ in range(2)]
    for some in draws:
        np.testing.assert_array_equal(some.sizes, np.minimum(ratings.sizes, 1) * left)
    # Thirty devices with about five ratings each draw the same ones twice once in 10^20 times.
    assert not np.array_equal(draws[0].index, draws[1].index)


def test_users_are_fitted_by_a_ridge_regression_that_counts_in_ratings() -> None:
    chance, setting = np.random.default_rng(2), steps()
    items = (setting.level(4.0) * chance.uniform(0.7, 1.2, (ITEMS, FACTORS))).astype(np.float32)
    ratings = grouped([[(i, 3.5 + 0.1 * i) for i in range(ITEMS)], []])
    found = fitted_at_home(ratings, items, setting, facts(), 4.0)
    level = np.full(FACTORS, setting.level(4.0))
    squares = items.T.astype(np.float64) @ items + 2 * 4.0 * np.eye(FACTORS)
    expected = level + np.linalg.solve(squares, items.T @ (ratings.values - items @ level))
    assert (expected > 0).all()  # nothing to project
    np.testing.assert_allclose(found[0], expected, rtol=1e-4)
    np.testing.assert_allclose(found[1], level, rtol=1e-6)


@given(st.integers(0, 2**32), st.sampled_from([0.0, 1e-3, 1.0]))
def test_fitted_users_are_short_and_not_negative(seed: int, size: float) -> None:
    chance = np.random.default_rng(seed)
    items = (size * chance.exponential(size=(ITEMS, FACTORS))).astype(np.float32)
    found = fitted_at_home(many(seed), items, steps(), facts(), 4.0)
    assert (found >= 0).all()
    assert (np.square(found.astype(np.float64)).sum(axis=1) <= HIGHEST * (1 + 1e-6)).all()


def test_items_move_against_the_gradient_but_not_far() -> None:
    items, mean = np.ones((ITEMS, FACTORS), np.float32), np.zeros((ITEMS, FACTORS))
    mean[0], mean[1] = 0.01, -1e9
    found = moved(items, mean, 2.0, steps(), facts(), 4.0)
    np.testing.assert_allclose(found[0], 0.98, rtol=1e-6)
    assert np.linalg.norm(found[1] - items[1]) == pytest.approx(0.1 * 2.0, rel=1e-5)
    np.testing.assert_array_equal(found[2:], items[2:])
