"""Clustering over vertically split users, one function for each part of it.

All of it, from finding the users in common to segments: 20,000 users, two parties with four columns each,
epsilon 1, and what all parties and the coordinator compute together, in one process.

A sketch: 100,000 users in five clusters, 4,096 rows. Beside it stands the plain way with the same promise, a
user at a time: hashlib makes a user's words from key and id, and numpy keeps the smallest of each cluster. It
is timed on two thousand users, and its figure is that of one user times 100,000.
"""

from functools import partial
from hashlib import shake_256

import numpy as np
from numpy.typing import NDArray

from benchmarks import cluster_table
from benchmarks.bench import Row, cpu_best, faster
from cofactor.cluster.clustering import find_clusters
from cofactor.cluster.method import Integers
from cofactor.cluster.records import Records
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.sketching import registers
from cofactor.cluster.tables import SecureTable
from cofactor.privacy.budget import Budget
from cofactor.randomness import Seeds

USERS, CLUSTERS, ROWS = 100_000, 5, 4096
SAMPLE = 2000
REPEATS = 3
LIMITS = {"sketch": 3.0, "whole": 60.0}
"""CPU seconds."""
KEY = bytes(range(32))


def rows() -> list[Row]:
    return [*_sketch(), *cluster_table.rows(), *_whole()]


def _whole() -> list[Row]:
    points = mixed(Seeds(0).generator("mixed Gaussian"), users=20_000)
    parties = [held(points[:, :4], "bank"), held(points[:, 4:], "shop")]
    budget = Budget(epsilon=1.0, delta=1e-6, unit="user")
    found = []
    for method in (SecureTable(), Sketches()):
        name = f"cluster: end to end, {type(method).__name__}"
        taken = cpu_best(partial(find_clusters, parties, clusters=5, budget=budget, method=method), 1)
        found.append(faster(name, ours=taken, peer=LIMITS["whole"], peer_name="limit"))
    return found


def mixed(chance: np.random.Generator, *, users: int) -> NDArray[np.float64]:
    """Return users around five centres in eight columns."""
    centres = chance.uniform(-1, 1, (5, 8))
    around = centres[chance.integers(5, size=users)] + 0.25 * chance.standard_normal((users, 8))
    return np.clip(around, -1.0, 1.0)


def held(points: NDArray[np.float64], name: str) -> Records:
    columns = tuple(f"{name} {number}" for number in range(points.shape[1]))
    ids = tuple(f"user-{row}" for row in range(len(points)))
    ranges = dict.fromkeys(columns, (-1.0, 1.0))
    return Records(name=name, ids=ids, columns=columns, values=points, ranges=ranges)


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
