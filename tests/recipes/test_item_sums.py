"""What users tell about items: messages of length 1, whatever was rated and whatever is asked."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped, offsets
from cofactor.errors import RunError
from cofactor.privacy import fixed_point
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.fixed_point import FixedPoint
from cofactor.randomness import SecureRandom
from cofactor.recipes import item_sums
from cofactor.recipes.item_beliefs import RATING_VARIANCE
from cofactor.recipes.item_factors import Told
from cofactor.recipes.item_sums import SPREAD_LIMIT, Known, Summed, chosen, messages, summed, told_in
from cofactor.recipes.projected_steps import Sketch
from tests.recipes.item_parties import FACTORS, FEATURES, WIDTH, arrays, question
from tests.recipes.parties import ITEMS

Reals = NDArray[np.float64]
Rated = list[tuple[int, float]]
SIZES = (1e14, 9e14, 1e6, 1e-6, 5e-324, 0.0, -1e14)
NAMES = ("bias", "variance", "learned", "importance", "covariance", "factors", "told")
PUBLIC = np.random.default_rng(9).normal(size=(ITEMS, FEATURES))


def grouped(users: Sequence[Rated]) -> Grouped:
    """Return the (item, rating) pairs of each user, in the usual units."""
    flat = [pair for own in users for pair in own]
    return Grouped(
        offsets(np.array([len(own) for own in users])),
        np.array([item for item, _ in flat], np.int32),
        np.array([value for _, value in flat], np.float32),
    )


def lengths(rows: Reals, ratings: Grouped) -> Reals:
    return np.sqrt(np.bincount(ratings.members(), (rows**2).sum(axis=1), minlength=len(ratings.ptr) - 1))


def read(asked: Any) -> tuple[Known, Told]:
    return Known.of(asked, PUBLIC, FACTORS), told_in(asked, FACTORS)


def message_rows(users: Sequence[Rated], asked: Any, *, alpha: float = 0.3) -> tuple[Reals, Grouped]:
    ratings, (known, told) = grouped(users), read(asked)
    return messages(ratings, known, known.fit(ratings, told), alpha, told), ratings


rating = st.sampled_from([-2.0, -0.5, 0.0, 1.0, 2.0])
user = st.dictionaries(st.integers(0, ITEMS - 1), rating).map(lambda own: list(own.items()))


@given(st.lists(user, min_size=1, max_size=4), st.integers(0, 50))
def test_the_message_of_a_user_has_length_1_and_that_of_nobody_0(users: list[Rated], seed: int) -> None:
    rows, ratings = message_rows(users, question(seed=seed))
    assert lengths(rows, ratings) == pytest.approx([float(len(own) > 0) for own in users], abs=1e-12)


def test_a_message_of_thousands_of_ratings_has_length_1_too() -> None:
    items, chance = 4000, np.random.default_rng(1)
    asked = question(items=items)
    public = chance.normal(size=(items, FEATURES))
    known, told = Known.of(asked, public, FACTORS), told_in(asked, FACTORS)
    ratings = grouped([[(item, 2.0) for item in range(items)], [(7, -2.0)]])
    rows = messages(ratings, known, known.fit(ratings, told), 0.3, told)
    assert lengths(rows, ratings) == pytest.approx([1.0, 1.0], abs=1e-12)


def asking(changed: dict[str, Any]) -> Any:
    return question(**changed)


def extreme_questions() -> list[tuple[str, Any]]:
    """Return questions in which one array, or a part of it, or nearly everything, is extreme."""
    found = []
    base = arrays(ITEMS, FEATURES, FACTORS, 5)
    for size in SIZES:
        for name in NAMES:
            found.append((f"{name} of {size:g}", asking({name: np.full_like(base[name], size)})))
            part = base[name].copy()
            part.flat[::3] = size
            found.append((f"some {name} of {size:g}", asking({name: part})))
        every: dict[str, Any] = {name: np.full_like(base[name], size) for name in NAMES}
        found.append((f"all of {size:g}", question(**every, mean=np.array(size))))
    found += [
        ("float32", asking({name: np.full(base[name].shape, 9e14, np.float32) for name in NAMES})),
        ("whole", asking({name: np.full(base[name].shape, -(10**14), np.int64) for name in NAMES})),
        ("true", asking({name: np.ones(base[name].shape, np.bool_) for name in NAMES})),
    ]
    return found


USERS: list[Rated] = [
    [(0, 2.0)],
    [],
    [(item, -2.0) for item in range(ITEMS)],
    [(item, (-1.0) ** item * 2) for item in range(ITEMS)],
]


@pytest.mark.parametrize(("name", "asked"), extreme_questions())
def test_no_question_changes_how_long_messages_are(name: str, asked: Any) -> None:
    rows, ratings = message_rows(USERS, asked)
    assert np.isfinite(rows).all(), name
    assert lengths(rows, ratings) == pytest.approx([1, 0, 1, 1], abs=1e-9)


@pytest.mark.parametrize("name", [*NAMES, "mean"])
@pytest.mark.parametrize("size", [math.nan, math.inf, -math.inf, 1e15, 1e300])
def test_numbers_that_are_none_are_refused_before_ratings_are_looked_at(name: str, size: float) -> None:
    base = arrays(ITEMS, FEATURES, FACTORS, 5)
    bad = base[name].copy()
    bad.flat[-1] = size
    asked = asking({name: bad})
    with pytest.raises(RunError, match=f"sent {name} that are missing, not finite or not of shape"):
        read(asked)


@pytest.mark.parametrize("name", [*NAMES, "mean"])
def test_arrays_of_another_shape_are_refused(name: str) -> None:
    base = arrays(ITEMS, FEATURES, FACTORS, 5)
    for wrong in (np.zeros((*base[name].shape, 1)), np.zeros((11, 11)), np.array([1.0])):
        with pytest.raises(RunError, match="not of shape"):
            read(asking({name: wrong}))


def test_a_rating_tells_its_count_its_residual_and_that_times_tastes() -> None:
    # Spelled out with dense matrices, for one user.
    asked, alpha = question(told=np.array([[20.0, 5.0], [-3.0, 30.0]])), 0.3
    items, values = np.array([1, 4, 5]), np.array([2.0, -1.0, 0.5])
    rows, _ = message_rows([list(zip(items.tolist(), values.tolist(), strict=True))], asked, alpha=alpha)
    full = np.column_stack([np.ones(ITEMS), PUBLIC, asked.learned, asked.factors])
    weights = 1 / (RATING_VARIANCE + asked.variance)
    targets = values - asked.mean - asked.bias[items]
    expected, limit, shortened = [], 2.0 * math.sqrt(FACTORS), []
    for out in range(3):
        rest = np.arange(3) != out
        own, weight = full[items[rest]], weights[items[rest]]
        square = np.linalg.inv(asked.covariance) + own.T @ (weight[:, None] * own)
        taste = np.linalg.solve(square, own.T @ (weight * targets[rest]))
        residual = targets[out] - full[items[out]] @ taste
        told = asked.told.T @ taste[-FACTORS:]
        length = float(np.linalg.norm(told))
        shortened.append(length > limit)
        told *= min(1.0, limit / length) * 1.5 / math.sqrt(FACTORS)
        expected.append(asked.importance[items[out]] * np.array([alpha, residual, *(residual * told)]))
    assert set(shortened) == {True, False}, "some tastes are too long to be told, and some are not"
    unit = np.array(expected) / np.linalg.norm(expected)
    np.testing.assert_allclose(rows, unit, atol=1e-9)


def test_who_only_tells_what_was_chosen_tells_it_with_length_1() -> None:
    ratings, importance = grouped(USERS), np.array([1e-6, 1e6, 1.0, 2.0, 3.0, 4.0])
    rows = chosen(ratings, importance)
    assert rows.shape == (1 + 2 * ITEMS, 1)
    assert lengths(rows, ratings) == pytest.approx([1, 0, 1, 1], abs=1e-12)
    np.testing.assert_allclose(rows[1:7, 0] / rows[2, 0], importance / importance[1])


def up(count: int, _: Any) -> NDArray[np.uint32]:
    """Round up, always: it may happen, if hardly ever."""
    return np.zeros(count, np.uint32)


def whole_length(values: NDArray[np.int64]) -> float:
    return math.sqrt(sum(int(number) ** 2 for number in values.ravel()))


def sketch_of(rows: int = ITEMS) -> Sketch:
    return Sketch.drawn(ITEMS, rows, 3, "a test")


def total(
    users: Sequence[Rated], asked: Any, items: FixedPoint, spread: FixedPoint, *, rows: int = ITEMS
) -> Summed:
    known, told = read(asked)
    return summed(
        grouped(users),
        known,
        told,
        count_weight=0.3,
        sketch=sketch_of(rows),
        items=items,
        spread=spread,
        random=SecureRandom(),
    )


def spread_of(found: Summed) -> Bounded:
    assert found.spread is not None
    return found.spread


@pytest.mark.parametrize("rows", [ITEMS, 2])
@pytest.mark.parametrize("steps", [4.0, 1024.0])
@pytest.mark.parametrize(("name", "asked"), extreme_questions()[::11])
def test_after_rounding_no_user_has_more_than_the_stated_bounds(
    monkeypatch: pytest.MonkeyPatch, steps: float, rows: int, name: str, asked: Any
) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    items, spread = FixedPoint(step=1 / steps), FixedPoint(step=SPREAD_LIMIT / steps)
    for own in USERS:
        found = total([own], asked, items, spread, rows=rows)
        most = items.whole_limit(1.0, 4 * rows)
        assert whole_length(found.items.value) <= found.items.bound.size == most, name
        most = spread.whole_limit(SPREAD_LIMIT, WIDTH * (WIDTH + 1) // 2)
        assert whole_length(spread_of(found).value) <= spread_of(found).bound.size == most, name


def test_the_limit_of_spreads_is_reached_and_kept() -> None:
    # Tastes as far from what was thought as ratings can tell.
    asked = question(bias=np.full(ITEMS, -10.0), covariance=np.eye(WIDTH) * 0.5, variance=np.zeros(ITEMS))
    grid = FixedPoint(step=2.0**-10)
    found = spread_of(total([[(item, 2.0) for item in range(ITEMS)]], asked, grid, grid))
    assert 0.99 * found.bound.size < whole_length(found.value) <= found.bound.size
    assert found.bound.size * grid.step == pytest.approx(SPREAD_LIMIT, rel=0.01)


def test_users_are_worked_on_in_portions_that_show_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    grid = FixedPoint(step=2.0**-12)
    whole = total(USERS * 3, question(), grid, grid)
    monkeypatch.setattr(item_sums, "_USERS", 5)
    parts = total(USERS * 3, question(), grid, grid)
    np.testing.assert_array_equal(whole.items.value, parts.items.value)
    np.testing.assert_array_equal(spread_of(whole).value, spread_of(parts).value)
    assert whole.items.bound == parts.items.bound


def test_sums_of_users_are_the_sums_of_what_each_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    grid = FixedPoint(step=2.0**-12)
    alone = [total([own], question(), grid, grid) for own in USERS]
    together = total(USERS, question(), grid, grid)
    np.testing.assert_array_equal(together.items.value, sum(each.items.value for each in alone))
    np.testing.assert_array_equal(spread_of(together).value, sum(spread_of(each).value for each in alone))


def test_fewer_rows_hold_the_sums_of_the_items_that_share_them() -> None:
    grid, sketch = FixedPoint(step=2.0**-14), sketch_of(3)
    # Only users of one item: where items of one user share a row, what they add is shortened as a whole.
    users: list[Rated] = [[(item, 2.0)] for item in range(ITEMS)]
    full = total(users, question(), grid, grid).items.value
    mixed = total(users, question(), grid, grid, rows=3).items.value
    assert mixed.shape == (3, 4)
    np.testing.assert_allclose(mixed, sketch.projected(full.astype(np.float64)), atol=2 * ITEMS)


def test_items_of_one_row_do_not_lengthen_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    grid = FixedPoint(step=2.0**-10)
    # One row, and items without taste: what is told of them has one sign, and adds up.
    asked = question(learned=np.zeros((ITEMS, 2)), told=np.zeros((FACTORS, FACTORS)))
    sketch = Sketch(np.zeros(ITEMS, np.int32), np.ones(ITEMS), np.ones(1), 1)
    known, told = Known.of(asked, 0 * PUBLIC, FACTORS), told_in(asked, FACTORS)
    ratings = grouped([[(item, 2.0) for item in range(ITEMS)]])
    rows = messages(ratings, known, known.fit(ratings, told), 5.0, told)
    assert np.linalg.norm(rows.sum(axis=0)) > 1.5, "there is something to shorten"
    found = summed(
        ratings, known, told, count_weight=5.0, sketch=sketch, items=grid, spread=None, random=SecureRandom()
    )
    assert 0.99 * found.items.bound.size < whole_length(found.items.value) <= found.items.bound.size


def test_tastes_weigh_as_much_beside_residuals_however_many_factors_there_are() -> None:
    for factors in (1, 2, 8):
        told = Told(np.eye(factors))
        assert told.weight * told.longest == pytest.approx(3.0)
    nothing = Told(np.zeros((0, 0)))
    assert nothing.longest == 0


def test_many_roundings_away_from_zero_are_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    items, grid = 1000, FixedPoint(step=1 / 8)
    asked = question(2, items=items, features=0)
    known, told = Known.of(asked, np.zeros((items, 0)), 0), told_in(asked, 0)
    # Rated as expected: what is told is counts alone, of which each is less than a step.
    values = known.expected
    ratings = Grouped(np.array([0, items]), np.arange(items, dtype=np.int32), values.astype(np.float32))
    sketch = Sketch.drawn(items, items, 0, "a test")
    found = summed(
        ratings, known, told, count_weight=1.0, sketch=sketch, items=grid, spread=None, random=SecureRandom()
    )
    assert math.sqrt(items) > found.items.bound.size, "every count becomes a whole step"
    assert whole_length(found.items.value) <= found.items.bound.size


def test_how_a_machine_points_its_eigenvectors_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    # Devices add up spreads in coordinates that each works out by itself: they must be the same for all.
    monkeypatch.setattr(fixed_point, "_words", up)
    grid, usual, found = FixedPoint(step=2.0**-12), np.linalg.eigh, []
    for sign in (1.0, -1.0):

        def turned(matrix: Reals, sign: float = sign) -> Any:
            sizes, vectors = usual(matrix)
            return sizes, vectors * sign ** np.arange(len(sizes))

        monkeypatch.setattr(np.linalg, "eigh", turned)
        found.append(total(USERS, question(), grid, grid))
    assert np.abs(found[0].items.value - found[1].items.value).max() <= len(USERS)
    assert np.abs(spread_of(found[0]).value - spread_of(found[1]).value).max() <= len(USERS)
