"""`HorizontalMF`: parties with different users of the same items factorize together (Li et al. 2022, sec. 5).

Only item vectors are shared, with noise. Users' vectors are fitted at home on raw ratings and stay there; in
the end each party fits its own strong model, with the released vectors as far as they help.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from cofactor.config import one_of, plain_numbers
from cofactor.data.public_items import public_items_lines
from cofactor.errors import Refused
from cofactor.factors.bayes import Bayes
from cofactor.federation.halves import Facts, Home, Promise
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.schedule import Schedule
from cofactor.recipes.clipping import EmbeddingClipping, GradientClipping
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.horizontal_halves import STEPS, HorizontalCoordinator, HorizontalParticipant
from cofactor.recipes.local_steps import mean_release
from cofactor.recipes.shared_vectors import SHARED_VECTORS
from cofactor.recipes.steps import Steps, check_scale, check_settings, with_rate
from cofactor.recipes.summed_steps import summed_release
from cofactor.recipes.summing_mode import (
    ONE_USER,
    check_sum,
    grain_of,
    noises,
    own_shares,
    sum_assumptions,
    sum_doubts,
    sum_hints,
    two_parties,
    with_grain,
)
from cofactor.recipes.sums import AnySum, PlainSum
from cofactor.recipes.usual_steps import USER_LIMIT, UsualSteps, mean_share, one_release

_RATING = (
    "HorizontalMF cannot protect single ratings: a user's vector is fitted to all of the user's ratings and "
    "then multiplies each of them, so one rating changes all that the user contributes (the claim of Li et "
    'al. 2022, Proposition 3, does not hold). Protect users: unit "user".'
)


@dataclass(frozen=True, kw_only=True)
class HorizontalMF:
    """Matrix factorization for parties who hold different users and the same items.

    What is left out is chosen when the federation is known, from public numbers only.
    """

    split: ClassVar[Split] = "horizontal"
    units: ClassVar[tuple[Unit, ...]] = ("user",)
    messages: ClassVar[tuple[type[Message], ...]] = SHARED_VECTORS

    factors: int | None = None
    """Length of each user's and item's vector."""
    rounds: int | None = None
    """How often the parties' item vectors are averaged: T in the paper."""
    local_steps: int | None = None
    """Steps that each party takes between two averages, each with noise of its own: T' in the paper."""
    sampling: float | None = None
    """Probability with which each user takes part in a step, in secret; 1 for all."""
    clipping: EmbeddingClipping | GradientClipping | None = None
    """What bounds the change that one user can make."""
    learning_rate: float | None = None
    """Size of the first step: what multiplies the sum of the gradients of all parties."""
    decay: float = 0.2
    """Size of the last steps, as a part of the first, to which it falls in a straight line."""
    decay_until: float = 1.0
    """Part of all steps after which the size stays as it is."""
    centre: float | None = None
    """The mean rating, if it is public. Left out, it is released with noise."""
    mean_share: float | None = None
    """Part of the budget, roughly, that the mean rating costs if it is not public."""
    most_ratings: int | None = None
    """Ratings of each user that a party uses for the steps: theta in the paper."""
    users: Literal["refitted", "pretrained", "trained along"] = "refitted"
    """When users are fitted at home: to every average; once, beforehand; or a step after every step."""
    home: Bayes | UsersOnly = field(default_factory=Bayes)
    """What each party fits in the end, at home."""
    aggregate: AnySum = field(default_factory=PlainSum)
    """How the parties' answers are added up. Where only sums are seen and a round has one step, the parties'
    noise adds up to that of one; with more steps every party adds all of its noise in each."""
    grain: float | None = None
    """What 1 stands for where gradients are summed as whole numbers."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_settings(self)
        check_sum(self)
        one_of(("refitted", "pretrained", "trained along"), users=self.users)

    @classmethod
    def as_published(cls) -> "HorizontalMF":
        """Return the setting of Li et al. (2022), section 5.3; fine-tuning uses our home model."""
        return cls(
            factors=20,
            rounds=100,
            local_steps=10,
            sampling=0.01,
            clipping=EmbeddingClipping(),
            decay=0.1,
            decay_until=0.8,
            most_ratings=10,
            users="pretrained",
        )

    @classmethod
    def synchronous(cls) -> "HorizontalMF":
        """Return HFL-synSGD, to which Li et al. compare: gradients are averaged after every single step."""
        return replace(cls.as_published(), rounds=1000, local_steps=1, users="trained along")

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only."""
        if budget is not None and budget.unit != "user":
            raise Refused(_RATING)
        check_scale(self, facts)
        noise = 0.0 if budget is None else one_release(budget, facts)
        embedding = isinstance(self.clipping, EmbeddingClipping)
        steps = Steps.chosen(
            self,
            UsualSteps.for_items(facts, noise, noises(self, facts)),
            clipping=GradientClipping(limit=USER_LIMIT),
            mean_share=mean_share(facts, noise, facts.user_count),
            most_ratings=self.most_ratings or (10 if embedding else None),
        )
        return with_rate(with_grain(self, steps, facts, noise, both=False), steps, facts, budget)

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:  # noqa: ARG002 (all send the same)
        """Return everything that a party will release; noise is relative."""
        steps, numbers = Steps.of(self), facts.item_count * Steps.of(self).factors
        reach, grain = steps.reach(facts, unit, both=False), grain_of(self, facts)
        if grain is not None:
            releases = [summed_release(STEPS, reach, grain, numbers, steps)]
        else:
            releases = [steps.release(STEPS, reach, numbers, times=steps.local_steps, rounds=steps.rounds)]
        if steps.asks_mean:
            releases += [mean_release(facts, unit, steps, summed=grain is not None)]
        return Schedule(
            releases=tuple(releases),
            rounds=steps.asks_mean + steps.rounds,
            parties=len(facts.parties),
            users=facts.user_count,
        )

    def participant(self, home: Home) -> HorizontalParticipant:
        """Return a party's half."""
        return HorizontalParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> HorizontalCoordinator:
        """Return the coordinator's half."""
        return HorizontalCoordinator(self, facts, seed)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002 (the same for all budgets)
        """Return what the guarantee says besides its numbers."""
        return Promise(
            against=("the coordinator", "the other parties", "everyone who sees the item vectors"),
            covers=("Item vectors, in every round and at the end.",),
            does_not_cover=(
                "Which items there are, and how many users and ratings each party has: public.",
                "The parties' own models, which are made from raw ratings and stay with them.",
                ONE_USER,
                *public_items_lines(facts.public_items),
            ),
            assumptions=sum_assumptions(self, facts),
            warnings=(*two_parties(facts), *self.hints(facts)),
            why_not=sum_doubts(self, facts),
            shared=own_shares(self, facts, STEPS),
        )

    def hints(self, facts: Facts) -> tuple[str, ...]:
        """Return what whoever plans or runs it should know about its sums."""
        return sum_hints(self, facts)
