"""What `Bayes` knows about an item before it looks at tastes: features, popularity, and its bias."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.errors import DataError
from cofactor.factors.bayes_kernels import Matrices, Vector

LATENT_VARIANCE = 0.05
"""Start value; it only sets the units of latent coordinates."""
_LEVEL, _FEATURE, _POPULARITY, _BIAS = 0.2, 0.05, 0.02, 0.12
"""How much users differ to begin with, as variances: in generosity, and in their slopes on the rest."""


@dataclass(frozen=True)
class Known:
    """The coordinates of item vectors that mean something, latent ones after them."""

    features: Matrices
    centre: Vector
    """What was taken off each feature."""
    size: Vector
    """What each feature was then divided by."""
    popularity: Vector
    """Log count, standardised over ratings."""
    counts: Vector
    latent: int

    @classmethod
    def of(cls, ratings: Ratings, features: NDArray[Any] | None, latent: int) -> "Known":
        """Read popularity off the ratings; centre the features and scale down those that vary widely."""
        counts = ratings.by_item.sizes.astype(np.float64)
        columns = np.zeros((ratings.item_count, 0)) if features is None else _checked(features, ratings)
        centre, size = columns.mean(axis=0), np.maximum(columns.std(axis=0), 1.0)
        return cls((columns - centre) / size, centre, size, _popularity(counts), counts, latent)

    def vectors(self, bias: Vector) -> Matrices:
        """Return every item's vector before deviations: 1, features, popularity, bias, and latent zeros."""
        centred = bias - np.average(bias, weights=self.counts)
        ones, zeros = np.ones(len(bias)), np.zeros((len(bias), self.latent))
        return np.column_stack([ones, self.features, self.popularity, centred, zeros])

    def elsewhere(self, features: Matrices, popularity: Vector, bias: Vector) -> Matrices:
        """Describe items that are not among the ratings in the same coordinates, the latent ones left out."""
        return np.column_stack([np.ones(len(bias)), (features - self.centre) / self.size, popularity, bias])

    def taste_variances(self) -> Vector:
        """Return how much users differ along each coordinate, to begin with."""
        features = np.full(self.features.shape[1], _FEATURE)
        return np.concatenate(
            [[_LEVEL], features, [_POPULARITY, _BIAS], np.full(self.latent, LATENT_VARIANCE)]
        )

    def expected_bias(self, bias: Vector) -> Vector:
        """Return the biases that features and popularity tell: a ridge regression of the present ones."""
        known = np.column_stack([np.ones(len(bias)), self.features, self.popularity, self.popularity**2])
        penalty = np.full(known.shape[1], 3.0)
        penalty[0] = 1e-3
        # A bias that rests on few ratings says little; eight ratings make it half as good as it can be.
        weighted = known * (self.counts / (self.counts + 8.0))[:, None]
        slopes = np.linalg.solve(weighted.T @ known + np.diag(penalty), weighted.T @ bias)
        expected: Vector = known @ slopes
        return expected


def _popularity(counts: Vector) -> Vector:
    """Return log counts in standard units over ratings."""
    logs = np.log1p(counts)
    # An item without ratings may just be new: it counts as an ordinary one, not as the least popular.
    logs[counts == 0] = logs[counts > 0].mean()
    centred = logs - np.average(logs, weights=counts)
    size = float(np.sqrt(np.average(centred**2, weights=counts)))
    popularity: Vector = centred / max(size, 1e-6)
    return popularity


def _checked(features: NDArray[Any], ratings: Ratings) -> Matrices:
    table = np.asarray(features)
    if table.ndim != 2 or len(table) != ratings.item_count:
        raise DataError(
            f"features has shape {table.shape}; there are {ratings.item_count:,} items. "
            "Give one row an item, in the order of item_ids."
        )
    if table.dtype.kind not in "biuf" or not np.isfinite(table).all():
        raise DataError("features must be finite numbers. Turn words into 0/1 columns, fill or drop gaps.")
    return table.astype(np.float64)
