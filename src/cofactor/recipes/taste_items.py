"""The private item release of `VerticalTaste`, and what follows from it for everybody.

A party's messages about users may hold nothing about an item but what is public or was released before: the
raw bias of an item depends on other users' ratings. So every party first releases, for each of its items, how
many ratings there are and how high they are, with noise. Everything else here is made from that.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import DataError
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

COUNT_WEIGHT = 0.6
"""What a rating adds to its item's count, beside what it adds to the sum."""
REACH = 1.6
"""How far from the centre a rating may count, on a scale from 1 to 5."""
ITEM_BOUND = Bound(size=math.hypot(COUNT_WEIGHT, REACH), norm="l2", unit="rating")
"""A rating changes one row of the item sums, by at most this."""

_BIAS_SPREAD = 0.35
"""How far item biases lie from what features and popularity tell (standard deviation)."""
_RATING_VARIANCE = 0.9
"""Variance of a rating around its item's mean."""
_PENALTY = 10.0
"""Ridge of the regression of item biases on what is known about items."""

_LEAST_NOISE = 1e-3
"""Where there is none, nothing would be uncertain about an item without ratings."""


@dataclass(frozen=True)
class Units:
    """Ratings as numbers around a public centre, in units of a scale from 1 to 5."""

    centre: float
    unit: float

    @classmethod
    def of(cls, scale: Scale | None) -> "Units":
        """Take the centre a little above the middle of the scale, where ratings usually lie."""
        if scale is None:
            raise DataError("VerticalTaste needs ratings with values, and these have none.")
        width = scale.high - scale.low
        return cls((scale.low + scale.high) / 2 + 0.15 * width, width / 4)

    def inward(self, values: NDArray[np.float32]) -> Vector:
        """Return ratings less the centre, in our units."""
        inside: Vector = (values.astype(np.float64) - self.centre) / self.unit
        return inside


def item_sums(ratings: Ratings, units: Units) -> Bounded:
    """Return, for each item, its count times a weight, and the sum of its ratings, each within reach."""
    grouped = ratings.by_item
    values = np.clip(units.inward(grouped.values), -REACH, REACH)
    sums = np.bincount(grouped.members(), values, minlength=ratings.item_count)
    return Bounded(value=np.column_stack([COUNT_WEIGHT * grouped.sizes, sums]), bound=ITEM_BOUND)


@dataclass(frozen=True, eq=False)
class KnownItems:
    """What everybody knows about the items of all parties, in units of a scale from 1 to 5."""

    mean: float
    """The mean rating, less the centre."""
    bias: Vector
    """How much higher an item is rated than the mean."""
    popularity: Vector
    """Log count, in standard units over ratings."""
    weights: Vector
    """Share of the ratings that each item has."""
    features: Matrix
    """Public numbers, as the parties gave them."""

    @property
    def columns(self) -> Matrix:
        """The features less their means; those that vary widely are scaled down."""
        return _columns(self.features)

    @classmethod
    def of(cls, sums: Matrix, features: Matrix, noise: Vector) -> "KnownItems":
        """Make the best of noisy item sums; each item's noise has its own standard deviation.

        Biases are shrunk to what features and popularity tell, by how much noise there is: generalised least
        squares for the latter, in which an item counts by what its sum can say.
        """
        noise = np.maximum(noise, _LEAST_NOISE)
        counts, total = np.maximum(sums[:, 0] / COUNT_WEIGHT, 0.0), sums[:, 1]
        count_noise = noise / COUNT_WEIGHT
        weights = counts / counts.sum() if counts.sum() > 0 else np.full(len(counts), 1 / len(counts))
        # One offset for all: popularity must not tell whose noise was larger.
        usual = float(np.sqrt(np.mean(count_noise**2)))
        popularity = _standardised(np.log(counts + usual + 1.0), weights)
        mean = float(np.clip(total.sum() / max(sums[:, 0].sum() / COUNT_WEIGHT, 1.0), -REACH, REACH))
        known = np.column_stack([np.ones(len(counts)), _columns(features), popularity, popularity**2])
        told = total - mean * counts
        expected = _expected(known, counts, told, noise**2 + (0.5 * count_noise) ** 2)
        variance = noise**2 + _RATING_VARIANCE * counts + count_noise**2 * (expected**2 + _BIAS_SPREAD**2)
        gain = counts / (counts**2 + variance / _BIAS_SPREAD**2)
        bias = expected + gain * (told - counts * expected)
        middle = float(weights @ bias)
        return cls(mean + middle, bias - middle, popularity, weights, features)


def _expected(known: Matrix, counts: Vector, told: Vector, noise: Vector) -> Vector:
    """Return the biases that features and popularity tell: told = count * (known . slopes) + noise."""
    precision = 1.0 / (noise + _RATING_VARIANCE * counts + counts**2 * _BIAS_SPREAD**2)
    design = known * counts[:, None]
    penalty = np.full(known.shape[1], _PENALTY)
    penalty[0] = 1e-3 * _PENALTY
    weighted = (design * precision[:, None]).T
    expected: Vector = known @ np.linalg.solve(weighted @ design + np.diag(penalty), weighted @ told)
    return expected


def _columns(features: Matrix) -> Matrix:
    columns: Matrix = (features - features.mean(axis=0)) / np.maximum(features.std(axis=0), 1.0)
    return columns


def _standardised(values: Vector, weights: Vector) -> Vector:
    centred = values - weights @ values
    standard: Vector = centred / max(float(np.sqrt(weights @ centred**2)), 1e-6)
    return standard
