"""What a private clustering is compared with: the same steps without privacy, in whole or in part.

Nothing here protects anybody. All parties' columns lie in one place, in the same order of users.
"""

from collections.abc import Sequence

import numpy as np

from cofactor.cluster.joining import joined
from cofactor.cluster.kmeans import clustered, labels
from cofactor.cluster.method import NOWHERE, Floats, Integers


def vertical(parts: Sequence[Floats], *, clusters: int, local_clusters: int, seed: int) -> Floats:
    """Cluster columns of several parties without privacy (Ding et al. 2016).

    Every party clusters its own columns; the combinations of local centres, each with the number of users
    who belong to it, are clustered again.
    """
    centres = [clustered(part, None, local_clusters, seed=seed) for part in parts]
    return joined(centres, exact_table(memberships(parts, centres), local_clusters), clusters, seed=seed)


def memberships(parts: Sequence[Floats], centres: Sequence[Floats]) -> list[Integers]:
    """Return for each party the local cluster of every user."""
    return [labels(part, own) for part, own in zip(parts, centres, strict=True)]


def exact_table(cells: Sequence[Integers], local_clusters: int) -> Floats:
    """Return how many users are in every combination of local clusters; whoever is NOWHERE is left out."""
    grid = (local_clusters,) * len(cells)
    there = np.all([own != NOWHERE for own in cells], axis=0)
    places = np.ravel_multi_index([own[there] for own in cells], grid)
    return np.bincount(places, minlength=local_clusters ** len(cells)).reshape(grid).astype(np.float64)
