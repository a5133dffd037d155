"""Whole numbers for real ones. Statistical checks fail by chance less than once in ten million runs."""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import linalg, stats

from cofactor.errors import ConfigError, DataError
from cofactor.privacy import fixed_point, noise
from cofactor.privacy.events import Bound
from cofactor.privacy.fixed_point import FixedPoint, add_rounded, largest_sum, rounded_by_chance
from cofactor.privacy.laws import PolyaLaw, SkellamLaw
from cofactor.privacy.mechanisms import Gaussian, Skellam
from cofactor.privacy.neighbours import Datasets, Neighbours, Units
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.randomness import InsecureRandom, SecureRandom
from tests.privacy.making import cost, event

SECURE = SecureRandom()
SIGMAS = 6.5
"""Standard errors that pass: with hundreds of numbers at once, beyond with probability below 1e-7."""
LIMIT = 2.5

Values = NDArray[np.float64]


def at_limit(units: int, dimension: int, limit: float = LIMIT) -> Values:
    """Rows of a length just above the limit, in all directions."""
    rows = np.random.default_rng(3).normal(size=(units, dimension))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True) * limit * 1.0001)


def length_squared(row: NDArray[np.int64]) -> int:
    return sum(int(number) ** 2 for number in row)


# Rounding.


def test_rounding_goes_to_a_neighbour_and_is_right_on_average() -> None:
    values = np.array([-2.75, -0.001, 0.0, 0.25, 0.5, 3.0, 1000.9])
    drawn = rounded_by_chance(np.tile(values, (200_000, 1)), SECURE)
    assert np.array_equal(drawn.min(axis=0), np.floor(values))
    assert np.array_equal(drawn.max(axis=0), np.ceil(values))
    part = values - np.floor(values)
    error = np.sqrt(part * (1 - part) / len(drawn))
    assert np.all(np.abs(drawn.mean(axis=0) - values) <= SIGMAS * error)


def test_rounding_is_independent_from_number_to_number() -> None:
    drawn = rounded_by_chance(np.full((2, 200_000), 0.5), SECURE)
    for one, two in ((drawn[0], drawn[1]), (drawn[0, 1:], drawn[0, :-1])):
        assert abs(np.corrcoef(one, two)[0, 1]) < SIGMAS / math.sqrt(one.size)


@pytest.mark.parametrize("rotation", [None, 7])
def test_decoded_sums_are_right_on_average(rotation: int | None) -> None:
    encoding, dimension, units = FixedPoint(step=LIMIT / 40, rotation=rotation), 12, 400
    rows, far_beyond = at_limit(units, dimension), np.where(np.arange(units) % 2, 1.0, 50.0)[:, None]
    totals = [encoding.rows(rows * far_beyond, limit=LIMIT, random=SECURE).sum(axis=0) for _ in range(400)]
    decoded = encoding.decoded(np.array(totals), dimension)
    assert decoded.shape == (400, dimension)
    # Rounding errs by at most half a step in deviation; rows are shortened to 1e-6 below the limit.
    error = SIGMAS * encoding.step / 2 * math.sqrt(units / len(totals))
    assert np.abs(decoded.mean(axis=0) - rows.sum(axis=0) / 1.0001).max() < error + 1e-6 * units * LIMIT


def test_clipping_after_rounding_hardly_ever_happens_so_that_its_bias_is_negligible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoding, dimension, units = FixedPoint(step=LIMIT / 60), 30, 100_000
    rows = at_limit(units, dimension)
    clipped = encoding.rows(rows, limit=LIMIT, random=InsecureRandom(1))
    monkeypatch.setattr(fixed_point, "clipped_whole", lambda rows, *_: rows)
    unclipped = encoding.rows(rows, limit=LIMIT, random=InsecureRandom(1))
    changed = np.any(clipped != unclipped, axis=1)
    # Each at most 2^-20 of the time, so 0.1 are expected: 10 or more have a chance below 1e-16.
    assert changed.sum() < 10
    lengths = np.linalg.norm(unclipped, axis=1)
    assert lengths.max() > encoding.whole_limit(LIMIT, dimension) * 0.96, "the limit is not too wide either"
    bias = np.linalg.norm((clipped - unclipped).mean(axis=0)) * encoding.step
    assert bias < 1e-4 * LIMIT


