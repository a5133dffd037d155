"""Side tables: what is known about users and items beside the ratings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.features import Column, encoded, is_title
from cofactor.data.features import Features as Features
from cofactor.data.grouping import read_only
from cofactor.data.ids import Id, Ids
from cofactor.data.sources import Kind, candidates, open_source, zip_names
from cofactor.data.tablefiles import read_columns
from cofactor.errors import DataError, did_you_mean


@dataclass(frozen=True, eq=False)
class Table:
    """Users or items and their attributes; immutable."""

    ids: Ids
    columns: tuple[Column, ...]
    source: str = ""
    """The name of the file that it was read from."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, the ids left out."""
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column:
        """Return one column."""
        for column in self.columns:
            if column.name == name:
                return column
        words = ", ".join(self.names)
        raise DataError(f'there is no column "{name}".{did_you_mean(name, self.names)} There are: {words}.')

    def titles(self) -> dict[Id, str]:
        """Return the title of each id; nothing when the table has no titles."""
        titled = next((column for column in self.columns if is_title(column.name)), None)
        return {} if titled is None else dict(zip(self.ids.tolist(), titled.cells, strict=True))

    def rows(self, ids: Iterable[Any]) -> NDArray[np.int64]:
        """Return the row of each id, -1 where the table does not know it."""
        known = self._places
        return np.array([known.get(str(one), -1) for one in ids], np.int64)

    def features(self, ids: Sequence[Any] | Ids, columns: Sequence[str] | None = None) -> Features:
        """Describe the given ids in numbers, aligned with them.

        Numbers are standardised over the whole table, categories one-hot and cells with several values
        multi-hot. Missing values are 0, and so is everything about an id that is not in the table. The
        columns depend on the table alone, not on the ids. Unless columns are named, text is left out.
        """
        chosen = (
            [column for column in self.columns if column.kind != "text"]
            if columns is None
            else [self.column(name) for name in columns]
        )
        parts = [encoded(column) for column in chosen]
        nothing = np.zeros((len(self), 0), np.float32)
        matrix = np.concatenate([nothing, *(part.matrix for part in parts)], axis=1)
        rows = self.rows(np.asarray(ids).tolist())
        found = np.where(rows[:, None] >= 0, matrix[np.maximum(rows, 0)], np.float32(0))
        return Features(tuple(name for part in parts for name in part.names), found)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {str(one): row for row, one in enumerate(self.ids.tolist())}


def read_items(path: str | Path, *, id: str | None = None, member: str | None = None) -> Table:
    """Read what is known about items; `id` names the column of their ids, `member` a file in a .zip."""
    return _read(path, "items", id, member)


def read_users(path: str | Path, *, id: str | None = None, member: str | None = None) -> Table:
    """Read what is known about users; `id` names the column of their ids, `member` a file in a .zip."""
    return _read(path, "users", id, member)


def side_tables(path: str | Path) -> tuple[Table | None, Table | None]:
    """Return the tables of users and of items beside a file of ratings, or in the same .zip."""
    return users_beside(path), items_beside(path)


def users_beside(path: str | Path) -> Table | None:
    """Return the table of users beside a file of ratings, or in the same .zip."""
    return _beside(Path(path), "users")


def items_beside(path: str | Path) -> Table | None:
    """Return the table of items beside a file of ratings, or in the same .zip."""
    return _beside(Path(path), "items")


def _read(path: str | Path, kind: Kind, id: str | None, member: str | None) -> Table:
    source = open_source(path, kind, member)
    ids, columns = read_columns(source, kind, id)
    return Table(read_only(ids), columns, source.name)


def _beside(path: Path, kind: Kind) -> Table | None:
    """Take a table only where there is one candidate."""
    if path.suffix.lower() == ".zip":
        found = candidates(zip_names(path), kind)
        return _read(path, kind, None, found[0]) if len(found) == 1 else None
    names = [file.name for file in path.parent.iterdir() if file.is_file()] if path.parent.is_dir() else []
    found = candidates((name for name in names if _may_belong(name, path)), kind)
    return _read(path.parent / found[0], kind, None, None) if len(found) == 1 else None


def _may_belong(name: str, ratings: Path) -> bool:
    """MovieLens 100K and RecBole name a table like its ratings: u.item belongs to u.data, not to a.inter."""
    table, own = (Path(file.removesuffix(".gz")) for file in (name, ratings.name))
    return table.suffix not in (".item", ".user") or table.stem == own.stem
