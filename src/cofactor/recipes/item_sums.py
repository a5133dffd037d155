"""What users add to the sums about items: one message each, of length 1, whatever they have rated.

All ratings of a user go into the message. It is normalised to length 1 as a whole, so that no constant limits
it and users whose ratings are hard to predict count for less; then it is rounded to whole grains and, should
rounding have lengthened it, shortened once more. Where users have weights, the message of each is multiplied
by hers, and she is bounded by so much less.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.federation.door import COORDINATOR
from cofactor.federation.halves import array_of
from cofactor.federation.messages import Message
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound
from cofactor.privacy.fixed_point import FixedPoint
from cofactor.randomness import Random
from cofactor.recipes.home_ridge import Fitted, fitted, taste_root
from cofactor.recipes.item_beliefs import RATING_VARIANCE
from cofactor.recipes.item_factors import Told
from cofactor.recipes.item_weights import multiplied
from cofactor.recipes.projected_steps import Sketch

Reals = NDArray[np.float64]

GAIN_LIMIT = 1.0
"""How much better or worse a user may say that predictions have become."""
SPREAD_LIMIT = 8.0
"""How far a user's taste may spread beyond what was thought, as a Frobenius norm."""
_LARGEST_COLUMN, _LARGEST_BIAS, _LARGEST_VARIANCE = 30.0, 10.0, 10.0
_WIDTH = 4.0
"""Of the scale: no rating is missed by more."""
_USERS = 2048
"""Users that are worked on at once."""


@dataclass(frozen=True, eq=False)
class Known:
    """What the coordinator told about items, brought to where nothing can go wrong with it."""

    expected: Reals
    """Of each item, what everybody's rating of it is taken to be."""
    columns: Reals
    """In coordinates in which tastes have unit covariance."""
    weights: Reals
    importance: Reals
    root: Reals
    """By which a taste is multiplied to be in the columns' own coordinates."""
    plain: Reals
    """The columns in their own coordinates."""

    @classmethod
    def of(cls, message: Message, features: Reals, factors: int) -> "Known":
        """Read a message; whatever it holds, it becomes numbers that no fit can fail on."""
        items, width = len(features), features.shape[1] + 3 + factors
        mean = np.clip(array_of(message, "mean", (), COORDINATOR), -2.0, 2.0)
        bias = np.clip(array_of(message, "bias", (items,), COORDINATOR), -_LARGEST_BIAS, _LARGEST_BIAS)
        variance = np.clip(array_of(message, "variance", (items,), COORDINATOR), 0.0, _LARGEST_VARIANCE)
        learned = array_of(message, "learned", (items, 2), COORDINATOR)
        own = array_of(message, "factors", (items, factors), COORDINATOR)
        columns = np.column_stack([np.ones(items), features, learned, own])
        columns = np.clip(columns, -_LARGEST_COLUMN, _LARGEST_COLUMN)
        root = taste_root(array_of(message, "covariance", (width, width), COORDINATOR))
        importance = array_of(message, "importance", (items,), COORDINATOR)
        return cls(
            expected=mean + bias,
            columns=np.ascontiguousarray(columns @ root),
            weights=1.0 / (RATING_VARIANCE + variance),
            importance=np.clip(importance, 1e-6, 1e6),
            root=root,
            plain=columns,
        )

    def fit(self, ratings: Grouped, told: Told | None = None, *, spreads: bool = False) -> Fitted:
        """Fit users to their ratings, which are in units of a scale from 1 to 5, less its middle."""
        targets = ratings.values - self.expected[ratings.index]
        ways = None if told is None else self.root[-told.factors or len(self.root) :].T @ told.whitening
        return fitted(ratings.ptr, ratings.index, targets, self.columns, self.weights, ways, spreads=spreads)


def told_in(message: Message, factors: int) -> Told:
    """Read by what tastes are to be multiplied: for as many factors as were planned."""
    return Told(np.clip(array_of(message, "told", (factors, factors), COORDINATOR), -1e6, 1e6))


def messages(ratings: Grouped, known: Known, fit: Fitted, count_weight: float, told: Told) -> Reals:
    """Return a row for each rating; all rows of a user together have length 1.

    A rating with weight w and residual e tells alpha w, w e and, along each direction, gamma w e t, where t
    is the user's taste. A user for whom that is no number tells nothing.
    """
    owners = ratings.members()
    tastes = _shortened(fit.told, told.longest) * told.weight
    importance = known.importance[ratings.index]
    rows = np.column_stack(
        [np.full(len(owners), count_weight), fit.residuals, fit.residuals[:, None] * tastes]
    )
    rows *= importance[:, None]
    lengths = np.sqrt(np.bincount(owners, np.square(rows).sum(axis=1), minlength=len(ratings.ptr) - 1))
    usable = np.isfinite(lengths) & (lengths > 0)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=usable)
    return np.asarray(np.where(usable[owners, None], rows, 0.0) * scale[owners, None])


