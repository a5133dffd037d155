"""The fit at home against the same fit written with dense matrices, one rating left out at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.data.grouping import offsets
from cofactor.recipes.home_ridge import Fitted, fitted, taste_root, unpacked

Reals = NDArray[np.float64]
Users = list[tuple[NDArray[np.int32], Reals]]
"""Items and targets of each user."""
ITEMS, WIDTH, WAYS = 9, 4, 2


def solved(columns: Reals, weights: Reals, targets: Reals) -> tuple[Reals, Reals]:
    """Return the taste, and its covariance, by dense algebra."""
    square = np.eye(columns.shape[1]) + columns.T @ (weights[:, None] * columns)
    covariance = np.asarray(np.linalg.inv(square), np.float64)
    return covariance @ columns.T @ (weights * targets), covariance


def known(seed: int, *, size: float = 1.0) -> tuple[Reals, Reals, Reals]:
    chance = np.random.default_rng(seed)
    columns = size * chance.normal(size=(ITEMS, WIDTH))
    return columns, chance.uniform(0.3, 1.3, ITEMS), chance.normal(size=(WIDTH, WAYS))


def some_users(seed: int) -> Users:
    chance = np.random.default_rng(seed)
    chosen = [chance.permutation(ITEMS)[:count].astype(np.int32) for count in (1, 0, 5, ITEMS, 2)]
    return [(items, chance.normal(size=len(items))) for items in chosen]


def fit(users: Users, columns: Reals, weights: Reals, ways: Reals, *, spreads: bool = True) -> Fitted:
    return fitted(
        offsets(np.array([len(items) for items, _ in users])),
        np.concatenate([items for items, _ in users]),
        np.concatenate([targets for _, targets in users]),
        columns,
        weights,
        ways,
        spreads=spreads,
    )


@pytest.mark.parametrize("seed", range(4))
def test_tastes_are_those_of_a_dense_solver(seed: int) -> None:
    (columns, weights, ways), users = known(seed), some_users(seed)
    found = fit(users, columns, weights, ways)
    for taste, (items, targets) in zip(found.tastes, users, strict=True):
        np.testing.assert_allclose(taste, solved(columns[items], weights[items], targets)[0], atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_residuals_and_told_tastes_are_those_of_a_fit_without_the_rating(seed: int) -> None:
    # Small columns: no rating decides more than 80% of its own prediction, where residuals are limited.
    (columns, weights, ways), users = known(seed, size=0.5), some_users(seed)
    found = fit(users, columns, weights, ways)
    at = 0
    for items, targets in users:
        for out in range(len(items)):
            rest = np.arange(len(items)) != out
            taste, _ = solved(columns[items[rest]], weights[items[rest]], targets[rest])
            expected = targets[out] - columns[items[out]] @ taste
            np.testing.assert_allclose(found.residuals[at], expected, atol=1e-11)
            np.testing.assert_allclose(found.told[at], ways.T @ taste, atol=1e-11)
            at += 1
    assert at == len(found.residuals) == 17


def test_a_rating_that_decides_its_own_prediction_has_a_limited_residual() -> None:
    columns, weights = np.array([[1000.0]]), np.ones(1)
    found = fitted(np.array([0, 1]), np.zeros(1, np.int32), np.array([3.0]), columns, weights)
    left = 3.0 / (1 + 1e6)
    assert found.residuals[0] == pytest.approx(left / 0.2, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_spreads_are_second_moments_of_tastes_beyond_the_prior(seed: int) -> None:
    (columns, weights, ways), users = known(seed), some_users(seed)
    found = fit(users, columns, weights, ways)
    for packed, (items, targets) in zip(found.spreads, users, strict=True):
        taste, covariance = solved(columns[items], weights[items], targets)
        expected = covariance + np.outer(taste, taste) - np.eye(WIDTH)
        np.testing.assert_allclose(unpacked(packed, WIDTH), expected, atol=1e-12)
        assert np.linalg.norm(packed) == pytest.approx(np.linalg.norm(expected), abs=1e-12)


def test_who_has_rated_nothing_has_no_taste_and_no_spread() -> None:
    columns, weights, ways = known(0)
    found = fit([(np.zeros(0, np.int32), np.zeros(0))] * 3, columns, weights, ways)
    assert not found.tastes.any()
    assert not found.spreads.any()
    assert found.residuals.shape == (0,)
    assert found.told.shape == (0, WAYS)


def test_nothing_is_made_that_was_not_asked_for() -> None:
    columns, weights, _ = known(0)
    users = some_users(0)
    found = fit(users, columns, weights, np.zeros((WIDTH, 0)), spreads=False)
    assert found.told.shape == (17, 0)
    assert found.spreads.shape == (5, 0)
    np.testing.assert_array_equal(found.tastes, fit(users, columns, weights, np.zeros((WIDTH, 0))).tastes)


@given(st.lists(st.floats(-1e3, 1e3), min_size=10, max_size=10))
def test_a_packed_row_keeps_the_length_and_the_matrix(numbers: list[float]) -> None:
    matrix = unpacked(np.array(numbers), WIDTH)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.linalg.norm(matrix) == pytest.approx(np.linalg.norm(numbers), rel=1e-12, abs=1e-300)


def some_covariance(seed: int) -> Reals:
    half = np.random.default_rng(seed).normal(size=(WIDTH, WIDTH)) * 0.4
    return np.asarray(half @ half.T + 0.01 * np.eye(WIDTH))


def test_a_root_gives_its_covariance_back() -> None:
    covariance = some_covariance(3)
    root = taste_root(covariance)
    np.testing.assert_allclose(root @ root.T, covariance, atol=1e-12)


@given(st.lists(st.floats(-1e14, 1e14), min_size=WIDTH**2, max_size=WIDTH**2))
def test_whatever_a_covariance_is_said_to_be_its_root_is_believable(numbers: list[float]) -> None:
    root = taste_root(np.array(numbers).reshape(WIDTH, WIDTH))
    sizes = np.linalg.eigvalsh(root @ root.T)
    assert sizes.min() >= 1e-5 * (1 - 1e-6) - 1e-12
    assert sizes.max() <= 10 * (1 + 1e-9)


@pytest.mark.parametrize("size", [30.0, 300.0])
def test_thousands_of_ratings_of_extreme_items_are_fitted_without_failing(size: float) -> None:
    # Items nearly alike in all columns but one: as badly conditioned as a question can make it.
    chance, count = np.random.default_rng(0), 5000
    columns = np.full((count, WIDTH), size) + 1e-6 * chance.normal(size=(count, WIDTH))
    columns[:, 0] = size * chance.choice([-1.0, 1.0], count)
    found = fitted(
        np.array([0, count]),
        np.arange(count, dtype=np.int32),
        chance.choice([-12.0, 12.0], count),
        columns,
        np.full(count, 1 / 0.75),
        np.full((WIDTH, 1), 1e6),
        spreads=True,
    )
    for each in found:
        assert np.isfinite(each).all()
