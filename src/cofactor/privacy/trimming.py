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
from cofactor.privacy.clipping import MARGIN, Offsets, Reals, checked_groups, checked_limit, checked_reals
from cofactor.randomness import Key, Random


def trimmed(ptr: ArrayLike, most: int, random: Random) -> NDArray[np.bool_]:
    """Choose at most `most` entries of each user, all sets of that size equally likely."""
    whole(most=most)
    return _chosen(checked_groups(ptr), most, random.new_key())


def weights(
    ptr: ArrayLike, *, least: float = 1.0, importance: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Weigh each user's entries such that the squares of a user's weights sum to less than 1, in float32 too.

    By default each entry weighs 1 / sqrt(max(count, least)), where count is how many the user has: `least`
    keeps users with very few entries from speaking louder than others. With `importance`, public numbers for
    each entry such as those of its item, weights are in proportion to them, and the sum of their squares
    takes the place of the count.

    Terms of length 1 that land in different rows then add up to a length below 1 for each user. Terms that
    land in the same row can add up to more: trim those.
    """
    least = checked_limit("least", least)
    groups = checked_groups(ptr)
    entries: Reals = np.ones(groups[-1])
    if importance is not None:
        entries = checked_reals("importance", importance, dimensions=1)
    if len(entries) != groups[-1]:
        raise ConfigError("importance must have one number for each entry.")
    return _weighed(groups, entries, least)


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
                # 53 bits, which float64 holds exactly: more could round to 1, and a user would keep too few.
                chance = (words[2 * at] * 2.0**21 + (words[2 * at + 1] >> 11)) / 2.0**53
                chosen[ptr[group] + at] = chance * (size - at) < wanted
                wanted -= chosen[ptr[group] + at]
    return chosen


@kernel
def _weighed(ptr: Offsets, entries: Reals, least: float) -> NDArray[np.float64]:
    out = np.empty(entries.size, np.float64)
    for group in range(ptr.size - 1):
        squares = 0.0
        for at in range(ptr[group], ptr[group + 1]):
            squares += np.float64(entries[at]) ** 2
        scale = (1 - MARGIN) / math.sqrt(max(squares, least))
        for at in range(ptr[group], ptr[group + 1]):
            out[at] = entries[at] * scale
    return out
