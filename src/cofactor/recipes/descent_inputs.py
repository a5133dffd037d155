"""What private steps accept: ratings on which the bounds hold, vectors and rates that float32 can compute."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.config import whole
from cofactor.data.grouping import Grouped, first_duplicate
from cofactor.errors import ConfigError, DataError
from cofactor.factors.simd import Table, cells, new_table
from cofactor.factors.whole_rows import MOST
from cofactor.recipes.descent_kernels import MOST_FACTORS

Rates = float | Sequence[float] | NDArray[Any]

_FARTHEST = 1e15
"""The longest way that a number may move in a step: the square of a row still fits float32."""


def checked_rates(name: str, rates: Rates, steps: int, step_size: float) -> NDArray[np.float64]:
    """Return the rate of each step, times the size of the steps in which sums are counted."""
    found = np.asarray(rates, np.float64)
    if found.shape not in ((), (steps,)) or not np.all(np.isfinite(found) & (found >= 0)):
        raise ConfigError(f"{name} must be one number, or one for each of {steps} steps, each 0 or more.")
    scaled = found * step_size
    if not np.all(scaled * 2 * MOST <= _FARTHEST):
        raise ConfigError(f"{name} is so large that vectors could not be computed. Lower it.")
    return np.broadcast_to(scaled, (steps,))


def table_of(name: str, vectors: ArrayLike) -> tuple[Table, int]:
    """Return a table with a copy of the vectors, and how many factors they have."""
    given = checked_vectors(name, vectors)
    rows, factors = given.shape
    if not 1 <= factors <= MOST_FACTORS:
        raise ConfigError(f"{name} have {factors:,} factors; there must be 1 to {MOST_FACTORS:,}.")
    table = new_table(rows, factors)
    cells(table)[:, :factors] = given
    return table, factors


def checked_vectors(name: str, vectors: ArrayLike) -> NDArray[np.float32]:
    """Return a table of finite numbers."""
    given = np.asarray(vectors, np.float32)
    if given.ndim != 2 or not np.all(np.abs(given) <= _FARTHEST):
        raise ConfigError(f"{name} must be a table of finite numbers, a row for each.")
    return given


def checked_chosen(chosen: ArrayLike, users: int) -> NDArray[np.int64]:
    """Return the numbers of users, each once, in rising order."""
    found = np.unique(np.asarray(chosen, np.int64))
    if found.size and not (found[0] >= 0 and found[-1] < users):
        raise ConfigError(f"chosen users must be numbers from 0 to {users - 1}.")
    return found


def check_ratings(
    ratings: Grouped, *, users: int, items: int, lowest: float, highest: float, most_ratings: int | None
) -> None:
    """Refuse ratings on which the bounds would not hold."""
    whole(most_ratings=most_ratings)
    if len(ratings.ptr) != users + 1:
        raise ConfigError(f"there are ratings of {len(ratings.ptr) - 1:,} users, but {users:,} vectors.")
    if np.any((ratings.index < 0) | (ratings.index >= items)):
        raise ConfigError(f"a rating is of an item beyond the {items:,} that have vectors.")
    if not np.all((ratings.values >= lowest) & (ratings.values <= highest)):
        raise DataError(
            f"a rating lies outside {lowest:g} to {highest:g}, and bounds rest on that. Limit ratings to "
            "their scale, and subtract the centre."
        )
    if first_duplicate(ratings, items) >= 0:
        raise DataError("a user has rated an item twice. Keep one rating of each user and item.")
    if most_ratings is not None and ratings.sizes.max(initial=0) > most_ratings:
        raise DataError(f"a user has more than {most_ratings:,} ratings. Trim users to most_ratings first.")
