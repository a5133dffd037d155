"""How much one unit may contribute. A `Bounded` value is all that a mechanism accepts.

Every function here enforces the bound that it states. A recipe or fused kernel that enforces a bound of its
own states it as `Bounded(value=..., bound=Bound(...))` and is tested with `cofactor.privacy.sensitivity`.

A bound for unit "rating" is right only where a rating's row depends on that rating and on public numbers:
a row made with a user's vector depends on all ratings that the vector was fitted on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.config import whole
from cofactor.errors import ConfigError, DataError
from cofactor.privacy.budget import Adjacency, Unit
from cofactor.privacy.clipping import (
    Length,
    checked_limit,
    checked_reals,
    checked_whole,
    clipped,
    clipped_sum,
    clipped_whole,
)
from cofactor.privacy.events import Bound, Norm

Shortened = tuple[int, int]
"""How many contributions were shortened noticeably, and how many there were."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounded:
    """A value and the most by which one unit can change it.

    The functions of this module make it and enforce the bound. Made by hand, its bound is taken on trust.
    """

    value: NDArray[Any] = field(repr=False)
    """What would be released if there were no noise. It is never printed, and cannot be changed."""
    bound: Bound
    shortened: Shortened | None = field(default=None, repr=False)
    """How many contributions were shortened, and of how many: it is private, and stays at home."""

    def __post_init__(self) -> None:
        if not isinstance(self.value, np.ndarray) or not isinstance(self.bound, Bound):
            raise ConfigError("a Bounded value is an array and a Bound.")
        if not np.issubdtype(self.value.dtype, np.number) or not np.all(np.isfinite(self.value)):
            raise ConfigError("a bounded value must be an array of finite numbers. Nothing was released.")
        fixed = np.asarray(self.value).view()
        fixed.flags.writeable = False
        object.__setattr__(self, "value", fixed)


def vector(
    values: ArrayLike, *, limit: float, unit: Unit, norm: Length = "l2", adjacency: Adjacency = "empty"
) -> Bounded:
    """Bound what one unit sends by itself, an array of any shape, to a length of at most `limit`."""
    return Bounded(value=clipped(values, limit, norm), bound=_bound(limit, norm, unit, adjacency))


def sum_of_records(
    rows: ArrayLike, *, limit: float, unit: Unit, norm: Length = "l2", adjacency: Adjacency = "empty"
) -> Bounded:
    """Add up rows, each the whole contribution of one unit and shortened to at most `limit`."""
    count = len(checked_reals("rows", rows, dimensions=2))
    added = clipped_sum(rows, np.arange(count + 1), np.zeros(count, np.int64), 1, limit, norm)
    bound, shortened = _bound(limit, norm, unit, adjacency), (added.shortened, count)
    return Bounded(value=added.total[0], bound=bound, shortened=shortened)


def sum_of_users(
    rows: ArrayLike, ptr: ArrayLike, *, limit: float, norm: Length = "l2", adjacency: Adjacency = "empty"
) -> Bounded:
    """Add up rows, with all rows of a user together shortened to at most `limit`.

    User g has rows ptr[g] to ptr[g + 1].
    """
    count = len(checked_reals("rows", rows, dimensions=2))
    added = clipped_sum(rows, ptr, np.zeros(count, np.int64), 1, limit, norm)
    bound, shortened = _bound(limit, norm, "user", adjacency), (added.shortened, np.size(ptr) - 1)
    return Bounded(value=added.total[0], bound=bound, shortened=shortened)


def table_of_users(
    rows: ArrayLike,
    ptr: ArrayLike,
    places: ArrayLike,
    *,
    place_count: int,
    limit: float,
    norm: Length = "l2",
    adjacency: Adjacency = "empty",
) -> Bounded:
    """Add rows to a table, with all that a user adds to it shortened to at most `limit`.

    User g has rows ptr[g] to ptr[g + 1]; each is added to row `places[...]` of `place_count` rows: the
    gradients of a user's ratings, added to the rows of their items.
    """
    added = clipped_sum(rows, ptr, places, place_count, limit, norm)
    bound, shortened = _bound(limit, norm, "user", adjacency), (added.shortened, np.size(ptr) - 1)
    return Bounded(value=added.total, bound=bound, shortened=shortened)


