"""Clipping of plain arrays to what the bounds of `bounding` promise.

Results are scaled to a millionth below the limit, so that no rounding, not even to float32, can exceed it.
"""

import math
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.compiled import kernel
from cofactor.config import one_of, positive, whole
from cofactor.errors import ConfigError, DataError

Reals = NDArray[np.float32] | NDArray[np.float64]
Offsets = NDArray[np.int64]
Length = Literal["l1", "l2"]

MARGIN = 1e-6
SMALLEST, LARGEST = 1e-30, 1e30
"""Limits outside this range would meet the ends of floating point."""
LARGEST_VALUE = 1e140
"""Sums of a billion squares of such numbers are still finite."""
STEP_BITS = 37
"""Contributions are added up in steps of which a limit has fewer than 2^37."""
MOST_UNITS = 2 ** (63 - STEP_BITS)
"""So many contributions fit into 63 bits."""


def clipped_embeddings(rows: ArrayLike, largest_rating: float) -> NDArray[np.float32]:
    """Set negative entries to zero and shorten rows whose length is not below sqrt(largest_rating).

    The projection onto the vectors of Lemma 3 in Li et al. (2022): two of them multiply to a prediction
    between 0 and `largest_rating`. Lengths stay strictly below the root, computed exactly or not.
    """
    limit = math.sqrt(checked_limit("largest_rating", largest_rating)) * (1 - MARGIN)
    return _projected(checked_reals("rows", rows, dimensions=2), limit)


def clipped(values: ArrayLike, limit: float, norm: Length) -> NDArray[np.float64]:
    """Shorten an array of any shape, taken as one vector, to at most the limit."""
    one_of(("l1", "l2"), norm=norm)
    limit = checked_limit("limit", limit) * (1 - MARGIN)
    found = checked_reals("values", values).astype(np.float64)
    length = float(np.abs(found).sum() if norm == "l1" else np.sqrt(np.square(found).sum()))
    return found if length <= limit else found * (limit / length)


class ClippedSum(NamedTuple):
    """What groups add up to, and how many of them were shortened by more than the margin."""

    total: NDArray[np.float64]
    shortened: int


def clipped_sum(
    rows: ArrayLike, ptr: ArrayLike, places: ArrayLike, place_count: int, limit: float, norm: Length
) -> ClippedSum:
    """Add up what groups of rows contribute to a table, after shortening each group's whole contribution.

    Group g has rows ptr[g] to ptr[g + 1]; each is added to the table's row `places[...]`. Contributions are
    added as whole numbers of small steps, so the sum itself is exact: two sums that differ in one group
    differ by that group's contribution, however many others there are.
    """
    one_of(("l1", "l2"), norm=norm)
    whole(place_count=place_count)
    limit = checked_limit("limit", limit)
    table = checked_reals("rows", rows, dimensions=2)
    groups = checked_groups(ptr, len(table))
    if len(groups) - 1 > MOST_UNITS:
        raise ConfigError(
            f"one sum takes at most {MOST_UNITS:,} units, got {len(groups) - 1:,}. Add up parts."
        )
    step = math.ldexp(1.0, math.frexp(limit)[1] - STEP_BITS)
    total = np.zeros((place_count, table.shape[1]), np.int64)
    rows_of = checked_places(places, len(table), place_count)
    shortened = _add_clipped(table, groups, rows_of, limit * (1 - MARGIN), step, norm == "l1", total)
    return ClippedSum(total.astype(np.float64) * step, int(shortened))


def clipped_whole(rows: ArrayLike, limit: float, norm: Literal["l1", "l2", "max"]) -> NDArray[np.int64]:
    """Shorten each row of whole numbers to at most the limit, rounding towards zero.

    Rows within the limit stay as they are. An encoder should leave room for its own rounding: shortening
    costs a coarse grid much of its signal.
    """
    one_of(("l1", "l2", "max"), norm=norm)
    limit = checked_whole_limit(limit)
    numbers = checked_whole("rows", rows, dimensions=2)
    if norm == "max":
        return np.clip(numbers, -math.floor(limit), math.floor(limit))
    power = 1 if norm == "l1" else 2
    lengths = (np.abs(numbers.astype(np.float64)) ** power).sum(axis=1)
    kept = lengths <= _room(limit, power)
    scale = limit * (1 - MARGIN) / np.maximum(lengths, 1) ** (1 / power)
    return np.where(kept[:, None], numbers, np.trunc(numbers * scale[:, None]).astype(np.int64))


def _room(limit: float, power: int) -> float:
    """Return what a sum of powers, computed in float64, may reach: exact below 2^53, with a margin above."""
    most = math.floor(Fraction(limit) ** power)
    return most if most < 2**53 else most * (1 - MARGIN)


def checked_limit(name: str, limit: float) -> float:
    """Return the limit, or refuse one that floating point could not keep."""
    positive(**{name: limit})
    plain = float(limit)
    if not SMALLEST <= plain <= LARGEST:
        raise ConfigError(f"{name} must lie between {SMALLEST:g} and {LARGEST:g}, got {plain:g}.")
    return plain


