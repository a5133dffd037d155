"""What a simulation measures of itself: how large releases are beside their noise, and how much was cut off.

These numbers are made of values without noise. Only a simulation, in which one file was dealt out to
make-believe parties, has a gauge, handed to their doors; what it reads goes into events.jsonl of the finished
run, and nowhere else. A real party has none.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.privacy.bounding import Bounded, Shortened
from cofactor.privacy.events import Bound
from cofactor.privacy.layers import Layers
from cofactor.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonBinomial,
    Skellam,
)
from cofactor.progress import Progress

STAGE = "simulation"
"""The stage of progress under which measures stand."""


@dataclass
class _Share:
    """A part of a whole: contributions that were shortened, or ratings that were left out."""

    part: int = 0
    whole: int = 0

    def add(self, part: int, whole: int) -> None:
        """Count what one party has."""
        self.part, self.whole = self.part + part, self.whole + whole


@dataclass
class _Reading:
    """What all parties let out under one name."""

    squares: float = 0.0
    """Of what is seen by itself: each number without noise, divided by its noise's deviation, squared."""
    count: int = 0
    total: NDArray[np.float64] | None = None
    """The sum of what only its sum is seen of, without noise."""
    stays: list[Callable[[int], float]] = field(default_factory=list)
    """Of each of its parts: the variance of the noise that stays in a sum of so many; infinite where a sum of
    so few is not opened."""
    clipped: _Share = field(default_factory=_Share)
    trimmed: _Share = field(default_factory=_Share)

    @property
    def signal_to_noise(self) -> float | None:
        """The root mean square of what is opened, without noise, over the deviation of its noise."""
        squares, count = self.squares, self.count
        variance = sum(stays(len(self.stays)) for stays in self.stays)
        if self.total is not None and variance < math.inf:
            squares += float(np.square(self.total).sum()) / variance
            count += self.total.size
        return math.sqrt(squares / count) if count else None


class Gauge:
    """Reads what passes the doors of a simulation, round by round; parties may work at the same time."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._lock = Lock()
        self._readings: dict[str, _Reading] = {}

    def released(self, what: str, bounded: Bounded, mechanism: object) -> None:
        """Read a value that is let out with noise of its own."""
        self._clipped(what, bounded.shortened)
        deviation = deviation_of(mechanism, bounded.bound)
        if deviation is not None:
            squares = np.square(bounded.value, dtype=np.float64).sum() / deviation**2
            self.made(what, float(squares), bounded.value.size)

    def shared(
        self,
        what: str,
        bounded: Bounded,
        mechanism: object,
        layers: Layers,
        *,
        devices: int | None = None,
        alone: bool = False,
    ) -> None:
        """Read a part of a sum of which the parties share the noise.

        A cohort says how many `devices` it plays; a party that is `alone` adds all of the noise.
        """
        self._clipped(what, bounded.shortened)
        variance = (deviation_of(mechanism, bounded.bound) or math.inf) ** 2

        def stays(parties: int) -> float:
            if devices is not None:
                return layers.together(devices, devices, variance)
            if parties < layers.fewest:
                return math.inf
            return variance if alone else layers.remaining(parties, variance)

        self._summed(what, bounded.value, stays)

    def tossed(
        self, what: str, total: NDArray[Any], variance: float, layers: Layers | None, *, cohort: bool
    ) -> None:
        """Read what coins were tossed for, added up, and the variance of the estimate that they give."""
        fewest = 1 if layers is None or cohort else layers.fewest
        self._summed(what, total, lambda parties: variance if parties >= fewest else math.inf)

    def made(self, what: str, squares: float, count: int, shortened: Shortened | None = None) -> None:
        """Read so many numbers by their squares, of which each was divided by its noise's variance."""
        self._clipped(what, shortened)
        with self._lock:
            reading = self._of(what)
            reading.squares += squares
            reading.count += count

    def _summed(self, what: str, value: NDArray[Any], stays: Callable[[int], float]) -> None:
        with self._lock:
            reading = self._of(what)
            reading.total = (0.0 if reading.total is None else reading.total) + value.astype(np.float64)
            reading.stays.append(stays)

    def _clipped(self, what: str, shortened: Shortened | None) -> None:
        if shortened is not None:
            with self._lock:
                self._of(what).clipped.add(*shortened)

    def trimmed(self, what: str, left_out: int, ratings: int) -> None:
        """Read how many ratings were left out."""
        with self._lock:
            self._of(what).trimmed.add(left_out, ratings)

    def told(self, round: int, rounds: int) -> list[Progress]:
        """Return what was read since this was asked last, as the measures of a round."""
        with self._lock:
            read, self._readings = self._readings, {}
        found = [(what, _numbers(reading)) for what, reading in read.items()]
        return [Progress(STAGE, round, rounds, what, numbers) for what, numbers in found if numbers]

    def _of(self, what: str) -> _Reading:
        return self._readings.setdefault(what, _Reading())


def deviation_of(mechanism: object, bound: Bound) -> float | None:
    """Return the deviation of what is added to each number; None where answers are replaced by others."""
    if isinstance(mechanism, Gaussian | DiscreteGaussian | Skellam):
        return mechanism.noise_size(bound)
    if isinstance(mechanism, Laplace):
        return math.sqrt(2) * mechanism.noise_size(bound)
    if isinstance(mechanism, DiscreteLaplace):
        return 1 / (math.sqrt(2) * math.sinh(1 / (2 * mechanism.noise_size(bound))))
    if isinstance(mechanism, PoissonBinomial):  # of the estimate that one participant's coins give
        return bound.size / (2 * mechanism.theta * math.sqrt(mechanism.trials))
    return None


def _numbers(reading: _Reading) -> dict[str, float]:
    found = {"signal_to_noise": reading.signal_to_noise}
    for name, share in (("clipped", reading.clipped), ("trimmed", reading.trimmed)):
        found[name] = share.part / share.whole if share.whole else None
    return {name: value for name, value in found.items() if value is not None}
