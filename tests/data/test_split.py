from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.data import split
from cofactor.data.grouping import offsets
from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import Shape, make
from cofactor.errors import CofactorError, ConfigError, DataError

Way = Callable[[Ratings], tuple[Ratings, Ratings]]
WAYS: dict[str, Way] = {
    "by_fraction": lambda ratings: split.by_fraction(ratings, 0.3, seed=2),
    "leave_out": lambda ratings: split.leave_out(ratings, 2, seed=2),
    "by_time": lambda ratings: split.by_time(ratings, middle_time(ratings)),
    "latest": lambda ratings: split.latest(ratings, 0.3),
    "cold_users": lambda ratings: split.cold_users(ratings, 0.3, seed=2),
    "cold_items": lambda ratings: split.cold_items(ratings, 0.3, seed=2),
}


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(Shape(users=60, items=90, ratings=1500, minimum=4), seed=5).ratings


def middle_time(ratings: Ratings) -> int:
    assert ratings.times is not None
    return int(np.sort(ratings.times)[len(ratings) // 2])


def pairs(ratings: Ratings) -> list[tuple[int, int, float, int]]:
    times = np.zeros(len(ratings), np.int64) if ratings.times is None else ratings.times
    rows = zip(ratings.users, ratings.items, ratings.values, times, strict=True)
    return sorted((int(u), int(i), float(v), int(t)) for u, i, v, t in rows)


def with_sizes(sizes: list[int], times: bool = False) -> Ratings:
    users = np.repeat(np.arange(len(sizes)), sizes)
    items = np.concatenate([np.arange(size) for size in sizes]) if sizes else np.array([], np.int64)
    count = max(sizes, default=0)
    return Ratings.from_rows(
        users, items, items % 5 + 1.0, user_ids=np.arange(len(sizes)), item_ids=np.arange(count),
        times=np.arange(len(users))[::-1] if times else None,
    )  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
def test_every_rating_lands_in_exactly_one_part_and_keeps_its_numbers(name: str, ratings: Ratings) -> None:
    train, test = WAYS[name](ratings)
    assert 0 < len(test) < len(ratings)
    assert sorted(pairs(train) + pairs(test)) == pairs(ratings)
    for part in (train, test):
        assert np.array_equal(part.user_ids, ratings.user_ids)
        assert np.array_equal(part.item_ids, ratings.item_ids)
        assert part.scale == ratings.scale


@pytest.mark.parametrize("name", ["by_fraction", "leave_out", "cold_users", "cold_items"])
def test_seed_repeats_a_split_and_another_seed_changes_it(name: str, ratings: Ratings) -> None:
    way = getattr(split, name)
    assert pairs(way(ratings, seed=1)[1]) == pairs(way(ratings, seed=1)[1])
    assert pairs(way(ratings, seed=1)[1]) != pairs(way(ratings, seed=2)[1])


@given(
    st.lists(st.integers(0, 25), min_size=1, max_size=12).filter(lambda sizes: max(sizes) > 3),
    st.floats(0.2, 0.95),
)
@settings(max_examples=50)
def test_fraction_rounds_halves_up_and_leaves_one_for_training(sizes: list[int], fraction: float) -> None:
    ratings = with_sizes(sizes, times=True)
    wanted = [max(min(int(np.floor(size * fraction + 0.5)), size - 1), 0) for size in sizes]
    for _, test in (split.by_fraction(ratings, fraction), split.latest(ratings, fraction)):
        assert test.by_user.sizes.tolist() == wanted


def test_tenth_of_twenty_and_of_twenty_five_ratings() -> None:
    assert split.by_fraction(with_sizes([20, 25, 4, 5]), 0.1)[1].by_user.sizes.tolist() == [2, 3, 0, 1]


def test_leave_out_takes_k_of_everybody_who_can_spare_them() -> None:
    assert split.leave_out(with_sizes([9, 3, 2, 1, 0]), 2)[1].by_user.sizes.tolist() == [2, 2, 1, 0, 0]


def test_every_rating_of_a_user_is_equally_likely_to_be_held_back() -> None:
    ratings = with_sizes([10] * 4000)
    _, test = split.by_fraction(ratings, 0.3, seed=0)
    counts = np.bincount(test.items, minlength=10)
    assert counts.sum() == 12_000
    # Each count has mean 1200 and standard deviation 29; six of them are exceeded once in 1e8 runs.
    assert np.abs(counts - 1200).max() < 174


def test_choose_kernel_equals_its_plain_twin() -> None:
    ptr, wanted = offsets(np.array([5, 0, 3])), np.array([2, 0, 3])
    chances = np.array([0.9, 0.1, 0.6, 0.3, 0.2, 0.99, 0.99, 0.99])
    # After one of five, two of the remaining four are wanted, and so on.
    assert split._choose(ptr, wanted, chances).tolist() == [False, True, False, True, False, True, True, True]


def test_latest_takes_each_users_last_ratings_whatever_their_order() -> None:
    times = [50, 10, 30, 20, 7, 7, 7]
    ratings = Ratings.from_arrays([1, 1, 1, 1, 2, 2, 2], range(7), [1, 2, 3, 4, 5, 1, 2], times=times)
    _, test = split.latest(ratings, 0.5)
    assert sorted(test.items.tolist()) == [0, 2, 5, 6]


def test_later_rows_win_ties_in_time() -> None:
    ratings = Ratings.from_arrays([1] * 100, range(100), np.arange(100) % 5, times=[7] * 100)
    assert sorted(split.latest(ratings, 0.1)[1].items.tolist()) == list(range(90, 100))


def test_time_split_trains_on_the_past_only(ratings: Ratings) -> None:
    moment = middle_time(ratings)
    train, test = split.by_time(ratings, moment)
    assert train.times is not None
    assert test.times is not None
    assert train.times.max() < moment <= test.times.min()


def test_cold_users_are_unknown_in_training(ratings: Ratings) -> None:
    train, test = split.cold_users(ratings, 0.25, seed=1)
    assert (train.by_user.sizes * test.by_user.sizes == 0).all()
    assert np.count_nonzero(test.by_user.sizes) == 15


def test_cold_items_are_unknown_in_training(ratings: Ratings) -> None:
    train, test = split.cold_items(ratings, 0.1, seed=1)
    assert (train.by_item.sizes * test.by_item.sizes == 0).all()
    assert np.count_nonzero(test.by_item.sizes) == 9


def test_number_of_cold_users_and_items_is_rounded_halves_up() -> None:
    for count, fraction, wanted in ((7, 0.25, 2), (10, 0.25, 3), (9, 0.25, 2)):
        ratings = with_sizes([count] * count)
        assert np.count_nonzero(split.cold_users(ratings, fraction)[1].by_user.sizes) == wanted
        assert np.count_nonzero(split.cold_items(ratings, fraction)[1].by_item.sizes) == wanted


def test_cold_split_takes_at_least_one_and_never_all() -> None:
    ratings = with_sizes([3, 3, 0])
    for fraction in (0.01, 0.99):
        assert np.count_nonzero(split.cold_users(ratings, fraction)[1].by_user.sizes) == 1


def test_implicit_ratings_can_be_split() -> None:
    train, test = split.by_fraction(Ratings.from_arrays([1] * 10, range(10)), 0.2)
    assert train.implicit
    assert test.implicit
    assert len(test) == 2


MISTAKES: list[tuple[Callable[[], object], type[CofactorError], str]] = [
    (lambda: split.by_fraction(with_sizes([9]), 0.0), ConfigError, "test must lie between 0 and 1"),
    (lambda: split.by_fraction(with_sizes([9]), 1), ConfigError, "test must lie between 0 and 1"),
    (lambda: split.latest(with_sizes([9], times=True), 2), ConfigError, "test must lie between 0 and 1"),
    (lambda: split.leave_out(with_sizes([9]), 0), ConfigError, "k must be at least 1"),
    (lambda: split.by_fraction(with_sizes([9]), seed=-1), ConfigError, "seed must be a whole number"),
    (lambda: split.by_fraction(with_sizes([1, 1])), DataError, "the busiest of 2 users has 1"),
    (lambda: split.by_fraction(with_sizes([4, 4]), 0.1), DataError, "Hold back more, or use cold_users"),
    (lambda: split.by_fraction(with_sizes([])), DataError, "no rating can be held back"),
    (lambda: split.latest(with_sizes([9])), DataError, "have no times. Name their column"),
    (lambda: split.by_time(with_sizes([9]), 5), DataError, "have no times. Name their column"),
    (lambda: split.by_time(with_sizes([9], times=True), 0), DataError, "Choose a moment from 1 to 8"),
    (lambda: split.by_time(with_sizes([9], times=True), 9), DataError, "Choose a moment from 1 to 8"),
    (lambda: split.by_time(with_sizes([], times=True), 9), DataError, "no ratings to split"),
    (lambda: split.cold_users(with_sizes([9])), DataError, "at least 2 users with ratings, there are 1"),
    (lambda: split.cold_items(with_sizes([1, 1])), DataError, "at least 2 items with ratings, there are 1"),
]


@pytest.mark.parametrize(("call", "kind", "message"), MISTAKES)
def test_mistake_gets_a_message_with_a_remedy(
    call: Callable[[], object], kind: type[CofactorError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        call()
