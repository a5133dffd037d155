"""Reading ratings from files: typed and fast, and exact about the row that cannot be read."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from cofactor.data.badrows import Checker, duplicate_lines
from cofactor.data.columns import WITHOUT_HEADER, Columns, check_implicit, find_columns
from cofactor.data.duplicates import Duplicates, RatedTwice
from cofactor.data.frames import ids_and_rows, seconds, text_frame
from cofactor.data.grouping import frozen
from cofactor.data.layout import Layout, Record, is_number, layout_of
from cofactor.data.parquet import is_parquet, parquet_frame, parquet_names, parquet_numeric, parquet_records
from cofactor.data.ratings import Ratings
from cofactor.data.scale import Scale
from cofactor.data.sources import Source, open_source
from cofactor.errors import DataError


@dataclass(frozen=True)
class RatingsFile:
    """A file of ratings whose layout and columns are known; nothing but its head has been read."""

    source: Source
    layout: Layout | None
    """None for parquet."""
    names: tuple[str, ...]
    columns: Columns

    @property
    def format(self) -> str:
        """What the file is, in a few words."""
        if self.layout is None:
            return "parquet"
        if self.layout.types:
            return "RecBole"
        words = {"::": "double colons", "\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}
        header = "with a header" if self.layout.header else "without a header"
        return f"text separated by {words[self.layout.separator]}, {header}"

    def numeric(self) -> list[int]:
        """Return the columns that hold numbers, as far as the first rows tell."""
        if self.layout is None:
            return parquet_numeric(self.source)
        rows = [fields for _, fields in self.layout.sample if len(fields) == len(self.names)]
        return [at for at in range(len(self.names)) if rows and all(is_number(fields[at]) for fields in rows)]

    def frame(self) -> pl.DataFrame:
        """Read the columns that are needed."""
        if self.layout is None:
            return parquet_frame(self.source, self.columns)
        return text_frame(self.source, self.layout, self.columns)

    def records(self) -> Iterator[Record]:
        """Yield all rows as text, slowly, with their line numbers."""
        if self.layout is not None:
            yield from self.layout.records(self.source)
            return
        yield from parquet_records(self.source)


def read_ratings(
    path: str | Path,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    time: str | None = None,
    scale: Scale | None = None,
    duplicates: Duplicates = "error",
    member: str | None = None,
    implicit: bool = False,
) -> Ratings:
    """Read ratings from csv, tsv, parquet, MovieLens, RecBole or LibimSeTi files; plain, .gz or .zip.

    Columns are found by their usual names, or by those given here. A file without a column of ratings is
    implicit; if it has other columns of numbers, `implicit` must say so. Ids that are all whole numbers stay
    whole numbers; otherwise they are text. Dates become seconds since 1970, numbers are taken as they are.
    `member` names the file inside a .zip that holds several.
    """
    file = open_ratings(path, user=user, item=item, rating=rating, time=time, member=member)
    if implicit:
        file = replace(file, columns=replace(file.columns, rating=None))
    else:
        check_implicit(file.names, file.numeric(), file.columns, file.source.label)
    return read(file, scale=scale, duplicates=duplicates)


def open_ratings(path: str | Path, *, member: str | None = None, **wanted: str | None) -> RatingsFile:
    """Find out how a file of ratings is laid out; `wanted` names its columns."""
    source = open_source(path, "ratings", member)
    if is_parquet(source):
        names = parquet_names(source)
        return RatingsFile(source, None, names, find_columns(names, source.label, **wanted))
    layout = layout_of(source)
    names = layout.names or _names_without_header(layout.width)
    if not layout.sample:
        raise DataError(f"{source.label} has a header but no ratings below it. Name a file with ratings.")
    return RatingsFile(source, layout, names, find_columns(names, source.label, **wanted))


def read(file: RatingsFile, *, scale: Scale | None = None, duplicates: Duplicates = "error") -> Ratings:
    """Read a file whose layout is known."""
    checker = Checker(file.source.label, file.names, file.columns, scale)
    frame = _whole_frame(file, checker)
    if len(frame) == 0:
        raise DataError(f"{file.source.label} holds no ratings.")
    user_ids, users = ids_and_rows(frame["user"])
    item_ids, items = ids_and_rows(frame["item"])
    values, times = (
        frozen(frame[name].to_numpy()) if name in frame.columns else None for name in ("rating", "time")
    )
    try:
        return Ratings.from_rows(
            users, items, values, times=times, user_ids=user_ids, item_ids=item_ids,
            scale=scale, duplicates=duplicates,
        )  # fmt: skip
    except RatedTwice as error:
        first, second = duplicate_lines(users, items, file.records())
        raise RatedTwice(f"{file.source.label}, rows {first} and {second}: {error}") from None
    except DataError as error:
        told = DataError(f"{file.source.label}: {error}")
        raise checker.first_problem(file.records()) or told from None


def _whole_frame(file: RatingsFile, checker: Checker) -> pl.DataFrame:
    """Return the columns without gaps, or raise the error that names the bad row."""
    label = file.source.label
    try:
        frame = file.frame()
        if any(frame.null_count().row(0)):
            problem = checker.first_problem(file.records())
            if problem is not None:
                raise problem
            # What is left are empty lines, which the reader returns as rows of nothing.
            frame = frame.filter(~pl.all_horizontal(pl.all().is_null()))
            if any(frame.null_count().row(0)):
                raise DataError(f"{label}: a value is missing. Fill it in, or remove its row.")
        return seconds(frame) if "time" in frame.columns else frame
    except pl.exceptions.PolarsError as error:
        told = f"{label}: cannot be read ({str(error).splitlines()[0]}). Check the file."
        raise checker.first_problem(file.records()) or DataError(told) from None


def _names_without_header(width: int) -> tuple[str, ...]:
    return (*WITHOUT_HEADER, *(f"column {place}" for place in range(5, width + 1)))[:width]
