"""Two kinds of chance. `Seeds` may be repeated: splits, initial factors, synthetic data; never noise or keys.

`SecureRandom` has no seed and serves noise, masks, keys and the sampling of users. `InsecureRandom` repeats
its noise and exists for tests and demonstrations: whatever was released with it is not private.
"""

import itertools
import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from numbers import Integral
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import ConfigError


@dataclass(frozen=True)
class Seeds:
    """Independent numpy generators from one seed, one for each named purpose.

    The name keeps streams apart: asking for one more never shifts the others.
    """

    seed: int = 0
    """Any whole number from 0 on."""

    def __post_init__(self) -> None:
        _check_seed(self.seed)

    def generator(self, purpose: str) -> np.random.Generator:
        """Return the generator for a purpose; the same name gives the same stream."""
        digest = sha256(purpose.encode()).digest()
        words = [int.from_bytes(digest[k : k + 4], "little") for k in range(0, 16, 4)]
        return np.random.default_rng(np.random.SeedSequence(int(self.seed), spawn_key=words))


Key = NDArray[np.uint32]
"""Eight words: 256 bits."""


class Random(Protocol):
    """A source of keys; each starts a stream of its own."""

    @property
    def secure(self) -> bool:
        """Whether nobody can foresee or repeat the keys."""

    def new_key(self) -> Key:
        """Return a key that was never given before."""


@dataclass(frozen=True)
class SecureRandom:
    """Keys from the operating system, fresh for every release. There is no seed, and no way to repeat one."""

    secure = True

    def new_key(self) -> Key:
        """Return 256 bits from the operating system."""
        return np.frombuffer(secrets.token_bytes(32), np.uint32).copy()


@dataclass(frozen=True)
class InsecureRandom:
    """Keys that repeat with the seed: whoever knows the seed can take the noise off again."""

    seed: int
    """Any whole number from 0 on."""
    _count: "itertools.count[int]" = field(
        default_factory=itertools.count, init=False, repr=False, compare=False
    )

    secure = False

    def __post_init__(self) -> None:
        _check_seed(self.seed)

    def new_key(self) -> Key:
        """Return the next key of the sequence that belongs to the seed."""
        digest = sha256(f"cofactor insecure {self.seed} {next(self._count)}".encode()).digest()
        return np.frombuffer(digest, np.uint32).copy()


def own_random(random: Random, place: int) -> Random:
    """Give each party a sequence of its own, so that repeatable noise does not depend on whose turn it is."""
    return InsecureRandom(random.seed * 1000 + place) if isinstance(random, InsecureRandom) else random


def _check_seed(seed: object) -> None:
    if isinstance(seed, bool) or not isinstance(seed, Integral) or int(seed) < 0:
        raise ConfigError(f"seed must be a whole number, 0 or more, got {seed!r}.")
