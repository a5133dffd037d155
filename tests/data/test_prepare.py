import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.data.prepare import (
    active_users,
    first_halves,
    libimseti_core,
    only_items,
    yelp_subset,
)
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError


def block(users: int, items: int) -> Ratings:
    """Every user has rated every item."""
    rows, columns = np.divmod(np.arange(users * items), items)
    return Ratings.from_arrays(rows + 1, columns + 1, 1 + (rows + columns) % 5)


def triangle(size: int) -> Ratings:
    """User k has rated items 1 to k."""
    pairs = [(user, item) for user in range(1, size + 1) for item in range(1, user + 1)]
    return Ratings.from_arrays([u for u, _ in pairs], [i for _, i in pairs], [1 + i % 5 for _, i in pairs])


def test_active_users_have_enough_ratings_and_unrated_items_go() -> None:
    kept = active_users(triangle(30), at_least=20)
    assert kept.user_ids.tolist() == list(range(20, 31))
    assert kept.item_count == 30
    assert active_users(triangle(19)).item_count == 0


def test_active_users_keep_their_ratings() -> None:
    ratings = triangle(25)
    kept = active_users(ratings, at_least=24)
    assert kept.values.tolist() == ratings.values[-49:].tolist()


def test_first_halves_have_half_of_each_count() -> None:
    half = first_halves(block(9, 7))
    assert half.user_ids.tolist() == [1, 2, 3, 4]
    assert half.item_ids.tolist() == [1, 2, 3]
    assert len(half) == 12


def test_yelp_subset_has_the_asked_shape_and_repeats_under_a_seed() -> None:
    ratings = triangle(40)
    one = yelp_subset(ratings, users=5, items=20, at_least=10, seed=3)
    assert (one.user_count, one.item_count) == (5, 20)
    assert one.item_ids.tolist() == list(range(1, 21))
    assert one.by_user.sizes.min() >= 10
    again = yelp_subset(ratings, users=5, items=20, at_least=10, seed=3)
    other = yelp_subset(ratings, users=5, items=20, at_least=10, seed=4)
    assert one.user_ids.tolist() == again.user_ids.tolist() != other.user_ids.tolist()


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1), st.integers(1, 5))
def test_libimseti_core_is_the_largest_part_where_all_have_enough(
    pairs: set[tuple[int, int]], at_least: int
) -> None:
    users, items = np.array(sorted(pairs)).T
    core = libimseti_core(Ratings.from_arrays(users, items), at_least=at_least)
    found = set(zip(core.user_ids[core.users].tolist(), core.item_ids[core.items].tolist(), strict=True))
    left = set(pairs)
    while True:  # the plain definition: strike out one weak user or item at a time
        weak = next(
            (
                (side, one)
                for side in (0, 1)
                for one in range(10)
                if 0 < sum(pair[side] == one for pair in left) < at_least
            ),
            None,
        )
        if weak is None:
            break
        left = {pair for pair in left if pair[weak[0]] != weak[1]}
    assert found == left


def test_only_items_keeps_the_named_items_and_all_users() -> None:
    kept = only_items(triangle(5), [2, "3", 99])
    assert kept.item_ids.tolist() == [2, 3]
    assert kept.user_count == 5
    assert len(kept) == 7


def test_preparations_refuse_senseless_numbers() -> None:
    with pytest.raises(ConfigError, match="at_least must be at least 1"):
        active_users(triangle(3), at_least=0)
