"""k-means of a party's own columns by noisy steps (DPLloyd; Blum et al. 2005, Su et al. 2016)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.kmeans import labels
from cofactor.cluster.local_sums import ROOT_TWO, Outlet, Sums, clipped, planned
from cofactor.cluster.method import Let
from cofactor.config import plain_numbers, positive, whole
from cofactor.errors import ConfigError
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import Seeds

Floats = NDArray[np.float64]

STEPS = "sums around centres"

_CANDIDATES = 64
"""How many random places each spread-out centre is chosen from."""
_INNER = 0.5
"""The part of the range in which they lie: few points would have a centre near a corner as their closest."""


@dataclass(frozen=True, kw_only=True)
class PrivateLloyd:
    """Centres that begin at public places and move, step by step, to noisy means of the points around them.

    Published as DPLloyd; here points are taken relative to their centre and shortened, which needs less
    noise. Without good centres to begin with it may stay in a bad place: `LSHForest` looks first.
    """

    iterations: int = 6
    """How often centres move; each step has its part of epsilon."""
    reach: float = 0.5
    """How far from its centre a point may pull, on average over its columns, where the whole range is 2."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(iterations=self.iterations)
        check_reach(self.reach)

    def releases(
        self, *, width: int, clusters: int, users: int, epsilon: float, by: str
    ) -> tuple[Release, ...]:
        """Return all that a party with so many columns releases, with noise for epsilon, in round 1."""
        whole(users=users)
        return (steps_release(self.iterations, width=width, clusters=clusters, epsilon=epsilon, by=by),)

    def centres(
        self, points: Floats, *, clusters: int, users: int, schedule: Schedule, let: Let, seed: int
    ) -> Floats:
        """Return centres of points in [-1, 1], made only of what `let` lets out, and of public numbers."""
        whole(clusters=clusters, users=users)
        inside = clipped(points)
        return moved(
            inside, spread(clusters, inside.shape[1], seed), Outlet(schedule=schedule, let=let), self.reach
        )

    def blur(self, *, width: int, clusters: int, users: int, schedule: Schedule) -> float:
        """Return by about which part of a column's range noise moves centres."""
        return blurred(schedule, width=width, clusters=clusters, users=users, reach=self.reach)


def check_reach(reach: float) -> None:
    """Refuse a reach beyond the range of all values."""
    positive(reach=reach)
    if reach > 2:
        raise ConfigError(f"reach must be at most 2, the whole range of a column, got {reach:g}.")


def steps_release(iterations: int, *, width: int, clusters: int, epsilon: float, by: str) -> Release:
    """Return the release of so many steps, which share epsilon."""
    each = epsilon / iterations
    sums = Sums.fitting(width=width, epsilon=each)
    size = clusters * (1 + width)
    return planned(STEPS, by=by, bound=sums.bound, epsilon=each, dimension=size, times=iterations)


def blurred(schedule: Schedule, *, width: int, clusters: int, users: int, reach: float) -> float:
    """Return by which part of a column's range noise moves a centre of an average cluster in the last step.

    0 if there are no such steps.
    """
    steps = [release for release in schedule.releases if release.what.startswith(STEPS)]
    if not steps:
        return 0.0
    sums = Sums(width=width, size=round(steps[0].bound.size))
    noise: Any = steps[0].mechanism
    moves = ROOT_TWO * noise.noise_size(steps[0].bound) * reach * width / sums.reach / (users / clusters)
    return float(moves / 2)  # the range is that from -1 to 1


def moved(points: Floats, centres: Floats, outlet: Outlet, reach: float) -> Floats:
    """Return centres after as many noisy steps as were planned; points lie in [-1, 1]."""
    for _ in range(outlet.release(STEPS).times):
        centres = _step(points, centres, outlet, reach)
    return centres


def _step(points: Floats, centres: Floats, outlet: Outlet, reach: float) -> Floats:
    """Move each centre to the noisy mean of its points, unless that is lost in noise."""
    width = points.shape[1]
    sums = Sums(width=width, size=round(outlet.release(STEPS).bound.size))
    groups = labels(points, centres)
    far = reach * width
    noisy = outlet.out(STEPS, sums.bounded((points - centres[groups]) / far, groups, len(centres)))
    counts, totals = sums.read(noisy)
    heard = counts > ROOT_TWO * outlet.scale(STEPS) * far / sums.reach
    shifts = far * totals / np.maximum(counts, 1.0)[:, None]
    return np.where(heard[:, None], np.clip(centres + shifts, -1.0, 1.0), centres)


def spread(clusters: int, width: int, seed: int) -> Floats:
    """Return public places in the inner half of [-1, 1], by chance, each far from those before it."""
    chance = Seeds(seed).generator("first centres")
    found = chance.uniform(-_INNER, _INNER, (1, width))
    while len(found) < clusters:
        candidates = chance.uniform(-_INNER, _INNER, (_CANDIDATES, width))
        distances = np.square(candidates[:, None] - found).sum(axis=2).min(axis=1)
        found = np.vstack([found, candidates[np.argmax(distances)]])
    return found
