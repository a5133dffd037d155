"""Plans against the accountant, against closed forms, and the warnings they must give."""

import json
import math
from dataclasses import replace

import pytest

from cofactor.errors import ConfigError, PrivacyWarning, Refused
from cofactor.privacy.accountant import spent
from cofactor.privacy.answers import RandomizedResponse
from cofactor.privacy.budget import Budget
from cofactor.privacy.mechanisms import (
    AnyMechanism,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonBinomial,
    SampledGaussian,
)
from cofactor.privacy.plan import needed, plan
from cofactor.privacy.schedule import Release, Schedule
from tests.privacy.making import bound_for

BUDGET = Budget(epsilon=2.0, delta=1e-6, unit="user")


def schedule(
    mechanism: AnyMechanism | None = None,
    *,
    rounds: int = 10,
    size: float = 1.5,
    dimension: int = 100,
    times: int = 1,
    parties: int = 3,
    shared_units: bool = False,
    users: int | None = 30_000,
) -> Schedule:
    mechanism = mechanism or Gaussian()
    bound = bound_for(mechanism, size=size)
    release = Release(what="gradients", mechanism=mechanism, bound=bound, dimension=dimension, times=times)
    return Schedule(
        releases=(release,), rounds=rounds, parties=parties, shared_units=shared_units, users=users
    )


def test_planned_noise_spends_the_budget_and_never_more() -> None:
    made = plan(schedule(SampledGaussian(sampling=0.01), rounds=2, times=50), BUDGET)
    total = spent(made.schedule.events(), BUDGET.delta, unit="user")
    assert 0.99 * BUDGET.epsilon <= total.epsilon <= BUDGET.epsilon
    assert made.spent == total
    assert made.holds


def test_epsilon_after_each_round_is_what_the_accountant_says_of_that_many_rounds() -> None:
    made = plan(schedule(rounds=5), BUDGET)
    assert [number for number, _ in made.by_round] == [1, 2, 3, 4, 5]
    for number, epsilon in made.by_round:
        assert epsilon == spent(made.schedule.events(number), 1e-6, unit="user").epsilon
    assert made.by_round[-1][1] == made.spent.epsilon


def test_many_rounds_are_shown_by_a_dozen_that_rise_to_the_last() -> None:
    made = plan(schedule(rounds=1000), BUDGET)
    numbers, epsilons = zip(*made.by_round, strict=True)
    assert len(numbers) == 12
    assert (numbers[0], numbers[-1]) == (1, 1000)
    assert list(epsilons) == sorted(epsilons)


def test_users_shared_by_parties_need_more_noise_by_the_root_of_their_number() -> None:
    apart = plan(schedule(parties=4), BUDGET).schedule.releases[0].mechanism
    shared = plan(schedule(parties=4, shared_units=True), BUDGET).schedule.releases[0].mechanism
    assert isinstance(apart, Gaussian)
    assert isinstance(shared, Gaussian)
    assert shared.noise_multiplier == pytest.approx(2 * apart.noise_multiplier, rel=5e-3)


def test_traffic_counts_messages_both_ways_and_not_local_steps() -> None:
    made = plan(schedule(dimension=213_540, times=10), BUDGET)
    assert made.bytes_per_round == 854_160
    assert made.total_bytes == 2 * 854_160 * 10 * 3


def test_signal_is_at_most_the_sum_of_all_bounds_over_the_norm_of_the_noise() -> None:
    stated = schedule(Gaussian(noise_multiplier=4.0), rounds=1, parties=1, users=400, dimension=25)
    assert plan(stated, BUDGET, keep_noise=True).signal_to_noise == (400 * 1.5 / (4.0 * 1.5 * 5),)


def test_signal_adds_up_over_sums_and_their_noise_by_the_root() -> None:
    one = schedule(Gaussian(noise_multiplier=4.0), rounds=1, parties=1, users=400, dimension=25)
    many = schedule(Gaussian(noise_multiplier=4.0), rounds=3, times=5, parties=4, users=1600, dimension=25)
    [alone], [together] = (plan(each, BUDGET, keep_noise=True).signal_to_noise for each in (one, many))
    assert alone is not None
    assert together == pytest.approx(alone * math.sqrt(3 * 5 * 4))


def test_noise_that_cannot_be_drawn_is_refused_beforehand() -> None:
    with pytest.raises(ConfigError, match=r"steps of the grid, and at most 16,384.*coarser grid"):
        plan(schedule(DiscreteLaplace(), size=20_000.0), BUDGET)
    assert plan(schedule(DiscreteLaplace(), size=20.0), BUDGET).holds


