from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.privacy import bounding
from cofactor.privacy.answers import RandomizedResponse, UnaryEncoding
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.coverage import assert_noise_covers, check_noise
from cofactor.privacy.mechanisms import (
    AnyMechanism,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonBinomial,
    Skellam,
)
from cofactor.privacy.neighbours import Chance, Datasets, Units
from cofactor.randomness import SecureRandom

Values = NDArray[Any]
ITEMS = 4

# A unit is a user: the set of items rated, each with its rating.
User = dict[int, float]


def draw_user(chance: Chance) -> User:
    items = chance.choice(ITEMS, int(chance.integers(1, 3)), replace=False)
    return {int(item): float(chance.uniform(1, 5)) for item in items}


def redraw_user(user: User, chance: Chance) -> User:
    return {item: float(chance.uniform(1, 5)) for item in user}


USERS = Datasets(draw=draw_user, count=3, redraw=redraw_user)
ALL_ITEMS = Datasets(draw=lambda _: dict.fromkeys(range(ITEMS), 3.0), count=3)


def sums(units: Units) -> Values:
    found = np.zeros((ITEMS, 2))
    for user in units:
        for item, rating in (user or {}).items():
            found[item] += rating
    return found


class Noisy:
    """Sums with noise everywhere, or only where somebody rated."""

    def __init__(self, touched_only: bool = False) -> None:
        self.touched_only = touched_only
        self.generator = np.random.default_rng(5)

    def __call__(self, units: Units) -> Values:
        noise = self.generator.normal(size=(ITEMS, 2))
        return sums(units) + noise * ((sums(units) != 0) if self.touched_only else 1)


def test_noise_on_every_row_passes() -> None:
    coverage = assert_noise_covers(Noisy(), "empty", USERS)
    assert str(coverage) == "NOISE COVERS EVERYTHING: all 8 numbers move, in 64 runs."


def test_noise_on_touched_rows_only_is_noticed() -> None:
    coverage = check_noise(Noisy(touched_only=True), "empty", USERS)
    assert not coverage.holds
    with pytest.raises(AssertionError, match=r"NOISE IS MISSING: on .* without noise in 64 runs"):
        assert_noise_covers(Noisy(touched_only=True), "empty", USERS)


def test_noise_that_needs_somebody_is_noticed_even_if_the_dataset_touches_every_row() -> None:
    coverage = check_noise(Noisy(touched_only=True), "empty", ALL_ITEMS)
    assert coverage.where == "a dataset in which all units are empty"
    assert len(coverage.still) == 8
    assert coverage.still[0] == (0, 0)


def test_noise_on_touched_rows_only_is_noticed_for_replaced_units() -> None:
    assert not check_noise(Noisy(touched_only=True), "replace", USERS).holds
    assert check_noise(Noisy(), "replace", USERS).holds


def test_rows_that_nobody_may_touch_need_no_noise_where_who_rated_what_is_public() -> None:
    assert check_noise(Noisy(touched_only=True), "value", USERS).holds
    assert check_noise(Noisy(), "value", USERS).holds


ALL_VALUES = Datasets(
    draw=lambda chance: {item: float(chance.uniform(1, 5)) for item in range(ITEMS)},
    count=2,
    redraw=redraw_user,
)


def test_values_without_noise_are_noticed_where_who_rated_what_is_public() -> None:
    noisy, forgotten = Noisy(), np.arange(ITEMS)[:, None] == 3
    release = lambda units: np.where(forgotten, sums(units), noisy(units))  # noqa: E731
    coverage = check_noise(release, "value", ALL_VALUES)
    assert coverage.where == "a neighbour of it"
    assert coverage.still == ((3, 0), (3, 1))


@pytest.mark.parametrize(("before", "after"), [(1.0, 5.0), (5.0, 1.0)])
def test_noise_that_depends_on_values_is_noticed_where_who_rated_what_is_public(
    before: float, after: float
) -> None:
    generator = np.random.default_rng(5)
    data = Datasets(draw=lambda _: {0: before}, count=1, redraw=lambda _user, _chance: {0: after})
    coverage = check_noise(lambda units: generator.normal(size=(ITEMS, 2)) * (sums(units) > 3), "value", data)
    assert coverage.still == ((0, 0), (0, 1))


