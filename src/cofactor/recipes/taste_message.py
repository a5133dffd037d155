"""What a party says about each user in `VerticalTaste`: a few sums over her ratings, of bounded terms.

Items get directions t_j, made from released and public numbers only, none longer than 1. With e_ij the rating
less what was to be expected of the item, clipped to [-1, 1], a message about user i holds the sums over her
items of t_j and of e_ij t_j. A rating changes its own term, and no other.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.grouping import Index, Offsets
from cofactor.data.ratings import Ratings
from cofactor.errors import DataError
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound
from cofactor.recipes.taste_items import KnownItems, Matrix, Units, Vector

COUNT_WEIGHT = 0.5
"""What the sum of directions counts, beside the sum of directions times ratings."""
MESSAGE_BOUND = Bound(size=math.hypot(COUNT_WEIGHT, 1.0), norm="l2", unit="rating")
"""A rating changes the message about one user, by at most this."""
LEVEL, FEATURE, POPULARITY, BIAS = 0.2, 0.05, 0.02, 0.12
"""How much users differ, as variances: in generosity, and in their slopes on features, popularity, bias."""
_LONGEST = 1.3
"""Directions are shortened to so many times their root mean square."""
_GAIN = 1.5
"""How much they count beside the constant one, which is known best."""


@dataclass(frozen=True, eq=False)
class Directions:
    """In which directions tastes are told: one row an item, none longer than 1."""

    rows: Matrix
    scale: float
    """Tastes vary along each direction with about this standard deviation."""

    @classmethod
    def of(cls, items: KnownItems, count: int) -> "Directions":
        """Take the directions in which users are expected to differ most, after a constant one."""
        deviations = np.sqrt(np.r_[np.full(items.features.shape[1], FEATURE), POPULARITY, BIAS])
        known = np.column_stack([items.columns, items.popularity, items.bias]) * deviations
        known = known - items.weights @ known
        variances, axes = np.linalg.eigh((known * items.weights[:, None]).T @ known)
        best = np.argsort(-variances, kind="stable")[:count]
        along = known @ axes[:, best]
        longest = _LONGEST * math.sqrt(max(float(variances[best].sum()), 1e-12))
        lengths = np.linalg.norm(along, axis=1)
        along *= (_GAIN * np.minimum(1.0, longest / np.maximum(lengths, 1e-12)))[:, None]
        rows = np.column_stack([np.full(len(along), math.sqrt(LEVEL)), along])
        scale = float(np.linalg.norm(rows, axis=1).max(initial=math.sqrt(LEVEL)))
        return cls(rows / scale, scale)


def user_messages(
    ratings: Ratings,
    units: Units,
    mean: float,
    bias: Vector,
    directions: Matrix,
    *,
    grain: float | None = None,
) -> Bounded:
    """Return a party's message about each user, bounded whatever mean, biases and directions it was given.

    `bias` and `directions` have one row for each of the party's items. With a grain each rating's term is cut
    to whole grains, towards zero, before it is added: whole numbers come back, and the bound is in grains.
    """
    if bias.shape != (ratings.item_count,) or len(directions) != ratings.item_count:
        raise DataError("a message about users needs a bias and a direction for each of the party's items.")
    grouped = ratings.by_user
    surprises = np.clip(units.inward(grouped.values) - mean - bias[grouped.index], -1.0, 1.0)
    # Whoever sent the directions is not trusted to have kept them short.
    exact = directions.astype(np.float64)
    rows = exact / np.maximum(np.linalg.norm(exact, axis=1), 1.0)[:, None]
    if grain is None:
        return Bounded(value=_user_sums(grouped.ptr, grouped.index, surprises, rows), bound=MESSAGE_BOUND)
    whole = _whole_user_sums(grouped.ptr, grouped.index, surprises, rows, 1 / grain)
    return Bounded(value=whole, bound=in_grains(grain))


def in_grains(grain: float) -> Bound:
    """Return the bound of messages in whole grains."""
    return replace(MESSAGE_BOUND, size=MESSAGE_BOUND.size / grain)


def parts(messages: Matrix) -> tuple[Matrix, Matrix]:
    """Return the sums of directions, and of directions times ratings."""
    sums, told = np.split(messages, 2, axis=1)
    return sums / COUNT_WEIGHT, told


@kernel
def _user_sums(ptr: Offsets, index: Index, surprises: Vector, rows: Matrix) -> Matrix:
    """Add up, over each user's ratings, weighted directions, and directions times surprises."""
    width = rows.shape[1]
    sums = np.zeros((ptr.size - 1, 2 * width))
    for user in range(ptr.size - 1):
        for position in range(ptr[user], ptr[user + 1]):
            row, surprise = rows[index[position]], surprises[position]
            for k in range(width):
                sums[user, k] += COUNT_WEIGHT * row[k]
                sums[user, width + k] += surprise * row[k]
    return sums


@kernel
def _whole_user_sums(
    ptr: Offsets, index: Index, surprises: Vector, rows: Matrix, per_grain: float
) -> NDArray[np.int64]:
    """Add up the same, each term cut to whole grains."""
    width = rows.shape[1]
    sums = np.zeros((ptr.size - 1, 2 * width), np.int64)
    for user in range(ptr.size - 1):
        for position in range(ptr[user], ptr[user + 1]):
            row, surprise = rows[index[position]], surprises[position]
            for k in range(width):
                sums[user, k] += int(COUNT_WEIGHT * row[k] * per_grain)
                sums[user, width + k] += int(surprise * row[k] * per_grain)
    return sums
