"""What every factorization must beat: means, biases and popularity, as models without factors."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import not_negative, positive, whole
from cofactor.data.grouping import Index, Values
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import DataError
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.progress import Listener, Progress, nobody


@dataclass(frozen=True, kw_only=True)
class GlobalMean:
    """Predicts the mean of all ratings for everybody and everything."""

    def fit(self, ratings: Ratings, *, seed: int = 0, progress: Listener = nobody) -> Factors:  # noqa: ARG002
        """Fit the model; nothing in it is random, so the seed changes nothing."""
        _explicit(ratings)
        progress(Progress("global mean", 1, 1))
        return _without_factors(ratings, ratings.mean)


@dataclass(frozen=True, kw_only=True)
class UserMean:
    """Predicts each user's own mean rating, damped towards the mean of all."""

    damping: float = 3.0
    """How many imagined ratings at the mean of all are added to each user's own; 0 for the plain mean."""

    def __post_init__(self) -> None:
        not_negative(damping=self.damping)

    def fit(self, ratings: Ratings, *, seed: int = 0, progress: Listener = nobody) -> Factors:  # noqa: ARG002
        """Fit the model; nothing in it is random, so the seed changes nothing."""
        _explicit(ratings)
        bias = _damped_means(ratings.users, ratings.values - ratings.mean, ratings.user_count, self.damping)
        progress(Progress("user means", 1, 1))
        return _without_factors(ratings, ratings.mean, user_bias=bias, user_damping=self.damping)


@dataclass(frozen=True, kw_only=True)
class ItemMean:
    """Predicts each item's mean rating, damped towards the mean of all."""

    damping: float = 3.0
    """How many imagined ratings at the mean of all are added to each item's own; 0 for the plain mean."""

    def __post_init__(self) -> None:
        not_negative(damping=self.damping)

    def fit(self, ratings: Ratings, *, seed: int = 0, progress: Listener = nobody) -> Factors:  # noqa: ARG002
        """Fit the model; nothing in it is random, so the seed changes nothing."""
        _explicit(ratings)
        bias = _damped_means(ratings.items, ratings.values - ratings.mean, ratings.item_count, self.damping)
        progress(Progress("item means", 1, 1))
        return _without_factors(ratings, ratings.mean, item_bias=bias)


@dataclass(frozen=True, kw_only=True)
class UserItemBias:
    """Predicts mean + user bias + item bias: the ridge regression on who rated and what."""

    user_damping: float = 4.0
    """Penalty on squared user biases, counted in ratings."""
    item_damping: float = 5.0
    """Penalty on squared item biases, counted in ratings."""
    iterations: int = 10
    """How often to alternate between items and users; test errors settle after about five."""

    def __post_init__(self) -> None:
        positive(user_damping=self.user_damping, item_damping=self.item_damping)
        whole(iterations=self.iterations)

    def fit(self, ratings: Ratings, *, seed: int = 0, progress: Listener = nobody) -> Factors:  # noqa: ARG002
        """Fit the model; nothing in it is random, so the seed changes nothing."""
        _explicit(ratings)
        users, items, residuals = ratings.users, ratings.items, ratings.values - ratings.mean
        user_bias, item_bias = np.zeros(ratings.user_count), np.zeros(ratings.item_count)
        for step in range(self.iterations):
            item_bias = _damped_means(items, residuals - user_bias[users], len(item_bias), self.item_damping)
            user_bias = _damped_means(users, residuals - item_bias[items], len(user_bias), self.user_damping)
            progress(Progress("user and item biases", step + 1, self.iterations))
        return _without_factors(
            ratings, ratings.mean, user_bias=user_bias, item_bias=item_bias, user_damping=self.user_damping
        )


FEATURE_VARIANCE = 2.0
"""What the variances of all public columns over items are made to add up to: about that of genres and years
of films as they are."""


def balanced(features: NDArray[Any]) -> NDArray[np.float64]:
    """Return public columns, centred, and scaled so that all of them together vary by a fixed amount.

    However many there are, and whatever their units, a prior on tastes then says as much.
    """
    centred = features - features.mean(axis=0, dtype=np.float64)
    total = float(np.square(centred).mean(axis=0).sum())
    return np.asarray(centred * math.sqrt(FEATURE_VARIANCE / total) if total > 0 else centred)