def test_a_single_number_without_noise_among_many_is_found() -> None:
    noisy = Noisy()

    def forgetful(units: Units) -> Values:
        found = noisy(units)
        found[2, 1] = sums(units)[2, 1]
        return found

    coverage = check_noise(forgetful, "empty", USERS)
    assert coverage.still == ((2, 1),)
    assert "1 of 8 numbers" in str(coverage)
    assert "first is at (2, 1)" in str(coverage)


def test_a_number_that_is_never_a_number_is_not_taken_for_noise() -> None:
    noisy = Noisy()

    def broken(units: Units) -> Values:
        found = noisy(units)
        found[0, 0] = np.nan
        return found

    assert check_noise(broken, "empty", USERS).still == ((0, 0),)


def test_releasing_the_touched_rows_alone_is_noticed() -> None:
    noisy = Noisy()

    def touched_rows(units: Units) -> Values:
        return noisy(units)[sums(units).any(axis=1)]

    with pytest.raises(
        AssertionError, match="SHAPE DEPENDS ON THE DATA: it is another one on a dataset in wh"
    ):
        assert_noise_covers(touched_rows, "empty", ALL_ITEMS)


def test_a_shape_that_changes_from_run_to_run_is_noticed() -> None:
    generator = np.random.default_rng(1)
    coverage = check_noise(lambda _: generator.normal(size=generator.integers(1, 9)), "empty", USERS)
    assert not coverage.same_shape


LIMIT = 5.0
ROWS = Datasets(draw=lambda chance: chance.integers(-9, 9, 3), count=3)


def with_zeros(units: Units) -> Values:
    return np.array([np.zeros(3, np.int64) if unit is None else unit for unit in units])


def reals(units: Units, norm: Any) -> Bounded:
    return bounding.sum_of_records(with_zeros(units), limit=LIMIT, unit="user", norm=norm)


def wholes(units: Units, norm: Any) -> Bounded:
    return bounding.whole_sum(with_zeros(units), limit=LIMIT, unit="user", norm=norm)


ADDITIVE: dict[str, tuple[AnyMechanism, Callable[[Units, Any], Bounded]]] = {
    "Gaussian": (Gaussian(), reals),
    "Laplace": (Laplace(), reals),
    "DiscreteGaussian": (DiscreteGaussian(), wholes),
    "DiscreteLaplace": (DiscreteLaplace(), wholes),
    "Skellam": (Skellam(), wholes),
}


def released(mechanism: AnyMechanism, bounded: Bounded) -> Values:
    return mechanism.release(bounded, random=SecureRandom(), what="a test", by="a party", to="everyone")[0]


@pytest.mark.parametrize("name", ADDITIVE)
def test_the_noise_of_a_mechanism_covers_every_number(name: str) -> None:
    # noise as large as the bound takes any one value with probability below 0.2: false alarms below 1e-40
    mechanism, bounded = ADDITIVE[name]
    assert_noise_covers(lambda units: released(mechanism, bounded(units, mechanism.norm)), "empty", ROWS)


ANSWERS = Datasets(draw=lambda chance: int(chance.integers(0, 3)), count=2)


@pytest.mark.parametrize(
    "mechanism", [RandomizedResponse(choices=3, epsilon=1.0), UnaryEncoding(choices=3, epsilon=1.0)]
)
def test_the_answers_of_every_unit_are_noisy(mechanism: AnyMechanism) -> None:
    # any one answer has probability below 0.75 each time: false alarms below 1e-16
    assert_noise_covers(
        lambda units: released(mechanism, bounding.categories(np.array(units), choices=3)),
        "replace",
        ANSWERS,
        runs=150,
    )


def test_the_coins_of_a_participant_are_noisy() -> None:
    # 16 tosses of a coin bent to 3/4 show any one count with probability below 0.23: false alarms below 1e-38
    coins = PoissonBinomial(trials=16, theta=0.25, participants=10)
    assert_noise_covers(
        lambda units: released(coins, bounding.coordinates(units[0], limit=LIMIT)), "replace", ROWS
    )
