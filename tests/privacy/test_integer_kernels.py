from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor import chacha
from cofactor.chacha import BLOCKS, WORDS
from cofactor.privacy import tables
from cofactor.privacy.integer_kernels import look_up, set_limits, toss_coins
from cofactor.randomness import InsecureRandom, Key

U64 = NDArray[np.uint64]


def words_of(key: Key, nonce: int, count: int) -> NDArray[np.uint32]:
    words = np.empty(count, np.uint32)
    chacha.fill(words, key, np.uint64(nonce), np.uint64(0), 12)
    return words


def lower_halves(key: Key, count: int) -> list[int]:
    """Return the 64 bits that settle each draw's tie: two words, eight draws to a block."""
    groups = -(-count // (WORDS // 2))
    blocks = words_of(key, 1, groups * WORDS).reshape(groups, 16, BLOCKS).swapaxes(1, 2).reshape(-1, 2)
    return [int(left) << 32 | int(right) for left, right in blocks[:count].tolist()]


def drawn(key: Key, count: int, thresholds: list[int], shift: int, smallest: int = 0) -> list[int]:
    high = np.array([threshold >> 64 for threshold in thresholds], np.uint64)
    low = np.array([threshold % 2**64 for threshold in thresholds], np.uint64)
    out = np.empty(count, np.int64)
    guide = tables._guide(high, shift)
    for array in (high, low, guide):
        array.flags.writeable = False
    look_up(out, key, high, low, guide, np.uint64(shift), smallest)
    result: list[int] = out.tolist()
    return result


@pytest.mark.parametrize("count", [0, 1, WORDS // 2, 2500])
def test_draws_are_the_inverse_of_the_thresholds(count: int) -> None:
    key, table = InsecureRandom(1).new_key(), tables.discrete_gaussian(30.0)
    thresholds = [int(high) << 64 | int(low) for high, low in zip(table.high, table.low, strict=True)]
    uppers = words_of(key, 0, 2 * count).view(np.uint64).tolist()
    expected = [
        table.smallest + bisect_right(thresholds, upper << 64 | lower)
        for upper, lower in zip(uppers, lower_halves(key, count), strict=True)
    ]
    assert drawn(key, count, thresholds, table.shift, table.smallest) == expected


@pytest.mark.parametrize("shift", [63, 56, 48])
def test_ties_are_settled_with_the_lower_half(shift: int) -> None:
    key, count = InsecureRandom(2).new_key(), 2500
    uppers = words_of(key, 0, 2 * count).view(np.uint64).tolist()
    lowers = lower_halves(key, count)
    # Thresholds one below, at, and one above every number that will be drawn.
    numbers = [upper << 64 | lower for upper, lower in zip(uppers, lowers, strict=True)]
    thresholds = sorted(number + step for number in numbers for step in (-1, 0, 1))
    expected = [bisect_right(thresholds, number) for number in numbers]
    assert drawn(key, count, thresholds, shift) == expected
    assert sorted(expected) == [3 * k + 2 for k in range(count)]


@pytest.mark.parametrize(("trials", "count"), [(1, 5), (8, 80 * WORDS), (5, 2 * WORDS + 1)])
def test_heads_are_counted_as_in_plain_numpy(trials: int, count: int) -> None:
    key, theta = InsecureRandom(3).new_key(), 0.2
    shares = np.random.default_rng(0).uniform(-1, 1, count)
    out = np.empty(count, np.int32)
    assert toss_coins(out, shares, trials, theta, key)

    tiles = -(-count // (2 * WORDS))
    upper = words_of(key, 0, tiles * trials * WORDS).view(np.uint16).reshape(tiles, trials, 2 * WORDS)
    more = words_of(key, 1, tiles * trials * WORDS).reshape(-1, 16, BLOCKS).swapaxes(1, 2).reshape(-1)
    lower = np.stack([more & 0xFFFF, more >> 16], axis=1).reshape(tiles, trials, 2 * WORDS)
    tosses = (upper.astype(np.int64) << 16 | lower).swapaxes(1, 2).reshape(-1, trials)[:count]
    limits = np.rint(theta * shares * 2**32).astype(np.int64) + 2**31
    assert np.array_equal(out, (tosses < limits[:, None]).sum(axis=1))
    ties = (tosses >> 16) == (limits >> 16)[:, None]
    heads_by_tie = ties & (tosses < limits[:, None])
    # With this key: there must be some of both kinds for this test to tell.
    assert trials < 8 or 0 < heads_by_tie.sum() < ties.sum()


@given(theta=st.floats(1e-12, 0.4999999), share=st.floats(-1, 1))
@example(theta=0.25, share=1.0)
@example(theta=0.1, share=-1.0)
@example(theta=1e-11, share=1.0)
def test_coins_are_never_bent_by_more_than_theta(theta: float, share: float) -> None:
    limits = np.zeros(2, np.uint32)
    assert set_limits(limits, np.array([share, -share]), theta)
    heads = [Fraction(int(limit), 2**32) for limit in limits]
    for probability, sign in zip(heads, (1, -1), strict=True):
        assert abs(probability - Fraction(1, 2)) <= Fraction(theta)
        exact = Fraction(1, 2) + sign * Fraction(theta) * Fraction(share)
        assert abs(probability - exact) <= Fraction(1, 2**32)
    assert sum(heads) == 1


@pytest.mark.parametrize("bad", [1.0000001, -1.0000001, np.nan, np.inf, -np.inf])
def test_shares_outside_are_noticed_wherever_they_are(bad: float) -> None:
    for place in (0, 4999, 9999):
        shares = np.zeros(10_000)
        shares[place] = bad
        assert not toss_coins(np.empty(10_000, np.int32), shares, 1, 0.1, InsecureRandom(0).new_key())
