"""How sure a model is of a prediction."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Values
from cofactor.data.ids import Id
from cofactor.errors import DataError
from cofactor.factors.model import Factors, HomeFit, Seen


@dataclass(frozen=True)
class Posterior:
    """The uncertainty of a model that `Bayes` fitted, worked out on demand from what a user has rated."""

    model: Factors

    def std(self, user: Id, items: Sequence[Id]) -> Values:
        """Return how far the user's own ratings of some items may lie from their predictions.

        One standard deviation: the noise of a rating, and what is not known about user and item.
        """
        home, _ = self._parts()
        rows = [self.model.item_row(item) for item in items]
        vectors = self.model.item_vectors[rows].astype(np.float64)
        taste = np.einsum("if,fg,ig->i", vectors, self.covariance(user), vectors)
        deviations: Values = np.sqrt(1.0 / home.weights[rows] + taste).astype(np.float32)
        return deviations

    def covariance(self, user: Id) -> NDArray[np.float64]:
        """Return the posterior covariance of the user's vector."""
        home, seen = self._parts()
        row = self.model.user_row(user)
        rated = seen.index[seen.ptr[row] : seen.ptr[row + 1]]
        vectors = self.model.item_vectors[rated].astype(np.float64)
        precision = home.precision + (vectors * home.weights[rated, None]).T @ vectors
        return np.linalg.inv(precision).astype(np.float64, copy=False)

    def _parts(self) -> tuple[HomeFit, Seen]:
        home, seen = self.model.home, self.model.seen
        if home is None or seen is None or not home.calibrated:
            raise DataError("this model does not say how sure it is. Fit one with Bayes().")
        return home, seen
