"""`Pooled`: everything in one place. Not private; what every federation is measured against."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError
from cofactor.factors.als import ALS
from cofactor.factors.bayes import Bayes
from cofactor.factors.implicit import ImplicitALS
from cofactor.factors.model import Factors
from cofactor.factors.sgd import SGD
from cofactor.progress import Listener, nobody


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """Plain matrix factorization on pooled ratings."""

    model: SGD | ALS | Bayes | ImplicitALS | None = None
    """How to factorize; left out: SGD where ratings have values, ImplicitALS where they have none."""

    def __post_init__(self) -> None:
        if not isinstance(self.model, SGD | ALS | Bayes | ImplicitALS | None):
            raise ConfigError(f"model must be SGD(), ALS(), Bayes() or ImplicitALS(), got {self.model!r}.")

    def settled(self, ratings: Ratings) -> "Pooled":
        """Return the recipe with its choice of model made, so that a run can say what was done."""
        return Pooled(model=self.model or _usual_model(ratings))

    def fit(
        self,
        ratings: Ratings,
        *,
        features: NDArray[np.float32] | None = None,
        seed: int = 0,
        progress: Listener = nobody,
    ) -> Factors:
        """Fit the model; `features` are public, one row an item, and only Bayes can use them."""
        model = self.model or _usual_model(ratings)
        if isinstance(model, Bayes):
            return model.fit(ratings, features=features, seed=seed, progress=progress)
        if features is not None:
            raise ConfigError(
                f"{type(model).__name__} cannot use item features. Use model=Bayes(), or leave them out."
            )
        return model.fit(ratings, seed=seed, progress=progress)


def _usual_model(ratings: Ratings) -> SGD | ImplicitALS:
    return ImplicitALS() if ratings.implicit else SGD()
