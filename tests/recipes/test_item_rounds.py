"""How the budget is spent: a rule from public numbers, before anything is asked."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.data.ratings import Scale
from cofactor.errors import ConfigError
from cofactor.federation.halves import Facts
from cofactor.privacy.budget import Budget
from cofactor.recipes.item_rounds import ItemRound, item_columns, usual_rounds
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import IdealSum, PlainSum
from tests.recipes.item_parties import public

Shape = tuple[int, int, int]


def facts_of(users: int, items: int, ratings: int, *, features: int = 0, **changed: Any) -> Facts:
    ids = np.arange(items)
    made = Facts(
        split="on-device",
        parties=("devices",),
        users=(users,),
        items=(items,),
        ratings=(ratings,),
        scale=Scale(1, 5),
        shared_ids=ids,
        catalogue=ids,
        features=features,
        public_items=public(items, features) if features else None,
    )
    return replace(made, **changed)


def budget(epsilon: float, delta: float = 1e-6) -> Budget:
    return Budget(epsilon=epsilon, delta=delta, unit="user")


HUNDRED_K: Shape = (943, 1682, 90_000)
MILLION: Shape = (6040, 3706, 900_000)
TEN_MILLION: Shape = (69_878, 10_677, 9_000_000)
SPARSE: Shape = (30_000, 38_000, 1_400_000)


def plan(shape: Shape, epsilon: float, *, features: int = 0) -> tuple[int, int]:
    """Return how many rounds there are, and how many factors."""
    settled = SecureALS().settled(facts_of(*shape, features=features), budget(epsilon))
    assert settled.item_rounds is not None
    return len(settled.item_rounds), max((each.factors for each in settled.item_rounds), default=0)


@pytest.mark.parametrize(
    ("shape", "epsilon", "features", "expected"),
    [
        (HUNDRED_K, 0.5, 0, (2, 0)),
        (HUNDRED_K, 1.0, 0, (2, 0)),
        (HUNDRED_K, 4.0, 20, (4, 0)),
        (MILLION, 1.0, 0, (5, 0)),
        (MILLION, 1.0, 20, (4, 0)),
        (MILLION, 10.0, 0, (6, 4)),
        (TEN_MILLION, 1.0, 0, (5, 2)),
        (TEN_MILLION, 10.0, 20, (8, 8)),
        (SPARSE, 1.0, 0, (2, 0)),
        ((20, 2000, 400), 1.0, 0, (0, 0)),
        ((1, 50, 10), 8.0, 0, (0, 0)),
    ],
)
def test_rounds_and_factors_of_a_few_shapes(
    shape: Shape, epsilon: float, features: int, expected: tuple[int, int]
) -> None:
    assert plan(shape, epsilon, features=features) == expected


shapes = st.tuples(st.integers(1, 10**6), st.integers(1, 10**5), st.integers(1, 500))


@given(shapes, st.floats(0.01, 1e4), st.floats(1.0, 100.0), st.sampled_from([0, 5, 40]))
def test_less_noise_never_means_fewer_rounds_or_factors(
    shape: Shape, noise: float, less: float, features: int
) -> None:
    users, items, each = shape
    facts = facts_of(users, items, users * each)
    loud = usual_rounds(noise, facts, features=features, most_factors=None)
    quiet = usual_rounds(noise / less, facts, features=features, most_factors=None)
    assert len(loud) <= len(quiet)
    assert max((r.factors for r in loud), default=0) <= max((r.factors for r in quiet), default=0)
    assert sum(r.spread_share > 0 for r in loud) <= sum(r.spread_share > 0 for r in quiet)


@given(shapes, st.floats(1e-6, 1e6), st.sampled_from([0, 5, 40]), st.sampled_from([None, 0, 1, 3]))
def test_rounds_can_follow_each_other_and_begin_with_biases(
    shape: Shape, noise: float, features: int, most: int | None
) -> None:
    users, items, each = shape
    facts = facts_of(users, items, users * each)
    rounds = usual_rounds(noise, facts, features=features, most_factors=most)
    # A recipe refuses what cannot follow each other.
    SecureALS(item_rounds=rounds)
    assert not rounds or (rounds[0].factors, rounds[0].spread_share) == (0, 0.0)
    if most is not None:
        assert max((r.factors for r in rounds), default=0) <= most


@given(shapes, st.floats(1e-6, 1e6))
def test_nothing_but_the_mean_is_asked_for_where_noise_would_drown_items(shape: Shape, noise: float) -> None:
    users, items, each = shape
    rounds = usual_rounds(noise, facts_of(users, items, users * each), features=0, most_factors=None)
    signal = users * math.sqrt(each) / (items * noise)
    assert (rounds == ()) == (signal < 0.12)


def test_what_happened_is_counted_once_and_nothing_else_is_asked() -> None:
    facts = facts_of(*MILLION, implicit=True, scale=Scale(0, 1))
    settled = SecureALS().settled(facts, budget(1.0))
    assert settled.item_rounds == (ItemRound(share=1.0, count_weight=1.0),)
    assert item_columns(settled.item_rounds[0], facts) == 1
    releases = settled.schedule(facts, "user", "devices").releases
    assert [each.dimension for each in releases] == [2, 3706]


def test_shared_biases_have_no_factors_and_secure_als_no_more_than_it_may() -> None:
    facts = facts_of(*TEN_MILLION)
    for recipe, most in ((SharedBiases(), 0), (SecureALS(factors=0), 0), (SecureALS(factors=1), 1)):
        rounds = recipe.settled(facts, budget(4.0)).item_rounds
        assert rounds is not None
        assert max(each.factors for each in rounds) == most


@pytest.mark.parametrize("epsilon", [None, 1.0, 10.0])
def test_settings_follow_from_public_numbers_and_stay_as_they_are(epsilon: float | None) -> None:
    facts, terms = facts_of(*MILLION, features=4), None if epsilon is None else budget(epsilon)
    settled = SecureALS().settled(facts, terms)
    assert settled == SecureALS().settled(facts_of(*MILLION, features=4), terms)
    assert settled == settled.settled(facts, terms)
    assert settled.aggregate == IdealSum(dropout=0.3, colluding=0.1)
    assert settled.public_items == facts.public_items


def test_the_rule_knows_no_scale() -> None:
    settled = [
        SecureALS().settled(facts_of(*MILLION, scale=scale), budget(1.0))
        for scale in (Scale(1, 5), Scale(0, 100), Scale(-10, 10))
    ]
    assert settled[0] == settled[1] == settled[2]


def test_who_adds_all_of_the_noise_asks_for_less() -> None:
    facts = facts_of(*MILLION)
    together = SecureALS().settled(facts, budget(1.0))
    apart = SecureALS(aggregate=PlainSum()).settled(facts, budget(1.0))
    assert len(together.steps) >= 4
    assert len(apart.steps) <= 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"share": 0.0, "count_weight": 1.0}, "share must be greater than 0"),
        ({"share": 1.0, "count_weight": 0.0}, "count_weight must be greater than 0"),
        ({"share": 1.0, "count_weight": math.nan}, "count_weight must be"),
        ({"share": 1.0, "count_weight": 1.0, "factors": -1}, "factors must be 0 or more"),
        ({"share": 1.0, "count_weight": 1.0, "factors": 1.5}, "factors must be a whole number"),
        ({"share": 1.0, "count_weight": 1.0, "spread_share": -0.1}, "spread_share must be 0 or more"),
    ],
)
def test_rounds_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ItemRound(**settings)


@pytest.mark.parametrize("factors", [(2,), (2, 2), (0, 2, 0), (0, 2, 3)])
def test_factors_that_come_too_early_or_change_are_refused(factors: tuple[int, ...]) -> None:
    rounds = tuple(ItemRound(share=1.0, count_weight=1.0, factors=each) for each in factors)
    with pytest.raises(ConfigError, match="factors come after a first round without any"):
        SecureALS(item_rounds=rounds)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"item_rounds": (1.0,)}, "item_rounds are ItemRound"),
        ({"user_share": 0.0}, "user_share must be greater than 0"),
        ({"reduction": 0.5}, "reduction must be at least 1"),
        ({"factors": -1}, "factors must be 0 or more"),
        ({"factors": 2.5}, "factors must be a whole number"),
        ({"aggregate": "secure"}, "aggregate must be"),
        ({"public_items": "films.csv"}, "public_items must be PublicItems"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SecureALS(**settings)
