"""`ProjectedMF`: devices sum sketches of their gradients, made private by coins (DPMF-RP).

A device fits its user at home, makes the gradient of all items, projects and flattens it, clips every
coordinate, and sends how many of a few bent coins fell heads for each. Nobody sees more than the sum; the
coordinator takes a step of Adam. What the paper claims and what holds is told in the docs, under sharp edges:
here every coordinate is clipped, which protects all that a user contributes, and the loss of the opened sum
is counted exactly.

The cases of the paper's ablation (Table 6) are settings: no coins, a training without a budget; no secure
sum, `aggregate=PlainSum()`; no projection, `reduction=1`.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cofactor.config import fraction, one_of, plain_numbers, positive, whole
from cofactor.errors import ConfigError, Refused, RunError
from cofactor.federation.door import OVERFLOW
from cofactor.federation.halves import Facts, Home, Promise
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.events import Bound
from cofactor.privacy.layers import Layers
from cofactor.privacy.mechanisms import PoissonBinomial
from cofactor.privacy.schedule import Release, Schedule
from cofactor.recipes.projected_coins import optimal_reduction, with_coins
from cofactor.recipes.projected_halves import COINS, Heads, ProjectedCoordinator, ProjectedParticipant
from cofactor.recipes.projected_paper import PUBLISHED_ROUNDS
from cofactor.recipes.projected_steps import HomeSteps, Reals, Sketch, padded
from cofactor.recipes.shared_vectors import Finished, Shared
from cofactor.recipes.summing_mode import ONE_USER, check_sum, playable, two_parties
from cofactor.recipes.sums import AnySum, SecureSum

Data = Literal["ml-100k", "ml-5m", "yelp"]
_RATING = (
    "ProjectedMF cannot protect single ratings: a user's vector is fitted to all of the user's ratings and "
    "then multiplies each of them, so one rating changes all that the device contributes. Protect users: "
    'unit "user".'
)
_NOT_ALL = (
    "participation below 1 is for simulations, Federation.on_device(ratings): a sum of real devices is made "
    "by all of them. Use participation=1."
)


@dataclass(frozen=True, kw_only=True)
class ProjectedMF:
    """Confidence-weighted matrix factorization on devices, from sketches of gradients.

    What is left out is chosen when the federation is known, from public numbers only.
    """

    split: ClassVar[Split] = "on-device"
    units: ClassVar[tuple[Unit, ...]] = ("user",)
    messages: ClassVar[tuple[type[Message], ...]] = (Shared, Finished, Heads)

    factors: int = 4
    """Length of each user's and item's vector: k in the paper."""
    rounds: int = 10
    """How often gradients are added up: T in the paper, which does not tell it."""
    participation: float = 1.0
    """Part of a simulation's devices that is asked in each round: beta. Who is asked is public, so it buys no
    privacy, and everybody is charged for all rounds; fewer devices send less, and drown more in noise."""
    reduction: float = 2.0
    """Items for each row of the sketch: m/p. With 1 nothing is projected."""
    rows: Literal["reduced", "optimal"] = "reduced"
    """How many rows the sketch has: by `reduction`, or by eq. 40 from public constants."""
    sketch: Literal["fresh", "fixed"] = "fresh"
    """A new sketch in every round, with items whole at the coordinator; or one for all, of which the items
    are made (Algorithm 2): then items that fall together share a vector, up to its sign."""
    confidence: float = 15.0
    """How much more a rating counts than an item without one: kappa."""
    penalty: float = 0.25
    """On users' vectors: lambda."""
    item_penalty: float = 0.9
    """On items' vectors, next to the sum over all users: mu."""
    largest_error: float | None = None
    """Where the error of a rating is clipped: e. Left out, a quarter of the scale."""
    user_limit: float = 0.001
    """The largest l1 norm of a user's vector where it makes a gradient: B_1. Predictions use all of it."""
    errors: Literal["clipped", "whole"] = "clipped"
    """Whether errors are those of the user's vector after that, as in Algorithm 2, or before."""
    clip: float | None = None
    """The largest coordinate of a flattened gradient, divided by the paper's Delta_1 / sqrt(p'), where
    Delta_1 is 4 e (1 + kappa) B_1 / beta. Left out, about half the deviation of a coordinate: clipping loses
    little, and all of the noise is in proportion to the bound."""
    learning_rate: float = 0.1
    """Of Adam: gamma."""
    first_decay: float = 0.9
    """Of Adam: beta_1."""
    second_decay: float = 0.8
    """Of Adam: beta_2."""
    predictions: Literal["ratings", "scores"] = "ratings"
    """What users' models predict: scores brought to the scale of ratings, at home; or scores as they are,
    which rank items alike and are no ratings."""
    spread: float = 0.1
    """Deviation of the coordinates at which items begin."""
    aggregate: AnySum = field(default_factory=lambda: SecureSum(dropout=0.3, colluding=0.1))
    """How answers are added up, how many devices may drop out, and how many may collude. With a plain sum
    every device's own coins must protect it."""
    trials: int | None = None
    """Coins for each coordinate: q. Left out, as few as spend the budget (section 4.3.1)."""
    theta: float | None = None
    """How far coins are bent at most. It follows from the budget; one that spends it already is kept."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(factors=self.factors, rounds=self.rounds, trials=self.trials)
        fraction(first_decay=self.first_decay, second_decay=self.second_decay)
        if not 0 < self.participation <= 1:
            raise ConfigError(f"participation must be above 0 and at most 1, got {self.participation}.")
        positive(
            confidence=self.confidence,
            penalty=self.penalty,
            item_penalty=self.item_penalty,
            largest_error=self.largest_error,
            user_limit=self.user_limit,
            clip=self.clip,
            learning_rate=self.learning_rate,
            spread=self.spread,
            theta=self.theta,
        )
        one_of(("reduced", "optimal"), rows=self.rows)
        one_of(("fresh", "fixed"), sketch=self.sketch)
        one_of(("clipped", "whole"), errors=self.errors)
        one_of(("ratings", "scores"), predictions=self.predictions)
        if not self.reduction >= 1:
            raise ConfigError(f"reduction must be at least 1, which projects nothing, got {self.reduction}.")
        check_sum(self)

    @classmethod
    def as_published(cls, data: Data = "ml-100k") -> "ProjectedMF":
        """Return the setting of the paper for one of its data sets, where that is stated.

        It does not state T: 60 rounds here. Its error analysis has m/p = 3. Nobody is said to drop out.
        """
        one_of(("ml-100k", "ml-5m", "yelp"), data=data)
        return cls(
            factors=20 if data == "yelp" else 14,
            rounds=PUBLISHED_ROUNDS,
            reduction=3.0,
            learning_rate=0.05,
            predictions="scores",
            largest_error=1.0 if data == "ml-100k" else 1.5,
            participation=0.1,
            sketch="fixed",
            clip=1.0,
            aggregate=SecureSum(dropout=0.0, colluding=0.0),
        )

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only."""
        if budget is not None and budget.unit != "user":
            raise Refused(_RATING)
        if self.participation < 1 and not facts.cohort:
            raise ConfigError(_NOT_ALL)
        often = facts.rating_count / facts.user_count
        chosen = replace(
            self,
            largest_error=self.largest_error or (facts.scale.high - facts.scale.low) / 4,
            # A column of weights is about as long as the root of a user's ratings, and her vector's k
            # coordinates share its norm: twice as large is a deviation.
            clip=self.clip or math.sqrt(max(often, 1.0)) / (4 * self.factors),
            aggregate=playable(self.aggregate, facts),
        )
        if self.rows == "optimal":
            chosen = replace(chosen, rows="reduced", reduction=optimal_reduction(chosen, facts, budget))
        return chosen if budget is None else with_coins(chosen, facts, budget)

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:  # noqa: ARG002 (all send the same)
        """Return everything that a device will release; noise is relative."""
        coins = self.coins(facts)
        if coins is None:
            raise RunError("ProjectedMF is not settled for a budget: theta is still open.")
        release = Release(
            what=COINS,
            mechanism=coins,
            bound=self.bound(facts),
            dimension=math.prod(self.answer_shape(facts)),
            rounds=self.rounds,
            bytes_per_number=((coins.trials * self.asked(facts)).bit_length() + 1) / 8,
            slack=OVERFLOW,
        )
        return Schedule(
            releases=(release,), rounds=self.rounds, parties=len(facts.parties), users=facts.user_count
        )

    def participant(self, home: Home) -> ProjectedParticipant:
        """Return the half of a device, or of a cohort of them."""
        return ProjectedParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> ProjectedCoordinator:
        """Return the coordinator's half."""
        return ProjectedCoordinator(self, facts, seed)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002 (the same for all budgets)
        """Return what the guarantee says besides its numbers."""
        asked, company = self.asked(facts), self.participants(facts)
        return Promise(
            against=("the coordinator", "the other devices", "everyone who sees the item vectors"),
            covers=("Item vectors, in every round and at the end.",),
            does_not_cover=(
                "Which items there are, about how many ratings a device has, who takes part, who is asked "
                "and who answers in which round, and how gradients are projected: public. That a device was "
                "not asked, or has dropped out, buys no privacy.",
                "What a device shows to its own user: made from raw ratings, it stays there.",
                ONE_USER,
            ),
            warnings=two_parties(facts),
            assumptions=self.aggregate.assumptions(asked),
            why_not=self.aggregate.why_not(asked),
            shared={} if facts.cohort or company == 1 else {COINS: 1 / company},
        )

    def asked(self, facts: Facts) -> int:
        """Return how many devices are asked in a round: two at least, where there are two."""
        return max(min(2, facts.summed), round(self.participation * facts.summed))

    def layers(self, facts: Facts) -> Layers | None:
        """Return who must be left for a sum of those asked to be opened; None if all answers are seen."""
        return self.aggregate.layers(self.asked(facts))

    def participants(self, facts: Facts) -> int:
        """Return how many honest devices an opened sum has at least."""
        layers = self.layers(facts)
        return 1 if layers is None else layers.fewest - layers.colluding

    def coins(self, facts: Facts) -> PoissonBinomial | None:
        """Return the coins that every device tosses; None in a run without a budget. When settled."""
        if self.theta is None or self.trials is None:
            return None
        return PoissonBinomial(trials=self.trials, theta=self.theta, participants=self.participants(facts))

    def bound(self, facts: Facts) -> Bound:
        """Return the largest coordinate of a device's message. When settled."""
        steps = self.steps()
        assert self.clip is not None
        published = 4 * steps.largest_error * (1 + steps.confidence) * steps.user_limit / self.participation
        size = self.clip * published / math.sqrt(self.answer_shape(facts)[0])
        return Bound(size=size, norm="max", unit="user", adjacency="replace")

    def farthest(self, facts: Facts) -> float:
        """Return what no coordinate exceeds even if it is not clipped. When settled."""
        steps = self.steps()
        weights = facts.item_count * (1 + steps.confidence) * steps.largest_error
        user = 2 * steps.user_limit / self.participation
        return user * weights / math.sqrt(self.answer_shape(facts)[0])

    def steps(self) -> HomeSteps:
        """Return how devices make gradients. When settled."""
        if self.largest_error is None:
            raise RunError("ProjectedMF is not settled: largest_error is still open.")
        return HomeSteps(
            penalty=self.penalty,
            confidence=self.confidence,
            largest_error=self.largest_error,
            user_limit=self.user_limit,
            participation=self.participation,
            clipped_errors=self.errors == "clipped",
        )

    def row_count(self, facts: Facts) -> int:
        """Return the rows of the sketch, without padding: p. When settled."""
        return max(1, round(facts.item_count / self.reduction))

    def question_shape(self, facts: Facts) -> tuple[int, int]:
        """Return the shape of what the coordinator sends: items, or what they are made of."""
        return (self.row_count(facts) if self.sketch == "fixed" else facts.item_count), self.factors

    def answer_shape(self, facts: Facts) -> tuple[int, int]:
        """Return the shape of a device's answer: rows with padding."""
        return padded(self.row_count(facts)), self.factors

    def sketch_of(self, round: int, facts: Facts, seed: int) -> Sketch:
        """Return the sketch of a round: public, from the seed."""
        purpose = "sketch" if self.sketch == "fixed" else f"sketch of round {round}"
        return Sketch.drawn(facts.item_count, self.row_count(facts), seed, purpose)

    def items_of(self, rows: NDArray[Any], facts: Facts, seed: int) -> Reals:
        """Return items' vectors from what the coordinator keeps: V = S^T B if the sketch is fixed."""
        wide = np.asarray(rows, np.float64)
        return self.sketch_of(1, facts, seed).spread(wide) if self.sketch == "fixed" else wide
