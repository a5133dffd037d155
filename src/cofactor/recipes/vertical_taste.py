"""`VerticalTaste`: parties with different items of the same users tell each other a little about each user.

Every party keeps its raw ratings at home and uses them there. One private release about items and one small
noisy message about each user are all that leave it; a guard sees to it that listening does not hurt.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from cofactor.config import fraction, whole
from cofactor.data.public_items import public_items_lines
from cofactor.errors import ConfigError, Refused
from cofactor.factors.bayes import Bayes
from cofactor.federation.door import OVERFLOW
from cofactor.federation.halves import Facts, Home, Promise
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import Gaussian, Skellam
from cofactor.privacy.schedule import Release, Schedule
from cofactor.recipes.summed_steps import grain_for
from cofactor.recipes.summing_mode import check_sum
from cofactor.recipes.sums import AnySum, PlainSum, own_share
from cofactor.recipes.taste_coordinator import TasteCoordinator
from cofactor.recipes.taste_items import ITEM_BOUND
from cofactor.recipes.taste_letters import (
    ITEM_SUMS,
    USER_MESSAGES,
    TasteBegin,
    TasteDirections,
    TasteItems,
    TasteShares,
    TasteSums,
    TasteTotal,
)
from cofactor.recipes.taste_message import MESSAGE_BOUND, in_grains
from cofactor.recipes.taste_participant import TasteParticipant
from cofactor.recipes.taste_shares import Shares

WHY_NOT_USERS = (
    "VerticalTaste protects single ratings. Noise that hides all ratings of a user at once also hides her "
    "taste, and joining would help nobody. Use unit='rating'."
)


@dataclass(frozen=True, kw_only=True)
class VerticalTaste:
    """Parties exchange noisy sums about each user's taste, and fit their own models at home.

    What is left out is chosen from public numbers: epsilon and delta, users, ratings, features of items.
    """

    directions: int | None = None
    """In how many directions tastes are told, besides generosity."""
    item_share: float = 0.1
    """Share of the budget for the release about items; the messages about users have the rest."""
    aggregate: AnySum = field(default_factory=PlainSum)
    """How messages about users are added up: whether each is seen, or only their sum."""
    grain: float | None = None
    """What 1 stands for where messages about users are summed as whole numbers."""
    publish: bool = False
    """Whether to make a model that everyone may see, too; it predicts worse than the parties' own."""
    home: Bayes = field(default_factory=Bayes)
    """The model that each party fits at home."""

    split: ClassVar[Split] = "vertical"
    units: ClassVar[tuple[Unit, ...]] = ("rating",)
    messages: ClassVar[tuple[type[Message], ...]] = (
        TasteBegin,
        TasteItems,
        TasteDirections,
        TasteSums,
        TasteShares,
        TasteTotal,
    )

    def __post_init__(self) -> None:
        whole(directions=self.directions)
        fraction(item_share=self.item_share)
        check_sum(self)
        if not isinstance(self.home, Bayes):
            raise ConfigError(f"home must be Bayes(), got {self.home!r}.")
        if not isinstance(self.publish, bool):
            raise ConfigError(f"publish must be true or false, got {self.publish!r}.")

    def settled(self, facts: Facts, budget: Budget | None) -> "VerticalTaste":
        """Return the recipe with all choices made."""
        if budget is not None and budget.unit != "rating":
            raise Refused(WHY_NOT_USERS)
        noise = noise_for(budget)
        per_rating = noise * facts.user_count / max(facts.rating_count, 1)
        chosen = self.directions or directions_for(per_rating, facts.features)
        settled = replace(self, directions=min(chosen, facts.features + 2))
        if self.aggregate.layers(len(facts.parties)) is None:
            return settled
        return replace(settled, grain=self.grain or grain_for(MESSAGE_BOUND.size, 1.5 * noise))

    @property
    def width(self) -> int:
        """Numbers in a direction, the constant one included. Only when settled."""
        assert self.directions is not None
        return 1 + self.directions

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:
        """Return a party's two releases; noise is relative."""
        if unit != "rating":
            raise Refused(WHY_NOT_USERS)
        items, numbers = facts.items[facts.place(party)], facts.user_count * 2 * self.width
        about_users = _release(USER_MESSAGES, MESSAGE_BOUND, numbers, 1 - self.item_share, first=2)
        if self.shares(facts) is not None and self.grain is not None:
            noise = Skellam(noise_multiplier=(1 - self.item_share) ** -0.5)
            about_users = replace(about_users, mechanism=noise, bound=in_grains(self.grain), slack=OVERFLOW)
        releases = (_release(ITEM_SUMS, ITEM_BOUND, 2 * items, self.item_share), about_users)
        return Schedule(releases=releases, rounds=2, parties=len(facts.parties), users=facts.user_count)

    def participant(self, home: Home) -> TasteParticipant:
        """Return the party's half."""
        return TasteParticipant(home, width=self.width, shares=self.shares(home.facts), bayes=self.home)

    def coordinator(self, facts: Facts, seed: int) -> TasteCoordinator:  # noqa: ARG002
        """Return the coordinator's half; nothing in it is left to chance."""
        return TasteCoordinator(facts, width=self.width, shares=self.shares(facts), publish=self.publish)

    def shares(self, facts: Facts) -> Shares | None:
        """Return how messages about users are summed; None if each is seen. Only when settled."""
        layers = self.aggregate.layers(len(facts.parties))
        if layers is None:
            return None
        assert self.grain is not None
        return Shares(self.grain, layers)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002
        """Return what the guarantee says besides its numbers."""
        parties = len(facts.parties)
        return Promise(
            against=("the coordinator", "the other parties", "everyone who sees what was released"),
            covers=(
                "Each rating: that it was given, of which item, and how high it is.",
                *(("The published model is made from what was released, and nothing else.",) * self.publish),
            ),
            does_not_cover=(
                "Who the users are, which items a party has and how many ratings it has: all parties know.",
                "All ratings of one user together: what they have in common can show through the noise.",
                "A party's own model, which is made from its ratings as they are and stays with the party.",
                *public_items_lines(facts.public_items),
            ),
            assumptions=self.aggregate.assumptions(parties),
            warnings=_warnings(parties),
            why_not=self.aggregate.why_not(parties),
            shared={USER_MESSAGES: own_share(self.aggregate, parties)},
        )


