"""Clustering over vertically split users, one function for each part of it.

A sketch: 100,000 users in five clusters, 4,096 rows. Beside it stands the plain way with the same promise, a
user at a time: hashlib makes a user's words from key and id, and numpy keeps the smallest of each cluster. It
is timed on two thousand users, and its figure is that of one user times 100,000.
"""

from hashlib import shake_256

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench import Row, cpu_best, faster
from cofactor.cluster.method import Integers
from cofactor.cluster.sketching import registers

USERS, CLUSTERS, ROWS = 100_000, 5, 4096
SAMPLE = 2000
REPEATS = 3
LIMITS = {"sketch": 3.0}
"""CPU seconds."""
KEY = bytes(range(32))


def rows() -> list[Row]:
    return [*_sketch()]


def _sketch() -> list[Row]:
    ids = [f"user-{number}" for number in range(USERS)]
    cells = np.random.default_rng(0).integers(0, CLUSTERS, USERS)
    ours = cpu_best(lambda: registers(KEY, ids, cells, CLUSTERS, ROWS), REPEATS)
    some = cpu_best(lambda: _user_by_user(ids[:SAMPLE], cells[:SAMPLE]), REPEATS)
    name = f"cluster: sketch of {USERS:,} users, {ROWS:,} rows"
    peer = f"hashlib and numpy, extrapolated from {SAMPLE:,} users"
    return [
        faster(name, ours=ours, peer=LIMITS["sketch"], peer_name="limit"),
        faster(name, ours=ours, peer=some * USERS / SAMPLE, peer_name=peer),
    ]


def _user_by_user(ids: list[str], cells: Integers) -> NDArray[np.int64]:
    """Return registers made with the same kind of hash, with nothing but the standard library and numpy."""
    least = np.full((CLUSTERS, ROWS), 2**32 - 1, np.uint32)
    for user, cell in zip(ids, cells.tolist(), strict=True):
        words = np.frombuffer(shake_256(KEY + user.encode()).digest(4 * ROWS), np.uint32)
        np.minimum(least[cell], words, out=least[cell])
    return np.asarray(33 - np.frexp(least.astype(np.float64))[1].T, np.int64)
