"""What is known of items, and how certain it is: made from noisy sums, and nothing else.

Ratings are in units of a scale from 1 to 5, less its middle.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

RATING_VARIANCE = 0.75
"""Of a rating around its prediction, if user and item were known."""
GENEROSITY, FEATURE_SLOPE, POPULARITY_SLOPE, BIAS_SLOPE = 0.2, 0.05, 0.02, 0.12
"""Prior variances of a user's taste: constant, on each public feature, on log popularity, on item bias."""
USUAL_MEAN = 0.6
"""Where means of all ratings usually lie, above the middle of the scale."""
_FALL = 0.35
"""Items count the less in a message the more often they are rated: count to the power of minus this."""
TINY = 1e-9
"""Keeps from dividing by 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Beliefs:
    """All that is known, with how certain it is."""

    features: Reals
    """Public columns, balanced."""
    users: float
    mean: float
    covariance: Reals
    """Of tastes: constant, public features, popularity, bias."""
    bias: Reals
    variance: Reals
    counts: Reals
    """About how many ratings an item has, in units of their own: each user's ratings count for less, the more
    there are of them."""
    count_variance: Reals
    popularity: Reals
    """Log count, in standard units over ratings."""
    factors: Reals
    """Further columns, in units in which tastes for them have unit variance."""
    factor_variance: Reals
    """How uncertain an item's part in a prediction is because of its factors."""
    factor_precision: Reals
    """How precise they are, noise of the sums alone counted."""
    seen: int = 0
    """Rounds of sums about items that went in."""
    helps: bool = True
    """Whether users predict better with it than by themselves, as far as they have said."""

    @classmethod
    def beginning(cls, features: Reals, users: int) -> "Beliefs":
        """Return what is known before anything was released: features, and how many users there are."""
        items, width = features.shape
        slopes = [GENEROSITY, *[FEATURE_SLOPE] * width, POPULARITY_SLOPE, BIAS_SLOPE]
        nothing = np.zeros(items)
        return cls(
            features=features,
            users=max(float(users), 1.0),
            mean=USUAL_MEAN,
            covariance=np.diag(slopes),
            bias=nothing,
            variance=nothing,
            counts=np.ones(items),
            count_variance=nothing,
            popularity=nothing,
            factors=np.zeros((items, 0)),
            factor_variance=nothing,
            factor_precision=nothing,
        )

    @property
    def shares(self) -> Reals:
        """The share of the ratings that each item has."""
        known = np.maximum(self.counts, 0)
        total = known.sum()
        return known / total if total > 0 else np.full(len(known), 1 / max(len(known), 1))

    @property
    def certainty(self) -> float:
        """How much of what counts tell about popularity is not noise: between 0 and 1, over ratings."""
        real = max(float(np.var(self.counts) - np.mean(self.count_variance)), 1e-12)
        return float(self.shares @ (real / (real + self.count_variance)))

    @property
    def importance(self) -> Reals:
        """How much an item counts in a user's message."""
        if self.seen == 0:
            return np.ones(len(self.counts))
        least = max(1.0, float(np.sqrt(np.median(self.count_variance))))
        return np.asarray(np.maximum(self.counts, least) ** -_FALL)

    @property
    def columns(self) -> Reals:
        """What users' tastes are about: a row for each item."""
        popularity = math.sqrt(self.certainty) * self.popularity
        learned = np.column_stack([popularity, self.bias - self.shares @ self.bias])
        own = (np.ones(len(self.bias)), self.features, learned * (self.seen > 0), self.factors)
        return np.column_stack(own)

    @property
    def usual(self) -> float:
        """About the root of how many ratings a user has."""
        return max(float(np.maximum(self.counts, 0).sum()) / self.users, 1.0)

    @property
    def uncertainty(self) -> Reals:
        """The variance of an item's part in a prediction."""
        return self.variance + self.factor_variance

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays, to be kept."""
        return {each.name: np.asarray(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> "Beliefs":
        """Return what `arrays` has kept."""
        plain: dict[str, Any] = {name: each if each.ndim else each.item() for name, each in arrays.items()}
        return cls(**plain)
