"""Which items the same users rate: what users add up is a step of subspace iteration, and finds audiences."""

import numpy as np
import pytest

from cofactor.data.ratings import Ratings
from cofactor.recipes.personal_co_rating import (
    LARGEST,
    ROUNDS,
    asked_along,
    co_rated,
    columns_of,
    first_directions,
    settled_along,
)

USERS, ITEMS = 300, 40


def audiences(seed: int = 0) -> Ratings:
    """Return ratings of two audiences, which rarely rate what the other does."""
    chance = np.random.default_rng(seed)
    same = (np.arange(USERS)[:, None] % 2) == (np.arange(ITEMS)[None] % 2)
    users, items = np.nonzero(chance.random((USERS, ITEMS)) < np.where(same, 0.5, 0.1))
    values = chance.integers(1, 6, len(users)).astype(np.float32)
    return Ratings.from_rows(users, items, values, user_ids=np.arange(USERS), item_ids=np.arange(ITEMS))


def found(ratings: Ratings, columns: int, rounds: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    grouped, left = ratings.by_user, np.ones(USERS, np.bool_)
    counts = np.bincount(grouped.index, minlength=ITEMS).astype(np.float64)
    basis, sizes = first_directions(ITEMS, columns, np.random.default_rng(1)), np.zeros(0)
    for _ in range(rounds):
        sums = co_rated(grouped.ptr, grouped.index, asked_along(basis, counts), left)
        basis, sizes = settled_along(sums.astype(np.float64), counts)
    return basis, sizes, counts


def test_iteration_ends_at_the_leading_vectors_of_who_rated_what() -> None:
    ratings = audiences()
    basis, _, counts = found(ratings, 1, 30)
    rated = np.zeros((USERS, ITEMS))
    rated[ratings.users, ratings.items] = 1
    scaled = rated / np.sqrt(rated.sum(axis=1, keepdims=True) + 50) / np.sqrt(counts + 50)
    truth = np.linalg.svd(scaled)[2][:2].T
    assert np.abs(np.abs(truth.T @ basis[:, :2]) - np.eye(2)).max() < 1e-3


def test_a_few_rounds_tell_audiences_apart() -> None:
    basis, sizes, counts = found(audiences(), 1, ROUNDS)
    (column,) = columns_of(basis, sizes, counts, 1).T
    assert len(set(np.sign(column[::2]))) == len(set(np.sign(column[1::2]))) == 1
    assert np.sign(column[0]) != np.sign(column[1])


def test_no_direction_lets_a_user_add_more_than_sums_have_room_for() -> None:
    ratings = audiences().by_user
    sums = co_rated(ratings.ptr, ratings.index, np.ones((ITEMS, 3)), np.ones(USERS, np.bool_))
    alone = co_rated(ratings.ptr, ratings.index, np.ones((ITEMS, 3)), np.arange(USERS) == 7)
    assert 0 < np.abs(alone).max() <= LARGEST
    assert np.abs(sums).max() <= USERS * LARGEST


def test_who_has_dropped_out_adds_nothing() -> None:
    ratings = audiences().by_user
    nobody = co_rated(ratings.ptr, ratings.index, np.ones((ITEMS, 3)), np.zeros(USERS, np.bool_))
    assert not nobody.any()


@pytest.mark.parametrize("wanted", [0, 1, 5])
def test_columns_are_as_many_as_wanted_even_if_nothing_is_known(wanted: int) -> None:
    basis = first_directions(3, wanted, np.random.default_rng(0))
    columns = columns_of(basis, np.zeros(basis.shape[1]), np.zeros(3), wanted)
    assert columns.shape == (3, wanted)
    assert not columns.any()
