"""`UserAttributes`: numbers about users, as private as their ratings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.data.codes import Numbers
from cofactor.data.coding import Coding, check_table
from cofactor.data.grouping import read_only
from cofactor.data.ids import Ids, plain_ids
from cofactor.data.tables import Table, read_users
from cofactor.errors import DataError


@dataclass(frozen=True, kw_only=True, eq=False)
class UserAttributes:
    """What is known about users, in numbers: a row for each. Only the coding is public.

    They go to the parties by `Federation.with_user_attributes`, and nowhere else: no run folder, message or
    text shows them.
    """

    coding: Coding
    """How they were made: public."""
    ids: Ids = field(repr=False)
    """The users, one a row."""
    matrix: Numbers = field(repr=False)
    """A row for each of the ids, a column for each of the coding's names; NaN where a value is missing."""
    source: str = "a table"
    """The file they come from, or what their maker calls them."""
    unseen: Mapping[str, int] = field(default_factory=dict, repr=False)
    """By column, how many users have a value that the coding does not know: see `Coding.unseen`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", read_only(plain_ids(self.ids)))
        object.__setattr__(self, "matrix", read_only(np.array(self.matrix, np.float32)))
        if self.matrix.shape != (len(self.ids), self.coding.width):
            raise DataError(
                f"user attributes: {len(self.ids):,} ids and a coding of {self.coding.width} numbers for a "
                f"matrix of shape {self.matrix.shape}. Give one row for each user."
            )
        if np.isinf(self.matrix).any():
            raise DataError("user attributes: some numbers are infinite. Leave them out: NaN.")
        if len(self._places) < len(self.ids):
            raise DataError("user attributes: an id occurs twice. Give each user one row.")

    @classmethod
    def of_table(
        cls,
        table: Table,
        coding: Coding | None = None,
        *,
        columns: Sequence[str] | None = None,
        as_category: Sequence[str] = (),
    ) -> "UserAttributes":
        """Code a table of users; without a coding, one is read off the table by the rules of `Coding`."""
        check_table(table)
        if coding is None:
            coding = Coding.of_table(table, columns, as_category=as_category)
        elif columns is not None or as_category:
            raise DataError("a coding says which columns are used, and how. Leave out the others.")
        matrix = coding.encoded(table, table.ids)
        source = table.source or "a table"
        return cls(coding=coding, ids=table.ids, matrix=matrix, source=source, unseen=coding.unseen(table))

    @classmethod
    def from_file(
        cls, path: str | Path, *, id: str | None = None, coding: Coding | None = None
    ) -> "UserAttributes":
        """Read a table of users; `id` names the column of their ids."""
        return cls.of_table(read_users(path, id=id), coding)

    def known(self, user_ids: Sequence[Any] | Ids) -> int:
        """Return how many of the users have a row."""
        return sum(1 for one in np.asarray(user_ids).tolist() if str(one) in self._places)

    def rows(self, user_ids: Sequence[Any] | Ids) -> Numbers:
        """Return a row for each user; all of it is missing (NaN) if nothing is known about her."""
        places = [self._places.get(str(one), -1) for one in np.asarray(user_ids).tolist()]
        nothing = np.full((1, self.coding.width), np.nan, np.float32)
        return np.concatenate([self.matrix, nothing])[np.array(places, np.int64)]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {str(one): row for row, one in enumerate(self.ids.tolist())}
