"""`plan`: what a recipe will release and cost, before anything is. Reads no data."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from cofactor.config import whole
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Scale
from cofactor.errors import ConfigError
from cofactor.federation.halves import Facts, splits_of
from cofactor.federation.splits import Split
from cofactor.federation.weights import PublicWeights
from cofactor.privacy.budget import Budget
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.plan import Plan
from cofactor.privacy.plan import plan as plan_schedule
from cofactor.privacy.schedule import Schedule
from cofactor.privacy.weights import Weights
from cofactor.recipes.sums import own_share
from cofactor.recipes.weighing import check_weights

_SCALE = Scale(1, 5)


def plan(
    recipe: Any,
    budget: Budget,
    *,
    users: int | None = None,
    items: int | None = None,
    ratings: int | None = None,
    parties: int = 1,
    features: int = 0,
    public_items: PublicItems | None = None,
    scale: Scale = _SCALE,
    keep_noise: bool = False,
) -> Plan:
    """Settle the noise of a recipe, or of a Schedule, and say what follows from it.

    A recipe needs the numbers of users, items and ratings at all parties together; parties are taken to be
    equally large. On devices every user is a party; a recipe that serves parties of many users, too, is
    planned for these if there are several. `features` says how many public numbers there are about
    each item, or `public_items` which they are.
    """
    if isinstance(recipe, Schedule):
        return plan_schedule(recipe, _public(budget), keep_noise=keep_noise)
    if not hasattr(recipe, "participant"):
        raise ConfigError(f"plan takes a recipe, such as SecureALS(), or a Schedule, got {recipe!r}.")
    if users is None or items is None or ratings is None:
        raise ConfigError("a plan for a recipe needs users, items and ratings: about how many there are.")
    whole(users=users, items=items, ratings=ratings, parties=parties)
    facts = _facts(split_for(recipe, parties), users, items, ratings, parties, scale, features)
    if public_items is None:
        public_items = getattr(recipe, "public_items", None)
    if public_items is not None:
        facts = replace(facts, features=len(public_items.names), public_items=public_items)
    facts, terms = _weighed(facts, budget), _public(budget)
    check_weights(recipe, facts.weights, terms)
    return _planned(recipe.settled(facts, terms), facts, terms, keep_noise=keep_noise)


def _public(budget: Budget) -> Budget:
    return budget.public if isinstance(budget, PersonalBudget) else budget


def _weighed(facts: Facts, budget: Budget) -> Facts:
    """Add what is public of weights; items are not named yet, and all have about the mean weight."""
    if not isinstance(budget, PersonalBudget):
        return facts
    items = Weights.equal(budget.items.expected)
    return replace(facts, weights=PublicWeights.of(budget.users, items, facts.catalogue, budget))


def split_for(recipe: Any, parties: int) -> Split:
    """Return the kind of federation that a recipe is planned for."""
    served = splits_of(recipe)
    return "horizontal" if parties > 1 and "horizontal" in served else served[0]


def _planned(recipe: Any, facts: Facts, budget: Budget, *, keep_noise: bool) -> Plan:
    """Plan a settled recipe; where parties share noise, a sum of all of them has that of about one."""
    schedule = recipe.schedule(facts, budget.unit, facts.parties[0])
    shares = _parts_of_noise(recipe, facts, budget, schedule)
    as_one = max(shares) < 1 and not schedule.shared_units
    counted = replace(schedule, parties=1 if as_one else facts.summed)
    made = plan_schedule(counted, budget, keep_noise=keep_noise)
    noises = [share * (facts.summed if as_one else 1) for share in shares]
    return replace(
        made,
        schedule=replace(made.schedule, parties=facts.summed),
        signal_to_noise=tuple(
            None if ratio is None else ratio / math.sqrt(noise)
            for ratio, noise in zip(made.signal_to_noise, noises, strict=True)
        ),
        warnings=(*made.warnings, *(recipe.hints(facts) if hasattr(recipe, "hints") else ())),
    )


def _parts_of_noise(recipe: Any, facts: Facts, budget: Budget, schedule: Schedule) -> list[float]:
    """Return of each release the part of its noise, as a variance, that each party or device adds."""
    if facts.cohort and hasattr(recipe, "aggregate"):
        return [own_share(recipe.aggregate, facts.summed)] * len(schedule.releases)
    shared = recipe.promise(facts, budget).shared
    return [shared.get(release.what, 1.0) for release in schedule.releases]


def _facts(
    split: Split, users: int, items: int, ratings: int, parties: int, scale: Scale, features: int
) -> Facts:
    vertical = split == "vertical"
    if split == "on-device":
        if parties != 1:
            raise ConfigError("every user is a device of its own. Leave out parties.")
        names: tuple[str, ...] = ("devices",)
    else:
        names = tuple(f"party-{number + 1}" for number in range(parties))
    return Facts(
        split=split,
        parties=names,
        users=(users,) * parties if vertical else _shares(users, parties),
        items=_shares(items, parties) if vertical else (items,) * parties,
        ratings=_shares(ratings, parties),
        scale=scale,
        shared_ids=np.arange(users if vertical else items),
        catalogue=np.arange(items),
        features=features,
    )


def _shares(count: int, parties: int) -> tuple[int, ...]:
    if count < parties:
        raise ConfigError(f"{count:,} cannot be divided among {parties:,} parties. Ask for fewer parties.")
    return tuple(count // parties + (place < count % parties) for place in range(parties))
