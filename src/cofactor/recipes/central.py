"""`CentralDPSGD`: alternating minimisation by a server whom all users trust (AM-DPSGD; Krichene et al. 2023).

The strongest published method where somebody may see all ratings, and so what methods without such trust are
compared to. Users are solved exactly, from their ratings; items take a few steps along the sum of what users
contribute, each clipped as a whole, with noise.

From the paper are the alternation, the clipping of all that a user contributes, and weights by private
counts. Ours are a bias for each user, a constant coordinate of users that makes one for each item, full
batches (no users are sampled), the private mean of the users' means, and the accountant. The paper's penalty
on items, its restriction to items that are rated often and its weight of what nobody rated are left out.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from cofactor.config import fraction, not_negative, plain_numbers, positive, whole
from cofactor.errors import ConfigError, Refused, RunError
from cofactor.factors.model import HomeFit
from cofactor.federation.halves import Facts, Home, Promise
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import Gaussian
from cofactor.privacy.schedule import Release, Schedule
from cofactor.recipes.central_halves import COUNTS, MESSAGES, SLOPES, CentralCoordinator, CentralParticipant
from cofactor.recipes.central_rule import usual
from cofactor.recipes.central_steps import COUNT_LIMIT, Chosen, Penalties, fold_in, unit_size
from cofactor.recipes.local_steps import MEAN
from cofactor.recipes.usual_steps import one_release

_RATING = (
    "CentralDPSGD cannot protect single ratings: users are fitted to all of their ratings and then multiply "
    'each of them, so one rating changes all that a user contributes. Protect users: unit "user".'
)
_TRUSTED = Assumption(
    what="users trust the party that trains with all of their ratings",
    met="that is taken on trust; SharedBiases and SecureALS do without it",
)


@dataclass(frozen=True, kw_only=True)
class CentralDPSGD:
    """Matrix factorization by one party that holds all ratings: a baseline that must be trusted.

    What is left out is chosen when the federation is known, from public numbers only. Limits and penalties
    are for ratings in units in which a scale from 1 to 5 has unit 1.
    """

    split: ClassVar[Split] = "horizontal"
    units: ClassVar[tuple[Unit, ...]] = ("user",)
    messages: ClassVar[tuple[type[Message], ...]] = MESSAGES

    factors: int | None = None
    """Length of each item's vector; the first coordinate is its bias."""
    rounds: int | None = None
    """Steps of the items. Users are solved before each."""
    limit: float = 0.2
    """The longest that all a user contributes to a step can be."""
    learning_rate: float | None = None
    """What multiplies the noisy sum of all contributions."""
    taste_penalty: float = 0.2
    """Penalty on the squared coordinates of users, counted in ratings: lambda in the paper."""
    bias_penalty: float = 3.0
    """Penalty on the squared biases of users, counted in ratings."""
    spread: float = 0.015
    """How far from 0 the items' coordinates begin, their biases apart."""
    weight_power: float | None = None
    """Ratings of an item count (its noisy count)^-power. With 0 nothing is counted."""
    count_share: float = 0.06
    """Part of the budget for the counts."""
    least_count: float | None = None
    """Counts below it are taken for it. Left out: as large as their noise."""
    centre: float | None = None
    """The mean rating, if it is public. Left out, the mean of the users' means is released."""
    mean_share: float = 0.01
    """Part of the budget for it."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(factors=self.factors, rounds=self.rounds)
        positive(limit=self.limit, learning_rate=self.learning_rate, least_count=self.least_count)
        positive(taste_penalty=self.taste_penalty, bias_penalty=self.bias_penalty, spread=self.spread)
        not_negative(weight_power=self.weight_power or 0.0)
        fraction(count_share=self.count_share, mean_share=self.mean_share)
        fraction(shares=self.count_share + self.mean_share)

    @classmethod
    def as_published(cls) -> "CentralDPSGD":
        """Return the paper's constants for MovieLens 10M, taken literally.

        Its rate multiplies a sum over all users here; rounds, spread and the power of weights are ours.
        """
        return cls(
            factors=32, rounds=5, limit=0.1, learning_rate=0.5, taste_penalty=0.5, bias_penalty=0.5,
            spread=0.1, weight_power=0.25,
        )  # fmt: skip

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only."""
        self._check(facts, budget)
        noise = 0.0 if budget is None else one_release(budget, facts)
        chosen = usual(noise / facts.user_count)
        power = chosen.weight_power if self.weight_power is None else self.weight_power
        settled = replace(
            self,
            factors=self.factors or chosen.factors,
            rounds=self.rounds or chosen.rounds,
            weight_power=power,
            least_count=self.least_count or max(noise / math.sqrt(self.count_share), 1.0),
        )
        assert settled.rounds is not None
        each = noise * math.sqrt(settled.rounds / settled._share_of_steps)
        rate = chosen.rate(facts, settled.rounds, each) / self.limit
        return replace(settled, learning_rate=self.learning_rate or rate)

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:  # noqa: ARG002 (there is one)
        """Return everything that the party will publish; noise is relative."""
        chosen, half = self.chosen(), (facts.scale.high - facts.scale.low) / 2
        share = self._share_of_steps / chosen.rounds
        numbers = facts.item_count * chosen.factors
        # The mean comes first, then counts, then all steps.
        before = (self.centre is None) + bool(self.weight_power)
        releases = [_release(SLOPES, self.limit, share, unit, numbers, chosen.rounds, 1 + before)]
        if self.centre is None:
            releases += [_release(MEAN, half, self.mean_share, unit, 1, 1, 1)]
        if self.weight_power:
            releases += [_release(COUNTS, COUNT_LIMIT, self.count_share, unit, facts.item_count, 1, before)]
        return Schedule(releases=tuple(releases), rounds=before + chosen.rounds, users=facts.user_count)

    def participant(self, home: Home) -> CentralParticipant:
        """Return the half of the party that holds all ratings."""
        return CentralParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> CentralCoordinator:
        """Return the half of everybody else."""
        return CentralCoordinator(self, facts, seed)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002 (the same for all)
        """Return what the guarantee says besides its numbers."""
        return Promise(
            against=("everyone who sees the item vectors, the party that trains apart",),
            covers=(
                "All that the party publishes: item vectors, in every round and at the end, the mean of its "
                "users' means, and counts of items where they are used.",
            ),
            does_not_cover=(
                f"The users from {facts.parties[0]}, which trains and sees all of their ratings. Only what "
                "it publishes is protected.",
                "Which items there are, and how many users and ratings: public.",
                "What the party shows to its own users: made from raw ratings.",
            ),
            assumptions=(_TRUSTED,),
        )

    @property
    def penalties(self) -> Penalties:
        """What holds users back."""
        return Penalties(self.bias_penalty, self.taste_penalty)

    def chosen(self) -> Chosen:
        """Return what was left open. When settled."""
        found = (self.factors, self.rounds, self.learning_rate, self.weight_power, self.least_count)
        factors, rounds, rate, power, least = found
        if None in found:
            raise RunError("CentralDPSGD is not settled: factors, rounds or the learning rate are open.")
        assert factors is not None
        assert rounds is not None
        assert rate is not None
        assert power is not None
        assert least is not None
        return Chosen(factors, rounds, rate, power, least)

    def home_fit(self, facts: Facts) -> HomeFit:
        """Return how a user who comes later is fitted: as all others are. When settled."""
        return fold_in(self.penalties, self.chosen().factors, unit_size(facts), facts.item_count)

    @property
    def _share_of_steps(self) -> float:
        """What the mean and the counts, if they are released, leave of the budget."""
        counts = self.count_share if self.weight_power else 0.0
        return 1 - counts - (self.mean_share if self.centre is None else 0.0)

    def _check(self, facts: Facts, budget: Budget | None) -> None:
        if budget is not None and budget.unit != "user":
            raise Refused(_RATING)
        if len(facts.parties) > 1:
            raise Refused(
                f"CentralDPSGD is for one party that holds all ratings, and these are {len(facts.parties)} "
                "parties. The party that trains would see the ratings of all others; only what it publishes "
                "is protected. Use SharedBiases or SecureALS, which need no such trust."
            )
        if self.centre is not None and not facts.scale.low <= self.centre <= facts.scale.high:
            raise ConfigError(f"centre {self.centre:g} does not lie on the scale, {facts.scale}.")


def _release(
    what: str, size: float, share: float, unit: Unit, dimension: int, rounds: int, first: int
) -> Release:
    """Return a release that has so large a share of the budget, each time."""
    return Release(
        what=what,
        mechanism=Gaussian(noise_multiplier=share**-0.5),
        bound=Bound(size=size, norm="l2", unit=unit),
        dimension=dimension,
        rounds=rounds,
        first=first,
    )
