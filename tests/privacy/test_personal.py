import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.errors import ConfigError
from cofactor.privacy.accountant import spent
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.mechanisms import DiscreteLaplace, Gaussian, Skellam
from cofactor.privacy.personal import (
    PersonalBudget,
    PersonalPromise,
    of_one_unit,
    taken_part,
    weighed,
    worst_of,
)
from cofactor.privacy.weights import HDPMF_USERS, Weights, taking_part

GRAINS = 1000


def laplace(epsilon: float = 1.0, *, weighed: bool = True) -> Event:
    bound = Bound(size=2 * GRAINS, norm="l1", unit="rating", adjacency="value", weighed=weighed)
    return Event(
        what="sums", by="a", to="all", mechanism=DiscreteLaplace(noise_multiplier=1 / epsilon), bound=bound
    )


def skellam(noise: float, count: int = 1) -> Event:
    bound = Bound(size=500.0, norm="l2", unit="user", weighed=True)
    return Event(
        what="s", by="a", to="all", mechanism=Skellam(noise_multiplier=noise), bound=bound, dimension=40,
        count=count,
    )  # fmt: skip


def promise(*events: Event, **settings: Any) -> PersonalPromise:
    given: dict[str, Any] = {
        "mechanism": "stretching",
        "epsilon": 1.0,
        "groups": HDPMF_USERS,
        "largest_item": 1.0,
    }
    return PersonalPromise(events=tuple(events), **(given | settings))


def guarantee(*events: Event, weights: Weights | None = None, delta: float = 0.0, **told: Any) -> Guarantee:
    unit = events[0].bound.unit
    budget = Budget(
        epsilon=told.get("threshold") or 1.0, delta=delta, unit=unit, adjacency=events[0].bound.adjacency
    )
    found = Guarantee.of(events, budget)
    fields = {name: getattr(found, name) for name in found.__dataclass_fields__}
    return Guarantee(**(fields | {"personal": promise(*events, **told), "weights": weights}))


def test_a_personal_budget_is_public_but_for_the_users_weights() -> None:
    budget = PersonalBudget(epsilon=1.0, users=Weights.by({7: 0.2, 8: 1.0}), items=Weights.by({3: 0.5}))
    assert (budget.delta, budget.unit, budget.adjacency) == (1e-9, "rating", "value")
    assert type(budget.public) is Budget
    assert budget.public == Budget(
        epsilon=1.0, delta=1e-9, unit="rating", adjacency="value", personal="stretching"
    )
    assert budget.for_user(7).epsilon == pytest.approx(0.2)
    assert budget.for_rating(7, 3).epsilon == pytest.approx(0.1)
    assert "0.2" not in repr(budget)
    assert "of weight 1" in str(budget)


def test_sampling_makes_noise_for_the_mean_promise_unless_told_otherwise() -> None:
    budget = PersonalBudget.as_published(epsilon=2.0, mechanism="sampling")
    assert budget.sampled_at == pytest.approx(2.0 * 0.5295 * (0.3 + 0.75 + 1) / 3)
    assert budget.public.epsilon == budget.sampled_at
    assert budget.public.personal == "sampling"
    assert PersonalBudget(epsilon=1.0, mechanism="sampling", threshold=0.7).public.epsilon == 0.7


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mechanism": "shrinking"}, "mechanism"),
        ({"threshold": 0.5}, "sampling"),
        ({"mechanism": "sampling", "threshold": 2.0}, "at most epsilon"),
        ({"users": {1: 0.5}}, "Weights"),
        ({"unit": "user", "adjacency": "empty", "items": Weights.equal(0.5)}, "items have weights only"),
    ],
)
def test_what_makes_no_personal_budget_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        PersonalBudget(epsilon=1.0, **settings)


def test_table_2_draws_users_and_items_apart() -> None:
    budget = PersonalBudget.as_published(seed=5)
    assert not np.array_equal(budget.users.of(range(50)), budget.items.of(range(50)))
    assert np.array_equal(budget.users.of([1]), PersonalBudget.as_published(seed=5).users.of([1]))


