"""Ranges from halves of halves: how much more lies left of each middle than right (HaarHRR)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cofactor.config import plain_numbers
from cofactor.errors import ConfigError, RunError
from cofactor.privacy.answers import RandomizedResponse
from cofactor.privacy.bounding import categories
from cofactor.randomness import Random
from cofactor.survey.hadamard import hadamard_signs, walsh_hadamard
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


@dataclass(frozen=True, kw_only=True)
class HaarHRR:
    """Haar's coefficients by Hadamard randomised response (Kulkarni et al. 2019; thesis, section 3.4.2).

    Layer k cuts [0, 1] into 2^k parts; a part's coefficient is what lies in its left half less what lies in
    its right half. A person draws a layer and a row of that layer's Hadamard matrix, both public, and sends
    one bit: the row's entry for her part, turned over in its right half, and then often wrong. The total is
    known to be 1. Estimates are unbiased, and many are negative: for ranges only.

    Halves are halves: the "branching factor of 4" of the thesis' experiments cannot apply here.
    """

    gives: ClassVar[Gives] = "ranges"
    beside: ClassVar[tuple[str, ...]] = ("layers", "rows")

    epsilon: float
    """The most that an answer says for any value against any other, in log-odds."""
    buckets: int = 256
    """How many equal parts of [0, 1] are told apart: a power of two."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_settings(epsilon=self.epsilon, buckets=self.buckets)
        if self.buckets & (self.buckets - 1):
            below = 1 << (self.buckets.bit_length() - 1)
            raise ConfigError(
                f"buckets must be a power of two, got {self.buckets:,}. The nearest are {below:,} and "
                f"{2 * below:,}."
            )

    @property
    def layers(self) -> int:
        """How often [0, 1] is halved."""
        return self.buckets.bit_length() - 1

    @property
    def mechanism(self) -> RandomizedResponse:
        """One bit, the truth or not."""
        return RandomizedResponse(choices=2, epsilon=self.epsilon)

    def asked(self, values: Floats, random: Random) -> Asked:
        """Draw a layer and a row for each person, and look up the bit."""
        # The draws are public; only whether a bit is true is not, and that has a key of its own.
        chance = np.random.default_rng(random.new_key())
        layers = chance.integers(0, self.layers, values.size)
        rows = chance.integers(0, 1 << layers)
        public: dict[str, NDArray[Any]] = {"layers": layers.astype(np.uint8), "rows": rows.astype(np.uint16)}
        bits = self.bits(cells_of(values, self.buckets), layers, rows)
        return Asked(bounded=categories(bits, choices=2), beside=public)

    def bits(self, buckets: Integers, layers: Integers, rows: Integers) -> Integers:
        """Return the true bit of somebody in a bucket, for a row of a layer: 1 stands for +1, 0 for -1."""
        halves = buckets >> (self.layers - 1 - layers)
        signs = hadamard_signs(rows, halves >> 1) * (1 - 2 * (halves & 1))
        return (1 + signs) // 2

    def tally(self, answers: Integers, **beside: NDArray[Any]) -> Integers:
        """Count bits for each row: those that are 0, and those that are 1. Row r of layer k is 2^k + r."""
        check_beside(self, beside)
        bits = checked_answers(answers, 2)
        layers = checked_answers(beside["layers"], self.layers, "layers")
        rows = checked_answers(beside["rows"], self.buckets // 2, "rows")
        if not bits.size == layers.size == rows.size or np.any(rows >> layers):
            raise RunError("layers and rows are not one for each answer, or a layer has no such row.")
        places = bits * self.buckets + (1 << layers) + rows
        return np.bincount(places, minlength=2 * self.buckets).reshape(2, self.buckets)

    def estimate(self, tally: Integers) -> Floats:
        """Return unbiased shares of the buckets, some of them negative; they add up to 1."""
        counts = checked_tally(tally, 2, self.buckets)
        some_people(counts.sum())
        found = np.ones(1)
        for layer in range(self.layers):
            more = self.coefficients(counts, layer)
            found = np.stack(((found + more) / 2, (found - more) / 2), axis=1).reshape(-1)
        return found

    def coefficients(self, tally: Integers, layer: int) -> Floats:
        """Return how much more lies in the left halves of a layer's parts than in their right ones.

        A layer that nobody answered says that both halves hold the same.
        """
        zeros, ones = tally[:, 1 << layer : 2 << layer]
        answered = max(zeros.sum() + ones.sum(), 1)
        # A bit is right that much more often than wrong: (e^epsilon - 1) / (e^epsilon + 1).
        return np.asarray(walsh_hadamard(ones - zeros) / (answered * math.tanh(self.epsilon / 2)))

    def resampled(self, tally: Integers, chance: np.random.Generator) -> Integers:
        """Draw as many answers from those that came in."""
        counts = checked_tally(tally, 2, self.buckets)
        people = some_people(counts.sum())
        return chance.multinomial(people, counts.reshape(-1) / people).reshape(counts.shape)
