"""From samples to lower bounds, once for all audits: what was seen proves that at least so much leaks.

An audit runs a release many times on each of two neighbouring inputs and gives every outcome a score: the
larger, the more it looks like the first input. `evidence` turns the two lists of scores into a bound that
holds with a stated confidence. Which kind of bound has teeth depends on the mechanism:

- "epsilon" compares how often an event happens under both inputs (Clopper-Pearson). It comes close to the
  claim for pure mechanisms (Laplace, discrete Laplace, randomized response), whose odds are worst at common
  events, and for any mechanism at a delta so large that common events decide (0.01 and above). At a usual
  delta it is blind to Gaussian-like flaws, whose odds are worst where hardly any sample falls: a claimed
  epsilon of 1 that is really 1.33 shows as 0.83 after a million draws (delta 1e-6, 95% confidence).
- "mu" measures how far apart two normal distributions would have to be to be told apart as well (Gaussian
  differential privacy, Dong, Roth and Su 2022). It has teeth for the Gaussian, discrete Gaussian, Skellam
  and Poisson binomial mechanisms, whose outcomes are normal or nearly so. A pure mechanism claims no mu; and
  `mu_of` turns a claimed (epsilon, delta) into one only for outcomes as good as normal: whole-number noise a
  few units wide has other tails, so compare its epsilon at a large delta instead.

No evidence is no proof: a bad score sees nothing.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cofactor.config import fraction, not_negative, one_of, whole
from cofactor.errors import ConfigError, DataError
from cofactor.randomness import Seeds

Kind = Literal["epsilon", "mu"]
KINDS: tuple[Kind, ...] = ("epsilon", "mu")

Floats = NDArray[np.float64]

_CANDIDATES = 200
"""Thresholds tried from each end of each sample. The choice needs no proof, only the bound after it does."""


@dataclass(frozen=True, kw_only=True)
class Count:
    """How often an event happened."""

    hits: int
    trials: int

    def __post_init__(self) -> None:
        not_negative(hits=self.hits)
        whole(trials=self.trials)
        if self.hits > self.trials or self.hits % 1:
            raise ConfigError(f"hits must count some of the trials, got {self.hits} of {self.trials}.")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What an audit proved, with what confidence."""

    kind: Kind
    """What is bounded: "epsilon" (at `delta`), or "mu" of Gaussian differential privacy."""
    lower_bound: float
    """Whoever claims less is refuted."""
    confidence: float
    """Probability, at least, that an audit's bound is not above the truth."""
    one: Count
    """Outcomes of the first input whose score reached the threshold; only trials that did not choose it."""
    other: Count
    """The same for the second input."""
    threshold: float
    """The score from which on an outcome counts."""
    delta: float = 0.0
    """The delta that epsilon goes with."""

    @property
    def trials(self) -> int:
        """How many trials the bound was computed from."""
        return self.one.trials + self.other.trials

    def refutes(self, claim: float) -> bool:
        """Say whether a claim about the same quantity is too small to be true."""
        return self.lower_bound > claim

    def __str__(self) -> str:
        """Write the evidence in one sentence."""
        at_delta = f" at delta {self.delta:g}" if self.delta else ""
        sure = f"{self.confidence:.10%}".rstrip("%0").rstrip(".")
        seen = " against ".join(f"{each.hits:,} of {each.trials:,}" for each in (self.one, self.other))
        found = f"{self.kind} is at least {self.lower_bound:.4g}{at_delta}"
        return f"{found}, with {sure}% confidence (hits: {seen})"


def evidence(
    one: NDArray[Any], other: NDArray[Any], *, kind: Kind, confidence: float, delta: float = 0.0
) -> Evidence:
    """Return the best bound that two samples of a score prove: one number for each independent trial.

    The threshold is chosen on one half of the trials and the bound computed on the other half, so that the
    confidence is honest however many thresholds were tried. Ties, infinite scores, scores in any order and
    samples of different sizes are fine; a score that is smaller for the first input works as well.
    """
    one_of(KINDS, kind=kind)
    if kind == "mu" and delta:
        raise ConfigError(f"mu needs no delta, got {delta:g}: leave it out, or ask for epsilon.")
    choosing, proving = _halves(one, "first", confidence)
    other_choosing, other_proving = _halves(other, "second", confidence)
    threshold = _best_threshold(choosing, other_choosing, kind=kind, confidence=confidence, delta=delta)
    count = Count(hits=int(np.sum(proving >= threshold)), trials=len(proving))
    other_count = Count(hits=int(np.sum(other_proving >= threshold)), trials=len(other_proving))
    return Evidence(
        kind=kind,
        lower_bound=_at_least(count, other_count, kind=kind, confidence=confidence, delta=delta),
        confidence=confidence,
        one=count,
        other=other_count,
        threshold=threshold,
        delta=delta,
    )


