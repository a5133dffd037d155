"""Synthetic ratings with the shapes of MovieLens, for us and as a file for the peers."""

from pathlib import Path

import numpy as np

from benchmarks.bench import CACHE
from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import like

SHAPES = ("ml-1m", "ml-10m", "ml-25m")


def ratings_like(shape: str) -> tuple[Ratings, Path]:
    """Return the ratings and the .npz file of users, items and values that peers read, ordered by user."""
    ratings, path = like(shape, seed=0).ratings, file_of(shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        unfinished = path.with_suffix(".part.npz")
        np.savez(unfinished, users=ratings.users, items=ratings.items, values=ratings.values)
        unfinished.rename(path)
    return ratings, path


def file_of(shape: str) -> Path:
    """Return where the file of a shape is, once `ratings_like` has made it."""
    return CACHE / f"{shape}.npz"
