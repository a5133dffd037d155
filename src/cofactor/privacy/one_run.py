"""Audits of one run: many canaries, a coin for each, and what guesses about the coins prove.

Every canary is there or not, as a secret coin decides. Whoever sees the run says of some canaries that they
were there, and of others that they were not. If the run keeps what was promised, no way of guessing is right
too often, whatever the canaries have to do with each other (Steinke, Nasr and Jagielski 2023; in the form of
Mahloujifar, Melis and Chaudhuri 2024, which knows the whole curve of epsilon and delta).

Why: let N be how many of the guesses are right, and T a set of numbers. Turn one coin and keep the outcome: a
right guess about it becomes a wrong one, and N falls by 1. Both inputs are neighbours, so for each canary
    P(right about it, N in T) <= F(P(wrong about it, N + 1 in T)),
where F(x) is the most that the promise lets an event be likely for one input that has probability x for its
neighbour: the least of the lines e^epsilon x + delta and 1 - e^-epsilon (1 - delta - x), which is concave.
The mean over all canaries, with p_j = P(N = j), is
    sum over j in T of j p_j / canaries  <=  F(sum over j in T of (guesses - j + 1) p_(j-1) / canaries).
`p_value` is the largest P(N >= right) that this allows for all T = {t, t + 1, ...}. Several runs, each with
fresh coins and fresh noise, can be taken for one run of all their canaries; or p-values of each are combined.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.config import fraction, not_negative
from cofactor.errors import DataError
from cofactor.privacy.budget import Adjacency, Unit
from cofactor.privacy.events import Event
from cofactor.privacy.evidence import Floats, epsilon_of_mu

_PARTS = (*np.linspace(0.95, 0.05, 19), 0.02, 0.01, 0.003, 1e-3, 1e-4, 1e-5, 1e-6)
"""Deltas at which a curve is known, as parts of the total variation."""
_FEWEST = 20
"""Canaries below which nothing can be said."""
_ENOUGH = 200
"""Canaries that are judged by themselves: fewer prove more together than one by one."""
_LARGEST = 64.0
"""The largest epsilon, or mu, that is looked for."""
_ENDLESS = 700.0
"""An epsilon from which on nothing is promised."""
_RAREST = 1e-3
"""Rarer events than this hardly happen to canaries: what is promised about them is left out of mu."""


@dataclass(frozen=True)
class Curve:
    """What is promised about neighbours: all its pairs (epsilon, delta) hold at once."""

    lines: tuple[tuple[float, float], ...]

    @classmethod
    def of(
        cls, events: Iterable[Event], *, unit: Unit, adjacency: Adjacency = "empty", apart: bool = False
    ) -> "Curve":
        """Return what releases promise; `apart` if parties share no units, so that the worst-off counts."""
        from cofactor.privacy.accountant import profile

        events = list(events)
        parties = sorted({each.by for each in events}) if apart else []
        groups = [[each for each in events if each.by == by] for by in parties] or [events]
        curves = [cls(tuple(profile(group, _PARTS, unit=unit, adjacency=adjacency))) for group in groups]
        return cls.weakest(curves)

    @classmethod
    def weakest(cls, curves: "Sequence[Curve]") -> "Curve":
        """Return what all of them promise: pair by pair the larger epsilon, and the larger delta."""
        pairs = zip(*(curve.lines for curve in curves), strict=False)
        return cls(tuple((max(each[0] for each in one), max(each[1] for each in one)) for one in pairs))

    @classmethod
    def gaussian(cls, mu: float) -> "Curve":
        """Return what mu of Gaussian differential privacy promises."""
        from scipy.special import ndtr

        not_negative(mu=mu)
        if mu == 0:
            return cls(((0.0, 0.0),))
        # Tangents of Phi(mu + z) over Phi(z), from where their slope is 1 to where hardly anything happens.
        at = -mu / 2 - np.concatenate([np.linspace(0, 3, 49), np.linspace(3.25, 8, 20)])
        slopes = np.exp(-mu * (mu / 2 + at))
        deltas = np.maximum(ndtr(mu + at) - slopes * ndtr(at), 0.0)
        return cls(tuple(zip(np.log(slopes).tolist(), deltas.tolist(), strict=True)))

    @classmethod
    def pure(cls, epsilon: float, delta: float = 0.0) -> "Curve":
        """Return what one pair promises, and nothing else."""
        not_negative(epsilon=epsilon, delta=delta)
        return cls(((epsilon, delta),))

    @cached_property
    def mu(self) -> float:
        """The least mu of Gaussian differential privacy that covers all of this, rare events apart."""
        from scipy.special import ndtri

        likely = np.concatenate([np.geomspace(_RAREST, 0.05, 60), np.linspace(0.05, 0.5, 120)])
        with np.errstate(divide="ignore"):
            apart = ndtri(self._most(likely)) - ndtri(likely)
        return float(max(apart.max(), 0.0))

    def _most(self, likely: Floats) -> Floats:
        """Return F: how likely events can be for one input, by how likely they are for its neighbour."""
        slopes, starts = self.sides
        return np.asarray((slopes[:, None] * likely + starts[:, None]).min(axis=0, initial=1.0))

    @cached_property
    def sides(self) -> tuple[Floats, Floats]:
        """All lines by slope and start, those that turn around the opposite event included."""
        known = [line for line in self.lines if line[0] < _ENDLESS]
        epsilons, deltas = np.array(known, np.float64).reshape(-1, 2).T
        fall = np.exp(-epsilons)
        slopes = np.concatenate([np.exp(epsilons), fall])
        starts = np.concatenate([deltas, 1 - fall * (1 - deltas)])
        return slopes, starts


@dataclass(frozen=True, kw_only=True)
class OneRun:
    """What guesses about canaries proved."""

    canaries: int
    guesses: int
    right: int
    confidence: float
    p_value: float | None
    """How likely so many right guesses are, at most, if what was promised is kept; None if nothing was."""
    claimed_mu: float | None
    """The mu of Gaussian differential privacy that covers what was promised, rare events apart."""
    mu_at_least: float
    """Whoever claims less is refuted, with the confidence."""
    epsilon_at_least: float
    """The same for epsilon, at `delta`, without any assumption about the noise."""
    delta: float

    @property
    def refuted(self) -> bool:
        """Whether what was promised is not kept, with the confidence."""
        return self.p_value is not None and self.p_value <= 1 - self.confidence

    @property
    def as_if_gaussian(self) -> float:
        """The epsilon that `mu_at_least` stands for at `delta`, if the noise is as good as normal."""
        return epsilon_of_mu(self.mu_at_least, self.delta)


def judged(
    scores: NDArray[np.float64],
    present: NDArray[np.bool_],
    promised: Curve | None,
    *,
    confidence: float = 0.95,
    delta: float = 0.0,
    runs: NDArray[np.int64] | None = None,
) -> OneRun:
    """Guess from scores who is there, and say what it proves.

    The quarter with the largest scores is said to be there, that with the smallest not to; nothing is said of
    the rest. `present` are fair coins that the scores know nothing of but through the run. `runs` is the
    number of each canary's run, if there were several: some that have 200 canaries together are judged
    together, and what they prove is combined.
    """
    fraction(confidence=confidence)
    not_negative(delta=delta)
    values, truth = np.asarray(scores, np.float64), np.asarray(present, np.bool_)
    if values.shape != truth.shape or values.ndim != 1 or np.isnan(values).any():
        raise DataError(f"there must be one score for each canary and no NaN, got {values.shape}.")
    check_canaries(len(values))
    groups = _grouped(np.zeros(len(values), np.int64) if runs is None else runs)
    seen = [_guessed(values[group], truth[group]) for group in groups]
    rare = 1 - confidence
    return OneRun(
        canaries=len(values),
        guesses=sum(each.guesses for each in seen),
        right=sum(each.right for each in seen),
        confidence=confidence,
        p_value=None if promised is None else _combined(seen, promised),
        claimed_mu=None if promised is None else promised.mu,
        mu_at_least=_largest_refuted(lambda mu: _refuted(seen, Curve.gaussian(mu), rare)),
        epsilon_at_least=_largest_refuted(lambda epsilon: _refuted(seen, Curve.pure(epsilon, delta), rare)),
        delta=delta,
    )


def check_canaries(count: int) -> None:
    """Refuse so few canaries that nothing can be proved."""
    if count < _FEWEST:
        raise DataError(
            f"{count} canaries are too few: whatever is guessed could be chance. Plant at least {_FEWEST}, "
            "better hundreds."
        )


def _grouped(runs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the places of canaries whose runs are judged together."""
    groups: list[list[int]] = [[]]
    for run in np.unique(runs):
        if len(groups[-1]) >= _ENOUGH:
            groups.append([])
        groups[-1] += np.flatnonzero(runs == run).tolist()
    if len(groups) > 1 and len(groups[-1]) < _ENOUGH:
        last = groups.pop()
        groups[-1] += last
    return [np.array(group) for group in groups]


