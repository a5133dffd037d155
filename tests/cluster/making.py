"""What several tests of the room make: users in clear clusters, and parties that hold their columns."""

from collections.abc import Sequence

import numpy as np

from cofactor.cluster.method import Facts, Floats
from cofactor.cluster.records import Records
from cofactor.privacy.budget import Budget

UNIT = (-1.0, 1.0)


def mixture(
    users: int, *, clusters: int = 3, columns: int = 4, spread: float = 0.1, seed: int = 0
) -> tuple[Floats, Floats]:
    """Return points in [-1, 1] around centres that lie apart, and these centres."""
    chance = np.random.default_rng(seed)
    # Corners of the cube, in an order that tells all of them apart in every column or two.
    corners = np.array([[(place >> (column % 3)) & 1 for column in range(columns)] for place in range(8)])
    centres = (1.2 * corners - 0.6)[chance.permutation(8)[:clusters]]
    points = centres[chance.integers(clusters, size=users)] + spread * chance.standard_normal(
        (users, columns)
    )
    return np.clip(points, -1, 1), centres


def parties(points: Floats, widths: Sequence[int] = (2, 2)) -> list[Records]:
    """Return parties that hold so many columns each, of the same users."""
    starts = np.cumsum([0, *widths])
    return [
        records(points[:, first : first + width], name=f"party {place}")
        for place, (first, width) in enumerate(zip(starts[:-1], widths, strict=True))
    ]


def records(points: Floats, name: str = "party 0") -> Records:
    columns = tuple(f"{name.replace(' ', '')}-{column}" for column in range(points.shape[1]))
    ids = tuple(f"u{row}" for row in range(len(points)))
    return Records(name=name, ids=ids, columns=columns, values=points, ranges=dict.fromkeys(columns, UNIT))


def budget(epsilon: float = 2.0, delta: float = 1e-6) -> Budget:
    return Budget(epsilon=epsilon, delta=delta, unit="user")


def facts(
    *, users: int = 1000, widths: Sequence[int] = (2, 2), clusters: int = 3, local_clusters: int = 3
) -> Facts:
    names = tuple(f"party {place}" for place in range(len(widths)))
    columns = tuple(tuple(f"c{place}-{at}" for at in range(width)) for place, width in enumerate(widths))
    return Facts(
        parties=names, users=users, columns=columns, clusters=clusters, local_clusters=local_clusters
    )
