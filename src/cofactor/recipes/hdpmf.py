"""`HDPMF`: factorization in which users who ask for more privacy get it (Hu and Fang 2023).

The paper's own algorithms are `as_published()`; their guarantees do not hold, and they say so. `HDPMF()` is
what is left of the idea when its flaws are mended: nobody sees single messages, parts of the noise need no
number that all raters of an item know, rounds are composed, and whole users are protected, because a user's
vector depends on all of her ratings.
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, TypeVar

from cofactor.config import plain_numbers, positive, whole
from cofactor.errors import Refused, RunError
from cofactor.federation.door import slack_of
from cofactor.federation.halves import Facts, Home, Promise
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.mechanisms import DiscreteLaplace
from cofactor.privacy.schedule import Release, Schedule
from cofactor.recipes.hdpmf_fit import Noise
from cofactor.recipes.hdpmf_halves import GRADIENTS, HDPMFCoordinator, HDPMFParticipant
from cofactor.recipes.hdpmf_published import PublishedHDPMF
from cofactor.recipes.hdpmf_steps import Space, bound_of
from cofactor.recipes.item_weights import SAMPLED, SECRET, STRETCHED, mean_part, samples, stretches
from cofactor.recipes.shared_vectors import Finished, Gradients, Shared
from cofactor.recipes.summing_mode import ONE_USER, check_sum, playable, two_parties
from cofactor.recipes.sums import AnySum, SecureSum, own_share

T = TypeVar("T")

_RATING = (
    "HDPMF cannot protect single ratings, though that is what its paper claims: a user's vector is fitted to "
    "all of the user's ratings and then multiplies each of them, so one rating changes all that the user "
    'adds. Protect users, unit "user"; or use PersonalBiases, which protects each rating by its own weight.'
)
_NO_DELTA = (
    "Hidden sums fail with a chance of at most 2^-38, in each of {rounds} rounds: that needs a delta. Use "
    "delta=1e-9 (--delta 1e-9), or aggregate=PlainSum() (--sum plain)."
)
_WORSE = (
    "Gradients of all items need much noise where whole users are protected: at epsilon 1 and equal weights, "
    "predictions on MovieLens 100K are hardly better than users' own means (mean squared errors of 1.10 and "
    "1.12). SharedBiases does better."
)
_ROUNDS, _PRIVATE_ROUNDS = 40, 2
_MOST_GRAINS = 2**12
"""In what a user of weight 1 adds: several for each number, where a user has some hundred ratings."""
_ROOM = 4.0
"""How much more noise than planned there is room for: parties may ask for more than others."""
_WALK = 0.03
"""How far the noise of all rounds together may carry a coordinate, as a part of where items begin."""
_POPULAR = 0.4
"""Of the scale: a step larger than this, over the number of users for each rating of one, would overshoot for
items that half of the users rate."""


@dataclass(frozen=True, kw_only=True)
class HDPMF:
    """Item vectors from a few noisy sums of gradients; a user of weight w adds at most w times the bound.

    Users' vectors are fitted at home, and stay there. With PersonalBudget(mechanism="sampling") users take
    part by chance instead, which is PDPMF's way; with the strictest budget for all, it is DPMF's. What is
    left out is chosen when the federation is known, from public numbers only.
    """

    split: ClassVar[Split] = "on-device"
    splits: ClassVar[tuple[Split, ...]] = ("on-device", "horizontal")
    units: ClassVar[tuple[Unit, ...]] = ("user",)
    takes_weights: ClassVar[tuple[Unit, ...]] = ("user",)
    messages: ClassVar[tuple[type[Message], ...]] = (Shared, Gradients, Finished)

    factors: int = 5
    """Length of each user's and item's vector, K."""
    rounds: int | None = None
    """How often gradients are added up."""
    learning_rate: float | None = None
    """What multiplies the sum of all gradients; those of a user have an l1 norm of at most her weight."""
    aggregate: AnySum = field(default_factory=lambda: SecureSum(dropout=0.3, colluding=0.1))
    """How gradients are added up, how many devices may drop out, and how many may collude."""
    grains: int | None = None
    """Whole numbers in what a user of weight 1 adds, which follow from the budget."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(factors=self.factors, rounds=self.rounds, grains=self.grains)
        positive(learning_rate=self.learning_rate)
        check_sum(self)

    @staticmethod
    def as_published(
        *,
        factors: int = 10,
        noise: Noise = "fresh",
        rate: float = 0.005,
        penalty: float = 0.01,
        epsilon: float = 1.0,
        rescaled: bool = True,
        epochs: int = 100,
    ) -> PublishedHDPMF:
        """Return Algorithm 1 as its tables were made: not private. Without `rescaled` it is HDPMF-R.

        Tables follow from "fresh" noise; Theorem 2 is about "fixed".
        """
        return PublishedHDPMF(
            method="hdpmf",
            factors=factors,
            noise=noise,
            rate=rate,
            penalty=penalty,
            epsilon=epsilon,
            rescaled=rescaled,
            epochs=epochs,
        )

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only."""
        if budget is not None and budget.unit != "user":
            raise Refused(_RATING)
        chosen = replace(
            self,
            rounds=self.rounds or (_ROUNDS if budget is None else _PRIVATE_ROUNDS),
            aggregate=playable(self.aggregate, facts),
            grains=self.grains or _MOST_GRAINS,
        )
        if budget is None:
            return replace(chosen, learning_rate=self.learning_rate or _largest_rate(facts))
        if budget.delta < chosen.turns * (chosen._slack(facts) or 0.0):
            raise Refused(_NO_DELTA.format(rounds=chosen.turns))
        noise = chosen._multiplier(facts, budget)
        rate = min(_largest_rate(facts), chosen._steady_rate(facts, noise))
        return replace(
            chosen, grains=self.grains or _grains_for(noise), learning_rate=self.learning_rate or rate
        )

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:  # noqa: ARG002 (all send the same)
        """Return everything that a party will release; noise is relative."""
        release = Release(
            what=GRADIENTS,
            mechanism=DiscreteLaplace(),
            bound=bound_of(self.steps, facts),
            dimension=facts.item_count * self.factors,
            rounds=self.turns,
            slack=self._slack(facts),
        )
        return Schedule(
            releases=(release,), rounds=self.turns, parties=len(facts.parties), users=facts.user_count
        )

    def participant(self, home: Home) -> HDPMFParticipant:
        """Return the half of a device, a party, or a cohort of devices."""
        return HDPMFParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> HDPMFCoordinator:
        """Return the coordinator's half."""
        return HDPMFCoordinator(self, facts, seed)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002 (the same for all budgets)
        """Return what the guarantee says besides its numbers."""
        sampled = samples(facts.weights)
        return Promise(
            against=("the coordinator", "the other parties", "everyone who sees the item vectors"),
            covers=(
                "Item vectors, in every round and at the end.",
                *((STRETCHED,) if stretches(facts.weights) else ()),
                *((SAMPLED,) if sampled else ()),
            ),
            does_not_cover=(
                "Which items there are, how many users and ratings, who takes part and who answers in which "
                "round: public.",
                "What a device or a party shows to its own users: made from raw ratings, it stays there.",
                ONE_USER,
            ),
            warnings=(*two_parties(facts), *self.hints(facts)),
            assumptions=(*self.aggregate.assumptions(facts.summed), *((SECRET,) if sampled else ())),
            why_not=self.aggregate.why_not(facts.summed),
            shared={} if facts.cohort else {GRADIENTS: own_share(self.aggregate, facts.summed)},
        )

    def hints(self, facts: Facts) -> tuple[str, ...]:  # noqa: ARG002 (the same for all federations)
        """Say what noise leaves of it."""
        return (_WORSE,)

    def space(self, facts: Facts) -> Space:
        """Return where vectors begin and where they stay."""
        return Space(factors=self.factors, scale=facts.scale)

    @property
    def turns(self) -> int:
        """How many rounds there are. When settled."""
        return _known(self.rounds, "rounds")

    @property
    def steps(self) -> int:
        """Whole numbers in what a user of weight 1 adds. When settled."""
        return _known(self.grains, "grains")

    @property
    def step_size(self) -> float:
        """What multiplies the sum of all gradients. When settled."""
        return _known(self.learning_rate, "learning_rate")

    def _multiplier(self, facts: Facts, budget: Budget) -> float:
        """Return the scale of the noise of a sum, relative to what a user of weight 1 adds."""
        mechanism = calibrated(self.schedule(facts, "user", facts.parties[0]), budget).releases[0].mechanism
        assert isinstance(mechanism, DiscreteLaplace)
        return mechanism.noise_multiplier

    def _steady_rate(self, facts: Facts, noise: float) -> float:
        """Return the rate at which the noise of all rounds carries items no farther than it may."""
        deviation = noise * math.sqrt(2 * facts.summed * own_share(self.aggregate, facts.summed))
        return _WALK * self.space(facts).highest / (deviation * math.sqrt(self.turns))

    def _slack(self, facts: Facts) -> float | None:
        return slack_of(DiscreteLaplace(), self.aggregate.layers(facts.summed))


def _known(setting: T | None, name: str) -> T:
    if setting is None:
        raise RunError(f"HDPMF is not settled: {name} is still open.")
    return setting


def _largest_rate(facts: Facts) -> float:
    """Return the largest rate that does not overshoot for popular items; the less users add, the larger."""
    ratings = max(facts.rating_count / facts.user_count, 1.0)
    width = facts.scale.high - facts.scale.low
    return _POPULAR * width * ratings / (facts.user_count * mean_part(facts.weights))


def _grains_for(noise: float) -> int:
    """Return how finely gradients are counted: a power of 2, so fine that noise can still be drawn."""
    finest = DiscreteLaplace.largest_noise / (_ROOM * noise)
    return int(2 ** math.floor(math.log2(min(max(finest, 1.0), _MOST_GRAINS))))