def test_noise_that_drowns_everything_is_warned_about() -> None:
    drowned = plan(schedule(dimension=10_000_000, users=300), BUDGET)
    assert any("drown" in text for text in drowned.warnings)
    assert not any("drown" in text for text in plan(schedule(), BUDGET).warnings)


def test_two_parties_and_small_crowds_are_warned_about() -> None:
    two = plan(schedule(parties=2), BUDGET).warnings
    assert any("of two parties" in text for text in two)
    few = plan(schedule(SampledGaussian(sampling=0.01), rounds=1, users=900), BUDGET).warnings
    assert any("only about 3 users" in text for text in few)
    assert plan(schedule(), BUDGET).warnings == ()


def test_delta_that_is_too_large_for_the_population_is_warned_about() -> None:
    budget = Budget(epsilon=2.0, delta=1e-3, unit="user")
    assert any("1/30,000" in text for text in plan(schedule(), budget).warnings)


def test_noise_that_is_kept_may_exceed_the_budget_and_says_so() -> None:
    made = plan(schedule(Gaussian(noise_multiplier=1.1)), BUDGET, keep_noise=True)
    assert not made.holds
    assert "ABOVE the budget" in str(made)
    assert any("above the budget" in text for text in made.warnings)


def test_needed_budget_is_just_enough() -> None:
    stated = schedule(Gaussian(noise_multiplier=8.0))
    budget = needed(stated, delta=1e-6, unit="user")
    assert plan(stated, budget, keep_noise=True).holds
    less = Budget(epsilon=budget.epsilon * 0.999, delta=1e-6, unit="user")
    assert not plan(stated, less, keep_noise=True).holds


def test_no_budget_is_proved_where_there_is_none() -> None:
    with pytest.raises(Refused, match="no epsilon can be proved"):
        needed(schedule(), delta=0.0, unit="user")


def test_a_mechanism_that_cannot_spend_the_budget_says_that_noise_could_be_less() -> None:
    coins = PoissonBinomial(trials=1, theta=0.25, participants=100_000)
    made = plan(schedule(coins, rounds=1, dimension=1), BUDGET)
    assert any("is spent" in text for text in made.warnings)


def test_laplace_needs_no_delta() -> None:
    made = plan(schedule(Laplace(), rounds=4), Budget(epsilon=2.0, delta=0.0, unit="user"))
    assert made.schedule.releases[0].mechanism == Laplace(noise_multiplier=2.006)
    assert made.spent.method == "pure"


def test_json_holds_what_the_text_says() -> None:
    made = plan(schedule(rounds=3), BUDGET)
    table = json.loads(json.dumps(made.as_json(), allow_nan=False))
    assert table["epsilon"] == made.spent.epsilon
    assert table["releases"][0]["mechanism"]["noise_multiplier"] > 1
    assert [row["round"] for row in table["by_round"]] == [1, 2, 3]
    assert f"epsilon {made.spent.epsilon:.4g}" in str(made)


def test_answers_by_chance_can_be_planned_too() -> None:
    budget = Budget(epsilon=3.0, delta=0.0, unit="user")
    answers = schedule(RandomizedResponse(choices=5, epsilon=1.0), rounds=2, dimension=1, users=None)
    settled = plan(answers, budget).schedule.releases[0].mechanism
    assert isinstance(settled, RandomizedResponse)
    assert 0.99 * 1.5 <= settled.epsilon <= 1.5


def test_a_huge_needed_epsilon_warns() -> None:
    with pytest.warns(PrivacyWarning, match="next to nothing"):
        budget = needed(schedule(Gaussian(noise_multiplier=0.5)), delta=1e-6, unit="user")
    assert math.isfinite(budget.epsilon)


def test_release_of_one_round_costs_and_weighs_once() -> None:
    often = schedule(rounds=10).releases[0]
    both = replace(schedule(rounds=10), releases=(often, replace(often, what="mean", rounds=1, dimension=1)))
    made = plan(both, BUDGET)
    assert [event.count for event in made.schedule.events()] == [10, 1]
    assert made.total_bytes == 2 * 3 * (10 * 400 + 4)
    assert made.bytes_per_round == 404
    assert made.spent == spent(made.schedule.events(), 1e-6, unit="user")
    always = plan(schedule(rounds=10), BUDGET)
    assert always.total_bytes == 2 * 3 * 10 * 400


def test_signal_of_a_release_of_one_round_is_that_of_one_round() -> None:
    often = schedule(rounds=9).releases[0]
    both = replace(schedule(rounds=9), releases=(often, replace(often, what="once", rounds=1)))
    nine, one = plan(both, BUDGET).signal_to_noise
    assert nine is not None
    assert one is not None
    assert nine == pytest.approx(3 * one)