def checked_whole_limit(limit: float) -> float:
    """Return a limit for whole numbers, which must be exact in floating point."""
    positive(limit=limit)
    plain = float(limit)
    if plain > 2**53:
        raise ConfigError(f"limit must be at most 2^53 for whole numbers, got {plain:g}. Use a coarser grid.")
    return plain


def checked_reals(name: str, values: ArrayLike, dimensions: int | None = None) -> Reals:
    """Return finite real numbers of this many dimensions, in rows that lie behind one another in memory."""
    found = _checked_shape(name, values, dimensions)
    if not np.issubdtype(found.dtype, np.floating) and not _is_whole(found):
        raise ConfigError(f"{name} must be real numbers, got {found.dtype}.")
    exact = found.dtype in (np.float32, np.float64)
    reals: Reals = np.ascontiguousarray(found, None if exact else np.float64).reshape(found.shape)
    if not np.all(np.isfinite(reals)) or np.abs(reals).max(initial=0) > np.float64(LARGEST_VALUE):
        raise DataError(
            f"{name} hold a number that is not finite, or too large to compute with. Nothing was released. "
            "Look for a division by zero or a learning rate that is too large."
        )
    return reals


def checked_whole(name: str, values: ArrayLike, dimensions: int | None = None) -> NDArray[np.int64]:
    """Return whole numbers of this many dimensions."""
    found = _checked_shape(name, values, dimensions)
    if not _is_whole(found):
        raise ConfigError(f"{name} must be whole numbers, got {found.dtype}. Scale and round them first.")
    return found.astype(np.int64)


def checked_groups(ptr: ArrayLike, count: int | None = None) -> Offsets:
    """Return group boundaries: from 0 to the number of entries, if that is known, and never falling."""
    found = checked_whole("ptr", ptr, dimensions=1)
    rises = len(found) > 0 and found[0] == 0 and bool(np.all(np.diff(found) >= 0))
    if not rises or count not in (None, found[-1]):
        raise ConfigError("ptr must start at 0, never fall, and end at the number of entries.")
    return found


def checked_places(places: ArrayLike, count: int, place_count: int) -> Offsets:
    """Return for each of so many rows the row of a table that it is added to."""
    found = checked_whole("places", places, dimensions=1)
    if len(found) != count:
        raise ConfigError("places must name one row of the table for each of the rows.")
    if np.any((found < 0) | (found >= place_count)):
        raise ConfigError(f"places must lie between 0 and {place_count - 1}, as place_count says.")
    return found


def _checked_shape(name: str, values: ArrayLike, dimensions: int | None) -> NDArray[Any]:
    if np.ma.isMaskedArray(values):
        raise ConfigError(f"{name} must not be masked: what a mask hides would be released. Leave it out.")
    found = np.asarray(values)
    if found.size == 0 and found.dtype == np.float64:
        found = found.astype(np.int64)  # an empty list has no numbers, so it holds whole ones
    if dimensions is not None and found.ndim != dimensions:
        raise ConfigError(f"{name} must have {dimensions} dimension(s), got {found.ndim}.")
    return found


def _is_whole(found: NDArray[Any]) -> bool:
    return np.can_cast(found.dtype, np.int64, "safe")


@kernel
def _projected(rows: Reals, limit: float) -> NDArray[np.float32]:
    out = np.empty(rows.shape, np.float32)
    for row in range(rows.shape[0]):
        squares = 0.0
        for k in range(rows.shape[1]):
            entry = max(np.float64(rows[row, k]), 0.0)
            squares += entry * entry
        scale = 1.0 if squares <= limit * limit else limit / np.sqrt(squares)
        for k in range(rows.shape[1]):
            out[row, k] = max(np.float64(rows[row, k]), 0.0) * scale
    return out


@kernel
def _add_clipped(
    rows: Reals,
    ptr: Offsets,
    places: Offsets,
    limit: float,
    step: float,
    absolute: bool,
    total: NDArray[np.int64],
) -> int:
    """Add each group's contribution to the total, in whole steps, rounding towards zero.

    Return how many were shortened: those at the limit itself, which only its margin touches, do not count.
    """
    shortened = 0
    own = np.zeros(total.shape, np.float64)
    is_touched, touched = np.zeros(len(total), np.bool_), np.empty(len(total), np.int64)
    for group in range(ptr.size - 1):
        count = 0
        for at in range(ptr[group], ptr[group + 1]):
            place = places[at]
            if not is_touched[place]:
                is_touched[place], touched[count] = True, place
                count += 1
            for k in range(rows.shape[1]):
                own[place, k] += rows[at, k]
        length = _length(own, touched[:count], absolute)
        scale = (1.0 if length <= limit else limit / length) / step
        shortened += length > limit * (1 + 2 * MARGIN)
        for place in touched[:count]:
            is_touched[place] = False
            for k in range(rows.shape[1]):
                total[place, k] += np.int64(own[place, k] * scale)
                own[place, k] = 0.0
    return shortened


@kernel
def _length(table: NDArray[np.float64], places: Offsets, absolute: bool) -> float:
    length = 0.0
    for place in places:
        for k in range(table.shape[1]):
            length += abs(table[place, k]) if absolute else table[place, k] ** 2
    return length if absolute else np.sqrt(length)
