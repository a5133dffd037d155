"""What a wave does to a distribution: a matrix M, and how to multiply by it without writing it down.

Column i of M holds how likely each report is for a value that lies anywhere in bucket i, every cell of it as
likely as the others. The part that comes from the wave is a whole number of ways over another one, so M is
exact but for the last rounding.
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from cofactor.errors import ConfigError
from cofactor.privacy.answers import Wave
from cofactor.survey.banded import Reach, Side, product, side_of
from cofactor.survey.method import Floats, Integers

MOST_CELLS = {2: 2**31, 3: 2**21 - 2}
"""Up to so many cells of answers, ways by two or by three numbers are counted in 63 bits."""
MOST_ENTRIES = 2**25
"""The largest matrix that is written down: a quarter of a gigabyte."""


class Transform(Protocol):
    """A matrix whose columns are distributions over reports, one for each bucket."""

    @property
    def buckets(self) -> int:
        """Number of columns."""

    @property
    def reports(self) -> int:
        """Number of rows."""

    def forward(self, probabilities: Floats) -> Floats:
        """Return how likely each report is: M x."""

    def backward(self, weights: Floats) -> Floats:
        """Return for each bucket the mean weight of its reports: M^T r."""

    def matrix(self) -> Floats:
        """Return M, one row for each report."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseTransform:
    """A matrix that is written down."""

    entries: Floats = field(repr=False)
    """M, one row for each report. Under local differential privacy every entry is above 0."""

    def __post_init__(self) -> None:
        if self.entries.ndim != 2 or not np.all(self.entries > 0):
            raise ConfigError("a transform's entries must be a table of numbers above 0.")
        if not np.allclose(self.entries.sum(axis=0), 1, rtol=0, atol=1e-9):
            raise ConfigError("every column of a transform must add up to 1: it is a distribution.")

    @property
    def buckets(self) -> int:
        """Number of columns."""
        return int(self.entries.shape[1])

    @property
    def reports(self) -> int:
        """Number of rows."""
        return int(self.entries.shape[0])

    def forward(self, probabilities: Floats) -> Floats:
        """Return how likely each report is: M x."""
        return self.entries @ probabilities

    def backward(self, weights: Floats) -> Floats:
        """Return for each bucket the mean weight of its reports: M^T r."""
        return self.entries.T @ weights

    def matrix(self) -> Floats:
        """Return M, one row for each report."""
        return self.entries


@dataclass(frozen=True, kw_only=True, eq=False)
class BandTransform:
    """The matrix of a square wave: one number everywhere, more of it in a band, and the band's two edges.

    A product takes O(buckets + reports): along the band it is a difference of prefix sums, and there are few
    edges. No second sums are made that would cancel, so it is as exact for a narrow wave as for a wide one.
    """

    wave: Wave
    buckets: int
    rows: Side = field(repr=False)
    columns: Side = field(repr=False)

    @property
    def reports(self) -> int:
        """Number of rows."""
        return self.wave.reports

    def forward(self, probabilities: Floats) -> Floats:
        """Return how likely each report is: M x."""
        return product(self.rows, _row_of(probabilities, self.buckets))

    def backward(self, weights: Floats) -> Floats:
        """Return for each bucket the mean weight of its reports: M^T r."""
        return product(self.columns, _row_of(weights, self.reports))

    def matrix(self) -> Floats:
        """Return M, one row for each report."""
        return wave_matrix(self.wave, self.buckets)


