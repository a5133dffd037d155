"""Frequency oracles: how often each value occurs, without regard to which values are neighbours.

Estimates are unbiased and therefore partly negative. They are linear in what was counted, with the exact
chances of the mechanism's whole numbers: there is no error of rounding to be corrected.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cofactor.config import plain_numbers, whole
from cofactor.errors import ConfigError, RunError
from cofactor.privacy.answer_noise import response_weights
from cofactor.privacy.answers import RandomizedResponse
from cofactor.privacy.bounding import categories
from cofactor.randomness import Random
from cofactor.survey import hashing
from cofactor.survey.hadamard import hadamard_signs, order_for, walsh_hadamard
from cofactor.survey.method import (
    Asked,
    Floats,
    Gives,
    Integers,
    cells_of,
    check_beside,
    check_settings,
    checked_answers,
    checked_tally,
    some_people,
)

_MOST_HASHED = 2**16
"""Answers to hash to, at most: the best number for an epsilon of 11. Beyond it, ever more people tell the
truth, and all that more answers could still take away is that two values share one in 65,536 times."""


@dataclass(frozen=True, kw_only=True)
class GRR:
    """Generalized randomized response: everybody tells the own value, or by chance any other one.

    The tally counts answers. Best for few values; its variance grows with their number (3.1).
    """

    gives: ClassVar[Gives] = "ranges"
    beside: ClassVar[tuple[str, ...]] = ()

    epsilon: float
    """The most that an answer says for any value against any other, in log-odds."""
    buckets: int = 256
    """How many values there are: equal parts of [0, 1]."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_settings(epsilon=self.epsilon, buckets=self.buckets)

    @property
    def mechanism(self) -> RandomizedResponse:
        """What answers are drawn with."""
        return RandomizedResponse(choices=self.buckets, epsilon=self.epsilon)

    def asked(self, values: Floats, random: Random) -> Asked:  # noqa: ARG002 (no public chance)
        """Prepare values between 0 and 1."""
        return Asked(bounded=categories(cells_of(values, self.buckets), choices=self.buckets))

    def tally(self, answers: Integers, **beside: NDArray[Any]) -> Integers:
        """Count how often each value was told."""
        check_beside(self, beside)
        return np.bincount(checked_answers(answers, self.buckets), minlength=self.buckets)

    def estimate(self, tally: Integers) -> Floats:
        """Return an unbiased estimate of each value's share; all add up to 1."""
        counts = checked_tally(tally, self.buckets)
        _, other, surplus = chances(self.mechanism)
        return np.asarray((counts / some_people(counts.sum()) - other) / surplus)

    def resampled(self, tally: Integers, chance: np.random.Generator) -> Integers:
        """Draw as many answers again, from those that were given."""
        return _drawn_again(checked_tally(tally, self.buckets), chance)


@dataclass(frozen=True, kw_only=True)
class OLH:
    """Optimized local hashing: everybody hashes the own value to a few answers and tells one by GRR.

    Each person draws a hash function in public. The tally counts, for each value, whose function puts it
    where they answered, and has how many answered as its last number. The variance, about
    4 e^epsilon / ((e^epsilon - 1)^2 people), does not depend on how many values there are.
    """

    gives: ClassVar[Gives] = "ranges"
    beside: ClassVar[tuple[str, ...]] = ("seeds",)

    epsilon: float
    """The most that an answer says for any value against any other, in log-odds."""
    buckets: int = 256
    """How many values there are: equal parts of [0, 1]."""
    hashed: int | None = None
    """How many answers values are hashed to; None: e^epsilon + 1, rounded, at most 65,536."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_settings(epsilon=self.epsilon, buckets=self.buckets)
        whole(hashed=self.hashed)
        if self.hashed is not None and not 2 <= self.hashed <= _MOST_HASHED:
            raise ConfigError(f"hashed must lie between 2 and {_MOST_HASHED:,}, got {self.hashed:,}.")

    @property
    def choices(self) -> int:
        """How many answers there are: g in the thesis."""
        return self.hashed or min(round(math.exp(self.epsilon)) + 1, _MOST_HASHED)

    @property
    def mechanism(self) -> RandomizedResponse:
        """What answers are drawn with."""
        return RandomizedResponse(choices=self.choices, epsilon=self.epsilon)

    def asked(self, values: Floats, random: Random) -> Asked:
        """Prepare values between 0 and 1: draw a hash function for each, and hash it."""
        seeds = hashing.drawn_seeds(len(values), random)
        hashed = hashing.hashes(seeds, cells_of(values, self.buckets), self.choices)
        return Asked(bounded=categories(hashed, choices=self.choices), beside={"seeds": seeds})

    def tally(self, answers: Integers, **beside: NDArray[Any]) -> Integers:
        """Count for each value whose answer supports it, and then how many answered."""
        check_beside(self, beside)
        found = checked_answers(answers, self.choices)
        seeds = hashing.checked_seeds(beside["seeds"], len(found))
        return np.append(hashing.supports(seeds, found, self.choices, self.buckets), len(found))

    def estimate(self, tally: Integers) -> Floats:
        """Return an unbiased estimate of each value's share; all add up to about 1."""
        counts, people = self._read(tally)
        _, other, surplus = chances(self.mechanism)
        same = hashing.collision(self.choices)
        # A value that a person does not have: supported by any answer, or by the truth if both hash the same.
        return np.asarray((counts / people - other - surplus * same) / (surplus * (1 - same)))

    def resampled(self, tally: Integers, chance: np.random.Generator) -> Integers:
        """Draw each value's support again: as many people, each with the chance that was seen.

        Each count has the right law. That counts of different values vary together a little, because
        everybody has one value only, is left out.
        """
        counts, people = self._read(tally)
        return np.append(chance.binomial(people, counts / people), people)

    def _read(self, tally: Integers) -> tuple[Integers, int]:
        found = checked_tally(tally, self.buckets + 1)
        if np.any(found > found[-1]):
            raise RunError("a tally counts more people for a value than have answered.")
        return found[:-1], some_people(found[-1])