# The bound.


@pytest.mark.parametrize("rotation", [None, 3])
@pytest.mark.parametrize("steps", [1.5, 40.0, 3000.0])
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=9))
def test_whole_numbers_keep_their_bound_whatever_is_encoded(
    rotation: int | None, steps: float, values: list[float]
) -> None:
    encoding = FixedPoint(step=LIMIT / steps, rotation=rotation)
    found = encoding.rows([values, values[::-1]], limit=LIMIT, random=SECURE)
    assert found.dtype == np.int64
    assert found.shape == (2, encoding.width(len(values)))
    for row in found:
        assert length_squared(row) <= encoding.whole_limit(LIMIT, len(values)) ** 2


def worst_rounding(values: Values, random: Any) -> NDArray[np.int64]:
    """Away from 0, always: it may happen, if hardly ever."""
    return np.asarray(np.sign(values) * np.ceil(np.abs(values))).astype(np.int64)


@pytest.mark.parametrize("dimension", [1, 100, 1000])
def test_the_bound_holds_even_if_every_number_is_rounded_away_from_zero(
    monkeypatch: pytest.MonkeyPatch, dimension: int
) -> None:
    monkeypatch.setattr(fixed_point, "rounded_by_chance", worst_rounding)
    encoding = FixedPoint(step=LIMIT / 50)
    most = encoding.whole_limit(LIMIT, dimension)
    rows = at_limit(50, dimension)
    found = encoding.rows(rows, limit=LIMIT, random=SECURE)
    assert max(map(length_squared, found)) <= most**2
    if dimension > 1:
        without = worst_rounding(rows / encoding.step, None)
        assert max(map(length_squared, without)) > most**2, "nothing was there to clip"


@pytest.mark.parametrize("rotation", [None, 3])
@pytest.mark.parametrize(("steps", "dimension"), [(1024.0, 4), (300.0, 16)])
def test_one_unit_changes_the_sum_by_no_more_than_the_bound_and_can_change_it_by_that(
    rotation: int | None, steps: float, dimension: int
) -> None:
    encoding = FixedPoint(step=LIMIT / steps, rotation=rotation)
    size = encoding.whole_limit(LIMIT, dimension)
    bound, nothing = Bound(size=size, norm="l2", unit="user"), np.zeros(dimension)

    def release(units: Units) -> Any:
        return encoding.total(np.stack(units), limit=LIMIT, random=InsecureRandom(4), unit="user")

    def drawn(chance: np.random.Generator) -> Values:
        return np.asarray(chance.normal(size=dimension) * chance.choice([0.0, 0.1, 1.0, 1e6]))

    datasets = Datasets(
        draw=drawn,
        count=5,
        empty=nothing,
        mutate=lambda unit, chance: unit + chance.normal(size=dimension) * 0.3,
    )
    longest = np.full(dimension, 100.0)
    worst = Neighbours(units=(nothing, longest, longest), which=1, other=nothing)
    report = assert_bounded(release, bound, datasets, worst_case=worst)
    assert report.largest <= size


def test_a_replaced_unit_changes_the_sum_by_up_to_twice_the_limit() -> None:
    encoding = FixedPoint(step=0.01)
    total = encoding.total(np.ones((3, 4)), limit=1.0, random=SECURE, unit="user", adjacency="replace")
    assert total.bound.size == 2 * encoding.whole_limit(1.0, 4)


def test_rows_of_which_few_entries_are_not_zero_need_less_room() -> None:
    encoding = FixedPoint(step=LIMIT / 2048)
    rows = np.zeros((50, 20_000))
    rows[:, :20] = at_limit(50, 20)
    narrow = encoding.whole_limit(LIMIT, 20)
    assert narrow < encoding.whole_limit(LIMIT, 20_000)
    found = encoding.rows(rows, limit=LIMIT, random=SECURE, dimension=20)
    assert not found[:, 20:].any()
    assert max(map(length_squared, found)) <= narrow**2
    # Who lies about them is shortened all the same.
    full = encoding.rows(at_limit(50, 20_000), limit=LIMIT, random=SECURE, dimension=20)
    assert max(map(length_squared, full)) <= narrow**2


