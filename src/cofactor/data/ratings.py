"""`Ratings`: an immutable rating matrix with the ids it came with."""

from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.data.duplicates import Duplicates, without_duplicates
from cofactor.data.grouping import Grouped, Index, Times, Values, group, read_only
from cofactor.data.ids import Id, Ids, find_row, plain_ids
from cofactor.data.intake import (
    Selection,
    check_finite,
    check_lengths,
    chosen_rows,
    one_dimensional,
    own,
    row_numbers,
    whole_seconds,
)
from cofactor.data.numbering import number
from cofactor.data.scale import Scale as Scale
from cofactor.data.scale import check_scale, scale_of
from cofactor.errors import DataError


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

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copying and pickling give arrays that can be written to; make them read-only again."""
        layouts = {name: part.read_only() for name, part in state.items() if isinstance(part, Grouped)}
        ids = {name: read_only(part) for name, part in state.items() if isinstance(part, np.ndarray)}
        self.__dict__.update(state | layouts | ids)

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
        user_ids, user_rows = number(plain_ids(one_dimensional(users)))
        item_ids, item_rows = number(plain_ids(one_dimensional(items)))
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
        user_ids, item_ids = (own(plain_ids(ids)) for ids in (user_ids, item_ids))
        rows, columns = row_numbers(users, user_ids, "user"), row_numbers(items, item_ids, "item")
        numbers = np.ones(len(rows), np.float32) if values is None else own(values, np.float32)
        stamps = None if times is None else whole_seconds(times)
        check_lengths(len(rows), items=columns, values=numbers, times=stamps)
        check_finite(numbers)
        if values is None and scale is not None:
            raise DataError("there are no ratings, only pairs, so they cannot lie on a scale. Leave it out.")
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
        if mask.dtype != np.bool_ or mask.shape != (len(self),):
            raise DataError(
                f"the mask must be {len(self):,} true or false values, one a rating; "
                f"it has shape {mask.shape} and type {mask.dtype}."
            )
        return self._like(self.by_user.keep(mask))

    def without_values(self) -> "Ratings":
        """Return the same pairs as implicit ratings: that they were rated, not how."""
        ones = np.ones(len(self), np.float32)
        return self._like(replace(self.by_user, values=ones), scale=None)

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
            chosen_ids = ids[chosen]
        else:
            rows = chosen_rows(chosen, len(ids), side)
            part, chosen_ids = grouped.take(rows), ids[rows]
        return self._like(part, grouped_by=side, **{f"{side}_ids": chosen_ids})

    def _like(self, grouped: Grouped, **changes: Any) -> "Ratings":
        same = {"user_ids": self.user_ids, "item_ids": self.item_ids, "scale": self.scale}
        return Ratings(grouped, **(same | changes))
