"""On which part of the scale ratings are told apart.

Noise has to hide the largest change that a rating can make, and most of what an item's ratings tell lies
between the ends of the scale. Where noise is what hurts, ratings beyond a part of it count as if at its ends.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from cofactor.recipes.item_beliefs import GENEROSITY, RATING_VARIANCE, USUAL_MEAN

Reals = NDArray[np.float64]

_DEVIATION = sqrt(RATING_VARIANCE + GENEROSITY)
"""Of ratings of an item."""


@dataclass(frozen=True)
class Span:
    """A part of the scale, in units of one from -2 to 2."""

    low: float
    high: float

    @classmethod
    def of(cls, lowest: float, highest: float) -> "Span":
        """Return the part between two places on the scale, of which 0 is the lower end and 1 the upper."""
        return cls(4 * lowest - 2, 4 * highest - 2)

    def told(self, values: NDArray[np.float32]) -> Reals:
        """Return ratings from -2 to 2 as they are told: from -1 to 1."""
        return np.asarray(
            (np.clip(values.astype(np.float64), self.low, self.high) - self._middle) / self._half
        )

    @property
    def slope(self) -> float:
        """By how much an item's mean rating differs from another's, if ratings as told differ by 1.

        Ratings that are told as the ends do not differ as told: were they normal, about the mean that they
        usually have, as many would be within.
        """
        return self._half * _WHOLE._within / self._within

    @property
    def offset(self) -> float:
        """The mean rating of an item whose ratings, as told, have the mean 0."""
        return _WHOLE._mean - self.slope / self._half * (self._mean - self._middle)

    @property
    def _middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def _half(self) -> float:
        return (self.high - self.low) / 2

    @property
    def _ends(self) -> Reals:
        return (np.array([self.low, self.high]) - USUAL_MEAN) / _DEVIATION

    @property
    def _within(self) -> float:
        """Which part of usual ratings is within."""
        below, not_above = ndtr(self._ends)
        return float(not_above - below)

    @property
    def _mean(self) -> float:
        """The mean of usual ratings, those beyond brought to the ends."""
        below, not_above = ndtr(self._ends)
        densities = np.exp(-(self._ends**2) / 2) / sqrt(2 * np.pi)
        inside = USUAL_MEAN * self._within + _DEVIATION * (densities[0] - densities[1])
        return float(self.low * below + self.high * (1 - not_above) + inside)


_WHOLE = Span(-2.0, 2.0)
