"""Laws of whole-number noise of which any part can be drawn: what parties and layers add up to is exact.

A part of Skellam noise is that part of its variance. Discrete Laplace noise is the difference of two negative
binomial (Polya) numbers of shape 1, and a part of it is that part of the shape. More than all of it is all of
it and independent noise besides, which protects no less.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from cofactor.config import positive
from cofactor.errors import ConfigError
from cofactor.privacy import noise, tables
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import DiscreteLaplace, Skellam
from cofactor.privacy.noise import Integers, Shape
from cofactor.randomness import Random


@dataclass(frozen=True, kw_only=True)
class SkellamLaw:
    """The difference of two Poisson numbers."""

    variance: float
    """That of the difference."""

    def __post_init__(self) -> None:
        positive(variance=self.variance)

    def part(self, part: Fraction) -> "SkellamLaw":
        """Return the law of a part of this noise; its variance is rounded up, never down."""
        return SkellamLaw(variance=rounded_up(Fraction(self.variance) * part))

    def drawn(self, shape: Shape, random: Random) -> Integers:
        """Return fresh noise."""
        return noise.skellam(shape, self.variance, random)

    def drawn_by(self, shape: Shape, key: bytes) -> Integers:
        """Return the noise of a key, always the same."""
        return noise.skellam_of_key(shape, self.variance, key)

    def most(self, parties: int, honest: int, loudest: float) -> "SkellamLaw":  # noqa: ARG002
        """Return noise that reaches as far as that of all parties, if none has more than `loudest` of this.

        `loudest` compares variances; `honest` ones, at least, share this noise.
        """
        return SkellamLaw(variance=parties * loudest * self.variance)

    def reach(self, bits: float) -> int:
        """Return what the noise exceeds, on either side, with a chance of at most 2^-bits."""
        return tables.skellam_reach(self.variance, bits)


@dataclass(frozen=True, kw_only=True)
class PolyaLaw:
    """The difference of two negative binomial numbers: of shape 1, P(k) ~ exp(-|k| / scale)."""

    scale: float
    """That of the exponential tails."""
    shape: Fraction = Fraction(1)
    """How many times discrete Laplace noise this is; noise of several parties adds up by shape."""

    def __post_init__(self) -> None:
        positive(scale=self.scale)
        if not isinstance(self.shape, Fraction) or self.shape <= 0:
            raise ConfigError("shape must be a Fraction above 0.")

    def part(self, part: Fraction) -> "PolyaLaw":
        """Return the law of a part of this noise, exactly."""
        return PolyaLaw(scale=self.scale, shape=self.shape * part)

    def drawn(self, shape: Shape, random: Random) -> Integers:
        """Return fresh noise."""
        return noise.polya(shape, self.scale, self.shape, random)

    def drawn_by(self, shape: Shape, key: bytes) -> Integers:
        """Return the noise of a key, always the same."""
        return noise.polya_of_key(shape, self.scale, self.shape, key)

    def most(self, parties: int, honest: int, loudest: float) -> "PolyaLaw":
        """Return noise that reaches as far as that of all parties, if none has more than `loudest` of this.

        `loudest` compares variances; `honest` ones, at least, share this noise, so that nobody's shape is
        below 1 / honest. Of noise of one variance, that of the smallest shape has the heaviest tails: its
        generating function is the largest everywhere.
        """
        scale = self.scale * math.sqrt(max(loudest * honest, 1.0))
        return PolyaLaw(scale=scale, shape=self.shape * Fraction(parties, honest))

    def reach(self, bits: float) -> int:
        """Return what the noise exceeds, on either side, with a chance of at most 2^-bits."""
        return tables.polya_reach(self.scale, float(self.shape), bits)


AnyLaw = SkellamLaw | PolyaLaw


def law_of(mechanism: Skellam | DiscreteLaplace, bound: Bound) -> AnyLaw:
    """Return the law of a mechanism's noise, of which parties add parts."""
    size = mechanism.noise_size(bound)
    return SkellamLaw(variance=size**2) if isinstance(mechanism, Skellam) else PolyaLaw(scale=size)


def rounded_up(exact: Fraction) -> float:
    """Return the smallest float that is no smaller."""
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)
