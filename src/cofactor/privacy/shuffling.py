"""What reports cost together when somebody whom everybody trusts shuffles them before they are seen.

Feldman, McMillan and Talwar 2021, "Hiding among the clones". It is for replacing all that one person tells,
one report for each person, and for reports that arrive without names, in an order that says nothing. Reports
of people who tell the reader theirs hide nobody: leave them out of the count. No shuffler is here.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from cofactor.config import fraction, not_negative, positive, whole

Floats = NDArray[np.float64]

_SLACK = 1e-9
"""How far tails of a binomial may be off, as a part of them: 30 times what they were seen to be."""
_BLOCKS = 160
"""How many numbers of clones are looked at, at most."""
_CHARGED = 1e-3
"""The part of delta that is given away for numbers of clones that are too small to look at."""
_STEPS = 40
_MOST_EPSILON = 64.0
"""Above it nothing is gained: no number of reports is so large."""
_MOST_REPORTS = 10**9
"""More count as so many, but for the formula."""


def shuffled(report_epsilon: float, reports: int, delta: float) -> float:
    """Return an epsilon that so many shuffled reports have together at this delta: never above a report's.

    The better of `shuffled_by_formula` and of the least epsilon with `shuffled_delta` below delta.
    """
    high = shuffled_by_formula(report_epsilon, reports, delta)
    if high > _MOST_EPSILON:
        return high
    clones = _Clones(report_epsilon, reports, _CHARGED * delta)
    low = 1e-9 * high
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if clones.delta(middle) <= delta else (middle, high)
    return high


def shuffled_delta(report_epsilon: float, reports: int, epsilon: float) -> float:
    """Return a delta with which so many shuffled reports have this epsilon together.

    It is that of the pair in Theorem 3.2, rounded up; at least 1e-30, unless epsilon is that of a report.
    """
    positive(report_epsilon=report_epsilon)
    whole(reports=reports)
    not_negative(epsilon=epsilon)
    if epsilon >= report_epsilon:
        return 0.0
    if report_epsilon > _MOST_EPSILON:
        return 1.0
    return _Clones(report_epsilon, reports, 1e-30).delta(epsilon)


def shuffled_by_formula(report_epsilon: float, reports: int, delta: float) -> float:
    """Return the epsilon of Theorem 3.1; where its condition does not hold, that of a report."""
    positive(report_epsilon=report_epsilon)
    whole(reports=reports)
    fraction(delta=delta)
    if report_epsilon > math.log(reports / (16 * math.log(2 / delta))):
        return report_epsilon
    much = math.exp(report_epsilon)
    spread = 8 * math.sqrt(much * math.log(4 / delta) / reports) + 8 * much / reports
    return min(report_epsilon, math.log1p((much - 1) / (much + 1) * spread))


def shuffled_rounds(report_epsilon: float, reports: int, rounds: int, delta: float) -> float:
    """Return, by the formula, the same for reports in several rounds, each shuffled by itself.

    Half of delta is for the rounds, half for their composition (Kairouz, Oh and Viswanath 2015, Theorem 3.4).
    """
    whole(rounds=rounds)
    one = shuffled_by_formula(report_epsilon, reports, delta / (2 * rounds))
    drift = rounds * one * math.tanh(one / 2)
    return min(rounds * one, drift + one * math.sqrt(2 * rounds * math.log(2 / delta)))


class _Clones:
    """The other reports, each of which looks like one of the two in question with probability e^-epsilon.

    With c such clones, A of them (a fair coin for each) look like the first. The reader sees the pair
    (A + D, c - A + 1 - D) or (A + 1 - D, c - A + D), where D is 1 with odds e^epsilon (Theorem 3.2). Both
    directions are alike: exchange the two numbers.
    """

    def __init__(self, report_epsilon: float, reports: int, charged: float) -> None:
        others, share = min(reports, _MOST_REPORTS) - 1, math.exp(-report_epsilon)
        fewest = int(max(0, binom.ppf(charged, others, share) - 1))
        # From there to where hardly ever there are more; all that are more count as the last.
        most = int(max(fewest, binom.isf(1e-6, others, share)))
        self._report_epsilon = report_epsilon
        self._counts = np.unique(np.linspace(fewest, most, _BLOCKS).astype(np.int64))
        self._masses = _masses(self._counts, others, share)
        self._fewer = float(binom.cdf(fewest - 1, others, share))

    def delta(self, epsilon: float) -> float:
        """Return the delta of the pair at this epsilon, rounded up; fewer clones than are looked at tell all.

        One more clone is one more coin thrown on what is seen, so with more clones delta is less: what is
        true of the fewest in a block is enough for all of them.
        """
        each = _delta(self._counts, self._report_epsilon, epsilon)
        return min(1.0, (1 + _SLACK) * (self._fewer + float(self._masses @ each)))


def _masses(counts: NDArray[np.int64], others: int, share: float) -> Floats:
    """Return the probability of each count, together with all up to the next; the last has all above it."""
    below = np.append(binom.cdf(counts - 1, others, share), 1.0)
    above = np.append(binom.sf(counts - 1, others, share), 0.0)
    # Differences of the smaller ones of both, which keep their digits.
    low = counts < others * share
    found: Floats = np.where(low, np.diff(below), -np.diff(above))
    return np.maximum(found, 0.0)


def _delta(clones: NDArray[np.int64], report_epsilon: float, epsilon: float) -> Floats:
    """Return, for each number of clones, P(seen) - e^epsilon Q(seen) summed where it is positive.

    The ratio of both grows with the first number x, so that is a tail: with S(k) = P(A >= k) it is
    gain S(x - 1) - loss S(x), for the first x with x / (c + 1 - x) > loss / gain.
    """
    scale = 1 + math.exp(-report_epsilon)
    gain = -math.expm1(epsilon - report_epsilon) / scale
    loss = math.expm1(epsilon + report_epsilon) * math.exp(-report_epsilon) / scale
    if gain <= 0:
        return np.zeros(len(clones))
    # That x = c + 1 is among them must not be lost to rounding; what else is, is far less than the slack.
    first = np.minimum(np.floor(loss / (gain + loss) * (clones + 1)), clones) + 1
    more = gain * (1 + _SLACK) * binom.sf(first - 2, clones, 0.5)
    less = loss * (1 - _SLACK) * binom.sf(first - 1, clones, 0.5)
    found: Floats = np.maximum(more - less, 0.0)
    return found
