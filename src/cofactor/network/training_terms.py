"""What a training on a network is about, and the facts that follow from what its parties told.

The facts are a function of the proposal and of what all parties told: everybody works them out alike.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, get_args

import numpy as np

from cofactor.config import as_table, from_table, one_of, whole
from cofactor.crypto.psi import RULES, Rule
from cofactor.data.coding import Coding
from cofactor.data.ids import Ids, plain_ids
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Scale
from cofactor.errors import ConfigError, DataError, RunError
from cofactor.federation.aligning import joined, numbered
from cofactor.federation.federation import HAPPENED
from cofactor.federation.finding import Alignment, Among
from cofactor.federation.halves import Facts, Recipe, splits_of
from cofactor.federation.splits import Split
from cofactor.federation.summing import Summing
from cofactor.network.searching import search_tells
from cofactor.network.work import Telling
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.schedule import Schedule
from cofactor.recipes.hosts import aggregate_of
from cofactor.recipes.named import recipe_from
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.sums import IdealSum

_FIELDS = {"split", "recipe", "budget", "scale", "ids", "among", "rule", "ratings_each"} | {
    "catalogue",
    "items",
    "attributes",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingWork:
    """A training: what everybody is told of it before anybody agrees."""

    split: Split
    recipe: Recipe
    budget: Budget | None = None
    """None: nothing is promised, and policies usually refuse."""
    scale: tuple[float, float] | None = None
    """The lowest and the highest rating that there can be; None where rows have no values."""
    ids: Telling = "union"
    """How what all share becomes known: items of horizontal parties, users of vertical ones."""
    among: Among = "leader"
    rule: Rule = "exact"
    ratings_each: int | None = None
    """On devices: about how many ratings one has, a public guess, so that nobody tells."""
    catalogue: Ids | None = field(default=None, repr=False)
    """The public list of items, where one is used."""
    items: PublicItems | None = field(default=None, repr=False)
    """What is declared to be public about items."""
    attributes: Coding | None = None
    """How attributes of users become numbers, if the recipe uses any; the attributes stay private."""

    def __post_init__(self) -> None:
        one_of(get_args(Split), split=self.split)
        one_of(("leader", "chain"), among=self.among)
        one_of(RULES, rule=self.rule)
        if self.split not in splits_of(self.recipe):
            raise ConfigError(f"{type(self.recipe).__name__} is not for {self.split} federations.")
        one_of(("union", "psi") if self.split == "vertical" else _ITEMS, ids=self.ids)
        if (self.catalogue is not None) != (self.ids == "catalogue"):
            raise ConfigError('a catalogue goes with ids = "catalogue", and that with a catalogue.')
        whole(ratings_each=self.ratings_each)
        _ = self.stated_scale  # which refuses one that is none
        if self.split == "on-device" and (self.ids != "catalogue" or self.ratings_each is None):
            raise ConfigError(
                "devices need a public catalogue and ratings_each: which items a device has rated, and how "
                "many, is told to nobody."
            )
        self._check_recipe()

    def _check_recipe(self) -> None:
        if isinstance(getattr(self.recipe, "aggregate", None), IdealSum):
            raise ConfigError("IdealSum is for simulations. Use SecureSum(), SharedSum() or PlainSum().")
        if self.budget is not None and self.budget.personal:
            raise ConfigError("personal budgets are not agreed on over a network yet. Train without weights.")
        if self.budget is not None and self.budget.unit not in self.recipe.units:
            words = " or ".join(self.recipe.units)
            raise ConfigError(
                f"{type(self.recipe).__name__} protects each {words}, not each {self.budget.unit}."
            )

    @property
    def stated_scale(self) -> Scale | None:
        """The scale as ratings know it."""
        return None if self.scale is None else Scale(*self.scale)

    def table(self) -> dict[str, Any]:
        """Return it as a proposal holds it."""
        return {
            "split": self.split,
            "recipe": as_table(self.recipe),
            "budget": None if self.budget is None else as_table(self.budget),
            "scale": None if self.scale is None else list(self.scale),
            "ids": self.ids,
            "among": self.among,
            "rule": self.rule,
            "ratings_each": self.ratings_each,
            "catalogue": None if self.catalogue is None else self.catalogue.tolist(),
            "items": None if self.items is None else _items_table(self.items),
            "attributes": None if self.attributes is None else self.attributes.as_json(),
        }

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "TrainingWork":
        """Read it from a proposal, whoever wrote that."""
        if set(table) != _FIELDS:
            raise ConfigError("a training that cannot be read. Is it of the same version?")
        try:
            return cls(
                split=table["split"],
                recipe=recipe_from(table["recipe"], "recipe"),
                budget=table["budget"] and from_table(Budget, table["budget"], "budget"),
                scale=None if table["scale"] is None else _two(table["scale"]),
                ids=table["ids"],
                among=table["among"],
                rule=table["rule"],
                ratings_each=table["ratings_each"],
                catalogue=None if table["catalogue"] is None else plain_ids(table["catalogue"]),
                items=None if table["items"] is None else _items_of(table["items"]),
                attributes=None if table["attributes"] is None else Coding.from_json(table["attributes"]),
            )
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError, DataError) as error:
            raise ConfigError(f"a training that cannot be read ({type(error).__name__}).") from None


_ITEMS = ("union", "intersection", "catalogue")


def _two(ends: Any) -> tuple[float, float]:
    low, high = ends
    if not all(type(end) in (int, float) for end in (low, high)):
        raise ConfigError("a scale is two numbers.")
    return float(low), float(high)


def _items_table(items: PublicItems) -> dict[str, Any]:
    return {
        "source": items.source,
        "names": list(items.names),
        "sha256": items.sha256,
        "left_out": list(items.left_out),
        "ids": items.ids.tolist(),
        "matrix": items.matrix.tolist(),
    }


def _items_of(table: Mapping[str, Any]) -> PublicItems:
    return PublicItems(
        source=str(table["source"]),
        names=tuple(map(str, table["names"])),
        sha256=str(table["sha256"]),
        left_out=tuple(map(str, table["left_out"])),
        ids=plain_ids(table["ids"]),
        matrix=np.array(table["matrix"], np.float32),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnFacts:
    """What one party tells."""

    users: int
    items: int
    ratings: int
    """All that it holds, whatever is shared: of parts that others choose, how many there are is not told."""
    others: Ids | None
    """Ids of its items, in a vertical federation: the catalogue names them."""
    implicit: bool

    def table(self) -> dict[str, Any]:
        """Return it for JSON."""
        plain = {name: getattr(self, name) for name in ("users", "items", "ratings", "implicit")}
        return plain | {"others": None if self.others is None else self.others.tolist()}

    @classmethod
    def of(cls, table: Mapping[str, Any], party: str) -> "OwnFacts":
        """Read what a party has told; name it if it makes no sense."""
        try:
            users, items, ratings = (table[name] for name in ("users", "items", "ratings"))
            others, implicit = table["others"], table["implicit"]
            ids = None if others is None else plain_ids(others)
        except (KeyError, TypeError, ValueError, DataError):
            users = items = ratings = implicit = ids = None
        if type(implicit) is not bool or not all(map(_counts, (users, items, ratings))):
            raise RunError(f"{party} told facts that make no sense. Is it of the same version?")
        return cls(users=users, items=items, ratings=ratings, others=ids, implicit=implicit)


def _counts(count: object) -> bool:
    return type(count) is int and 0 <= count < 2**40


def facts_of(work: TrainingWork, told: Mapping[str, OwnFacts], shared: Ids) -> Facts:
    """Return what everybody knows, from what all parties told; refuse what does not fit together."""
    other = [party for party, own in told.items() if own.implicit != (work.scale is None)]
    if other:
        kind = "rows that only tell that something happened" if work.scale is None else "ratings with values"
        raise DataError(f"{', '.join(other)}: the training is about {kind}, and its data are not.")
    crowded = [party for party, own in told.items() if own.users != 1]
    if work.split == "on-device" and crowded:
        raise DataError(f"{', '.join(crowded)}: a device has the ratings of one user.")
    empty = [party for party, own in told.items() if own.ratings == 0 and work.split != "on-device"]
    if empty:
        raise DataError(f"{', '.join(empty)}: no ratings of what all share. Leave it out.")
    vertical = work.split == "vertical"
    return Facts(
        split=work.split,
        parties=tuple(told),
        users=tuple(len(shared) if vertical else own.users for own in told.values()),
        items=tuple(own.items if vertical else len(shared) for own in told.values()),
        ratings=tuple(work.ratings_each or own.ratings for own in told.values()),
        scale=work.stated_scale or HAPPENED,
        shared_ids=shared,
        catalogue=_catalogue(told) if vertical else shared,
        features=0 if work.items is None else len(work.items.names),
        public_items=work.items,
        attributes=work.attributes,
        implicit=work.scale is None,
        searched=work.ids == "psi",
    )


def shared_ids(work: TrainingWork, shown: Mapping[str, Ids], alignment: Alignment | None) -> Ids:
    """Return the ids of what all share, as everybody knows them.

    Users who were searched for are numbers here: only parties know who they are.
    """
    if work.catalogue is not None:
        return work.catalogue
    if alignment is not None:
        return np.arange(alignment.common)
    everything, places = numbered(shown, "user" if work.split == "vertical" else "item")
    if work.ids == "union":
        return everything
    common = sorted(set.intersection(*(set(rows.tolist()) for rows in places.values())))
    if not common:
        raise DataError('no item is at all parties. Agree on the union: items = "union".')
    return everything[common]


def _catalogue(told: Mapping[str, OwnFacts]) -> Ids:
    lists = [(party, own.others) for party, own in told.items() if own.others is not None]
    if len(lists) < len(told) or any(len(ids) != told[party].items for party, ids in lists):
        raise RunError("a party told another number of items than ids of items. Is it of the same version?")
    return joined(lists)


def terms_table(recipe: Recipe, facts: Facts) -> dict[str, Any]:
    """Return the terms: the recipe with all choices made, and the sizes that they were made for."""
    sizes = {name: list(getattr(facts, name)) for name in ("parties", "users", "items", "ratings")}
    lists = {name: getattr(facts, name).tolist() for name in ("shared_ids", "catalogue")}
    table = {"recipe": as_table(recipe), **sizes, "ids": _digest(lists)}
    plain: dict[str, Any] = json.loads(json.dumps(table))
    return plain


def bound(summing: Summing | None, recipe: Recipe, facts: Facts) -> Summing | None:
    """Return how sums are made by those alone who have come to the same terms."""
    return None if summing is None else replace(summing, agreed=_digest(terms_table(recipe, facts)))


def _digest(value: object) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()


def schedules_of(recipe: Recipe, facts: Facts, budget: Budget | None) -> dict[str, Schedule]:
    """Return what each party will release, with its noise."""
    if budget is None:
        return {}
    return {name: calibrated(recipe.schedule(facts, budget.unit, name), budget) for name in facts.parties}


def sizes_told(work: TrainingWork) -> tuple[str, ...]:
    """Say which sizes every party tells to all."""
    if work.split == "on-device":
        return ()
    items = ", and the ids of its items" if work.split == "vertical" else ""
    return (f"The coordinator and all parties see how many users and ratings this party has{items}.",)


def reading(work: TrainingWork) -> tuple[str, ...]:
    """Say what the guarantee does not cover because of how ids became known."""
    side = "users" if work.split == "vertical" else "items"
    told = {
        "union": f"Which {side} each party holds: all ids were told to the coordinator and to all parties.",
        "intersection": f"Which {side} each party holds: all ids were told to the coordinator and to all "
        "parties, so that those common to all could be found.",
    }
    return (told[work.ids],) if work.ids in told else ()


def searched(work: TrainingWork, parties: Iterable[str]) -> tuple[str, ...]:
    """Say what a search for users in common will tell; afterwards the guarantee says what it has told."""
    return search_tells(parties, work.among) if work.ids == "psi" else ()


def opened_by(recipe: Recipe, parties: int) -> EncryptedSum | SharedSum | None:
    """Return how sums are opened, if decrypters open them."""
    aggregate = aggregate_of(recipe)
    return aggregate if isinstance(aggregate, EncryptedSum | SharedSum) and parties > 1 else None
