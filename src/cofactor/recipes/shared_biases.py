"""`SharedBiases`: a few sums about items, with noise, and everything else at home.

Users tell how many they are and how high they rate, and then, in a few rounds, which items they have rated
and how far their ratings lie from what is expected. Each message has length 1 as a whole. Item biases follow
from these sums, with popularity and public features where sums tell little; users' slopes on them are fitted
at home, and cost no privacy.
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from cofactor.config import not_negative, plain_numbers, positive
from cofactor.data.public_items import PublicItems
from cofactor.errors import ConfigError, Refused, RunError
from cofactor.factors.bayes import Bayes
from cofactor.federation.door import OVERFLOW
from cofactor.federation.halves import Facts, Home, Promise
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.fixed_point import FixedPoint
from cofactor.privacy.mechanisms import Skellam
from cofactor.privacy.schedule import Release, Schedule
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.item_halves import ItemCoordinator, ItemParticipant
from cofactor.recipes.item_letters import (
    GAIN_SUM,
    USER_SUMS,
    GainAsked,
    GainSum,
    ItemAndSpreadSums,
    ItemsFinal,
    ItemsKnown,
    ItemSums,
    UsersAsked,
    UserSums,
    item_sums_of,
    spread_sums_of,
)
from cofactor.recipes.item_promise import promise_of
from cofactor.recipes.item_rounds import ItemRound, check_rounds, item_columns, usual_rounds
from cofactor.recipes.item_sums import GAIN_LIMIT, SPREAD_LIMIT, bound_of
from cofactor.recipes.item_weights import least_weight, mean_part, stretches
from cofactor.recipes.projected_steps import Sketch
from cofactor.recipes.summing_mode import check_sum, playable
from cofactor.recipes.sums import AnySum, SecureSum, own_share
from cofactor.recipes.usual_steps import one_release

_RATING = (
    "{name} cannot protect single ratings: a user's residuals depend on all of the user's ratings, so one "
    'rating changes the whole message. Protect users: unit "user".'
)


@dataclass(frozen=True, kw_only=True)
class SharedBiases:
    """Item biases from noisy sums; users' slopes on popularity, bias and public features at home.

    What is left out is chosen when the federation is known, from public numbers only.
    """

    split: ClassVar[Split] = "on-device"
    splits: ClassVar[tuple[Split, ...]] = ("on-device", "horizontal")
    units: ClassVar[tuple[Unit, ...]] = ("user",)
    takes_implicit: ClassVar[bool] = True
    takes_weights: ClassVar[tuple[Unit, ...]] = ("user",)
    messages: ClassVar[tuple[type[Message], ...]] = (
        GainAsked,
        GainSum,
        UsersAsked,
        UserSums,
        ItemsKnown,
        ItemSums,
        ItemAndSpreadSums,
        ItemsFinal,
    )

    item_rounds: tuple[ItemRound, ...] | None = None
    """What is asked about items, round by round."""
    reduction: float = 1.0
    """By how much fewer rows items are mixed down to before anything leaves, afresh in every round (count
    sketch): messages are so much shorter, and items that share a row are harder to tell apart."""
    user_share: float = 0.01
    """Budget for the number of users and their mean, relative to those of the rounds."""
    gain_share: float = 0.02
    """Budget for the last question, whether users predict better with what is known of items than by
    themselves; if they do not, they stay by themselves. 0 not to ask."""
    public_items: PublicItems | None = None
    """Public numbers about items, declared beforehand."""
    aggregate: AnySum = field(default_factory=lambda: SecureSum(dropout=0.3, colluding=0.1))
    """How messages are added up, how many devices may drop out, and how many may collude."""
    home: Bayes | UsersOnly = field(default_factory=Bayes)
    """What a party of many users fits at home, if it predicts better than what all know together."""
    noise: float | None = None
    """Noise of a release that has a share of 1, which follows from the budget."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        positive(noise=self.noise or 1.0, user_share=self.user_share, reduction=self.reduction)
        not_negative(gain_share=self.gain_share)
        if self.reduction < 1:
            raise ConfigError(f"reduction must be at least 1, got {self.reduction:g}.")
        check_sum(self)
        check_rounds(() if self.item_rounds is None else self.item_rounds)
        if not isinstance(self.home, Bayes | UsersOnly):
            raise ConfigError(f"home must be Bayes() or UsersOnly(), got {self.home!r}.")
        if not isinstance(self.public_items, PublicItems | None):
            raise ConfigError("public_items must be PublicItems, such as PublicItems.of_table(table).")

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only."""
        if budget is not None and budget.unit != "user":
            raise Refused(_RATING.format(name=type(self).__name__))
        chosen = replace(
            self,
            aggregate=playable(self.aggregate, facts),
            public_items=facts.public_items,
            noise=0.0 if budget is None else one_release(budget, facts),
        )
        assert chosen.noise is not None
        rounds = self.item_rounds
        if rounds is None:
            noise = chosen.noise * math.sqrt(chosen._noises(facts)) / mean_part(facts.weights)
            rounds = self._usual(noise, facts)
        if facts.implicit and any(each.factors or each.spread_share for each in rounds):
            raise ConfigError(
                "ratings that only tell that something happened have no residuals. Leave factors and "
                "spread_share out of item_rounds."
            )
        asked = self.gain_share if rounds and not facts.implicit else 0.0
        shares = self.user_share + asked + sum(each.share + each.spread_share for each in rounds)
        chosen = replace(chosen, item_rounds=rounds, gain_share=asked, noise=chosen.noise * math.sqrt(shares))
        if budget is None:
            return chosen
        made = calibrated(chosen.schedule(facts, "user", facts.parties[0]), budget).releases[0]
        assert isinstance(made.mechanism, Skellam)
        return replace(chosen, noise=made.mechanism.noise_multiplier * math.sqrt(self.user_share))

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:  # noqa: ARG002 (all send the same)
        """Return everything that a party will release; noise is relative."""
        releases = [self._release(USER_SUMS, facts)]
        releases += [self._release(item_sums_of(at + 1), facts) for at in range(len(self.steps))]
        releases += [
            self._release(spread_sums_of(at + 1), facts)
            for at, each in enumerate(self.steps)
            if each.spread_share
        ]
        releases += [self._release(GAIN_SUM, facts)] if self.gain_round else []
        return Schedule(
            releases=tuple(releases),
            rounds=self.gain_round or 1 + len(self.steps),
            parties=len(facts.parties),
            users=facts.user_count,
        )

    def participant(self, home: Home) -> ItemParticipant:
        """Return the half of a device, a party, or a cohort of devices."""
        return ItemParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> ItemCoordinator:
        """Return the coordinator's half."""
        return ItemCoordinator(self, facts, seed)

    def promise(self, facts: Facts, budget: Budget) -> Promise:
        """Return what the guarantee says besides its numbers."""
        return promise_of(self, facts, budget)

    @property
    def steps(self) -> tuple[ItemRound, ...]:
        """What is asked about items, round by round. When settled."""
        if self.item_rounds is None:
            raise RunError(f"{type(self).__name__} is not settled: item_rounds are still open.")
        return self.item_rounds

    @property
    def gain_round(self) -> int:
        """In which round it is asked whether it helped: the last; 0 if it is not. When settled."""
        return 2 + len(self.steps) if self.gain_share else 0

    @property
    def factor_count(self) -> int:
        """How many factors items have in the end. When settled."""
        return max((each.factors for each in self.steps), default=0)

    def grid(self, what: str, facts: Facts) -> FixedPoint:
        """Return how the numbers of a release become whole ones. When settled."""
        if self.noise is None:
            raise RunError(f"{type(self).__name__} is not settled: noise is still open.")
        noise = self.noise / math.sqrt(self._share(what)) * math.sqrt(self._noises(facts))
        return FixedPoint.fitting(
            limit=self._limit(what),
            dimension=self._dimension(what, facts),
            noise_multiplier=max(1.1 * noise, 1.0),
            least_weight=least_weight(facts.weights),
        )

    def noise_of(self, what: str, facts: Facts) -> float:
        """Return the deviation of the noise of a sum over all users. When settled."""
        grid, assumed = self.grid(what, facts), self.noise or 0.0
        limit = grid.whole_limit(self._limit(what), self._dimension(what, facts)) * grid.step
        return limit * assumed * math.sqrt(self._noises(facts) / self._share(what))

    def sketch(self, facts: Facts, seed: int, step: int) -> Sketch:
        """Return how items are mixed down in a round of sums about them, counted from 0: public."""
        return Sketch.drawn(facts.item_count, self._rows(facts), seed, f"items in round {step}")

    def _rows(self, facts: Facts) -> int:
        return math.ceil(facts.item_count / self.reduction)

    def _usual(self, noise: float, facts: Facts) -> tuple[ItemRound, ...]:
        return usual_rounds(noise, facts, features=facts.features, most_factors=0)

    def _release(self, what: str, facts: Facts) -> Release:
        """Return a release that is made once."""
        dimension = self._dimension(what, facts)
        most = self.grid(what, facts).whole_limit(self._limit(what), dimension)
        return Release(
            what=what,
            mechanism=Skellam(noise_multiplier=self._share(what) ** -0.5),
            bound=bound_of(most, weighed=stretches(facts.weights)),
            dimension=dimension,
            rounds=1,
            first={USER_SUMS: 1, GAIN_SUM: self.gain_round}.get(what) or 1 + _number(what),
            slack=OVERFLOW,
        )

    def _share(self, what: str) -> float:
        if what in (USER_SUMS, GAIN_SUM):
            return self.user_share if what == USER_SUMS else self.gain_share
        round = self._round(what)
        return round.spread_share if _is_spread(what) else round.share

    def _limit(self, what: str) -> float:
        """Return how long the message of one user may be."""
        if _is_spread(what):
            return SPREAD_LIMIT
        return {USER_SUMS: math.sqrt(2), GAIN_SUM: GAIN_LIMIT}.get(what, 1.0)

    def _dimension(self, what: str, facts: Facts) -> int:
        if what in (USER_SUMS, GAIN_SUM):
            return 2 if what == USER_SUMS else 1
        round = self._round(what)
        width = facts.features + 3 + round.factors
        if _is_spread(what):
            return width * (width + 1) // 2
        return self._rows(facts) * item_columns(round, facts)

    def _round(self, what: str) -> ItemRound:
        return self.steps[_number(what) - 1]

    def _noises(self, facts: Facts) -> float:
        """Return how many times the noise that is promised an opened sum has, as a variance."""
        return facts.summed * own_share(self.aggregate, facts.summed)


def _number(what: str) -> int:
    """Return which round of sums about items a release is of, counted from 1."""
    return int(what.rpartition(" ")[2])


def _is_spread(what: str) -> bool:
    return what.startswith(spread_sums_of(0)[:-1])
