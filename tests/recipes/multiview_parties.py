"""Small federations with side tables, the recipe's halves at work, and a plain twin of its equations."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.coding import Coding
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings, Scale
from cofactor.federation.door import Door
from cofactor.federation.halves import Facts, Home
from cofactor.federation.party import Party
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import InsecureRandom, Random, SecureRandom
from cofactor.recipes.hosts import aggregate_of
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_halves import ViewsParticipant
from cofactor.recipes.multiview_weights import InclUnc, ObsOnly, SampledUnrated

Reals = NDArray[np.float64]

USERS, ITEMS = 5, 7
SCALE = Scale(1, 5)
CODING = Coding.stated({"group": ("a", "b"), "sex": ("f", "m")})
BUDGET = Budget(epsilon=4.0, delta=1e-6, unit="user")
KINDS = (ObsOnly(), InclUnc(alpha=0.2), SampledUnrated(alpha=0.3, rho=0.5))


def features(width: int = 3, items: int = ITEMS) -> PublicItems:
    numbers = np.random.default_rng(7).normal(0, 1, (items, width))
    return PublicItems.of_numbers(np.arange(items), numbers, source="a test")


def ratings_of(rows: Reals) -> Ratings:
    """Return ratings of a table in which NaN stands for nothing."""
    users, items = np.nonzero(~np.isnan(rows))
    return Ratings.from_rows(
        users,
        items,
        rows[users, items].astype(np.float32),
        user_ids=np.arange(len(rows)),
        item_ids=np.arange(rows.shape[1]),
        scale=SCALE,
    )


def some_rows(seed: int = 0, users: int = USERS, items: int = ITEMS) -> Reals:
    """Return ratings of about half the items; the last user has none."""
    random = np.random.default_rng(seed)
    rows = random.integers(1, 6, (users, items)).astype(np.float64)
    rows[random.random(rows.shape) < 0.5] = np.nan
    rows[-1] = np.nan
    return rows


def some_attributes(seed: int = 0, users: int = USERS) -> NDArray[np.float32]:
    """Return attributes of which some are missing; of the second user all are."""
    random = np.random.default_rng(seed)
    found = random.integers(0, 2, (users, CODING.width)).astype(np.float32)
    found[random.random(found.shape) < 0.3] = np.nan
    found[1] = np.nan
    return found


def facts_of(**changes: Any) -> Facts:
    """Return what is public about a cohort, whatever the ratings are."""
    facts = Facts(
        split="on-device",
        parties=("devices",),
        users=(USERS,),
        items=(ITEMS,),
        ratings=(18,),
        scale=SCALE,
        shared_ids=np.arange(ITEMS),
        catalogue=np.arange(ITEMS),
        features=3,
        public_items=features(),
        attributes=CODING,
    )
    return replace(facts, **changes)


def device(
    recipe: MultiViewMF,
    rows: Reals,
    attributes: NDArray[Any] | None,
    *,
    facts: Facts | None = None,
    budget: Budget | None = None,
    random: Random | None = None,
    dropout: float = 0.0,
) -> ViewsParticipant:
    """Return a settled recipe's participant of all users, at work in round 1."""
    facts = facts or facts_of()
    chosen, name = recipe.settled(facts, budget), facts.parties[0]
    schedule = ledger = None
    if budget is not None:
        schedule = calibrated(chosen.schedule(facts, "user", name), budget)
        ledger = Ledger.create(None, party=name, fingerprint="a test", budget=budget)
    door = Door(
        party=name,
        ledger=ledger,
        random=random or InsecureRandom(0),
        run="a test",
        schedule=schedule,
        layers=aggregate_of(chosen).layers(facts.summed),
        cohort=facts.cohort,
    )
    party = Party(name=name, ratings=ratings_of(rows), attributes=attributes)
    door.begin(1)
    return chosen.participant(
        Home(party=party, facts=facts, schedule=schedule, door=door, seed=0, dropout=dropout)
    )


def item_server(recipe: MultiViewMF, facts: Facts | None = None) -> Any:
    facts = facts or facts_of()
    door = Door(party="item server", ledger=None, random=SecureRandom(), run="a test")
    door.begin(1)
    return recipe.settled(facts, None).role("item server", facts, door, 0)


@dataclass
class Twin:
    """All of equation (3) in dense tables, and its derivatives."""

    ratings: Reals
    """0 where there is none."""
    weights: Reals
    attributes: Reals
    """NaN where missing."""
    features: Reals
    side_weight: float
    penalty: float

    def objective(self, p: Reals, q: Reals, u: Reals, v: Reals) -> float:
        known = ~np.isnan(self.attributes)
        missed = np.where(known, self.attributes - p @ u.T, 0.0)
        sides = np.square(missed).sum() + np.square(self.features - q @ v.T).sum()
        lengths = sum(np.square(each).sum() for each in (p, q, u, v))
        errors = (self.weights * np.square(self.ratings - p @ q.T)).sum()
        return float(errors + self.side_weight * sides + self.penalty * lengths)

    def best_users(self, q: Reals, u: Reals) -> Reals:
        """Return equation (8), user by user."""
        found, one = [], self.penalty * np.eye(q.shape[1])
        for r, c, x in zip(self.ratings, self.weights, self.attributes, strict=True):
            known = ~np.isnan(x)
            own = u[known]
            squares = q.T @ np.diag(c) @ q + self.side_weight * own.T @ own + one
            found.append(np.linalg.solve(squares, r * c @ q + self.side_weight * x[known] @ own))
        return np.array(found)

    def best_features(self, q: Reals) -> Reals:
        """Return equation (11)."""
        squares = q.T @ q + self.penalty / self.side_weight * np.eye(q.shape[1])
        return self.features.T @ q @ np.linalg.inv(squares)


def derivative(function: Any, at: Reals, step: float = 1e-5) -> Reals:
    """Return the derivative of a function of a table, by differences."""
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        change = np.zeros_like(at)
        change[place] = step
        found[place] = (function(at + change) - function(at - change)) / (2 * step)
    return found


def dense(participant: ViewsParticipant, items: int = ITEMS) -> tuple[Reals, Reals]:
    """Return ratings and weights of a participant's users as dense tables."""
    entries = participant._entries.dense(items)
    return entries.values.reshape(-1, items), entries.weights.reshape(-1, items)


def twin_of(participant: ViewsParticipant, recipe: MultiViewMF, attributes: NDArray[Any]) -> Twin:
    ratings, weights = dense(participant)
    return Twin(
        ratings=ratings,
        weights=weights,
        attributes=attributes.astype(np.float64),
        features=features().rows(np.arange(ITEMS)).astype(np.float64),
        side_weight=recipe.side_weight,
        penalty=recipe.penalty,
    )
