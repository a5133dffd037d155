import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.data.ratings import Ratings, Scale
from cofactor.factors.schedule import GRID, Schedule, Seats, schedule, seats
from cofactor.factors.units import Units

UNITS = Units(3.0, 2.0)


def random_ratings(seed: int, users: int, items: int, density: float) -> Ratings:
    generator = np.random.default_rng(seed)
    pairs = np.argwhere(generator.random((users, items)) < density)
    # Values tell ratings apart, so that none can take another's place.
    values = np.arange(len(pairs), dtype=np.float32)
    return Ratings.from_rows(
        pairs[:, 0], pairs[:, 1], values,
        user_ids=np.arange(users), item_ids=np.arange(items), scale=Scale(0, max(1, len(pairs))),
    )  # fmt: skip


def planned(ratings: Ratings, seed: int = 0) -> tuple[Seats, Seats, Schedule]:
    users, items = seats(ratings.by_user.sizes), seats(ratings.by_item.sizes)
    return users, items, schedule(ratings, UNITS, users, items, np.random.default_rng(seed))


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 40), st.sampled_from([0.05, 0.5, 1.0]))
def test_every_rating_is_met_once_in_the_block_of_its_user_and_item(
    seed: int, user_count: int, item_count: int, density: float
) -> None:
    ratings = random_ratings(seed, user_count, item_count, density)
    users, items, order = planned(ratings)
    met = np.argsort(order.values)
    assert np.array_equal(order.users[met], users.rows[ratings.users])
    assert np.array_equal(order.items[met], items.rows[ratings.items])
    np.testing.assert_allclose(order.values[met], (ratings.values - 3) / 2, rtol=1e-6)
    block = np.repeat(np.arange(GRID * GRID), np.diff(order.ptr))
    expected = users.groups[ratings.users] * GRID + items.groups[ratings.items]
    assert np.array_equal(block[met], expected)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 50), max_size=60))
def test_seats_are_a_permutation_with_groups_side_by_side(sizes: list[int]) -> None:
    places = seats(np.array(sizes, np.int64))
    assert sorted(places.rows) == list(range(len(sizes)))
    in_table_order = places.groups[np.argsort(places.rows)]
    assert np.array_equal(in_table_order, np.sort(in_table_order))


def test_groups_get_about_the_same_number_of_ratings() -> None:
    sizes = np.random.default_rng(0).lognormal(4, 1, 5_000).astype(np.int64)
    totals = np.bincount(seats(sizes).groups, weights=sizes)
    assert totals.max() < 1.02 * totals.min()


def test_users_take_turns() -> None:
    ratings = random_ratings(1, 64, 64, 1.0)
    _, _, order = planned(ratings)
    first_block = order.users[order.ptr[0] : order.ptr[1]]
    assert len(np.unique(first_block)) == 8
    assert np.array_equal(first_block, np.tile(first_block[:8], 8))


def test_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    ratings = random_ratings(2, 30, 30, 0.5)
    one, two, other = (planned(ratings, seed)[2] for seed in (5, 5, 6))
    assert np.array_equal(one.values, two.values)
    assert not np.array_equal(one.values, other.values)


def test_a_users_ratings_come_in_every_order() -> None:
    ratings = random_ratings(3, 1, 3 * GRID, 1.0)
    first_items = [planned(ratings, seed)[2].items[0] for seed in range(100)]
    # Three items share the first block; that one of them never leads has a chance of 3 * (2/3)^100 = 7e-18.
    assert len(set(first_items)) == 3


def test_ratings_are_left_as_they_were() -> None:
    ratings = random_ratings(4, 20, 20, 0.5)
    before = ratings.items.copy(), ratings.values.copy()
    planned(ratings)
    assert np.array_equal(ratings.items, before[0])
    assert np.array_equal(ratings.values, before[1])


@pytest.mark.parametrize("count", [1, 3, 7, 8, 9])
def test_fewer_users_than_groups_are_fine(count: int) -> None:
    _, _, order = planned(random_ratings(5, count, count, 1.0))
    assert len(order.values) == count * count
    assert len(order.ptr) == GRID * GRID + 1
