from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def polya(scale: float, parties: int) -> Weight:
    def weight(k: int) -> mpmath.mpf:
        below = mpmath.rf(mpmath.mpf(1) / parties, k) / mpmath.factorial(k) if k >= 0 else mpmath.mpf(0)
        return below * mpmath.exp(-k / mpmath.mpf(scale))

    return weight


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
    (tables.polya(0.4, 3), polya(0.4, 3)),
    (tables.polya(6.0, 1), polya(6.0, 1)),
    (tables.polya(6.0, 100), polya(6.0, 100)),
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


@pytest.mark.parametrize("table", [table for table, _ in LAWS[:10]])
def test_symmetric_laws_have_symmetric_thresholds(table: Table) -> None:
    limits = thresholds(table)
    assert table.smallest == -len(limits) / 2
    for one, other in zip(limits, reversed(limits), strict=True):
        assert one + other in (2**128, 2**128 - 1)


@settings(max_examples=20)
@given(scale=st.floats(1e-3, 50), parties=st.integers(1, 50))
def test_guide_counts_the_thresholds_below_each_beginning(scale: float, parties: int) -> None:
    for table in (tables.polya(scale, parties), tables.discrete_gaussian(scale), tables.skellam(scale)):
        size = 1 << (64 - table.shift)
        assert len(table.guide) == size + 1
        beginnings = np.arange(size, dtype=np.uint64) << np.uint64(table.shift)
        counts = [int((table.high < beginning).sum()) for beginning in beginnings[:: max(1, size // 64)]]
        assert counts == table.guide[:-1][:: max(1, size // 64)].tolist()
        assert table.guide[-1] == len(table.high)
        assert np.all(np.diff(table.guide) >= 0)


@pytest.mark.parametrize("tiny", [1e-3, 1e-9, 1e-300, 5e-324])
def test_tiny_noise_is_nearly_always_zero(tiny: float) -> None:
    for table in (tables.discrete_gaussian(tiny), tables.discrete_laplace(tiny), tables.polya(tiny, 5)):
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
        (lambda scale: tables.polya(scale, 3), tables.LARGEST_SCALE * 1.01),
    ],
)
def test_needlessly_fine_grids_are_refused(make: Callable[[float], Table], argument: float) -> None:
    with pytest.raises(ConfigError, match="Use a coarser grid"):
        make(argument)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_laws_that_do_not_exist_are_refused(bad: float) -> None:
    for make in (tables.discrete_gaussian, tables.discrete_laplace, tables.skellam):
        with pytest.raises(ConfigError, match="must be"):
            make(bad)
    with pytest.raises(ConfigError, match="scale must be"):
        tables.polya(bad, 3)
    with pytest.raises(ConfigError, match="parties must be"):
        tables.polya(1.0, 0)


def test_tables_are_kept_and_cannot_be_changed() -> None:
    for make, size in ((tables.discrete_gaussian, 3.25), (tables.skellam, 3.25), (tables.skellam, 2.0**21)):
        assert make(size) is make(size)
    table = tables.discrete_gaussian(3.25)
    with pytest.raises(ValueError, match="read-only"):
        table.high[0] = 0
