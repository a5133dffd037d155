"""Private clusters of a party's own columns: a tree finds where points are, then centres move a little.

Adapted from DPLSF, the forest of locality-sensitive hashes of Google's differential privacy library (thesis,
section 5.2.6), with Laplace noise in whole numbers.
"""

import math
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.kmeans import clustered
from cofactor.cluster.lloyd import STEPS, blurred, check_reach, moved, steps_release
from cofactor.cluster.local_sums import ROOT_TWO, Outlet, Sums, clipped, planned
from cofactor.cluster.local_tree import (
    NO_PLACE,
    Boxes,
    Halves,
    Hyperplanes,
    divided,
    everything,
    joined,
    kept_only,
    largest,
    without,
)
from cofactor.cluster.method import Let
from cofactor.config import fraction, not_negative, plain_numbers, whole
from cofactor.errors import ConfigError
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound
from cofactor.privacy.schedule import Release, Schedule

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAVES = "sums of leaves"
ONE_EACH = Bound(size=1.0, norm="l1", unit="user", adjacency="empty")
"""A user is in one box of a level."""

_CLEAR = 10.0
"""How many times the scale of its noise a count must be for a box to be divided."""
_FEWEST_BOXES = 8
"""A level is worth its noise if at least so many boxes of equal size would be divided."""
_MOST_BOXES = 128
"""How many boxes of a level are divided at most."""
_LOUDEST = 2.0**12
"""The most noise of a level's counts."""


