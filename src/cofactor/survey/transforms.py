"""What a wave does to a distribution: a matrix M, and how to multiply by it without writing it down.

Column i of M holds how likely each report is for a value that lies anywhere in bucket i, every cell of it as
likely as the others. The share of the wave in it is a whole number of ways over another one, so M is exact
but for the last rounding.
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import ConfigError
from cofactor.privacy.answers import Wave
from cofactor.survey.band import Side, side_of, through
from cofactor.survey.method import Floats, Integers

MOST_CELLS = {2: 2**28, 3: 2**20}
"""How many cells of answers keep the number of ways, and all on the way to it, below 2^63."""
MOST_ENTRIES = 2**25


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
        """Return a weight for each bucket, the mean of its reports' weights: M^T r."""

    def matrix(self) -> Floats:
        """Return M, one row for each report."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseTransform:
    """A matrix that is written down."""

    entries: Floats = field(repr=False)
    """M, one row for each report; every entry above 0, as it is under local differential privacy."""

    def __post_init__(self) -> None:
        if self.entries.ndim != 2 or not np.all(self.entries > 0):
            raise ConfigError("a transform's entries must be a table of numbers above 0.")

    @property
    def buckets(self) -> int:
        """Number of columns."""
        return self.entries.shape[1]

    @property
    def reports(self) -> int:
        """Number of rows."""
        return self.entries.shape[0]

    def forward(self, probabilities: Floats) -> Floats:
        """Return how likely each report is: M x."""
        return self.entries @ probabilities

    def backward(self, weights: Floats) -> Floats:
        """Return a weight for each bucket, the mean of its reports' weights: M^T r."""
        return self.entries.T @ weights

    def matrix(self) -> Floats:
        """Return M, one row for each report."""
        return self.entries


@dataclass(frozen=True, kw_only=True, eq=False)
class BandTransform:
    """The matrix of a square wave: one number everywhere, more of it in a band, and the band's two edges.

    A product takes O(buckets + reports): sums along the band are differences of prefix sums, and edges are
    few. Only sums of numbers that are not negative are made, so nothing cancels, however narrow the wave.
    """

    wave: Wave
    buckets: int
    everywhere: float
    """What every entry has: the report came from anywhere."""
    rows: Side = field(repr=False)
    columns: Side = field(repr=False)

    @property
    def reports(self) -> int:
        """Number of rows."""
        return self.wave.reports

    def forward(self, probabilities: Floats) -> Floats:
        """Return how likely each report is: M x."""
        return through(self.rows, probabilities.astype(np.float64), self.everywhere)

    def backward(self, weights: Floats) -> Floats:
        """Return a weight for each bucket, the mean of its reports' weights: M^T r."""
        return through(self.columns, weights.astype(np.float64), self.everywhere)

    def matrix(self) -> Floats:
        """Return M, one row for each report."""
        return wave_matrix(self.wave, self.buckets)


def transform_of(wave: Wave, buckets: int) -> BandTransform | DenseTransform:
    """Return what a wave does to a distribution over equal buckets of its true cells."""
    if wave.narrow > 1:
        return DenseTransform(entries=wave_matrix(wave, buckets))
    _check(wave, buckets)
    own, each = wave.choices // buckets, wave.cells // wave.reports
    unit = wave.moved / (float(own) * wave.wide)
    at = np.arange(wave.reports) * each
    rows = side_of(at - wave.wide + 1, at + each - wave.wide, at, at + each - 1, own, buckets)
    at = np.arange(buckets) * own
    columns = side_of(at, at + own - 1, at + wave.wide - 1, at + own + wave.wide - 2, each, wave.reports)
    ...
