"""The exact laws of what two neighbouring inputs release, where dp-accounting has none.

A `Pair` is the worst case of its mechanism; both directions count.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf
from dp_accounting.pld import privacy_loss_distribution as pld
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]
Distribution = Any
"""A dp-accounting PrivacyLossDistribution."""

_NEGLIGIBLE = -80.0
"""Log of a probability that may be left out, and is then counted as if it gave everything away."""
_SHARES = 64
"""Into how many cases the number of fair coins is rounded."""
_TOGETHER = 2**16
"""How many numbers are worked on at once, where all outcomes are weighed for many orders."""


@dataclass(frozen=True, eq=False)
class Pair:
    """The law of a released outcome under two neighbouring inputs."""

    log_upper: Floats
    """Log-probability of each outcome under one input."""
    log_lower: Floats
    """The same under the other."""
    beyond: float = 0.0
    """Bound on the probability, under either input, of outcomes that were left out."""
    largest: float = 0.0
    """Bound on the log-odds of those outcomes; infinite if there is none."""

    @property
    def log_odds(self) -> Floats:
        """The privacy loss of each outcome."""
        return self.log_upper - self.log_lower

    @property
    def spread(self) -> float:
        """Root mean square of the privacy loss."""
        square = self.log_odds**2
        return math.sqrt(max(np.exp(log) @ square for log in (self.log_upper, self.log_lower)))

    @property
    def pure(self) -> float:
        """The largest privacy loss."""
        return max(float(np.max(np.abs(self.log_odds))), self.largest)

    def renyi(self, orders: Sequence[float]) -> Floats:
        """Return the Renyi divergence at each order: log sum upper^a lower^(1-a) / (a-1), the worse way."""
        a = np.asarray(orders, np.float64)
        ways = [(self.log_upper, self.log_lower), (self.log_lower, self.log_upper)]
        parts = np.array_split(a, math.ceil(len(a) * len(self.log_upper) / _TOGETHER) or 1)
        worst = np.maximum(
            *(
                np.concatenate([_log_sums(k[:, None] * up + (1 - k[:, None]) * low) for k in parts])
                for up, low in ways
            )
        )
        if self.beyond:
            worst = np.logaddexp(worst, math.log(self.beyond) + a * self.largest)
        divergence: Floats = np.maximum(worst, 0.0) / (a - 1)
        return divergence

    def distribution(self, width: float) -> Distribution:
        """Return the privacy-loss distribution on a grid of this width."""
        return pld.PrivacyLossDistribution(self._rounded(1, width), self._rounded(-1, width))

    def _rounded(self, sign: int, width: float) -> pld_pmf.DensePLDPmf:
        """Split each outcome between the two nearest grid points, keeping its probability under both inputs.

        That is "connect the dots" (Doroshenko et al. 2022) without its cancellations: the result is never
        below the truth, and above it only in the second order of the width.
        """
        ways = (self.log_upper, self.log_lower)[::sign]
        probability, odds = np.exp(ways[0]), (ways[0] - ways[1]) / width
        below = np.floor(odds).astype(np.int64)
        above = probability * np.expm1(-(odds - below) * width) / math.expm1(-width)
        first = int(below.min())
        size = int(below.max()) - first + 2
        masses = np.bincount(below - first, probability - above, size)
        masses += np.bincount(below - first + 1, above, size)
        return pld_pmf.DensePLDPmf(width, first, masses, self.beyond, True)


def discrete_laplace(scale: float, shift: int) -> Pair:
    """Return noise with P(k) ~ exp(-|k| / scale), and the same moved by a whole number.

    All outcomes beyond an end have the same log-odds as the end, which stands for them.
    """
    outcomes = np.arange(shift + 1)
    log_upper = math.log(math.tanh(1 / (2 * scale))) - outcomes / scale
    log_end = -math.log1p(math.exp(-1 / scale))
    log_upper[0], log_upper[-1] = log_end, log_end - shift / scale
    return Pair(log_upper, log_upper[::-1])


def discrete_gaussian(sigma: float, shift: int) -> Pair:
    """Return noise with P(k) ~ exp(-k^2 / 2 sigma^2), and the same moved by a whole number."""
    reach = math.ceil(sigma * math.sqrt(-2 * _NEGLIGIBLE)) + shift
    outcomes = np.arange(-reach, reach + shift + 1)
    log_total = _log_sum(-((outcomes / sigma) ** 2) / 2)
    log_upper, log_lower = (-(((outcomes - at) / sigma) ** 2) / 2 - log_total for at in (0, shift))
    return Pair(log_upper, log_lower, math.exp(_NEGLIGIBLE), math.inf)


def skellam(variance: float, shift: int) -> Pair:
    """Return the difference of two Poisson numbers, and the same moved by a whole number."""
    reach = math.ceil(math.sqrt(-2 * _NEGLIGIBLE * variance) - _NEGLIGIBLE) + shift
    outcomes = np.arange(-reach, reach + shift + 1)
    with np.errstate(divide="ignore"):
        log_upper, log_lower = (np.log(special.ive(np.abs(outcomes - at), variance)) for at in (0, shift))
    possible = (log_upper > 5 * _NEGLIGIBLE) & (log_lower > 5 * _NEGLIGIBLE)
    return Pair(log_upper[possible], log_lower[possible], math.exp(_NEGLIGIBLE), math.inf)


def partition_sketch(parties: int, phantoms: int, low: int, high: int) -> Pair:
    """Return the registers that one user touches in one row, one at each party, with and without her.

    Parties are alike, so that outcomes are counted by how often each number occurs in them.
    """
    outcomes = np.array(list(combinations_with_replacement(range(high - low + 1), parties)))
    least = outcomes[:, 0]
    at_least = outcomes == least[:, None]
    log_below, log_at = _log_largest(phantoms, low, high)
    log_hash_below, log_hash = _log_largest(1, low, high)
    counts = (outcomes[:, :, None] == np.arange(high - low + 1)).sum(axis=1)
    log_orders = special.gammaln(parties + 1) - special.gammaln(counts + 1).sum(axis=1)
    log_without = log_at[outcomes].sum(axis=1)
    # Her hash is below all registers, and does not show; or it is the least of them.
    log_raised = np.where(at_least, log_below[outcomes], log_at[outcomes]).sum(axis=1) + log_hash[least]
    hidden = np.append(-math.inf, log_hash_below)[least]
    log_with = np.logaddexp(log_without + hidden, log_raised)
    return Pair(log_with + log_orders, log_without + log_orders)


def _log_largest(count: int, low: int, high: int) -> tuple[Floats, Floats]:
    """Return log P(X <= z) and log P(X = z) of the largest of geometric numbers, clipped to [low, high]."""
    below = count * np.log1p(-(2.0 ** -np.arange(low, high)))
    log_below = np.append(below, 0.0)
    # log (F(z) - F(z - 1)), without loss of digits where both are nearly 1.
    log_at = np.append(below[:1], log_below[1:] + np.log(-np.expm1(log_below[:-1] - log_below[1:])))
    return log_below, log_at


def poisson_binomial(participants: int, trials: int, theta: float) -> Pair:
    """Return one coordinate's sum at the worst inputs: one at the other end than all, or all at one end.

    Given the sum, how many of its heads are one participant's is hypergeometric whatever the coins, so the
    odds are the mean of (high / low)^(heads - tails) under it. Losses are tiny and added up millions of
    times: taken as a difference of two logarithms of probabilities they would drown in rounding errors.
    """
    tosses = trials * participants
    # Hoeffding: more than `reach` away from the mean of either law lies a negligible part of it.
    reach = math.ceil(math.sqrt(-_NEGLIGIBLE * tosses / 2)) + 2 * trials
    mean = round(tosses * (0.5 - theta))
    total = np.arange(max(0, mean - reach), min(tosses, mean + reach) + 1)
    left_out = 2 * math.exp(_NEGLIGIBLE) if len(total) <= tosses else 0.0
    odds = math.log1p(2 * theta) - math.log1p(-2 * theta)
    weight, moved = _mean_odds(total, tosses, trials, 2 * odds)
    alike = _normalised(stats.binom.logpmf(total, tosses, 0.5 - theta))
    return Pair(_normalised(alike + moved - weight), alike, left_out, trials * odds)


def poisson_binomial_fair(participants: int, trials: int, theta: float) -> Pair:
    """Return one coordinate's sum beside which coins were bent: it tells more than the sum, for any inputs.

    A coin that falls heads with any probability from 1/2 - theta to 1/2 + theta is a fair one with
    probability 1 - 2 theta, and else shows something that depends on its input. Whoever sees the latter is
    left with the fair coins of all others. Their number is rounded down to one of a few: fewer hide less.
    """
    others = trials * (participants - 1)
    law = stats.binom(others, 1 - 2 * theta)
    least = max(0, math.floor(others * (1 - 2 * theta) - math.sqrt(-_NEGLIGIBLE * others / 2)))
    edges = np.unique(np.linspace(least, others, _SHARES).astype(np.int64))
    chances = law.sf(edges - 1) - law.sf(np.append(edges[1:], others + 1) - 1)
    odds = math.log1p(2 * theta) - math.log1p(-2 * theta)
    upper, lower = zip(
        *(
            (up + math.log(chance), low + math.log(chance))
            for fair, chance in zip(edges.tolist(), chances.tolist(), strict=True)
            if chance > 0
            for up, low in [_heads(fair, trials, odds)]
        ),
        strict=True,
    )
    log_upper, log_lower = np.concatenate(upper), np.concatenate(lower)
    total = _log_sum(log_upper)
    return Pair(log_upper - total, log_lower - total, 3 * math.exp(_NEGLIGIBLE), trials * odds)


def randomized_response(choices: int, epsilon: float) -> Pair:
    """Return the answers under two truths: the one, the other, any of the rest."""
    truth = -math.log1p((choices - 1) * math.exp(-epsilon))
    log_upper, log_lower = [truth, truth - epsilon], [truth - epsilon, truth]
    if choices > 2:
        rest = truth - epsilon + math.log(choices - 2)
        log_upper, log_lower = [*log_upper, rest], [*log_lower, rest]
    return Pair(np.array(log_upper), np.array(log_lower))


def unary_encoding(kept: float, raised: float) -> Pair:
    """Return the bits of two truths under each; all other bits have the same law."""
    one, other = np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0])
    log_upper = stats.bernoulli.logpmf(one, kept) + stats.bernoulli.logpmf(other, raised)
    log_lower = stats.bernoulli.logpmf(one, raised) + stats.bernoulli.logpmf(other, kept)
    return Pair(log_upper, log_lower)


def _heads(fair: int, trials: int, odds: float) -> tuple[Floats, Floats]:
    """Return the log-laws of the heads among fair coins and `trials` coins bent the one or the other way."""
    coins = fair + trials
    reach = math.ceil(math.sqrt(-_NEGLIGIBLE * coins / 2)) + trials
    total = np.arange(max(0, coins // 2 - reach), min(coins, coins - coins // 2 + reach) + 1)
    law = stats.binom.logpmf(total, coins, 0.5) - trials * math.log(math.cosh(odds / 2))
    weight, up = _mean_odds(total, coins, trials, odds)
    _, down = _mean_odds(total, coins, trials, -odds)
    return law + up - weight, law + down - weight


def _mean_odds(total: Any, coins: int, trials: int, odds: float) -> tuple[Floats, Floats]:
    """Return, for each number of heads, the log of how many ways there are, and of these weighted by odds."""
    weight, moved = np.full(len(total), -np.inf), np.full(len(total), -np.inf)
    for heads in range(trials + 1):
        ways = _log_choose(trials, heads) + _log_choose(coins - trials, total - heads)
        weight = np.logaddexp(weight, ways)
        moved = np.logaddexp(moved, ways + (heads - trials / 2) * odds)
    return weight, moved


def _log_choose(of: int, chosen: Any) -> Any:
    """Return the log of the number of ways, -inf where there is none."""
    possible = (chosen >= 0) & (chosen <= of)
    inside = np.clip(chosen, 0, of)
    ways = special.gammaln(of + 1) - special.gammaln(inside + 1) - special.gammaln(of - inside + 1)
    return np.where(possible, ways, -np.inf)


def _normalised(logs: Floats) -> Floats:
    return logs - _log_sum(logs)


def _log_sum(logs: Floats) -> float:
    return float(_log_sums(logs))


def _log_sums(logs: Floats) -> Floats:
    """Return the log of the sum of each row."""
    largest = logs.max(axis=-1, keepdims=True)
    sums: Floats = largest[..., 0] + np.log(np.exp(logs - largest).sum(axis=-1))
    return sums