@dataclass(frozen=True, kw_only=True)
class LSHForest:
    """A tree of boxes with noisy counts, k-means on the noisy means of its leaves, and a few noisy steps."""

    splits: Halves | Hyperplanes = field(default_factory=Halves)
    """How boxes are divided: halved column by column, or by random planes, as published."""
    levels: int = 4
    """How often the tree grows at most. It grows less often where noise would hide what it finds."""
    halvings: int = 4
    """How often each box is cut in two when the tree grows."""
    growing: float = 0.2
    """The part of the tree's epsilon with which it is decided what grows; the leaves have the rest."""
    steps: int = 2
    """How many noisy steps of k-means follow, from the centres that the tree found."""
    moving: float = 0.5
    """The part of all epsilon that these steps have."""
    reach: float = 0.35
    """How far from its centre a point may pull in a step, on average over its columns; their range is 2."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(levels=self.levels, halvings=self.halvings)
        not_negative(steps=self.steps)
        fraction(growing=self.growing, moving=self.moving)
        check_reach(self.reach)
        if self.halvings > 8:
            raise ConfigError(f"halvings must be at most 8, got {self.halvings}. Use more levels instead.")

    def releases(
        self, *, width: int, clusters: int, users: int, epsilon: float, by: str
    ) -> tuple[Release, ...]:
        """Return all that a party with so many columns releases, with noise for epsilon, in round 1."""
        whole(width=width, clusters=clusters, users=users)
        moving = epsilon * self.moving if self.steps else 0.0
        found = self._tree(width=width, users=users, epsilon=epsilon - moving, by=by)
        if self.steps:
            found.append(steps_release(self.steps, width=width, clusters=clusters, epsilon=moving, by=by))
        return tuple(found)

    def centres(
        self, points: Floats, *, clusters: int, users: int, schedule: Schedule, let: Let, seed: int
    ) -> Floats:
        """Return centres of points in [-1, 1], made only of what `let` lets out, and of public numbers."""
        whole(clusters=clusters, users=users)
        inside, outlet = clipped(points), Outlet(schedule=schedule, let=let)
        places, leaves = self._grow(inside, outlet, seed)
        means, counts = _means(inside, places, leaves, outlet, clusters)
        found = clustered(means, counts, clusters, seed=seed)
        return moved(inside, found, outlet, self.reach) if outlet.has(STEPS) else found

    def blur(self, *, width: int, clusters: int, users: int, schedule: Schedule) -> float:
        """Return by about which part of a column's range noise moves centres in the last step."""
        return blurred(schedule, width=width, clusters=clusters, users=users, reach=self.reach)

    def _tree(self, *, width: int, users: int, epsilon: float, by: str) -> list[Release]:
        """Return the releases of the tree: counts of all levels but the last, and sums of all leaves."""
        times = self._times(epsilon * self.growing, users)
        each = epsilon * self.growing / max(times, 1)
        rooms = self._rooms(times, users, each)
        leaves = epsilon - each * times
        sums = Sums.fitting(width=width, epsilon=leaves)
        counts = [
            planned(_level(number), by=by, bound=ONE_EACH, epsilon=each, dimension=room * self._fan)
            for number, room in enumerate(rooms[:-1])
        ]
        size = sum(rooms) * self._fan * (1 + width)
        return [*counts, planned(LEAVES, by=by, bound=sums.bound, epsilon=leaves, dimension=size)]

    def _times(self, epsilon: float, users: int) -> int:
        """Return how often counts decide what is divided: as often as noise lets enough boxes be seen."""
        loudest = min(users / (_CLEAR * _FEWEST_BOXES), _LOUDEST)
        return min(self.levels - 1, int(loudest * epsilon))

    def _rooms(self, times: int, users: int, epsilon: float) -> list[int]:
        """Return for how many boxes each level has room, before they are divided."""
        most = min(_MOST_BOXES, math.ceil(users * epsilon / _CLEAR))
        rooms = [1]
        for _ in range(times):
            rooms.append(min(rooms[-1] * self._fan, most))
        return rooms

    @property
    def _fan(self) -> int:
        return int(2**self.halvings)

    def _grow(self, points: Floats, outlet: Outlet, seed: int) -> tuple[Integers, Boxes]:
        """Return in which leaf each point is, and the leaves of all levels."""
        width = points.shape[1]
        cuts = self.splits.cuts(width, seed)
        places, boxes = np.zeros(len(points), np.int64), everything(width)
        found, levels, before = np.zeros(len(points), np.int64), list[Boxes](), 0
        for number, room in enumerate(self._planned_rooms(width, outlet)):
            if number:
                kept = _clear(places, boxes, outlet, _level(number - 1), room)
                levels[-1] = without(boxes, kept)
                places, boxes = kept_only(places, boxes, kept, room)
            for direction, cut in islice(cuts, self.halvings):
                places, boxes = divided(points, places, boxes, direction, cut)
            found = np.where(places == NO_PLACE, found, before + places)
            levels.append(boxes)
            before += len(boxes)
        return found, joined(levels)

    def _planned_rooms(self, width: int, outlet: Outlet) -> list[int]:
        """Return the rooms that the schedule was made with."""
        total = outlet.release(LEAVES).dimension // (1 + width) // self._fan
        rooms = list[int]()
        while outlet.has(_level(len(rooms))):
            rooms.append(outlet.release(_level(len(rooms))).dimension // self._fan)
        return [*rooms, total - sum(rooms)]


def as_published() -> LSHForest:
    """Return DPLSF as the thesis adapts it: random planes, and no steps afterwards."""
    return LSHForest(splits=Hyperplanes(), steps=0)


def _level(number: int) -> str:
    return f"counts of level {number + 1}"


def _clear(places: Integers, boxes: Boxes, outlet: Outlet, name: str, room: int) -> Integers:
    """Return which boxes of a level are divided further, by noisy counts of all its places."""
    true = np.bincount(places[places != NO_PLACE], minlength=len(boxes))
    noisy = outlet.out(name, Bounded(value=true, bound=ONE_EACH))
    return largest(noisy, boxes, above=_CLEAR * outlet.scale(name), most=room)


def _means(
    points: Floats, places: Integers, leaves: Boxes, outlet: Outlet, clusters: int
) -> tuple[Floats, Floats]:
    """Return the noisy means of leaves, and about how many points each has; lost ones are left out."""
    sums = Sums(width=points.shape[1], size=round(outlet.release(LEAVES).bound.size))
    reach = leaves.reach[:, None]
    vectors = (points - leaves.centres[places]) / reach[places]
    counts, totals = sums.read(outlet.out(LEAVES, sums.bounded(vectors, places, len(leaves))))
    deviation = ROOT_TWO * outlet.scale(LEAVES) * np.maximum(1 / sums.weight, leaves.reach / sums.reach)
    heard = np.flatnonzero(leaves.used & (counts > deviation))
    if len(heard) < clusters:
        loudest = np.argsort(-np.where(leaves.used, counts, -np.inf), kind="stable")
        heard = loudest[: min(clusters, int(leaves.used.sum()))]
    known = np.maximum(counts[heard], 1.0)
    means = leaves.centres[heard] + reach[heard] * totals[heard] / known[:, None]
    return np.clip(means, leaves.low[heard], leaves.high[heard]), known
