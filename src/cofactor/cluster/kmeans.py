"""k-means in the open: weighted points into centres, and how good centres are.

Nothing here is private. The coordinator runs it on what parties have released; an experiment, on anything.
"""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.config import whole
from cofactor.errors import ConfigError
from cofactor.randomness import Seeds

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

RESTARTS = 20
"""From how many starts k-means is run; the best result counts."""


def clustered(points: ArrayLike, weights: ArrayLike | None, clusters: int, *, seed: int) -> Floats:
    """Return so many centres of weighted points, with a loss as low as many restarts find.

    Points of weight 0 do not pull; if all have weight 0, all pull alike. With no more distinct points than
    clusters every point is a centre, heavy ones first and over again until there are enough.
    """
    whole(clusters=clusters)
    found, pulls = _checked(points, weights)
    distinct, pulls = _distinct(found, pulls)
    pulling = pulls > 0
    if pulling.sum() <= clusters:
        order = np.argsort(-pulls, kind="stable")
        return distinct[np.resize(order[:clusters], clusters)]
    return _lloyd(distinct[pulling], pulls[pulling], clusters, seed)


def check_installed() -> None:
    """Refuse, where scikit-learn is missing, before anything is done."""
    _sklearn("sklearn.cluster")


def loss(points: ArrayLike, centres: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Return the sum, over points, of the squared distance to the closest centre."""
    nearest, _ = _nearest(_table("points", points), _table("centres", centres))
    return float(nearest.sum() if weights is None else nearest @ np.asarray(weights, np.float64))


def labels(points: ArrayLike, centres: ArrayLike) -> Integers:
    """Return for each point the number of the closest centre, the first of several that are equally close."""
    return _nearest(_table("points", points), _table("centres", centres))[1]


def v_measure(one: ArrayLike, other: ArrayLike) -> float:
    """Return how well two labellings agree, from 0 to 1 (Rosenberg and Hirschberg 2007)."""
    return float(_sklearn("sklearn.metrics").v_measure_score(np.asarray(one), np.asarray(other)))


def _lloyd(points: Floats, weights: Floats, clusters: int, seed: int) -> Floats:
    chance = Seeds(seed).generator("k-means restarts")
    learner = _sklearn("sklearn.cluster").KMeans(
        n_clusters=clusters,
        n_init=RESTARTS,
        max_iter=300,
        tol=1e-6,
        random_state=int(chance.integers(2**31)),
    )
    # Threads would add up in another order each time, and take cores that others share.
    with _sklearn("threadpoolctl").threadpool_limits(limits=1):
        learner.fit(points, sample_weight=weights / weights.max())
    return np.asarray(learner.cluster_centers_, np.float64)


def _nearest(points: Floats, centres: Floats) -> tuple[Floats, Integers]:
    """Return the squared distance to the closest centre, and which it is."""
    if len(centres) == 0 or points.shape[1] != centres.shape[1]:
        raise ConfigError(f"points have {points.shape[1]} columns, centres {centres.shape[1]}.")
    nearest, which = np.full(len(points), np.inf), np.zeros(len(points), np.int64)
    for number, centre in enumerate(centres):
        # Column by column: then a point's label cannot depend, by rounding, on which points lie around it.
        distance = np.zeros(len(points))
        for column, coordinate in enumerate(centre):
            distance += np.square(points[:, column] - coordinate)
        closer = distance < nearest
        nearest[closer], which[closer] = distance[closer], number
    return nearest, which


def _checked(points: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats]:
    found = _table("points", points)
    pulls = np.ones(len(found)) if weights is None else np.asarray(weights, np.float64)
    if len(found) == 0 or pulls.shape != (len(found),):
        raise ConfigError("k-means needs at least one point, and one weight for each.")
    if not (np.isfinite(found).all() and np.isfinite(pulls).all() and (pulls >= 0).all()):
        raise ConfigError("k-means needs finite points, and finite weights of 0 or more.")
    return found, np.ones(len(found)) if not pulls.any() else pulls


def _distinct(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return points that occur once each, with the weights of all that were equal."""
    distinct, place = np.unique(points, axis=0, return_inverse=True)
    return distinct, np.bincount(place.reshape(-1), weights, len(distinct)).astype(np.float64)


def _table(name: str, values: ArrayLike) -> Floats:
    found = np.asarray(values, np.float64)
    if found.ndim != 2:
        raise ConfigError(f"{name} must be a table with a row for each, got {found.ndim} dimension(s).")
    return found


def _sklearn(module: str) -> Any:
    """Return a module of scikit-learn, or of what comes with it; it takes a second to import."""
    try:
        return import_module(module)
    except ImportError:
        raise ConfigError(
            "clustering needs scikit-learn, which is not installed. Run: pip install 'cofactor[cluster]'."
        ) from None
