"""`VerticalMF`: parties with different items of the same users factorize together (Li et al. 2022, sec. 4).

User and item vectors are released with noise in every local step, so that both may be published. A party that
predicts for its own users does better with `VerticalTaste`, which uses raw ratings at home.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from cofactor.config import plain_numbers, whole
from cofactor.data.public_items import public_items_lines
from cofactor.errors import Refused
from cofactor.federation.halves import Facts, Home, Promise
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.schedule import Schedule
from cofactor.recipes.clipping import EmbeddingClipping, GradientClipping
from cofactor.recipes.local_steps import mean_release
from cofactor.recipes.shared_vectors import SHARED_VECTORS
from cofactor.recipes.steps import Steps, check_scale, check_settings, with_rate
from cofactor.recipes.summed_steps import summed_release
from cofactor.recipes.summing_mode import (
    check_sum,
    grain_of,
    only_sums,
    own_shares,
    sum_assumptions,
    sum_doubts,
    sum_hints,
    two_parties,
    with_grain,
)
from cofactor.recipes.sums import AnySum, PlainSum
from cofactor.recipes.usual_steps import LIMIT, UsualSteps, mean_share, one_release
from cofactor.recipes.vertical_halves import FINE_TUNING, STEPS, VerticalCoordinator, VerticalParticipant


@dataclass(frozen=True, kw_only=True)
class VerticalMF:
    """Matrix factorization for parties who hold different items of the same users.

    What is left out is chosen when the federation is known, from public numbers only.
    """

    split: ClassVar[Split] = "vertical"
    units: ClassVar[tuple[Unit, ...]] = ("rating", "user")
    messages: ClassVar[tuple[type[Message], ...]] = SHARED_VECTORS

    factors: int | None = None
    """Length of each user's and item's vector."""
    rounds: int | None = None
    """How often the parties' user vectors are averaged: T in the paper."""
    local_steps: int | None = None
    """Steps that each party takes between two averages, each with noise of its own: T' in the paper."""
    sampling: float | None = None
    """Probability with which each unit, a rating or a user, takes part in a step; 1 for all."""
    clipping: EmbeddingClipping | GradientClipping | None = None
    """What bounds the change that one rating, or one user, can make."""
    learning_rate: float | None = None
    """Size of the first step: what multiplies the sum of the gradients of all parties."""
    decay: float = 0.2
    """Size of the last steps, as a part of the first, to which it falls in a straight line."""
    decay_until: float = 1.0
    """Part of all steps after which the size stays as it is."""
    centre: float | None = None
    """The mean rating, if it is public. Left out, it is released with noise. Gradient clipping takes it off
    all ratings; embedding clipping only begins there."""
    mean_share: float | None = None
    """Part of the budget, roughly, that the mean rating costs if it is not public."""
    most_ratings: int | None = None
    """Ratings of each user that each party uses, where users are the unit: theta in the paper."""
    fine_tuning: int = 0
    """Steps at the end in which only item vectors move: kappa in the paper."""
    alone: bool = False
    """Whether parties never hear of each other: what cooperation is measured against."""
    aggregate: AnySum = field(default_factory=PlainSum)
    """How the parties' answers about users are added up. Where only sums are seen and a round has one step,
    the parties' noise on them adds up to that of one; item vectors always have all of their party's."""
    grain: float | None = None
    """What 1 stands for where gradients are summed as whole numbers."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_settings(self)
        check_sum(self)
        whole(fine_tuning=self.fine_tuning or None)

    @classmethod
    def as_published(cls, parties: int = 1) -> "VerticalMF":
        """Return the setting of Li et al. (2022), section 4.3, for so many parties.

        It begins at the middle of the scale unless `centre` is given; where ratings are protected, ratings
        are sampled, not users.
        """
        whole(parties=parties)
        return cls(
            factors=20,
            rounds=100,
            local_steps=10,
            sampling=0.01,
            clipping=EmbeddingClipping(),
            decay=0.1,
            decay_until=0.8,
            most_ratings=10 if parties == 1 else 5 if parties <= 10 else 2,
        )

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only."""
        check_scale(self, facts)
        noise = 0.0 if budget is None else one_release(budget, facts)
        by_user = budget is not None and budget.unit == "user"
        if only_sums(self, facts) and (by_user or self.alone):
            raise Refused(_NOT_FOR_SUMS)
        averaged = sum(facts.users) if facts.searched else facts.rating_count
        few = self.most_ratings or (10 if len(facts.parties) == 1 else 5)
        steps = Steps.chosen(
            self,
            UsualSteps.of(facts, noise),
            clipping=GradientClipping(limit=LIMIT),
            mean_share=mean_share(facts, noise, averaged),
            most_ratings=few if by_user else None,
        )
        return with_rate(with_grain(self, steps, facts, noise, both=True), steps, facts, budget)

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:
        """Return everything that a party will release; noise is relative."""
        steps, items = Steps.of(self), facts.items[facts.place(party)]
        numbers = (facts.user_count + items) * steps.factors
        both, grain = steps.reach(facts, unit, both=True), grain_of(self, facts)
        rounds = steps.asks_mean + steps.rounds + 1  # the last one is about items
        if grain is not None:
            releases = [summed_release(STEPS, both, grain, numbers, steps)]
        else:
            releases = [steps.release(STEPS, both, numbers, times=steps.local_steps, rounds=steps.rounds)]
        if self.fine_tuning:
            alone = steps.reach(facts, unit, both=False)
            tuned = steps.release(FINE_TUNING, alone, items * steps.factors, times=self.fine_tuning, rounds=1)
            releases += [replace(tuned, first=rounds)]
        if steps.asks_mean:
            releases += [mean_release(facts, unit, steps, summed=grain is not None)]
        return Schedule(
            releases=tuple(releases),
            rounds=rounds,
            parties=len(facts.parties),
            shared_units=unit == "user",
            users=facts.user_count,
        )

    def participant(self, home: Home) -> VerticalParticipant:
        """Return a party's half."""
        return VerticalParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> VerticalCoordinator:
        """Return the coordinator's half."""
        return VerticalCoordinator(self, facts, seed)

    def promise(self, facts: Facts, budget: Budget) -> Promise:
        """Return what the guarantee says besides its numbers."""
        warnings = () if budget.unit == "rating" else (_USER_VECTORS,)
        return Promise(
            against=("the coordinator", "the other parties", "everyone who sees the vectors"),
            covers=("User vectors and item vectors, in every round and at the end.",),
            does_not_cover=(
                "Who the users are, which items there are, and how many ratings each party has: public.",
                "What a party shows to its own users.",
                *public_items_lines(facts.public_items),
            ),
            assumptions=sum_assumptions(self, facts),
            warnings=(*warnings, *two_parties(facts), *self.hints(facts)),
            why_not=sum_doubts(self, facts),
            shared=own_shares(self, facts, STEPS),
        )

    def hints(self, facts: Facts) -> tuple[str, ...]:
        """Return what whoever plans or runs it should know about its sums."""
        return sum_hints(self, facts)


_NOT_FOR_SUMS = (
    "VerticalMF sums answers only where each rating is protected and parties hear of each other: a user has "
    "ratings at all parties, so that she changes a sum by what all of them send, and shared noise would be "
    'too little. Use unit "rating", or PlainSum() (--sum plain).'
)
_USER_VECTORS = (
    "A user vector that is released may not depend on that user, if users are the unit: such vectors carry "
    'next to nothing. Protect each rating instead (unit "rating"), or keep user vectors at home (horizontal).'
)
