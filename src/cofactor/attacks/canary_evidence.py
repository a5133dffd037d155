"""How much numbers that were seen speak for canaries: log-odds, with noise as large as the numbers tell.

What was seen is what absent canaries would have given, plus a known difference for each that is present, plus
noise. Where differences lie apart, each canary has odds of its own; where they overlap, all are weighed
against each other.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Rows = NDArray[np.int64]

_LEAST = 1e-12
"""Of the differences: below this noise is none, and odds only have to be finite."""
_PRIOR = 4.0
"""One over the variance of a fair coin."""


@dataclass(frozen=True, kw_only=True)
class Law:
    """What is public about the noise, its size apart."""

    shape: Literal["normal", "laplace"] = "normal"
    sampling: float = 1.0
    """Probability with which a unit takes part in a step."""
    steps: int = 1
    """Steps that one message is made of."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Apart:
    """Numbers of which each depends on one canary at most: a row of them for each entry."""

    canary: Rows
    """Whose entry it is."""
    seen: Reals
    """Less what it would be if the canary were absent."""
    expected: Reals
    """The same if it is present."""

    def log_odds(self, canaries: int, law: Law) -> Reals:
        """Return for each canary by how much its numbers speak for its presence."""
        own, seen, expected = self._moved(canaries)
        matched = _summed(own, seen * expected, canaries)
        squares = _summed(own, expected**2, canaries)
        if not squares.any():
            return np.zeros(canaries)
        variance = self._variance(seen, matched, squares)
        if law.sampling < 1:
            return _sampled(matched / variance, squares / variance, law)
        if law.shape == "laplace":
            scale = math.sqrt(variance / 2)
            return _summed(own, (np.abs(seen) - np.abs(seen - expected)) / scale, canaries)
        return np.asarray((matched - squares / 2) / variance)

    def _moved(self, canaries: int) -> tuple[Rows, Reals, Reals]:
        """Leave out canaries that make no difference here."""
        moved = _summed(self.canary, self.expected**2, canaries) > 0
        some = moved[self.canary]
        return self.canary[some], self.seen[some], self.expected[some]

    def _variance(self, seen: Reals, matched: Reals, squares: Reals) -> float:
        """Return the variance of the noise, as numbers across the differences tell it.

        Where there are none across, as they are seen.
        """
        along = np.divide(matched**2, squares, out=np.zeros_like(matched), where=squares > 0)
        across = seen.size - np.count_nonzero(squares)
        found = (np.sum(seen**2) - along.sum()) / across if across > 0 else np.mean(seen**2)
        return float(max(found, _LEAST * squares.max()))


def _summed(owners: Rows, rows: Reals, count: int) -> Reals:
    """Add up all numbers in the rows of each owner."""
    return np.asarray(np.bincount(owners, rows.sum(axis=1), count), np.float64)


def _sampled(matched: Reals, squares: Reals, law: Law) -> Reals:
    """Return log-odds where a canary that is present took part in some of the steps, by chance.

    What is expected is what she adds on average.
    """
    from scipy.special import logsumexp
    from scipy.stats import binom

    count = np.arange(law.steps + 1)
    part, chance = count / (law.steps * law.sampling), binom.logpmf(count, law.steps, law.sampling)
    return np.asarray(logsumexp(chance + np.outer(matched, part) - np.outer(squares, part**2) / 2, axis=1))


class Overlapping:
    """Numbers to which many canaries add: what they say together is collected, round by round."""

    def __init__(self, canaries: int) -> None:
        """Begin with nothing."""
        self._matched, self._products = np.zeros(canaries), np.zeros((canaries, canaries))

    def take(self, seen: Reals, expected: Reals) -> None:
        """Take in numbers, less what they would be without canaries; `expected` has a row for each."""
        matched, products = expected @ seen, expected @ expected.T
        if not products.any():
            return
        variance = _left_over(seen, matched, products)
        self._matched += matched / variance
        self._products += products / variance

    def log_odds(self) -> Reals:
        """Return by how much all that was seen speaks for each: the best linear guess, by how sure it is."""
        if not self._products.any():
            return self._matched
        spread = np.linalg.inv(self._products + _PRIOR * np.eye(len(self._matched)))
        guess = spread @ (self._matched - self._products.sum(axis=1) / 2)
        return np.asarray(guess / np.diag(spread))


def _left_over(seen: Reals, matched: Reals, products: Reals) -> float:
    """Return the variance of numbers in which no canary shows; of all, where there are too few for that."""
    canaries, least = len(matched), max(_LEAST * float(products.max()), 1e-300)
    if seen.size < 2 * canaries:
        return max(float(np.mean(seen**2)), least)
    steady = products + 1e-9 * products.max() * np.eye(canaries)
    explained = matched @ np.linalg.solve(steady, matched)
    return max(float(seen @ seen - explained) / (seen.size - canaries), least)
