"""Participants of recipes that release sums about items, and what they are asked."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings
from cofactor.federation.door import Door
from cofactor.federation.halves import Facts, Home
from cofactor.federation.party import Party
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import InsecureRandom, Random
from cofactor.recipes.hosts import aggregate_of
from cofactor.recipes.item_letters import ItemsFinal, ItemsKnown
from cofactor.recipes.item_rounds import ItemRound
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.sums import IdealSum
from tests.recipes.parties import ITEMS, SCALE, USERS, table

BUDGET = Budget(epsilon=4.0, delta=1e-6, unit="user")
FEATURES = 4
FACTORS = 2
WIDTH = FEATURES + 3 + FACTORS
"""Of tastes in the last round."""
ROUNDS = (
    ItemRound(share=0.5, count_weight=1.2),
    ItemRound(share=0.3, count_weight=0.4, spread_share=0.05),
    ItemRound(share=0.4, count_weight=0.2, factors=FACTORS, spread_share=0.02),
)
FEW = SecureALS(item_rounds=ROUNDS, aggregate=IdealSum(dropout=0.25, colluding=0.25))
"""For as few devices as tests have; its last round asks for everything."""
LAST = 1 + len(ROUNDS)
Row = tuple[float | None, ...]
EMPTY: Row = (None,) * ITEMS


def public(items: int = ITEMS, features: int = FEATURES, seed: int = 3) -> PublicItems:
    numbers = np.random.default_rng(seed).normal(size=(items, features))
    return PublicItems.of_numbers(np.arange(items), numbers, source="a test")


def facts_of(users: tuple[int, ...] = (USERS,), *, split: Any = "on-device", **changed: Any) -> Facts:
    """Return what is public, whatever the ratings are: a cohort, unless more than one party is named."""
    made = Facts(
        split=split,
        parties=tuple(f"party-{k}" for k in range(len(users))),
        users=users,
        items=(ITEMS,) * len(users),
        ratings=(12,) * len(users),
        scale=SCALE,
        shared_ids=np.arange(ITEMS),
        catalogue=np.arange(ITEMS),
        features=FEATURES,
        public_items=public(),
    )
    return replace(made, **changed)


USUAL_FACTS = facts_of()


@lru_cache(maxsize=64)
def settled_by(recipe: Any, facts: Facts, budget: Budget | None) -> tuple[Any, Schedule | None]:
    """Return the recipe with all choices made, and what it releases: the same for all ratings."""
    settled = recipe.settled(facts, budget)
    if budget is None:
        return settled, None
    return settled, calibrated(settled.schedule(facts, "user", facts.parties[0]), budget)


def half(
    recipe: Any,
    ratings: Ratings,
    *,
    budget: Budget | None = BUDGET,
    facts: Facts | None = None,
    round: int = LAST,
    dropout: float = 0.0,
    random: Random | None = None,
    weights: NDArray[np.float64] | None = None,
) -> Any:
    """Return the participant of the first party, at work in a round."""
    facts = facts or USUAL_FACTS
    settled, schedule = settled_by(recipe, facts, budget)
    ledger = None
    if budget is not None:
        ledger = Ledger.create(None, party=facts.parties[0], fingerprint="a test", budget=budget)
    door = Door(
        party=facts.parties[0],
        ledger=ledger,
        random=random or InsecureRandom(0),
        run="a test",
        schedule=schedule,
        layers=aggregate_of(settled).layers(facts.summed),
        cohort=facts.cohort,
    )
    party = Party(name=facts.parties[0], ratings=ratings, weights=weights)
    home = Home(party=party, facts=facts, schedule=schedule, door=door, seed=0, dropout=dropout)
    door.begin(round)
    return settled.participant(home)


def question(
    round: int = LAST, *, items: int = ITEMS, features: int = FEATURES, seed: int = 5, **changed: Any
) -> ItemsKnown:
    """Return what a coordinator may ask in a round, with some of it changed."""
    return ItemsKnown(**arrays(items, features, ROUNDS[round - 2].factors, seed) | changed)


def farewell(*, items: int = ITEMS, features: int = FEATURES, seed: int = 5, **changed: Any) -> ItemsFinal:
    counts = np.column_stack([np.linspace(0.1, 9, items), np.full(items, 0.5)])
    more = {"counts": counts, "told": np.zeros((0, 0))}
    return ItemsFinal(**arrays(items, features, FACTORS, seed) | more | changed)


def arrays(items: int, features: int, factors: int, seed: int) -> dict[str, NDArray[Any]]:
    chance, width = np.random.default_rng(seed), features + 3 + factors
    root = np.tril(chance.normal(size=(width, width))) * 0.1 + 0.3 * np.eye(width)
    return {
        "mean": np.array(0.5),
        "bias": chance.normal(size=items) * 0.5,
        "variance": chance.uniform(0.01, 0.2, items),
        "learned": chance.normal(size=(items, 2)),
        "importance": chance.uniform(0.2, 2.0, items),
        "covariance": root @ root.T,
        "factors": chance.normal(size=(items, factors)) * 0.2,
        "told": chance.normal(size=(factors, factors)) * 4,
    }


def rated(units: tuple[Row, ...]) -> Ratings:
    return table([(u, i, x) for u, row in enumerate(units) for i, x in enumerate(row) if x is not None])


def drawn(chance: np.random.Generator) -> Row:
    """A user with extreme ratings of some items, of all, of one, or of none."""
    row = chance.choice([0.5, 3.0, 5.0], ITEMS)
    part = chance.choice([0.0, 0.2, 0.7, 1.0])
    return tuple(float(x) if chance.random() < part else None for x in row)


def watched(participant: Any) -> list[tuple[str, Bounded]]:
    """Return the list to which all is added, without noise, that the participant gives to the door."""
    seen: list[tuple[str, Bounded]] = []

    def share(mechanism: Any, bounded: Bounded, *, what: str, **_: Any) -> NDArray[np.int64]:
        seen.append((what, bounded))
        return bounded.value

    participant._home.door.share = share
    return seen


def noise_free(recipe: Any, units: tuple[Row, ...], round: int, asked: Any) -> dict[str, Bounded]:
    """Return what a cohort gives to the door in answer to a question, by release."""
    participant = half(recipe, rated(units), round=round)
    seen = watched(participant)
    participant.handle(round, asked)
    return dict(seen)
