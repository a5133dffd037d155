"""What others tell about a user's taste: evidence that `Bayes` adds to her own ratings."""

from dataclasses import dataclass

import numpy as np

from cofactor.errors import DataError
from cofactor.factors.bayes_kernels import Matrices


@dataclass(frozen=True, eq=False)
class Told:
    """A normal likelihood, for each user, of a few combinations of the known coordinates of her taste.

    It adds combinations' precision combinations to the precision of a taste, and combinations' information
    to its precision times mean. Everything is in the units of a scale from 1 to 5.
    """

    combinations: Matrices
    """One row a combination, one column a known coordinate: 1, features, popularity, bias."""
    precision: Matrices
    """One symmetric matrix a user, its rows and columns the combinations."""
    information: Matrices
    """One row a user: precision times what the combinations are said to be."""

    def __post_init__(self) -> None:
        count = len(self.combinations)
        users = len(self.information)
        if self.precision.shape != (users, count, count) or self.information.shape != (users, count):
            raise DataError("what is told about tastes needs a matrix and a row for each user.")
        if not all(map(_finite, (self.combinations, self.precision, self.information))):
            raise DataError("what is told about tastes must be finite numbers.")

    def check(self, users: int, width: int) -> None:
        """Refuse what is told about other users, or about other coordinates, than a model has."""
        if (len(self.information), self.combinations.shape[1]) != (users, width):
            raise DataError(
                f"what is told is about {len(self.information):,} users and {self.combinations.shape[1]} "
                f"coordinates; the model has {users:,} and {width}."
            )

    def add(self, users: slice, precision: Matrices, information: Matrices) -> None:
        """Add what is told about a range of users to the precision and information of their tastes."""
        known = self.combinations.shape[1]
        precision[:, :known, :known] += self.combinations.T @ self.precision[users] @ self.combinations
        information[:, :known] += self.information[users] @ self.combinations


def _finite(numbers: Matrices) -> bool:
    return bool(np.isfinite(numbers).all())
