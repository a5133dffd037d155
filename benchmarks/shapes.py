"""Synthetic ratings with the shapes of MovieLens, for us and as a file for the peers."""

from pathlib import Path

import numpy as np

from benchmarks.bench import CACHE
from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import like

SHAPES = ("ml-1m", "ml-10m")


def ratings_like(shape: str) -> tuple[Ratings, Path]:
    """Return the ratings and the .npz file of users, items and values that peers read, ordered by user."""
    ratings = like(shape, seed=0).ratings
    path = CACHE / f"{shape}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, users=ratings.users, items=ratings.items, values=ratings.values)
    return ratings, path
