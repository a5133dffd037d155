"""Means of private numbers, and variances about them: one answer for each person, and no distribution.

Estimates are unbiased, so they may lie outside [0, 1] where few people answer: clipping would bend them.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cofactor.config import plain_numbers
from cofactor.errors import DataError, RunError
from cofactor.privacy.answers import RandomizedResponse, Wave
from cofactor.privacy.bounding import categories
from cofactor.privacy.fixed_point import rounded_by_chance
from cofactor.randomness import Random, SecureRandom
from cofactor.survey.method import (
    Asked,
    Floats,
    Gives,
    Integers,
    check_beside,
    check_settings,
    checked_answers,
    checked_positions,
    report,
    some_people,
)

_STEPS = 2**16
"""Steps between 0 and 1 in the piecewise mechanism: squares of reports by 10^9 people fit 63 bits."""
_SECURE = SecureRandom()


@dataclass(frozen=True, kw_only=True)
class StochasticRounding:
    """Round to 0 or 1 by chance, right on average, and answer that by chance (Duchi et al. 2018).

    One answer varies by 1 / (4 tanh^2(epsilon / 2)) - (value - 1/2)^2: better than the piecewise mechanism
    for small epsilon.
    """

    gives: ClassVar[Gives] = "mean"
    beside: ClassVar[tuple[str, ...]] = ()
    buckets: ClassVar[int] = 1

    epsilon: float
    """The most that an answer says for any value against any other, in log-odds."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_settings(epsilon=self.epsilon, buckets=self.buckets, least=1)

    @property
    def mechanism(self) -> RandomizedResponse:
        """One bit, the truth or not."""
        return RandomizedResponse(choices=2, epsilon=self.epsilon)

    def asked(self, values: Floats, random: Random) -> Asked:
        """Round each value to 0 or 1."""
        return Asked(bounded=categories(rounded_by_chance(values, random), choices=2))

    def tally(self, answers: Integers, **beside: NDArray[Any]) -> Integers:
        """Return how many ones there are, and how many answers."""
        check_beside(self, beside)
        bits = checked_answers(answers, 2)
        return np.array([bits.sum(), bits.size], np.int64)

    def estimate(self, tally: Integers) -> Floats:
        """Return the mean position."""
        ones, answered = self._read(tally)
        return np.array([0.5 + (ones / answered - 0.5) / math.tanh(self.epsilon / 2)])

    def resampled(self, tally: Integers, chance: np.random.Generator) -> Integers:
        """Draw as many answers from those that came in."""
        ones, answered = self._read(tally)
        return np.array([chance.binomial(answered, ones / answered), answered], np.int64)

    def _read(self, tally: Integers) -> list[int]:
        ones, answered = found = _answered(tally, 2)
        if not 0 <= ones <= answered:
            raise RunError("a tally counts more ones than people who have answered.")
        return found


