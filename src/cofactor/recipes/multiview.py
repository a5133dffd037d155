"""`MultiViewMF`: ratings, attributes of users and features of items, factorized together.

R ~ PQ', X ~ PU', Y ~ QV' (Mai and Pang, PrivMVMF, after Flanagan et al. 2020). Users keep their ratings,
attributes and vectors P at home, an item server keeps the features, and the coordinator moves Q and U by sums
of gradients alone. Attributes and features tell about users and items that have no ratings yet.

Numbers in brackets are the paper's equations. Some are misprinted: the derivatives by U (5) and V (13) leave
out lambda1, which changes nothing where it is 1; those by p (10) and V (13) sum over the wrong index; and the
penalties of (14) and (16) are on p and q, as their solutions say.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cofactor.config import fraction, one_of, plain_numbers, positive, whole
from cofactor.crypto.shared_key import SharedKey
from cofactor.data.public_items import PublicItems, public_items_lines
from cofactor.errors import ConfigError, Refused, RunError
from cofactor.federation.door import OVERFLOW, Door
from cofactor.federation.halves import Facts, Home, Promise
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.events import Bound
from cofactor.privacy.fixed_point import FixedPoint
from cofactor.privacy.mechanisms import Skellam
from cofactor.privacy.schedule import Release, Schedule
from cofactor.recipes.local_steps import shortened
from cofactor.recipes.multiview_halves import ViewsCoordinator, ViewsParticipant
from cofactor.recipes.multiview_items import ItemServer
from cofactor.recipes.multiview_letters import ITEM_SERVER, MULTI_VIEW, SUMS
from cofactor.recipes.multiview_weights import InclUnc, ObsOnly, SampledUnrated
from cofactor.recipes.opened_sums import EncryptedSum
from cofactor.recipes.summing_mode import ONE_USER, check_sum, playable, two_parties
from cofactor.recipes.sums import AnySum, SecureSum, own_share
from cofactor.recipes.usual_steps import one_release

_RATING = (
    "MultiViewMF cannot protect single ratings: a user's vector is fitted to all of the user's ratings and "
    "then multiplies each of them, so one rating changes all that the user contributes. Protect users: unit "
    '"user".'
)
_READ_OFF = (
    "How attributes are coded was read off the users' own table: which values at least some of them share, "
    "means, spreads and ends of ranges. State the coding by hand, from what everybody knows: "
    "Coding.stated, or [attributes] in a --config file."
)
_PUBLIC = (
    "Which items and attributes there are, how attributes are coded, about how many ratings a device has, or "
    "exactly how many users and ratings a party has, and who answers in which round: public."
)
_WITH_NOISE = (
    "Whole tables of gradients need much noise: on MovieLens 1M at epsilon 4, ratings are at best hardly "
    "better predicted than from users' own means. Lists stay useful with unrated=InclUnc(). SecureALS does "
    "better at both."
)
_ROUNDS, _PRIVATE_ROUNDS = 200, 40
"""10 iterations of 20 epochs in the paper; noise grows with the root of how many there are."""
_MOST = 128.0
"""The largest number that one user adds to a sum where nothing is bounded, on a scale that ends at 5. On
MovieLens 1M the largest is 61."""
_BITS = 26
"""In how many bits such a number is counted: with a million users the sum of all has 47."""
_LONGEST = 50.0
"""The longest vector that is believed, in roots of the highest rating. On MovieLens the longest is 1.9."""
_LIMIT = 8.0
"""The longest table of gradients of one user, on a scale that ends at 5."""


@dataclass(frozen=True, kw_only=True)
class MultiViewMF:
    """Factorization of ratings and side tables, for devices, or for parties who hold different users.

    What is left out is chosen when the federation is known, from public numbers only.
    """

    split: ClassVar[Split] = "on-device"
    splits: ClassVar[tuple[Split, ...]] = ("on-device", "horizontal")
    units: ClassVar[tuple[Unit, ...]] = ("user",)
    messages: ClassVar[tuple[type[Message], ...]] = MULTI_VIEW
    takes_attributes: ClassVar[bool] = True
    coded_items: ClassVar[bool] = True

    factors: int = 6
    """Length of each vector: K in the paper."""
    rounds: int | None = None
    """How often gradients are added up."""
    unrated: ObsOnly | InclUnc | SampledUnrated = field(default_factory=SampledUnrated)
    """How what a user has not rated counts."""
    update: Literal["semi-als", "sgd"] = "semi-als"
    """How vectors of users and of features move: to where they are best, or by a step."""
    adam_rate: float = 0.05
    """Size of the coordinator's steps: gamma."""
    adam_first: float = 0.5
    """What stays of the mean gradient from step to step: beta1."""
    adam_second: float = 0.99
    """What stays of the mean square: beta2."""
    adam_tiny: float = 1e-8
    """What keeps it from being divided by 0: epsilon in the paper."""
    side_weight: float = 1.0
    """Weight of attributes and features: lambda1."""
    penalty: float = 10.0
    """Penalty on the squares of all vectors: lambda2."""
    user_rate: float = 1.0
    """Size of steps where `update` is "sgd", relative to the trace of half the curvature: below 2, none
    overshoots. The paper takes the coordinator's 0.05 for the gradient itself, which overshoots for every
    user of MovieLens 100K."""
    limit: float | None = None
    """Where users are protected, the longest that all gradients of one user may be together."""
    grain: float | None = None
    """What 1 stands for where gradients are summed as whole numbers."""
    public_items: PublicItems | None = None
    """Public numbers about items, declared beforehand."""
    aggregate: AnySum = field(default_factory=lambda: SecureSum(dropout=0.3, colluding=0.1))
    """How gradients are added up, how many devices may drop out, and how many may collude."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(factors=self.factors, rounds=self.rounds)
        positive(adam_rate=self.adam_rate, adam_tiny=self.adam_tiny, side_weight=self.side_weight)
        positive(penalty=self.penalty, user_rate=self.user_rate, limit=self.limit)
        fraction(adam_first=self.adam_first, adam_second=self.adam_second)
        one_of(("semi-als", "sgd"), update=self.update)
        if not (1e-6 <= self.penalty <= 1e6 and 1e-6 <= self.side_weight <= 1e6):
            raise ConfigError("penalty and side_weight must lie between 10^-6 and 10^6.")
        if self.user_rate >= 2:
            raise ConfigError(f"user_rate must be below 2, or steps overshoot; got {self.user_rate:g}.")
        if not isinstance(self.unrated, ObsOnly | InclUnc | SampledUnrated):
            raise ConfigError(
                f"unrated must be ObsOnly(), InclUnc() or SampledUnrated(), got {self.unrated!r}."
            )
        if not isinstance(self.public_items, PublicItems | None):
            raise ConfigError("public_items must be PublicItems, such as PublicItems.coded(table).")
        check_sum(self)

    @classmethod
    def as_published(cls) -> "MultiViewMF":
        """Return the setting of Mai and Pang, Table II: all its numbers, 10 x 20 rounds, and one shared key.

        Decoys are drawn once here, and every message holds all items.
        """
        return cls(
            rounds=_ROUNDS,
            unrated=SampledUnrated(alpha=0.1, rho=1.0),
            aggregate=EncryptedSum(scheme=SharedKey()),
        )

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only."""
        if budget is not None and budget.unit != "user":
            raise Refused(_RATING)
        chosen = replace(
            self,
            rounds=self.rounds or (_ROUNDS if budget is None else _PRIVATE_ROUNDS),
            public_items=facts.public_items,
            aggregate=playable(self.aggregate, facts),
        )
        if budget is not None and self.limit is None:
            chosen = replace(chosen, limit=_LIMIT * _unit(facts))
        return replace(chosen, grain=self.grain or chosen._grain(facts, budget))

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:  # noqa: ARG002 (all send the same)
        """Return everything that a party will release; noise is relative."""
        dimension = self._dimension(facts)
        most = self.grid().whole_limit(self.longest(), dimension)
        release = Release(
            what=SUMS,
            mechanism=Skellam(),
            bound=Bound(size=float(most), norm="l2", unit="user"),
            dimension=dimension,
            rounds=self.turns,
            slack=OVERFLOW,
        )
        return Schedule(
            releases=(release,), rounds=self.turns, parties=len(facts.parties), users=facts.user_count
        )

    def participant(self, home: Home) -> ViewsParticipant:
        """Return the half of a device, a party, or a cohort of devices."""
        return ViewsParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> ViewsCoordinator:
        """Return the coordinator's half."""
        return ViewsCoordinator(self, facts, seed)

    def roles(self, facts: Facts) -> tuple[str, ...]:
        """Return who takes part besides: the item server, if items have features."""
        return () if facts.public_items is None else (ITEM_SERVER,)

    def role(self, name: str, facts: Facts, door: Door, seed: int) -> ItemServer:  # noqa: ARG002
        """Return the item server's half."""
        return ItemServer(self, facts, door)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002 (the same for all budgets)
        """Return what the guarantee says besides its numbers."""
        share = {} if facts.cohort else {SUMS: own_share(self.aggregate, facts.summed)}
        read_off = facts.attributes is not None and facts.attributes.read_off
        return Promise(
            against=("the coordinator", "the item server", "the other parties", "everyone who sees vectors"),
            covers=(
                "Vectors of items, of attributes and of features, in every round and at the end.",
                "All that one user contributes, by ratings and by attributes together. Who has rated nothing "
                "contributes nothing, whatever the attributes.",
            ),
            does_not_cover=(
                _PUBLIC,
                *public_items_lines(facts.public_items),
                "What a device or a party shows to its own users: made from raw ratings, it stays there.",
                ONE_USER,
            ),
            warnings=(*two_parties(facts), *((_READ_OFF,) if read_off else ()), *self.hints(facts)),
            assumptions=self.aggregate.assumptions(facts.summed),
            why_not=self.aggregate.why_not(facts.summed),
            shared=share,
        )

    def hints(self, facts: Facts) -> tuple[str, ...]:  # noqa: ARG002 (the same for all federations)
        """Say what noise leaves of it."""
        return (_WITH_NOISE,)

    @property
    def turns(self) -> int:
        """How many rounds there are. When settled."""
        if self.rounds is None:
            raise RunError("MultiViewMF is not settled: rounds are still open.")
        return self.rounds

    def grid(self) -> FixedPoint:
        """Return how gradients become whole numbers. When settled."""
        if self.grain is None:
            raise RunError("MultiViewMF is not settled: grain is still open.")
        return FixedPoint(step=self.grain)

    def longest(self) -> float:
        """Return the longest table of gradients of one user. When settled with a budget."""
        if self.limit is None:
            raise RunError("MultiViewMF is not settled with a budget: limit is still open.")
        return self.limit

    def most(self, facts: Facts) -> int:
        """Return the largest number, in grains, that a user adds to a sum where nothing is bounded."""
        return math.ceil(_MOST * _unit(facts) / self.grid().step)

    def shapes(self, facts: Facts) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        """Return the shapes of the tables of vectors: of items, attributes and features."""
        attributes = 0 if facts.attributes is None else facts.attributes.width
        features = 0 if facts.public_items is None else len(facts.public_items.names)
        return (facts.item_count, self.factors), (attributes, self.factors), (features, self.factors)

    def received(self, vectors: NDArray[Any], facts: Facts) -> NDArray[np.float64]:
        """Return vectors that came from outside; none is longer than can be believed."""
        return shortened(vectors, _LONGEST * math.sqrt(_largest(facts))).astype(np.float64)

    def _dimension(self, facts: Facts) -> int:
        items, attributes, _ = self.shapes(facts)
        return (items[0] + attributes[0]) * self.factors

    def _grain(self, facts: Facts, budget: Budget | None) -> float:
        """Choose a grid that is fine, and where there is noise coarse enough for it to be drawn."""
        if budget is None:
            return math.ldexp(1.0, math.floor(math.log2(_MOST * _unit(facts))) - _BITS)
        noises = facts.summed * own_share(self.aggregate, facts.summed)
        # As if Gaussian, and half as much again, in variance, for whole numbers.
        noise = one_release(budget, facts) * math.sqrt(1.5 * self.turns * noises)
        found = FixedPoint.fitting(
            limit=self.longest(), dimension=self._dimension(facts), noise_multiplier=noise
        )
        return found.step


def _unit(facts: Facts) -> float:
    """Return how large gradients are, relative to those on a scale that ends at 5: ratings times vectors."""
    return float((_largest(facts) / 5) ** 1.5)


def _largest(facts: Facts) -> float:
    return max(abs(facts.scale.low), abs(facts.scale.high))
