"""What a party's clustering lets out, recorded, and given back again."""

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.method import LocalClustering
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.mechanisms import DiscreteLaplace
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import InsecureRandom, Random

Floats = NDArray[np.float64]
Unit = tuple[float, ...] | None
"""A user's point, or None if there is none."""
CLUSTERS = 3


def schedule_of(
    method: LocalClustering, *, width: int, users: int, epsilon: float = 1.0, clusters: int = CLUSTERS
) -> Schedule:
    found = method.releases(width=width, clusters=clusters, users=users, epsilon=epsilon, by="bank")
    return Schedule(releases=found, rounds=1)


class Letting:
    """A `Let` that checks what it gets against the schedule, remembers it, and answers with noise.

    Given the answers of an earlier one, it repeats them, whatever it gets: what is released later must be
    bounded whatever was released before.
    """

    def __init__(
        self, schedule: Schedule, random: Random | None = None, again: "Letting | None" = None
    ) -> None:
        self.schedule, self.random = schedule, random or InsecureRandom(1)
        self.values: defaultdict[str, list[NDArray[Any]]] = defaultdict(list)
        self.answers: list[NDArray[np.int64]] = []
        self._again = None if again is None else iter(again.answers)

    def __call__(self, what: str, bounded: Bounded) -> NDArray[np.int64]:
        (release,) = (each for each in self.schedule.releases if each.what == what)
        assert bounded.bound == release.bound
        assert bounded.value.size == release.dimension
        assert isinstance(release.mechanism, DiscreteLaplace)
        self.values[what].append(bounded.value)
        assert len(self.values[what]) <= release.times
        noisy = release.mechanism.noisy(bounded, self.random) if self._again is None else next(self._again)
        self.answers.append(noisy)
        return noisy


def points_of(units: tuple[Unit, ...], width: int) -> Floats:
    rows = [unit for unit in units if unit is not None]
    return np.array(rows, np.float64).reshape(len(rows), width)


def centres_of(
    method: LocalClustering,
    points: Floats,
    let: Letting,
    *,
    users: int,
    clusters: int = CLUSTERS,
    seed: int = 5,
) -> Floats:
    return method.centres(points, clusters=clusters, users=users, schedule=let.schedule, let=let, seed=seed)


def found_in(
    method: LocalClustering, points: Floats, *, epsilon: float = 1.0, clusters: int = CLUSTERS, users: int = 0
) -> Floats:
    """Return the centres that a party finds, with noise that repeats."""
    users = users or max(len(points), 1)
    plan = schedule_of(method, width=points.shape[1], users=users, epsilon=epsilon, clusters=clusters)
    return centres_of(method, points, Letting(plan), users=users, clusters=clusters)


def draw(chance: np.random.Generator, width: int) -> tuple[float, ...]:
    """Return a point: a corner, a middle, something far outside, or anything."""
    kind = chance.integers(4)
    if kind == 0:
        return tuple(float(x) for x in chance.choice([-1.0, 1.0], width))
    if kind == 1:
        return tuple(float(x) for x in chance.choice([0.0, -0.0, 0.5, -0.5, 5e-324], width))
    if kind == 2:
        return tuple(float(x) for x in chance.choice([-1e300, np.inf, np.nan, 1.5, -7.0], width))
    return tuple(float(x) for x in chance.uniform(-1, 1, width))


def blobs(seed: int, count: int = 6000) -> tuple[Floats, Floats]:
    """Return three clear clusters in three columns, and their centres."""
    chance = np.random.default_rng(seed)
    true = np.array([[-0.6, -0.5, 0.3], [0.6, -0.4, -0.5], [0.1, 0.7, 0.5]])
    return true[chance.integers(3, size=count)] + chance.normal(0, 0.1, (count, 3)), true


def farthest(found: Floats, true: Floats) -> float:
    """Return how far the worst of the true centres is from the closest that was found."""
    return float(np.sqrt(np.square(true[:, None] - found).sum(axis=2)).min(axis=1).max())