@dataclass(frozen=True, kw_only=True)
class HadamardResponse:
    """Everybody tells, by a coin, the sign of the own value in a row of Hadamard's matrix: one bit.

    Each person draws a row in public, but not the first one, which is the same for all values. The tally
    counts both signs of each row.
    """

    gives: ClassVar[Gives] = "ranges"
    beside: ClassVar[tuple[str, ...]] = ("rows",)

    epsilon: float
    """The most that an answer says for any value against any other, in log-odds."""
    buckets: int = 256
    """How many values there are: equal parts of [0, 1]."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_settings(epsilon=self.epsilon, buckets=self.buckets)

    @property
    def order(self) -> int:
        """How many rows the matrix has."""
        return order_for(self.buckets)

    @property
    def mechanism(self) -> RandomizedResponse:
        """What answers are drawn with."""
        return RandomizedResponse(choices=2, epsilon=self.epsilon)

    def asked(self, values: Floats, random: Random) -> Asked:
        """Prepare values between 0 and 1: draw a row for each, and look the sign up; a 1 stands for plus."""
        chance = np.random.default_rng(random.new_key())
        rows = chance.integers(1, self.order, len(values), np.uint32)
        signs = hadamard_signs(rows, cells_of(values, self.buckets))
        return Asked(bounded=categories((signs + 1) // 2, choices=2), beside={"rows": rows})

    def tally(self, answers: Integers, **beside: NDArray[Any]) -> Integers:
        """Count how often minus and plus was told of each row."""
        check_beside(self, beside)
        signs = checked_answers(answers, 2)
        rows = checked_answers(beside["rows"], self.order, "rows")
        if len(rows) != len(signs) or np.any(rows == 0):
            raise RunError(f"rows are not a number from 1 to {self.order - 1:,} for each answer.")
        return np.bincount(2 * rows + signs, minlength=2 * self.order).reshape(-1, 2)

    def estimate(self, tally: Integers) -> Floats:
        """Return an unbiased estimate of each value's share; all add up to about 1."""
        counts = checked_tally(tally, self.order, 2)
        people = some_people(counts.sum())
        _, _, surplus = chances(self.mechanism)
        means = (counts[:, 1] - counts[:, 0]) * ((self.order - 1) / (surplus * people))
        # Shares add up to 1, which is what the first row would tell.
        means[0] = 1.0
        return np.asarray(walsh_hadamard(means)[: self.buckets] / self.order)

    def resampled(self, tally: Integers, chance: np.random.Generator) -> Integers:
        """Draw as many answers again, from those that were given; rows are drawn with them."""
        return _drawn_again(checked_tally(tally, self.order, 2), chance)


def best_oracle(epsilon: float, choices: int) -> GRR | OLH:
    """Return the oracle of least variance for so many values (thesis, section 3.2.1)."""
    grr = choices - 2 < 3 * math.exp(epsilon)
    return GRR(epsilon=epsilon, buckets=choices) if grr else OLH(epsilon=epsilon, buckets=choices)


def chances(mechanism: RandomizedResponse) -> tuple[float, float, float]:
    """Return the chance of the true answer, of any other one, and by how much the first is larger."""
    truth, other = response_weights(mechanism.choices, mechanism.epsilon)
    # Subtracted as whole numbers: at a small epsilon both are nearly the same.
    return truth / 2**64, other / 2**64, (truth - other) / 2**64


def _drawn_again(counts: Integers, chance: np.random.Generator) -> Integers:
    people = some_people(counts.sum())
    return chance.multinomial(people, counts.reshape(-1) / people).reshape(counts.shape)
