"""Local clusters put together: every combination of the parties' is a point, and its users are its weight."""

from collections.abc import Sequence

import numpy as np

from cofactor.cluster.kmeans import clustered, labels
from cofactor.cluster.method import Floats


def joined(centres: Sequence[Floats], table: Floats, clusters: int, *, seed: int) -> Floats:
    """Cluster the combinations of local centres, weighted by the users in them."""
    return clustered(combinations_of(centres), table.reshape(-1), clusters, seed=seed)


def sizes_of(centres: Sequence[Floats], table: Floats, found: Floats) -> Floats:
    """Return about how many users belong to each of the centres that were found."""
    nearest = labels(combinations_of(centres), found)
    return np.bincount(nearest, table.reshape(-1), minlength=len(found)).astype(np.float64)


def combinations_of(centres: Sequence[Floats]) -> Floats:
    """Return all parties' columns of every combination of local centres, in the order of a table's cells."""
    numbers = np.indices([len(own) for own in centres]).reshape(len(centres), -1)
    return np.hstack([own[number] for own, number in zip(centres, numbers, strict=True)])
