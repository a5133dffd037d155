"""What others tell about a user's taste: evidence that `Bayes` adds to her own ratings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cofactor.errors import DataError
from cofactor.factors.bayes_kernels import Matrices


class Evidence(NamedTuple):
    """A normal likelihood of some combinations of a taste's coordinates, for several users."""

    precision: Matrices
    """One symmetric matrix a user, its rows and columns the combinations."""
    information: Matrices
    """One row a user: precision times what the combinations are said to be."""


@dataclass(frozen=True, eq=False)
class Told:
    """Evidence about all users, worked out for some at a time: for all at once it may not fit in memory.

    It adds combinations' precision combinations to the precision of a taste, and combinations' information
    to its precision times mean. Everything is in the units of a scale from 1 to 5.
    """

    combinations: Matrices
    """One row a combination, one column a known coordinate: 1, features, popularity, bias."""
    users: int
    """How many users it is about."""
    about: Callable[[slice], Evidence]
    """Returns what is told about a range of users, the same whenever it is asked."""

    def check(self, users: int, width: int) -> None:
        """Refuse what is told about other users, or about other coordinates, than a model has."""
        if (self.users, self.combinations.shape[1]) != (users, width):
            raise DataError(
                f"what is told is about {self.users:,} users and {self.combinations.shape[1]} coordinates; "
                f"the model has {users:,} and {width}."
            )

    def add(self, users: slice, precision: Matrices, information: Matrices) -> None:
        """Add what is told about a range of users to the precision and information of their tastes."""
        known, told = self.combinations.shape[1], self.about(users)
        if not (np.isfinite(told.precision).all() and np.isfinite(told.information).all()):
            raise DataError("what is told about tastes must be finite numbers.")
        precision[:, :known, :known] += self.combinations.T @ told.precision @ self.combinations
        information[:, :known] += told.information @ self.combinations
