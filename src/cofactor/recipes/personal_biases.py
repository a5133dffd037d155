"""`PersonalBiases`: for each item one noisy sum of ratings, each shrunk by its weight, and all else at home.

What a rating adds is a function of that rating, its weight and public numbers, so that single ratings are
protected, each as much as its user and item ask for. One round of sums; users' biases and slopes are fitted
at home, after the release, and cost no privacy.
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from cofactor.config import not_negative, plain_numbers, positive, whole
from cofactor.data.public_items import PublicItems, public_items_lines
from cofactor.errors import ConfigError, Refused, RunError
from cofactor.factors.bayes import Bayes
from cofactor.federation.door import slack_of
from cofactor.federation.halves import Facts, Home, Promise
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.budget import Adjacency, Budget, Unit
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import DiscreteLaplace
from cofactor.privacy.schedule import Release, Schedule
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.item_letters import ItemsFinal
from cofactor.recipes.item_weights import SECRET, samples, stretches
from cofactor.recipes.personal_co_rating import ROUNDS, direction_count
from cofactor.recipes.personal_halves import PersonalCoordinator, PersonalParticipant
from cofactor.recipes.personal_letters import (
    HALVES,
    VALUES,
    CoRatingAsked,
    CoRatingSums,
    CountsAndValues,
    Halves,
    RatingsAsked,
)
from cofactor.recipes.personal_span import Span
from cofactor.recipes.summing_mode import ONE_USER, check_sum, only_sums, playable, two_parties
from cofactor.recipes.sums import AnySum, SecureSum, own_share

_MOST_GRAINS = 2**8
"""In a rating of weight 1: so fine that what a weight of a hundredth leaves is not lost in rounding."""
_ROOM = 4.0
"""How much more noise than planned there is room for: parties may ask for more than others."""

_WHOLE_USERS = (
    'PersonalBiases protects single ratings: unit "rating". For everything that a user has rated, use '
    "SharedBiases or SecureALS."
)
_REPLACED = (
    'PersonalBiases has no proof for adjacency "replace", where a rating may become one of another item and '
    'another weight. Use "empty", by which any replacement costs at most twice epsilon, or "value".'
)
_STRETCHED = "A rating of weight w adds at most w times what one of weight 1 may add to a sum."
_SAMPLED = (
    "Which ratings go into sums: chance decides at home, for each rating, and the others add nothing to them."
)
_NO_DELTA = (
    "A hidden sum fails with a chance of at most 2^-38: that needs a delta. Use delta=1e-9 (--delta "
    "1e-9), or aggregate=PlainSum() (--sum plain)."
)


@dataclass(frozen=True, kw_only=True)
class PersonalBiases:
    """Item biases from one noisy sum of ratings for each; users' slopes on them and popularity at home.

    With adjacency "value" who rated what is public, and items' ratings are counted without noise; with
    "empty" counts are protected as well.
    """

    split: ClassVar[Split] = "on-device"
    splits: ClassVar[tuple[Split, ...]] = ("on-device", "horizontal")
    units: ClassVar[tuple[Unit, ...]] = ("rating",)
    takes_weights: ClassVar[tuple[Unit, ...]] = ("rating",)
    messages: ClassVar[tuple[type[Message], ...]] = (
        RatingsAsked,
        CountsAndValues,
        Halves,
        CoRatingAsked,
        CoRatingSums,
        ItemsFinal,
    )

    lowest: float = 0.375
    """From where on ratings are told apart, as a part of the scale: lower ones count as if there."""
    highest: float = 0.875
    """Up to where they are. Noise is in proportion to what is between; 0 and 1 where noise hardly matters."""
    co_rating: int = 0
    """How many columns about items are learned from which items the same users rate; 12 are usual. Only
    where that is public: sums of it leave without noise, in some more rounds. 0 for counts alone."""
    public_items: PublicItems | None = None
    """Public numbers about items, declared beforehand."""
    aggregate: AnySum = field(default_factory=lambda: SecureSum(dropout=0.3, colluding=0.1))
    """How messages are added up, how many devices may drop out, and how many may collude."""
    home: Bayes | UsersOnly = field(default_factory=Bayes)
    """What a party of many users fits at home, if it predicts better than what all know together."""
    counts_public: bool | None = None
    """Whether who rated what is public, which follows from the budget's adjacency."""
    grains: int | None = None
    """Whole numbers in a rating of weight 1, which follow from the budget."""
    noise: float | None = None
    """Scale of the noise, relative to the most that a rating changes; it follows from the budget."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        positive(noise=self.noise or 1.0)
        not_negative(co_rating=self.co_rating)
        whole(co_rating=self.co_rating or None, grains=self.grains)
        if not 0 <= self.lowest < self.highest <= 1:
            raise ConfigError(
                "lowest and highest are places on the scale, from 0 to 1, one below the other; got "
                f"{self.lowest:g} and {self.highest:g}."
            )
        check_sum(self)
        if not isinstance(self.home, Bayes | UsersOnly):
            raise ConfigError(f"home must be Bayes() or UsersOnly(), got {self.home!r}.")
        if not isinstance(self.public_items, PublicItems | None):
            raise ConfigError("public_items must be PublicItems, such as PublicItems.of_table(table).")

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only."""
        chosen = replace(
            self,
            aggregate=playable(self.aggregate, facts),
            public_items=facts.public_items,
            counts_public=budget is None or budget.adjacency == "value",
            grains=_MOST_GRAINS if budget is None else _grains_for(budget.epsilon),
            noise=0.0 if budget is None else _multiplier(budget.epsilon),
        )
        if budget is not None:
            chosen._check(facts, budget)
        return chosen

    def _check(self, facts: Facts, budget: Budget) -> None:
        """Refuse what cannot be promised."""
        if budget.unit != "rating":
            raise Refused(_WHOLE_USERS)
        if budget.adjacency == "replace":
            raise Refused(_REPLACED)
        if self.co_rating and not self.counts_public:
            raise Refused(
                f'co_rating={self.co_rating} shows who rated what, which adjacency "empty" protects. Use '
                'co_rating=0, or adjacency "value".'
            )
        slack = self._slack(facts)
        if slack is not None and budget.delta < slack:
            raise Refused(_NO_DELTA)

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:  # noqa: ARG002 (all send the same)
        """Return everything that a party will release."""
        release = Release(
            what=self.what,
            mechanism=DiscreteLaplace(noise_multiplier=self.noise or 1.0),
            bound=self.bound(facts),
            dimension=facts.item_count * self.columns,
            rounds=1,
            slack=self._slack(facts),
        )
        return Schedule(
            releases=(release,),
            rounds=self.rounds,
            parties=len(facts.parties),
            users=facts.user_count,
            ratings=facts.rating_count or None,
        )

    def participant(self, home: Home) -> PersonalParticipant:
        """Return the half of a device, a party, or a cohort of devices."""
        return PersonalParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> PersonalCoordinator:
        """Return the coordinator's half."""
        return PersonalCoordinator(self, facts, seed)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002 (settled by it)
        """Return what the guarantee says besides its numbers."""
        own = own_share(self.aggregate, facts.summed)
        counted = "" if self.counts_public else "how often and "
        return Promise(
            against=("the coordinator", "the other parties", "everyone who sees what is known of items"),
            covers=(
                f"What is known of items: {counted}how high they are rated.",
                *((_STRETCHED,) if stretches(facts.weights) else ()),
                *((_SAMPLED,) if samples(facts.weights) else ()),
            ),
            does_not_cover=(
                *self._public_choices(facts),
                "Which items there are, how many users and ratings, who takes part and who answers: public.",
                *public_items_lines(facts.public_items),
                "What a device or a party shows to its own users: made from raw ratings, it stays there.",
                "Several ratings of one user together: each is protected by itself, and what they have in "
                "common is protected the less, the more there are.",
                ONE_USER,
            ),
            warnings=two_parties(facts),
            assumptions=(
                *self.aggregate.assumptions(facts.summed),
                *((SECRET,) if samples(facts.weights) else ()),
            ),
            why_not=self.aggregate.why_not(facts.summed),
            shared={} if facts.cohort else {self.what: own},
        )

    def _public_choices(self, facts: Facts) -> tuple[str, ...]:
        """Say what leaves about who rated what, where that is public."""
        if not self.counts_public:
            return ()
        what = "how often each item is rated"
        if self.co_rating:
            what += ", and which items the same users rate"
        whose = "for all together" if only_sums(self, facts) else "for each party by itself"
        return (f"Who rated what: public. What leaves of it, without noise: {what}, {whose}.",)

    @property
    def span(self) -> Span:
        """On which part of the scale ratings are told apart."""
        return Span.of(self.lowest, self.highest)

    @property
    def what(self) -> str:
        """The name of the noisy release. When settled."""
        return VALUES if self.counts_public else HALVES

    @property
    def adjacency(self) -> Adjacency:
        """What a rating's neighbours are. When settled."""
        return "value" if self.counts_public else "empty"

    @property
    def columns(self) -> int:
        """How many sums there are of each item. When settled."""
        return 1 if self.counts_public else 2

    @property
    def rounds(self) -> int:
        """One, and some about co-rating if that is asked for."""
        return 1 + (ROUNDS if self.co_rating else 0)

    @property
    def steps(self) -> int:
        """Whole numbers in a rating of weight 1. When settled."""
        if self.grains is None:
            raise RunError("PersonalBiases is not settled: grains are still open.")
        return self.grains

    def bound(self, facts: Facts) -> Bound:
        """Return the most by which a rating of weight 1 changes the sums of all items. When settled."""
        return Bound(
            size=float(self.steps * (2 if self.counts_public else 1)),
            norm="l1",
            unit="rating",
            adjacency=self.adjacency,
            weighed=stretches(facts.weights),
        )

    def noise_of(self, facts: Facts) -> float:
        """Return the variance of the noise of a sum over all users, in ratings of weight 1. When settled."""
        scale = (self.noise or 0.0) * self.bound(facts).size / self.steps
        return 2 * scale**2 * facts.summed * own_share(self.aggregate, facts.summed)

    def directions(self, facts: Facts) -> tuple[int, int]:
        """Return the shape of what is asked about co-rating."""
        return facts.item_count, min(direction_count(self.co_rating), facts.item_count)

    def _slack(self, facts: Facts) -> float | None:
        return slack_of(DiscreteLaplace(), self.aggregate.layers(facts.summed))


def _multiplier(epsilon: float) -> float:
    """Return the least noise that keeps epsilon, to the last digit."""
    found = 1 / epsilon
    while 1 / found > epsilon:
        found = math.nextafter(found, math.inf)
    return found


def _grains_for(epsilon: float) -> int:
    """Return how finely ratings are counted: a power of 2, so fine that noise can still be drawn."""
    finest = DiscreteLaplace.largest_noise * epsilon / (2 * _ROOM)
    if finest < 1:
        raise Refused(f"with epsilon {epsilon:g} noise leaves nothing of any rating. Use a larger epsilon.")
    return int(2 ** math.floor(math.log2(min(max(finest, 1.0), _MOST_GRAINS))))