@given(st.floats(1e-3, 1e3), st.integers(1, 10**7), st.floats(0.05, 1000))
def test_a_fitting_step_has_enough_steps_and_noise_that_can_be_drawn(
    limit: float, dimension: int, noise_multiplier: float
) -> None:
    encoding = FixedPoint.fitting(limit=limit, dimension=dimension, noise_multiplier=noise_multiplier)
    assert math.frexp(encoding.step)[0] == 0.5
    steps, most = limit / encoding.step, encoding.whole_limit(limit, dimension)
    assert noise_multiplier * steps <= 2**16
    assert steps <= 2**17
    if noise_multiplier <= 10:
        assert steps >= 2**10
    if noise_multiplier <= 1 and dimension <= 10**7:
        assert most <= steps * 1.01


def test_encoded_sums_cost_hardly_more_than_real_ones() -> None:
    multiplier = 2.0
    encoding = FixedPoint.fitting(limit=LIMIT, dimension=50_000, noise_multiplier=multiplier)
    most = encoding.whole_limit(LIMIT, 50_000)
    # The same noise, in steps, under a bound that is a little larger.
    skellam = Skellam(noise_multiplier=multiplier * LIMIT / encoding.step / most)
    found = cost(event(skellam, size=most, dimension=50_000, count=10)).renyi
    assert found <= cost(event(Gaussian(noise_multiplier=multiplier), count=10)).renyi * 1.02


# The rotation.


@pytest.mark.parametrize("dimension", [1, 2, 5, 64])
def test_a_rotation_is_a_signed_hadamard_matrix_and_undoes_itself(dimension: int) -> None:
    encoding, width = FixedPoint(step=1.0, rotation=9), 1 << (dimension - 1).bit_length()
    assert encoding.width(dimension) == width
    rows = np.random.default_rng(2).normal(size=(3, dimension))
    signs = fixed_point._signs(9, dimension)
    padded = np.zeros((3, width))
    padded[:, :dimension] = rows * signs
    rotated = encoding._rotated(rows)
    np.testing.assert_allclose(rotated, padded @ linalg.hadamard(width) / math.sqrt(width), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(rotated, axis=1), np.linalg.norm(rows, axis=1))
    np.testing.assert_allclose(fixed_point._transformed(rotated)[:, :dimension] * signs, rows, atol=1e-12)


def test_a_rotation_spreads_what_one_entry_holds() -> None:
    single = np.zeros((1, 1024))
    single[0, 17] = LIMIT
    plain = FixedPoint(step=1e-4).rows(single, limit=LIMIT, random=SECURE)
    spread = FixedPoint(step=1e-4, rotation=1).rows(single, limit=LIMIT, random=SECURE)
    assert np.abs(plain).max() == pytest.approx(LIMIT / 1e-4, abs=1)
    assert np.abs(spread).max() == pytest.approx(LIMIT / 1e-4 / 32, abs=1)


def test_a_rotation_depends_on_its_seed_alone() -> None:
    signs = fixed_point._signs(5, 10_000)
    assert np.array_equal(signs, fixed_point._signs(5, 10_000))
    assert set(signs.tolist()) == {-1.0, 1.0}
    assert abs(signs.mean()) < SIGMAS / 100
    assert abs(np.mean(signs * fixed_point._signs(6, 10_000))) < SIGMAS / 100
    # On any machine and in any version: all parties must turn alike.
    assert signs[:8].tolist() == [1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, 1.0]


# What a sum can reach.


@pytest.mark.parametrize("variance", [1e-3, 0.5, 20.0, 1e4, 1e8])
@pytest.mark.parametrize("failure", [1e-3, 2.0**-40])
def test_noise_exceeds_the_largest_sum_with_no_more_than_the_stated_chance(
    variance: float, failure: float
) -> None:
    coordinates = 50
    reach = largest_sum(3, 7, SkellamLaw(variance=variance), coordinates, failure=failure) - 21
    if variance <= 1e4:
        beyond = 2 * coordinates * stats.skellam(variance / 2, variance / 2).sf(reach)
    else:
        # As good as normal: Skellam tails are a little heavier, by e^(x^4 / 24 variance) or 1e-4 here.
        beyond = 2 * coordinates * stats.norm.sf(reach / math.sqrt(variance))
    assert beyond <= failure
    # And not much beyond: Chernoff's bound is the normal one's, but for a factor before it.
    deviations = stats.norm.isf(failure / 2 / coordinates)
    if variance >= 20:
        assert reach < 1.45 * deviations * math.sqrt(variance)


