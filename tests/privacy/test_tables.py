import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from cofactor.errors import ConfigError
from cofactor.privacy import tables
from cofactor.privacy.tables import Table

Weight = Callable[[int], mpmath.mpf]


def thresholds(table: Table) -> list[int]:
    return [int(high) << 64 | int(low) for high, low in zip(table.high, table.low, strict=True)]


def gaussian(sigma: float) -> Weight:
    return lambda k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2))


def laplace(scale: float) -> Weight:
    return lambda k: mpmath.exp(-abs(k) / mpmath.mpf(scale))


def skellam(variance: float) -> Weight:
    return lambda k: mpmath.besseli(abs(k), mpmath.mpf(variance))


def polya_count(scale: float, shape: Fraction) -> Weight:
    def weight(k: int) -> mpmath.mpf:
        share = mpmath.mpf(shape.numerator) / shape.denominator
        mean = -2 * share * mpmath.log(-mpmath.expm1(-1 / mpmath.mpf(scale)))
        return mean**k / mpmath.factorial(k) if k >= 0 else mpmath.mpf(0)

    return weight


def polya_jump(scale: float) -> Weight:
    return lambda k: mpmath.exp(-abs(k) / mpmath.mpf(scale)) / abs(k) if k else mpmath.mpf(0)


LAWS = [
    (tables.discrete_gaussian(0.3), gaussian(0.3)),
    (tables.discrete_gaussian(1.7), gaussian(1.7)),
    (tables.discrete_gaussian(40.0), gaussian(40.0)),
    (tables.discrete_laplace(0.05), laplace(0.05)),
    (tables.discrete_laplace(0.9), laplace(0.9)),
    (tables.discrete_laplace(12.0), laplace(12.0)),
    (tables.skellam(1e-6), skellam(1e-6)),
    (tables.skellam(0.01), skellam(0.01)),
    (tables.skellam(1.3), skellam(1.3)),
    (tables.skellam(60.0), skellam(60.0)),
    (tables.polya_jump(0.05), polya_jump(0.05)),
    (tables.polya_jump(0.4), polya_jump(0.4)),
    (tables.polya_jump(6.0), polya_jump(6.0)),
    (tables.polya_count(0.4, Fraction(1, 3)), polya_count(0.4, Fraction(1, 3))),
    (tables.polya_count(6.0, Fraction(1)), polya_count(6.0, Fraction(1))),
    (tables.polya_count(6.0, Fraction(1, 100_000)), polya_count(6.0, Fraction(1, 100_000))),
    (tables.polya_count(16384.0, Fraction(22, 23)), polya_count(16384.0, Fraction(22, 23))),
]


@pytest.mark.parametrize(("table", "weight"), LAWS)
def test_thresholds_are_the_sums_of_the_law_to_the_last_bits(table: Table, weight: Weight) -> None:
    with mpmath.workdps(80):
        # A margin of the same width on either side holds what the table leaves out.
        width = len(table.high) + 1
        before = [weight(k) for k in range(table.smallest - width, table.smallest)]
        within = [weight(table.smallest + k) for k in range(width)]
        after = [weight(table.smallest + width + k) for k in range(width)]
        total = sum(before) + sum(within) + sum(after)
        assert (sum(before) + sum(after)) / total < mpmath.mpf(2) ** -128
        sum_ = mpmath.mpf(0)
        for value, threshold in zip(within[:-1], thresholds(table), strict=True):
            sum_ += value
            # One bit for rounding, one for what is left out, one for the sums.
            assert abs(threshold - sum_ / total * 2**128) < 8


@pytest.mark.parametrize("table", [table for table, _ in LAWS[:13]])
def test_symmetric_laws_have_symmetric_thresholds(table: Table) -> None:
    limits = thresholds(table)
    assert table.smallest == -len(limits) / 2
    for one, other in zip(limits, reversed(limits), strict=True):
        assert one + other in (2**128, 2**128 - 1)


