"""A cohort of a few devices, of one rating each, that can be looked into."""

from typing import Any, NamedTuple

import numpy as np

from cofactor.data.ratings import Ratings, Scale
from cofactor.federation.door import Door
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Home
from cofactor.privacy.budget import Adjacency, Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import HDPMF_USERS, Weights
from cofactor.randomness import InsecureRandom
from cofactor.recipes.hosts import aggregate_of
from cofactor.recipes.personal_biases import PersonalBiases
from cofactor.recipes.sums import IdealSum

USERS, ITEMS, SCALE = 4, 5, Scale(1, 5)
ITEM_WEIGHTS = {0: 1.0, 1: 0.25, 2: 0.6, 3: 1.0, 4: 0.9}
ADJACENCIES: tuple[Adjacency, ...] = ("value", "empty")
FEW = PersonalBiases(aggregate=IdealSum(dropout=0.25, colluding=0.25))
"""For as few devices as tests have."""


class One(NamedTuple):
    """A rating, and the weight of its user."""

    weight: float
    item: int
    value: float


Units = tuple[One | None, ...]


def personal(units: Units = (), **settings: Any) -> PersonalBudget:
    """Return a budget in which user k has the weight of unit k."""
    own = [0.7 if unit is None else unit.weight for unit in units]
    users = Weights.by(lambda user: own[user], groups=HDPMF_USERS)
    usual: dict[str, Any] = {"epsilon": 1.0, "users": users, "items": Weights.by(ITEM_WEIGHTS)}
    return PersonalBudget(**(usual | settings))


def plain(epsilon: float = 1.0, adjacency: Adjacency = "value", delta: float = 1e-9) -> Budget:
    return Budget(epsilon=epsilon, delta=delta, unit="rating", adjacency=adjacency)


def table(units: Units) -> Ratings:
    """Return ratings in a table whose size never changes: unit k is of user k."""
    rated = [(user, unit.item, unit.value) for user, unit in enumerate(units) if unit is not None]
    users, items, values = zip(*rated, strict=True) if rated else ((), (), ())
    return Ratings.from_rows(
        np.array(users, np.int64),
        np.array(items, np.int64),
        np.array(values, np.float32),
        user_ids=np.arange(USERS),
        item_ids=np.arange(ITEMS),
        scale=SCALE,
    )


def half(ratings: Ratings, budget: Budget, recipe: PersonalBiases = FEW, random: Any = None) -> Any:
    """Return the half of a cohort, at work in its first round."""
    federation = Federation.on_device(ratings, scale=SCALE)
    if isinstance(budget, PersonalBudget):
        federation = federation.with_weights(budget.users, budget.items, budget=budget)
        budget = budget.public
    facts, party = federation.facts, federation.parties[0]
    settled = recipe.settled(facts, budget)
    schedule = calibrated(settled.schedule(facts, "rating", party.name), budget)
    ledger = Ledger.create(None, party=party.name, fingerprint="a test", budget=budget)
    door = Door(
        party=party.name,
        ledger=ledger,
        random=random or InsecureRandom(0),
        run="a test",
        schedule=schedule,
        layers=aggregate_of(settled).layers(facts.summed),
        cohort=True,
    )
    door.begin(1)
    return settled.participant(Home(party=party, facts=facts, schedule=schedule, door=door, seed=0))
