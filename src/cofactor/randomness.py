"""Chance that may be repeated: splits, initial factors, synthetic data. Never noise, masks or keys."""

from dataclasses import dataclass
from hashlib import sha256
from numbers import Integral

import numpy as np

from cofactor.errors import ConfigError


@dataclass(frozen=True)
class Seeds:
    """Independent numpy generators from one seed, one for each named purpose.

    The name keeps streams apart: asking for one more never shifts the others.
    """

    seed: int = 0
    """Any whole number from 0 on."""

    def __post_init__(self) -> None:
        given: object = self.seed
        if isinstance(given, bool) or not isinstance(given, Integral) or self.seed < 0:
            raise ConfigError(f"seed must be a whole number, 0 or more, got {given!r}.")

    def generator(self, purpose: str) -> np.random.Generator:
        """Return the generator for a purpose; the same name gives the same stream."""
        digest = sha256(purpose.encode()).digest()
        words = [int.from_bytes(digest[k : k + 4], "little") for k in range(0, 16, 4)]
        return np.random.default_rng(np.random.SeedSequence(int(self.seed), spawn_key=words))
