from dataclasses import replace
from typing import Any

import pytest

from cofactor.cluster.lloyd import PrivateLloyd
from cofactor.cluster.local import LSHForest
from cofactor.cluster.planning import COUNT, check_facts, planned, usual_local_clusters
from cofactor.cluster.simple import IndependentCounts, LocalMemberships
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.tables import SecureTable
from cofactor.errors import ConfigError
from cofactor.privacy.accountant import spent
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event, counted_once
from tests.cluster.making import budget, facts

METHODS = [SecureTable(), Sketches(), IndependentCounts(), LocalMemberships()]


def cost(events: list[Event], allowed: Budget) -> float:
    return spent(events, allowed.delta, unit="user").epsilon


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("widths", [(2, 2), (4, 1, 3)])
def test_all_releases_together_keep_the_budget_and_use_it(method: Any, widths: tuple[int, ...]) -> None:
    allowed = budget(1.0)
    plan = planned(facts(users=5000, widths=widths), allowed, method=method, local=LSHForest())
    assert 0.98 < cost(plan.whole.events(), allowed) <= 1.0


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_what_the_parties_charge_adds_up_to_the_whole(method: Any) -> None:
    allowed = budget(1.0)
    plan = planned(facts(users=5000, widths=(2, 1, 2)), allowed, method=method, local=LSHForest())
    charged = [
        replace(event, by=party) for party, schedule in plan.schedules.items() for event in schedule.events()
    ]
    assert cost(counted_once(charged), allowed) == pytest.approx(cost(plan.whole.events(), allowed), rel=1e-9)


def test_only_the_first_party_counts_users_and_only_where_that_is_wanted() -> None:
    for method, expected in ((Sketches(), [True, False]), (SecureTable(), [False, False])):
        plan = planned(facts(users=5000), budget(1.0), method=method, local=LSHForest())
        told = [any(each.what == COUNT for each in own.releases) for own in plan.schedules.values()]
        assert told == expected


def test_a_smaller_budget_has_more_noise() -> None:
    known, local = facts(users=5000), LSHForest()
    for method in (Sketches(), SecureTable()):
        plans = [planned(known, budget(epsilon), method=method, local=local) for epsilon in (0.5, 2)]
        strict, loose = (_noise(plan.whole.releases[-1].mechanism) for plan in plans)
        assert strict > 1.5 * loose


def _noise(mechanism: Any) -> float:
    return float(getattr(mechanism, "noise_multiplier", None) or mechanism.phantoms)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"epsilon": 1.0, "delta": 0.0, "unit": "user"}, "delta above 0"),
        ({"epsilon": 1.0, "delta": 1e-6, "unit": "rating"}, "whole users"),
        ({"epsilon": 1.0, "delta": 1e-6, "unit": "user", "adjacency": "value"}, "whole users"),
        ({"epsilon": 1.0, "delta": 1e-6, "unit": "user", "personal": "stretching"}, "not personal"),
    ],
)
def test_budgets_that_cannot_be_kept_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        planned(facts(), Budget(**wrong), method=SecureTable(), local=LSHForest())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"widths": (1,) * 6}, "at most 5 parties"),
        ({"users": 4, "clusters": 5}, "5 clusters of 4 users"),
        ({"clusters": 1}, "at least 2"),
        ({"users": 1, "clusters": 2}, "2 clusters of 1 users"),
        ({"clusters": 10, "local_clusters": 3}, "fewer combinations"),
        ({"widths": (1,) * 5, "local_clusters": 20}, "more than 1,000,000 combinations"),
    ],
)
def test_what_cannot_be_clustered_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        check_facts(facts(**given))


def test_one_party_is_no_clustering() -> None:
    with pytest.raises(ConfigError, match="two parties or more"):
        facts(widths=(2,))


def usual(method: Any, **changes: Any) -> int:
    known: dict[str, Any] = {"users": 20_000, "parties": 2, "clusters": 5, "budget": budget(1.0)}
    return usual_local_clusters(method, **{**known, **changes})


def test_two_parties_find_twice_as_many_local_clusters_and_more_parties_as_many() -> None:
    assert usual(SecureTable()) == 10
    assert usual(SecureTable(), parties=4) == 5


def test_no_more_local_clusters_are_found_than_can_be_counted() -> None:
    assert usual(SecureTable(bits=2048), clusters=15, users=10**6) == 20
    assert usual(SecureTable(), users=2000, budget=budget(0.1)) == 5
    assert usual(SecureTable(), users=7, budget=budget(9.0)) == 4
    assert usual(LocalMemberships()) == 5
    assert usual(Sketches(), users=500, budget=budget(0.1)) < usual(Sketches(), users=10**6)


def test_there_are_always_enough_combinations() -> None:
    assert usual(LocalMemberships(), clusters=36) == 6
    assert usual(Sketches(), users=300, clusters=9, budget=budget(0.1)) >= 3


@pytest.mark.parametrize("local", [LSHForest(), PrivateLloyd()], ids=lambda local: type(local).__name__)
def test_noise_that_moves_centres_far_is_told_beforehand(local: Any) -> None:
    for users, warned in ((300, True), (100_000, False)):
        plan = planned(facts(users=users), budget(1.0), method=SecureTable(), local=local)
        assert any("Noise moves local centres of party" in each for each in plan.concerns) == warned


def test_where_there_are_no_steps_nothing_is_said_of_them() -> None:
    plan = planned(facts(users=300), budget(1.0), method=SecureTable(), local=LSHForest(steps=0))
    assert not any("Noise moves" in each for each in plan.concerns)
