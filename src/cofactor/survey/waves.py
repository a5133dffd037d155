"""Waves: people tell a number near their own, and the aggregator undoes the blur.

After Li et al. 2020, "Estimating numerical distributions under local differential privacy"; sections are
those of Zitao Li's thesis, 2022. Values are cells of a fine grid and reports are whole numbers, so that no
report has low bits in which the value could be read. The aggregator finds the distribution that most likely
led to the reports.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cofactor.config import not_negative, plain_numbers, positive, whole
from cofactor.errors import ConfigError
from cofactor.privacy.answers import Wave
from cofactor.privacy.bounding import categories
from cofactor.randomness import Random
from cofactor.survey.likelihood import Fitted, checked_counts, expectation_maximisation
from cofactor.survey.method import (
    MOST_BUCKETS,
    Asked,
    Floats,
    Gives,
    Integers,
    cells_of,
    check_beside,
    check_settings,
    checked_answers,
)
from cofactor.survey.transforms import MOST_ENTRIES, Transform, transform_of

SQUARE_CELLS = 2**29
"""Cells of true values under a square wave: b is met to one in a million, for 256 reports."""
OTHER_CELLS = 2**19
"""Cells under other waves, whose ways are counted over one number more."""


def half_width(epsilon: float) -> float:
    """Return b, from the middle of a square wave to its ends, that tells most about any values (3.5.3).

    b = (epsilon e^epsilon - e^epsilon + 1) / (2 e^epsilon (e^epsilon - 1 - epsilon)): from 1/2 down to 0 as
    epsilon grows, with all digits right where the formula as it stands would lose them.
    """
    positive(epsilon=epsilon)
    if epsilon <= 1:
        return _exponential_rest(-epsilon) / (2 * _exponential_rest(epsilon))
    small = math.exp(-epsilon)
    return (epsilon - 1 + small) * small / (2 * (1 - small - epsilon * small))


def _exponential_rest(x: float) -> float:
    """Return (e^x - 1 - x) / x^2 = 1/2 + x/6 + x^2/24 + ..., for x between -1 and 1."""
    return math.fsum(x**k / math.factorial(k + 2) for k in range(18))


@dataclass(frozen=True, kw_only=True)
class _WaveMethod:
    """All that waves of any shape have in common."""

    gives: ClassVar[Gives] = "distribution"
    beside: ClassVar[tuple[str, ...]] = ()

    epsilon: float
    """The most that one report says for any value against any other, in log-odds. No delta."""
    buckets: int = 256
    """Equal parts of [0, 1] for which probabilities are estimated."""
    half_width: float | None = None
    """From the middle of the wave to its ends: b in the paper; None takes the best for a square wave."""
    reports: int | None = None
    """How many different reports there are; None takes as many as buckets. Not with `discrete`."""
    smoothing: bool = True
    """Smooth after each step (EMS). Without it (EM) the likelihood is larger, and so is the error, mostly."""
    discrete: bool = False
    """Bucketize before randomizing: for values that are whole numbers, one in each bucket."""

    def __post_init__(self) -> None:
        check_settings(epsilon=self.epsilon, buckets=self.buckets)
        plain_numbers(self)
        positive(half_width=self.half_width)
        if self.half_width is not None and self.half_width > 1:
            raise ConfigError(f"half_width must be at most 1, the whole range, got {self.half_width:g}.")
        self._check_reports()

    def _check_reports(self) -> None:
        whole(reports=self.reports)
        if self.reports is None:
            return
        if self.discrete:
            raise ConfigError("with discrete=True every cell is a report. Leave reports out.")
        if not 2 <= self.reports <= MOST_BUCKETS:
            raise ConfigError(f"reports must lie between 2 and {MOST_BUCKETS:,}, got {self.reports:,}.")

    def _top(self) -> float:
        """Return how long the wave's upper side is, as a part of its lower side."""
        raise NotImplementedError

    @cached_property
    def mechanism(self) -> Wave:
        """The mechanism on which all privacy rests."""
        b = half_width(self.epsilon) if self.half_width is None else self.half_width
        cells, spread = self._discrete_grid(b) if self.discrete else self._fine_grid(b)
        narrow = max(1, math.floor((spread + 1) * (1 - self._top()) / 2))
        return Wave(
            choices=cells,
            epsilon=self.epsilon,
            wide=spread + 1 - narrow,
            narrow=narrow,
            buckets=None if self.discrete else self.reports or self.buckets,
        )

    def _discrete_grid(self, b: float) -> tuple[int, int]:
        """Return cells, and over how many of them a wave spreads: "B-R" of 3.5.4."""
        return self.buckets, 2 * math.floor(b * self.buckets) + 1

    def _fine_grid(self, b: float) -> tuple[int, int]:
        """Return cells, and over how many of them a wave spreads, about 2 b of all: "R-B" of 3.5.4.

        Reports are equally many cells of the answers, and a value is the middle of its wave: an odd number of
        cells. The wave is rather a little too wide: much below b, hardly any answer would come from it.
        """
        most = SQUARE_CELLS if self._top() == 1 else OTHER_CELLS
        cells = self.buckets << (most // self.buckets).bit_length() - 1
        step = math.lcm(self.reports or self.buckets, 2)
        answers = math.ceil(cells * (1 + 2 * b) / step) * step
        return cells, answers - cells + 1

    @cached_property
    def transform(self) -> Transform:
        """How reports come about: the matrix that an estimate undoes."""
        return transform_of(self.mechanism, self.buckets)

    @property
    def tolerance(self) -> float:
        """The change of the log-likelihood below which steps stop: tau of 3.6.1.

        Below epsilon 1/2, where the thesis measures nothing, it shrinks with epsilon squared, as likelihoods
        do: otherwise the first step would be the last, and the even beginning the result.
        """
        own = 1e-3 if self.smoothing else 1e-3 * math.exp(self.epsilon)
        return own * min(1.0, (2 * self.epsilon) ** 2)

    def asked(self, values: Floats, random: Random) -> Asked:  # noqa: ARG002 (a wave needs no public chance)
        """Prepare values between 0 and 1 for the mechanism."""
        cells = self.mechanism.choices
        return Asked(bounded=categories(cells_of(values, cells), choices=cells))

    def tally(self, answers: Integers, **beside: NDArray[Any]) -> Integers:
        """Count how often each report was made."""
        check_beside(self, beside)
        reports = self.mechanism.reports
        return np.bincount(checked_answers(answers, reports), minlength=reports)

    def fitted(self, tally: Integers) -> Fitted:
        """Return the estimate, and how it was reached."""
        return expectation_maximisation(
            self.transform, tally, tolerance=self.tolerance, smoothing=self.smoothing
        )

    def estimate(self, tally: Integers) -> Floats:
        """Return the probability of each bucket."""
        return self.fitted(tally).probabilities

    def resampled(self, tally: Integers, chance: np.random.Generator) -> Integers:
        """Return a tally of as many reports, each drawn from those that were made."""
        counts = checked_counts(tally, self.mechanism.reports)
        return chance.multinomial(counts.sum(), counts / counts.sum())


@dataclass(frozen=True, kw_only=True)
class SquareWave(_WaveMethod):
    """People report a number within b of theirs, any with the same probability, or else any number at all.

    Of all waves it keeps reports of different values farthest apart (Theorem 3.5.2).
    """

    def _top(self) -> float:
        return 1.0


@dataclass(frozen=True, kw_only=True)
class GeneralWave(_WaveMethod):
    """Waves that are not square, for comparison: trapezoids, and the triangle. They tell less."""

    ratio: float = 0.0
    """Upper side over lower side: 0 is a triangle, 1 a square."""

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative(ratio=self.ratio)
        if self.ratio > 1:
            raise ConfigError(f"ratio must be at most 1, a square, got {self.ratio:g}.")
        if self.mechanism.narrow > 1 and self.mechanism.reports * self.buckets > MOST_ENTRIES:
            raise ConfigError(
                f"waves that are not square take a matrix of {self.mechanism.reports:,} by {self.buckets:,} "
                "numbers, which is too large. Use fewer buckets, or SquareWave."
            )

    def _top(self) -> float:
        return self.ratio
