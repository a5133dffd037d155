"""Small federations for the tests of recipes, and participants that can be looked into."""

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np

from cofactor.data import partition
from cofactor.data.ratings import Ratings, Scale
from cofactor.data.synthetic import Shape, make
from cofactor.factors.model import Factors
from cofactor.federation.door import Door
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts, Home
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.transcript import Sent
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import InsecureRandom

SCALE = Scale(0.5, 5.0)
USERS, ITEMS = 4, 6


def small_ratings(seed: int = 0) -> Ratings:
    """Return a few thousand ratings, from 1 to 5."""
    return make(Shape(users=150, items=80, ratings=6000), seed=seed).ratings


def vertical(ratings: Ratings, parties: int) -> Federation:
    """Deal the items out."""
    return Federation.vertical(_named(partition.vertical(ratings, parties, seed=1)), simulated=True)


def horizontal(ratings: Ratings, parties: int) -> Federation:
    """Deal the users out."""
    return Federation.horizontal(_named(partition.horizontal(ratings, parties, seed=1)), simulated=True)


def mse(models: Mapping[str, Factors], test: Federation) -> float:
    """Return the mean squared error over all parties' own test ratings."""
    missed = [
        models[party.name].predict_rows(party.ratings.users, party.ratings.items) - party.ratings.values
        for party in test.parties
    ]
    return float(np.mean(np.concatenate(missed) ** 2))


def transcript(run: Run) -> list[Sent]:
    """Return all messages of a run."""
    assert run.together is not None
    lines = [json.loads(line) for line in run.together.transcript.splitlines()[1:]]
    names = {field.name for field in fields(Sent)}
    return [Sent(**{name: value for name, value in line.items() if name in names}) for line in lines]


def _named(parts: list[Ratings]) -> list[Party]:
    return [Party(name=f"party-{k}", ratings=part) for k, part in enumerate(parts)]


def table(rated: list[tuple[int, int, float]]) -> Ratings:
    """Return ratings of (user, item, value) in a table whose size never changes."""
    users, items, values = (
        (np.array(column) for column in zip(*rated, strict=True)) if rated else ([], [], [])
    )
    return Ratings.from_rows(
        np.asarray(users, np.int64),
        np.asarray(items, np.int64),
        np.asarray(values, np.float32),
        user_ids=np.arange(USERS),
        item_ids=np.arange(ITEMS),
        scale=SCALE,
    )


@cache
def facts_of(split: Any) -> Facts:
    """Return what is public about a party of that size and another one: it never depends on ratings."""
    return Facts(
        split=split,
        parties=("north", "south"),
        users=(USERS, USERS),
        items=(ITEMS, ITEMS),
        ratings=(10, 10),
        scale=SCALE,
        shared_ids=np.arange(USERS if split == "vertical" else ITEMS),
        catalogue=np.arange(2 * ITEMS if split == "vertical" else ITEMS),
    )


def participant_of(recipe: Any, ratings: Ratings, budget: Budget) -> tuple[Any, Any]:
    """Return the half of party "north" with these ratings, and its settled recipe."""
    facts = facts_of(recipe.split)
    settled, schedule = settled_by(recipe, budget)
    ledger = Ledger.create(None, party="north", fingerprint="a test", budget=budget)
    door = Door(party="north", ledger=ledger, random=InsecureRandom(0), run="a test")
    home = Home(party=Party(name="north", ratings=ratings), facts=facts, schedule=schedule, door=door, seed=0)
    return settled.participant(home), settled


@cache
def settled_by(recipe: Any, budget: Budget) -> tuple[Any, Schedule]:
    """Return the recipe with all choices made, and what it releases: the same for all ratings."""
    facts = facts_of(recipe.split)
    settled = recipe.settled(facts, budget)
    return settled, calibrated(settled.schedule(facts, budget.unit, "north"), budget)
