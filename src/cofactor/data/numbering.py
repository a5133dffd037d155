"""From original ids to row numbers: without sorting where the ids allow it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.grouping import Index, frozen


def number(*parts: NDArray[Any]) -> tuple[NDArray[Any], Index]:
    """Return the distinct ids in order, and for each entry of all parts its place among them (read-only)."""
    filled = [part for part in parts if len(part)]
    if filled and all(part.dtype.kind in "iu" for part in filled):
        low, high = min(int(part.min()) for part in filled), max(int(part.max()) for part in filled)
        # A table of the whole span is faster than sorting as long as it is not much larger than the data.
        if high - low < 4 * sum(map(len, filled)) + 1_000_000:
            return _by_table(filled, low, high - low + 1)
    distinct, rows = np.unique(np.concatenate(parts), return_inverse=True)
    return distinct, frozen(rows.astype(np.int32))


def _by_table(parts: Sequence[NDArray[Any]], low: int, span: int) -> tuple[NDArray[Any], Index]:
    table = np.zeros(span, np.int32)
    for part in parts:
        _mark(part, low, table)
    distinct = np.flatnonzero(table) + low
    table = np.cumsum(table, dtype=np.int32) - np.int32(1)
    rows = np.empty(sum(map(len, parts)), np.int32)
    start = 0
    for part in parts:
        _look_up(part, low, table, rows[start : start + len(part)])
        start += len(part)
    return distinct, frozen(rows)


@kernel
def _mark(ids: NDArray[Any], low: int, table: Index) -> None:
    for position in range(ids.size):
        table[ids[position] - low] = 1


@kernel
def _look_up(ids: NDArray[Any], low: int, table: Index, rows: Index) -> None:
    for position in range(ids.size):
        rows[position] = table[ids[position] - low]
