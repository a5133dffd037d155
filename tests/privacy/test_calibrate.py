import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from cofactor.errors import Refused
from cofactor.privacy import calibrate
from cofactor.privacy.accountant import spent
from cofactor.privacy.answers import RandomizedResponse, UnaryEncoding
from cofactor.privacy.budget import Adjacency, Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonBinomial,
    SampledGaussian,
    Skellam,
)
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import SecureRandom
from tests.privacy.making import bound_for

PURE = (Laplace(), DiscreteLaplace(noise_multiplier=3.0), RandomizedResponse(choices=5, epsilon=1.0))
NOISES: tuple[Any, ...] = (
    Gaussian(noise_multiplier=7.0),
    SampledGaussian(sampling=0.02),
    DiscreteGaussian(),
    Skellam(),
    PoissonBinomial(trials=16, theta=0.01, participants=20),
    UnaryEncoding(choices=8, epsilon=0.3),
    *PURE,
)


def release(mechanism: Any, dimension: int = 1) -> Release:
    bound = bound_for(mechanism, size=3.5)
    return Release(what="sums", mechanism=mechanism, bound=bound, dimension=dimension)


def schedule(*mechanisms: Any, rounds: int = 10, dimension: int = 1) -> Schedule:
    return Schedule(releases=tuple(release(each, dimension) for each in mechanisms), rounds=rounds)


def budget(epsilon: float, delta: float = 1e-6, adjacency: Adjacency = "empty") -> Budget:
    return Budget(epsilon=epsilon, delta=delta, unit="user", adjacency=adjacency)


def cost(planned: Schedule, given: Budget) -> float:
    return spent(planned.events(), given.delta, unit=given.unit, adjacency=given.adjacency).epsilon


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
@pytest.mark.parametrize(("epsilon", "adjacency"), [(0.05, "replace"), (6.0, "empty")])
def test_budget_is_spent_and_never_exceeded(noise: Any, epsilon: float, adjacency: Adjacency) -> None:
    allowed = budget(epsilon, adjacency=adjacency)
    assert 0.99 * epsilon <= cost(calibrated(schedule(noise), allowed), allowed) <= epsilon


@pytest.mark.parametrize("noise", [DiscreteGaussian(), Skellam()])
def test_budget_of_vectors_is_spent_and_never_exceeded(noise: Any) -> None:
    allowed = budget(2.0)
    assert 1.98 <= cost(calibrated(schedule(noise, dimension=500), allowed), allowed) <= 2.0


@pytest.mark.parametrize("noise", PURE, ids=lambda noise: type(noise).__name__)
def test_noise_without_delta_is_calibrated_without_delta(noise: Any) -> None:
    allowed = budget(2.0, delta=0.0)
    assert 1.98 <= cost(calibrated(schedule(noise), allowed), allowed) <= 2.0


def test_several_releases_share_a_budget_in_the_given_proportion() -> None:
    allowed = budget(1.5)
    made = calibrated(schedule(Gaussian(noise_multiplier=1.0), Skellam(noise_multiplier=2.0)), allowed)
    first, second = (each.mechanism for each in made.releases)
    assert isinstance(first, Gaussian)
    assert isinstance(second, Skellam)
    assert second.noise_multiplier == pytest.approx(2 * first.noise_multiplier)
    assert 0.99 * 1.5 <= cost(made, allowed) <= 1.5


@settings(max_examples=15)
@given(st.floats(0.01, 10), st.sampled_from([1e-9, 1e-6, 1e-3]), st.integers(1, 300), st.floats(0.1, 50))
def test_gaussian_gets_the_analytic_noise_and_at_most_one_percent_more(
    epsilon: float, delta: float, rounds: int, start: float
) -> None:
    def excess(log_multiplier: float) -> float:
        """Balle and Wang 2018, Theorem 8."""
        a, b = math.exp(-log_multiplier) / 2, epsilon * math.exp(log_multiplier)
        return float(stats.norm.cdf(a - b) - math.exp(epsilon + stats.norm.logcdf(-a - b))) - delta

    least = math.exp(optimize.brentq(excess, -5, 12)) * math.sqrt(rounds)
    made = calibrated(schedule(Gaussian(noise_multiplier=start), rounds=rounds), budget(epsilon, delta))
    [found] = made.releases
    assert isinstance(found.mechanism, Gaussian)
    assert least * (1 - 1e-9) <= found.mechanism.noise_multiplier <= least * 1.011


def test_factor_has_four_digits() -> None:
    [made] = calibrated(schedule(Gaussian()), budget(0.7)).releases
    assert isinstance(made.mechanism, Gaussian)
    assert f"{made.mechanism.noise_multiplier:.4g}" == f"{made.mechanism.noise_multiplier:.12g}"


def test_second_call_is_answered_from_memory() -> None:
    first = calibrated(schedule(Gaussian(), rounds=3), budget(1.1))
    searches = calibrate._calibrated.cache_info().misses
    assert calibrated(schedule(Gaussian(), rounds=3), budget(1.1)) == first
    assert calibrate._calibrated.cache_info().misses == searches


