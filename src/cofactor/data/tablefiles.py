"""Reading side tables: MovieLens, RecBole, and any table with a header."""

import re
from collections.abc import Sequence

import numpy as np

from cofactor.data.columns import USUAL_COLUMNS, find_column
from cofactor.data.features import Column, is_title
from cofactor.data.features import Kind as ColumnKind
from cofactor.data.layout import WHOLE_NUMBER, is_number, layout_of
from cofactor.data.ratings import Ids
from cofactor.data.sources import Kind, Source
from cofactor.errors import DataError

MOST_CATEGORIES = 200
"""A column of words with more values than this is taken for text."""

GENRES_100K = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama",
    "Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip

Fields = list[list[str]]
"""Rows of cells."""

_MOVIELENS: dict[tuple[str, int], tuple[tuple[str, ColumnKind], ...]] = {
    ("|", 5): (("user", "text"), ("age", "number"), ("gender", "category"), ("occupation", "category"),
               ("zip", "text")),
    ("|", 24): (("item", "text"), ("title", "text"), ("release_date", "text"), ("video_date", "text"),
                ("url", "text"), ("genres", "tags")),
    ("::", 3): (("item", "text"), ("title", "text"), ("genres", "tags")),
    ("::", 5): (("user", "text"), ("gender", "category"), ("age", "category"), ("occupation", "category"),
                ("zip", "text")),
    (",", 2): (("user", "text"), ("gender", "category")),
}  # fmt: skip
"""MovieLens tables (100K, then 1M and 10M) and LibimSeTi's genders have no header: known by their shape."""


def read_columns(source: Source, kind: Kind, id: str | None) -> tuple[Ids, tuple[Column, ...]]:
    """Read the ids and all other columns of a table."""
    names, kinds, rows, lines = _cells(source)
    if not rows:
        raise DataError(f"{source.label} has a header but no rows below it.")
    place = _id_place(names, source.label, kind, id)
    ids = _ids([row[place] for row in rows], lines, source.label)
    columns = [
        _column(name, stated, tuple(row[at] for row in rows))
        for at, (name, stated) in enumerate(zip(names, kinds, strict=True))
        if at != place
    ]
    return ids, tuple(columns)


def _cells(source: Source) -> tuple[tuple[str, ...], Sequence[str], Fields, list[int]]:
    """Return names, stated kinds ("" where none), stripped cells and line numbers."""
    if source.head(4) == b"PAR1":
        return _parquet_cells(source)
    layout = layout_of(source, latin=True)
    rows, lines = [], []
    for line, fields in layout.records(source):
        if len(fields) != layout.width:
            raise DataError(
                f"{source.label}, row {line}: {len(fields)} fields where there are {layout.width} columns."
            )
        rows.append([field.strip() for field in fields])
        lines.append(line)
    if layout.header:
        return layout.names, layout.types or [""] * layout.width, rows, lines
    known = _MOVIELENS.get((layout.separator, layout.width))
    if known is None:
        raise DataError(f"{source.label} has no header. Add a first line with the names of the columns.")
    if layout.width == 24:
        rows = [[*row[:5], _genres(row[5:])] for row in rows]
    return tuple(name for name, _ in known), [stated for _, stated in known], rows, lines


def _parquet_cells(source: Source) -> tuple[tuple[str, ...], Sequence[str], Fields, list[int]]:
    import polars as pl

    frame = pl.read_parquet(source.data)
    rows = [["" if cell is None else str(cell).strip() for cell in row] for row in frame.iter_rows()]
    return tuple(frame.columns), [""] * frame.width, rows, list(range(1, len(rows) + 1))


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
            f"{label}: no column looks like the ids of the {kind}. Name one with id=...: {columns}."
        )
    return place


def _ids(cells: list[str], lines: list[int], label: str) -> Ids:
    seen: dict[str, int] = {}
    for cell, line in zip(cells, lines, strict=True):
        if not cell:
            raise DataError(f"{label}, row {line}: the id is missing. Fill it in, or remove the row.")
        if cell in seen:
            raise DataError(f"{label}, rows {seen[cell]} and {line}: the id {cell!r} occurs twice.")
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
