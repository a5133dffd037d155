"""The linear combination against noise that is corrected in a second round (Li et al. 2022, section 6.2).

The coordinator sees a noisy sum S, and then corrections D that are to bring its noise down to what was
promised. `combined` adds to S whatever multiple of D leaves the least noise, which it reads off the numbers
themselves. Against the published variant less is left than was promised; against our layers all of it is.
"""

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import positive, whole
from cofactor.errors import ConfigError
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.view import OPENED, Seen, View
from cofactor.privacy.evidence import Evidence, epsilon_of_mu, evidence
from cofactor.privacy.laws import SkellamLaw
from cofactor.privacy.layers import Layers, draw
from cofactor.privacy.two_rounds import TwoRounds, best_weights
from cofactor.randomness import Random

Reals = NDArray[np.float64]
Watch = Callable[[NDArray[Any]], View]
"""Return what the coordinator sees where the survivors' numbers add up to these."""

NOISY, CORRECTION = "NoisySum", "Correction"
"""The messages of both rounds, as views name them."""
_TOTAL = "total"


@dataclass(frozen=True, kw_only=True, eq=False)
class Combined:
    """What the coordinator makes of both rounds."""

    values: Reals
    """The sum, with as little noise as can be."""
    weights: Reals
    """By which each correction was multiplied."""


@dataclass(frozen=True, kw_only=True)
class Combination:
    """How much noise the combination left, beside what was promised."""

    claimed_mu: float
    """What was promised for one user, as mu of Gaussian differential privacy."""
    left: float
    """The variance of the noise that is left, relative to the promised one."""
    proved: Evidence
    """What telling the user's presence from his absence proves."""
    claimed_epsilon: float
    real_epsilon: float
    """What the noise that is left is worth."""
    delta: float

    @property
    def broken(self) -> bool:
        """Whether more was proved than was promised."""
        return self.proved.refutes(self.claimed_mu)

    def __str__(self) -> str:
        """Say it in a sentence."""
        verdict = "more than" if self.broken else "not more than"
        return (
            f"Both rounds together have {self.left:.0%} of the noise that was promised: epsilon is "
            f"{self.real_epsilon:.2f} where {self.claimed_epsilon:.2f} was claimed (delta {self.delta:g}), "
            f"and mu of {self.proved.lower_bound:.2f} was proved, {verdict} the {self.claimed_mu:.2f} "
            "claimed."
        )


def combined(view: View, *, weights: Reals | None = None) -> Combined:
    """Take off the noisy sum whatever of its noise the corrections give away.

    The attacker knows nothing beside the numbers: the best weights show in how they vary together. Those of
    an earlier view of the same protocol may be given.
    """
    first = [each.arrays[_TOTAL] for each in view.messages(NOISY)]
    others = [np.asarray(each.arrays[_TOTAL], np.float64) for each in view.messages(CORRECTION)]
    if len(first) != 1:
        raise ConfigError(
            f"{' and '.join(view.roles)} saw {len(first)} noisy sums that are corrected afterwards, and this "
            "attack is for one. Our own sums are opened once, without the noise that is too much."
        )
    noisy = np.asarray(first[0], np.float64)
    found = (best_weights(noisy, others) if others else np.zeros(0)) if weights is None else weights
    total = sum((weight * other for weight, other in zip(found, others, strict=True)), noisy)
    return Combined(values=np.asarray(total), weights=found)


def published(rounds: TwoRounds, sigma: float, survivors: int, random: Random) -> Watch:
    """Return what is seen of the published two rounds, in which noise of deviation sigma is promised."""

    def watch(values: NDArray[Any]) -> View:
        first, second = rounds.seen(values, sigma, survivors, random)
        return _view(first, [second], rounds.users)

    return watch


def layered(layers: Layers, sigma: float, survivors: int, *, accomplices: int | None = None) -> Watch:
    """Return what is seen of our layers: the sum with all of them, and those that are revealed.

    Accomplices, as many as the layers are made for unless another number is said, tell all of their noise.
    """
    positive(sigma=sigma)
    honest = survivors - (layers.colluding if accomplices is None else accomplices)
    whole(honest=honest)
    variances, kept = layers.variances(sigma**2).tolist(), layers.kept(survivors)

    def watch(values: NDArray[Any]) -> View:
        total = np.array(values, np.int64)
        revealed = np.zeros((len(variances) - kept, total.size), np.int64)
        for _ in range(honest):
            keys = [secrets.token_bytes(32) for _ in variances]
            total += layers.added(total.shape, sigma**2, keys)
            for layer, sums in enumerate(revealed, start=kept):
                sums += draw(total.size, SkellamLaw(variance=variances[layer]), keys[layer])
        return _view(total, list(revealed), survivors)

    return watch


def measured(
    watch: Watch,
    *,
    sigma: float,
    step: float,
    delta: float = 1e-6,
    trials: int = 200_000,
    confidence: float = 0.95,
) -> Combination:
    """Attack many sums to which one user adds `step`, or nothing, and say what that proves.

    Of each sum the others' part is 0, so that what is left is noise. `sigma` is the deviation of the noise
    that was promised.
    """
    positive(sigma=sigma, step=step, delta=delta)
    whole(trials=trials)
    absent = combined(watch(np.zeros(trials)))
    present = combined(watch(np.full(trials, step)), weights=absent.weights)
    left, claimed = float(absent.values.var()) / sigma**2, step / sigma
    return Combination(
        claimed_mu=claimed,
        left=left,
        proved=evidence(present.values, absent.values, kind="mu", confidence=confidence),
        claimed_epsilon=epsilon_of_mu(claimed, delta),
        real_epsilon=epsilon_of_mu(claimed / math.sqrt(left), delta),
        delta=delta,
    )


def _view(first: NDArray[Any], corrections: list[NDArray[Any]], users: int) -> View:
    numbered = [(1, NOISY, first), *((2, CORRECTION, each) for each in corrections)]
    seen = [
        Seen(
            round=round, sender=SUM, receiver=COORDINATOR, kind=kind, protection=OPENED, arrays={_TOTAL: each}
        )
        for round, kind, each in numbered
    ]
    return View(
        roles=(COORDINATOR,),
        recipe={"kind": "TwoRounds"},
        split="on-device",
        parties=("devices",),
        users=(users,),
        items=len(first),
        scale=None,
        seen=tuple(seen),
    )
