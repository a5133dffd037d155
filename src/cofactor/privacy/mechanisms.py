"""Bound, noise and event in one place: a mechanism takes a `Bounded` value and returns (noisy value, event).

A mechanism is a frozen dataclass; its fields and the bound are all that the noise depends on, so the
accountant reads the same numbers that the noise was drawn with. A fused kernel that adds the noise itself
takes the noise's size from `noise_size` and returns the event from `event`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cofactor.config import fraction, from_table, whole
from cofactor.errors import ConfigError, Refused
from cofactor.privacy import noise, tables
from cofactor.privacy.answers import DividedResponse, RandomizedResponse, UnaryEncoding, Wave
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.releasing import Additive, Releasing, Values
from cofactor.privacy.sketches import PartitionSketch
from cofactor.randomness import Random


@dataclass(frozen=True, kw_only=True)
class Gaussian(Additive):
    """Normal noise on real numbers bounded in l2; the multiplier is that of the standard deviation."""

    norm = "l2"
    exact = False

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Add noise, and round to a grid finer than the noise."""
        deviation = self.noise_size(bounded.bound)
        drawn = noise.gaussian(bounded.value.shape, deviation, random)
        return noise.snapped(bounded.value.astype(np.float64) + drawn, deviation)


@dataclass(frozen=True, kw_only=True)
class SampledGaussian(Gaussian):
    """Normal noise on a sum over units of which each took part with some probability, in secret."""

    sampling: float
    """Probability with which each unit is chosen, independently of all others."""

    def __post_init__(self) -> None:
        super().__post_init__()
        fraction(sampling=self.sampling)

    def choose(self, units: int, random: Random) -> NDArray[np.int64]:
        """Return the numbers of the units that take part. They must stay secret."""
        return noise.chosen(units, self.sampling, random)

    def check(self, bound: Bound) -> None:
        """Refuse all but the most that one chosen unit contributes."""
        super().check(bound)
        if bound.adjacency != "empty":
            raise ConfigError(
                f'a sampled sum needs a bound for adjacency "empty", got "{bound.adjacency}". State the most '
                "that one unit contributes; the accountant converts to other adjacencies."
            )


@dataclass(frozen=True, kw_only=True)
class Laplace(Additive):
    """Laplace noise on real numbers bounded in l1: no delta; the multiplier is that of the scale."""

    norm = "l1"
    exact = False

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Add noise, and round to a grid finer than the noise."""
        scale = self.noise_size(bounded.bound)
        drawn = noise.laplace(bounded.value.shape, scale, random)
        return noise.snapped(bounded.value.astype(np.float64) + drawn, scale)


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(Additive):
    """Whole-number noise, P(k) ~ exp(-|k| / scale), for whole numbers bounded in l1: no delta, exact."""

    norm = "l1"
    exact = True
    largest_noise = tables.LARGEST_SCALE

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Add noise to whole numbers."""
        scale = self.noise_size(bounded.bound)
        return _whole(bounded.value) + noise.discrete_laplace(bounded.value.shape, scale, random)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(Additive):
    """Whole-number noise, P(k) ~ exp(-k^2 / 2 sigma^2), for whole numbers bounded in l2: exact.

    The multiplier is that of sigma.
    """

    norm = "l2"
    exact = True
    largest_noise = tables.LARGEST_DEVIATION

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Add noise to whole numbers."""
        sigma = self.noise_size(bounded.bound)
        return _whole(bounded.value) + noise.discrete_gaussian(bounded.value.shape, sigma, random)


@dataclass(frozen=True, kw_only=True)
class SummedDiscreteGaussian(Additive):
    """Discrete Gaussian noise of several participants, which adds up to nearly the same noise of one.

    The multiplier is that of the sum's standard deviation, with exactly as many participants as are stated;
    more of them add more noise. One participant's part protects little: the event is that of the sum, which a
    secure sum opens. Where participants drop out, Skellam noise in layers is what stays right.
    """

    norm = "l2"
    exact = True
    largest_noise = tables.LARGEST_DEVIATION
    smallest_share: ClassVar[float] = 1.5
    """Least deviation of one part, in whole numbers. To d numbers the sum costs tau sqrt(d) more, in mu, than
    a discrete Gaussian: for ten million of them 7e-6 at a deviation of 1.5, but already 1.7 at 1."""

    participants: int
    """The fewest honest participants whose sum may be opened."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(participants=self.participants)

    def share_size(self, bound: Bound) -> float:
        """Return the deviation of one participant's part, in whole numbers."""
        return self.noise_size(bound) / math.sqrt(self.participants)

    def check(self, bound: Bound) -> None:
        """Refuse parts so small that their sum is no longer close to a discrete Gaussian."""
        super().check(bound)
        size = self.share_size(bound)
        if size < self.smallest_share:
            raise ConfigError(
                f"each of {self.participants:,} participants would add noise of {size:.3g} steps of the "
                f"grid, and the sum keeps what is promised from {self.smallest_share} on. Use a finer grid, "
                "or Skellam noise, whose parts may be as small as you like."
            )

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Add one participant's part of the noise to whole numbers."""
        sigma = self.share_size(bounded.bound)
        return _whole(bounded.value) + noise.discrete_gaussian(bounded.value.shape, sigma, random)