def test_sums_with_noise_stay_below_the_largest_sum() -> None:
    parties, most, variance = 5, 30, 100.0
    largest = largest_sum(parties, most, SkellamLaw(variance=variance), 20, failure=1e-2)
    sums = parties * most + noise.skellam((20_000, 20), variance, SECURE)
    often = np.mean(np.abs(sums).max(axis=1) > largest)
    assert often <= 1e-2
    # One side of two, and Chernoff's bound is not tight; but a bound that is never met would be too large.
    assert np.any(sums > largest - 2 * math.sqrt(variance))


def test_sums_with_laplace_noise_stay_below_the_largest_sum() -> None:
    law = PolyaLaw(scale=20.0, shape=Fraction(8, 3))
    largest = largest_sum(5, 30, law, 20, failure=1e-2)
    sums = 5 * 30 + law.drawn((20_000, 20), SECURE)
    assert np.mean(np.abs(sums).max(axis=1) > largest) <= 1e-2
    assert np.any(sums > largest - 3 * 20)


def test_parties_and_their_largest_numbers_count_in_full() -> None:
    law = SkellamLaw(variance=9.0)
    assert largest_sum(4, 10, law, 2) - largest_sum(1, 10, law, 2) == 30


# Tables of users.


Rated = tuple[NDArray[np.int64], Values]
"""The places and the rows of one user."""


def placed(users: Sequence[Rated]) -> tuple[Values, list[int], NDArray[np.int64]]:
    sizes = [len(places) for places, _ in users]
    rows = np.concatenate([rows for _, rows in users])
    return rows, [0, *itertools.accumulate(sizes)], np.concatenate([places for places, _ in users])


def rated(chance: np.random.Generator, places: int, width: int) -> Rated:
    """One user: with no rows, a few, or one in every place; some places twice; short or far too long."""
    count = int(chance.choice([0, 1, 3, places]))
    own = chance.permutation(places)[:count]
    if chance.random() < 0.3 and count:
        own = np.concatenate([own, own[:1]])
    return own.astype(np.int64), chance.normal(size=(len(own), width)) * chance.choice([0.0, 0.2, 1.0, 1e9])


def added(users: Sequence[Rated], words: Any, limits: Any, step: float, most: Any, shape: Any) -> Any:
    """Do what `add_rounded` does, in plain numpy and Python's own whole numbers."""
    total, at = np.zeros(shape, object), 0
    for (places, rows), limit, room in zip(users, limits, most, strict=True):
        own = np.zeros(shape)
        np.add.at(own, places, rows)
        first = list(dict.fromkeys(places.tolist()))
        length = np.sqrt(np.square(own).sum())
        exact = own[first] * (min(1.0, limit / max(length, 1e-150)) / step)
        below = np.floor(exact)
        whole = below + (words[at : at + len(first)] < (exact - below) * 2.0**32)
        squares = sum(int(x) ** 2 for x in whole.flat)
        if squares > room:
            whole = np.trunc(whole * (math.sqrt(room / squares) * (1 - 1e-6)))
        for place, numbers in zip(first, whole, strict=True):
            total[place] += numbers.astype(int)
        at += len(places)
    return total.astype(np.int64)


@pytest.mark.parametrize(("steps", "places", "width"), [(1024.0, 5, 2), (6.0, 40, 3), (1.5, 3, 1)])
def test_a_table_is_what_plain_numpy_makes_of_it(steps: float, places: int, width: int) -> None:
    chance = np.random.default_rng(8)
    for _ in range(20):
        users = [rated(chance, places, width) for _ in range(6)]
        rows, ptr, where = placed(users)
        words = chance.integers(0, 2**32, rows.shape, dtype=np.uint32)
        weights = chance.choice([0.0, 0.1, 0.7, 1.0], size=len(users))
        total, most = np.zeros((places, width), np.int64), (weights * 1.2 * steps) ** 2
        add_rounded(rows, np.array(ptr), where, words, weights * LIMIT, LIMIT / steps, most, total)
        expected = added(users, words, weights * LIMIT, LIMIT / steps, most, (places, width))
        np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize("word", [0, 2**32 - 1])
