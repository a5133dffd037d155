"""Each unit against its own part of the bound. Statistical checks fail by chance less than once in 1e7."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.errors import ConfigError, DataError
from cofactor.privacy import stretching
from cofactor.privacy.budget import Adjacency
from cofactor.privacy.events import Bound
from cofactor.privacy.fixed_point import FixedPoint
from cofactor.privacy.neighbours import Chance, Datasets, Neighbours, Units
from cofactor.privacy.sensitivity import assert_weighed, check
from cofactor.privacy.stretching import (
    add_stretched,
    shortened_rows,
    stretched_table,
    weighed_grains,
    weighed_squares,
)
from cofactor.randomness import InsecureRandom, SecureRandom

SECURE = SecureRandom()
SIGMAS = 6.0
PLACES, GRAINS = 4, 1000

Values = NDArray[np.float64]
weights = st.floats(0, 1)


# Limits in whole numbers.


@given(st.lists(weights, max_size=8), st.integers(1, 2**40))
def test_limits_are_weights_times_grains_rounded_down_exactly(drawn: list[float], grains: int) -> None:
    found = weighed_grains(np.array(drawn), grains)
    assert found.dtype == np.int64
    assert found.tolist() == [math.floor(Fraction(weight) * grains) for weight in drawn]


def test_a_product_that_floating_point_rounds_up_is_rounded_down_all_the_same() -> None:
    weight = math.nextafter(0.1, 0) * 3  # such that seven thousand of it come out whole, and are not
    grains = next(g for g in range(1, 10**6) if math.floor(weight * g) > Fraction(weight) * g)
    assert weighed_grains([weight], grains).tolist() == [math.floor(weight * grains) - 1]


@given(st.lists(weights, max_size=8), st.integers(1, 2**26))
def test_sums_of_squares_are_those_of_weights_times_the_limit_rounded_down(
    drawn: list[float], most: int
) -> None:
    found = weighed_squares(np.array(drawn), most)
    assert found.tolist() == [math.floor((Fraction(weight) * most) ** 2) for weight in drawn]


@given(st.lists(st.lists(st.integers(-(2**20), 2**20), min_size=3, max_size=3), min_size=1, max_size=5))
def test_rows_are_shortened_to_their_own_squares(rows: list[list[int]]) -> None:
    squares = np.array([10.0 ** (3 * k) for k in range(len(rows))])
    kept = shortened_rows(np.array(rows), squares)
    for before, after, most in zip(rows, kept.tolist(), squares.tolist(), strict=True):
        assert sum(x * x for x in after) <= most
        if sum(x * x for x in before) <= most:
            assert after == before


# Ratings, in l1.


def stretched(values: Any, weighed: Any, places: Any, *, grains: int = GRAINS, **more: Any) -> Any:
    usual: dict[str, Any] = {"place_count": PLACES, "random": SECURE, "adjacency": "value"}
    return stretched_table(values, weighed, places, grains=grains, **usual | more)


@pytest.mark.parametrize(("adjacency", "size"), [("empty", 7), ("value", 14)])
def test_the_bound_is_that_of_weight_one(adjacency: Adjacency, size: int) -> None:
    found = stretched([[0.5]], [0.3], [2], grains=7, adjacency=adjacency)
    assert found.bound == Bound(size=size, norm="l1", unit="rating", adjacency=adjacency, weighed=True)
    assert found.value.dtype == np.int64
    assert found.value.shape == (PLACES, 1)


def test_ends_of_the_scale_are_not_rounded() -> None:
    found = stretched([[1.0], [-1.0], [1.0], [0.0]], [1.0, 0.25, 0.001, 1.0], [0, 1, 2, 3], grains=10)
    assert found.value.ravel().tolist() == [10, -2, 0, 0]


def rows_of(kind: str, values: Values) -> Values:
    """Return rows of one column, or of two that add up to 1, or of three that are as long as they like."""
    if kind == "one":
        return values[:, None]
    if kind == "two":
        return np.stack([(1 + values) / 2, (1 - values) / 2], axis=1)
    return np.stack([values, 0.5 * values, -0.3 * values], axis=1)


KINDS = ["one", "two", "three"]


@given(st.sampled_from(KINDS), st.floats(-1, 1), weights, st.integers(1, 5000), st.integers(0, 2**32 - 1))
def test_no_rating_adds_more_than_its_own_grains_however_it_is_rounded(
    kind: str, value: float, weight: float, grains: int, word: int
) -> None:
    rows, limits = rows_of(kind, np.array([value])), weighed_grains([weight], grains)
    total = np.zeros((1, rows.shape[1]), np.int64)
    add_stretched(rows, limits, np.zeros(1, np.int64), np.array([word], np.uint32), total)
    length = int(np.abs(total).sum())
    assert length <= Fraction(weight) * grains
    assert np.all(total * rows >= 0)
    if kind == "two":
        assert length == limits[0]


def plainly(rows: Values, limits: Any, places: Any, words: Any, shape: Any) -> NDArray[np.int64]:
    """Do what `add_stretched` does, in plain numpy."""
    total = np.zeros(shape, np.int64)
    lengths = np.maximum(np.abs(rows).sum(axis=1), 1.0)
    reached = np.cumsum(np.abs(rows) * (limits / lengths)[:, None], axis=1)
    whole = np.minimum(np.floor(reached + ((words + 0.5) * 2.0**-32)[:, None]), limits[:, None])
    steps = np.diff(np.concatenate([np.zeros((len(rows), 1)), whole], axis=1), axis=1)
    np.add.at(total, places, (steps * np.where(rows >= 0, 1, -1)).astype(np.int64))
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_what_plain_numpy_makes_of_it(kind: str) -> None:
    chance = np.random.default_rng(4)
    rows = rows_of(kind, chance.uniform(-1.2, 1.2, 500))
    limits = weighed_grains(chance.choice([0.0, 0.013, 0.5, 1.0], 500), GRAINS)
    places, words = chance.integers(0, PLACES, 500), chance.integers(0, 2**32, 500, dtype=np.uint32)
    total = np.zeros((PLACES, rows.shape[1]), np.int64)
    add_stretched(rows, limits, places, words, total)
    np.testing.assert_array_equal(total, plainly(rows, limits, places, words, total.shape))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.3, -0.123])
def test_rounding_is_right_on_average_in_every_column(kind: str, value: float) -> None:
    many, grains, weight = 200_000, 7, 0.8
    rows = rows_of(kind, np.full(many, value)) / (1.0 if kind != "three" else 2.0)
    found = stretched(rows, np.full(many, weight), np.zeros(many, int), grains=grains, place_count=1)
    # Each rating's rounding varies by at most 1/4.
    error = SIGMAS * 0.5 / math.sqrt(many)
    np.testing.assert_allclose(found.value[0] / many, rows[0] * math.floor(weight * grains), atol=error)


def test_every_rating_is_rounded_by_chance_of_its_own() -> None:
    many = 10_000
    found = stretched(np.full((many, 1), 0.5), np.ones(many), range(many), grains=1, place_count=many)
    ones = int(found.value.sum())
    assert abs(ones - many / 2) < SIGMAS * math.sqrt(many) / 2
    assert set(np.unique(found.value)) == {0, 1}


def test_rows_too_long_are_shortened() -> None:
    found = stretched([[3.0, -1.0]], [0.5], [1], grains=8)
    assert found.value.tolist() == [[0, 0], [3, -1], [0, 0], [0, 0]]


# Each rating against its own bound.


@dataclass(frozen=True, eq=False)
class Rating:
    place: int
    value: float
    weight: float


def draw_rating(chance: Chance) -> Rating:
    value = chance.choice([-1.0, 1.0, 0.0, chance.uniform(-1, 1), chance.normal() * 50])
    weight = chance.choice([1.0, 0.5, 0.01, chance.random(), chance.random() ** 4])
    return Rating(int(chance.integers(PLACES)), float(value), float(weight))


def redraw_rating(rating: Rating, chance: Chance) -> Rating:
    return Rating(rating.place, draw_rating(chance).value, rating.weight)


NOBODY = Rating(0, 0.0, 0.0)
RATINGS = Datasets(draw=draw_rating, count=5, empty=NOBODY, redraw=redraw_rating)


def weight_of(rating: Rating) -> float:
    return rating.weight


def release_of(kind: str, adjacency: Adjacency, *, weighed: bool = True) -> Any:
    """Return what is released; whoever is empty has no row, and all others are rounded as before."""

    def release(units: Units) -> Any:
        rows = rows_of(kind, np.array([unit.value for unit in units]))
        rows[[unit is NOBODY for unit in units]] = 0
        own = [unit.weight if weighed else 1.0 for unit in units]
        places = [unit.place for unit in units]
        return stretched(rows, own, places, random=InsecureRandom(1), adjacency=adjacency)

    return release


def worst(kind: str, adjacency: Adjacency, weight: float) -> Neighbours:
    """From one end of the scale to the other, or to nothing."""
    crowd = [Rating(1, 0.2, 1.0)] * 3
    one = Rating(2, 1.0, weight)
    return Neighbours(
        units=(*crowd, one), which=3, other=NOBODY if adjacency == "empty" else Rating(2, -1.0, weight)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["empty", "value"])
def test_a_rating_changes_a_table_by_no_more_than_its_own_part_of_the_bound(
    kind: str, adjacency: Adjacency
) -> None:
    size = GRAINS * (1 if adjacency == "empty" else 2)
    bound = Bound(size=size, norm="l1", unit="rating", adjacency=adjacency, weighed=True)
    cases = [worst(kind, adjacency, weight) for weight in (1.0, 0.5, 0.1, 0.02)]
    release = release_of(kind, adjacency)
    report = assert_weighed(release, bound, RATINGS, weight_of=weight_of, worst_cases=cases)
    assert report.weighed
    assert report.worst_case is not None
    assert report.worst_case >= 0.99 * size


def test_a_table_that_forgets_the_weights_is_found_out() -> None:
    bound = Bound(size=2 * GRAINS, norm="l1", unit="rating", adjacency="value", weighed=True)
    release = release_of("one", "value", weighed=False)
    with pytest.raises(AssertionError, match="BOUND EXCEEDED: the largest difference, divided by the weight"):
        assert_weighed(release, bound, RATINGS, weight_of=weight_of)
    # At weight 1 there is nothing to see.
    assert check(release, bound, RATINGS).bounded


def test_limits_that_are_rounded_up_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    up = lambda weights, grains: np.ceil(np.asarray(weights) * grains).astype(np.int64)  # noqa: E731
    monkeypatch.setattr(stretching, "weighed_grains", up)
    bound = Bound(size=2 * GRAINS, norm="l1", unit="rating", adjacency="value", weighed=True)
    with pytest.raises(AssertionError, match="BOUND EXCEEDED"):
        assert_weighed(release_of("one", "value"), bound, RATINGS, weight_of=weight_of)


def test_columns_rounded_one_by_one_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_by_one(rows: Values, limits: Any, places: Any, words: Any, total: Any) -> None:
        scaled = rows * limits[:, None]
        np.add.at(total, places, np.ceil(scaled).astype(np.int64))

    monkeypatch.setattr(stretching, "add_stretched", one_by_one)
    bound = Bound(size=GRAINS, norm="l1", unit="rating", weighed=True)
    with pytest.raises(AssertionError, match="BOUND EXCEEDED"):
        assert_weighed(release_of("two", "empty"), bound, RATINGS, weight_of=weight_of)


# Users, in l2.


@dataclass(frozen=True, eq=False)
class User:
    rows: Values
    weight: float


def draw_user(chance: Chance) -> User:
    rows = chance.normal(size=(PLACES, 2)) * chance.choice([0.0, 0.1, 1.0, 1e6])
    return User(rows, float(chance.choice([1.0, 0.3, 0.05, chance.random()])))


ABSENT = User(np.zeros((PLACES, 2)), 0.0)
USERS = Datasets(draw=draw_user, count=4, empty=ABSENT, redraw=lambda u, c: User(draw_user(c).rows, u.weight))
STEPS = FixedPoint.fitting(limit=2.5, dimension=2 * PLACES, noise_multiplier=1.0, least_weight=0.05)
USER_CASES = [
    Neighbours(units=(User(np.eye(PLACES, 2) * 1e3, weight), ABSENT), which=0, other=ABSENT)
    for weight in (1.0, 0.3, 0.05)
]


def user_table(units: Units) -> Any:
    rows = np.concatenate([unit.rows for unit in units])
    return STEPS.table(
        rows,
        np.arange(len(units) + 1) * PLACES,
        np.tile(np.arange(PLACES), len(units)),
        place_count=PLACES,
        limit=2.5,
        random=InsecureRandom(2),
        weights=[unit.weight for unit in units],
    )


def user_total(units: Units) -> Any:
    rows = np.stack([unit.rows.ravel() for unit in units])
    own = [unit.weight for unit in units]
    return STEPS.total(rows, limit=2.5, random=InsecureRandom(2), unit="user", weights=own)


USER_BOUND = Bound(size=STEPS.whole_limit(2.5, 2 * PLACES), norm="l2", unit="user", weighed=True)


@pytest.mark.parametrize("release", [user_table, user_total])
def test_a_user_changes_a_table_or_a_sum_by_no_more_than_its_own_part_of_the_bound(release: Any) -> None:
    report = assert_weighed(
        release, USER_BOUND, USERS, weight_of=lambda user: user.weight, worst_cases=USER_CASES
    )
    assert report.worst_case is not None


@pytest.mark.parametrize("release", [user_table, user_total])
def test_users_whose_weights_are_forgotten_after_rounding_are_found_out(
    release: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = lambda weights, most: np.full(len(weights), float(most) ** 2)  # noqa: E731
    monkeypatch.setattr("cofactor.privacy.fixed_point.weighed_squares", everything)
    coarse = FixedPoint(step=0.25)
    monkeypatch.setitem(globals(), "STEPS", coarse)
    bound = Bound(size=coarse.whole_limit(2.5, 2 * PLACES), norm="l2", unit="user", weighed=True)
    with pytest.raises(AssertionError, match="BOUND EXCEEDED"):
        assert_weighed(release, bound, USERS, weight_of=lambda user: user.weight)


def test_weights_of_one_change_nothing_but_what_the_bound_says() -> None:
    chance = np.random.default_rng(1)
    rows, ptr, places = chance.normal(size=(12, 3)), [0, 5, 12], np.arange(12) % PLACES
    usual: dict[str, Any] = {"place_count": PLACES, "limit": 2.0}
    plain = STEPS.table(rows, ptr, places, random=InsecureRandom(1), **usual)
    weighed = STEPS.table(rows, ptr, places, random=InsecureRandom(1), weights=[1, 1], **usual)
    np.testing.assert_array_equal(plain.value, weighed.value)
    assert (plain.bound.weighed, weighed.bound.weighed) == (False, True)
    assert plain.bound.size == weighed.bound.size
    totals = [
        STEPS.total(rows, limit=2.0, random=InsecureRandom(1), unit="user", weights=each)
        for each in (None, np.ones(12))
    ]
    np.testing.assert_array_equal(totals[0].value, totals[1].value)
    assert [total.bound.weighed for total in totals] == [False, True]


@pytest.mark.parametrize("weight", [0.02, 0.2, 1.0])
def test_users_of_small_weight_are_right_on_average_where_steps_are_fine_enough(weight: float) -> None:
    many, dimension = 2000, 30
    fine = FixedPoint.fitting(limit=1.0, dimension=dimension, noise_multiplier=1.0, least_weight=0.02)
    row = np.linspace(-1, 1, dimension)
    row /= np.linalg.norm(row) / 5  # five times too long
    found = fine.total(
        np.tile(row, (many, 1)), limit=1.0, random=SECURE, unit="user", weights=np.full(many, weight)
    )
    mean = fine.decoded(found.value, dimension) / many
    # Shorter by the room that rounding needs, and not shortened again but for one part in 2^20. Rounding
    # varies by half a step at most.
    part = float(mean @ row) / 5 / weight
    assert 1 - 4 * fine.step / weight < part <= 1
    error = SIGMAS * 0.5 * fine.step / math.sqrt(many) + 2e-6 * weight
    np.testing.assert_allclose(mean, part * weight * row / 5, atol=error)


def test_steps_are_finer_for_small_weights() -> None:
    settings: dict[str, Any] = {"limit": 1.0, "dimension": 10, "noise_multiplier": 1.0}
    usual, fine = FixedPoint.fitting(**settings), FixedPoint.fitting(**settings, least_weight=1 / 16)
    assert fine.step == usual.step / 16
    # As fine as noise can be drawn, at most.
    assert FixedPoint.fitting(**settings, least_weight=1e-9).step == 2.0**-15
    for bad in (0.0, 1.5, -1.0, math.nan):
        with pytest.raises(ConfigError, match="least_weight must be"):
            FixedPoint.fitting(**settings, least_weight=bad)


# Mistakes.


@pytest.mark.parametrize("bad", [[0.5], [0.5, 1.5], [0.5, -0.1], [0.5, math.nan], 0.5, [[0.5, 0.5]]])
def test_weights_that_make_no_sense_are_refused_without_saying_them(bad: Any) -> None:
    message = "weights must be 2 numbers between 0 and 1, one for each unit."
    with pytest.raises(ConfigError) as refused:
        stretched([[0.1], [0.2]], bad, [0, 1])
    assert str(refused.value) == message
    encoding = FixedPoint(step=0.01)
    usual: dict[str, Any] = {"limit": 1.0, "random": SECURE}
    with pytest.raises(ConfigError, match="weights must be 2 numbers"):
        encoding.total(np.ones((2, 3)), unit="user", weights=bad, **usual)
    with pytest.raises(ConfigError, match="weights must be 2 numbers"):
        encoding.table(np.ones((2, 3)), [0, 1, 2], [0, 1], place_count=2, weights=bad, **usual)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"grains": 0}, ConfigError, "grains must be at least 1"),
        ({"grains": 2**41}, ConfigError, "Use coarser ones"),
        ({"adjacency": "any"}, ConfigError, "adjacency must be"),
        ({"place_count": 1}, ConfigError, "places must lie between 0 and 0"),
        ({"values": [[0.1], [math.nan]]}, DataError, "not finite"),
        ({"values": [0.1, 0.2]}, ConfigError, "2 dimension"),
        ({"places": [0]}, ConfigError, "one row of the table for each"),
    ],
)
def test_tables_that_make_no_sense_are_refused(change: dict[str, Any], error: Any, message: str) -> None:
    usual: dict[str, Any] = {"values": [[0.1], [0.2]], "weighed": [1.0, 0.5], "places": [0, 1]}
    with pytest.raises(error, match=message):
        stretched(**usual | change)


def test_a_bound_without_weights_is_not_measured_by_them() -> None:
    with pytest.raises(ConfigError, match="says nothing of weights"):
        assert_weighed(user_total, Bound(size=1.0, norm="l2", unit="user"), USERS, weight_of=lambda _: 1.0)


def test_a_unit_of_no_weight_may_change_nothing() -> None:
    bound = Bound(size=5.0, norm="l1", unit="user", weighed=True)
    units = Datasets(draw=lambda chance: chance.choice([-1.0, 0.0, 1.0]), count=2, empty=0.0)
    report = check(lambda found: np.array(found), bound, units, weight_of=lambda _: 0.0)
    assert report.largest == math.inf
    assert not report.bounded
    silent = check(lambda _: np.zeros(2), bound, units, weight_of=lambda _: 0.0)
    assert silent.largest == 0


def test_every_worst_case_must_come_close() -> None:
    bound = Bound(size=1.0, norm="l1", unit="user", weighed=True)
    units = Datasets(draw=lambda chance: float(chance.random()), count=2, empty=None)
    cases = [Neighbours(units=(0.5, weight), which=1, other=None) for weight in (1.0, 0.01)]

    def release(found: Units) -> Values:
        # Tight for large weights, and half of what is allowed for small ones.
        return np.array([0.0 if w is None else w if w > 0.1 else w / 2 for w in found])

    with pytest.raises(AssertionError, match=r"TOO LOOSE: the worst case reaches only 0\.5"):
        assert_weighed(release, bound, units, weight_of=lambda weight: weight, worst_cases=cases)
    assert_weighed(release, bound, units, weight_of=lambda weight: weight, worst_cases=cases[:1])


def test_a_rating_that_may_become_one_of_another_weight_has_no_such_bound() -> None:
    with pytest.raises(ConfigError, match="adjacency must be one of empty, value"):
        stretching.stretched_table(
            np.zeros((1, 1)),
            [0.5],
            [0],
            place_count=1,
            grains=8,
            random=InsecureRandom(0),
            adjacency="replace",
        )