def epsilon_at_least(one: Count, other: Count, *, confidence: float, delta: float = 0.0) -> float:
    """Return the largest log((P - delta) / Q) that the counts prove, 0 if none.

    P and Q are the event's probabilities under the two inputs, either way round, or those of its opposite;
    which event is counted must be settled before. For pure mechanisms: at a usual delta it is blind to
    Gaussian-like flaws.
    """
    return _at_least(one, other, kind="epsilon", confidence=confidence, delta=delta)


def mu_at_least(one: Count, other: Count, *, confidence: float) -> float:
    """Return the largest mu of Gaussian differential privacy that the counts prove, 0 if none.

    That is Phi^-1(P) - Phi^-1(Q), either way round; which event is counted must be settled before. For
    mechanisms whose outcomes are normal or nearly so.
    """
    return _at_least(one, other, kind="mu", confidence=confidence, delta=0.0)


def proportion_at_least(count: Count, *, confidence: float) -> float:
    """Return the exact lower bound of Clopper and Pearson (1934) for a proportion."""
    fraction(confidence=confidence)
    return float(_lower_limits(np.array([count.hits]), count.trials, 1 - confidence)[0])


def proportion_at_most(count: Count, *, confidence: float) -> float:
    """Return the exact upper bound of Clopper and Pearson (1934) for a proportion."""
    fraction(confidence=confidence)
    return float(_upper_limits(np.array([count.hits]), count.trials, 1 - confidence)[0])


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Return the least epsilon that mu of Gaussian differential privacy promises at a delta."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    not_negative(mu=mu, delta=delta)
    if mu == 0 or delta >= 1:
        return 0.0
    if delta == 0:
        return math.inf
    target = math.log(delta)
    if _log_delta(mu, 0.0) <= target:
        return 0.0
    # There the first term of the formula alone is down to delta; the margin is for rounding.
    highest = mu * (mu / 2 - float(ndtri(delta))) * (1 + 1e-9)
    return float(brentq(lambda epsilon: _log_delta(mu, epsilon) - target, 0.0, highest, xtol=5e-324))


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest mu of Gaussian differential privacy that keeps within (epsilon, delta)."""
    from scipy.optimize import brentq
    from scipy.special import erfinv, ndtri

    not_negative(epsilon=epsilon, delta=delta)
    if delta == 0:
        return 0.0
    if delta >= 1:
        return math.inf
    target = math.log(delta)
    spare = -float(ndtri(delta))
    root = math.hypot(spare, math.sqrt(2 * epsilon))
    by_first_term = 2 * epsilon / (root + spare) if spare > 0 else root - spare
    lowest = max(by_first_term, 2 * math.sqrt(2) * float(erfinv(delta))) * (1 - 1e-9)
    highest = 2 * lowest
    while _log_delta(highest, epsilon) < target:
        highest *= 2
    return float(brentq(lambda mu: _log_delta(mu, epsilon) - target, lowest, highest, xtol=5e-324))


def _log_delta(mu: float, epsilon: float) -> float:
    """Return log of Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) (Balle and Wang 2018, Theorem 8).

    Both terms have the factor exp(-(mu/2 - eps/mu)^2 / 2); without it nothing overflows or vanishes.
    """
    from scipy.special import erfcx, ndtr

    ratio = epsilon / mu
    reached = mu / 2 - ratio
    second = float(erfcx((mu / 2 + ratio) / math.sqrt(2))) / 2
    if mu < 1e-6:  # the terms are all but equal: take the slope between them
        gap = mu * (1 / math.sqrt(2 * math.pi) - ratio * float(erfcx(ratio / math.sqrt(2))) / 2)
    elif reached > 0:
        return math.log(float(ndtr(reached)) - math.exp(-reached * reached / 2) * second)
    else:
        gap = float(erfcx(-reached / math.sqrt(2))) / 2 - second
    return math.log(max(gap, 5e-324)) - reached * reached / 2


def _halves(scores: NDArray[Any], name: str, confidence: float) -> tuple[Floats, Floats]:
    """Split the trials by a lot that knows nothing of them: to choose a threshold, and to prove the bound.

    Samples of the same size are split alike, so that trials which share their noise stay together.
    """
    fraction(confidence=confidence)
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise DataError(
            f"the {name} sample must be one list with a score for each trial and no NaN, got shape "
            f"{values.shape} with {int(np.isnan(values).sum()):,} NaN. Undecided outcomes need a score, too."
        )
    needed = 2 * (math.floor(math.log2(4 / (1 - confidence))) + 1)
    if len(values) < needed:
        raise DataError(
            f"the {name} sample has {len(values):,} trials, too few for confidence {confidence:.10g}: even "
            f"if all went one way, that could be chance. Run at least {needed:,}, better thousands."
        )
    mixed = Seeds(0).generator("halves of an audit").permutation(values)
    return mixed[len(mixed) // 2 :], mixed[: len(mixed) // 2]


def _best_threshold(one: Floats, other: Floats, *, kind: Kind, confidence: float, delta: float) -> float:
    thresholds = np.union1d(_candidates(one), _candidates(other))
    limits, other_limits = (
        _limits(len(scores) - np.searchsorted(np.sort(scores), thresholds), len(scores), confidence)
        for scores in (one, other)
    )
    return float(thresholds[np.argmax(_lower_bounds(limits, other_limits, kind=kind, delta=delta))])


def _candidates(scores: Floats) -> Floats:
    """Return scores to try as thresholds, denser towards both ends, where rare events are."""
    ordered = np.sort(scores)
    ranks = np.unique(np.geomspace(1, len(ordered), _CANDIDATES).astype(np.int64))
    return np.concatenate([ordered[ranks - 1], ordered[-ranks]])


def _at_least(one: Count, other: Count, *, kind: Kind, confidence: float, delta: float) -> float:
    limits, other_limits = (
        _limits(np.array([count.hits]), count.trials, confidence) for count in (one, other)
    )
    return float(_lower_bounds(limits, other_limits, kind=kind, delta=delta)[0])


def _limits(hits: NDArray[np.int64], trials: int, confidence: float) -> tuple[Floats, Floats]:
    """Return lower and upper limits such that the four of a pair of counts all hold with the confidence."""
    fraction(confidence=confidence)
    miss = (1 - confidence) / 4
    return _lower_limits(hits, trials, miss), _upper_limits(hits, trials, miss)


def _lower_limits(hits: NDArray[np.int64], trials: int, miss: float) -> Floats:
    from scipy.special import betaincinv

    return np.where(hits > 0, betaincinv(np.maximum(hits, 1), trials - hits + 1, miss), 0.0)


def _upper_limits(hits: NDArray[np.int64], trials: int, miss: float) -> Floats:
    from scipy.special import betainccinv

    return np.where(hits < trials, betainccinv(hits + 1, np.maximum(trials - hits, 1), miss), 1.0)


def _lower_bounds(
    one: tuple[Floats, Floats], other: tuple[Floats, Floats], *, kind: Kind, delta: float
) -> Floats:
    """Return the bound for each threshold, from the limits of both proportions."""
    from scipy.special import ndtri

    not_negative(delta=delta)
    (low, high), (other_low, other_high) = one, other
    bounds: Floats
    if kind == "mu":
        bounds = np.maximum(ndtri(low) - ndtri(other_high), ndtri(other_low) - ndtri(high))
    else:
        ratios = [
            (low - delta) / other_high,
            (other_low - delta) / high,
            (1 - high - delta) / (1 - other_low),
            (1 - other_high - delta) / (1 - low),
        ]
        bounds = np.log(np.maximum(np.max(ratios, axis=0), 1.0))
    return np.maximum(bounds, 0.0)
