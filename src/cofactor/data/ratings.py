"""`Ratings`: an immutable rating matrix with the ids it came with."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.data.grouping import Grouped, Index, Times, Values, first_duplicate, group, read_only
from cofactor.errors import DataError, UnknownId, did_you_mean

Id = int | str
Ids = NDArray[Any]
"""Original ids, one a row: int64 or text."""
Duplicates = Literal["error", "last", "mean"]
Selection = slice | Sequence[int] | NDArray[Any]


@dataclass(frozen=True)
class Scale:
    """The values a rating may take."""

    low: float
    high: float
    step: float | None = None
    """Distance between neighbouring values; None when any value in between is possible."""

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise DataError(f"a rating scale needs low < high, got {self.low:g} to {self.high:g}.")

    def __str__(self) -> str:
        steps = f" in steps of {self.step:g}" if self.step else ""
        return f"{self.low:g} to {self.high:g}{steps}"

    @property
    def middle(self) -> float:
        """Halfway between the ends."""
        return (self.low + self.high) / 2

    def clip(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring predictions back onto the scale."""
        clipped: NDArray[Any] = np.clip(values, self.low, self.high)
        return clipped

    def covers(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Say of each value whether it lies between the ends."""
        inside: NDArray[np.bool_] = (values >= self.low) & (values <= self.high)
        return inside

    @classmethod
    def of(cls, values: Values) -> "Scale | None":
        """Read the scale off the values; None when all of them are equal."""
        if len(values) == 0:
            return None
        distinct = _some_distinct(values)
        if len(distinct) < 2:
            return None
        gaps = np.diff(distinct)
        step = float(gaps.min())
        regular = len(distinct) <= 101 and np.allclose(gaps / step, np.round(gaps / step), atol=1e-3)
        return cls(float(distinct[0]), float(distinct[-1]), round(step, 6) if regular else None)


def _some_distinct(values: Values) -> Values:
    """Return the distinct values, or only the ends when there are too many for a scale with steps."""
    if len(np.unique(values[:10_000])) > 101:
        return np.array([values.min(), values.max()], np.float32)
    return np.unique(values)


class Ratings:
    """Who rated what how: immutable, by original ids outside and by row numbers inside.

    `users`, `items`, `values` and `times` are aligned, ordered by user. Row number u stands for
    `user_ids[u]`, column number i for `item_ids[i]`; both may include users and items without ratings,
    so that the parts of a split or of a partition share their numbering.
    """

    def __init__(
        self,
        grouped: Grouped,
        *,
        user_ids: Ids,
        item_ids: Ids,
        scale: Scale | None,
        grouped_by: Literal["user", "item"] = "user",
    ) -> None:
        """Wrap arrays that are already numbered and grouped; see `from_arrays` for raw ids."""
        self.user_ids = read_only(user_ids)
        self.item_ids = read_only(item_ids)
        self.scale = scale
        self.__dict__[f"by_{grouped_by}"] = grouped.read_only()

    @classmethod
    def from_arrays(
        cls,
        users: ArrayLike,
        items: ArrayLike,
        values: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
        scale: Scale | None = None,
        duplicates: Duplicates = "error",
    ) -> "Ratings":
        """Build ratings from aligned arrays of original ids; without values they are implicit."""
        user_ids, user_rows = np.unique(np.asarray(users), return_inverse=True)
        item_ids, item_rows = np.unique(np.asarray(items), return_inverse=True)
        return cls.from_rows(
            user_rows, item_rows, values, times=times, user_ids=user_ids, item_ids=item_ids,
            scale=scale, duplicates=duplicates,
        )  # fmt: skip

    @classmethod
    def from_rows(
        cls,
        users: ArrayLike,
        items: ArrayLike,
        values: ArrayLike | None = None,
        *,
        user_ids: Ids,
        item_ids: Ids,
        times: ArrayLike | None = None,
        scale: Scale | None = None,
        duplicates: Duplicates = "error",
    ) -> "Ratings":
        """Build ratings whose users and items are already row numbers into the given ids."""
        rows, columns = np.asarray(users, np.int32), np.asarray(items, np.int32)
        numbers = np.ones(len(rows), np.float32) if values is None else np.asarray(values, np.float32)
        stamps = None if times is None else np.asarray(times, np.int64)
        for name, array in (("items", columns), ("values", numbers), ("times", stamps)):
            if array is not None and len(array) != len(rows):
                raise DataError(f"users has {len(rows):,} entries but {name} has {len(array):,}.")
        if not np.isfinite(numbers).all():
            at = int(np.flatnonzero(~np.isfinite(numbers))[0])
            raise DataError(f"rating number {at + 1} is {numbers[at]}; every rating must be a finite number.")
        user_ids, item_ids = _plain_ids(user_ids), _plain_ids(item_ids)
        grouped = group(rows, columns, numbers, stamps, len(user_ids))
        grouped = _without_duplicates(grouped, duplicates, user_ids, item_ids)
        known = scale if scale is not None or values is None else Scale.of(grouped.values)
        if known is not None:
            _check_scale(grouped.values, known)
        return cls(grouped, user_ids=user_ids, item_ids=item_ids, scale=known)

    @cached_property
    def by_user(self) -> Grouped:
        """The ratings grouped by user: `by_user.index` holds items."""
        return self.by_item.turned(self.user_count)

    @cached_property
    def by_item(self) -> Grouped:
        """The ratings grouped by item: `by_item.index` holds users."""
        return self.by_user.turned(self.item_count)

    @property
    def users(self) -> Index:
        """Row number of each rating's user."""
        return self.by_user.members()

    @property
    def items(self) -> Index:
        """Row number of each rating's item."""
        return self.by_user.index

    @property
    def values(self) -> Values:
        """The ratings themselves; ones when implicit."""
        return self.by_user.values

    @property
    def times(self) -> Times | None:
        """When each rating was given, in seconds, where known."""
        return self.by_user.times

    @property
    def user_count(self) -> int:
        """Number of users, those without ratings included."""
        return len(self.user_ids)

    @property
    def item_count(self) -> int:
        """Number of items, those without ratings included."""
        return len(self.item_ids)

    @property
    def implicit(self) -> bool:
        """Whether a rating says only that it happened."""
        return self.scale is None

    @property
    def mean(self) -> float:
        """The mean rating."""
        if len(self) == 0:
            raise DataError("there are no ratings to take the mean of.")
        return float(self._any_layout.values.mean(dtype=np.float64))

    @property
    def density(self) -> float:
        """Share of the matrix that is filled."""
        cells = self.user_count * self.item_count
        return len(self) / cells if cells else 0.0

    def __len__(self) -> int:
        return len(self._any_layout.values)

    def __repr__(self) -> str:
        kind = f"{self.scale}" if self.scale else "implicit"
        return (
            f"Ratings({len(self):,} ratings by {self.user_count:,} users of {self.item_count:,} items, "
            f"{kind}, {self.density:.2%} filled)"
        )

    def user_row(self, user: Id) -> int:
        """Return the row number of a user's id."""
        return find_row(self._user_rows, user, "user")

    def item_row(self, item: Id) -> int:
        """Return the row number of an item's id."""
        return find_row(self._item_rows, item, "item")

    def select(self, *, users: Selection | None = None, items: Selection | None = None) -> "Ratings":
        """Return the ratings of some users or items, by row number; the other side keeps its numbering.

        A slice shares the ratings' memory; a list of rows or a mask copies them.
        """
        chosen = self
        if users is not None:
            chosen = chosen._part(chosen.by_user, users, "user")
        if items is not None:
            chosen = chosen._part(chosen.by_item, items, "item")
        return chosen

    def where(self, mask: NDArray[np.bool_]) -> "Ratings":
        """Return the ratings where the mask, aligned with `values`, is true; ids stay as they are."""
        if mask.shape != (len(self),):
            raise DataError(f"the mask has shape {mask.shape}; there are {len(self):,} ratings.")
        return self._like(self.by_user.keep(mask))

    def compact(self) -> "Ratings":
        """Drop users and items without ratings."""
        kept = self.select(users=self.by_user.sizes > 0)
        return kept.select(items=kept.by_item.sizes > 0)

    @property
    def _any_layout(self) -> Grouped:
        return self.__dict__.get("by_user") or self.by_item

    @cached_property
    def _user_rows(self) -> dict[Id, int]:
        return {user: row for row, user in enumerate(self.user_ids.tolist())}

    @cached_property
    def _item_rows(self) -> dict[Id, int]:
        return {item: row for row, item in enumerate(self.item_ids.tolist())}

    def _part(self, grouped: Grouped, chosen: Selection, side: Literal["user", "item"]) -> "Ratings":
        ids = self.user_ids if side == "user" else self.item_ids
        if isinstance(chosen, slice) and chosen.step in (None, 1):
            start, stop, _ = chosen.indices(len(ids))
            part = grouped.window(start, max(start, stop))
        else:
            rows = np.arange(len(ids))[np.asarray(chosen) if not isinstance(chosen, slice) else chosen]
            part = grouped.take(rows)
        new_ids = {f"{side}_ids": ids[chosen]}
        return self._like(part, grouped_by=side, **new_ids)

    def _like(self, grouped: Grouped, **changes: Any) -> "Ratings":
        same = {"user_ids": self.user_ids, "item_ids": self.item_ids, "scale": self.scale}
        return Ratings(grouped, **(same | changes))


def find_row(rows: dict[Id, int], wanted: Id, side: str) -> int:
    """Look an id up; text that spells an integer finds the integer, as it must on a command line."""
    if wanted in rows:
        return rows[wanted]
    if isinstance(wanted, str) and wanted.strip().lstrip("-").isdigit() and int(wanted) in rows:
        return rows[int(wanted)]
    if not isinstance(wanted, str) and str(wanted) in rows:
        return rows[str(wanted)]
    some = ", ".join(str(known) for known in list(rows)[:3])
    hint = did_you_mean(wanted, rows) if len(rows) <= 100_000 else ""
    raise UnknownId(f"there is no {side} {wanted!r}.{hint} There are {len(rows):,} {side}s, such as {some}.")


def _plain_ids(ids: Ids) -> Ids:
    array = np.asarray(ids)
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    if array.dtype.kind == "U":
        return array
    if array.dtype.kind == "O" and all(isinstance(entry, str) for entry in array):
        return array.astype(np.str_)
    raise DataError(f"ids must be whole numbers or text, got {array.dtype}. Convert them to str first.")


def _without_duplicates(grouped: Grouped, rule: Duplicates, user_ids: Ids, item_ids: Ids) -> Grouped:
    at = first_duplicate(grouped, len(item_ids))
    if at < 0:
        return grouped
    if rule == "error":
        user = user_ids[np.searchsorted(grouped.ptr, at, side="right") - 1]
        raise DataError(
            f"user {user} rated item {item_ids[grouped.index[at]]} more than once. "
            'Keep the last one with duplicates="last", or their mean with duplicates="mean".'
        )
    if rule not in ("last", "mean"):
        raise DataError(f'duplicates must be "error", "last" or "mean", got {rule!r}.')
    return _merged(grouped, len(item_ids), rule)


def _merged(grouped: Grouped, item_count: int, rule: Literal["last", "mean"]) -> Grouped:
    """Keep one rating a pair: the latest (by time, else by order), its value the mean if asked."""
    pair = grouped.members().astype(np.int64) * item_count + grouped.index
    when = np.arange(len(pair)) if grouped.times is None else grouped.times
    order = np.lexsort((when, pair))
    ends = np.append(pair[order][1:] != pair[order][:-1], True)
    last = order[ends]
    values = grouped.values[last]
    if rule == "mean":
        starts = np.append(0, np.flatnonzero(ends)[:-1] + 1)
        sizes = np.diff(np.append(starts, len(pair)))
        sums = np.add.reduceat(grouped.values[order].astype(np.float64), starts)
        values = (sums / sizes).astype(np.float32)
    times = None if grouped.times is None else grouped.times[last]
    members = grouped.members()[last]
    return group(members, grouped.index[last], values, times, len(grouped.ptr) - 1)


def _check_scale(values: Values, scale: Scale) -> None:
    outside = ~scale.covers(values)
    if outside.any():
        worst = values[np.argmax(outside)]
        raise DataError(
            f"{int(outside.sum()):,} ratings lie outside the scale {scale}, the first is {worst:g}. "
            "Correct them, or state the true scale."
        )
