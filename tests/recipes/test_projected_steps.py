from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import hadamard

from cofactor.data.grouping import Grouped, offsets
from cofactor.privacy import noise
from cofactor.randomness import SecureRandom
from cofactor.recipes.projected_steps import (
    Adam,
    HomeSteps,
    Sketch,
    as_ratings,
    flat_gradients,
    mix,
    padded,
    shortened,
)

STEPS = HomeSteps(
    penalty=0.25,
    confidence=15.0,
    largest_error=1.0,
    user_limit=0.5,
    participation=0.5,
    clipped_errors=True,
)
ITEMS, USERS, FACTORS = 11, 7, 3


def some_ratings(seed: int = 0, users: int = USERS, items: int = ITEMS) -> Grouped:
    chance = np.random.default_rng(seed)
    rated = [np.sort(chance.permutation(items)[: chance.integers(0, items)]) for _ in range(users)]
    index = np.concatenate(rated).astype(np.int32)
    sizes = np.array([len(each) for each in rated])
    return Grouped(offsets(sizes), index, chance.integers(1, 6, len(index)).astype(np.float32))


def vectors(seed: int = 0, rows: int = ITEMS) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(0, 0.7, (rows, FACTORS))


def matrix(sketch: Sketch) -> NDArray[np.float64]:
    """Return S, written out."""
    return sketch.projected(np.eye(len(sketch.rows)))


