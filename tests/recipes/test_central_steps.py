import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.recipes.central_steps import (
    RADIUS,
    Penalties,
    Users,
    counted,
    fitted,
    moved,
    slopes,
    started,
    summed,
    weights_of,
)

USERS, ITEMS, FACTORS = 5, 9, 3
PENALTIES = Penalties(bias=4.0, taste=0.5)


def some_ratings(seed: int = 0) -> Grouped:
    """Return ratings less their mean; the last user has none."""
    chance = np.random.default_rng(seed)
    rows = [np.flatnonzero(chance.random(ITEMS) < 0.6) for _ in range(USERS - 1)]
    ptr = np.cumsum([0, *(len(row) for row in rows), 0])
    index = np.concatenate(rows).astype(np.int32)
    return Grouped(ptr, index, chance.normal(0.0, 1.0, len(index)).astype(np.float32))


def some_items(seed: int = 1) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(0.0, 0.6, (ITEMS, FACTORS)).astype(np.float32)


def test_users_are_solved_exactly() -> None:
    ratings, items = some_ratings(), some_items()
    found = fitted(ratings, items, PENALTIES)
    for user in range(USERS):
        own = ratings.window(user, user + 1)
        x = np.column_stack([np.ones(len(own.index)), items[own.index, 1:]])
        ridge = np.diag([PENALTIES.bias, *[PENALTIES.taste] * (FACTORS - 1)])
        exact = np.linalg.solve(x.T @ x + ridge, x.T @ (own.values - items[own.index, 0]))
        np.testing.assert_allclose([found.bias[user], *found.tastes[user]], exact, atol=1e-5)


def plain_slopes(
    ratings: Grouped, users: Users, items: NDArray[np.float32], weights: NDArray[np.float32]
) -> NDArray[np.float64]:
    owners = ratings.members()
    lengths = np.sqrt(np.bincount(owners, weights[ratings.index] ** 2, minlength=USERS))
    tastes = np.column_stack([np.ones(USERS), users.tastes])[owners]
    left = ratings.values - users.bias[owners] - np.einsum("ij,ij->i", tastes, items[ratings.index])
    return np.asarray((weights[ratings.index] / lengths[owners] * left)[:, None] * tastes)


def test_slopes_are_weighted_residuals_times_tastes() -> None:
    ratings, items = some_ratings(), some_items()
    weights = np.linspace(0.2, 1.0, ITEMS).astype(np.float32)
    users = fitted(ratings, items, PENALTIES)
    found = slopes(ratings.ptr, ratings.index, ratings.values, users.bias, users.tastes, items, weights)
    np.testing.assert_allclose(found, plain_slopes(ratings, users, items, weights), atol=1e-6)


def test_they_are_added_up_where_their_items_are() -> None:
    ratings, items = some_ratings(), some_items()
    weights = np.ones(ITEMS, np.float32)
    users = fitted(ratings, items, PENALTIES)
    wide = summed(ratings, users, items, weights, limit=1e6).value
    exact = np.zeros((ITEMS, FACTORS))
    np.add.at(exact, ratings.index, plain_slopes(ratings, users, items, weights))
    np.testing.assert_allclose(wide, exact, atol=1e-4)


@pytest.mark.parametrize("limit", [0.1, 0.5])
def test_all_that_a_user_contributes_is_shortened_as_a_whole(limit: float) -> None:
    ratings, items = some_ratings(), 3 * some_items()
    for user in range(USERS):
        own = ratings.window(user, user + 1)
        found = summed(own, fitted(own, items, PENALTIES), items, np.ones(ITEMS), limit).value
        # Their residuals are far longer than the limit; whoever has no ratings adds nothing.
        assert np.linalg.norm(found) == pytest.approx(limit if len(own.index) else 0.0, rel=1e-5)


def test_a_step_along_the_slopes_lowers_the_error() -> None:
    ratings, items = some_ratings(), some_items()

    def error(items: NDArray[np.float32]) -> float:
        users = fitted(ratings, items, PENALTIES)
        left = plain_slopes(ratings, users, items, np.ones(ITEMS, np.float32))[:, 0]
        ridge = PENALTIES.bias * users.bias**2 + PENALTIES.taste * (users.tastes**2).sum(axis=1)
        return float((left**2 * ratings.sizes[ratings.members()]).sum() + ridge.sum())

    users = fitted(ratings, items, PENALTIES)
    step = summed(ratings, users, items, np.ones(ITEMS), limit=100.0).value
    assert error(moved(items, step, 0.02)) < error(items)


def test_every_user_counts_the_same_and_items_that_many_rated_weigh_less() -> None:
    ratings = some_ratings()
    counts = counted(ratings, ITEMS)
    exact = np.zeros(ITEMS)
    for user in range(USERS - 1):
        own = ratings.window(user, user + 1).index
        exact[own] += 1 / np.sqrt(len(own))
    np.testing.assert_allclose(counts.value[:, 0], exact, atol=1e-5)
    weights = weights_of(np.array([-3.0, 0.5, 2.0, 8.0]), 2.0, 0.5)
    np.testing.assert_allclose(weights, [1.0, 1.0, 1.0, 0.5])


def test_items_begin_without_biases_and_never_get_too_long() -> None:
    items = started(ITEMS, FACTORS, 0.1, np.random.default_rng(0))
    assert (items[:, 0] == 0).all()
    assert (items[:, 1:] != 0).all()
    far = moved(items, np.full((ITEMS, FACTORS), 1e9), 1.0)
    np.testing.assert_allclose(np.linalg.norm(far, axis=1), RADIUS, rtol=1e-5)
