"""Normal numbers from words: for `noise`, and for fused kernels of recipes, which fill a slice at a time.

A group of blocks makes `NUMBERS` numbers. A slice that starts at a multiple of NUMBERS within a larger array
is filled alone, with the numbers it would have got with the whole, by starting at `block_of(start)`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from cofactor.chacha import BLOCKS, WORDS, Words, check_counter, fill_group, one_word
from cofactor.compiled import inlined, kernel

NUMBERS = WORDS
"""Normal numbers that a group of blocks makes."""
TAIL = 1 << 12
"""A radius word below this, one in a million, gets 32 bits more: 32 bits alone end at 6.8 deviations."""

Reals = NDArray[np.float32]

_PAIRS = WORDS // 2
_NONCE = np.uint64(0)
_NONCE_OF_TAILS = np.uint64(1)

_F = np.float32
_I = np.int32
_U = np.uint32


@kernel
def block_of(start: int) -> np.uint64:
    """Return the block from which the numbers from `start` on are made, a multiple of NUMBERS."""
    return np.uint64(start // NUMBERS) * np.uint64(BLOCKS)


@kernel
def fill_gaussian(out: Reals, key: Words, first: np.uint64, deviation: np.float32, rounds: int) -> None:
    """Fill a slice with independent normal numbers of mean 0, from block `first` on.

    They reach 9.4 deviations. A key and a block serve once: who uses them again repeats the noise.
    """
    groups = -(-out.size // NUMBERS)
    # A plain integer is signed, and mixed with unsigned ones it would become a float.
    beginning = np.uint64(first)
    check_counter(beginning, groups)
    words = np.empty(WORDS, np.uint32)
    spare = np.empty(NUMBERS, np.float32)
    for group in range(groups):
        part = out[group * NUMBERS : (group + 1) * NUMBERS]
        target = part if part.size == NUMBERS else spare
        block = beginning + np.uint64(group * BLOCKS)
        fill_group(words, key, _NONCE, block, rounds)
        transform(words, target, key, block, deviation, rounds)
        if part.size < NUMBERS:
            for place in range(part.size):
                part[place] = spare[place]


@kernel
def transform(
    words: Words, out: Reals, key: Words, first: np.uint64, deviation: np.float32, rounds: int
) -> None:
    """Turn a group of words into normal numbers, two from each pair of words (Box and Muller 1958).

    The first half of the words are radii, the second half directions.
    """
    least = _U(0xFFFFFFFF)
    for pair in range(_PAIRS):
        least = min(least, words[pair])
        size = deviation * radius(words[pair])
        across, along = direction(words[_PAIRS + pair])
        out[pair] = size * across
        out[_PAIRS + pair] = size * along
    if least < TAIL:
        _redo_tails(words, out, key, first, deviation, rounds)


@kernel
def _redo_tails(
    words: Words, out: Reals, key: Words, first: np.uint64, deviation: np.float32, rounds: int
) -> None:
    for pair in range(_PAIRS):
        if words[pair] < TAIL:
            # Eight pairs to a block, as in the group itself.
            more = one_word(key, _NONCE_OF_TAILS, first + np.uint64(pair // 8), pair % 8, rounds)
            size = deviation * _F(far_radius(words[pair], more))
            across, along = direction(words[_PAIRS + pair])
            out[pair] = size * across
            out[_PAIRS + pair] = size * along


@kernel
def far_radius(word: np.uint32, more: np.uint32) -> float:
    """Return sqrt(-2 ln u) for u = (2^32 word + more + 1/2) / 2^64, where word < TAIL."""
    u = (np.float64(word) * 2.0**32 + np.float64(more) + 0.5) * 2.0**-64
    return math.sqrt(-2.0 * math.log(u))


@inlined
def radius(word: np.uint32) -> np.float32:
    """Return sqrt(-2 ln u) for u = (word + 1/2) / 2^32, to a relative error below 3e-7.

    The logarithm's polynomial is that of the Cephes library, for m - 1 with m between sqrt(1/2) and sqrt(2).
    """
    # As a signed number the word gives u below one half and u - 1 above: both keep their small digits.
    x = _F(_I(word)) * _F(2.0**-32) + _F(2.0**-33)
    u = x if x > _F(0) else _F(1) + x
    bits = _as_bits(u)
    power = _I(_I(bits - _I(0x3F3504F3)) >> _I(23))
    m = _as_float(_I(bits - _I(power << _I(23))))
    f = x if power == _I(0) else m - _F(1)
    p = _F(7.0376836292e-2)
    p = p * f - _F(1.1514610310e-1)
    p = p * f + _F(1.1676998740e-1)
    p = p * f - _F(1.2420140846e-1)
    p = p * f + _F(1.4249322787e-1)
    p = p * f - _F(1.6668057665e-1)
    p = p * f + _F(2.0000714765e-1)
    p = p * f - _F(2.4999993993e-1)
    p = p * f + _F(3.3333331174e-1)
    logarithm = f + (f * f * (p * f - _F(0.5)) + _F(power) * _F(math.log(2)))
    return np.sqrt(_F(-2) * logarithm)  # type: ignore[no-any-return]


@inlined
def direction(word: np.uint32) -> tuple[np.float32, np.float32]:
    """Return one of 2^32 points of the unit circle; with each point come its mirror images in both axes.

    Thirty bits are an angle within 45 degrees of an axis; one says which axis, one which end of it. The
    angles lie half a step beside 0, so that each has its negative: the mean is exactly 0. The polynomials are
    those of Cephes.
    """
    angle = _F(_I(_I(word << _U(2)) | _I(2))) * _F(math.pi / 4 / 2**31)
    z = angle * angle
    p = _F(-1.9515295891e-4) * z + _F(8.3321608736e-3)
    p = p * z - _F(1.6666654611e-1)
    sine = angle * z * p + angle
    q = _F(2.443315711809948e-5) * z - _F(1.388731625493765e-3)
    q = q * z + _F(4.166664568298827e-2)
    cosine = z * (z * q - _F(0.5)) + _F(1)
    end = cosine if word & _U(0x40000000) else -cosine
    return (end, sine) if word & _U(0x80000000) else (sine, end)


@inlined
def _as_bits(number: np.float32) -> np.int32:
    return _F(number).view(np.int32)


@inlined
def _as_float(bits: np.int32) -> np.float32:
    return _I(bits).view(np.float32)
