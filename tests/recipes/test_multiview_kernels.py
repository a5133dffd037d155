"""The recipe's arithmetic against the paper's equations in dense tables."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.privacy.fixed_point import FixedPoint
from cofactor.randomness import SecureRandom
from cofactor.recipes import multiview_sums
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_kernels import gram, solved_users, stepped_users, summed_gradients
from cofactor.recipes.multiview_sums import bounded_sum, plain_sum
from cofactor.recipes.multiview_weights import Entries
from tests.recipes.multiview_parties import (
    CODING,
    ITEMS,
    KINDS,
    USERS,
    Reals,
    Twin,
    derivative,
    device,
    some_attributes,
    some_rows,
    twin_of,
)

FACTORS = 3


def case(unrated: Any, seed: int = 0) -> tuple[Entries, Twin, Reals, Reals, Reals]:
    """Return entries, their twin, attributes, items and features."""
    recipe = MultiViewMF(factors=FACTORS, unrated=unrated, side_weight=0.7, penalty=2.0)
    attributes = some_attributes(seed)
    half = device(recipe, some_rows(seed), attributes)
    random = np.random.default_rng(seed)
    items, features = random.normal(0, 1, (ITEMS, FACTORS)), random.normal(0, 1, (CODING.width, FACTORS))
    return half._entries, twin_of(half, recipe, attributes), half._attributes, items, features


def _by_users(twin: Twin, items: Reals, features: Reals, users: Reals) -> float:
    return twin.objective(users, items, features, np.zeros((3, FACTORS)))


@pytest.mark.parametrize("unrated", KINDS)
def test_users_are_where_equation_8_puts_them(unrated: Any) -> None:
    for seed in range(5):
        entries, twin, attributes, items, features = case(unrated, seed)
        found = solved_users(*entries, items, attributes, features, 0.7, 2.0)
        np.testing.assert_allclose(found, twin.best_users(items, features), rtol=1e-9, atol=1e-12)
        slope = derivative(
            lambda p, q=items, u=features, t=twin: t.objective(p, q, u, np.zeros((3, 3))), found
        )
        np.testing.assert_allclose(slope, 0, atol=1e-5)


@pytest.mark.parametrize("unrated", KINDS)
def test_a_step_of_users_goes_down_the_objective(unrated: Any) -> None:
    entries, twin, attributes, items, features = case(unrated)
    users = np.random.default_rng(3).normal(0, 1, (USERS, FACTORS))
    moved = stepped_users(users, 0.5, *entries, items, attributes, features, 0.7, 2.0)
    slope = derivative(partial(_by_users, twin, items, features), users)
    for user in range(USERS):
        own = features[~np.isnan(attributes[user])]
        squares = items.T @ np.diag(twin.weights[user]) @ items + 0.7 * own.T @ own + 2.0 * np.eye(FACTORS)
        wanted = users[user] - 0.5 / (2 * np.trace(squares)) * slope[user]
        np.testing.assert_allclose(moved[user], wanted, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("unrated", KINDS)
def test_many_steps_reach_what_equation_8_says(unrated: Any) -> None:
    entries, _, attributes, items, features = case(unrated)
    users = np.zeros((USERS, FACTORS))
    for _ in range(400):
        users = stepped_users(users, 1.0, *entries, items, attributes, features, 0.7, 2.0)
    wanted = solved_users(*entries, items, attributes, features, 0.7, 2.0)
    np.testing.assert_allclose(users, wanted, atol=1e-6)


@pytest.mark.parametrize("unrated", KINDS)
def test_summed_gradients_are_the_derivatives_of_the_objective(unrated: Any) -> None:
    entries, twin, attributes, items, features = case(unrated)
    users = np.random.default_rng(3).normal(0, 1, (USERS, FACTORS))
    found = summed_gradients(users, *entries, items, attributes, features)
    nothing, twin.features = np.zeros((3, FACTORS)), np.zeros((ITEMS, 3))
    by_items = derivative(lambda q: twin.objective(users, q, features, nothing), items)
    by_features = derivative(lambda u: twin.objective(users, items, u, nothing), features)
    np.testing.assert_allclose(-2 * found[:ITEMS] + 2 * 2.0 * items, by_items, rtol=1e-5, atol=1e-6)
    wanted = -2 * 0.7 * found[ITEMS:] + 2 * 2.0 * features
    np.testing.assert_allclose(wanted, by_features, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("unrated", KINDS)
def test_a_bounded_sum_is_the_plain_one_where_nobody_is_shortened(
    monkeypatch: pytest.MonkeyPatch, unrated: Any
) -> None:
    entries, _, attributes, items, features = case(unrated)
    users = np.random.default_rng(3).normal(0, 1, (USERS, FACTORS))
    numbers = (users, entries, items, attributes, features)
    grid = FixedPoint(step=2.0**-20)
    plain = plain_sum(*numbers, step=grid.step, most=2**40).value
    whole = bounded_sum(*numbers, grid, 1e4, SecureRandom()).value
    assert np.abs(plain - whole).max() <= USERS + 1
    assert np.abs(plain).max() > 2**20
    # Users one by one, or all at once.
    monkeypatch.setattr(multiview_sums, "_ROWS", 1)
    one_by_one = bounded_sum(*numbers, grid, 1e4, SecureRandom()).value
    assert np.abs(plain - one_by_one).max() <= USERS + 1


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(0, 5), st.integers(1, 60))
def test_portions_are_whole_users_and_all_of_them(sizes: list[int], features: int, rows: int) -> None:
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    zeros = np.zeros(ptr[-1])
    entries = Entries(ptr, zeros.astype(np.int32), zeros, zeros, 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiview_sums, "_ROWS", rows)
        parts = list(multiview_sums._windows(entries, 9, features))
    assert [user for part in parts for user in range(part.start, part.stop)] == list(range(len(sizes)))
    for part in parts:
        held = sum(sizes[part]) + features * (part.stop - part.start)
        assert held <= rows or part.stop == part.start + 1


def test_numbers_that_are_too_large_for_a_plain_sum_are_cut_off() -> None:
    entries, _, attributes, items, features = case(KINDS[0])
    numbers = (np.full((USERS, FACTORS), 1e8), entries, items, attributes, features)
    found = plain_sum(*numbers, step=2.0**-20, most=1000).value
    assert np.abs(found).max() == 1000


@given(st.integers(0, 2**32), st.sampled_from([1.0, 1e3, 1e5]))
def test_products_of_rows_are_added_up(seed: int, size: float) -> None:
    vectors = np.random.default_rng(seed).normal(0, size, (6, 4))
    np.testing.assert_allclose(gram(vectors), vectors.T @ vectors, rtol=1e-10, atol=1e-8 * size**2)


@pytest.mark.parametrize("size", [0.0, 1e-300, 120.0, 1e9, 1e14])
def test_items_that_are_all_alike_give_finite_answers(size: float) -> None:
    # But for the penalty there is nothing to solve, and rounding leaves nothing of that.
    entries, _, attributes, _, features = case(KINDS[1])
    for seed in range(5):
        items = size * np.tile(np.random.default_rng(seed).normal(1, 1, FACTORS), (ITEMS, 1))
        found = solved_users(*entries, items, attributes, features * size, 1e6, 1e-6)
        assert np.isfinite(found).all()
