"""Confidence intervals by drawing users again, each with all of her ratings."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.config import fraction, whole
from cofactor.errors import DataError
from cofactor.randomness import Seeds


@dataclass(frozen=True)
class Estimate:
    """A measured number and the interval that the users' variety leaves open."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


def resampled_totals(
    columns: NDArray[np.float64], *, resamples: int = 1000, seed: int = 0
) -> NDArray[np.float64]:
    """Sum columns of numbers, one row a user: row 0 over all users, the others over users drawn again.

    Whole users are drawn, because the ratings of one user are not independent. The same seed draws the
    same users, so that the totals of two models on the same test ratings can be subtracted row by row.
    """
    whole(resamples=resamples)
    users = len(columns)
    if users == 0:
        raise DataError("nothing to measure: no user has test ratings. Hold back more ratings.")
    random = Seeds(seed).generator("bootstrap users")
    totals = np.empty((resamples + 1, columns.shape[1]))
    totals[0] = columns.sum(axis=0)
    for row in range(1, resamples + 1):
        totals[row] = np.bincount(random.integers(users, size=users), minlength=users) @ columns
    return totals


def estimate(samples: NDArray[np.float64], *, confidence: float = 0.95) -> Estimate:
    """Read a percentile interval off samples, the first of which is the measured value; NaN is ignored."""
    fraction(confidence=confidence)
    drawn = samples[1:][np.isfinite(samples[1:])]
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, (tail, 1 - tail)) if len(drawn) else (samples[0], samples[0])
    return Estimate(float(samples[0]), float(low), float(high))
