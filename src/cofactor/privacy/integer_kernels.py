"""Whole numbers from words: inversion of a law's table, and coins tossed many at a time.

Each kernel starts its key's stream at the first block. What seldom happens and needs more bits draws them
from the same key under another nonce, at its own place.
"""

import numpy as np
from numpy.typing import NDArray

from cofactor.chacha import BLOCKS, ROUNDS, WORDS, Words, fill_group, one_word
from cofactor.compiled import kernel

Thresholds = NDArray[np.uint64]

_DRAWS = WORDS // 2
_TOSSES = 2 * WORDS
_NONCE = np.uint64(0)
_NONCE_OF_TIES = np.uint64(1)


@kernel
def look_up(
    out: NDArray[np.int64],
    key: Words,
    high: Thresholds,
    low: Thresholds,
    guide: NDArray[np.int32],
    shift: np.uint64,
    smallest: int,
) -> None:
    """Draw by inversion: `smallest` and the number of 128-bit thresholds at or below a uniform number.

    `guide` says, for each value of the uniform number's leading bits (those above `shift`), how many
    thresholds lie below all numbers that begin so; it has one entry more, for all of them.
    """
    words = np.empty(WORDS, np.uint32)
    uniform = words.view(np.uint64)
    for start in range(0, out.size, _DRAWS):
        first = np.uint64(start // _DRAWS) * np.uint64(BLOCKS)
        fill_group(words, key, _NONCE, first, ROUNDS)
        part = out[start : start + _DRAWS]
        for place in range(part.size):
            upper = uniform[place]
            leading = upper >> shift
            index = count_below(high, upper, guide[leading], guide[leading + np.uint64(1)])
            if index < high.size and high[index] == upper:
                index = settle(high, low, index, _more_bits(key, first, place))
            part[place] = smallest + index


@kernel
def count_below(high: Thresholds, upper: np.uint64, least: int, most: int) -> int:
    """Return how many thresholds have an upper half below `upper`: at least `least` and at most `most`."""
    while least < most:
        middle = (least + most) >> 1
        if high[middle] < upper:
            least = middle + 1
        else:
            most = middle
    return least


@kernel
def settle(high: Thresholds, low: Thresholds, index: int, lower: np.uint64) -> int:
    """Count on over the thresholds whose upper half is that of `index`, as far as lower halves allow."""
    upper = high[index]
    while index < high.size and high[index] == upper and low[index] <= lower:
        index += 1
    return index


@kernel
def _more_bits(key: Words, first: np.uint64, place: int) -> np.uint64:
    block = first + np.uint64(place // 8)
    word = 2 * (place % 8)
    left = np.uint64(one_word(key, _NONCE_OF_TIES, block, word, ROUNDS))
    return left << np.uint64(32) | np.uint64(one_word(key, _NONCE_OF_TIES, block, word + 1, ROUNDS))


@kernel
def toss_coins(
    out: NDArray[np.int32], shares: NDArray[np.float64], trials: int, theta: float, key: Words
) -> bool:
    """Count heads in `trials` tosses of a coin for each share: probability 1/2 + theta share, to 2^-32.

    Return whether all shares lie within [-1, 1]; if not, the counts mean nothing.
    """
    words = np.empty(WORDS, np.uint32)
    limits = np.zeros(_TOSSES, np.uint32)
    upper = np.empty(_TOSSES, np.uint16)
    heads = np.empty(_TOSSES, np.uint16)
    first = np.uint64(0)
    within = True
    for start in range(0, out.size, _TOSSES):
        within &= set_limits(limits, shares[start : start + _TOSSES], theta)
        for place in range(_TOSSES):
            upper[place] = limits[place] >> np.uint32(16)
            heads[place] = 0
        for _ in range(trials):
            fill_group(words, key, _NONCE, first, ROUNDS)
            halves = words.view(np.uint16)
            if count_heads(heads, halves, upper):
                settle_ties(heads, halves, limits, key, first)
            first += np.uint64(BLOCKS)
        part = out[start : start + _TOSSES]
        for place in range(part.size):
            part[place] = heads[place]
    return within


@kernel
def set_limits(limits: NDArray[np.uint32], shares: NDArray[np.float64], theta: float) -> bool:
    """Set the numbers below which a 32-bit word means heads; never more than theta away from one half."""
    most = np.floor(theta * 2.0**32)
    within = True
    for place in range(shares.size):
        within &= abs(shares[place]) <= 1.0
        bend = min(max(np.rint(shares[place] * theta * 2.0**32), -most), most)
        limits[place] = np.uint32(np.int32(bend)) + np.uint32(0x80000000)
    return within


@kernel
def count_heads(heads: NDArray[np.uint16], halves: NDArray[np.uint16], upper: NDArray[np.uint16]) -> bool:
    """Toss every coin once with the upper 16 bits alone; return whether some could not tell."""
    ties = False
    for place in range(_TOSSES):
        heads[place] += np.uint16(halves[place] < upper[place])
        ties |= halves[place] == upper[place]
    return ties


@kernel
def settle_ties(
    heads: NDArray[np.uint16],
    halves: NDArray[np.uint16],
    limits: NDArray[np.uint32],
    key: Words,
    first: np.uint64,
) -> None:
    """Give 16 bits more to the tosses whose upper bits equal the limit's."""
    for place in range(_TOSSES):
        if np.uint32(halves[place]) == limits[place] >> np.uint32(16):
            word = one_word(key, _NONCE_OF_TIES, first + np.uint64(place // 32), place % 32 // 2, ROUNDS)
            lower = (word >> np.uint32(16 * (place % 2))) & np.uint32(0xFFFF)
            heads[place] += np.uint16(lower < limits[place] & np.uint32(0xFFFF))
