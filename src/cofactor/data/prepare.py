"""What the papers did to their data before they used it, and the public features of films."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import whole
from cofactor.data.features import Column, Features, is_title
from cofactor.data.ids import Id, Ids
from cofactor.data.ratings import Ratings
from cofactor.data.tables import Table
from cofactor.errors import DataError
from cofactor.randomness import Seeds

GENRES = (
    "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
YEARS = (1930, 1945, 1960, 1972, 1982, 1990, 1995, 1998)
"""Knots of the hat functions: dense where MovieLens has many films."""
UNKNOWN_YEAR = 1994

_GENRE_COLUMNS = ("genres", "genre", "class")
_SEQUEL = re.compile(r"( II+\b| IV\b| VI*\b|\b[2-9]\b|: The |Part \d|Return of|Revenge)")


def active_users(ratings: Ratings, at_least: int = 20) -> Ratings:
    """Keep the users with at least so many ratings, and the items that are then still rated.

    HDPMF, section 5, for all its data sets; MovieLens 100K, 1M and 10M come so from the publisher.
    """
    whole(at_least=at_least)
    return ratings.select(users=ratings.by_user.sizes >= at_least).compact()


def first_halves(ratings: Ratings) -> Ratings:
    """Keep the first half of the users and the first half of the items, in the order of their ids.

    DPMF-RP, section 6.1.1 and appendix G: "half of the 10M MovieLens dataset (ML5M)", 34,939 users and
    5,338 films, half of each number, with 4,327,872 ratings. The paper does not say which halves; the first
    ones are our reading. Random halves of both would leave about 2.5 million ratings.
    """
    users, items = ratings.user_count // 2, ratings.item_count // 2
    return ratings.select(users=slice(0, users), items=slice(0, items))


def yelp_subset(
    ratings: Ratings, *, users: int = 10_000, items: int = 30_000, at_least: int = 10, seed: int = 0
) -> Ratings:
    """Keep the most rated items, and of their users with at least so many ratings a random choice.

    DPMF-RP, section 6.1.1 and appendix G: "a subset of the Yelp dataset with ratings from 10,000 users and
    30,000 restaurants", 308,354 ratings. The paper does not say which: the rule and `at_least` are ours.
    """
    whole(users=users, items=items, at_least=at_least)
    most_rated = np.argsort(-ratings.by_item.sizes, kind="stable")[:items]
    kept = ratings.select(items=np.sort(most_rated))
    active = np.flatnonzero(kept.by_user.sizes >= at_least)
    chosen = Seeds(seed).generator("yelp subset").permutation(active)[:users]
    return kept.select(users=np.sort(chosen))


def libimseti_core(ratings: Ratings, *, at_least: int = 20) -> Ratings:
    """Keep users and profiles that have at least so many ratings among each other.

    PVLDB'22, section 4.3 (thesis, section 4.4.3), prepares LibimSeTi "with the same process as" Shin et
    al. 2018 (IEEE TKDE 30(9)) without saying what it is. Our reading: the publisher already left out users
    with fewer than 20 ratings; the same is asked of profiles, and both are repeated until nothing changes.
    """
    whole(at_least=at_least)
    while True:
        kept = ratings.select(items=ratings.by_item.sizes >= at_least)
        kept = kept.select(users=kept.by_user.sizes >= at_least)
        if len(kept) == len(ratings):
            return kept.compact()
        ratings = kept


def only_items(ratings: Ratings, items: Iterable[Id]) -> Ratings:
    """Keep the ratings of the given items; users keep their numbers.

    PrivMVMF, section VI.A: films that the tag genome describes, 914,676 of the ratings of MovieLens 1M.
    """
    wanted = {str(item) for item in items}
    return ratings.select(items=np.array([str(item) in wanted for item in ratings.item_ids.tolist()], bool))


def item_features(items: Table, ids: Sequence[Any] | Ids) -> Features:
    """Describe items by what their table offers: films by `movie_features`, others by all their columns."""
    films = any(map(is_title, items.names)) and any(name in _GENRE_COLUMNS for name in items.names)
    return movie_features(items, ids) if films else items.features(ids)


def movie_features(items: Table, ids: Sequence[Any] | Ids) -> Features:
    """Describe films by 29 public numbers: 18 genres, 8 hat functions of the year, 3 flags of the title.

    The flags: a sequel, an alternative title in brackets, three or more genres. A film whose year is
    unknown counts as one of 1994; one that the table does not know is 0 throughout.
    """
    rows = items.rows(np.asarray(ids).tolist())
    table = np.zeros((len(items) + 1, 29), np.float32)  # the last row is for unknown films: -1
    table[:-1] = np.concatenate([_genre_flags(items), _year_hats(items), _title_flags(items)], axis=1)
    names = (*GENRES, *(f"year {year}" for year in YEARS), "sequel", "alternative title", "three genres")
    return Features(names, table[rows])


def _genre_flags(items: Table) -> NDArray[np.float64]:
    column = _named(items, *_GENRE_COLUMNS)
    found = [set(column.values(row)) for row in range(len(items))]
    # MovieLens 10M and later say Children where 100K and 1M say Children's.
    return np.array([[genre in row or genre.removesuffix("'s") in row for genre in GENRES] for row in found])


def _year_hats(items: Table) -> NDArray[np.float64]:
    stated = next((column.cells for column in items.columns if column.name in ("release_year", "year")), None)
    titles = _titles(items)
    years = [_year(titles[row], stated[row] if stated else "") for row in range(len(items))]
    return np.stack([np.interp(years, YEARS, hat) for hat in np.eye(len(YEARS))], axis=1)


def _title_flags(items: Table) -> NDArray[np.float64]:
    titles = _titles(items)
    sequel = [bool(_SEQUEL.search(title)) for title in titles]
    alternative = ["(" in re.sub(r"\(\d{4}\)", "", title) for title in titles]
    return np.column_stack([sequel, alternative, _genre_flags(items).sum(axis=1) >= 3])


def _year(title: str, stated: str) -> int:
    """Take the stated year, else the one that ends the title, else the usual one."""
    found = re.match(r"\d{4}", stated) or re.search(r"\d{4}(?=\)\s*$)", title)
    return int(found.group()) if found else UNKNOWN_YEAR


def _titles(items: Table) -> tuple[str, ...]:
    return _named(items, *(name for name in items.names if is_title(name))).cells


def _named(items: Table, *names: str) -> Column:
    found = next((column for column in items.columns if column.name in names), None)
    if found is None:
        words = ", ".join(items.names)
        raise DataError(f"the table of films needs titles and genres; its columns are: {words}.")
    return found
