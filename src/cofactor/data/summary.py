"""A first look at a file of ratings."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from cofactor.data.files import open_ratings, read
from cofactor.data.ratings import Ratings
from cofactor.data.tables import Table, items_beside, users_beside
from cofactor.errors import DataError


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a file of ratings holds."""

    format: str
    ratings: int
    users: int
    items: int
    scale: str
    """The rating scale, or "implicit"."""
    density: float
    """Share of all (user, item) pairs that are rated."""
    ratings_per_user: tuple[int, int, int, int, int]
    """Least, lower quartile, median, upper quartile, most."""
    first_time: str | None
    last_time: str | None
    user_table: str | None
    """Columns of the table of users beside the ratings, or None without one."""
    item_table: str | None


def info(path: str | Path, *, member: str | None = None, **columns: str | None) -> Summary:
    """Say what a file of ratings holds; of a pair rated twice the last rating counts.

    `columns` names columns as `read_ratings` does: user, item, rating, time.
    """
    file = open_ratings(path, member=member, **columns)
    ratings = read(file, duplicates="last")
    first, last = _span(ratings)
    users, items = _names_beside(path, users_beside), _names_beside(path, items_beside)
    return Summary(
        format=file.format,
        ratings=len(ratings),
        users=ratings.user_count,
        items=ratings.item_count,
        scale="implicit" if ratings.scale is None else str(ratings.scale),
        density=ratings.density,
        ratings_per_user=_quantiles(ratings),
        first_time=first,
        last_time=last,
        user_table=users,
        item_table=items,
    )


def _quantiles(ratings: Ratings) -> tuple[int, int, int, int, int]:
    least, lower, median, upper, most = np.quantile(
        ratings.by_user.sizes, (0, 0.25, 0.5, 0.75, 1), method="nearest"
    )
    return int(least), int(lower), int(median), int(upper), int(most)


def _span(ratings: Ratings) -> tuple[str | None, str | None]:
    if ratings.times is None:
        return None, None
    return _day(int(ratings.times.min())), _day(int(ratings.times.max()))


def _day(seconds: int) -> str:
    """Return the date; a number that is no time of this era is returned as it is."""
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return str(seconds)


def _names_beside(path: str | Path, find: Callable[[str | Path], Table | None]) -> str | None:
    try:
        table = find(path)
    except DataError as error:
        return f"cannot be used: {error}"
    return None if table is None else ", ".join(table.names)