@settings(max_examples=20)
@given(scale=st.floats(1e-3, 50), parties=st.integers(1, 50))
def test_guide_counts_the_thresholds_below_each_beginning(scale: float, parties: int) -> None:
    count = tables.polya_count(scale, Fraction(1, parties))
    for table in (count, tables.polya_jump(scale), tables.discrete_gaussian(scale), tables.skellam(scale)):
        size = 1 << (64 - table.shift)
        assert len(table.guide) == size + 1
        beginnings = np.arange(size, dtype=np.uint64) << np.uint64(table.shift)
        counts = [int((table.high < beginning).sum()) for beginning in beginnings[:: max(1, size // 64)]]
        assert counts == table.guide[:-1][:: max(1, size // 64)].tolist()
        assert table.guide[-1] == len(table.high)
        assert np.all(np.diff(table.guide) >= 0)


@pytest.mark.parametrize("tiny", [1e-3, 1e-9, 1e-300, 5e-324])
def test_tiny_noise_is_nearly_always_zero(tiny: float) -> None:
    count = tables.polya_count(tiny, Fraction(1, 5))
    for table in (tables.discrete_gaussian(tiny), tables.discrete_laplace(tiny), count):
        assert (table.smallest, len(table.high)) == (0, 0)
    table = tables.skellam(tiny)
    zero = -table.smallest
    limits = [0, *thresholds(table), 2**128]
    # P(X != 0) is the variance, to first order.
    assert 1 - Fraction(limits[zero + 1] - limits[zero], 2**128) <= Fraction(tiny) + Fraction(2, 2**128)


@pytest.mark.parametrize("variance", [1e-6, 0.2, 30.0, 200.0])
@pytest.mark.parametrize("bits", [8.5, 40, 140])
def test_reach_of_skellam_noise_is_exceeded_no_more_often_than_stated(variance: float, bits: float) -> None:
    reach = tables.skellam_reach(variance, bits)
    with mpmath.workdps(60):
        law = skellam(variance)
        values = range(max(reach - 2, 1), reach + 60 + int(12 * variance**0.5))
        tail = sum(law(k) for k in values if k >= reach) / mpmath.exp(variance)
        assert tail <= mpmath.mpf(2) ** -bits
        # The least that Chernoff's bound allows: with the best s, and one less would be too few.
        if reach > 1:
            best = mpmath.asinh((reach - 1) / mpmath.mpf(variance))
            assert variance * (mpmath.cosh(best) - 1) - best * (reach - 1) > -bits * mpmath.log(2)


def test_largest_laws_still_have_tables() -> None:
    sigma = tables.LARGEST_DEVIATION / 16
    table = tables.discrete_gaussian(sigma)
    middle = np.searchsorted(table.high, np.uint64(int(0.8413447460685429 * 2**64)))
    assert abs(table.smallest + middle - sigma) <= 1


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (tables.discrete_gaussian, tables.LARGEST_DEVIATION * 1.01),
        (tables.discrete_laplace, tables.LARGEST_SCALE * 1.01),
        (tables.skellam, tables.LARGEST_DEVIATION**2 * 1.01),
        (lambda scale: tables.polya_count(scale, Fraction(1, 3)), tables.LARGEST_SCALE * 1.01),
        (tables.polya_jump, tables.LARGEST_SCALE * 1.01),
    ],
)
def test_needlessly_fine_grids_are_refused(make: Callable[[float], Table], argument: float) -> None:
    with pytest.raises(ConfigError, match="Use a coarser grid"):
        make(argument)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_laws_that_do_not_exist_are_refused(bad: float) -> None:
    for make in (tables.discrete_gaussian, tables.discrete_laplace, tables.skellam, tables.polya_jump):
        with pytest.raises(ConfigError, match="must be"):
            make(bad)
    with pytest.raises(ConfigError, match="scale must be"):
        tables.polya_count(bad, Fraction(1, 3))


@pytest.mark.parametrize("shape", [Fraction(0), Fraction(-1, 3), Fraction(4, 3), 0.3])
def test_shapes_are_fractions_of_a_whole(shape: Any) -> None:
    with pytest.raises(ConfigError, match="shape must be a Fraction"):
        tables.polya_count(1.0, shape)


def law(table: Table, size: int) -> NDArray[np.float64]:
    """Return the probabilities of a table around 0, which stands first: of a circle of so many numbers."""
    limits = [0, *thresholds(table), 2**128]
    found = np.zeros(size)
    for k, (low, high) in enumerate(pairwise(limits)):
        found[(table.smallest + k) % size] = (high - low) / 2**128
    return found


@pytest.mark.parametrize("shape", [Fraction(1, 1000), Fraction(1, 3), Fraction(21, 22), Fraction(1)])
@pytest.mark.parametrize("scale", [0.4, 2.0, 15.0])
def test_jumps_add_up_to_the_difference_of_two_negative_binomial_numbers(
    scale: float, shape: Fraction
) -> None:
    size = 1 << 14
    jump, count = np.fft.fft(law(tables.polya_jump(scale), size)), law(tables.polya_count(scale, shape), 512)
    made = np.fft.ifft(np.polynomial.polynomial.polyval(jump, count)).real
    one = stats.nbinom(float(shape), -np.expm1(-1 / scale)).pmf(np.arange(size // 2))
    expected = np.fft.ifft(np.abs(np.fft.fft(one, size)) ** 2).real
    np.testing.assert_allclose(made, expected, atol=1e-14)
    if shape == 1:
        values = np.arange(size // 2)
        np.testing.assert_allclose(made[: size // 2], stats.dlaplace(1 / scale).pmf(values), atol=1e-14)


def tail(scale: float, shape: float, least: int) -> mpmath.mpf:
    """Return how often the difference of two negative binomial numbers is at least so large."""
    q, r = mpmath.exp(-1 / mpmath.mpf(scale)), mpmath.mpf(shape)
    return mpmath.nsum(
        lambda k: q**k * mpmath.rf(r, k) / mpmath.factorial(k) * mpmath.hyp2f1(r, r + k, k + 1, q**2),
        [least, least + 40 * mpmath.ceil(scale) + 400],
        method="d",
    ) * (1 - q) ** (2 * r)


@pytest.mark.parametrize(("scale", "shape"), [(0.05, 1.0), (0.6, 0.01), (2.0, 1.0), (3.0, 7.5)])
@pytest.mark.parametrize("bits", [8.5, 40])
def test_reach_of_polya_noise_is_exceeded_no_more_often_than_stated(
    scale: float, shape: float, bits: float
) -> None:
    reach = tables.polya_reach(scale, shape, bits)
    with mpmath.workdps(30):
        assert tail(scale, shape, reach) <= mpmath.mpf(2) ** -bits
        # Not needlessly far either: without Chernoff's bound, at least three quarters of it would be needed.
        if scale >= 2 and shape >= 1 and bits > 9:
            assert tail(scale, shape, math.floor(0.75 * reach)) > mpmath.mpf(2) ** -bits


def test_reach_of_much_noise_is_within_what_floats_can_tell() -> None:
    for scale in (1e-3, 1.0, 2.0**14, 2.0**20):
        for shape in (1e-6, 1.0, 1e5):
            reach = tables.polya_reach(scale, shape, 60.0)
            assert 1 <= reach <= 2 + 60 * scale * (1 + math.sqrt(shape)) + 5 * shape * scale


def test_tables_are_kept_and_cannot_be_changed() -> None:
    for make, size in ((tables.discrete_gaussian, 3.25), (tables.skellam, 3.25), (tables.skellam, 2.0**21)):
        assert make(size) is make(size)
    table = tables.discrete_gaussian(3.25)
    with pytest.raises(ValueError, match="read-only"):
        table.high[0] = 0
