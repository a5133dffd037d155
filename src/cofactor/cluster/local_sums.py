"""Counts and sums of groups of points in whole numbers: all that a party lets out of its columns."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.method import Let
from cofactor.config import positive, whole
from cofactor.errors import ConfigError
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.clipping import clipped_whole
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import DiscreteLaplace
from cofactor.privacy.schedule import Release, Schedule

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ROOT_TWO = math.sqrt(2)
"""The deviation of Laplace noise, divided by its scale."""
_FINEST = 2**12
"""The most steps that a user has: finer ones would be lost in any noise."""
_DRAWN_QUICKLY = 2**11
"""The scale of noise, in steps, for which steps are made: tables of wider noise take longer to make."""
_ROOM = 2.0
"""By how much calibration may raise noise before its tables end."""


@dataclass(frozen=True, kw_only=True)
class Sums:
    """How users become whole numbers: each adds to the count and to the sum of one group.

    A sum is that of vectors whose absolute values add up to at most 1, in small steps. All of it is public.
    """

    width: int
    """How many numbers a vector has."""
    size: int
    """The most that all a user adds can be, in steps (l1)."""

    def __post_init__(self) -> None:
        whole(width=self.width, size=self.size)
        if self.size < 2:
            raise ConfigError(f"counts and sums need two steps or more, got {self.size}.")

    @classmethod
    def fitting(cls, *, width: int, epsilon: float) -> "Sums":
        """Return steps far finer than the noise of this epsilon, as long as that can be drawn in them."""
        if DiscreteLaplace.largest_noise / _ROOM * epsilon < 2:
            raise ConfigError(
                f"an epsilon of {epsilon:.2g} for one sum of a party's columns is too little to learn from. "
                "Give a larger budget, or use fewer parties."
            )
        return cls(width=width, size=max(2, int(min(_DRAWN_QUICKLY * epsilon, _FINEST))))

    @property
    def weight(self) -> int:
        """How many steps a user adds to the count.

        The rest is for the sum, by a rule that balances the noise of both in a mean.
        """
        return max(1, round(self.size / (1 + math.sqrt(self.width))))

    @property
    def reach(self) -> int:
        """How many steps a vector has at most: their absolute values add up to no more."""
        return self.size - self.weight

    @property
    def bound(self) -> Bound:
        """The most by which a user who vanishes changes everything."""
        return Bound(size=float(self.size), norm="l1", unit="user", adjacency="empty")

    def bounded(self, vectors: Floats, groups: Integers, count: int) -> Bounded:
        """Return for each of `count` groups how many users it has, and the sum of their vectors, in steps.

        There is one vector, and one group, for each user; longer vectors are shortened.
        """
        rows = self._rounded(vectors)
        total = np.zeros((count, 1 + self.width), np.int64)
        total[:, 0] = np.bincount(groups, minlength=count) * self.weight
        for column in range(self.width):
            # In float64 sums of whole numbers are exact: users times steps stay far below 2^53.
            total[:, 1 + column] = np.bincount(groups, rows[:, column], count).astype(np.int64)
        return Bounded(value=total, bound=self.bound)

    def read(self, noisy: Integers) -> tuple[Floats, Floats]:
        """Return about how many users each group has, and the sums of their vectors."""
        return noisy[:, 0] / self.weight, noisy[:, 1:] / self.reach

    def _rounded(self, vectors: Floats) -> Integers:
        lengths = np.zeros(len(vectors))
        for column in np.abs(vectors).T:
            lengths += column
        scaled = vectors * (self.reach / np.maximum(lengths, 1.0))[:, None]
        return clipped_whole(np.rint(scaled).astype(np.int64), self.reach, "l1")


@dataclass(frozen=True, kw_only=True, eq=False)
class Outlet:
    """A party's releases, as its schedule has them: each is found by the beginning of its name."""

    schedule: Schedule
    let: Let

    def release(self, name: str) -> Release:
        """Return what the schedule says of a release."""
        for each in self._named(name):
            return each
        raise ConfigError(f"the schedule has no {name}. Make it with `releases` of the same settings.")

    def has(self, name: str) -> bool:
        """Say whether there is such a release."""
        return any(self._named(name))

    def scale(self, name: str) -> float:
        """Return the scale of a release's noise, in whole numbers."""
        release = self.release(name)
        mechanism = release.mechanism
        if not isinstance(mechanism, DiscreteLaplace):
            raise ConfigError(f"{release.what} needs DiscreteLaplace noise.")
        return mechanism.noise_size(release.bound)

    def out(self, name: str, bounded: Bounded) -> Integers:
        """Let a bounded value out, with noise."""
        return np.asarray(self.let(self.release(name).what, bounded), np.int64).reshape(bounded.value.shape)

    def _named(self, name: str) -> Iterator[Release]:
        return (each for each in self.schedule.releases if each.what.startswith(f"{name} of "))


def planned(name: str, *, by: str, bound: Bound, epsilon: float, dimension: int, times: int = 1) -> Release:
    """Return a release in round 1 whose noise is nominally that of epsilon, each time."""
    positive(epsilon=epsilon)
    return Release(
        what=f"{name} of {by}",
        mechanism=DiscreteLaplace(noise_multiplier=1 / epsilon),
        bound=bound,
        dimension=dimension,
        times=times,
        rounds=1,
        bytes_per_number=8.0,
    )


def clipped(points: Floats) -> Floats:
    """Return points with every coordinate clipped to [-1, 1], and 0 for what is no number.

    Nothing is refused: that would tell of the one user whose values are out of order.
    """
    found = np.asarray(points, np.float64)
    if found.ndim != 2 or found.shape[1] < 1:
        raise ConfigError("points must be a table with a row for each user, and at least one column.")
    return np.clip(np.where(np.isnan(found), 0.0, found), -1.0, 1.0)
