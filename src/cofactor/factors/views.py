"""Cold start: people and items without ratings, from what is known about them.

A model with views was fitted to two more tables beside the ratings R ~ PQ': the users' attributes X ~ PU',
and the items' features Y ~ QV' (Mai and Pang, PrivMVMF, equation 1). U turns the attributes of somebody who
has rated nothing into her vector, and V the features of something that nobody has rated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import positive
from cofactor.data.grouping import Values
from cofactor.errors import DataError

if TYPE_CHECKING:
    from cofactor.data.coding import Coding
    from cofactor.data.public_items import PublicItems

NO_ATTRIBUTES = (
    "this model knows nothing about users but their ratings. To recommend by attributes, train the recipe "
    "MultiViewMF (multi-view) with user attributes: Federation.with_user_attributes, or --user-attributes."
)


@dataclass(frozen=True, eq=False)
class Views:
    """What a model has learned about attributes of users and features of items; public like its items."""

    users: Values
    """A row for each number of the attributes, a column for each factor (U); no rows if none were known."""
    items: Values
    """A row for each number of the features, a column for each factor (V); no rows if none were known."""
    ridge: float
    """The penalty on a vector beside its side table's squared errors (lambda2 / lambda1)."""
    attributes: "Coding | None" = None
    """How attributes become the numbers of which `users` has a row each."""
    features: tuple[str, ...] = ()
    """Names of the numbers of which `items` has a row each."""
    feature_coding: "Coding | None" = None
    """How a table's columns become them; None if they were given as numbers."""
    feature_means: Values | None = None
    """Their means in training, which stand in for what is missing of a new item, as they did in training; if
    None, what is missing is left out."""

    @classmethod
    def learned(
        cls,
        users: NDArray[Any],
        items: NDArray[Any],
        *,
        ridge: float,
        attributes: "Coding | None",
        public_items: "PublicItems | None",
    ) -> "Views":
        """Return the views of a training; coding, names and means of features come from its public items."""
        if public_items is None:
            return cls(users, items, ridge, attributes)
        means = public_items.matrix.mean(axis=0, dtype=np.float64).astype(np.float32)
        return cls(users, items, ridge, attributes, public_items.names, public_items.coding, means)

    def __post_init__(self) -> None:
        positive(ridge=self.ridge)
        for name in ("users", "items"):
            view = np.asarray(getattr(self, name), np.float32)
            if view.ndim != 2 or not np.isfinite(view).all():
                raise DataError(f"the view of {name} must be a table of finite numbers.")
            object.__setattr__(self, name, view)
        if self.users.shape[1] != self.items.shape[1]:
            raise DataError(f"views of {self.users.shape[1]} and of {self.items.shape[1]} factors.")
        attributes = 0 if self.attributes is None else self.attributes.width
        if len(self.users) != attributes:
            raise DataError(f"a view of {len(self.users)} attributes, of which {attributes} are coded.")
        if len(self.items) != len(self.features):
            raise DataError(f"a view of {len(self.items)} features, of which {len(self.features)} are named.")
        if self.feature_coding is not None and tuple(self.feature_coding.names) != tuple(self.features):
            raise DataError("features have other names than their coding says.")
        means = self.feature_means
        if means is not None and (means.shape != (len(self.items),) or not np.isfinite(means).all()):
            raise DataError(f"{len(self.items)} features need as many means, all of them finite numbers.")

    @property
    def factors(self) -> int:
        """The length of vectors."""
        return int(self.users.shape[1])

    def user_vectors(self, numbers: NDArray[Any]) -> Values:
        """Return the vectors of users without ratings: p = xU (U'U + ridge I)^-1 (equation 15).

        A row x holds what `attributes` makes of one user; numbers that are missing (NaN) are left out, and
        so are their rows of U.
        """
        return ridge_rows(numbers, self.users, self.ridge)

    def item_vectors(self, numbers: NDArray[Any], usual: Values | None = None) -> Values:
        """Return the vectors of items without ratings: q = yV (V'V + ridge I)^-1 (equation 17).

        That draws them towards 0, far below the rated ones. Given the vector of a `usual` item they are drawn
        towards it instead: all are moved alike, so that none changes places with another new one.
        """
        if self.feature_means is not None:
            numbers = np.where(np.isnan(numbers), self.feature_means, numbers)
        if usual is None:
            return ridge_rows(numbers, self.items, self.ridge)
        moved: Values = usual + ridge_rows(numbers - self.items @ usual, self.items, self.ridge)
        return moved

    def vector_for(self, attributes: Mapping[str, Any]) -> Values:
        """Return the vector of one user who has told something about herself."""
        if self.attributes is None:
            raise DataError(NO_ATTRIBUTES)
        numbers = self.attributes.one(attributes)
        if np.isnan(numbers).all():
            raise DataError(f"no attribute is given. Name at least one of {listed(self.attributes.columns)}.")
        vector: Values = self.user_vectors(numbers[None])[0]
        return vector


def ridge_rows(numbers: NDArray[Any], view: Values, ridge: float) -> Values:
    """Return p for each row x of numbers: the least |x - p view'|^2 + ridge |p|^2 over what is known of x."""
    numbers, wide = np.asarray(numbers, np.float64), view.astype(np.float64)
    if numbers.ndim != 2 or numbers.shape[1] != len(view):
        raise DataError(f"numbers of shape {numbers.shape} for a view of {len(view)} numbers a row.")
    found = np.zeros((len(numbers), view.shape[1]), np.float32)
    patterns, which = np.unique(np.isfinite(numbers), axis=0, return_inverse=True)
    for at, known in enumerate(patterns):
        rows, part = np.flatnonzero(which.reshape(-1) == at), wide[known]
        gram = part.T @ part + ridge * np.eye(view.shape[1])
        found[rows] = np.linalg.solve(gram, part.T @ numbers[np.ix_(rows, known)].T).T
    return found


def listed(names: Any, most: int = 8) -> str:
    """Return the first names in one phrase."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