@pytest.mark.parametrize(("steps", "places", "width"), [(8.0, 200, 3), (1024.0, 12, 4)])
def test_no_user_adds_more_to_a_table_than_its_bound_however_numbers_are_rounded(
    monkeypatch: pytest.MonkeyPatch, steps: float, places: int, width: int, word: int
) -> None:
    monkeypatch.setattr(fixed_point, "_words", lambda count, _: np.full(count, word, np.uint32))
    grid = FixedPoint(step=LIMIT / steps)
    size = grid.whole_limit(LIMIT, places * width)
    bound, nothing = Bound(size=size, norm="l2", unit="user"), rated(np.random.default_rng(0), 0, width)

    def release(units: Units) -> Any:
        rows, ptr, where = placed(units)
        return grid.table(rows, ptr, where, place_count=places, limit=LIMIT, random=SECURE)

    # All numbers of one sign, which one of the words rounds away from 0: the second shortening is needed.
    sign = 1.0 if word == 0 else -1.0
    all_places: Rated = (np.arange(places), np.full((places, width), sign * 50.0))
    datasets = Datasets(draw=lambda chance: rated(chance, places, width), count=4, empty=nothing)
    worst = Neighbours(units=(all_places, nothing, all_places), which=0, other=nothing)
    tight = steps > 100
    report = assert_bounded(
        release, bound, datasets, worst_case=worst if tight else None, pairs=60, climbs=60
    )
    assert report.largest <= size
    alone = release((all_places,)).value
    assert length_squared(alone.ravel()) <= size**2
    if not tight:
        longest = math.sqrt(places * width) * math.ceil(steps / math.sqrt(places * width))
        assert longest > size, "nothing was there to shorten"


@given(
    st.lists(st.lists(st.floats(-1e139, 1e139), min_size=2, max_size=2), min_size=1, max_size=12),
    st.sampled_from([2.0, 40.0, 2.0**16]),
)
def test_whatever_a_user_adds_to_a_table_keeps_its_bound(rows: list[list[float]], steps: float) -> None:
    grid, places = FixedPoint(step=LIMIT / steps), [at % 5 for at in range(len(rows))]
    found = grid.table(rows, [0, len(rows)], places, place_count=5, limit=LIMIT, random=SECURE)
    assert found.bound == Bound(size=grid.whole_limit(LIMIT, 10), norm="l2", unit="user")
    assert length_squared(found.value.ravel()) <= grid.whole_limit(LIMIT, 10) ** 2


def test_a_table_is_right_on_average() -> None:
    grid, chance = FixedPoint(step=LIMIT / 20), np.random.default_rng(2)
    users = [rated(chance, 6, 2) for _ in range(30)]
    rows, ptr, where = placed(users)
    drawn = [
        grid.table(rows, ptr, where, place_count=6, limit=LIMIT, random=SECURE).value for _ in range(2000)
    ]
    exact = np.zeros((6, 2))
    for places, own in users:
        part = np.zeros((6, 2))
        np.add.at(part, places, own)
        exact += part * min(1.0, LIMIT * (1 - 1e-6) / max(float(np.linalg.norm(part)), 1e-9))
    error = SIGMAS * grid.step / 2 * math.sqrt(len(users) / len(drawn))
    assert np.abs(np.mean(drawn, axis=0) * grid.step - exact).max() < error


def test_every_user_of_a_table_is_rounded_by_chance_of_its_own() -> None:
    # Two users with the same row: that both are rounded alike has the chance of a coin.
    grid, alike = FixedPoint(step=1.0), np.full((2, 1), 0.5)
    drawn = [
        grid.table(alike, [0, 1, 2], [0, 1], place_count=2, limit=9.0, random=SECURE).value[:, 0]
        for _ in range(2000)
    ]
    same = np.mean([first == second for first, second in drawn])
    assert abs(same - 0.5) < SIGMAS * 0.5 / math.sqrt(2000)


def test_places_that_nobody_adds_to_stay_zero_and_an_empty_table_is_possible() -> None:
    grid = FixedPoint(step=0.01)
    found = grid.table([[1.0]], [0, 1], [2], place_count=4, limit=1.0, random=SECURE).value[:, 0]
    assert found[[0, 1, 3]].tolist() == [0, 0, 0]
    nobody = grid.table(np.zeros((0, 2)), [0, 0], [], place_count=3, limit=1.0, random=SECURE)
    assert nobody.value.tolist() == [[0, 0]] * 3