def transform_of(wave: Wave, buckets: int) -> BandTransform | DenseTransform:
    """Return what a wave does to distributions over equal buckets of its true cells."""
    if wave.narrow > 1:
        return DenseTransform(entries=wave_matrix(wave, buckets))
    own, each = _cells_each(wave, buckets)
    starts, begins = np.arange(wave.reports) * each, np.arange(buckets) * own
    inside, everywhere = wave.moved * each / wave.wide, staying(wave) / wave.reports
    rows = side_of(
        Reach(starts - wave.wide + 1, starts + each - wave.wide, starts, starts + each - 1),
        cells_each=own,
        columns=buckets,
        entry=lambda report, bucket: _waved(wave, buckets, report, bucket),
        inside=inside,
        everywhere=everywhere,
    )
    columns = side_of(
        Reach(begins, begins + own - 1, begins + wave.wide - 1, begins + own + wave.wide - 2),
        cells_each=each,
        columns=wave.reports,
        entry=lambda bucket, report: _waved(wave, buckets, report, bucket),
        inside=inside,
        everywhere=everywhere,
    )
    return BandTransform(wave=wave, buckets=buckets, rows=rows, columns=columns)


def wave_matrix(wave: Wave, buckets: int) -> Floats:
    """Return how likely each report (row) is for a value anywhere in each bucket (column)."""
    if wave.reports * buckets > MOST_ENTRIES:
        raise ConfigError(
            f"a matrix of {wave.reports:,} by {buckets:,} does not fit. Use fewer buckets, or a square wave."
        )
    report, bucket = np.arange(wave.reports)[:, None], np.arange(buckets)[None, :]
    return _waved(wave, buckets, report, bucket) + staying(wave) / wave.reports


def staying(wave: Wave) -> float:
    """Return the probability that an answer does not come from the wave, exact when it is tiny."""
    return 1 / (1 + math.expm1(wave.epsilon) * wave.wide / wave.cells)


def ways(wave: Wave, buckets: int, report: Integers, bucket: Integers) -> Integers:
    """Count the ways in which a wave leads from a bucket to a report: by its cell, and by one or two numbers.

    Exact whole numbers. Over all reports they add up to the cells of a bucket times `wide` times `narrow`.
    """
    own, each = _cells_each(wave, buckets)
    sizes = (own, wave.wide) if wave.narrow == 1 else (own, wave.wide, wave.narrow)
    start = report * each - bucket * own
    return _sums_below(start + each, sizes) - _sums_below(start, sizes)


def _waved(wave: Wave, buckets: int, report: Integers, bucket: Integers) -> Floats:
    """Return the part of entries of M that comes from the wave."""
    all_ways = float(wave.choices // buckets) * wave.wide * wave.narrow
    return ways(wave, buckets, report, bucket).astype(np.float64) * (wave.moved / all_ways)


def _sums_below(limit: Integers, sizes: tuple[int, ...]) -> Integers:
    """Count whole numbers, each from 0 to below its size, with a sum below the limit.

    Without sizes there are binomial(limit + k - 1, k); inclusion and exclusion takes off what is too large.
    """
    total = np.zeros_like(limit)
    for taken in itertools.product((0, 1), repeat=len(sizes)):
        left = np.maximum(limit - sum(size for size, off in zip(sizes, taken, strict=True) if off), 0)
        rising = math.prod((left + k for k in range(1, len(sizes))), start=left)
        total += (-1) ** sum(taken) * (rising // math.factorial(len(sizes)))
    return total


def _row_of(values: Floats, length: int) -> Floats:
    """Return values as a kernel reads them, which does not look where they end."""
    found = np.ascontiguousarray(values, np.float64)
    if found.shape != (length,):
        raise ConfigError(f"a transform of {length:,} numbers was given {found.size:,}.")
    return found


def _cells_each(wave: Wave, buckets: int) -> tuple[int, int]:
    """Return how many cells a bucket and a report have."""
    if wave.choices % buckets:
        raise ConfigError(f"{wave.choices:,} cells do not make {buckets:,} equal buckets.")
    most = MOST_CELLS[2 if wave.narrow == 1 else 3]
    if wave.cells > most:
        raise ConfigError(f"a wave of {wave.cells:,} cells is too fine to be undone: the most is {most:,}.")
    return wave.choices // buckets, wave.cells // wave.reports