@dataclass(frozen=True, kw_only=True)
class PersonalRidge:
    """Predicts by each user's own ridge regression on public features of the items.

    Nothing in it is learned from another user, not even a mean: what everybody has who sends nothing.
    """

    level_damping: float = 1.5
    """Penalty on the squared distance of a user's level from the middle of the scale, counted in ratings."""
    taste_damping: float = 15.0
    """Penalty on squared tastes for features, counted in ratings: the noise of a rating is so many times as
    large as what users differ by, as variances."""

    def __post_init__(self) -> None:
        positive(level_damping=self.level_damping, taste_damping=self.taste_damping)

    def fit(
        self,
        ratings: Ratings,
        *,
        features: NDArray[np.float32],
        scale: Scale | None = None,
        seed: int = 0,  # noqa: ARG002 (nothing in it is random)
        progress: Listener = nobody,
    ) -> Factors:
        """Fit the model; `features` has a row for each item. The scale is the ratings' own, if left out."""
        _explicit(ratings)
        public = scale or ratings.scale
        assert public is not None
        if features.shape[:1] != (ratings.item_count,) or features.ndim != 2:
            raise DataError(f"features have shape {features.shape} for {ratings.item_count:,} items.")
        vectors = balanced(features)
        ridge = np.diag([self.level_damping, *[self.taste_damping] * vectors.shape[1]])
        centre = (public.low + public.high) / 2
        rows = _own_rows(ratings, vectors, centre, ridge)
        progress(Progress("personal ridge", 1, 1))
        items = len(vectors)
        return Factors(
            user_ids=ratings.user_ids,
            item_ids=ratings.item_ids,
            mean=centre,
            user_bias=rows[:, 0].astype(np.float32),
            item_bias=np.zeros(items, np.float32),
            user_vectors=rows[:, 1:].astype(np.float32),
            item_vectors=vectors.astype(np.float32),
            scale=public,
            seen=seen_in(ratings),
            home=HomeFit(ridge, np.ones(items)),
        )


def _own_rows(
    ratings: Ratings, vectors: NDArray[np.float64], centre: float, ridge: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve each user's (X'X + ridge) row = X'(rating - centre), where X begins with a column of ones."""
    own, known = ratings.by_user, np.column_stack([np.ones(len(vectors)), vectors])
    rows = np.zeros((ratings.user_count, known.shape[1]))
    for user in np.flatnonzero(own.sizes):
        rated = slice(own.ptr[user], own.ptr[user + 1])
        x = known[own.index[rated]]
        rows[user] = np.linalg.solve(x.T @ x + ridge, x.T @ (own.values[rated] - centre))
    return rows


@dataclass(frozen=True, kw_only=True)
class Popularity:
    """Ranks items by how many users rated them; its scores are those counts, not predicted ratings."""

    def fit(self, ratings: Ratings, *, seed: int = 0, progress: Listener = nobody) -> Factors:  # noqa: ARG002
        """Fit the model; nothing in it is random, so the seed changes nothing."""
        counts = np.bincount(ratings.items, minlength=ratings.item_count)
        progress(Progress("popularity", 1, 1))
        return _without_factors(ratings, 0.0, item_bias=counts.astype(np.float64), ranks_only=True)


def _explicit(ratings: Ratings) -> None:
    if ratings.implicit:
        raise DataError("these ratings have no values, so there is no mean to predict. Use Popularity().")


def _damped_means(
    groups: Index, values: Values | NDArray[np.float64], count: int, damping: float
) -> NDArray[np.float64]:
    """Return the mean of each group's values, with `damping` zeros added to it; 0 for an empty group."""
    sums = np.bincount(groups, values, minlength=count)
    sizes = np.bincount(groups, minlength=count) + damping
    return sums / np.where(sizes > 0, sizes, 1.0)


def _without_factors(
    ratings: Ratings,
    mean: float,
    *,
    user_bias: NDArray[np.float64] | None = None,
    item_bias: NDArray[np.float64] | None = None,
    user_damping: float = 0.0,
    ranks_only: bool = False,
) -> Factors:
    users, items = ratings.user_count, ratings.item_count
    precision = np.zeros((0, 0)) if user_bias is None else np.array([[user_damping]])
    return Factors(
        user_ids=ratings.user_ids,
        item_ids=ratings.item_ids,
        mean=mean,
        user_bias=np.zeros(users, np.float32) if user_bias is None else user_bias.astype(np.float32),
        item_bias=np.zeros(items, np.float32) if item_bias is None else item_bias.astype(np.float32),
        user_vectors=np.zeros((users, 0), np.float32),
        item_vectors=np.zeros((items, 0), np.float32),
        scale=None if ranks_only else ratings.scale,
        seen=seen_in(ratings),
        home=HomeFit(precision, np.ones(items)),
    )
