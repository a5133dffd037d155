"""What counts for `MultiViewMF`: the weights c of ratings, and of what was not rated, whose rating is 0.

Decoys are unrated items that a user pretends to have rated. They are drawn once, at home and in secret, and
stay the same in all rounds: if they were drawn anew, what stays in every round would be what was rated.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cofactor.chacha import ROUNDS, fill
from cofactor.compiled import kernel
from cofactor.config import fraction, not_negative, plain_numbers
from cofactor.data.grouping import Grouped, Index, Offsets, offsets
from cofactor.randomness import Key

Reals = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ObsOnly:
    """Only what was rated counts: best for predicted ratings."""


@dataclass(frozen=True, kw_only=True)
class InclUnc:
    """All that was not rated counts a little: best for finding what a user will choose."""

    alpha: float = 0.1
    """Weight of what was not rated; a rating has 1."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        fraction(alpha=self.alpha)


@dataclass(frozen=True, kw_only=True)
class SampledUnrated:
    """Some of what was not rated counts a little: equation (36)."""

    alpha: float = 0.1
    """Weight of a decoy; a rating has 1."""
    rho: float = 1.0
    """Decoys for each rating that a user has, if so many items are left."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        fraction(alpha=self.alpha)
        not_negative(rho=self.rho)


Unrated = ObsOnly | InclUnc | SampledUnrated


class Entries(NamedTuple):
    """What counts at a party, user by user; what has no entry counts alike everywhere."""

    ptr: Offsets
    items: Index
    """The item of each entry."""
    values: Reals
    """Its rating, 0 for a decoy."""
    weights: Reals
    everywhere: float
    """The weight of what has no entry."""

    def window(self, start: int, stop: int) -> "Entries":
        """Return the entries of users from start to stop."""
        first, last = self.ptr[start], self.ptr[stop]
        part = (self.items[first:last], self.values[first:last], self.weights[first:last])
        return Entries(self.ptr[start : stop + 1] - first, *part, self.everywhere)

    def dense(self, item_count: int) -> "Entries":
        """Return the same with an entry for every user and item."""
        count = len(self.ptr) - 1
        places = np.repeat(np.arange(count), np.diff(self.ptr)) * item_count + self.items
        values, weights = np.zeros(count * item_count), np.full(count * item_count, self.everywhere)
        values[places], weights[places] = self.values, self.weights
        index = np.tile(np.arange(item_count, dtype=np.int32), count)
        return Entries(np.arange(count + 1) * item_count, index, values, weights, 0.0)


def entries_of(ratings: Grouped, unrated: Unrated, item_count: int, key: Key) -> Entries:
    """Return all that counts; decoys follow from the key, which must stay secret, and the same."""
    values = ratings.values.astype(np.float64)
    if not isinstance(unrated, SampledUnrated):
        everywhere = unrated.alpha if isinstance(unrated, InclUnc) else 0.0
        return Entries(ratings.ptr, ratings.index, values, np.ones(len(values)), everywhere)
    sizes = ratings.sizes
    decoys = np.minimum(np.rint(unrated.rho * sizes), item_count - sizes).astype(np.int64)
    ptr = offsets(sizes + decoys)
    index, weights = with_decoys(ratings.ptr, ratings.index, ptr, item_count, unrated.alpha, key)
    told = np.zeros(len(index))
    told[weights == 1.0] = values
    return Entries(ptr, index, told, weights, 0.0)


@kernel
def with_decoys(
    ptr: Offsets, index: Index, wider: Offsets, item_count: int, alpha: float, key: Key
) -> tuple[Index, Reals]:
    """Return each user's items and, after them, decoys that fill up `wider`; and all weights.

    All sets of as many unrated items are equally likely (Knuth's algorithm S); the user's place among users
    is the nonce of the stream.
    """
    items, weights = np.empty(wider[-1], np.int32), np.full(wider[-1], alpha)
    words, is_rated = np.empty(2 * item_count, np.uint32), np.zeros(item_count, np.bool_)
    for user in range(ptr.size - 1):
        at, own = wider[user], index[ptr[user] : ptr[user + 1]]
        items[at : at + own.size], weights[at : at + own.size] = own, 1.0
        is_rated[own] = True
        at, left = at + own.size, item_count - own.size
        fill(words, key, np.uint64(user), np.uint64(0), ROUNDS)
        for item in range(item_count):
            if is_rated[item]:
                continue
            # 53 bits, which float64 holds exactly: more could round to 1, and a user would have too few.
            chance = (words[2 * item] * 2.0**21 + (words[2 * item + 1] >> 11)) / 2.0**53
            if chance * left < wider[user + 1] - at:
                items[at] = item
                at += 1
            left -= 1
        is_rated[own] = False
    return items, weights
