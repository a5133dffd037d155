"""What SGD and ALS share: the units of training, the penalty of a row, and the way back to a model.

Ratings are trained on less their mean and over their spread, so that one setting serves every scale.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Values
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, DataError
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.factors.simd import Table, cells

TOO_SMALL = "regularization is too small, or values are too large, for float32 numbers. Change either."


def check_finite(epoch: int, remedy: str, *tables: Table) -> None:
    """Refuse to go on with numbers that are none; `remedy` says which setting to change."""
    if not all(np.isfinite(cells(table)).all() for table in tables):
        raise ConfigError(f"training broke down in epoch {epoch}: {remedy}")


class Side(NamedTuple):
    """What was trained for the users, or for the items."""

    vectors: Values
    bias: Values


@dataclass(frozen=True)
class Units:
    """A rating is mean + spread * what is trained."""

    mean: float
    spread: float

    @classmethod
    def of(cls, ratings: Ratings) -> "Units":
        """Take the units from ratings with values."""
        if len(ratings) == 0:
            raise DataError("there are no ratings to learn from.")
        if ratings.implicit:
            raise DataError("these ratings have no values, or all the same one. Fit ImplicitALS() to them.")
        spread = float(np.std(ratings.values, dtype=np.float64))
        return cls(ratings.mean, spread if spread > 0 else 1.0)

    def factors(
        self, ratings: Ratings, users: Side, items: Side, *, regularization: float, biases: bool
    ) -> Factors:
        """Return the model in the ratings' own units."""
        root = np.float32(np.sqrt(self.spread))
        ridges = [regularization] * biases + [regularization * self.spread] * users.vectors.shape[1]
        return Factors(
            user_ids=ratings.user_ids,
            item_ids=ratings.item_ids,
            mean=self.mean,
            user_bias=users.bias * np.float32(self.spread),
            item_bias=items.bias * np.float32(self.spread),
            user_vectors=users.vectors * root,
            item_vectors=items.vectors * root,
            scale=ratings.scale,
            seen=seen_in(ratings),
            home=HomeFit(np.diag(ridges), np.ones(ratings.item_count), growth=PENALTY_GROWTH),
        )


PENALTY_GROWTH = 0.5
"""A row's penalty grows as (number of ratings) ** PENALTY_GROWTH.

On MovieLens the root predicts better than a fixed penalty and than one that grows with the number itself,
and the same setting serves its small and its large sets.
"""


def penalties(regularization: float, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the penalty of each row's squared length; a row without ratings counts as one with one."""
    weights: NDArray[np.float64] = regularization * np.maximum(sizes, 1) ** PENALTY_GROWTH
    return weights
