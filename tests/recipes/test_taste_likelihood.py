import math

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.recipes.taste_likelihood import Moments, told_by_others
from cofactor.recipes.taste_message import COUNT_WEIGHT, Directions, parts

PASSES = math.erf(1 / math.sqrt(1.9))
WIDTHS = [1, 3]
LEVEL, SCALE = 0.6, 0.7
Matrix = NDArray[np.float64]


def some_directions(width: int, items: int = 60) -> Directions:
    rows = np.random.default_rng(1).uniform(-0.5, 0.5, (items, width))
    rows[:, 0] = LEVEL
    return Directions(rows, SCALE)


def some_moments(directions: Directions) -> Moments:
    random = np.random.default_rng(2)
    weights = random.dirichlet(np.ones(len(directions.rows)))
    return Moments.of(directions.rows, weights, random.normal(size=(len(weights), 4)))


def exact_messages(directions: Directions, users: int, each: int) -> Matrix:
    """Messages of users with `each` ratings of random items, without noise."""
    random = np.random.default_rng(3)
    rows = []
    for _ in range(users):
        t = directions.rows[random.choice(len(directions.rows), each, replace=False)]
        rows.append(np.concatenate([COUNT_WEIGHT * t.sum(axis=0), random.uniform(-1, 1, each) @ t]))
    return np.array(rows)


@pytest.mark.parametrize("width", WIDTHS)
def test_what_is_told_is_each_users_regression_of_the_model(width: int) -> None:
    directions, noise, mismatch = some_directions(width), 1.3, 0.3
    moments = some_moments(directions)
    random = np.random.default_rng(4)
    noisy = exact_messages(directions, 20, 12) + random.normal(0, noise, (20, 2 * width))
    told_all = told_by_others(noisy, directions, moments, noise, mismatch)
    found = told_all.about(slice(0, 20))
    sums, told = parts(noisy)
    for user in range(20):
        count = max(sums[user, 0] / LEVEL, 0.0)
        gathered = count * moments.products
        for k in range(1, width):
            mean, prior = count * moments.products[0, k] / LEVEL, count * moments.products[k, k]
            gain = prior / (prior + (noise / COUNT_WEIGHT) ** 2)
            gathered[0, k] = gathered[k, 0] = LEVEL * (mean + gain * (sums[user, k] - mean))
        missing = (LEVEL * noise / COUNT_WEIGHT) ** 2 + count * moments.spread
        covariance = (noise**2 + PASSES**2 * SCALE**2 * missing) * np.eye(width)
        covariance += 0.8 * count * moments.products + mismatch * PASSES**2 * gathered @ gathered
        weighted = PASSES * gathered.T @ np.linalg.inv(covariance)
        np.testing.assert_allclose(found.precision[user], PASSES * weighted @ gathered, atol=1e-9)
        np.testing.assert_allclose(found.information[user], weighted @ told[user], atol=1e-9)
    expected = np.linalg.solve(moments.products, moments.known)
    np.testing.assert_allclose(told_all.combinations, expected, rtol=1e-5)
    np.testing.assert_allclose(told_all.about(slice(5, 9)).precision, found.precision[5:9])


def test_moments_are_means_and_variances_over_ratings() -> None:
    rows, weights = np.array([[1.0, 2.0, 1.0], [3.0, 4.0, -2.0]]), np.array([0.25, 0.75])
    found = Moments.of(rows, weights, np.array([[1.0], [5.0]]))
    each = rows[:, :, None] * rows[:, None, :]
    mean = np.einsum("i,ijk->jk", weights, each)
    np.testing.assert_allclose(found.products, mean)
    variances = np.einsum("i,ijk->jk", weights, (each - mean) ** 2)
    assert found.spread == pytest.approx(variances[1:, 1:].sum(axis=1).mean())
    assert found.known[1, 0] == pytest.approx(0.25 * 2 + 0.75 * 20)


def test_a_direction_in_which_items_do_not_differ_says_nothing() -> None:
    rows = np.column_stack([np.full(5, 0.5), np.zeros(5)])
    combinations = Moments.of(rows, np.full(5, 0.2), np.ones((5, 1))).combinations()
    np.testing.assert_allclose(combinations, [[2.0], [0.0]], atol=1e-6)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_mismatch_limits_how_much_is_believed(width: int) -> None:
    directions = some_directions(width)
    clear = exact_messages(directions, 10, 50)
    told = told_by_others(clear, directions, some_moments(directions), 0.01, mismatch=0.5)
    assert np.linalg.eigvalsh(told.about(slice(0, 10)).precision).max() <= 1 / 0.5 + 1e-9


@pytest.mark.parametrize("width", WIDTHS)
def test_noise_makes_everything_less_believable_and_nothing_impossible(width: int) -> None:
    directions = some_directions(width)
    moments, clear = some_moments(directions), exact_messages(directions, 10, 30)
    believed = [
        np.linalg.eigvalsh(
            told_by_others(clear, directions, moments, noise, 0.05).about(slice(0, 10)).precision
        )
        for noise in (0.0, 1.0, 10.0, 1000.0)
    ]
    assert all(np.all(each > -1e-9) for each in believed)
    sums = [float(each.sum()) for each in believed]
    assert sums == sorted(sums, reverse=True)
    assert believed[-1].max() < 1e-3


@pytest.mark.parametrize("width", WIDTHS)
def test_of_users_without_ratings_elsewhere_nothing_is_told(width: int) -> None:
    directions = some_directions(width)
    told = told_by_others(np.zeros((3, 2 * width)), directions, some_moments(directions), 0.0, 0.05)
    for numbers in told.about(slice(0, 3)):
        np.testing.assert_allclose(numbers, 0, atol=1e-9)


def test_a_generous_user_is_told_to_be_generous() -> None:
    directions = some_directions(1)
    moments = Moments.of(directions.rows, np.full(60, 1 / 60), np.ones((60, 1)))
    messages = np.array([[COUNT_WEIGHT * LEVEL * 100, 0.3 * LEVEL * 100]])  # 100 ratings, 0.3 above the mean
    told = told_by_others(messages, directions, moments, 0.1, 0.0)
    level = told.combinations[:, 0]
    precision, information = told.about(slice(0, 1))
    taste = float(information[0] @ level) / float(level @ precision[0] @ level)
    assert taste == pytest.approx(0.3 / PASSES, rel=1e-6)
