"""`OnDeviceMF`: every user is a device, and factorizes with all others (LFL-SGDMF; Li et al. 2022, sec. 6).

A device fits its user at home, draws some of its ratings in each round, and adds their gradients to a sum of
which nobody sees the parts. Only item vectors are shared. Whoever drops out is missing from the sum; the
noise stays what was promised.
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from cofactor.config import one_of, plain_numbers, positive, whole
from cofactor.errors import ConfigError, Refused, RunError
from cofactor.factors.model import Factors
from cofactor.federation.door import OVERFLOW, Door
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts, Home, Promise
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.fixed_point import FixedPoint
from cofactor.privacy.mechanisms import Skellam
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import SecureRandom
from cofactor.recipes.clipping import EmbeddingClipping, GradientClipping, reach
from cofactor.recipes.device_steps import bound_of
from cofactor.recipes.on_device_halves import SUMS, DeviceCoordinator, DeviceGradients, DeviceParticipant
from cofactor.recipes.shared_vectors import Finished, Shared
from cofactor.recipes.steps import Steps, check_scale
from cofactor.recipes.summing_mode import ONE_USER, check_sum, playable, two_parties
from cofactor.recipes.sums import AnySum, SecureSum, own_share
from cofactor.recipes.usual_steps import one_release

_RATING = (
    "OnDeviceMF cannot protect single ratings: a user's vector is fitted to all of the user's ratings and "
    "then multiplies each of them, so one rating changes all that the device contributes (the claim of Li et "
    'al. 2022, Proposition 3, does not hold). Protect users: unit "user".'
)
_FACTORS = 8
_MOST_RATINGS = 200
_LIMIT = 2.0
"""The longest gradient of one rating, on a scale that ends at 5."""
_BEGINNING = 0.75
"""Squared length at which items begin, as a part of the highest rating. At the middle of the scale no user's
vector that is short enough could predict the ratings of users who like most of what they see."""
_WALK, _PUBLISHED_WALK = 0.2, 0.1
"""How far the noise of all rounds together may carry a coordinate, as a part of where it begins."""
_POPULAR, _PUBLISHED_POPULAR = 3.0, 0.1
"""The largest rate, relative to one over the curvature of an item that is rated as often as the average one.
Gradients that are limited grow no larger where items are popular."""


@dataclass(frozen=True, kw_only=True)
class OnDeviceMF:
    """Matrix factorization for users who keep their ratings on their own devices.

    What is left out is chosen when the federation is known, from public numbers only.
    """

    split: ClassVar[Split] = "on-device"
    units: ClassVar[tuple[Unit, ...]] = ("user",)
    messages: ClassVar[tuple[type[Message], ...]] = (Shared, Finished, DeviceGradients)

    factors: int | None = None
    """Length of each user's and item's vector."""
    rounds: int = 10
    """How often the devices' gradients are added up: T in the paper."""
    most_ratings: int | None = None
    """Ratings that a device draws in each round, in secret, if it has so many: one in the paper. The bound
    grows with the root of it, and what is learned with all of it."""
    clipping: EmbeddingClipping | GradientClipping | None = None
    """What bounds the gradient of one rating. Vectors are kept short and not negative in any case, which
    bounds it already; a limit bounds it further."""
    learning_rate: float | None = None
    """What multiplies the mean of the devices' gradients in each round."""
    centre: float | None = None
    """The mean rating, if it is public: there predictions begin. Left out, three quarters of the highest."""
    users: Literal["refitted", "pretrained"] = "refitted"
    """When users are fitted at home: in every round, or once, beforehand."""
    aggregate: AnySum = field(default_factory=lambda: SecureSum(dropout=0.3, colluding=0.1))
    """How answers are added up, how many devices may drop out, and how many may collude. With a plain sum
    every device adds all of the noise itself."""
    grain: float | None = None
    """What 1 stands for where gradients are summed as whole numbers."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(factors=self.factors, rounds=self.rounds, most_ratings=self.most_ratings)
        positive(learning_rate=self.learning_rate, centre=self.centre)
        one_of(("refitted", "pretrained"), users=self.users)
        if not isinstance(self.clipping, EmbeddingClipping | GradientClipping | None):
            raise ConfigError("clipping must be EmbeddingClipping() or GradientClipping(limit=...).")
        check_sum(self)

    @classmethod
    def as_published(cls) -> "OnDeviceMF":
        """Return the setting of Li et al. (2022), section 6, where that is stated.

        The noise is ours: what theirs reveals in its second round takes a part of it off again.
        """
        return cls(factors=20, most_ratings=1, clipping=EmbeddingClipping(), users="pretrained")

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only."""
        if budget is not None and budget.unit != "user":
            raise Refused(_RATING)
        EmbeddingClipping().check_scale(lowest=facts.scale.low)
        check_scale(self, facts)
        often = round(2 * facts.rating_count / facts.user_count)
        chosen = replace(
            self,
            factors=self.factors or _FACTORS,
            most_ratings=self.most_ratings or min(max(often, 1), _MOST_RATINGS),
            clipping=self.clipping or GradientClipping(limit=_LIMIT * (facts.scale.high / 5) ** 1.5),
            centre=self.centre or _BEGINNING * facts.scale.high,
            aggregate=playable(self.aggregate, facts),
        )
        chosen = replace(chosen, grain=self.grain or chosen._grain(facts, budget))
        return replace(chosen, learning_rate=self.learning_rate or chosen._rate(facts, budget))

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:  # noqa: ARG002 (all send the same)
        """Return everything that a device will release; noise is relative."""
        steps = self.steps()
        assert steps.most_ratings is not None
        bound = bound_of(
            self.grid(), limit=self.limit(facts), factors=steps.factors, most_ratings=steps.most_ratings
        )
        release = Release(
            what=SUMS,
            mechanism=Skellam(),
            bound=bound,
            dimension=facts.item_count * steps.factors,
            rounds=self.rounds,
            slack=OVERFLOW,
        )
        return Schedule(
            releases=(release,), rounds=self.rounds, parties=len(facts.parties), users=facts.user_count
        )

    def participant(self, home: Home) -> DeviceParticipant:
        """Return the half of a device, or of a cohort of them."""
        return DeviceParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> DeviceCoordinator:
        """Return the coordinator's half."""
        return DeviceCoordinator(self, facts, seed)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002 (the same for all budgets)
        """Return what the guarantee says besides its numbers."""
        share = {} if facts.cohort else {SUMS: own_share(self.aggregate, facts.summed)}
        return Promise(
            against=("the coordinator", "the other devices", "everyone who sees the item vectors"),
            covers=("Item vectors, in every round and at the end.",),
            does_not_cover=(
                "Which items there are, about how many ratings a device has, who takes part, and who answers "
                "in which round: public. That a device may have dropped out buys no privacy.",
                "What a device shows to its own user: made from raw ratings, it stays there.",
                ONE_USER,
            ),
            warnings=two_parties(facts),
            assumptions=self.aggregate.assumptions(facts.summed),
            why_not=self.aggregate.why_not(facts.summed),
            shared=share,
        )

    def alone(self, federation: Federation, *, seed: int = 0) -> dict[str, Factors]:
        """Return the devices' models if they only fit users to where items begin: nothing leaves a device.

        That is stage 1 of Li et al. (2022), to which a training is compared.
        """
        settled, facts = self.settled(federation.facts, None), federation.facts
        last = settled.coordinator(facts, seed).last()
        homes = [
            Home(
                party=party,
                facts=facts,
                schedule=None,
                door=Door(party=party.name, ledger=None, random=SecureRandom(), run="alone"),
                seed=seed,
            )
            for party in federation.parties
        ]
        return {home.party.name: settled.participant(home).finish(last) for home in homes}

    @property
    def beginning(self) -> float:
        """The rating that is predicted for everybody before the first round. When settled."""
        if self.centre is None:
            raise RunError("OnDeviceMF is not settled: centre is still open.")
        return self.centre

    def grid(self) -> FixedPoint:
        """Return how gradients become whole numbers. When settled."""
        if self.grain is None:
            raise RunError("OnDeviceMF is not settled: grain is still open.")
        return FixedPoint(step=self.grain)

    def limit(self, facts: Facts) -> float:
        """Return the longest gradient of one rating. When settled."""
        assert self.clipping is not None
        found = reach(self.clipping, highest=facts.scale.high, unit="rating", most_ratings=None, both=False)
        return found.bound.size

    def steps(self) -> Steps:
        """Return how vectors begin and where they stay: not negative, and short. When settled."""
        assert self.factors is not None
        return Steps(
            factors=self.factors,
            rounds=self.rounds,
            local_steps=1,
            sampling=1.0,
            clipping=EmbeddingClipping(),
            learning_rate=self.learning_rate or 0.0,
            decay=1.0,
            decay_until=1.0,
            centre=self.centre,
            mean_share=1.0,
            most_ratings=self.most_ratings,
        )

    def _grain(self, facts: Facts, budget: Budget | None) -> float:
        """Choose a grid that is fine, and coarse enough for its noise to be drawn."""
        assert self.factors is not None
        assert self.most_ratings is not None
        noise = 1.0
        if budget is not None:
            # As if Gaussian, and half as much again, in variance, for whole numbers.
            noise = one_release(budget, facts) * math.sqrt(1.5 * self.rounds * self._noises(facts))
        return FixedPoint.fitting(
            limit=self.limit(facts),
            dimension=self.factors,
            noise_multiplier=noise * math.sqrt(self.most_ratings),
        ).step

    def _rate(self, facts: Facts, budget: Budget | None) -> float:
        """Let the noise of all rounds walk a part of the way from where coordinates begin to zero.

        A step is never larger than popular items allow.
        """
        assert self.most_ratings is not None
        published = isinstance(self.clipping, EmbeddingClipping)
        each = min(self.most_ratings, facts.rating_count / facts.user_count)
        curvature = 2 * self.beginning * each / facts.item_count
        largest = (_PUBLISHED_POPULAR if published else _POPULAR) / curvature
        if budget is None:
            return largest
        release = calibrated(self.schedule(facts, "user", facts.parties[0]), budget).releases[0]
        assert isinstance(release.mechanism, Skellam)
        assert self.grain is not None
        noise = release.mechanism.noise_size(release.bound) * self.grain * math.sqrt(self._noises(facts))
        way = (_PUBLISHED_WALK if published else _WALK) * self.steps().level(self.beginning)
        return min(largest, way * facts.user_count / (noise * math.sqrt(self.rounds)))

    def _noises(self, facts: Facts) -> float:
        """Return how many times the noise that is promised an opened sum has, as a variance."""
        return facts.summed * own_share(self.aggregate, facts.summed)
