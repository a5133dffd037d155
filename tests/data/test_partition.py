from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.data.partition import _sizes, by_category, horizontal, on_device, vertical
from cofactor.data.ratings import Ratings, Scale
from cofactor.data.synthetic import Shape, Synthetic, make
from cofactor.errors import CofactorError, ConfigError, DataError


@pytest.fixture(scope="module")
def made() -> Synthetic:
    return make(Shape(users=60, items=90, ratings=1500, minimum=4), seed=5)


def by_id(parts: Sequence[Ratings]) -> list[tuple[object, object, float]]:
    found = []
    for part in parts:
        users, items = part.user_ids[part.users].tolist(), part.item_ids[part.items].tolist()
        found += list(zip(users, items, part.values.tolist(), strict=True))
    return sorted(found)


@given(
    users=st.integers(1, 12),
    items=st.integers(1, 12),
    filled=st.floats(0, 1),
    parties=st.integers(1, 12),
    skew=st.sampled_from((0.0, 1.0, 3.0, 1000.0)),
    seed=st.integers(0, 9),
)
@settings(deadline=None, max_examples=80)
def test_every_rating_lands_exactly_once(
    users: int, items: int, filled: float, parties: int, skew: float, seed: int
) -> None:
    rows, columns = np.nonzero(np.random.default_rng(seed).random((users, items)) < filled)
    ratings = Ratings.from_rows(
        rows, columns, rows + columns + 1.0, user_ids=np.arange(users), item_ids=np.arange(items),
        scale=Scale(1, 25),
    )  # fmt: skip
    if parties <= users:
        parts = horizontal(ratings, parties, skew=skew, seed=seed)
        assert [len(part.user_ids) > 0 for part in parts] == [True] * parties
        assert by_id(parts) == by_id([ratings])
    if parties <= items:
        parts = vertical(ratings, parties, skew=skew, seed=seed)
        assert [len(part.item_ids) > 0 for part in parts] == [True] * parties
        assert by_id(parts) == by_id([ratings])
    assert by_id(on_device(ratings)) == by_id([ratings])
    genres = [("abc"[k % 3], "bcd"[k % 2])[: k % 3] for k in range(items)]
    assert by_id(list(by_category(ratings, genres).values())) == by_id([ratings])


def test_horizontal_parties_hold_different_users_and_share_the_items(made: Synthetic) -> None:
    parts = horizontal(made.ratings, 7, seed=1)
    assert sorted(np.concatenate([part.user_ids for part in parts])) == list(range(1, 61))
    assert all(np.array_equal(part.item_ids, made.ratings.item_ids) for part in parts)
    assert sorted(part.user_count for part in parts) == [8, 8, 8, 9, 9, 9, 9]


def test_vertical_parties_hold_different_items_and_share_the_users(made: Synthetic) -> None:
    parts = vertical(made.ratings, 4, seed=1)
    assert sorted(np.concatenate([part.item_ids for part in parts])) == list(range(1, 91))
    assert all(np.array_equal(part.user_ids, made.ratings.user_ids) for part in parts)
    assert sorted(part.item_count for part in parts) == [22, 22, 23, 23]


def test_skew_makes_parties_uneven(made: Synthetic) -> None:
    even, uneven = (
        [part.item_count for part in vertical(made.ratings, 10, skew=skew, seed=3)] for skew in (0, 1.5)
    )
    assert max(even) - min(even) <= 1
    assert max(uneven) > 3 * np.median(uneven)


def test_seed_repeats_a_partition_and_another_changes_it(made: Synthetic) -> None:
    first, again, other = (horizontal(made.ratings, 3, seed=seed)[0].user_ids for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_sizes_go_by_largest_remainder() -> None:
    assert _sizes(np.array([0.5, 0.3, 0.2]), 12).tolist() == [5, 4, 3]
    assert _sizes(np.array([1.0, 0.0, 0.0]), 5).tolist() == [3, 1, 1]


def test_item_goes_to_its_category_with_the_fewest_items() -> None:
    ratings = Ratings.from_arrays([1] * 6, range(6), [1, 2, 3, 4, 5, 1])
    genres = [["Drama"], ["Drama", "War"], ["War", "Comedy"], ["Comedy"], ["Drama", "Comedy"], []]
    # Drama has three items, War two, Comedy three; Comedy comes before Drama by name.
    parts = by_category(ratings, genres)
    held = {name: part.item_ids.tolist() for name, part in parts.items()}
    assert held == {"Comedy": [3, 4], "Drama": [0], "War": [1, 2], "no category": [5]}
    assert all(part.user_ids.tolist() == [1] for part in parts.values())


def test_category_that_an_item_lists_twice_counts_once() -> None:
    ratings = Ratings.from_arrays([1] * 2, range(2), [1, 2])
    parts = by_category(ratings, [["War", "War", "Drama"], ["Drama"]])
    assert {name: part.item_ids.tolist() for name, part in parts.items()} == {"Drama": [1], "War": [0]}


def test_rule_for_categories_equals_a_plain_count(made: Synthetic) -> None:
    sizes = Counter(name for genres in made.item_genres for name in genres)
    for name, part in by_category(made.ratings, made.item_genres).items():
        for item in part.item_ids:
            genres = made.item_genres[item - 1]
            assert (sizes[name], name) == min((sizes[genre], genre) for genre in genres)


def test_devices_are_views_and_copy_nothing(made: Synthetic) -> None:
    devices = on_device(made.ratings)
    assert len(devices) == 60
    assert devices[3].user_ids.tolist() == [4]
    assert devices[-1].user_ids.tolist() == [60]
    assert all(np.shares_memory(device.values, made.ratings.values) for device in devices if len(device))
    assert [device.user_ids[0] for device in devices[10:12]] == [11, 12]
    with pytest.raises(IndexError):
        devices[60]


def test_device_without_ratings_is_there_and_empty() -> None:
    ratings = Ratings.from_rows([0], [0], user_ids=np.arange(2), item_ids=np.arange(1))
    assert [len(device) for device in on_device(ratings)] == [1, 0]


TINY = Ratings.from_arrays([1, 2], [1, 2], [1.0, 2.0])
MISTAKES: list[tuple[Callable[[], object], type[CofactorError], str]] = [
    (lambda: horizontal(TINY, 0), ConfigError, "parties must be at least 1"),
    (lambda: horizontal(TINY, 3), ConfigError, "2 users cannot be divided among 3 parties. Ask for fewer"),
    (lambda: vertical(TINY, 3), ConfigError, "2 items cannot be divided among 3 parties. Ask for fewer"),
    (lambda: vertical(TINY, 2, skew=-1), ConfigError, "skew must be 0 or more"),
    (lambda: by_category(TINY, [["a"]]), DataError, "lists 1 items but the ratings have 2"),
    (lambda: by_category(TINY, ["War", "Drama"]), DataError, 'has the category "War"; give a list'),
]


@pytest.mark.parametrize(("call", "kind", "message"), MISTAKES)
def test_mistake_gets_a_message_with_a_remedy(
    call: Callable[[], object], kind: type[CofactorError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        call()
