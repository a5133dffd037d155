"""From text to typed columns, through polars."""

import re
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.columns import Columns
from cofactor.data.grouping import Index
from cofactor.data.layout import WHOLE_NUMBER, Layout, is_number
from cofactor.data.numbering import number
from cofactor.data.sources import Source


def text_frame(source: Source, layout: Layout, columns: Columns) -> pl.DataFrame:
    """Read the columns of a text file as types that its first rows suggest; as text where they mislead."""
    guessed = {name: _guess(name, layout, place) for name, place in columns.used().items()}
    if pl.Int64() in (guessed["user"], guessed["item"]) and has_padded_numbers(source, layout.separator[-1]):
        guessed |= {"user": pl.String(), "item": pl.String()}
    try:
        return _scan(source, layout, columns, guessed)
    except pl.exceptions.PolarsError:
        frame = _scan(source, layout, columns, dict.fromkeys(guessed, pl.String()))
        if "rating" not in frame.columns:
            return frame
        return frame.with_columns(pl.col("rating").str.strip_chars().cast(pl.Float32))


def ids_and_rows(ids: pl.Series) -> tuple[NDArray[Any], Index]:
    """Return the distinct ids in order, and each entry's place among them."""
    if ids.dtype == pl.String:
        ids = ids.str.strip_chars()
        if not ids.str.contains(WHOLE_NUMBER).all():
            distinct = ids.unique().sort()
            rows = ids.cast(pl.Enum(distinct)).to_physical().cast(pl.Int32)
            return distinct.to_numpy().astype(np.str_), rows.to_numpy()
        ids = ids.cast(pl.Int64)
    return number(*(chunk.to_numpy() for chunk in ids.get_chunks()))


def seconds(frame: pl.DataFrame) -> pl.DataFrame:
    """Turn the times into whole seconds; a PolarsError where one cannot be read."""
    times = frame["time"]
    if times.dtype == pl.String:
        times = _from_text(times)
    elif times.dtype.is_temporal():
        times = times.cast(pl.Datetime("us")).dt.epoch("s")
    return frame.with_columns(times.cast(pl.Int64).alias("time"))


def has_padded_numbers(source: Source, separator: str) -> bool:
    """Say whether some field may be a number such as 007 or +8, which would be taken for 7 or 8."""
    if isinstance(source.data, bytes):
        data = np.frombuffer(source.data, np.uint8)
    else:
        data = np.memmap(source.data, np.uint8, "r")
    return bool(_any_padded_numbers(data[:-2], data[1:-1], data[2:], np.uint8(ord(separator))))


@kernel
def _any_padded_numbers(
    before: NDArray[np.uint8], here: NDArray[np.uint8], after: NDArray[np.uint8], separator: np.uint8
) -> bool:
    """Look for a zero before a digit, or a plus sign, right behind a separator, line end, quote or space."""
    line_end, quote, space, plus = np.uint8(10), np.uint8(34), np.uint8(32), np.uint8(43)
    zero, nine = np.uint8(48), np.uint8(57)
    found = False
    # All comparisons between bytes, joined without branches: so the loop runs on vectors.
    for at in range(before.size):
        start, first, second = before[at], here[at], after[at]
        starts = (start == separator) | (start == line_end) | (start == quote) | (start == space)
        found |= starts & (((first == zero) & (second >= zero) & (second <= nine)) | (first == plus))
    return found


def _guess(name: str, layout: Layout, place: int) -> pl.DataType:
    if name == "rating":
        return pl.Float32()
    sample = [fields[place].strip() for _, fields in layout.sample if place < len(fields)]
    if all(re.match(WHOLE_NUMBER, field) for field in sample):
        return pl.Int64()
    return pl.Float64() if name == "time" and all(map(is_number, sample)) else pl.String()


def _scan(source: Source, layout: Layout, columns: Columns, types: dict[str, Any]) -> pl.DataFrame:
    # The regular-expression readers that "::" needs elsewhere are 25 times slower than a single ":"
    # with an empty column between each pair of fields.
    stride = 2 if layout.separator == "::" else 1
    schema: dict[str, Any] = {f"{place}": pl.String for place in range(stride * (layout.width - 1) + 1)}
    places = {name: f"{stride * place}" for name, place in columns.used().items()}
    schema |= {places[name]: kind for name, kind in types.items()}
    lazy = pl.scan_csv(
        source.data,
        has_header=False,
        skip_rows=int(layout.header),
        separator=layout.separator[0],
        quote_char='"' if layout.quoted else None,
        schema=schema,
        glob=False,
    )
    return lazy.select(pl.col(place).alias(name) for name, place in places.items()).collect()


def _from_text(times: pl.Series) -> pl.Series:
    numbers = times.cast(pl.Float64, strict=False)
    if numbers.null_count() == 0:
        return numbers
    try:
        parsed = times.str.to_datetime()
    except pl.exceptions.PolarsError:
        parsed = times.str.to_date()
    return parsed.cast(pl.Datetime("us")).dt.epoch("s")
