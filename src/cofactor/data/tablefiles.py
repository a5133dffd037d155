"""Reading side tables: MovieLens, RecBole, and any table with a header."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cofactor.data.columns import USUAL_COLUMNS, find_column
from cofactor.data.features import Column, is_title
from cofactor.data.features import Kind as ColumnKind
from cofactor.data.ids import Ids
from cofactor.data.layout import WHOLE_NUMBER, Record, is_number, layout_of
from cofactor.data.parquet import is_parquet, parquet_names, parquet_records
from cofactor.data.sources import Kind, Source
from cofactor.errors import DataError

MOST_CATEGORIES = 200
"""A column of words with more values than this is taken for text."""

GENRES_100K = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama",
    "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip

_WITHOUT_HEADER: dict[tuple[str, int], tuple[tuple[str, ColumnKind], ...]] = {
    ("|", 5): (("user", "text"), ("age", "number"), ("gender", "category"), ("occupation", "category"),
               ("zip", "text")),
    ("|", 24): (("item", "text"), ("title", "text"), ("release_date", "text"), ("video_date", "text"),
                ("url", "text"), ("genres", "tags")),
    ("::", 3): (("item", "text"), ("title", "text"), ("genres", "tags")),
    ("::", 5): (("user", "text"), ("gender", "category"), ("age", "category"), ("occupation", "category"),
                ("zip", "text")),
    (",", 2): (("user", "text"), ("gender", "category")),
}  # fmt: skip
"""MovieLens tables (100K, then 1M and 10M) and LibimSeTi's genders: known by separator and width."""


@dataclass(frozen=True)
class _Cells:
    """A table as text."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    """What each column holds where that is known, else nothing."""
    lines: list[int]
    rows: list[list[str]]


def read_columns(source: Source, kind: Kind, id: str | None) -> tuple[Ids, tuple[Column, ...]]:
    """Read the ids and all other columns of a table."""
    cells = _parquet_cells(source) if is_parquet(source) else _text_cells(source)
    if not cells.rows:
        raise DataError(f"{source.label} has a header but no rows below it. Name a file with {kind}.")
    place = _id_place(cells.names, source.label, kind, id)
    ids = _ids([row[place] for row in cells.rows], cells.lines, source.label)
    columns = [
        _column(name, stated, tuple(row[at] for row in cells.rows))
        for at, (name, stated) in enumerate(zip(cells.names, cells.kinds, strict=True))
        if at != place
    ]
    return ids, tuple(columns)


def _text_cells(source: Source) -> _Cells:
    layout = layout_of(source, latin=True)
    lines, rows = _stripped(layout.records(source), layout.width, source.label)
    if layout.header:
        return _Cells(layout.names, layout.types or ("",) * layout.width, lines, rows)
    known = _WITHOUT_HEADER.get((layout.separator, layout.width))
    if known is None:
        raise DataError(f"{source.label} has no header. Add a first line with the names of the columns.")
    if layout.width == 24:
        rows = [[*row[:5], _genres(row[5:])] for row in rows]
    return _Cells(tuple(name for name, _ in known), tuple(stated for _, stated in known), lines, rows)


def _parquet_cells(source: Source) -> _Cells:
    names = parquet_names(source)
    lines, rows = _stripped(parquet_records(source), len(names), source.label)
    return _Cells(names, ("",) * len(names), lines, rows)


def _stripped(records: Iterator[Record], width: int, label: str) -> tuple[list[int], list[list[str]]]:
    lines, rows = [], []
    for line, fields in records:
        if len(fields) != width:
            raise DataError(f"{label}, row {line}: {len(fields)} fields where there are {width} columns.")
        lines.append(line)
        rows.append([field.strip() for field in fields])
    return lines, rows


def _genres(flags: list[str]) -> str:
    return "|".join(genre for genre, flag in zip(GENRES_100K, flags, strict=True) if flag == "1")


def _id_place(names: tuple[str, ...], label: str, kind: Kind, id: str | None) -> int:
    usual = USUAL_COLUMNS[kind.removesuffix("s")]
    # "id" is surer than "movie", which may as well be a title.
    surest = [name for name in usual if name.endswith(("id", "asin"))]
    place = find_column(names, label, (*surest, "id", *usual), id)
    if place is None:
        columns = ", ".join(names)
        raise DataError(
            f"{label}: no column looks like the ids of the {kind}: {columns}. Call the right one "
            f"{kind.removesuffix('s')}_id, or name it with id=... in Python."
        )
    return place


def _ids(cells: list[str], lines: list[int], label: str) -> Ids:
    seen: dict[str, int] = {}
    for cell, line in zip(cells, lines, strict=True):
        if not cell:
            raise DataError(f"{label}, row {line}: the id is missing. Fill it in, or remove the row.")
        if cell in seen:
            raise DataError(
                f"{label}, rows {seen[cell]} and {line}: the id {cell!r} occurs twice. Give each id one row."
            )
        seen[cell] = line
    whole = all(re.match(WHOLE_NUMBER, cell) for cell in cells)
    return np.array([int(cell) for cell in cells], np.int64) if whole else np.array(cells)


def _column(name: str, stated: str, cells: tuple[str, ...]) -> Column:
    """Settle what a column holds: by its stated kind, else by its cells."""
    words = {cell for cell in cells if cell}
    bars = any("|" in word for word in words)
    if is_title(name) or stated == "text":
        return Column(name, "text", cells)
    if words and stated in ("", "number", "float") and all(map(is_number, words)):
        return Column(name, "number", cells)
    tags = bars or stated in ("tags", "token_seq")
    between = "|" if bars or stated == "tags" else None
    column = Column(name, "tags" if tags else "category", cells, between)
    many = len({value for row in range(len(cells)) for value in column.values(row)}) > MOST_CATEGORIES
    return Column(name, "text", cells) if many else column
