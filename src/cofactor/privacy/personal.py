"""`PersonalBudget`: a budget of which some users, or items, allow only a part; and what that costs whom."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cofactor.config import one_of, positive
from cofactor.errors import ConfigError
from cofactor.privacy.budget import PERSONAL, SMALLEST_EPSILON, Adjacency, Budget, Personal, Unit
from cofactor.privacy.events import Event
from cofactor.privacy.weights import HDPMF_ITEMS, HDPMF_USERS, Group, Weights, taking_part


@dataclass(frozen=True, kw_only=True, eq=False)
class PersonalBudget(Budget):
    """The most that may be learned about one unit, of which its weight allows a part.

    A rating of item j by user i is promised epsilon beta_i gamma_j; a user, epsilon beta_i. Users' weights
    stay with them: no message, run folder or ledger holds any.
    """

    delta: float = 1e-9
    """Probability with which epsilon may fail. Noise may need none; a hidden sum may fail."""
    unit: Unit = "rating"
    adjacency: Adjacency = None  # type: ignore[assignment]
    """As in `Budget`; if nothing is said "value" for ratings, as HDPMF has it, and "empty" for users."""
    users: Weights = field(default_factory=Weights.equal)
    """Of users: private, but for the policy."""
    items: Weights = field(default_factory=Weights.equal)
    """Of items: public, because everybody who rates an item must know its weight. For unit "rating" only."""
    mechanism: Personal = "stretching"
    """"stretching": contributions are shrunk by their weight. "sampling": units take part by chance, the
    seldomer the smaller their weight, and noise is made for `threshold`."""
    threshold: float | None = None
    """With "sampling", what is lost by whoever takes part: by default about the mean of all promises."""

    # Weights cannot be compared, so neither can these.
    __eq__, __hash__ = object.__eq__, object.__hash__

    def __post_init__(self) -> None:
        one_of(PERSONAL, mechanism=self.mechanism)
        object.__setattr__(self, "personal", self.mechanism)
        given: object = self.adjacency
        if given is None:
            object.__setattr__(self, "adjacency", "value" if self.unit == "rating" else "empty")
        super().__post_init__()
        if not isinstance(self.users, Weights) or not isinstance(self.items, Weights):
            raise ConfigError("users and items are Weights, such as Weights.by({17: 0.2}, otherwise=1.0).")
        if self.unit == "user" and (self.items.groups or self.items.expected != 1.0):
            raise ConfigError(
                'items have weights only where single ratings are protected: unit "rating". Of users, '
                "everything they rated is protected alike."
            )
        if self.threshold is not None:
            positive(threshold=self.threshold)
            if self.mechanism != "sampling" or self.threshold > self.epsilon:
                raise ConfigError(f'threshold is for "sampling", and at most epsilon ({self.epsilon:g}).')

    @classmethod
    def as_published(cls, *, seed: int = 0, epsilon: float = 1.0, **settings: Any) -> "PersonalBudget":
        """Draw weights as HDPMF's Table 2 specifies them: a simulation of 54% conservative users."""
        weights = {
            "users": Weights.drawn(HDPMF_USERS, seed=seed),
            "items": Weights.drawn(HDPMF_ITEMS, seed=seed + 1_000_003),
        }
        return cls(epsilon=epsilon, **(weights | settings))

    @property
    def public(self) -> Budget:
        """What everybody may know, and noise is made for: the budget of weight 1, or the threshold."""
        epsilon = self.epsilon if self.mechanism == "stretching" else self.sampled_at
        return Budget(
            epsilon=epsilon,
            delta=self.delta,
            unit=self.unit,
            adjacency=self.adjacency,
            personal=self.mechanism,
            unsampled=None if self.mechanism == "stretching" else self.epsilon,
        )

    @property
    def sampled_at(self) -> float:
        """What whoever takes part loses, if units are sampled: from public numbers."""
        return self.threshold or self.epsilon * self.users.expected * self.items.expected

    def for_user(self, user: Any) -> Budget:
        """Return what a user is promised; of her ratings, for an item of weight 1."""
        return self._part(float(self.users.of([user])[0]))

    def for_rating(self, user: Any, item: Any) -> Budget:
        """Return what a user is promised for her rating of an item."""
        return self._part(float(self.users.of([user])[0] * self.items.of([item])[0]))

    def _part(self, weight: float) -> Budget:
        most = self.epsilon if self.mechanism == "stretching" else self.sampled_at
        own = max(min(self.epsilon * weight, most), SMALLEST_EPSILON)
        return Budget(epsilon=own, delta=self.delta, unit=self.unit, adjacency=self.adjacency)


@dataclass(frozen=True, kw_only=True)
class PersonalPromise:
    """What releases cost a unit of any weight. It names groups, and nobody."""

    mechanism: Personal
    epsilon: float
    """What weight 1 was promised."""
    groups: tuple[Group, ...]
    """Of users."""
    expected: float = 1.0
    """About what weights of users are on average: public."""
    largest_item: float = 1.0
    """The largest weight that an item has: what a user's least protected rating is multiplied by."""
    weighs_items: bool = False
    """Whether items have weights of their own."""
    threshold: float | None = None
    """With "sampling", what noise was made for."""
    events: tuple[Event, ...] = ()
    """What concerns one unit of weight 1."""

    def seen_by(self, weight: float) -> tuple[list[Event], float]:
        """Return what a unit of this weight was part of, and with which probability."""
        if self.threshold is None:
            return weighed(self.events, weight), 1.0
        return list(self.events), float(taking_part(np.array([weight]), self.epsilon, self.threshold)[0])


def taken_part(epsilon: float, chance: float) -> float:
    """Return what is lost by something that costs epsilon, if a unit takes part in it with some chance."""
    return epsilon if chance >= 1 else float(np.logaddexp(math.log1p(-chance), math.log(chance) + epsilon))


def weighed(events: Iterable[Event], weight: float) -> list[Event]:
    """Return what the same releases are to a unit of this weight: the same noise, and a smaller bound."""
    if not 0 < weight <= 1:
        raise ConfigError(f"a weight lies above 0 and at most at 1, got {weight:g}.")
    return [_weighed(event, weight) for event in events if not _tells_nothing(event, weight)]


def _weighed(event: Event, weight: float) -> Event:
    if not event.bound.weighed or weight == 1:
        return event
    bound = replace(event.bound, size=event.bound.size * weight)
    return replace(event, bound=bound, mechanism=event.mechanism.scaled(1 / weight))


def _tells_nothing(event: Event, weight: float) -> bool:
    """Say whether a contribution is so small that no whole number is left of it."""
    return event.bound.weighed and event.mechanism.exact and event.bound.size * weight < 1


def worst_of(events: Iterable[Event], budget: Budget) -> tuple[Event, ...]:
    """Return what concerns one unit at the party where units lose most, if none is at two parties."""
    from cofactor.privacy.accountant import spent  # it takes a second to load

    by_party: dict[str, list[Event]] = {}
    for event in events:
        by_party.setdefault(event.by, []).append(event)
    kinds = dict.fromkeys(of_one_unit(by_party[party]) for party in sorted(by_party))

    def lost(own: tuple[Event, ...]) -> float:
        return spent(own, budget.delta, unit=budget.unit, adjacency=budget.adjacency).epsilon

    return next(iter(kinds), ()) if len(kinds) < 2 else max(kinds, key=lost)


def of_one_unit(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return events without their story, those alike counted together."""
    counts: Counter[Event] = Counter()
    for event in events:
        counts[event.once()] += event.count
    return tuple(event.times(count) for event, count in counts.items())