def test_a_weighed_event_has_the_same_noise_and_a_smaller_bound() -> None:
    [own] = weighed([laplace()], 0.25)
    assert own.bound.size == pytest.approx(0.25 * 2 * GRAINS)
    assert own.mechanism.noise_size(own.bound) == pytest.approx(2 * GRAINS)  # type: ignore[attr-defined]
    assert weighed([laplace(weighed=False)], 0.25) == [laplace(weighed=False)]
    assert weighed([laplace()], 1 / (4 * GRAINS)) == []
    with pytest.raises(ConfigError, match="weight"):
        weighed([laplace()], 1.5)


@pytest.mark.parametrize("weight", [0.0005, 0.001, 0.1, 0.3337, 0.5, 0.999, 1.0])
def test_pure_promises_are_proportional_to_weights(weight: float) -> None:
    epsilon = guarantee(laplace()).for_weight(weight).epsilon
    assert epsilon is not None
    grains = math.floor(weight * 2 * GRAINS)
    assert epsilon == pytest.approx(grains / (2 * GRAINS), rel=1e-9, abs=1e-12)
    assert epsilon <= weight * (1 + 1e-9)


@pytest.mark.parametrize("weight", [0.0001, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_composed_noise_in_whole_numbers_keeps_every_promise(weight: float) -> None:
    events = [skellam(12.0), skellam(20.0, count=3)]
    budget = Budget(epsilon=5.0, delta=1e-6, unit="user")
    whole = spent(events, budget.delta, unit="user").epsilon
    own = spent(weighed(events, weight), budget.delta, unit="user").epsilon
    assert own <= weight * whole


def test_without_weighed_bounds_a_smaller_weight_is_promised_nothing_less_and_that_is_said() -> None:
    own = guarantee(laplace(weighed=False)).for_weight(0.5)
    assert not own.holds
    assert "above the 0.5" in own.why_not[-1]


def test_those_who_take_part_by_chance_lose_what_they_were_promised() -> None:
    told = guarantee(laplace(0.4), mechanism="sampling", threshold=0.4)
    for weight in (0.05, 0.2, 0.399):
        assert told.for_weight(weight).epsilon == pytest.approx(weight, rel=1e-6)
    assert told.for_weight(0.8).epsilon == pytest.approx(0.4, rel=1e-6)
    chance = float(taking_part(np.array([0.1]), 1.0, 0.4)[0])
    assert taken_part(0.4, chance) == pytest.approx(0.1, rel=1e-9)
    # Noise that came out a little stronger than planned costs a little less, and never more.
    assert taken_part(0.39, chance) < 0.1


def test_a_user_is_promised_what_her_weight_says_and_the_least_of_her_ratings_counts() -> None:
    told = guarantee(laplace(), weights=Weights.by({7: 0.2}), largest_item=0.5)
    assert told.for_user(7).epsilon == pytest.approx(0.1, rel=1e-6)
    assert told.for_user("7").budget_epsilon == pytest.approx(0.1)
    assert told.for_rating(7, 0.25).epsilon == pytest.approx(0.05, rel=1e-6)
    assert "user 7" in str(told.for_user(7))
    assert told.for_user(7).holds


def test_groups_are_promised_what_their_largest_weight_says() -> None:
    told = guarantee(laplace())
    assert told.for_group("conservative").epsilon == pytest.approx(0.5)
    assert told.for_group("liberal").epsilon == pytest.approx(1.0)
    assert "conservative 0.5, moderate 1 and liberal 1" in str(told)
    with pytest.raises(ConfigError, match="conservative, moderate, liberal"):
        told.for_group("shy")


def test_from_a_file_a_guarantee_tells_of_groups_and_of_no_user() -> None:
    told = guarantee(laplace(), weights=Weights.by({7: 0.2345678}))
    text = json.dumps(told.as_json())
    assert "0.2345678" not in text
    read = Guarantee.from_json(json.loads(text))
    assert read == told
    assert read.for_weight(0.5).epsilon == told.for_weight(0.5).epsilon
    assert json.loads(json.dumps(read.as_json())) == json.loads(text)
    with pytest.raises(ConfigError, match="weights stay with the users"):
        read.for_user(7)


def test_without_weights_all_are_promised_the_same() -> None:
    plain = Guarantee.of([laplace()], Budget(epsilon=1.0, delta=0.0, unit="rating", adjacency="value"))
    assert plain.for_user(7) is plain
    with pytest.raises(ConfigError, match="same for all"):
        plain.for_weight(0.5)


def test_events_alike_are_counted_together() -> None:
    bound = Bound(size=1.0, norm="l2", unit="user")
    other = Event(what="z", by="b", to="all", mechanism=Gaussian(noise_multiplier=3.0), bound=bound)
    assert of_one_unit([laplace(), other, laplace()]) == (laplace().once().times(2), other.once())


def halves(epsilon: float = 1.0, *, weighed: bool = True) -> Event:
    """Ratings of which it is hidden that they are there at all."""
    bound = Bound(size=GRAINS, norm="l1", unit="rating", weighed=weighed)
    return Event(
        what="sums", by="a", to="all", mechanism=DiscreteLaplace(noise_multiplier=1 / epsilon), bound=bound
    )


def test_a_rating_that_becomes_one_of_another_item_has_that_items_weight() -> None:
    told = guarantee(halves(), weights=Weights.by({7: 1.0}))
    own = told.for_rating(7, 0.1)
    assert own.epsilon == pytest.approx(0.1)
    # From an item of weight 0.1 to one of weight 1: 1.1 times epsilon.
    assert own.replaced_odds == pytest.approx(1 / (1 + math.exp(-1.1)))
    assert told.for_user(7).replaced_odds == pytest.approx(1 / (1 + math.exp(-2.0)))
    sampled = guarantee(halves(0.4), weights=Weights.by({7: 1.0}), mechanism="sampling", threshold=0.4)
    assert sampled.for_rating(7, 0.1).replaced_odds == sampled.for_user(7).replaced_odds
    with pytest.raises(ConfigError, match="an item's weight"):
        told.for_rating(7, 1.5)


def test_a_large_threshold_overflows_nowhere() -> None:
    chances = taking_part(np.array([1e-4, 0.5, 0.9, 1.0]), 1000.0, 900.0)
    assert np.isfinite(chances).all()
    assert chances.tolist()[2:] == [1.0, 1.0]
    assert taken_part(900.0, float(chances[1])) == pytest.approx(500.0)


def test_users_are_compared_with_nothing_and_ratings_with_other_values_unless_said() -> None:
    assert PersonalBudget(epsilon=1.0, unit="user").adjacency == "empty"
    assert PersonalBudget(epsilon=1.0).adjacency == "value"
    assert PersonalBudget(epsilon=1.0, unit="user", adjacency="value").adjacency == "value"


def test_a_part_of_a_small_budget_is_still_a_budget() -> None:
    assert PersonalBudget(epsilon=1e-5, users=Weights.equal(1e-3)).for_user(1).epsilon == 1e-6


def test_the_party_where_units_lose_most_counts() -> None:
    budget = Budget(epsilon=1.0, delta=0.0, unit="rating", adjacency="value")
    careful = replace(laplace(0.1), by="b")
    assert worst_of([careful, laplace()], budget) == (laplace().once(),)
    assert worst_of([laplace(), careful], budget) == (laplace().once(),)
    assert worst_of([], budget) == ()


def test_a_promise_for_ratings_is_not_read_as_one_for_users() -> None:
    told = guarantee(laplace(), weights=Weights.by({7: 0.2}))
    assert "differentially private for each rating of user 7 (" in str(told.for_user(7))
    assert "for each rating of conservative users (" in str(told.for_group("conservative"))
    assert "for a rating of user 7 of an item of weight 0.5 (" in str(told.for_rating(7, 0.5))
    assert "for each rating (" in str(told)
    whole = guarantee(skellam(12.0), delta=1e-6, weights=Weights.by({7: 0.2}))
    assert "differentially private for user 7 (" in str(whole.for_user(7))


def test_what_noise_is_made_for_is_not_said_to_be_what_weight_1_is_promised() -> None:
    told = guarantee(laplace(0.4), mechanism="sampling", threshold=0.4)
    assert "That is for whoever takes part: a rating is promised epsilon 1 times" in str(told)
    assert "if that is less, and takes part by chance" in str(told)
    budget = PersonalBudget(
        epsilon=1.0, mechanism="sampling", threshold=0.4, users=Weights.by({1: 0.1, 2: 0.9})
    )
    assert budget.for_user(1).epsilon == pytest.approx(0.1)
    assert budget.for_user(2).epsilon == 0.4


def test_budgets_of_different_weights_are_not_equal() -> None:
    one, other = (PersonalBudget(epsilon=1.0, users=Weights.equal(weight)) for weight in (0.2, 0.9))
    assert one != other
    assert len({one, other}) == 2
