"""Mechanisms by which each unit answers for itself and trusts nobody: local differential privacy.

Every answer is a whole number, drawn exactly: no answer is more than exp(epsilon) times as likely under one
truth as under another, whatever the truth is. There is no delta.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from cofactor.config import positive, whole
from cofactor.errors import ConfigError
from cofactor.privacy import answer_noise
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound
from cofactor.privacy.releasing import Releasing, Values
from cofactor.randomness import Random


@dataclass(frozen=True, kw_only=True)
class _Answer(Releasing):
    """Each unit answers for itself; entry by entry, the array holds different units."""

    norm = "choice"
    exact = True
    one_unit_per_entry = True

    epsilon: float
    """The most that one report says for any answer against any other, in log-odds. No delta."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive(epsilon=self.epsilon)
        if not 1e-9 <= self.epsilon <= 64:
            raise ConfigError(f"epsilon must lie between 1e-9 and 64, got {self.epsilon:g}.")

    @property
    def most_choices(self) -> int:
        """How many true answers a unit can have."""
        raise NotImplementedError

    @property
    def bound(self) -> Bound:
        """What bounds the true answers: their list."""
        return Bound(size=self.most_choices - 1, norm="choice", unit="user", adjacency="replace")

    def scaled(self, factor: float) -> Self:
        """Return the same mechanism with an epsilon `factor` times smaller."""
        return replace(self, epsilon=self.epsilon / factor)


@dataclass(frozen=True, kw_only=True)
class _Choice(_Answer):
    """One answer of a list."""

    choices: int
    """How many answers there are, numbered from 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choices(self.choices)

    @property
    def most_choices(self) -> int:
        """How many true answers a unit can have."""
        return self.choices


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(_Choice):
    """Each unit tells the truth or, by chance, one of the other answers."""

    @property
    def truth(self) -> float:
        """Probability of the true answer; every other one is exp(epsilon) times less likely."""
        return 1 / (1 + (self.choices - 1) * math.exp(-self.epsilon))

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Return an answer for each unit."""
        return answer_noise.randomized_response(bounded.value, self.choices, self.epsilon, random)


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(_Choice):
    """Each unit sends a row of bits, one for each answer, each flipped by chance: better for many answers."""

    optimized: bool = True
    """Send the truth's bit as 1 half of the time and others as seldom as epsilon allows (OUE); otherwise
    flip all bits alike (basic RAPPOR)."""

    @property
    def kept(self) -> float:
        """Probability that the truth's bit is sent as 1."""
        return 0.5 if self.optimized else 1 / (1 + math.exp(-self.epsilon / 2))

    @property
    def raised(self) -> float:
        """Probability that any other bit is sent as 1."""
        return 1 / (1 + math.exp(self.epsilon if self.optimized else self.epsilon / 2))

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Return a row of bits for each unit."""
        return answer_noise.unary_encoding(bounded.value, self.choices, self.kept, self.raised, random)


@dataclass(frozen=True, kw_only=True)
class DividedResponse(_Answer):
    """Units are divided over several questions, and each answers one, or tells by chance another answer.

    Which question falls to whom must not depend on the truth: it is public. Rows of the bounded value are a
    unit's question and its true answer: `bounding.divided_answers`.
    """

    choices: tuple[int, ...]
    """How many answers each question has."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "choices", tuple(self.choices))
        if not self.choices:
            raise ConfigError("choices must name at least one question.")
        for choices in self.choices:
            _check_choices(choices)

    @property
    def most_choices(self) -> int:
        """How many true answers a unit can have, at most."""
        return max(self.choices)

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Return an answer for each unit, to its own question."""
        questions, truth = np.asarray(bounded.value).T
        if np.any((questions < 0) | (questions >= len(self.choices))):
            raise ConfigError(f"every question must be a number from 0 to {len(self.choices) - 1}.")
        told = np.empty(len(truth), np.int64)
        for question, choices in enumerate(self.choices):
            own = questions == question
            told[own] = answer_noise.randomized_response(truth[own], choices, self.epsilon, random)
        return told


@dataclass(frozen=True, kw_only=True)
class Wave(_Choice):
    """Each unit tells a number near its true one, or, by chance, any (Li et al. 2020, general wave).

    The truth is one of `choices` cells in a row, and there are `wide + narrow - 2` cells more of answers: a
    wave begins at the truth. With narrow = 1 it is a square; otherwise a trapezoid, the sum of two uniform
    numbers; with both alike a triangle. Where it is highest an answer is exp(epsilon) times as likely as
    where there is none.
    """

    wide: int
    """Cells of the wider of two uniform numbers: so wide is a square wave."""
    narrow: int = 1
    """Cells of the narrower one."""
    buckets: int | None = None
    """Into how many equal parts answers are sorted before they leave; None leaves cells as they are."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(wide=self.wide, narrow=self.narrow, buckets=self.buckets)
        if not self.narrow <= self.wide:
            raise ConfigError(f"narrow must be at most wide, got {self.narrow:,} and {self.wide:,}.")
        if self.cells > 2**40:
            raise ConfigError(f"a wave of {self.cells:,} cells is finer than it can be drawn. Use fewer.")
        if self.buckets is not None and self.cells % self.buckets:
            raise ConfigError(f"{self.cells:,} cells do not make {self.buckets:,} equal buckets.")

    @property
    def cells(self) -> int:
        """How many cells answers can fall into."""
        return self.choices + self.wide + self.narrow - 2

    @property
    def reports(self) -> int:
        """How many different answers there are."""
        return self.buckets or self.cells

    @property
    def moved(self) -> float:
        """Probability that the answer comes from the wave; otherwise any cell is as likely as any other."""
        return 1 / (1 + self.cells / (math.expm1(self.epsilon) * self.wide))

    def noisy(self, bounded: Bounded, random: Random) -> Values:
        """Return an answer for each unit."""
        told = answer_noise.wave(bounded.value, self.choices, self.wide, self.narrow, self.epsilon, random)
        return told // (self.cells // self.reports)


def _check_choices(choices: int) -> None:
    whole(choices=choices)
    if choices < 2:
        raise ConfigError(f"choices must be at least 2, got {choices}.")
