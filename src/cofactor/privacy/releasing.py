"""What all mechanisms share: they take only bounded values, and no noise comes without its event."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from cofactor.config import plain_numbers, positive
from cofactor.errors import ConfigError
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound, Event, Norm
from cofactor.randomness import InsecureRandom, Random, SecureRandom

Values = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Releasing:
    """What all mechanisms share: they take only bounded values, and no noise comes without its event."""

    norm: ClassVar[Norm]
    exact: ClassVar[bool]
    one_unit_per_entry: ClassVar[bool] = False

    def __post_init__(self) -> None:
        plain_numbers(self)

    def release(
        self, bounded: Bounded, *, random: Random, what: str, by: str, to: str
    ) -> tuple[Values, Event]:
        """Return the noisy value and the record of its release."""
        if not isinstance(bounded, Bounded):
            raise ConfigError(
                f"{type(self).__name__} takes only a Bounded value. Make one with cofactor.privacy.bounding."
            )
        if not isinstance(random, SecureRandom | InsecureRandom):
            raise ConfigError("random must be SecureRandom(), or InsecureRandom(seed) in tests.")
        dimension = 1 if self.one_unit_per_entry else bounded.value.size
        event = self.event(bounded.bound, dimension=dimension, random=random, what=what, by=by, to=to)
        return self.noisy(bounded, random), event

    def event(self, bound: Bound, *, dimension: int, random: Random, what: str, by: str, to: str) -> Event:
        """Return the record of a release under this bound."""
        return Event(
            what=what,
            by=by,
            to=to,
            mechanism=self,
            bound=bound,
            dimension=dimension,
            secure=isinstance(random, SecureRandom),
        )

    def check(self, bound: Bound) -> None:
        """Refuse a bound that this noise is not made for."""
        if bound.norm != self.norm:
            raise ConfigError(f"{type(self).__name__} needs a bound in {self.norm}, got one in {bound.norm}.")

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Return the value with noise; its event is the caller's to keep."""
        raise NotImplementedError

    def scaled(self, factor: float) -> Self:
        """Return the same mechanism with `factor` times the noise."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Additive(Releasing):
    """Noise in proportion to the bound: what is left to say is its law, in `noisy`."""

    largest_noise: ClassVar[float] = math.inf
    """The most noise that can be drawn, in the units of the value."""

    noise_multiplier: float = 1.0
    """Size of the noise, divided by the bound."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(noise_multiplier=self.noise_multiplier)
        if not 1e-3 <= self.noise_multiplier <= 1e9:
            raise ConfigError(
                f"noise_multiplier must lie between 1e-3 and 1e9, got {self.noise_multiplier:g}."
            )

    def noise_size(self, bound: Bound) -> float:
        """Return the size of the noise in the units of the value."""
        return self.noise_multiplier * bound.size

    def check(self, bound: Bound) -> None:
        """Refuse another norm, and a bound below which there is no whole number."""
        super().check(bound)
        if self.exact and bound.size < 1:
            raise ConfigError(f"whole numbers cannot be bounded by {bound.size:g}. Scale them up first.")

    def scaled(self, factor: float) -> Self:
        """Return the same mechanism with `factor` times the noise."""
        return replace(self, noise_multiplier=self.noise_multiplier * factor)
