"""A user's share in what is released: at most so many entries, or weights that add up to at most one user's.

Group g of `ptr`, entries ptr[g] to ptr[g + 1], belongs to one user. What a user keeps depends on that user's
entries alone, so that neighbours differ in nobody else.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.chacha import ROUNDS, fill
from cofactor.compiled import kernel
from cofactor.config import whole
from cofactor.errors import ConfigError
from cofactor.privacy.clipping import MARGIN, Offsets, checked_groups, checked_limit, checked_reals
from cofactor.randomness import Key, Random


def trimmed(ptr: ArrayLike, most: int, random: Random) -> NDArray[np.bool_]:
    """Choose at most `most` entries of each user, all sets of that size equally likely."""
    whole(most=most)
    return _chosen(_groups(ptr), most, random.new_key())


def weights(
    ptr: ArrayLike, *, least: float = 1.0, importance: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Weigh each user's entries such that the squares of the weights sum to less than 1, in float32 too.

    Equal weights by default, as many as the user has entries; users with fewer than `least` entries weigh
    less than others. With `importance`, public numbers for each entry such as those of its item, weights are
    in proportion to them, and `least` is compared with the sum of their squares.

    Entries that land in different rows, each of length 1 at most, then sum to a length below 1. Entries that
    land in the same row do not: trim them.
    """
    least = checked_limit("least", least)
    groups = _groups(ptr)
    entries = np.ones(groups[-1]) if importance is None else checked_reals("importance", importance, 1)
    if len(entries) != groups[-1]:
        raise ConfigError("importance must have one number for each entry.")
    return _weighed(groups, entries, least)


def _groups(ptr: ArrayLike) -> Offsets:
    ends = np.asarray(ptr).reshape(-1)[-1:]
    return checked_groups(ptr, ends[0] if len(ends) else 0)


@kernel
def _chosen(ptr: Offsets, most: int, key: Key) -> NDArray[np.bool_]:
    """Selection sampling (Knuth's algorithm S); the user's place among users is the nonce of the stream."""
    chosen = np.ones(ptr[-1], np.bool_)
    for group in range(ptr.size - 1):
        size, wanted = ptr[group + 1] - ptr[group], most
        if size > most:
            words = np.empty(2 * size, np.uint32)
            fill(words, key, np.uint64(group), np.uint64(0), ROUNDS)
            for at in range(size):
                chance = (words[2 * at] + words[2 * at + 1] / 2.0**32) / 2.0**32
                chosen[ptr[group] + at] = chance * (size - at) < wanted
                wanted -= chosen[ptr[group] + at]
    return chosen


@kernel
def _weighed(ptr: Offsets, entries: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    out = np.empty(entries.size, np.float64)
    for group in range(ptr.size - 1):
        squares = 0.0
        for at in range(ptr[group], ptr[group + 1]):
            squares += np.float64(entries[at]) ** 2
        scale = (1 - MARGIN) / math.sqrt(max(squares, least))
        for at in range(ptr[group], ptr[group + 1]):
            out[at] = entries[at] * scale
    return out
