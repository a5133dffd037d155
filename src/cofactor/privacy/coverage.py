"""Does noise cover everything? A number that stands still was released as it is.

`check_noise` releases datasets again and again, with noise, and looks for coordinates that never move.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.config import whole
from cofactor.privacy.budget import Adjacency
from cofactor.privacy.neighbours import Chance, Datasets, Units, changed, random_units
from cofactor.privacy.sensitivity import Release, Values, plain
from cofactor.randomness import Seeds


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Whether all of a release is noisy, whoever contributed. It holds no data."""

    still: tuple[tuple[int, ...], ...]
    """Coordinates without noise, on the first kind of dataset that has any."""
    coordinates: int
    """How many numbers are released."""
    runs: int
    """How often each dataset was released."""
    where: str
    """On which kind of dataset noise was missing."""
    same_shape: bool
    """Whether the release has one shape for all datasets."""

    @property
    def holds(self) -> bool:
        """Whether noise covers everything."""
        return not self.still and self.same_shape

    def __str__(self) -> str:
        """Say it in a sentence."""
        if not self.same_shape:
            return f"SHAPE DEPENDS ON THE DATA: it is another one on {self.where}."
        if not self.still:
            return f"NOISE COVERS EVERYTHING: all {self.coordinates} numbers move, in {self.runs} runs."
        return (
            f"NOISE IS MISSING: on {self.where}, {len(self.still)} of {self.coordinates} numbers are without "
            f"noise in {self.runs} runs; the first is at {self.still[0]}."
        )


def check_noise(
    release: Release, adjacency: Adjacency, datasets: Datasets, *, runs: int = 64, seed: int = 0
) -> Coverage:
    """Release datasets again and again, with noise, and look for numbers that never move.

    Every number must move, on full, thin and empty datasets alike: noise only where somebody contributed
    tells where nobody did. For adjacency "value" that is public: numbers without noise are then allowed, if
    they are the same for all neighbours. Noise that moves a number with probability p each time raises a
    false alarm with probability (1-p)^(runs-1) for each number.
    """
    whole(runs=runs)
    chance = Seeds(seed).generator("noise coverage")
    base: _Released | None = None
    for where, units in _thinned(datasets, adjacency, chance):
        released = _released(release, units, runs)
        base = base or released
        coverage = _coverage(released, base, where, adjacency, runs)
        if not coverage.holds:
            break
    return coverage


def assert_noise_covers(
    release: Release, adjacency: Adjacency, datasets: Datasets, *, runs: int = 64, seed: int = 0
) -> Coverage:
    """Run `check_noise`, and raise AssertionError unless noise covers everything."""
    coverage = check_noise(release, adjacency, datasets, runs=runs, seed=seed)
    if not coverage.holds:
        raise AssertionError(str(coverage))
    return coverage


@dataclass(frozen=True, kw_only=True)
class _Released:
    """One dataset, released again and again."""

    value: Values
    moves: NDArray[np.bool_]
    same_shape: bool


def _released(release: Release, units: Units, runs: int) -> _Released:
    first = plain(release(units))
    moves = np.zeros(first.shape, np.bool_)
    for _ in range(runs - 1):
        value = plain(release(units))
        if value.shape != first.shape:
            return _Released(value=first, moves=moves, same_shape=False)
        moves |= (value != first) & np.isfinite(value)  # a NaN differs from itself, and is no noise
    return _Released(value=first, moves=moves, same_shape=True)


def _coverage(released: _Released, base: _Released, where: str, adjacency: Adjacency, runs: int) -> Coverage:
    same_shape = released.same_shape and released.value.shape == base.value.shape
    if not same_shape:
        missing = np.zeros(1, np.bool_)
    elif adjacency == "value":
        missing = (released.moves != base.moves) | (~released.moves & (released.value != base.value))
    else:
        missing = ~released.moves
    still = tuple(tuple(int(k) for k in at) for at in np.argwhere(missing))
    return Coverage(
        still=still, coordinates=released.value.size, runs=runs, where=where, same_shape=same_shape
    )


def _thinned(datasets: Datasets, adjacency: Adjacency, chance: Chance) -> Iterator[tuple[str, Units]]:
    """Yield a dataset, then what it may become."""
    full = random_units(datasets, chance)
    yield "a full dataset", full
    for which, unit in enumerate(full):
        yield "a neighbour of it", changed(full, which, datasets.neighbour(unit, adjacency, chance))
    if adjacency != "value":
        for unit in full:
            yield "a dataset of equal units", (unit,) * len(full)
    if adjacency == "empty":
        nobody = (datasets.empty,) * len(full)
        yield "a dataset in which all units are empty", nobody
        for which, unit in enumerate(full):
            yield "a dataset in which all units but one are empty", changed(nobody, which, unit)