def test_a_user_who_is_replaced_in_a_table_counts_twice() -> None:
    grid = FixedPoint(step=0.01)
    found = grid.table([[1.0]], [0, 1], [0], place_count=4, limit=1.0, random=SECURE, adjacency="replace")
    assert found.bound.size == 2 * grid.whole_limit(1.0, 4)


# Mistakes.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"places": [7]}, "places must lie between 0 and 4"),
        ({"places": [-1]}, "places must lie between"),
        ({"places": [0, 1]}, "one row of the table for each"),
        ({"ptr": [0, 2]}, "ptr must start at 0"),
        ({"rows": [[math.nan]]}, "not finite"),
        ({"limit": 0.0}, "limit must be greater than 0"),
        ({"grid": FixedPoint(step=1.0, rotation=3)}, "a table is not rotated"),
        ({"grid": FixedPoint(step=2.0**-53), "ptr": [0] * 1024 + [1]}, "does not fit 63 bits|2\\^53"),
    ],
)
def test_tables_that_make_no_sense_are_refused(change: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"rows": [[1.0]], "ptr": [0, 1], "places": [0], "limit": 1.0} | change
    grid = asked.pop("grid", FixedPoint(step=0.1))
    with pytest.raises((ConfigError, DataError), match=message):
        grid.table(
            asked.pop("rows"), asked.pop("ptr"), asked.pop("places"), place_count=5, random=SECURE, **asked
        )


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: FixedPoint(step=0.0), "step must be greater than 0"),
        (lambda: FixedPoint(step=math.nan), "step must be greater than 0"),
        (lambda: FixedPoint(step=1.0, rotation=-1), "rotation must be 0 or more"),
        (lambda: FixedPoint(step=1.0, rotation=1.5), "rotation must be a whole number or None"),  # type: ignore[arg-type]
        (lambda: FixedPoint(step=1e-20).whole_limit(1.0, 3), "Use a coarser grid"),
        (lambda: FixedPoint(step=1.0).rows(np.ones(3), limit=1.0, random=SECURE), "2 dimension"),
        (lambda: FixedPoint(step=1.0).rows(np.ones((2, 0)), limit=1.0, random=SECURE), "dimension must be"),
        (lambda: FixedPoint(step=1.0).rows(np.ones((2, 3)), limit=0.0, random=SECURE), "limit must be"),
        (
            lambda: FixedPoint(step=1.0, rotation=0).rows(
                np.ones((2, 3)), limit=1.0, random=SECURE, dimension=2
            ),
            "a rotation fills whole rows",
        ),
        (lambda: FixedPoint(step=1.0).decoded(np.ones(3, np.int64), 4), "4 real numbers became 4 whole ones"),
        (lambda: FixedPoint(step=1.0).decoded(np.ones(3), 3), "must be whole numbers"),
        (
            lambda: FixedPoint.fitting(limit=1.0, dimension=3, noise_multiplier=5000.0),
            "noise of 5,000 times the limit.*Use a larger budget",
        ),
        (lambda: largest_sum(0, 1, SkellamLaw(variance=1.0), 1), "parties must be at least 1"),
        (lambda: largest_sum(1, 1, SkellamLaw(variance=0.0), 1), "variance must be greater than 0"),
        (
            lambda: largest_sum(1, 1, SkellamLaw(variance=1.0), 1, failure=0.0),
            "failure must lie between 0 and 1",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ask()


def test_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(DataError, match="not finite"):
        FixedPoint(step=1.0).rows([[1.0, math.nan]], limit=1.0, random=SECURE)


@pytest.mark.parametrize("step", [0.1, 1 / 3, 2.0**-10])
def test_a_step_need_not_be_a_power_of_two(step: float) -> None:
    encoding = FixedPoint(step=step)
    whole = encoding.rows([[step * 7, -step * 4, 0.0]], limit=10.0, random=SECURE)
    assert np.abs(whole - [[7, -4, 0]]).max() <= 1
    assert encoding.decoded(whole, 3) == pytest.approx(whole * step)
    assert Fraction(encoding.whole_limit(10.0, 3)) >= Fraction(10) / Fraction(step)