def _guessed(scores: Floats, present: NDArray[np.bool_]) -> "_Guesses":
    quarter, order = len(scores) // 4, np.argsort(scores, kind="stable")
    right = int(present[order[-quarter:]].sum() + (~present[order[:quarter]]).sum())
    return _Guesses(right=right, guesses=2 * quarter, canaries=len(scores))


def _combined(seen: "list[_Guesses]", promised: Curve) -> float:
    """Return the p-value of a promise from runs that have nothing to do with each other (Fisher)."""
    from scipy.stats import chi2

    found = [each.p_value(promised) for each in seen]
    return found[0] if len(found) == 1 else float(chi2.sf(-2 * np.log(found).sum(), 2 * len(found)))


def _refuted(seen: "list[_Guesses]", promised: Curve, rare: float) -> bool:
    return seen[0].refute(promised, rare) if len(seen) == 1 else _combined(seen, promised) <= rare


@dataclass(frozen=True, kw_only=True)
class _Guesses:
    right: int
    guesses: int
    canaries: int

    def refute(self, promised: Curve, rare: float) -> bool:
        """Say whether so many right guesses, or more, are less likely than `rare` if the promise is kept."""
        return bool(too_rare(self.right, self.guesses, self.canaries, rare, *promised.sides))

    def p_value(self, promised: Curve) -> float:
        """Return how likely so many right guesses are, at most, if the promise is kept."""
        low, high = -36.0, 0.0
        if not self.refute(promised, 1.0):
            return 1.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if self.refute(promised, math.exp(middle)) else (middle, high)
        return math.exp(high)


@kernel
def too_rare(right: int, guesses: int, canaries: int, rare: float, slopes: Floats, starts: Floats) -> bool:
    """Say whether no promise with these lines allows P(N >= right) to be `rare`.

    All of that probability is put on `right` itself, and below it no more than the promise asks for: whatever
    is put higher than it must be only asks for more.
    """
    likely, wrong, mass = right * rare / canaries, (guesses - right) * rare / canaries, rare
    for count in range(right - 1, -1, -1):
        least = 0.0
        for line in range(slopes.size):
            least = max(least, (likely - starts[line]) / slopes[line])
        missing = least - wrong
        if missing > 0:
            added = missing * canaries / (guesses - count)
            mass += added
            if mass > 1:
                return True
            likely += count * added / canaries
            wrong += missing
    return False


def _largest_refuted(refuted: Callable[[float], bool]) -> float:
    """Return the largest claim that is refuted; 0 if none is."""
    low, high = 0.0, 1.0
    if not refuted(0.0):
        return 0.0
    while refuted(high):
        low, high = high, 2 * high
        if high > _LARGEST:
            return low
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
