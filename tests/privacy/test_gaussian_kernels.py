"""Normal numbers: the map from words to numbers exactly, then its fruit statistically.

Each statistical check has a false-alarm rate below 1e-7 a run: see ODDS and DEVIATIONS.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cofactor import chacha
from cofactor.chacha import BLOCKS, WORDS
from cofactor.compiled import kernel
from cofactor.privacy import noise
from cofactor.privacy.gaussian_kernels import (
    NUMBERS,
    TAIL,
    block_of,
    direction,
    far_radius,
    fill_gaussian,
    radius,
    transform,
)
from cofactor.randomness import InsecureRandom, SecureRandom

ODDS = 1e-8
"""Least p-value that passes."""
DEVIATIONS = 5.8
"""Most standard deviations that pass: a normal number is beyond with probability 7e-9."""
PAIRS = WORDS // 2
SECURE = SecureRandom()

Words = NDArray[np.uint32]
Reals = NDArray[np.float64]


def random_words(groups: int, seed: int = 0) -> Words:
    return np.random.default_rng(seed).integers(0, 2**32, (groups, WORDS), dtype=np.uint32)


def transformed(groups: Words, key: Words | None = None, first: int = 0) -> Reals:
    """Return numbers in two columns, the pairs of all groups below each other."""
    key = np.zeros(8, np.uint32) if key is None else key
    out = np.empty(NUMBERS, np.float32)
    pairs = []
    for words in groups:
        transform(words, out, key, np.uint64(first), np.float32(1), 12)
        pairs.append(out.reshape(2, PAIRS).T.astype(np.float64))
    return np.concatenate(pairs)


def radii_of(words: Words) -> Reals:
    """Return sqrt(-2 ln u), u = (word + 1/2) / 2^32, in double precision."""
    below, above = (words + 0.5) * 2.0**-32, (~words + 0.5) * 2.0**-32
    return np.asarray(np.sqrt(-2 * np.where(words < 2**31, np.log(below), np.log1p(-above))))


def points_of(words: Words) -> Reals:
    """Return the points of the circle in double precision, written otherwise than in the kernel."""
    angles = ((words & np.uint32(2**30 - 1)).astype(np.int64) ^ 2**29) - 2**29 + 0.5
    end = np.where(words & np.uint32(2**30), np.cos(angles * 2.0**-31 * math.pi), 0)
    end -= np.where(words & np.uint32(2**30), 0, np.cos(angles * 2.0**-31 * math.pi))
    side = np.sin(angles * 2.0**-31 * math.pi)
    first = words >= 2**31
    return np.stack([np.where(first, end, side), np.where(first, side, end)], axis=1)


def test_numbers_are_those_of_the_formula_in_double_precision() -> None:
    groups = random_words(100)
    groups[:20, :PAIRS] >>= np.uint32(8)
    groups[20:40, :PAIRS] = ~(groups[20:40, :PAIRS] >> np.uint32(20))
    groups[40, :8] = [TAIL, TAIL + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 2, 3037000499, 3037000500]
    groups[:, :PAIRS] = np.maximum(groups[:, :PAIRS], TAIL)
    radii, points = radii_of(groups[:, :PAIRS].reshape(-1)), points_of(groups[:, PAIRS:].reshape(-1))
    errors = np.abs(transformed(groups) / radii[:, None] - points)
    # Float32 has 6e-8; the polynomials and the sums add a little.
    assert errors.max() < 4e-7


def test_every_number_has_its_negative_so_that_the_mean_is_exactly_zero() -> None:
    groups = random_words(50)
    numbers = transformed(groups)
    other_end, other_side = groups.copy(), groups.copy()
    other_end[:, PAIRS:] ^= np.uint32(2**30)
    other_side[:, PAIRS:] ^= np.uint32(2**30 - 1)
    # Both are one-to-one on words. One turns the sign of a pair's larger number, one that of its smaller.
    turned = transformed(other_end), transformed(other_side)
    larger = np.abs(numbers) > np.abs(numbers[:, ::-1])
    assert np.array_equal(turned[0], np.where(larger, -numbers, numbers))
    assert np.array_equal(turned[1], np.where(larger, numbers, -numbers))


def test_both_numbers_of_a_pair_have_the_same_law_exactly() -> None:
    groups = random_words(50)
    other_axis = groups.copy()
    other_axis[:, PAIRS:] ^= np.uint32(2**31)
    assert np.array_equal(transformed(other_axis), transformed(groups)[:, ::-1])


def test_moments_over_an_even_grid_of_words_are_those_of_the_law() -> None:
    grid = (np.arange(2**21, dtype=np.uint32) << np.uint32(11)) + np.uint32(2**10)
    groups = np.empty((2**21 // PAIRS, WORDS), np.uint32)
    groups[:, :PAIRS] = grid.reshape(-1, PAIRS)
    # A stride that is odd visits every direction once, in another order than the radii.
    groups[:, PAIRS:] = (grid * np.uint32(2654435761)).reshape(-1, PAIRS)
    squares = (transformed(groups) ** 2).sum(axis=1)
    # Of r^2 = -2 ln u; the sum over midpoints of a grid of 2^21 is less than 4e-7 away from the integral.
    assert squares.mean() == pytest.approx(2, abs=1e-6)
    assert (squares**2).mean() == pytest.approx(8, abs=3e-5)
    points = transformed(groups) / np.sqrt(squares)[:, None]
    assert (points**2).mean(axis=0) == pytest.approx([0.5, 0.5], abs=1e-6)
    assert (points**4).mean(axis=0) == pytest.approx([0.375, 0.375], abs=1e-6)
    assert (points[:, 0] * points[:, 1]).mean() == pytest.approx(0, abs=1e-6)


@kernel
def sums_over(start: int, stop: int) -> tuple[float, ...]:
    a = b = c = d = e = f = 0.0
    for number in range(start, stop):
        word = np.uint32(number)
        square = np.float64(radius(word)) ** 2
        across, along = direction(word)
        x, y = np.float64(across), np.float64(along)
        a, b, c, d, e, f = a + square, b + square * square, c + x, d + y, e + x * x, f + x * x * x * x
    return a, b, c, d, e, f


@pytest.mark.slow
def test_moments_over_all_words_are_those_of_the_law() -> None:
    means = np.sum([sums_over(start, start + 2**20) for start in range(0, 2**32, 2**20)], axis=0) / 2**32
    assert means[:2] == pytest.approx([2, 8], rel=1e-7)
    assert means[2:4] == pytest.approx([0, 0], abs=1e-12)
    assert means[4:] == pytest.approx([0.5, 0.375], rel=1e-7)


def test_tails_get_bits_of_their_own() -> None:
    words, key, first = random_words(1), InsecureRandom(4).new_key(), 5 * BLOCKS
    places = [0, 1, 7, 8, 500, PAIRS - 1]
    words[0, places] = [0, 1, 2, 77, TAIL - 1, 0]
    more = np.zeros(WORDS, np.uint32)
    chacha.fill(more, key, np.uint64(1), np.uint64(first), 12)
    more = more.reshape(16, BLOCKS)[:8].T.reshape(-1)
    numbers = transformed(words, key, first)
    for place in places:
        u = (int(words[0, place]) * 2**32 + int(more[place]) + 0.5) / 2**64
        expected = math.sqrt(-2 * math.log(u)) * points_of(words[0, PAIRS + place : PAIRS + place + 1])[0]
        assert numbers[place] == pytest.approx(expected, rel=1e-6)


def test_tails_go_on_beyond_nine_deviations_without_a_gap() -> None:
    assert far_radius(np.uint32(0), np.uint32(0)) == pytest.approx(9.493, abs=1e-3)
    last = far_radius(np.uint32(TAIL - 1), np.uint32(2**32 - 1))
    assert 0 < last - radii_of(np.array([TAIL], np.uint32))[0] < 1e-4
    # Words of the tail all over: below TAIL, 2^20 u is uniform, so that the excess is exponential.
    groups = random_words(50) % np.uint32(TAIL)
    groups[:, PAIRS:] = random_words(50, 1)[:, PAIRS:]
    pairs = np.concatenate([transformed(groups[k : k + 1], SECURE.new_key()) for k in range(50)])
    excess = (pairs**2).sum(axis=1) / 2 - 20 * math.log(2)
    assert stats.kstest(excess, stats.expon().cdf).pvalue > ODDS


@pytest.mark.parametrize("rounds", [12, 20])
def test_slices_are_those_of_the_whole(rounds: int) -> None:
    key = InsecureRandom(2).new_key()
    whole = np.empty(3 * NUMBERS + 100, np.float32)
    fill_gaussian(whole, key, np.uint64(0), np.float32(2), rounds)
    for start, size in ((0, 1), (NUMBERS, NUMBERS), (NUMBERS, 2 * NUMBERS + 1), (3 * NUMBERS, 100)):
        part = np.empty(size, np.float32)
        fill_gaussian(part, key, np.uint64(block_of(start)), np.float32(2), rounds)
        assert np.array_equal(part, whole[start : start + size])
    words = np.empty(WORDS, np.uint32)
    chacha.fill(words, key, np.uint64(0), np.uint64(BLOCKS), rounds)
    expected = 2 * transformed(words[None], key, BLOCKS).T.reshape(-1)
    assert np.array_equal(whole[NUMBERS : 2 * NUMBERS], expected)


def test_blocks_beyond_the_counter_are_refused() -> None:
    with pytest.raises(OverflowError, match="Take a new key"):
        fill_gaussian(
            np.empty(NUMBERS + 1, np.float32), SECURE.new_key(), np.uint64(2**64 - BLOCKS), np.float32(1), 12
        )


@pytest.mark.parametrize("deviation", [0.1, 1.0, 3.3e-5, 1e30, 1e-30, 1 + 2**-30])
def test_deviation_is_never_rounded_down(deviation: float) -> None:
    assert deviation <= float(noise.rounded_up(deviation)) <= deviation * (1 + 2**-23)


@pytest.fixture(scope="module")
def sample() -> NDArray[np.float32]:
    return noise.gaussian(1 << 24, 1.0, SECURE)


def test_moments_of_a_sample(sample: NDArray[np.float32]) -> None:
    sums = np.zeros(4)
    for part in sample.reshape(64, -1):
        x = part.astype(np.float64)
        y = x * x
        sums += [x.sum(), y.sum(), x @ y, y @ y]
    # The variances of x, x^2, x^3 and x^4 are 1, 2, 15 and 96.
    errors = np.abs(sums / sample.size - [0, 1, 0, 3]) / np.sqrt([1, 2, 15, 96])
    assert errors.max() < DEVIATIONS / math.sqrt(sample.size)


@pytest.mark.parametrize("reach", [3, 4, 5])
def test_tails_are_as_frequent_as_they_should_be(sample: NDArray[np.float32], reach: int) -> None:
    for count in ((sample > reach).sum(), (sample < -reach).sum()):
        law = stats.binom(sample.size, stats.norm.sf(reach))
        assert min(law.cdf(count), law.sf(count - 1)) > ODDS


def test_sample_follows_the_law_everywhere(sample: NDArray[np.float32]) -> None:
    assert stats.kstest(sample[: 1 << 20].astype(np.float64), stats.norm().cdf).pvalue > ODDS


@pytest.mark.parametrize(("reach", "bins"), [(4.0, 200), (0.01, 50)])
def test_sample_has_neither_holes_nor_peaks(sample: NDArray[np.float32], reach: float, bins: int) -> None:
    counts, edges = np.histogram(sample, bins, (-reach, reach))
    expected = np.diff(stats.norm.cdf(edges.astype(np.float64))) * sample.size
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, bins) > ODDS


@pytest.mark.parametrize("lag", [1, 2, BLOCKS, PAIRS, NUMBERS])
def test_neighbours_are_independent(sample: NDArray[np.float32], lag: int) -> None:
    first, second = sample[: 1 << 22].astype(np.float64), sample[lag : lag + (1 << 22)].astype(np.float64)
    for one, other in ((first, second), (first**2, second**2)):
        assert abs(np.corrcoef(one, other)[0, 1]) < DEVIATIONS / math.sqrt(first.size)


def test_calls_are_independent() -> None:
    first, second = (noise.gaussian(1 << 22, 5.0, SECURE).astype(np.float64) for _ in range(2))
    for one, other in ((first, second), (first**2, second**2)):
        assert abs(np.corrcoef(one, other)[0, 1]) < DEVIATIONS / math.sqrt(first.size)


def test_deviation_scales_the_numbers() -> None:
    one, seven = (noise.gaussian(5000, size, InsecureRandom(9)) for size in (1.0, 7.0))
    assert seven == pytest.approx(7 * one, rel=1e-6)


def test_sample_with_twenty_rounds_is_normal_too() -> None:
    drawn = noise.gaussian(1 << 20, 1.0, SECURE, rounds=20).astype(np.float64)
    assert stats.kstest(drawn, stats.norm().cdf).pvalue > ODDS
