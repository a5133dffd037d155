"""`plan`: what a recipe will release and cost, before anything is. Reads no data."""

from typing import Any

import numpy as np

from cofactor.config import whole
from cofactor.data.ratings import Scale
from cofactor.errors import ConfigError
from cofactor.federation.halves import Facts, Split
from cofactor.privacy.budget import Budget
from cofactor.privacy.plan import Plan
from cofactor.privacy.plan import plan as plan_schedule
from cofactor.privacy.schedule import Schedule

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
    scale: Scale = _SCALE,
    keep_noise: bool = False,
) -> Plan:
    """Settle the noise of a recipe, or of a Schedule, and say what follows from it.

    A recipe needs the numbers of users, items and ratings at all parties together; parties are taken to be
    equally large.
    """
    if isinstance(recipe, Schedule):
        return plan_schedule(recipe, budget, keep_noise=keep_noise)
    if not hasattr(recipe, "participant"):
        raise ConfigError(f"plan takes a recipe, such as HorizontalMF(), or a Schedule, got {recipe!r}.")
    if users is None or items is None or ratings is None:
        raise ConfigError("a plan for a recipe needs users, items and ratings: about how many there are.")
    whole(users=users, items=items, ratings=ratings, parties=parties)
    facts = _facts(recipe.split, users, items, ratings, parties, scale, features)
    settled = recipe.settled(facts, budget)
    schedule = settled.schedule(facts, budget.unit, facts.parties[0])
    return plan_schedule(schedule, budget, keep_noise=keep_noise)


def _facts(
    split: Split, users: int, items: int, ratings: int, parties: int, scale: Scale, features: int
) -> Facts:
    vertical = split == "vertical"
    return Facts(
        split=split,
        parties=tuple(f"party-{number + 1}" for number in range(parties)),
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
