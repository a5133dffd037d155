"""Users with weights, for tests of recipes that protect users."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.federation.channel import Failures
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts
from cofactor.federation.run import Run
from cofactor.federation.weights import PublicWeights
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import Group, Weights
from cofactor.recipes.train import train
from tests.recipes.item_parties import (
    EMPTY,
    FEW,
    Row,
    facts_of,
    half,
    rated,
    watched,
)
from tests.recipes.parties import ITEMS
from tests.recipes.test_secure_als import ALL, ROUNDS, real_devices

Reals = NDArray[np.float64]
Unit = tuple[Row, float]
"""What a user has rated, and her weight."""

PROMISED, SAMPLED_AT = 4.0, 1.0
POLICY = (
    Group(name="strict", share=0.5, low=0.1, high=0.4),
    Group(name="open", share=0.5, low=0.9, high=1.0),
)
NOBODY: Unit = (EMPTY, 1.0)
WEIGHTS = (1.0, 0.999, 0.5, 0.37, 0.1, 0.01, 0.0001)


def terms(**changed: Any) -> PersonalBudget:
    usual: dict[str, Any] = {
        "epsilon": PROMISED,
        "delta": 1e-6,
        "unit": "user",
        "adjacency": "empty",
        "users": Weights.drawn(POLICY),
    }
    return PersonalBudget(**usual | changed)


both = pytest.mark.parametrize("mechanism", ["stretching", "sampling"])
STRETCHED = terms()
SAMPLED = terms(mechanism="sampling", threshold=SAMPLED_AT)


def known(budget: PersonalBudget, catalogue: Any = range(ITEMS)) -> PublicWeights:
    return PublicWeights.of(budget.users, Weights.equal(), np.array(catalogue), budget)


@cache
def facts_with_weights(budget: PersonalBudget) -> Facts:
    return facts_of(weights=known(budget))


def at_work(
    units: tuple[Row, ...],
    weights: Any,
    budget: PersonalBudget = STRETCHED,
    recipe: Any = FEW,
    **changed: Any,
) -> Any:
    """Return the participant of users with these weights."""
    facts = changed.pop("facts", None) or facts_with_weights(budget)
    own = np.asarray(weights, np.float64)
    return half(recipe, rated(units), budget=budget.public, facts=facts, weights=own, **changed)


def noise_free(units: tuple[Unit, ...], round: int, asked: Any, **changed: Any) -> dict[str, Bounded]:
    rows, weights = zip(*units, strict=True)
    participant = at_work(rows, weights, round=round, **changed)
    seen = watched(participant)
    participant.handle(round, asked)
    return dict(seen)


def bound_of(what: str) -> Any:
    facts = facts_of(weights=known(STRETCHED))
    releases = FEW.settled(facts, STRETCHED.public).schedule(facts, "user", facts.parties[0]).releases
    return next(each.bound for each in releases if each.what == what)


def personal(federation: Federation, budget: PersonalBudget, recipe: Any = ALL, **more: Any) -> Run:
    return train(recipe, federation, budget=budget, **more)


@cache
def run_of_devices(mechanism: str) -> Run:
    """Return a training of four devices, of which some drop out."""
    away = Failures(absent=frozenset({("device-0", 1)}), silent=frozenset({("device-2", 2)}))
    budget, recipe = STRETCHED if mechanism == "stretching" else SAMPLED, replace(ALL, item_rounds=ROUNDS[:1])
    return personal(real_devices(4), budget, recipe, failures=away)