@dataclass(frozen=True, kw_only=True)
class Skellam(Additive):
    """The difference of two Poisson numbers, for whole numbers bounded in l2: shares of it add up to it.

    The multiplier is that of the standard deviation.
    """

    norm = "l2"
    exact = True
    largest_noise = tables.LARGEST_DEVIATION

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Add noise to whole numbers."""
        variance = self.noise_size(bounded.bound) ** 2
        return _whole(bounded.value) + noise.skellam(bounded.value.shape, variance, random)


@dataclass(frozen=True, kw_only=True)
class PoissonBinomial(Releasing):
    """Each participant sends, for each coordinate, how often a slightly bent coin fell heads (PBM).

    One participant's coins protect little: the event is that of the sum over all participants, which a
    secure sum opens. It protects against replacing all that one participant sends.
    """

    norm = "max"
    exact = True

    trials: int
    """Tosses for each coordinate: q in the paper."""
    theta: float
    """The coin's bend at the bound: heads with probability 1/2 + theta x / bound."""
    participants: int
    """The fewest honest participants whose sum may be opened."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(trials=self.trials, participants=self.participants)
        if self.trials > 1024:
            raise ConfigError(f"trials must be at most 1,024, got {self.trials:,}: more gain nothing.")
        if not 0 < self.theta <= 0.25:
            raise ConfigError(f"theta must be above 0 and at most 1/4, got {self.theta}.")

    def scaled(self, factor: float) -> Self:
        """Return the same mechanism with coins less bent; theta stays at most 1/4."""
        return replace(self, theta=min(self.theta / factor, 0.25))

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Return one participant's counts, from 0 to `trials` for each coordinate."""
        return noise.poisson_binomial(bounded.value / bounded.bound.size, self.trials, self.theta, random)

    def estimate(self, total: Values, participants: int, bound: Bound) -> NDArray[np.float64]:
        """Return an unbiased estimate of the sum of values from the sum of counts."""
        if participants < self.participants:
            raise Refused(
                f"a sum of {participants:,} participants was opened, where at least {self.participants:,} "
                "were promised. Nothing may be made of it."
            )
        scale = bound.size / (self.theta * self.trials)
        return (np.asarray(total, np.float64) - participants * self.trials / 2) * scale


AnyMechanism = (
    Gaussian
    | SampledGaussian
    | Laplace
    | DiscreteLaplace
    | DiscreteGaussian
    | SummedDiscreteGaussian
    | Skellam
    | PoissonBinomial
    | RandomizedResponse
    | UnaryEncoding
    | DividedResponse
    | Wave
    | PartitionSketch
)


def event_from_table(table: Mapping[str, Any], where: str) -> Event:
    """Read an event that `config.as_table` wrote; an unknown mechanism is refused by name."""
    mechanism: AnyMechanism = from_table(AnyMechanism, table.get("mechanism", {}), f"{where}.mechanism")
    return from_table(Event, {**table, "mechanism": mechanism}, where)


def _whole(value: Values) -> Values:
    if not np.can_cast(value.dtype, np.int64, "safe") or value.dtype == np.bool_:
        raise ConfigError(f"noise in whole numbers needs whole numbers, got {value.dtype}. Round first.")
    return value.astype(np.int64)
