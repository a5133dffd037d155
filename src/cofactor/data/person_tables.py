"""Tables with a row for each person: what stands in them is private, so errors name rows, and no cell."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cofactor.data.columns import USUAL_COLUMNS, find_column
from cofactor.data.layout import SEPARATORS, SURE_SEPARATORS, Layout, is_number, layout_of
from cofactor.data.parquet import is_parquet, parquet_names
from cofactor.data.sources import Source, open_source, zip_names
from cofactor.data.tables import read_users
from cofactor.errors import ConfigError, DataError

_LISTED = 5
"""How many rows an error names."""


@dataclass(frozen=True, eq=False)
class PersonTable:
    """Columns as text, and who is in which row where that is known."""

    label: str
    """What errors call the file."""
    rows: Sequence[int] = field(repr=False)
    """The rows of the file that people stand in."""
    columns: Mapping[str, Sequence[str]] = field(repr=False)
    """By name, a column's cells, stripped; an empty one is a missing value. The ids are none of them."""
    ids: Sequence[str] | None = field(repr=False)

    def check_once(self, *, why: str, remedy: str) -> None:
        """Refuse rows without an id, and people with several rows."""
        seen: dict[str, int] = {}
        again: set[str] = set()
        rows: list[int] = []
        for row, one in zip(self.rows, self.ids or (), strict=self.ids is not None):
            if not one:
                raise DataError(f"{self.label}, row {row}: the id is missing. Fill it in, or remove the row.")
            if one in seen:
                rows = rows or [seen[one], row]
                again.add(one)
            seen.setdefault(one, row)
        if again:
            some = "1 person has" if len(again) == 1 else f"{len(again):,} people have"
            raise DataError(
                f"{self.label}: {some} several rows, such as rows {rows[0]} and {rows[1]}, and {why}. "
                f"{remedy}"
            )

    def numbers(self, column: str) -> NDArray[np.float64]:
        """Return a column's numbers: NaN for empty cells, infinite for what is no finite number."""
        cells = self.columns[column]
        return np.fromiter(map(_number, cells), np.float64, len(cells))

    def finite(self, column: str, *, instead: str) -> NDArray[np.float64]:
        """Return a column's numbers, NaN for empty cells; refuse words. `instead` says what else to do."""
        found = self.numbers(column)
        wrong = np.flatnonzero(np.isinf(found))
        if len(wrong):
            rows = counted((self.rows[at] for at in wrong.tolist()), "is no number", "are no numbers")
            raise DataError(
                f'{self.label}, column "{column}": {rows}. Fix them (decimals have a point, and who has no '
                f"number an empty cell), or {instead}."
            )
        return found


def open_people(path: str | Path, member: str | None = None) -> Source:
    """Find the bytes of a table of people; `member` names a file inside a .zip that holds several."""
    place = Path(path)
    if member is None and place.suffix.lower() == ".zip" and place.is_file():
        names = zip_names(place)
        member = names[0] if len(names) == 1 else None
    return open_source(path, "users", member)


def read_person_table(
    path: str | Path, *, columns: Sequence[str] | None = None, user: str | None, member: str | None = None
) -> PersonTable:
    """Read the named columns, or all, of csv, tsv, parquet, MovieLens or RecBole files; plain, .gz or .zip.

    `user` names the column of ids; if it is left out, that is the one with a usual name, if any.
    """
    source = open_people(path, member)
    table = _read(source, path, member, columns, user)
    if not table.rows:
        raise DataError(f"{source.label} has a header but no rows below it. Name a file with people.")
    return table


def column_names(path: str | Path, *, member: str | None = None) -> tuple[str, ...]:
    """Return the names of a table's columns, the ids among them; none are known where there is no header."""
    source = open_people(path, member)
    if is_parquet(source):
        return parquet_names(source)
    if _has_one_column(source):
        return (_header(source),)
    return layout_of(source, latin=True).names


def counted(rows: Iterable[int], one: str, many: str) -> str:
    """Name the first rows, and say how many more there are."""
    known = list(rows)
    listed = ", ".join(f"{row}" for row in islice(known, _LISTED))
    if len(known) == 1:
        return f"row {listed} {one}"
    more = f" and {len(known) - _LISTED:,} more" if len(known) > _LISTED else ""
    return f"rows {listed}{more} {many}"


def _read(
    source: Source, path: str | Path, member: str | None, columns: Sequence[str] | None, user: str | None
) -> PersonTable:
    if is_parquet(source):
        return _from_parquet(source, columns, user)
    if _has_one_column(source):
        return _from_lines(source, columns, user)
    layout = layout_of(source, latin=True)
    if layout.header:
        return _from_text(source, layout, columns, user)
    # Of tables without a header a few are known by their form; others are refused.
    known = read_users(path, id=user, member=member)
    names = known.names if columns is None else columns
    cells = {name: known.column(name).cells for name in names}
    return PersonTable(
        source.label, range(1, len(known) + 1), cells, [str(one) for one in known.ids.tolist()]
    )