def coordinates(values: ArrayLike, *, limit: float, unit: Unit = "user") -> Bounded:
    """Bound every coordinate of what one unit sends to between -limit and limit."""
    limit = checked_limit("limit", limit)
    # In float64: the nearest float32 may lie beyond the limit.
    found = checked_reals("values", values).astype(np.float64)
    return Bounded(value=np.clip(found, -limit, limit), bound=_bound(limit, "max", unit, "replace"))


def whole_vector(
    values: ArrayLike,
    *,
    limit: float,
    norm: Literal["l1", "l2", "max"],
    unit: Unit,
    adjacency: Adjacency = "empty",
) -> Bounded:
    """Bound the whole numbers that one unit sends by itself; a norm of "max" bounds every coordinate."""
    numbers = checked_whole("values", values)
    kept = clipped_whole(numbers.reshape(1, -1), limit, norm).reshape(numbers.shape)
    return Bounded(value=kept, bound=_bound(limit, norm, unit, adjacency))


def whole_sum(
    rows: ArrayLike, *, limit: float, norm: Length, unit: Unit, adjacency: Adjacency = "empty"
) -> Bounded:
    """Add up rows of whole numbers, each the whole contribution of one unit, shortened to at most `limit`."""
    kept = clipped_whole(rows, limit, norm)
    if len(kept) * float(limit) >= 2**62:
        raise ConfigError(f"a sum of {len(kept):,} units does not fit 63 bits. Use a coarser grid.")
    return Bounded(value=kept.sum(axis=0), bound=_bound(limit, norm, unit, adjacency))


def stated(total: NDArray[np.int64], *, limit: float, unit: Unit, adjacency: Adjacency = "empty") -> Bounded:
    """State the bound of a sum of whole numbers to which each unit added at most `limit`, in l2.

    For those who have enforced that themselves.
    """
    return Bounded(value=total, bound=_bound(limit, "l2", unit, adjacency))


def categories(values: ArrayLike, *, choices: int, unit: Unit = "user") -> Bounded:
    """Check answers numbered from 0 to choices - 1, each the answer of another unit.

    Whoever has no answer must send one all the same, drawn by chance: that somebody is silent tells as well.
    """
    whole(choices=choices)
    if choices < 2:
        raise ConfigError(f"choices must be at least 2, got {choices}.")
    found = checked_whole("values", values)
    if np.any((found < 0) | (found >= choices)):
        raise DataError(f"an answer is not between 0 and {choices - 1}. Correct it, or raise choices.")
    return Bounded(value=found, bound=_bound(choices - 1, "choice", unit, "replace"))


def divided_answers(questions: ArrayLike, answers: ArrayLike, *, choices: Sequence[int]) -> Bounded:
    """Check the answers of units that are divided over several questions, with so many choices each.

    Which question falls to whom must be public chance: it must not depend on the answers.
    """
    asked, found = checked_whole("questions", questions), checked_whole("answers", answers)
    if asked.ndim != 1 or asked.shape != found.shape:
        raise ConfigError("questions and answers must be two rows of the same length.")
    if np.any((asked < 0) | (asked >= len(choices))):
        raise DataError(f"a question is not between 0 and {len(choices) - 1}.")
    if np.any((found < 0) | (found >= np.asarray(choices)[asked])):
        raise DataError("an answer is not among the choices of its question. Correct it, or raise choices.")
    bound = _bound(max(choices) - 1, "choice", "user", "replace")
    return Bounded(value=np.stack([asked, found], axis=1), bound=bound)


def registers(values: ArrayLike) -> Bounded:
    """State that these are registers of sets, the sets along the last axis, and each user is in one at most.

    A register is the largest hash of the set's users, 0 if there are none. Who makes them enforces that.
    """
    found = checked_whole("registers", values)
    if np.any(found < 0):
        raise ConfigError("a register is never negative. Nothing was released.")
    return Bounded(value=found, bound=MEMBER)


MEMBER = Bound(size=1, norm="member", unit="user")
"""A user is in one of several sets, or in none."""


def _bound(limit: float, norm: Norm, unit: Unit, adjacency: Adjacency) -> Bound:
    """Return the most by which a unit bounded by `limit` changes a sum.

    To become nothing takes its own length; to become another takes up to twice that. A bound on every
    coordinate is that of the contribution itself.
    """
    twice = norm in ("l1", "l2") and adjacency != "empty"
    return Bound(size=float(limit) * (2 if twice else 1), norm=norm, unit=unit, adjacency=adjacency)
