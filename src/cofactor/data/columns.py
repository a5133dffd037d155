"""Which column holds what: by the caller's word, else by the usual names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cofactor.errors import DataError, did_you_mean

USUAL_COLUMNS: dict[str, tuple[str, ...]] = {
    "user": ("userid", "uid", "customerid", "reviewerid", "memberid", "user", "username", "customer"),
    "item": (
        "itemid", "iid", "movieid", "filmid", "productid", "parentasin", "asin", "bookid", "businessid",
        "trackid", "songid", "artistid", "gameid", "profileid", "item", "movie", "film", "product", "book",
        "business", "track", "song", "artist", "game", "profile",
    ),
    "rating": ("rating", "ratings", "stars", "score", "overall"),
    "time": ("timestamp", "time", "date", "datetime", "ts", "unixreviewtime", "reviewtime"),
}  # fmt: skip
"""Names of columns, without regard to case and punctuation: userId, user_id and User ID are all "userid"."""

WITHOUT_HEADER = ("user", "item", "rating", "timestamp")
"""The order of columns in every known file without a header; the last two may be missing."""


@dataclass(frozen=True)
class Columns:
    """Position of each column; None where the file has no such column."""

    user: int
    item: int
    rating: int | None
    time: int | None

    def used(self) -> dict[str, int]:
        """Return the columns that are there, by what they hold."""
        return {name: place for name, place in vars(self).items() if place is not None}


def find_columns(names: Sequence[str], label: str, **wanted: str | None) -> Columns:
    """Find the columns of users, items, ratings and times."""
    user, item, rating, time = (
        find_column(names, label, usual, wanted.get(holds)) for holds, usual in USUAL_COLUMNS.items()
    )
    if rating is None:
        alike = [at for at, name in enumerate(names) if re.search("rating|stars|score", _plain(name))]
        rating = next((at for at in alike if at not in (user, item, time)), None)
    if user is None or item is None:
        holds = "user" if user is None else "item"
        raise DataError(
            f"{label}: none of the columns looks like the {holds}s. "
            f"Name the right one with --{holds}. {_listed(names)}"
        )
    return Columns(user, item, rating, time)


def check_implicit(names: Sequence[str], numeric: Sequence[int], columns: Columns, label: str) -> None:
    """Refuse to overlook ratings: without a column of them, no other column may hold numbers."""
    used = columns.used().values()
    other = [names[at] for at in numeric if at not in used and not _is_index(names[at])]
    if columns.rating is None and other:
        listed = ", ".join(f'"{name}"' for name in other)
        raise DataError(
            f"{label}: no column looks like the ratings, but there are numbers in {listed}. Name the ratings "
            "with --rating, or say --implicit if a row only tells that something happened."
        )


def _is_index(name: str) -> bool:
    return _plain(name) in ("", "id", "index", "row") or name.lower().startswith("unnamed")


def find_column(names: Sequence[str], label: str, usual: Sequence[str], wanted: str | None) -> int | None:
    """Find one column: the wanted one, which must be there, or the first with a usual name."""
    if wanted is None:
        plain = [_plain(name) for name in names]
        return next((plain.index(name) for name in usual if name in plain), None)
    if wanted not in names:
        raise DataError(f'{label} has no column "{wanted}".{did_you_mean(wanted, names)} {_listed(names)}')
    return list(names).index(wanted)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _listed(names: Sequence[str]) -> str:
    return "Its columns: " + ", ".join(f'"{name}"' for name in names) + "."
