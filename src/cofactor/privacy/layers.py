"""Noise in layers: right after any dropouts, because what stays is a part of what was added.

Every party adds enough noise for the fewest survivors with which a sum is opened. Once the survivors are
known, the keys of the layers that are too much are revealed, and these layers are taken off again. The layers
that stay were drawn independently of those revealed, so that nobody learns more than the sum with the noise
that stays (add-then-remove). Layers and parties add up to the noise of a whole sum exactly: any part of that
noise can be drawn (`cofactor.privacy.laws`).
"""

import hmac
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cofactor.config import plain_numbers, positive, whole
from cofactor.errors import ConfigError, Refused
from cofactor.privacy.laws import AnyLaw, SkellamLaw, rounded_up
from cofactor.privacy.noise import Integers, Shape


@dataclass(frozen=True, kw_only=True)
class Layers:
    """How noise is cut into layers, so that survivors of whatever number keep the noise that was promised.

    Of m survivors, `colluding` ones count for nothing: whoever knows their noise can take it off. The noise
    of the m - colluding others is never less than that of a whole sum, and at most `ratio` times as much, in
    variance, where what is too much is taken off.
    """

    parties: int
    """How many add noise, if nobody drops out."""
    fewest: int
    """The fewest survivors whose sum is opened."""
    colluding: int = 1
    """How many parties' noise an attacker may know; at least 1, because every party knows its own."""
    ratio: float = 1.02
    """The most noise that stays, in variance, relative to the target: nearer to 1 takes more layers."""
    taken_off: bool = True
    """Whether noise that is too much is taken off again. If not, there is one layer, right for the fewest."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(parties=self.parties, fewest=self.fewest, colluding=self.colluding)
        positive(ratio=self.ratio)
        if self.fewest > self.parties:
            raise ConfigError(f"fewest must be at most parties, got {self.fewest:,} of {self.parties:,}.")
        if self.colluding >= self.fewest:
            raise ConfigError(
                f"colluding must be below fewest, got {self.colluding:,} and {self.fewest:,}: if all "
                "survivors may collude, no noise is left that an attacker does not know. Allow fewer "
                "dropouts, state fewer colluding parties, or find more parties."
            )
        if not 1.001 <= self.ratio <= 2:
            raise ConfigError(f"ratio must lie between 1.001 and 2, got {self.ratio:g}.")

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """Numbers of survivors, falling from `parties` to `fewest`: layers 0 to j are right for grid[j].

        With any number from grid[j] to grid[j - 1] - 1 they are too much by at most `ratio`.
        """
        if not self.taken_off:
            return (self.fewest,)
        found = [self.parties]
        while found[-1] > self.fewest:
            honest = math.ceil((found[-1] - 1 - self.colluding) / Fraction(self.ratio))
            found.append(max(honest + self.colluding, self.fewest))
        return tuple(found)

    @cached_property
    def parts(self) -> tuple[Fraction, ...]:
        """Return, for each layer, the part of a whole sum's noise that one party adds in it."""
        stays = [self._stays(survivors) for survivors in self.grid]
        return (stays[0], *(more - less for less, more in pairwise(stays)))

    def variances(self, target: float) -> NDArray[np.float64]:
        """Return the variance of one party's noise in each layer, if the honest parties' is to be `target`.

        Rounded up: sums are never below the target, not even by the last digit.
        """
        return np.array([_of_variance(target, part) for part in self.parts])

    def kept(self, survivors: int) -> int:
        """Return how many layers stay, counted from layer 0; refuse too few survivors."""
        whole(survivors=survivors)
        if survivors > self.parties:
            raise ConfigError(f"{survivors:,} survivors of {self.parties:,} parties cannot be.")
        if survivors < self.fewest:
            raise Refused(
                f"{survivors:,} of {self.parties:,} parties are left, and it takes {self.fewest:,} to have "
                "noise enough. Nothing may be opened. Go on with the next round, or allow more dropouts."
            )
        return 1 + next(j for j, reached in enumerate(self.grid) if reached <= survivors)

    def part(self, survivors: int, *, devices: int = 1) -> Fraction:
        """Return the part of a whole sum's noise that stays of some of so many survivors."""
        whole(devices=devices)
        if devices > survivors:
            raise ConfigError(f"a cohort of {devices:,} is more than all {survivors:,} survivors.")
        return devices * self._stays(self.grid[self.kept(survivors) - 1])

    def remaining(self, survivors: int, target: float) -> float:
        """Return the variance of one party's noise that stays, of whatever law."""
        return self.together(1, survivors, target)

    def together(self, devices: int, survivors: int, target: float) -> float:
        """Return the variance of the noise that stays of several survivors: a cohort's, drawn at once."""
        return _of_variance(target, self.part(survivors, devices=devices))

    def added(self, shape: Shape, law: AnyLaw | float, keys: Sequence[bytes], *, array: int = 0) -> Integers:
        """Return one party's noise: all layers, of which each has its key, that of layer 0 first.

        `law` is that of a whole sum's noise; a number stands for the variance of Skellam noise. `array`
        numbers the arrays of an answer: each draws from keys of its own.
        """
        return _drawn(shape, law, self.parts, keys, array)

    def excess(
        self, shape: Shape, law: AnyLaw | float, survivors: int, keys: Sequence[bytes], *, array: int = 0
    ) -> Integers:
        """Return the part of a party's noise that must be taken off, from the keys of the layers too many."""
        return _drawn(shape, law, self.parts[self.kept(survivors) :], keys, array)

    def _stays(self, survivors: int) -> Fraction:
        """Return the part that each of so many survivors must keep, if some of them collude."""
        return Fraction(1, survivors - self.colluding)


def draw(shape: Shape, law: AnyLaw, key: bytes, *, array: int = 0) -> Integers:
    """Return one layer of noise, always the same for the same key of 32 bytes and the same law.

    The key may also have made other keys (a chain): what is drawn from is a one-way image of it.
    """
    if not isinstance(key, bytes) or len(key) != 32:
        raise ConfigError("the key of a layer must be 32 bytes.")
    own = hmac.digest(key, f"cofactor noise layer, array {int(array)}".encode(), "sha256")
    return law.drawn_by(shape, own)


def _drawn(
    shape: Shape, law: AnyLaw | float, parts: Sequence[Fraction], keys: Sequence[bytes], array: int
) -> Integers:
    if len(keys) != len(parts):
        raise ConfigError(f"{len(parts)} layers need a key each, got {len(keys)}.")
    whole_law = law if isinstance(law, AnyLaw) else SkellamLaw(variance=float(law))
    total = np.zeros(shape, np.int64)
    for part, key in zip(parts, keys, strict=True):
        total += draw(shape, whole_law.part(part), key, array=array)
    return total


def _of_variance(target: float, part: Fraction) -> float:
    positive(target=target)
    return rounded_up(Fraction(float(target)) * part)
