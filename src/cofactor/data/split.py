"""Ways to hold ratings back for testing. Each returns (train, test) with the numbering of the whole."""

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.config import fraction, whole
from cofactor.data.grouping import Offsets, Times
from cofactor.data.ratings import Ratings
from cofactor.errors import DataError
from cofactor.randomness import Seeds

Parts = tuple[Ratings, Ratings]
Mask = NDArray[np.bool_]


def by_fraction(ratings: Ratings, test: float = 0.1, *, seed: int = 0) -> Parts:
    """Hold back a random fraction of each user's ratings.

    A user with n ratings gives test * n of them, rounded to the nearest whole number (halves upwards),
    and keeps at least one for training.
    """
    return _random_of_each_user(ratings, _shares(ratings, test), seed)


def leave_out(ratings: Ratings, k: int = 1, *, seed: int = 0) -> Parts:
    """Hold back k random ratings of each user; whoever has k or fewer keeps one for training."""
    whole(k=k)
    return _random_of_each_user(ratings, _but_one(ratings, np.full(ratings.user_count, k)), seed)


def by_time(ratings: Ratings, moment: int) -> Parts:
    """Train on what was rated before a moment, in seconds as `times` are; test on the rest."""
    times = _times(ratings)
    first, last = int(times.min()), int(times.max())
    if not first < moment <= last:
        raise DataError(
            f"no split at time {moment}: the ratings run from {first} to {last}. "
            f"Choose a moment from {first + 1} to {last}."
        )
    return _parts(ratings, times >= moment)


def latest(ratings: Ratings, test: float = 0.1) -> Parts:
    """Hold back each user's latest ratings; how many, is as in `by_fraction`. Later rows win ties in time."""
    times = _times(ratings)
    return _parts(ratings, _latest(ratings.by_user.ptr, _shares(ratings, test), times))


def cold_users(ratings: Ratings, test: float = 0.1, *, seed: int = 0) -> Parts:
    """Hold back all ratings of a random fraction of the users, so that training never met them."""
    chosen = _cold(ratings.by_user.sizes, test, "users", seed)
    return _parts(ratings, chosen[ratings.users])


def cold_items(ratings: Ratings, test: float = 0.1, *, seed: int = 0) -> Parts:
    """Hold back all ratings of a random fraction of the items, so that training never met them."""
    sizes = np.bincount(ratings.items, minlength=ratings.item_count)
    return _parts(ratings, _cold(sizes, test, "items", seed)[ratings.items])


def _parts(ratings: Ratings, held_back: Mask) -> Parts:
    return ratings.where(~held_back), ratings.where(held_back)


def _shares(ratings: Ratings, test: float) -> NDArray[np.int64]:
    fraction(test=test)
    return _but_one(ratings, np.floor(ratings.by_user.sizes * test + 0.5).astype(np.int64))


def _but_one(ratings: Ratings, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    counts = np.minimum(wanted, np.maximum(ratings.by_user.sizes - 1, 0))
    if counts.sum() == 0:
        raise DataError(
            f"no rating can be held back: the busiest of {ratings.user_count:,} users has "
            f"{int(ratings.by_user.sizes.max(initial=0))}. Hold back more, or use cold_users."
        )
    return counts


def _random_of_each_user(ratings: Ratings, counts: NDArray[np.int64], seed: int) -> Parts:
    chances = Seeds(seed).generator("split ratings").random(len(ratings))
    return _parts(ratings, _choose(ratings.by_user.ptr, counts, chances))


def _cold(sizes: NDArray[np.int64], test: float, side: str, seed: int) -> Mask:
    """Choose a fraction of those who have ratings: at least one, and never all."""
    fraction(test=test)
    rated = np.flatnonzero(sizes)
    if len(rated) < 2:
        raise DataError(
            f"cold {side} need at least 2 {side} with ratings, there are {len(rated)}. Use by_fraction."
        )
    count = min(max(int(np.floor(len(rated) * test + 0.5)), 1), len(rated) - 1)
    chosen = np.zeros(len(sizes), np.bool_)
    chosen[Seeds(seed).generator(f"split cold {side}").choice(rated, count, replace=False)] = True
    return chosen


def _times(ratings: Ratings) -> Times:
    if len(ratings) == 0:
        raise DataError("there are no ratings to split.")
    if ratings.times is None:
        raise DataError("these ratings have no times. Name their column when reading, or use by_fraction.")
    return ratings.times


@kernel
def _choose(ptr: Offsets, counts: NDArray[np.int64], chances: NDArray[np.float64]) -> Mask:
    """Choose counts[g] of group g's positions, all sets equally likely (selection sampling, Knuth's S)."""
    chosen = np.zeros(chances.size, np.bool_)
    for g in range(ptr.size - 1):
        wanted = counts[g]
        for position in range(ptr[g], ptr[g + 1]):
            if chances[position] * (ptr[g + 1] - position) < wanted:
                chosen[position] = True
                wanted -= 1
    return chosen


@kernel
def _latest(ptr: Offsets, counts: NDArray[np.int64], times: Times) -> Mask:
    chosen = np.zeros(times.size, np.bool_)
    for g in range(ptr.size - 1):
        order = np.argsort(times[ptr[g] : ptr[g + 1]], kind="mergesort")
        for rank in range(order.size - counts[g], order.size):
            chosen[ptr[g] + order[rank]] = True
    return chosen