@dataclass(frozen=True, kw_only=True)
class PiecewiseMean:
    """A square wave that is read by its mean: the piecewise mechanism (Wang et al. 2019), in whole numbers.

    The wave is exp(-epsilon / 2) wide, in values; theirs, stretched. A value is rounded by chance to one of
    2^16 steps, and a report is a step: a real number would tell the value in its last digits. One answer
    varies by ((2 value - 1)^2 / (r - 1) + (r + 3) / (3 (r - 1)^2)) / 4 with r = exp(epsilon / 2), but for the
    grid.
    """

    gives: ClassVar[Gives] = "mean"
    beside: ClassVar[tuple[str, ...]] = ()
    buckets: ClassVar[int] = 1

    epsilon: float
    """The most that an answer says for any value against any other, in log-odds."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_settings(epsilon=self.epsilon, buckets=self.buckets, least=1)

    @property
    def mechanism(self) -> Wave:
        """A square wave of an odd number of steps: reports then have a step in their middle."""
        beyond = round(math.exp(-self.epsilon / 2) * _STEPS / 2)
        return Wave(choices=_STEPS + 1, epsilon=self.epsilon, wide=2 * beyond + 1)

    def asked(self, values: Floats, random: Random) -> Asked:
        """Round each value to a step."""
        steps = rounded_by_chance(values * _STEPS, random)
        return Asked(bounded=categories(steps, choices=_STEPS + 1))

    def tally(self, answers: Integers, **beside: NDArray[Any]) -> Integers:
        """Return the sum of reports, counted from the middle, that of their squares, and how many came."""
        check_beside(self, beside)
        cells = self.mechanism.cells
        steps = checked_answers(answers, cells) - (cells - 1) // 2
        return np.array([steps.sum(), np.dot(steps, steps), steps.size], np.int64)

    def estimate(self, tally: Integers) -> Floats:
        """Return the mean position: about the middle, the wave's reports are right, and all others cancel."""
        total, _, answered = self._read(tally)
        return np.array([0.5 + total / answered / (self.mechanism.moved * _STEPS)])

    def resampled(self, tally: Integers, chance: np.random.Generator) -> Integers:
        """Draw another sum, from the normal law with the variance of reports; squares stay as they are."""
        total, squares, answered = self._read(tally)
        deviation = math.sqrt((squares * answered - total**2) / answered)
        most = math.isqrt(squares * answered)
        drawn = min(max(round(chance.normal(total, deviation)), -most), most)
        return np.array([drawn, squares, answered], np.int64)

    def _read(self, tally: Integers) -> list[int]:
        total, squares, answered = found = _answered(tally, 3)
        if total**2 > squares * answered:  # Cauchy and Schwarz
            raise RunError("a tally has a sum of reports that their squares do not allow.")
        return found


AnyMean = StochasticRounding | PiecewiseMean


def report_mean(method: AnyMean, values: Any, random: Random = _SECURE) -> dict[str, NDArray[Any]]:
    """Return what people with these values, between 0 and 1, send for the mean."""
    return report(method, values, random)


def report_square(
    method: AnyMean, values: Any, mean: float, random: Random = _SECURE
) -> dict[str, NDArray[Any]]:
    """Return what others send once the mean was broadcast: how far they are from it, squared.

    Squares are scaled to [0, 1] by the largest that there can be, which the mean alone settles; the thesis
    says nothing of it. A mean outside [0, 1] counts as the nearer end: whatever is broadcast, an answer is
    bounded all the same.
    """
    centre = _centre(mean)
    squares = ((checked_positions(values) - centre) ** 2) / largest_square(centre)
    return report(method, np.minimum(squares, 1.0), random)


def variance_of(method: AnyMean, tally: Integers, mean: float) -> float:
    """Return the variance that answers about squares tell.

    It is the mean squared distance from the mean that was broadcast: too large on average by that one's
    squared error.
    """
    return float(method.estimate(tally)[0]) * largest_square(_centre(mean))


def largest_square(mean: float) -> float:
    """Return the largest squared distance of a position from this one: between 1/4 and 1."""
    return max(mean, 1 - mean) ** 2


def mean_and_variance(method: AnyMean, values: Any, random: Random = _SECURE) -> tuple[float, float]:
    """Ask half of the people, by lot, for the mean; broadcast it; ask the others how far they are from it.

    For simulations of the thesis' section 3.6.3: everybody answers once, so epsilon is spent once.
    """
    positions = checked_positions(values)
    if positions.size < 2:
        raise DataError("a mean and a variance need at least two people: everybody answers once.")
    order = np.random.default_rng(random.new_key()).permutation(positions.size)
    first, others = np.split(positions[order], [positions.size // 2])
    mean = float(method.estimate(method.tally(**report_mean(method, first, random)))[0])
    squares = method.tally(**report_square(method, others, mean, random))
    return mean, variance_of(method, squares, mean)


def _centre(mean: float) -> float:
    """Return the nearest position to a mean that was broadcast; what is no number is refused by everybody."""
    if math.isnan(mean):
        raise RunError("the mean that was broadcast is not a number. Nobody answers.")
    return min(max(float(mean), 0.0), 1.0)


def _answered(tally: Integers, count: int) -> list[int]:
    if tally.shape != (count,) or tally.dtype.kind not in "iu":
        raise RunError(f"a tally is not a row of {count} whole numbers.")
    # Python's numbers do not wrap when they are multiplied.
    found: list[int] = tally.tolist()
    some_people(found[-1])
    return found
