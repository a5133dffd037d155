"""`Ratings`: an immutable rating matrix with the ids it came with."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cofactor.data.duplicates import Duplicates, without_duplicates
from cofactor.data.grouping import Grouped, Index, Times, Values, group, read_only
from cofactor.data.numbering import number
from cofactor.data.scale import Scale as Scale
from cofactor.data.scale import check_scale, scale_of
from cofactor.errors import DataError, UnknownId, did_you_mean

Id = int | str
Ids = NDArray[Any]
"""Original ids, one a row: int64 or text."""
Selection = slice | Sequence[int] | NDArray[Any]


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
        self.user_ids: Ids
        self.item_ids: Ids
        self.scale: Scale | None
        self.__dict__.update(user_ids=read_only(user_ids), item_ids=read_only(item_ids), scale=scale)
        self.__dict__[f"by_{grouped_by}"] = grouped.read_only()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"Ratings cannot be changed, {name} included. Make new ones with select or where."
        )

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
        """Build ratings from aligned arrays of original ids; without values they are implicit.

        Arrays that could still be written to are copied; read-only ones are shared.
        """
        user_ids, user_rows = number(_plain_ids(users))
        item_ids, item_rows = number(_plain_ids(items))
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
        user_ids, item_ids = _plain_ids(user_ids), _plain_ids(item_ids)
        rows, columns = _row_numbers(users, user_ids, "user"), _row_numbers(items, item_ids, "item")
        numbers = np.ones(len(rows), np.float32) if values is None else _own(values, np.float32)
        stamps = None if times is None else _own(times, np.int64)
        _check_lengths(len(rows), items=columns, values=numbers, times=stamps)
        _check_finite(numbers)
        known = scale if scale is not None or values is None else scale_of(numbers)
        if scale is not None:
            check_scale(numbers, scale)
        grouped = group(rows, columns, numbers, stamps, len(user_ids))
        grouped = without_duplicates(grouped, duplicates, user_ids, item_ids)
        return cls(grouped, user_ids=user_ids, item_ids=item_ids, scale=known)

    @cached_property
    def by_user(self) -> Grouped:
        """The ratings grouped by user: `by_user.index` holds items."""
        return self.by_item.turned(self.user_count).read_only()

    @cached_property
    def by_item(self) -> Grouped:
        """The ratings grouped by item: `by_item.index` holds users."""
        return self.by_user.turned(self.item_count).read_only()

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
    for same in (wanted, _as_integer(wanted), str(wanted)):
        if same is not None and same in rows:
            return rows[same]
    some = ", ".join(str(known) for known in list(rows)[:3])
    hint = did_you_mean(wanted, rows) if len(rows) <= 100_000 else ""
    raise UnknownId(f"there is no {side} {wanted!r}.{hint} There are {len(rows):,} {side}s, such as {some}.")


def _as_integer(wanted: Id) -> int | None:
    try:
        return int(wanted)
    except ValueError:
        return None


def _plain_ids(ids: ArrayLike) -> Ids:
    array = np.asarray(ids)
    if array.dtype.kind in "iu" or len(array) == 0:
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "U":
        return array
    if array.dtype.kind in "OT" and all(isinstance(entry, str) for entry in array):
        return array.astype(np.str_)
    raise DataError(f"ids must be whole numbers or text, got {array.dtype}. Convert them to str first.")


def _own(array: ArrayLike, kind: DTypeLike) -> NDArray[Any]:
    """Return an array that the caller cannot write to later: a copy, unless theirs is read-only."""
    given = np.asarray(array)
    return np.array(given, kind, copy=True if given.flags.writeable else None)


def _row_numbers(rows: ArrayLike, ids: Ids, side: str) -> Index:
    given = np.asarray(rows)
    if len(given) and not (given.min() >= 0 and given.max() < len(ids)):
        raise DataError(
            f"{side} row numbers must lie from 0 to {len(ids) - 1:,}, "
            f"got {given.min():,} to {given.max():,}. Use from_arrays for original ids."
        )
    return _own(given, np.int32)


def _check_lengths(expected: int, **arrays: NDArray[Any] | None) -> None:
    for name, array in arrays.items():
        if array is not None and len(array) != expected:
            raise DataError(f"users has {expected:,} entries but {name} has {len(array):,}.")


def _check_finite(values: Values) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        at = int(np.argmin(finite))
        raise DataError(f"rating number {at + 1} is {values[at]}; every rating must be a finite number.")
