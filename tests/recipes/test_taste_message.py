import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import DataError
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.mechanisms import Gaussian
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.randomness import InsecureRandom
from cofactor.recipes.taste_items import KnownItems, Units
from cofactor.recipes.taste_message import LEVEL, MESSAGE_BOUND, Directions, in_grains, parts, user_messages

STARS = Scale(1, 5)
WIDTHS = [1, 3]


def some_items(items: int = 30, features: int = 4, seed: int = 0) -> KnownItems:
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.ones(items))
    return KnownItems(
        0.1,
        random.normal(0, 0.4, items),
        random.normal(size=items),
        weights,
        random.choice([0.0, 1.0], (items, features)) - 0.5,
    )


def directions_for(width: int, items: int = 4) -> NDArray[Any]:
    """Item 0 has a direction of length 1, item 1 one that is much too long."""
    rows = np.random.default_rng(2).uniform(-0.4, 0.4, (items, width))
    rows[0] = 0.0
    rows[0, -1] = 1.0
    rows[1] *= 100
    return rows


def ratings_of(units: tuple[Any, ...]) -> Ratings:
    """A unit is (user, value), or None; every rating is of an item of its own."""
    given = [(unit[0], item, unit[1]) for item, unit in enumerate(units) if unit is not None]
    users, items, values = (
        (np.array(column) for column in zip(*given, strict=True)) if given else ([], [], [])
    )
    return Ratings.from_rows(
        np.array(users, np.int32), np.array(items, np.int32), np.array(values, np.float32),
        user_ids=np.arange(3), item_ids=np.arange(len(units)), scale=STARS,
    )  # fmt: skip


def draw(chance: np.random.Generator) -> tuple[int, float]:
    return int(chance.integers(3)), float(chance.choice([1.0, 2.5, 3.6, 5.0]))


DATASETS = Datasets(draw=draw, count=4)


def messages(units: tuple[Any, ...], width: int, grain: float | None = None) -> Bounded:
    bias = np.array([0.2, -1.0, 0.0, 50.0])
    return user_messages(ratings_of(units), Units.of(STARS), 0.1, bias, directions_for(width), grain=grain)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("grain", [None, 2.0**-10])
def test_a_rating_changes_the_messages_by_no_more_than_the_accountant_is_told(
    width: int, which: int, grain: float | None
) -> None:
    # The worst cases: a direction that has length 1, and one that had to be shortened.
    units = ((0, 1.0), (0, 5.0), (1, 3.0), (2, 4.0))
    worst, bound = Neighbours(units=units, which=which, other=None), MESSAGE_BOUND
    if grain is not None:
        bound = in_grains(grain)
        assert bound.size == MESSAGE_BOUND.size / grain
    assert_bounded(
        lambda given: messages(given, width, grain), bound, DATASETS, worst_case=worst, pairs=100, climbs=100
    )


def test_messages_in_grains_are_whole_and_cut_rating_by_rating() -> None:
    units = ((0, 1.0), (0, 5.0), (0, 3.0), (2, 4.0))
    whole = messages(units, 3, 2.0**-6)
    assert whole.value.dtype == np.int64
    alone = [messages(tuple(unit if at == k else None for at, unit in enumerate(units)), 3) for k in range(4)]
    np.testing.assert_array_equal(
        whole.value, sum(np.trunc(each.value * 64).astype(np.int64) for each in alone)
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_noise_covers_users_without_ratings(width: int) -> None:
    random, noise = InsecureRandom(1), Gaussian(noise_multiplier=1.0)
    assert_noise_covers(lambda given: noise.noisy(messages(given, width), random), "empty", DATASETS, runs=8)


def test_messages_are_sums_over_each_users_ratings() -> None:
    random = np.random.default_rng(4)
    users, items = np.nonzero(random.random((12, 20)) < 0.4)
    values = random.uniform(1, 5, len(users)).astype(np.float32)
    ratings = Ratings.from_rows(
        users, items, values, user_ids=np.arange(12), item_ids=np.arange(20), scale=STARS
    )
    bias, rows = random.normal(0, 0.3, 20), random.uniform(-0.5, 0.5, (20, 4))
    sums, told = parts(user_messages(ratings, Units.of(STARS), 0.2, bias, rows).value)
    for user in range(12):
        rated = items[users == user]
        surprise = np.clip(values[users == user] - 3.6 - 0.2 - bias[rated], -1, 1)
        np.testing.assert_allclose(sums[user], rows[rated].sum(axis=0), atol=1e-6)
        np.testing.assert_allclose(told[user], surprise @ rows[rated], atol=1e-6)


def test_the_bound_is_for_each_rating() -> None:
    assert MESSAGE_BOUND.size == pytest.approx(math.sqrt(1.25))
    assert (MESSAGE_BOUND.unit, MESSAGE_BOUND.adjacency) == ("rating", "empty")


def test_directions_are_never_longer_than_one_and_begin_with_a_constant() -> None:
    for count in (1, 3, 6):
        found = Directions.of(some_items(), count)
        assert found.rows.shape == (30, 1 + count)
        assert np.linalg.norm(found.rows, axis=1).max() == pytest.approx(1.0)
        np.testing.assert_allclose(found.rows[:, 0] * found.scale, np.sqrt(LEVEL))


def test_directions_are_those_in_which_tastes_make_ratings_differ_most() -> None:
    items = some_items(items=400)
    found = Directions.of(items, 2)
    variances = np.array([0.05] * 4 + [0.02, 0.12])
    known = np.column_stack([items.columns, items.popularity, items.bias])
    known = known - items.weights @ known
    slopes = np.random.default_rng(1).normal(size=(20_000, 6)) * np.sqrt(variances)
    effect = known @ slopes.T  # what tastes make of items
    total = items.weights @ effect.var(axis=1)
    along = np.linalg.lstsq(found.rows[:, 1:], effect, rcond=None)[0]
    explained = items.weights @ (found.rows[:, 1:] @ along).var(axis=1)
    singular = np.linalg.svd(np.sqrt(items.weights)[:, None] * known * np.sqrt(variances))[1]
    # Some directions were shortened, so a little is lost.
    assert explained / total == pytest.approx((singular[:2] ** 2).sum() / (singular**2).sum(), abs=0.05)


def test_items_that_are_all_alike_have_only_the_constant_direction() -> None:
    same = KnownItems(0.0, np.zeros(5), np.zeros(5), np.full(5, 0.2), np.zeros((5, 2)))
    found = Directions.of(same, 2)
    np.testing.assert_allclose(found.rows, np.column_stack([np.ones(5), np.zeros((5, 2))]))


def test_directions_for_other_items_are_refused() -> None:
    with pytest.raises(DataError, match="each of the party's items"):
        user_messages(ratings_of(((0, 1.0),)), Units.of(STARS), 0.0, np.zeros(2), np.zeros((2, 1)))
