"""What tests of sketches make: sessions, and users in clear clusters."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.method import Integers
from cofactor.cluster.sketches import Sketches
from tests.cluster.counting import Counting, counting, drawn_cells

METHOD: Any = Sketches(rows=64)
CLUSTERS = 3
KEY = b"k" * 32
Rows = NDArray[np.uint8]


def begun(parties: int = 3, users: int = 40, **more: Any) -> Counting:
    given = {"epsilon": 1.0, **more}
    return counting(METHOD, drawn_cells(parties, users, CLUSTERS), clusters=CLUSTERS, **given)


def clear_cells(users: int, parties: int = 2, clusters: int = CLUSTERS) -> list[Integers]:
    """Return clusters that mostly agree between all parties."""
    chance = np.random.default_rng(4)
    truth = chance.integers(clusters, size=users)
    stray = [chance.integers(clusters, size=users) for _ in range(parties)]
    return [np.where(chance.random(users) < 0.15, other, truth) for other in stray]


def table_of(cells: list[Integers], clusters: int = CLUSTERS) -> Integers:
    table = np.zeros((clusters,) * len(cells), np.int64)
    np.add.at(table, tuple(cells), 1)
    return table
