"""`Guarantee`: what may be said about privacy, and all that it rests on, in words that one can sign."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from typing import Any

from cofactor.config import as_table, from_table, not_negative, one_of
from cofactor.errors import ConfigError
from cofactor.figures import finite
from cofactor.privacy import statement
from cofactor.privacy.assumptions import Assumption, apart_from_each_other, assumptions_of
from cofactor.privacy.budget import ADJACENCIES, TOLERANCE, UNITS, Adjacency, Budget, Unit, odds
from cofactor.privacy.entries import RENEWED, Period
from cofactor.privacy.events import Event, counted_once
from cofactor.privacy.mechanisms import event_from_table
from cofactor.privacy.personal import PersonalPromise, taken_part
from cofactor.privacy.weights import Weights

EVERYONE = ("everyone who sees what was released",)


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """Numbers, and who they hold for, against whom, and as long as what is true."""

    epsilon: float | None = None
    """What all releases cost; None if nothing is promised."""
    delta: float | None = None
    unit: Unit | None = None
    adjacency: Adjacency | None = None
    budget_epsilon: float | None = None
    """The most that epsilon was allowed to be."""
    per: Period | None = None
    """How often the budget is renewed: never, if None."""
    releases: int = 0
    """How many noisy releases there were."""
    by: tuple[str, ...] = ()
    """The parties that made them."""
    replaced_odds: float | None = None
    """For adjacency "empty": how often somebody is right who guesses between two sets of ratings instead."""
    against: tuple[str, ...] = ()
    """Who cannot learn more: "the coordinator", "other parties", "everyone who sees the model"."""
    covers: tuple[str, ...] = ()
    """Sentences."""
    does_not_cover: tuple[str, ...] = ()
    """Sentences."""
    assumptions: tuple[Assumption, ...] = ()
    why_not: tuple[str, ...] = ()
    """Sentences: why the guarantee does not hold."""
    warnings: tuple[str, ...] = ()
    """Sentences: it holds, but is weaker than its reader may think."""
    accountant: str | None = None
    """How epsilon was reckoned, and by which library."""
    renyi: float | None = None
    """What the Renyi accountant proves, for comparison; None if nothing."""
    secure_noise: bool | None = None
    """Whether nobody can foresee or repeat the noise; None where there was none."""
    about: str | None = None
    """What is known of a user: "columns". Ratings, if None."""
    whom: str | None = None
    """Of whom it speaks, if not of all: "a user of weight 0.3"."""
    personal: PersonalPromise | None = None
    """What units of smaller weights are promised; None if all are promised the same."""
    weights: Weights | None = field(default=None, repr=False, compare=False)
    """Of users: private, in no file. Only where they are at hand it can be said what one user is promised."""

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "budget_epsilon", "renyi"):
            if getattr(self, name) is not None:
                not_negative(**{name: getattr(self, name)})
        for name, choices in (("unit", UNITS), ("adjacency", ADJACENCIES), ("per", tuple(RENEWED))):
            if getattr(self, name) is not None:
                one_of(choices, **{name: getattr(self, name)})
        for name in ("against", "by", "covers", "does_not_cover", "why_not", "warnings"):
            given = getattr(self, name)
            if not isinstance(given, tuple) or not all(isinstance(text, str) for text in given):
                raise ConfigError(f"{name} must be a tuple of texts.")
        if self.epsilon is None and not self.why_not:
            raise ConfigError("a guarantee without epsilon must say why.")
        if self.epsilon is not None and None in (self.delta, self.unit, self.adjacency):
            raise ConfigError("a guarantee with epsilon needs delta, unit and adjacency, too.")
        allowed = self.budget_epsilon
        too_much = allowed is not None and (self.epsilon or 0.0) > allowed * (1 + TOLERANCE)
        if too_much and not self.why_not:
            raise ConfigError("a guarantee whose epsilon is above its budget cannot hold.")
        if self.secure_noise is False and not self.why_not:
            raise ConfigError("a guarantee with insecure noise cannot hold.")

    @classmethod
    def nothing(cls, reason: str) -> "Guarantee":
        """Promise nothing, and say why in a sentence."""
        return cls(why_not=(reason,))

    @classmethod
    def of(
        cls,
        events: Iterable[Event],
        budget: Budget,
        *,
        against: Sequence[str] = EVERYONE,
        covers: Sequence[str] = (),
        does_not_cover: Sequence[str] = (),
        assumptions: Sequence[Assumption] = (),
        shared_units: bool = True,
        units: int | None = None,
        per: Period | None = None,
        about: str | None = None,
    ) -> "Guarantee":
        """Reckon what releases cost and collect what that rests on.

        `shared_units` is False if no user (or rating, if that is the unit) is at two parties: then it only
        loses what one of them releases. `units` is how many users (or ratings) there are, if that may be
        known; `about` is what is known of them, if not ratings.
        """
        from cofactor.privacy import accountant  # it takes a second to load

        released = list(events)
        for name, given in (("against", against), ("covers", covers), ("does_not_cover", does_not_cover)):
            if isinstance(given, str) or (name == "against" and not given):
                raise ConfigError(f'{name} must be a list of texts, such as ["the coordinator"].')
        parties = tuple(dict.fromkeys(event.by for event in released))
        compose = accountant.spent if shared_units else accountant.spent_apart
        composed = counted_once(released) if shared_units else released
        total = compose(composed, budget.delta, unit=budget.unit, adjacency=budget.adjacency)
        apart = () if shared_units or len(parties) < 2 else (apart_from_each_other(parties, budget.unit),)
        return cls(
            epsilon=finite(total.epsilon),
            delta=budget.delta,
            unit=budget.unit,
            adjacency=budget.adjacency,
            budget_epsilon=budget.epsilon,
            per=per,
            releases=sum(event.count for event in composed),
            by=parties,
            replaced_odds=_replaced_odds(composed, budget, compose),
            against=tuple(against),
            covers=tuple(covers),
            does_not_cover=(*does_not_cover, *(ALWAYS_LEFT_OUT if released else ())),
            assumptions=(*assumptions_of(released, total.method), *apart, *assumptions),
            why_not=tuple(_why_not(released, total.epsilon, budget)),
            warnings=tuple(budget.concerns(units)),
            accountant=f"{total.method}, dp-accounting {version('dp-accounting')}",
            renyi=finite(total.renyi),
            secure_noise=all(event.secure for event in released) if released else None,
            about=about,
        )

    @property
    def holds(self) -> bool:
        """Whether it may be relied on."""
        return self.epsilon is not None and not self.why_not

    @property
    def odds(self) -> float | None:
        """How often somebody who guesses between two equally likely possibilities is right at best."""
        if self.epsilon is None or self.delta is None:
            return None
        return odds(self.epsilon, self.delta)

    def for_user(self, user: Any) -> "Guarantee":
        """Return what a user is promised: of her ratings, for the least protected one."""
        if self.personal is None:
            return self
        return self.for_weight(self._weight_of(user), whom=f"user {user}")

    def for_group(self, name: str) -> "Guarantee":
        """Return what everybody in a group is promised at least: its largest weight."""
        groups = () if self.personal is None else self.personal.groups
        for group in groups:
            if group.name == name:
                return self.for_weight(group.high, whom=f"{name} users")
        known = ", ".join(group.name for group in groups) or "none"
        raise ConfigError(f"there is no group {name!r}. Groups are: {known}.")

    def for_weight(self, weight: float, *, whom: str | None = None) -> "Guarantee":
        """Return what a user of this weight is promised: of her ratings, for the least protected one."""
        if self.personal is None:
            raise ConfigError("this guarantee is the same for all: its budget was not personal.")
        largest = weight * self.personal.largest_item
        return self._for_rating(largest, largest, whom or f"a user of weight {weight:g}")

    def for_rating(self, user: Any, item_weight: float) -> "Guarantee":
        """Return what a user is promised for her rating of an item of this weight."""
        own, largest = self._weight_of(user), 1.0 if self.personal is None else self.personal.largest_item
        if not 0 < item_weight <= largest:
            raise ConfigError(
                f"an item's weight lies above 0 and at most at {largest:g}, got {item_weight:g}."
            )
        whom = f"a rating of user {user} of an item of weight {item_weight:g}"
        return self._for_rating(own * item_weight, own * largest, whom)

    def _weight_of(self, user: Any) -> float:
        if self.weights is None:
            raise ConfigError(
                "weights stay with the users, and are in no run folder. Say the weight: for_weight(0.3)."
            )
        return float(self.weights.of([user])[0])

    def _for_rating(self, weight: float, largest: float, whom: str) -> "Guarantee":
        """Return what is promised for a weight; another rating might have had the `largest`."""
        from cofactor.privacy import accountant
        from cofactor.privacy.losses import FINE_ORDERS

        told, delta, unit, adjacency = self.personal, self.delta, self.unit, self.adjacency
        if told is None or delta is None or unit is None or adjacency is None:
            raise ConfigError("nothing is promised, to nobody.")
        other = (weight + largest) / 2 if told.threshold is None else largest

        def lost(adjacency: Adjacency, weight: float) -> float:
            events, chance = told.seen_by(weight)
            total = accountant.spent(events, delta, unit=unit, adjacency=adjacency, orders=FINE_ORDERS)
            return taken_part(total.epsilon, chance)

        epsilon, promised = lost(adjacency, weight), told.epsilon * weight
        broken = epsilon > promised * (1 + TOLERANCE)
        return replace(
            self,
            epsilon=finite(epsilon),
            budget_epsilon=promised,
            why_not=(*self.why_not, *([f"Epsilon is above the {promised:g} that was promised."] * broken)),
            replaced_odds=None if self.replaced_odds is None else odds(lost("replace", other), delta),
            renyi=None,
            whom=whom,
            personal=None,
            weights=None,
        )

    def __str__(self) -> str:
        """Say all of it in one paragraph."""
        return statement.paragraph(self)

    def markdown(self) -> str:
        """Say all of it in Markdown, point by point."""
        return statement.markdown(self)

    def as_json(self) -> dict[str, Any]:
        """Return a table for JSON; `statement` is the paragraph."""
        derived = {"holds": self.holds, "odds": self.odds, "statement": str(self)}
        told = None if self.personal is None else as_table(self.personal)
        table = derived | asdict(replace(self, personal=None, weights=None)) | {"personal": told}
        left_out = {"weights", *(["about"] if self.about is None else [])}
        return {name: value for name, value in table.items() if name not in left_out}

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> "Guarantee":
        """Read what `as_json` wrote, or the few words that run folders held before there was any privacy."""
        if not isinstance(table, Mapping):
            raise ConfigError(f"guarantee must be a table, got {table!r}.")
        if "why_not" not in table:
            return cls.nothing(str(table.get("statement", "Nothing is known about privacy.")))
        known = {each.name for each in fields(cls)} - {"assumptions", "personal", "weights"}
        given = {name: value for name, value in table.items() if name in known and value is not None}
        listed = table.get("assumptions")
        if not isinstance(listed, list | tuple):
            raise ConfigError(f"guarantee.assumptions must be a list, got {listed!r}.")
        given["assumptions"] = tuple(from_table(Assumption, each, "assumption") for each in listed)
        read: Guarantee = replace(
            from_table(cls, given, "guarantee"), personal=_personal_from(table.get("personal"))
        )
        if read.holds != table.get("holds") or not _same(table.get("odds", read.odds), read.odds):
            raise ConfigError("guarantee contradicts itself: it was changed after it was written.")
        return read


def _same(told: Any, derived: float | None) -> bool:
    """Compare what a table says with what follows from the rest of it, but for the last digits."""
    if told is None or derived is None:
        return told is derived
    return isinstance(told, int | float) and math.isclose(told, derived, rel_tol=1e-6)


def _personal_from(table: Any) -> PersonalPromise | None:
    if table is None:
        return None
    if not isinstance(table, Mapping) or not isinstance(table.get("events"), list | tuple):
        raise ConfigError("guarantee.personal must be a table with events.")
    events = tuple(event_from_table(each, "guarantee.personal.event") for each in table["events"])
    rest = {name: value for name, value in table.items() if name != "events"}
    read: PersonalPromise = from_table(PersonalPromise, rest, "guarantee.personal")
    return replace(read, events=events)


ALWAYS_LEFT_OUT = (
    "Other releases about the same data, such as those of other runs: they add up, and the data's ledger "
    "adds them.",
    "Several users who are one person, or who act alike: each is protected by itself only.",
)


def _replaced_odds(events: list[Event], budget: Budget, compose: Callable[..., Any]) -> float | None:
    """Return the odds for two sets of ratings of a unit, which "empty" compares through nothing."""
    if budget.adjacency != "empty" or not events:
        return None
    total = compose(events, budget.delta, unit=budget.unit, adjacency="replace")
    return odds(total.epsilon, budget.delta)


def _why_not(events: list[Event], epsilon: float, budget: Budget) -> Iterable[str]:
    insecure = dict.fromkeys(f"{event.what} by {event.by}" for event in events if not event.secure)
    if insecure:
        first = next(iter(insecure))
        more = f" (and of {len(insecure) - 1} more)" if len(insecure) > 1 else ""
        yield (
            f"The noise of {first}{more} came from InsecureRandom: whoever knows the seed can take it off."
        )
    if math.isinf(epsilon):
        yield f"No finite epsilon can be proved with delta {budget.delta:g}."
    elif not budget.allows(epsilon):
        yield f"Epsilon is above the {budget.epsilon:g} that the budget allows."
