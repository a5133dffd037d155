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
from cofactor.recipes.taste_items import COUNT_WEIGHT, ITEM_BOUND, KnownItems, Units, item_sums

STARS = Scale(1, 5)


def ratings_of(units: tuple[Any, ...], scale: Scale = STARS) -> Ratings:
    """A unit is (item, value), or None; every rating is by a user of its own."""
    given = [(user, *unit) for user, unit in enumerate(units) if unit is not None]
    users, items, values = (
        (np.array(column) for column in zip(*given, strict=True)) if given else ([], [], [])
    )
    return Ratings.from_rows(
        np.array(users, np.int32), np.array(items, np.int32), np.array(values, np.float32),
        user_ids=np.arange(len(units)), item_ids=np.arange(4), scale=scale,
    )  # fmt: skip


def draw(chance: np.random.Generator) -> tuple[int, float]:
    return int(chance.integers(4)), float(chance.choice([1.0, 2.5, 3.6, 5.0]))


def some_sums(random: np.random.Generator, items: int = 40) -> tuple[NDArray[Any], NDArray[Any]]:
    counts = random.integers(0, 200, items)
    return np.column_stack([COUNT_WEIGHT * counts, counts * random.normal(0.1, 0.4, items)]), counts


DATASETS = Datasets(draw=draw, count=5)


def test_a_rating_changes_the_item_sums_by_no_more_than_the_accountant_is_told() -> None:
    def release(units: tuple[Any, ...]) -> Bounded:
        return item_sums(ratings_of(units), Units.of(STARS))

    worst = Neighbours(units=((2, 1.0), (2, 5.0), (0, 3.0), (1, 4.0), (3, 2.0)), which=0, other=None)
    assert_bounded(release, ITEM_BOUND, DATASETS, worst_case=worst)


def test_a_rating_on_another_scale_changes_the_item_sums_no_more() -> None:
    scale = Scale(-10, 30)

    def release(units: tuple[Any, ...]) -> Bounded:
        wider = tuple(unit and (unit[0], 10 * unit[1] - 20) for unit in units)
        return item_sums(ratings_of(wider, scale), Units.of(scale))

    worst = Neighbours(units=((2, 1.0), (2, 5.0), (0, 3.0), (1, 4.0), (3, 2.0)), which=0, other=None)
    assert_bounded(release, ITEM_BOUND, DATASETS, worst_case=worst)


def test_noise_covers_items_without_ratings() -> None:
    random = InsecureRandom(1)

    def release(units: tuple[Any, ...]) -> NDArray[Any]:
        bounded = item_sums(ratings_of(units), Units.of(STARS))
        return Gaussian(noise_multiplier=1.0).noisy(bounded, random)

    assert_noise_covers(release, "empty", DATASETS, runs=8)


def test_the_sums_are_counts_and_clipped_ratings() -> None:
    found = item_sums(ratings_of(((0, 1.0), (0, 5.0), (2, 3.6))), Units.of(STARS)).value
    np.testing.assert_allclose(found[:, 0], [1.2, 0, 0.6, 0])
    np.testing.assert_allclose(found[:, 1], [-1.6 + 1.4, 0, 0, 0], atol=1e-6)


def test_units_put_a_centre_a_little_above_the_middle() -> None:
    assert Units.of(STARS) == Units(3.6, 1.0)
    assert Units.of(Scale(0, 100)) == Units(65.0, 25.0)


def test_ratings_without_values_are_refused() -> None:
    with pytest.raises(DataError, match="needs ratings with values"):
        Units.of(None)


def test_without_noise_well_rated_items_keep_their_means() -> None:
    random = np.random.default_rng(0)
    counts = np.array([5000, 8000, 3000, 10000])
    means = np.array([0.8, -0.4, 0.2, 0.1])
    sums = np.column_stack([COUNT_WEIGHT * counts, counts * means])
    items = KnownItems.of(sums, random.normal(size=(4, 0)), np.zeros(4))
    np.testing.assert_allclose(items.mean + items.bias, means, atol=0.005)
    np.testing.assert_allclose(items.weights, counts / counts.sum())
    assert items.weights @ items.bias == pytest.approx(0, abs=1e-12)
    assert items.weights @ items.popularity == pytest.approx(0, abs=1e-12)
    assert items.weights @ items.popularity**2 == pytest.approx(1)


def test_biases_of_items_are_their_posterior_means_given_the_slopes() -> None:
    random = np.random.default_rng(3)
    sums, _ = some_sums(random)
    noise = random.uniform(1, 30, 40)
    features = random.choice([0.0, 1.0], (40, 3))
    found = KnownItems.of(sums, features, noise)
    # The same by least squares: every penalty and every prior is one more observation.
    counts = sums[:, 0] / COUNT_WEIGHT
    mean = np.clip(sums[:, 1].sum() / counts.sum(), -1.6, 1.6)
    lp = found.popularity
    z = np.column_stack([np.ones(40), features - features.mean(axis=0), lp, lp**2])
    count_noise = noise / COUNT_WEIGHT
    told = sums[:, 1] - mean * counts
    deviation = np.sqrt(noise**2 + 0.25 * count_noise**2 + 0.9 * counts + 0.1225 * counts**2)
    rows = np.vstack([z * (counts / deviation)[:, None], np.diag(np.sqrt([1e-2, 10, 10, 10, 10, 10]))])
    slopes = np.linalg.lstsq(rows, np.concatenate([told / deviation, np.zeros(6)]), rcond=None)[0]
    expected = z @ slopes
    variance = noise**2 + 0.9 * counts + count_noise**2 * (expected**2 + 0.1225)
    precision = counts**2 / variance + 1 / 0.1225
    bias = (counts * told / variance + expected / 0.1225) / precision
    np.testing.assert_allclose(found.bias, bias - found.weights @ bias, atol=1e-9)
    assert found.mean == pytest.approx(mean + found.weights @ bias)


def test_more_noise_draws_biases_to_what_features_tell() -> None:
    sums, _ = some_sums(np.random.default_rng(5))
    spreads = [
        float(np.std(KnownItems.of(sums, np.zeros((40, 0)), np.full(40, noise)).bias))
        for noise in (0.1, 30.0, 3000.0)
    ]
    assert spreads[0] > spreads[1] > spreads[2]


def test_noisy_sums_without_any_ratings_still_give_finite_numbers() -> None:
    items = KnownItems.of(np.full((5, 2), -3.0), np.zeros((5, 1)), np.full(5, 10.0))
    for numbers in (items.bias, items.popularity, items.weights, items.features):
        assert np.isfinite(numbers).all()
    assert items.weights.sum() == pytest.approx(1)
