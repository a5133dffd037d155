"""What dishonest users and parties change: bounded where contributions are, not where answers are lies."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.attacks.poisoning import Poisoner, Poisoning, poisoned
from cofactor.attacks.poisoning_halves import boosted, few_ratings, lying, turned
from cofactor.data import partition
from cofactor.data.files import read_ratings
from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import Shape, make
from cofactor.errors import ConfigError, UnknownId
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.privacy.budget import Budget
from cofactor.randomness import InsecureRandom
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.item_rounds import ItemRound
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_weights import ObsOnly
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.train import train

Find = Callable[[str], Path]
USER = Budget(epsilon=8.0, delta=1e-6, unit="user")
RATINGS = make(Shape(users=150, items=60, ratings=5000), seed=0).ratings
ROUNDS = (ItemRound(share=0.5, count_weight=0.5), ItemRound(share=0.5, count_weight=0.5))
FACTORS = (ROUNDS[0], ItemRound(share=0.5, count_weight=0.5, factors=2))
SUM = SecureSum(dropout=0.0, colluding=0.25)
RECIPES: dict[str, Any] = {
    "biases": SharedBiases(item_rounds=ROUNDS, gain_share=0.0, home=UsersOnly(), aggregate=SUM),
    "least squares": SecureALS(item_rounds=FACTORS, gain_share=0.0, home=UsersOnly(), aggregate=SUM),
    "horizontal": HorizontalMF(factors=4, rounds=4, local_steps=1, home=UsersOnly(), aggregate=SUM),
    "devices": OnDeviceMF(factors=4),
}


def parties(ratings: Ratings = RATINGS, count: int = 4) -> Federation:
    dealt = partition.horizontal(ratings, count, seed=1)
    return Federation.horizontal([Party(name=f"p{k}", ratings=own) for k, own in enumerate(dealt)])


def disliked(ratings: Ratings = RATINGS) -> Any:
    """Return an item that many have rated, lower than most others."""
    counts = np.bincount(ratings.items, minlength=ratings.item_count)
    means = np.bincount(ratings.items, ratings.values, minlength=ratings.item_count) / np.maximum(counts, 1)
    often = np.flatnonzero(counts >= np.median(counts))
    return ratings.item_ids[often[np.argsort(means[often])[len(often) // 5]]]


@cache
def attacked(kind: str, budget: Budget | None = USER, **by: Any) -> Poisoning:
    federation = Federation.on_device(RATINGS) if kind == "devices" else parties()
    who = Poisoner(party=federation.parties[0].name, **by)
    return poisoned(RECIPES[kind], federation, item=disliked(), by=who, budget=budget)


@pytest.mark.parametrize("kind", RECIPES)
def test_no_sum_changes_by_more_than_the_bound_and_the_item_hardly_moves(kind: str) -> None:
    found = attacked(kind)
    assert found.epsilon == 8.0
    assert found.sums
    assert all(each.allowed is not None and 0 < each.change <= each.allowed for each in found.sums)
    assert found.bounded
    # Dishonest ratings are as bad as they can be: a good part of the bound is used.
    assert found.most_of_bound is not None
    assert found.most_of_bound > 0.2
    assert abs(found.change) < 0.15
    assert f"{found.most_of_bound:.2g} times what the bound allows" in str(found)


def test_more_dishonest_users_change_more_and_no_more_than_all_of_them_may() -> None:
    one, many = attacked("biases"), attacked("biases", users=10)
    assert many.bounded
    assert many.change > 4 * one.change > 0
    assert many.rank_after < many.rank_before
    assert "10 dishonest users at p0" in str(many)


def test_where_nothing_is_bounded_one_user_changes_a_sum_by_more_than_a_bound_would_allow() -> None:
    recipe = MultiViewMF(factors=4, rounds=12, unrated=ObsOnly(), penalty=1.0)
    federation = Federation.on_device(RATINGS)
    changes = {}
    for budget in (None, USER):
        by = Poisoner(party="devices")
        found = poisoned(recipe, federation, item=disliked(), by=by, budget=budget)
        grain = recipe.settled(federation.facts, budget).grain
        assert grain is not None
        changes[budget] = grain * max(each.change for each in found.sums)
        assert found.bounded == (budget is not None)
        if budget is None:
            assert "and no bound was promised" in str(found)
        else:
            allowed = grain * max(each.allowed or 0.0 for each in found.sums)
    assert changes[USER] <= allowed < changes[None]


def test_a_party_that_lies_is_bound_by_nothing_but_what_a_sum_can_hold() -> None:
    honest, lied = attacked("biases", users=10), attacked("biases", users=10, boost=math.inf)
    assert lied.most_of_bound is not None
    assert lied.most_of_bound > 5
    assert not lied.bounded
    assert lied.change > 2 * honest.change
    assert lied.rank_after < 5 < lied.rank_before
    assert "told inf times" in str(lied)


def test_without_a_lie_the_lying_half_is_the_honest_one() -> None:
    recipe, federation = RECIPES["biases"], parties()
    same = lying(recipe, "p0", boosted(0, RATINGS.item_count, 1.0))
    assert type(same).__name__ == "SharedBiases"
    models = [train(each, federation, budget=USER, random=InsecureRandom(3)).model for each in (recipe, same)]
    assert models[0] is not None
    assert models[1] is not None
    np.testing.assert_array_equal(models[0].item_bias, models[1].item_bias)


def test_in_plain_sight_a_lie_is_told_as_well() -> None:
    plain = replace(RECIPES["biases"], aggregate=PlainSum())
    found = poisoned(plain, parties(), item=disliked(), by=Poisoner(party="p0", users=10, boost=1000.0))
    assert found.change > 0.5
    assert found.most_of_bound is None  # no sum was opened


def test_dishonest_users_praise_one_item_and_have_as_many_ratings_as_before() -> None:
    ratings = parties().parties[0].ratings
    users = few_ratings(ratings, 3)
    sizes = np.diff(ratings.by_user.ptr)
    assert sorted(sizes[users]) == sorted(sizes)[:3]
    item = int(RATINGS.item_row(disliked()))
    after = turned(ratings, users, item, parties().scale)
    np.testing.assert_array_equal(np.diff(after.by_user.ptr), sizes)
    for user in range(ratings.user_count):
        own = after.users == user
        if user in users:
            assert after.values[own & (after.items == item)].tolist() == [5.0]
            assert set(after.values[own & (after.items != item)].tolist()) == {1.0}
        else:
            before = ratings.users == user
            np.testing.assert_array_equal(np.sort(after.items[own]), np.sort(ratings.items[before]))
            assert after.values[own].sum() == ratings.values[before].sum()


def test_it_refuses_what_makes_no_sense() -> None:
    federation = parties()
    with pytest.raises(ConfigError, match="users must be at least 1"):
        Poisoner(party="p0", users=0)
    with pytest.raises(ConfigError, match="boost must be greater than 0"):
        Poisoner(party="p0", boost=-1.0)
    with pytest.raises(ConfigError, match="there is no party 'p9'"):
        poisoned(RECIPES["biases"], federation, item=disliked(), by=Poisoner(party="p9"))
    with pytest.raises(UnknownId):
        poisoned(RECIPES["biases"], federation, item="nothing", by=Poisoner(party="p0"))
    with pytest.raises(ConfigError, match="users with two ratings or more, not 1,000"):
        poisoned(RECIPES["biases"], federation, item=disliked(), by=Poisoner(party="p0", users=1000))
    with pytest.raises(ConfigError, match="plays all devices"):
        attacked("devices", boost=2.0)


@pytest.mark.slow
def test_one_user_of_movielens_hardly_moves_what_many_have_rated(real_data: Find) -> None:
    ratings = read_ratings(real_data("ml-100k.inter"))
    federation, devices = parties(ratings, 5), Federation.on_device(ratings)
    counts = np.bincount(ratings.items, minlength=ratings.item_count)
    often, seldom = (ratings.item_ids[np.argmin(np.abs(counts - count))] for count in (250, 25))
    recipes: dict[str, tuple[Any, Federation]] = {
        "biases": (SharedBiases(home=UsersOnly(), aggregate=SUM), federation),
        "least squares": (SecureALS(home=UsersOnly(), aggregate=SUM), federation),
        "horizontal": (HorizontalMF(local_steps=1, home=UsersOnly(), aggregate=SUM), federation),
        "devices": (OnDeviceMF(), devices),
    }
    for name, (recipe, who) in recipes.items():
        by = Poisoner(party=who.parties[0].name)
        changes = {}
        for item in (often, seldom):
            found = poisoned(recipe, who, item=item, by=by, budget=USER)
            assert found.bounded, name
            changes[item] = abs(found.change)
        assert changes[often] < 0.1, name
        assert changes[seldom] < 0.5, name
