"""Users dealt to parties, and how good their centres are."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cofactor.cluster.baselines import exact_table, memberships
from cofactor.cluster.kmeans import clustered, labels, loss, v_measure
from cofactor.cluster.method import Facts, Floats, Integers
from cofactor.papers.thesis22_cluster_data import CLUSTERS, Points
from cofactor.papers.thesis22_cluster_names import LOSS, V_MEASURE

Measures = dict[str, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Judge:
    """Users, and what central k-means without privacy makes of them."""

    points: Points

    @cached_property
    def centres(self) -> Floats:
        """Those of central k-means."""
        return clustered(self.points.values, None, CLUSTERS, seed=0)

    @cached_property
    def loss(self) -> float:
        """That of central k-means."""
        return loss(self.points.values, self.centres)

    @cached_property
    def labels(self) -> Integers:
        """Where users were drawn from; if that is unknown, the labels of central k-means."""
        known = self.points.labels
        return labels(self.points.values, self.centres) if known is None else known

    def measures(self, centres: Floats) -> Measures:
        """Return a loss, divided by that of central k-means, and the V-measure."""
        own = labels(self.points.values, centres)
        nearest = np.square(self.points.values - centres[own]).sum()
        return {LOSS: float(nearest) / self.loss, V_MEASURE: v_measure(self.labels, own)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Users whose columns lie with several parties."""

    judge: Judge
    widths: Sequence[int]
    """How many columns each party has: the first ones, and so on."""
    _plain: dict[int, list[Floats]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def parts(self) -> list[Floats]:
        """Each party's columns."""
        ends = np.cumsum(self.widths)[:-1]
        return [np.ascontiguousarray(part) for part in np.split(self.judge.points.values, ends, axis=1)]

    def plain(self, local_clusters: int) -> list[Floats]:
        """Return each party's local centres without privacy."""
        if local_clusters not in self._plain:
            self._plain[local_clusters] = [
                clustered(part, None, local_clusters, seed=0) for part in self.parts
            ]
        return self._plain[local_clusters]

    @property
    def users(self) -> int:
        """How many there are."""
        return len(self.judge.points.values)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(map(str, range(self.users)))

    def facts(self, local_clusters: int) -> Facts:
        """Return what everybody knows."""
        names = [
            tuple(f"column {place}.{n}" for n in range(width)) for place, width in enumerate(self.widths)
        ]
        return Facts(
            parties=tuple(f"party {place}" for place in range(len(self.widths))),
            users=self.users,
            columns=tuple(names),
            clusters=CLUSTERS,
            local_clusters=local_clusters,
        )

    def cells(self, centres: Sequence[Floats]) -> list[Integers]:
        """Return in which of its party's local clusters every user is."""
        return memberships(self.parts, centres)


def table_error(table: Floats, cells: Sequence[Integers]) -> float:
    """Return by which part of all users a table is off (section 5.5.2)."""
    exact = exact_table(cells, table.shape[0])
    return float(np.abs(table - exact).sum() / len(cells[0]))
