"""From parquet to the same columns that text files give."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import polars as pl

from cofactor.data.columns import Columns
from cofactor.data.layout import Record
from cofactor.data.sources import Source
from cofactor.errors import DataError

T = TypeVar("T")


def is_parquet(source: Source) -> bool:
    """Say whether a file is parquet, by its first bytes."""
    return source.head(4) == b"PAR1"


def parquet_names(source: Source) -> tuple[str, ...]:
    """Return the names of the columns."""
    return tuple(_whole(source, lambda: pl.read_parquet_schema(source.data)))


def parquet_numeric(source: Source) -> list[int]:
    """Return the places of the columns that hold numbers."""
    schema = _whole(source, lambda: pl.read_parquet_schema(source.data))
    return [at for at, kind in enumerate(schema.values()) if kind.is_numeric()]


def parquet_records(source: Source) -> Iterator[Record]:
    """Yield all rows as text, numbered from 1; missing values and NaN are empty."""
    frame = _whole(source, lambda: pl.read_parquet(source.data))
    for line, row in enumerate(frame.iter_rows(), start=1):
        yield line, ["" if cell is None or cell != cell else str(cell) for cell in row]


def parquet_frame(source: Source, columns: Columns) -> pl.DataFrame:
    """Read the columns of a parquet file."""
    names = parquet_names(source)
    used = {name: names[place] for name, place in columns.used().items()}
    frame = _whole(source, lambda: pl.read_parquet(source.data, columns=list(used.values())))
    frame = frame.select(pl.col(old).alias(new) for new, old in used.items())
    return frame.with_columns(_plain(frame[name]) for name in frame.columns)


def _plain(column: pl.Series) -> pl.Series:
    """Bring one parquet column to the types that text files give."""
    if column.name == "rating":
        return column.cast(pl.Float32)
    if column.dtype.is_temporal():
        return column
    if column.name in ("user", "item") and column.dtype.is_float():
        known = column.fill_nan(None)
        integers = known.cast(pl.Int64, strict=False)
        same = integers.null_count() == known.null_count() and bool((integers == known).all())
        return integers if same else known.cast(pl.String)
    if column.dtype.is_integer():
        integers = column.cast(pl.Int64, strict=False)
        return integers if integers.null_count() == column.null_count() else column.cast(pl.String)
    return column.cast(pl.String)


def _whole(source: Source, read: Callable[[], T]) -> T:
    try:
        return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        told = f"{source.label}: the parquet file is damaged. Fetch or write it again."
        raise DataError(told) from None
