"""The data that a figure is made with: whichever of the known sets a user has."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cofactor.data.datasets import how_to_get
from cofactor.data.files import read_ratings
from cofactor.data.prepare import libimseti_core, yelp_subset
from cofactor.data.ratings import Ratings
from cofactor.data.sources import candidates
from cofactor.data.tables import items_beside
from cofactor.errors import DataError

_FOLDERS = {
    "ml-10m": ("ml-10m", "ml-10M100K"),
    "ml-25m": ("ml-25m",),
    "libimseti": ("libimseti",),
    "ml-1m": ("ml-1m",),
    "ml-100k": ("ml-100k",),
    "yelp": ("yelp",),
    "douban": ("douban",),
}
"""Known sets, those of Li et al. (2022) first, and the folders that they are unpacked to."""
_ARRAYS = {"yelp": "yelp-hin.npz", "douban": "douban-monti3k.npz"}
"""Sets that are passed on as arrays `user`, `item` and `rating`, in which users and items are numbered."""
_CATEGORIES = ("genres", "genre", "class", "category", "categories")


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """Ratings with a name, and the categories of their items if these are known."""

    name: str
    ratings: Ratings
    categories: tuple[tuple[str, ...], ...] | None = None
    """Of each of `ratings.item_ids`, in that order."""

    @classmethod
    def read(cls, place: Path) -> "Material":
        """Read a file of ratings, or the first known set that a folder holds."""
        return cls._read(*_found(place))

    @classmethod
    def read_all(cls, place: Path, names: Sequence[str]) -> list["Material"]:
        """Read those of some known sets that a folder holds; any other place as `read` does."""
        own = {name: file for name in names if (file := _file_of(name, place)) is not None}
        if not own:
            return [cls.read(place)]
        return [cls._read(name, file) for name, file in own.items()]

    @classmethod
    def _read(cls, name: str, file: Path) -> "Material":
        if file.suffix == ".npz":
            return cls(name=name, ratings=_from_arrays(file))
        if name == "yelp":  # some users reviewed a business twice
            return cls(name=name, ratings=yelp_subset(read_ratings(file, duplicates="last")))
        ratings = read_ratings(file)
        if ratings.implicit:
            raise DataError(f"{file} holds no ratings with values, and figures show errors of ratings.")
        if name == "libimseti":
            return cls(name=name, ratings=libimseti_core(ratings))
        return cls(name=name, ratings=ratings, categories=_categories(file, ratings))


def _found(place: Path) -> tuple[str, Path]:
    if place.is_file():
        known = {file: name for name, file in _ARRAYS.items()}
        return known.get(place.name, place.name.split(".")[0]), place
    if not place.is_dir():
        raise DataError(f"{place}: there is no such folder. Name one that holds ml-1m.zip or other data.")
    for name in _FOLDERS:
        file = _file_of(name, place)
        if file is not None:
            return name, file
    own = _ratings_in(place)
    if len(own) == 1:
        return place.resolve().name, own[0]
    sets = ", ".join(_FOLDERS)
    raise DataError(
        f"{place} holds none of {sets}. Get one: {how_to_get('ml-1m')} Or name a file of ratings."
    )


def _file_of(name: str, place: Path) -> Path | None:
    """Return where a folder holds a known set: packed, or unpacked to a folder of its own."""
    if not place.is_dir():
        return None
    files = [place / f"{name}{ending}" for ending in (".zip", ".inter", ".parquet")]
    files += [inside for folder in _FOLDERS[name] for inside in _ratings_in(place / folder)]
    files += [place / _ARRAYS[name]] if name in _ARRAYS else []
    return next((file for file in files if file.is_file()), None)


def _from_arrays(file: Path) -> Ratings:
    try:
        with np.load(file, allow_pickle=False) as stored:
            users, items, values = (stored[name] for name in ("user", "item", "rating"))
    except (KeyError, ValueError, OSError, zipfile.BadZipFile):
        raise DataError(f"{file} does not hold the arrays user, item and rating. Fetch it again.") from None
    return Ratings.from_arrays(users, items, values)


def _ratings_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    names = [file.name for file in sorted(folder.iterdir()) if file.is_file()]
    return [folder / name for name in candidates(names, "ratings")]


def _categories(file: Path, ratings: Ratings) -> tuple[tuple[str, ...], ...] | None:
    table = items_beside(file)
    column = next((one for one in table.columns if one.name in _CATEGORIES), None) if table else None
    if table is None or column is None:
        return None
    rows = table.rows(ratings.item_ids.tolist())
    return tuple(tuple(column.values(row)) if row >= 0 else () for row in rows.tolist())