def _from_text(
    source: Source, layout: Layout, columns: Sequence[str] | None, user: str | None
) -> PersonTable:
    places, owner = _places(layout.names, source.label, columns, user)
    rows: list[int] = []
    kept: list[list[str]] = []
    for row, fields in layout.records(source):
        if len(fields) != layout.width:
            raise DataError(
                f"{source.label}, row {row}: {len(fields)} fields where there are {layout.width} columns. "
                "Fix the row, or put quotes around text that contains the separator."
            )
        rows.append(row)
        kept.append([fields[place].strip() for place in places])
    cells = {layout.names[place]: [row[at] for row in kept] for at, place in enumerate(places)}
    return _table(source.label, rows, cells, None if owner is None else layout.names[owner], columns)


def _from_parquet(source: Source, columns: Sequence[str] | None, user: str | None) -> PersonTable:
    names = parquet_names(source)
    places, owner = _places(names, source.label, columns, user)
    cells = {names[place]: _parquet_cells(source, names[place], ids=place == owner) for place in places}
    rows = range(1, len(next(iter(cells.values()))) + 1)
    return _table(source.label, rows, cells, None if owner is None else names[owner], columns)


def _parquet_cells(source: Source, name: str, *, ids: bool) -> list[str]:
    try:
        column = pl.read_parquet(source.data, columns=[name])[name]
        if ids and column.dtype.is_float():
            known = column.fill_nan(None)
            # Whole numbers with a gap among them are stored as 1.0, and are the same people as 1 elsewhere.
            column = known.cast(pl.Int64) if (known.drop_nulls() % 1 == 0).all() else known
        return [cell.strip() for cell in column.cast(pl.String).fill_null("").to_list()]
    except pl.exceptions.PolarsError:
        told = f'{source.label}: column "{name}" cannot be read. Name another column.'
        raise DataError(told) from None


def _has_one_column(source: Source) -> bool:
    first = next(iter(source.lines()), b"")
    separators = (*SURE_SEPARATORS, *SEPARATORS)
    return bool(first.strip()) and not any(separator.encode() in first for separator in separators)


def _header(source: Source) -> str:
    first = next(iter(source.lines()), b"").decode("utf-8", "replace")
    return first.strip().removeprefix("\ufeff").strip('"').removesuffix(":float")


def _from_lines(source: Source, columns: Sequence[str] | None, user: str | None) -> PersonTable:
    """Read a file with one column: an empty line is somebody without a number, but for those at its end."""
    name = _header(source)
    if is_number(name):
        raise DataError(f"{source.label} has no header. Add a first line with the name of the column.")
    for column in (*(columns or ()), user):
        find_column([name], source.label, (), column)
    texts = [line.decode("utf-8", "replace").strip().strip('"') for line in source.lines()]
    while not texts[-1]:
        texts.pop()
    return _table(source.label, range(2, len(texts) + 1), {name: texts[1:]}, user, columns)


def _places(
    names: Sequence[str], label: str, columns: Sequence[str] | None, user: str | None
) -> tuple[list[int], int | None]:
    """Return which columns to read, and which of them holds the ids, if there are any."""
    owner = find_column(names, label, (*USUAL_COLUMNS["user"], "id"), user)
    for column in columns or ():
        find_column(names, label, (), column)
        if user is not None and column == user:
            raise ConfigError(f'column "{column}" cannot hold both the numbers and the ids of people.')
    wanted = [at for at, name in enumerate(names) if columns is None or name in columns or at == owner]
    for at in wanted:
        if names.count(names[at]) > 1:
            many = names.count(names[at])
            raise DataError(f'{label} has {many} columns "{names[at]}". Give each its own name.')
    return wanted, owner


def _table(
    label: str,
    rows: Sequence[int],
    cells: dict[str, list[str]],
    owner: str | None,
    columns: Sequence[str] | None,
) -> PersonTable:
    """Part the ids from the other columns; a column that was asked for by name is not taken for the ids."""
    asked = columns is not None and owner in columns
    ids = cells[owner] if owner is not None and not asked else None
    kept = {name: texts for name, texts in cells.items() if asked or name != owner}
    return PersonTable(label, rows, kept, ids)


def _number(text: str) -> float:
    """Read a cell: NaN if it is empty, infinity if it is no number."""
    if not text:
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.inf