def dense(ratings: Grouped, user: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return one user's ratings, 0 where there are none, and how much they count (eq. 3)."""
    own, row, weight = ratings.window(user, user + 1), np.zeros(ITEMS), np.ones(ITEMS)
    row[own.index], weight[own.index] = own.values, 1 + STEPS.confidence
    return row, weight


@pytest.mark.parametrize("rows", [1, 2, 8, 64])
def test_mixing_is_by_the_walsh_hadamard_matrix(rows: int) -> None:
    values = np.random.default_rng(rows).normal(size=(5, rows))
    expected = values @ hadamard(rows) / np.sqrt(rows)
    mix(values)
    np.testing.assert_allclose(values, expected, atol=1e-12)


def test_a_sketch_has_one_entry_for_each_item_and_is_the_same_for_all_who_know_the_seed() -> None:
    sketch = Sketch.drawn(50, 7, 3, "sketch")
    found = matrix(sketch)
    assert found.shape == (7, 50)
    assert (np.count_nonzero(found, axis=0) == 1).all()
    assert set(np.unique(found).tolist()) == {-1.0, 0.0, 1.0}
    np.testing.assert_array_equal(found, matrix(Sketch.drawn(50, 7, 3, "sketch")))
    for other in (Sketch.drawn(50, 7, 3, "sketch of round 2"), Sketch.drawn(50, 7, 4, "sketch")):
        assert (matrix(other) != found).any()


def test_with_as_many_rows_as_items_nothing_is_projected() -> None:
    np.testing.assert_array_equal(matrix(Sketch.drawn(9, 9, 0, "sketch")), np.eye(9))


def test_spreading_is_the_transpose_of_projecting() -> None:
    sketch, rows = Sketch.drawn(ITEMS, 4, 0, "sketch"), vectors(1, 4)
    np.testing.assert_allclose(sketch.spread(rows), matrix(sketch).T @ rows)


@given(seed=st.integers(0, 1000), rows=st.integers(1, ITEMS))
def test_flattening_is_an_isometry_and_can_be_undone(seed: int, rows: int) -> None:
    sketch = Sketch.drawn(ITEMS, rows, seed, "sketch")
    weights = np.random.default_rng(seed).normal(size=(6, ITEMS))
    projected = weights @ matrix(sketch).T
    flat = sketch.flattened(weights)
    assert flat.shape == (6, padded(rows))
    np.testing.assert_allclose(np.linalg.norm(flat, axis=1), np.linalg.norm(projected, axis=1))
    np.testing.assert_allclose(sketch.unflattened(flat.T), projected.T, atol=1e-12)


def test_flattening_leaves_no_coordinate_large() -> None:
    # All weight is on one item, and afterwards evenly on all rows.
    sketch = Sketch.drawn(ITEMS, 8, 0, "sketch")
    np.testing.assert_allclose(np.abs(sketch.flattened(np.eye(ITEMS)[:1])), 8**-0.5)


@pytest.mark.parametrize(("rows", "power"), [(1, 1), (2, 2), (3, 4), (561, 1024), (1024, 1024)])
def test_rows_are_padded_to_a_power_of_two(rows: int, power: int) -> None:
    assert padded(rows) == power


def test_projecting_and_back_is_unbiased_and_errs_as_lemma_5_1_says() -> None:
    items, rows, draws = 40, 10, 4_000
    gradient = vectors(2, items)
    back, squares = np.zeros_like(gradient), np.zeros(draws)
    for draw in range(draws):
        sketch = Sketch.drawn(items, rows, draw, "sketch")
        found = sketch.spread(sketch.projected(gradient))
        back += found / draws
        squares[draw] = ((found - gradient) ** 2).sum()
    size = (gradient**2).sum()
    # Every other item falls together with an item once in 10 times; the lemma has twice that.
    expected = (items - 1) / rows * size
    off = squares.std() / np.sqrt(draws)
    assert abs(squares.mean() - expected) < 6 * off
    assert squares.mean() + 6 * off < 2 * items / rows * size
    # 120 means of 4,000 draws, each of variance below size / rows by column: six deviations.
    assert np.abs(back - gradient).max() < 6 * np.sqrt((gradient**2).sum(axis=0).max() / rows / draws)


@pytest.mark.parametrize("trials", [1, 4])
def test_coins_err_as_lemma_5_2_says(trials: int) -> None:
    items, rows, devices, theta, delta = 40, 10, 12, 0.1, 0.3
    sketch, chance = Sketch.drawn(items, rows, 0, "sketch"), np.random.default_rng(0)
    limit = delta / np.sqrt(padded(rows))
    weights, users = chance.normal(0, 0.3, (devices, items)), chance.normal(0, 0.3, (devices, FACTORS))
    flat = np.clip(sketch.flattened(weights)[:, :, None] * users[:, None, :], -limit, limit)
    told = sketch.spread(sketch.unflattened(flat.mean(axis=0)))
    draws = 1_500
    errors = np.zeros(draws)
    for draw in range(draws):
        heads = noise.poisson_binomial(flat / limit, trials, theta, SecureRandom()).sum(axis=0)
        mean = (heads / devices - trials / 2) * limit / (theta * trials)
        errors[draw] = ((sketch.spread(sketch.unflattened(mean)) - told) ** 2).sum()
    # Coins have a variance of p (1 - p), for which the lemma takes 1/4; and it forgets the root of p'.
    chances = 0.5 + theta * flat / limit
    one = (chances * (1 - chances)).sum(axis=0).mean() * limit**2 / (devices**2 * theta**2 * trials)
    off = errors.std() / np.sqrt(draws)
    assert errors.mean() == pytest.approx(items * FACTORS * one, abs=6 * off)
    assert errors.mean() + 6 * off < items * FACTORS * delta**2 / (4 * devices * trials * theta**2)


def test_users_are_solved_in_closed_form() -> None:
    ratings, items = some_ratings(), vectors()
    found = STEPS.users(ratings, items)
    for user in range(USERS):
        row, weight = dense(ratings, user)
        left = items.T @ np.diag(weight) @ items + STEPS.penalty * np.eye(FACTORS)
        np.testing.assert_allclose(found[user], np.linalg.solve(left, items.T @ (weight * row)), atol=1e-10)


@pytest.mark.parametrize("clipped", [True, False])
def test_gradients_are_those_of_the_paper_over_all_items(clipped: bool) -> None:
    ratings, items = some_ratings(), vectors()
    weights, users = replace(STEPS, clipped_errors=clipped).gradients(ratings, items)
    whole = STEPS.users(ratings, items)
    for user in range(USERS):
        row, weight = dense(ratings, user)
        short = whole[user] * min(1.0, 0.5 / max(np.abs(whole[user]).sum(), 1e-300))
        errors = np.clip(row - items @ (short if clipped else whole[user]), -1, 1)
        expected = 2 / 0.5 * (weight * errors)[:, None] * short
        np.testing.assert_allclose(np.outer(weights[user], users[user]), expected, atol=1e-12)
    assert (weights[ratings.sizes > 0] != 0).all()


def test_devices_are_flattened_by_parts_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings, items, sketch = some_ratings(), vectors(), Sketch.drawn(ITEMS, 5, 0, "sketch")
    parts = list(flat_gradients(STEPS, sketch, ratings, items))
    assert len(parts) == 1
    monkeypatch.setattr("cofactor.recipes.projected_steps._AT_ONCE", 2 * 8 * FACTORS)
    fewer = list(flat_gradients(STEPS, sketch, ratings, items))
    assert [len(part) for part in fewer] == [2, 2, 2, 1]
    np.testing.assert_allclose(np.concatenate(fewer), parts[0], atol=1e-15)
    weights, users = STEPS.gradients(ratings, items)
    gradient = np.einsum("di,dk->dik", weights, users)
    signs, mixer = np.diag(sketch.flips[:5]), hadamard(8)[:, :5] / np.sqrt(8)
    np.testing.assert_allclose(parts[0], mixer @ signs @ matrix(sketch) @ gradient, atol=1e-12)
    assert list(flat_gradients(STEPS, sketch, ratings.take(np.zeros(0, np.int64)), items)) == []


@given(
    users=st.lists(st.lists(st.floats(-1e200, 1e200), min_size=2, max_size=2), min_size=1, max_size=5),
    limit=st.floats(1e-6, 1e6),
)
def test_users_are_never_longer_than_the_limit(users: list[list[float]], limit: float) -> None:
    found = shortened(np.array(users), limit)
    assert (np.abs(found).sum(axis=1) <= limit * (1 + 1e-12)).all()
    kept = np.abs(users).sum(axis=1) <= limit
    np.testing.assert_allclose(found[kept], np.array(users)[kept])


@pytest.mark.parametrize("value", [0.0, 5e-324, 1e-150, 1e14, -1e14])
def test_whatever_items_are_asked_about_gradients_are_finite_for_everybody(value: float) -> None:
    # Alike rows make equations that only the penalty keeps solvable.
    for where in (slice(None), slice(0, 4)):
        items = np.full((ITEMS, FACTORS), 0.5)
        items[where] = value
        weights, users = STEPS.gradients(some_ratings(), STEPS.readable(items))
        assert np.isfinite(weights).all()
        assert np.isfinite(users).all()


def test_items_of_any_use_are_read_as_they_are() -> None:
    items = np.random.default_rng(0).normal(0, 3, (5000, 20))
    np.testing.assert_array_equal(STEPS.readable(items), items)


def test_scores_become_ratings_without_changing_any_order() -> None:
    ratings, items = some_ratings(3), vectors(3)
    users = STEPS.users(ratings, items)
    shift, slope = as_ratings(ratings, users, items, 3.0)
    assert (slope > 0).all()
    assert shift[ratings.sizes == 0].tolist() == [3.0] * int((ratings.sizes == 0).sum())


def line(told: bool) -> tuple[float, float, NDArray[Any]]:
    """Return shift and slope for one user with many ratings of which scores tell something, or nothing."""
    chance = np.random.default_rng(0)
    items, user = chance.normal(size=(400, FACTORS)), np.array([[0.5, -0.2, 0.1]])
    values = 3 + (2 * (items @ user[0]) if told else 0) + chance.normal(0, 0.3, 400)
    own = Grouped(np.array([0, 400]), np.arange(400, dtype=np.int32), values.astype(np.float32))
    shift, slope = as_ratings(own, user, items, 3.0)
    return float(shift[0]), float(slope[0]), values


def test_ratings_follow_scores_that_explain_them_and_else_are_the_mean() -> None:
    shift, slope, _ = line(told=True)
    assert shift == pytest.approx(3.0, abs=0.1)
    assert slope == pytest.approx(2.0, abs=0.15)
    shift, slope, values = line(told=False)
    assert slope < 0.1
    assert shift == pytest.approx(values.mean(), abs=0.05)


def test_adam_takes_the_steps_of_its_paper() -> None:
    chance, adam = np.random.default_rng(0), Adam(np.zeros(4), np.zeros(4))
    first = second = np.zeros(4)
    for taken in range(1, 6):
        gradient = chance.normal(size=4)
        first, second = 0.9 * first + 0.1 * gradient, 0.8 * second + 0.2 * gradient**2
        adam, step = adam.after(gradient, rate=0.05, first_decay=0.9, second_decay=0.8)
        expected = -0.05 * (first / (1 - 0.9**taken)) / np.sqrt(second / (1 - 0.8**taken))
        np.testing.assert_allclose(step, expected, rtol=1e-9)
    assert adam.taken == 5