def directions_for(noise: float, features: int) -> int:
    """Choose in how many directions to tell tastes, from the noise divided by the ratings of a user.

    The less noise for each rating, the more directions stand out from it; a few too many do little harm.
    There are no more than items have features, and two: popularity and bias. Chosen on MovieLens 1M.
    """
    enough = features + 2
    return enough if noise * enough <= 0.17 else min(max(round(0.17 / noise), 6), enough)


def _release(what: str, bound: Bound, dimension: int, share: float, *, first: int = 1) -> Release:
    """Return a release that is made once, and costs this share of the budget."""
    return Release(
        what=what,
        mechanism=Gaussian(noise_multiplier=share**-0.5),
        bound=bound,
        dimension=dimension,
        bytes_per_number=8.0,
        rounds=1,
        first=first,
    )


def noise_for(budget: Budget | None) -> float:
    """Return the noise multiplier that one release with the whole budget would need."""
    if budget is None:
        return 0.0
    once = Schedule(releases=(_release("everything", MESSAGE_BOUND, 1, 1.0),), rounds=1)
    mechanism = calibrated(once, budget).releases[0].mechanism
    assert isinstance(mechanism, Gaussian)
    return mechanism.noise_multiplier


def _warnings(parties: int) -> tuple[str, ...]:
    if parties > 2:
        return ()
    return (
        "With fewer than three parties a sum hides nothing from the other party: noise is all that protects.",
    )
