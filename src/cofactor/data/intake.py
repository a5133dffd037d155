"""What `Ratings` takes in: arrays checked, converted, and made safe from later changes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cofactor.data.grouping import Index, Times, Values
from cofactor.data.ids import Ids
from cofactor.errors import DataError

Selection = slice | Sequence[int] | NDArray[Any]


def chosen_rows(chosen: Selection, count: int, side: str) -> NDArray[np.int64]:
    """Turn a selection into row numbers; each row may be named once."""
    given = np.arange(count)[chosen] if isinstance(chosen, slice) else np.asarray(chosen)
    if given.shape == (count,) and given.dtype == np.bool_:
        return np.flatnonzero(given)
    rows = given.astype(np.int64) if given.size == 0 else given
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise DataError(f"select {side}s by a slice, a list of row numbers or a mask of {count:,} entries.")
    if rows.size and not (rows.min() >= 0 and rows.max() < count):
        raise DataError(f"{side} row numbers must lie from 0 to {count - 1:,}.")
    if len(np.unique(rows)) != len(rows):
        raise DataError(f"a {side} is selected twice; name each row once.")
    return rows.astype(np.int64)


def own(array: ArrayLike, kind: DTypeLike | None = None) -> NDArray[Any]:
    """Return an array that nobody can write to later: a copy, unless this memory is read-only."""
    given = one_dimensional(array)
    return np.array(given, kind, copy=None if _is_frozen(given) else True)


def one_dimensional(array: ArrayLike) -> NDArray[Any]:
    """Return a plain list of entries; refuse tables, such as a data frame of one column."""
    given = np.asarray(array)
    if given.ndim != 1:
        raise DataError(f"users, items, values and times must be lists of entries, got shape {given.shape}.")
    return given


def _is_frozen(array: NDArray[Any]) -> bool:
    """Say whether neither the array nor any array that it is a view of can be written to."""
    memory: Any = array
    while isinstance(memory, np.ndarray):
        if memory.flags.writeable:
            return False
        memory = memory.base
    return True


def whole_seconds(times: ArrayLike) -> Times:
    """Return times as whole seconds; dates become seconds since 1970."""
    given = one_dimensional(times)
    missing = np.isnat(given) if given.dtype.kind == "M" else ~np.isfinite(given)
    if missing.any():
        raise DataError(
            f"time number {int(np.argmax(missing)) + 1} is missing. Fill it in, or leave times out."
        )
    return own(given.astype("datetime64[s]") if given.dtype.kind == "M" else given, np.int64)


def row_numbers(rows: ArrayLike, ids: Ids, side: str) -> Index:
    """Return row numbers into the ids; refuse those that lie outside."""
    given = one_dimensional(rows)
    if len(given) and given.dtype.kind not in "iu":
        raise DataError(f"{side} row numbers must be whole numbers, got {given.dtype}.")
    if len(given) and not (given.min() >= 0 and given.max() < len(ids)):
        raise DataError(
            f"{side} row numbers must lie from 0 to {len(ids) - 1:,}, "
            f"got {given.min():,} to {given.max():,}. Use from_arrays for original ids."
        )
    return own(given, np.int32)


def check_lengths(expected: int, **arrays: NDArray[Any] | None) -> None:
    """Refuse arrays that are not aligned with the users."""
    for name, array in arrays.items():
        if array is not None and len(array) != expected:
            raise DataError(f"users has {expected:,} entries but {name} has {len(array):,}.")


def check_finite(values: Values) -> None:
    """Refuse ratings that are NaN or infinite."""
    finite = np.isfinite(values)
    if not finite.all():
        at = int(np.argmin(finite))
        raise DataError(f"rating number {at + 1} is {values[at]}; every rating must be a finite number.")
