"""Original ids: what users and items are called outside."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.errors import DataError, UnknownId, did_you_mean

Id = int | str
Ids = NDArray[Any]
"""Original ids, one a row: int64 or text."""


def find_row(rows: dict[Id, int], wanted: Id, side: str) -> int:
    """Look an id up; text that spells an integer finds the integer, as it must on a command line."""
    for same in _spellings(wanted):
        if same in rows:
            return rows[same]
    if not rows:
        raise UnknownId(f"there is no {side} {wanted!r}: there are no {side}s here.")
    some = ", ".join(str(known) for known in list(rows)[:3])
    hint = did_you_mean(wanted, rows) if len(rows) <= 100_000 else ""
    raise UnknownId(f"there is no {side} {wanted!r}.{hint} There are {len(rows):,} {side}s, such as {some}.")


def _spellings(wanted: object) -> list[Id]:
    if isinstance(wanted, str):
        digits = wanted.strip().removeprefix("-")
        return [wanted, int(wanted)] if digits.isascii() and digits.isdigit() else [wanted]
    whole_number = isinstance(wanted, int | np.integer) and not isinstance(wanted, bool)
    return [int(wanted), str(wanted)] if whole_number else []  # type: ignore[call-overload]


def plain_ids(ids: ArrayLike) -> Ids:
    """Return ids as int64 or text; refuse anything else."""
    array = np.asarray(ids)
    if array.dtype.kind == "u" and len(array) and array.max() > np.iinfo(np.int64).max:
        raise DataError(
            f"the id {array.max()} is too large for a whole number. Convert the ids to str first."
        )
    if array.dtype.kind in "iu" or len(array) == 0:
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "U":
        return array
    if array.dtype.kind in "OT" and all(isinstance(entry, str) for entry in array):
        return array.astype(np.str_)
    raise DataError(f"ids must be whole numbers or text, got {array.dtype}. Convert them to str first.")