def chosen(ratings: Grouped, importance: Reals) -> Reals:
    """Return a row for each rating that only tells that it happened; all of a user have length 1."""
    owners, own = ratings.members(), importance[ratings.index]
    lengths = np.sqrt(np.bincount(owners, own**2, minlength=len(ratings.ptr) - 1))
    return np.asarray(own / lengths[owners])[:, None]


def _shortened(tastes: Reals, longest: float) -> Reals:
    lengths = np.sqrt(np.square(tastes).sum(axis=1, keepdims=True))
    return np.asarray(tastes * np.minimum(1.0, longest / np.maximum(lengths, 1e-12)))


@dataclass(frozen=True, eq=False)
class Summed:
    """What all users of a party add up to."""

    items: Bounded
    spread: Bounded | None


def summed(
    ratings: Grouped,
    known: Known,
    told: Told | None,
    *,
    count_weight: float,
    sketch: Sketch,
    items: FixedPoint,
    spread: FixedPoint | None,
    random: Random,
    weights: Reals | None = None,
) -> Summed:
    """Add up the messages of all users, and how their tastes spread if there is a grid for that.

    Items are mixed down by the sketch before what a user adds is shortened to length 1.

    Without anything to be told, users say which items they have chosen, and no more.
    """
    count, width = sketch.count, known.columns.shape[1]
    columns = 1 if told is None else 2 + told.factors
    table, spreads = np.zeros((count, columns), np.int64), np.zeros(width * (width + 1) // 2, np.int64)
    for part, own in _parts(ratings, weights):
        if told is None:
            rows = chosen(part, known.importance)
        else:
            fit = known.fit(part, told, spreads=spread is not None)
            rows = messages(part, known, fit, count_weight, told)
        rows = multiplied(rows, None if own is None else own[part.members()])
        mixed, places = rows * sketch.signs[part.index, None], sketch.rows[part.index]
        table += items.table(
            mixed, part.ptr, places, place_count=count, limit=1.0, random=random, weights=own
        ).value
        if spread is not None:
            known_spreads = np.where(np.isfinite(fit.spreads).all(axis=1, keepdims=True), fit.spreads, 0.0)
            spreads += bounded_total(known_spreads, own, spread, limit=SPREAD_LIMIT, random=random).value
    most, weighed = items.whole_limit(1.0, table.size), weights is not None
    if spread is None:
        return Summed(_stated(table, most, weighed), None)
    limit = spread.whole_limit(SPREAD_LIMIT, spreads.size)
    return Summed(_stated(table, most, weighed), _stated(spreads, limit, weighed))


def gains(
    ratings: Grouped,
    known: Known,
    alone: Known,
    grid: FixedPoint,
    random: Random,
    weights: Reals | None = None,
) -> Bounded:
    """Add up by how much users predict their ratings better with what is known of items than without.

    Each rating is predicted from the user's other ratings; what is known of items has the user's own message
    in it, so that gains are a little too large. What a user tells is at most 1, or -1.
    """
    total = np.zeros(1, np.int64)
    for part, own in _parts(ratings, weights):
        errors = [np.square(np.clip(each.fit(part).residuals, -_WIDTH, _WIDTH)) for each in (alone, known)]
        better = np.bincount(part.members(), errors[0] - errors[1], minlength=len(part.sizes))
        rows = np.where(np.isfinite(better), better, 0.0) / np.sqrt(np.maximum(part.sizes, 1))
        total += bounded_total(rows[:, None], own, grid, limit=GAIN_LIMIT, random=random).value
    return _stated(total, grid.whole_limit(GAIN_LIMIT, 1), weights is not None)


def bounded_total(
    rows: Reals, weights: Reals | None, grid: FixedPoint, *, limit: float, random: Random
) -> Bounded:
    """Add up a row for each user, multiplied by her weight if users have any, and at most so long."""
    own = multiplied(rows, weights)
    return grid.total(own, limit=limit, random=random, unit="user", weights=weights)


def bound_of(limit: int, *, weighed: bool) -> Bound:
    """Return the most by which a user changes a sum; where she has a weight, it multiplies that."""
    return Bound(size=float(limit), norm="l2", unit="user", weighed=weighed)


def _stated(total: NDArray[np.int64], limit: int, weighed: bool) -> Bounded:
    return Bounded(value=total, bound=bound_of(limit, weighed=weighed))


def _parts(ratings: Grouped, weights: Reals | None) -> Iterator[tuple[Grouped, Reals | None]]:
    """Return the users in portions, with their weights, so that what they need fits into memory."""
    count = len(ratings.ptr) - 1
    for begin in range(0, count, _USERS):
        end = min(begin + _USERS, count)
        yield ratings.window(begin, end), None if weights is None else weights[begin:end]
