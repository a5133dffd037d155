"""Sketches of sets: registers that hold the largest hash of a set's users, hidden among made-up elements."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from cofactor.config import whole
from cofactor.errors import ConfigError
from cofactor.privacy import noise
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.releasing import Releasing, Values
from cofactor.randomness import Random

MOST_PARTIES = 6
LARGEST_REGISTER = 64
_MOST_PHANTOMS = 2**40


@dataclass(frozen=True, kw_only=True)
class PartitionSketch(Releasing):
    """Registers of the clusters of several parties, made with hash keys that only the parties know.

    In every row a user has one hash, a geometric number with p = 1/2, the same at all parties; a register is
    the largest hash of a cluster's users and of `phantoms` elements made up for it, clipped to [low, high].
    The parties share keys, so what they release is one release: its event is that of all of them.

    Let P be what the phantoms alone give in the registers that a user touches, one at each party, and H her
    hash. Whatever the other users' hashes T are, registers are max(P, T) without her and max(P, H, T) with
    her, clipped: both made in the same way from P and from max(P, H). So a row tells no more than that pair
    does, on any data, and the rows are independent.
    """

    norm = "member"
    exact = True

    rows: int
    """How many hashes every user has, under keys of their own."""
    phantoms: int
    """How many elements are made up for each register."""
    low: int
    """No register is smaller."""
    high: int
    """None is larger: a large one that two parties share would tell who is in both sets."""
    parties: int = 2
    """How many parties share keys."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(rows=self.rows, phantoms=self.phantoms, low=self.low, high=self.high, parties=self.parties)
        if not self.low < self.high <= LARGEST_REGISTER:
            raise ConfigError(
                f"registers lie between two different numbers of at most {LARGEST_REGISTER}, got "
                f"{self.low} and {self.high}."
            )
        if self.phantoms > _MOST_PHANTOMS or self.parties > MOST_PARTIES:
            raise ConfigError(f"there are at most 2^40 phantoms, and {MOST_PARTIES} parties that share keys.")

    def scaled(self, factor: float) -> Self:
        """Return the same sketch with `factor` times the phantoms."""
        return replace(self, phantoms=max(1, math.ceil(self.phantoms * factor)))

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Add phantoms to registers, and clip them."""
        phantoms = noise.largest_geometric(bounded.value.shape, self.phantoms, self.low, self.high, random)
        registers: Values = np.minimum(np.maximum(bounded.value, phantoms), self.high)
        return registers