def test_messages_of_another_size_share_the_search_and_keep_their_size() -> None:
    small, large = (schedule(Gaussian(), rounds=3), schedule(Gaussian(), rounds=3))
    large = replace(large, releases=tuple(replace(each, dimension=1000) for each in large.releases))
    first = calibrated(small, budget(1.1))
    searches = calibrate._calibrated.cache_info().misses
    other = calibrated(large, budget(1.1))
    assert calibrate._calibrated.cache_info().misses == searches
    assert [each.dimension for each in other.releases] == [1000] * len(other.releases)
    assert other.releases[0].mechanism == first.releases[0].mechanism


def test_gaussian_without_delta_is_refused_with_a_remedy() -> None:
    with pytest.raises(Refused, match=r"keeps delta 0\. Give a larger delta, or use .* Laplace"):
        calibrated(schedule(Gaussian()), budget(1.0, delta=0.0))


def test_bound_that_proves_nothing_for_the_budget_is_refused() -> None:
    values_only = Release(
        what="sums",
        mechanism=Gaussian(),
        bound=Bound(size=2.0, norm="l2", unit="user", adjacency="value"),
        dimension=1,
    )
    with pytest.raises(Refused, match="proves nothing"):
        calibrated(Schedule(releases=(values_only,), rounds=1), budget(1.0))


def test_coins_cannot_be_bent_further_than_they_may() -> None:
    made = calibrated(
        schedule(PoissonBinomial(trials=1, theta=0.1, participants=10**4), rounds=1), budget(9.0)
    )
    [found] = made.releases
    assert isinstance(found.mechanism, PoissonBinomial)
    assert found.mechanism.theta == 0.25
    assert cost(made, budget(9.0)) < 9.0


STEEP = [
    # Just below where delta alone pays, cost falls to 0 within one step of the last digit, or jumps there.
    (Gaussian(), 1e-4, 9e-3, 1),
    (Laplace(), 1e-3, 9e-3, 1),
    (Skellam(), 1e-3, 9e-3, 20),
    (DiscreteGaussian(), 1e-3, 9e-3, 20),
]


@pytest.mark.parametrize(("noise", "epsilon", "delta", "dimension"), STEEP)
def test_search_ends_where_no_factor_spends_the_budget_closely(
    noise: Any, epsilon: float, delta: float, dimension: int
) -> None:
    planned, allowed = schedule(noise, dimension=dimension), budget(epsilon, delta)
    made = calibrated(planned, allowed)
    assert cost(made, allowed) <= epsilon
    factor = made.releases[0].mechanism.noise_multiplier / noise.noise_multiplier  # type: ignore[attr-defined]
    less = planned.scaled(factor * (1 - 1.01 * 10.0 ** (math.floor(np.log10(factor)) - 3) / factor))
    assert cost(made, allowed) >= 0.99 * epsilon or cost(less, allowed) > epsilon


def test_a_mechanism_at_the_end_of_its_range_gets_its_least_noise() -> None:
    allowed = budget(9.0)
    found = calibrated(schedule(SampledGaussian(sampling=1e-9), rounds=1), allowed)
    assert cost(found, allowed) <= 9.0
    [mechanism] = [each.mechanism for each in found.releases]
    assert isinstance(mechanism, SampledGaussian)
    assert mechanism.noise_multiplier < 0.01


@pytest.mark.parametrize("part", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("noise", [Gaussian(), Skellam(), Laplace()])
def test_what_was_released_before_leaves_the_rest_of_the_budget(noise: Any, part: float) -> None:
    budget = Budget(epsilon=2.0, delta=1e-6, unit="user")
    answer = RandomizedResponse(choices=4, epsilon=2.0 * part)
    before = answer.event(answer.bound, dimension=1, random=SecureRandom(), what="age", by="a", to="b")
    release = Release(what="x", mechanism=noise, bound=bound_for(noise), dimension=5)
    found = calibrated(Schedule(releases=(release,), rounds=3).with_fixed([before]), budget)
    assert found.releases[-1].mechanism == answer
    cost = spent(found.events(), 1e-6, unit="user").epsilon
    assert 0.98 * 2.0 < cost <= 2.0
    alone = spent(found.without_fixed().events(), 1e-6, unit="user").epsilon
    assert alone < cost


def test_wide_releases_made_before_keep_their_width() -> None:
    budget = Budget(epsilon=4.0, delta=1e-6, unit="user")
    wide = Skellam(noise_multiplier=3.0)
    event = wide.event(bound_for(wide), dimension=10_000, random=SecureRandom(), what="x", by="a", to="b")
    release = Release(what="y", mechanism=Gaussian(), bound=bound_for(Gaussian()), dimension=7)
    found = calibrated(Schedule(releases=(release,), rounds=1).with_fixed([event]), budget)
    assert found.releases[-1].dimension == 10_000
    assert spent(found.events(), 1e-6, unit="user").epsilon <= 4.0


def test_nothing_left_of_a_budget_is_refused_with_the_reason() -> None:
    answer = RandomizedResponse(choices=4, epsilon=1.99)
    before = answer.event(answer.bound, dimension=1, random=SecureRandom(), what="age", by="a", to="b")
    release = Release(what="x", mechanism=Gaussian(), bound=bound_for(Gaussian()), dimension=1)
    schedule = Schedule(releases=(release,), rounds=1).with_fixed([before])
    with pytest.raises(Refused, match="released before takes nearly all"):
        calibrated(schedule, Budget(epsilon=2.0, delta=1e-6, unit="user"))
