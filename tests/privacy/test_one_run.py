"""The bound on right guesses: against a linear program, mechanisms that reach it, and noise."""

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from cofactor.errors import ConfigError, DataError
from cofactor.privacy.events import Bound, Event, Mechanism
from cofactor.privacy.evidence import epsilon_of_mu, mu_of
from cofactor.privacy.mechanisms import Gaussian, Laplace, SampledGaussian, Skellam
from cofactor.privacy.one_run import Curve, OneRun, _Guesses, judged


def released(mechanism: Mechanism, *, by: str = "north", norm: Literal["l1", "l2"] = "l2") -> Event:
    return Event(
        what="sums, round 1",
        by=by,
        to="coordinator",
        mechanism=mechanism,
        bound=Bound(size=1.0, norm=norm, unit="user"),
    )


def largest_tail(right: int, guesses: int, canaries: int, curve: Curve) -> float:
    """Return the most that P(N >= right) can be: every constraint of the theorem, for all sets {t, ...}."""
    slopes, starts = curve.sides
    rows, limits = [], []
    for least in range(1, guesses + 1):
        for slope, start in zip(slopes, starts, strict=True):
            row = np.zeros(guesses + 1)
            for count in range(least, guesses + 1):
                row[count] += count / canaries
                row[count - 1] -= slope * (guesses - count + 1) / canaries
            rows.append(row)
            limits.append(start)
    wanted = -(np.arange(guesses + 1) >= right).astype(float)
    ones = np.ones((1, guesses + 1))
    found = linprog(wanted, A_ub=rows, b_ub=limits, A_eq=ones, b_eq=[1.0], bounds=(0, 1))
    assert found.status == 0
    return float(-found.fun)


CURVES = {
    "pure": Curve.pure(0.7),
    "nearly nothing": Curve.pure(0.05, 1e-3),
    "approximate": Curve.pure(0.4, 0.02),
    "several": Curve(((0.0, 0.3), (0.3, 0.15), (1.0, 0.02), (2.5, 0.0))),
    "gaussian": Curve.gaussian(0.8),
    "a lot": Curve.pure(4.0),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize(("guesses", "canaries"), [(1, 1), (4, 4), (6, 12), (9, 10), (16, 32)])
def test_the_p_value_is_what_a_linear_program_finds(name: str, guesses: int, canaries: int) -> None:
    for right in range(guesses + 1):
        seen = _Guesses(right=right, guesses=guesses, canaries=canaries)
        wanted = largest_tail(right, guesses, canaries, CURVES[name])
        assert seen.p_value(CURVES[name]) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_answers_by_a_bent_coin_are_covered(epsilon: float) -> None:
    """Randomized response keeps epsilon, and its guesses are right as often as anybody's can be."""
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    for wins in (10, 14, 18, 20):
        seen = _Guesses(right=wins, guesses=20, canaries=20)
        assert seen.p_value(Curve.pure(epsilon)) >= binom.sf(wins - 1, 20, right) - 1e-9


def test_who_tells_everything_once_in_a_while_is_covered() -> None:
    """With probability delta all coins are shown, else none: (0, delta), and all guesses right so often."""
    delta, guesses = 0.03, 40
    seen = _Guesses(right=guesses, guesses=guesses, canaries=guesses)
    truth = delta + (1 - delta) * 2.0**-guesses
    assert delta < truth <= seen.p_value(Curve.pure(0.0, delta)) < 3 * delta


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_honest_noise_is_consistent_and_less_noise_is_refuted(epsilon: float) -> None:
    random, delta = np.random.default_rng(2), 1e-6
    mu = mu_of(epsilon, delta)
    curve = Curve.of([released(Gaussian(noise_multiplier=1 / mu))], unit="user")

    def once(true: float) -> OneRun:
        present = random.random(1000) < 0.5
        return judged(random.normal(size=1000) + true * present, present, curve, delta=delta)

    honest, broken = [once(mu) for _ in range(10)], [once(mu / 0.3) for _ in range(10)]
    assert not any(each.refuted for each in honest)
    assert all(each.mu_at_least <= mu and each.epsilon_at_least <= epsilon for each in honest)
    assert sum(each.refuted for each in broken) >= 9
    assert np.mean([each.mu_at_least for each in broken]) > mu
    assert np.mean([each.as_if_gaussian for each in broken]) > epsilon


@pytest.mark.slow
def test_several_runs_prove_more_than_one() -> None:
    random, curve = np.random.default_rng(6), Curve.gaussian(1.0)

    def many(true: float, count: int) -> OneRun:
        present = random.random(300 * count) < 0.5
        scores = random.normal(size=300 * count) + true * present
        return judged(scores, present, curve, runs=np.repeat(np.arange(count), 300))

    assert np.mean([many(1 / 0.6, 1).refuted for _ in range(20)]) < 0.5
    assert all(many(1 / 0.6, 20).refuted for _ in range(5))
    assert not any(many(1.0, 20).refuted for _ in range(20))


def test_runs_with_few_canaries_are_judged_together() -> None:
    present = np.random.default_rng(7).random(450) < 0.5
    runs = np.repeat(np.arange(45), 10)
    found = judged(present.astype(float), present, Curve.gaussian(1.0), runs=runs)
    assert found.guesses == 2 * (200 // 4) + 2 * (250 // 4)
    assert found.refuted
    alone = judged(present.astype(float), present, Curve.gaussian(1.0))
    assert alone.guesses == 2 * (450 // 4)


def test_what_is_proved_grows_with_what_is_right() -> None:
    present = np.arange(400) % 2 == 0
    random = np.random.default_rng(3)
    found = []
    for size in (0.0, 1.0, 3.0, 9.0):
        found.append(judged(random.normal(size=400) + size * present, present, Curve.gaussian(1.0)))
    assert [each.mu_at_least for each in found] == sorted(each.mu_at_least for each in found)
    assert found[0].mu_at_least < 0.3
    assert found[-1].right == found[-1].guesses == 200
    assert found[-1].epsilon_at_least > 3


def test_ties_prove_nothing() -> None:
    present = np.random.default_rng(4).random(1000) < 0.5
    found = judged(np.zeros(1000), present, Curve.gaussian(0.1))
    assert not found.refuted
    assert found.epsilon_at_least < 0.3


def test_without_a_promise_there_is_only_a_bound() -> None:
    present = np.arange(100) % 2 == 0
    found = judged(present.astype(float), present, None)
    assert (found.p_value, found.claimed_mu, found.refuted) == (None, None, False)
    assert found.epsilon_at_least > 2


def test_a_curve_of_gaussian_noise_is_its_mu() -> None:
    curve = Curve.of([released(Gaussian(noise_multiplier=2.0))], unit="user")
    assert 0.5 <= curve.mu < 0.52
    exact = Curve.gaussian(0.5)
    assert 0.5 <= exact.mu < 0.501
    for epsilon, delta in exact.lines:
        if 1e-12 < delta < 0.15:
            assert epsilon_of_mu(0.5, delta) == pytest.approx(epsilon, abs=1e-6)


def test_a_curve_of_laplace_noise_is_pure_at_its_end() -> None:
    curve = Curve.of([released(Laplace(noise_multiplier=1.0), norm="l1")], unit="user")
    assert curve.lines[0] == pytest.approx((1.0, 0.0))
    # Half of what it can tell is already told by one bit: the total variation is 1 - e^(-1/2).
    assert curve.lines[1] == pytest.approx((0.0, 1 - math.exp(-0.5)), abs=1e-3)


def test_parties_without_common_users_count_apart() -> None:
    north, south = (released(Gaussian(noise_multiplier=2.0), by=by) for by in ("north", "south"))
    loud = released(Gaussian(noise_multiplier=1.0), by="west")
    alone = Curve.of([north], unit="user")
    assert Curve.of([north, south], unit="user", apart=True).mu == pytest.approx(alone.mu)
    assert Curve.of([north, loud], unit="user", apart=True).mu == pytest.approx(
        Curve.of([loud], unit="user").mu, rel=0.01
    )
    assert Curve.of([north, south], unit="user").mu == pytest.approx(math.sqrt(0.5), rel=0.03)


def test_noise_without_a_distribution_is_covered_by_its_renyi_divergence() -> None:
    """Skellam noise that is wide is as good as normal, and a curve for it may only be weaker."""
    bound = Bound(size=1000.0, norm="l2", unit="user")
    event = replace(released(Skellam(noise_multiplier=2.0)), bound=bound, dimension=50)
    curve = Curve.of([event], unit="user")
    assert 0.5 < curve.mu < 0.9
    assert curve.lines[0][0] == math.inf
    for epsilon, delta in curve.lines[1:]:
        assert epsilon >= epsilon_of_mu(0.5, delta) - 1e-9


def test_sampling_makes_a_curve_smaller() -> None:
    whole = Curve.of([released(Gaussian(noise_multiplier=1.0))], unit="user")
    some = Curve.of([released(SampledGaussian(noise_multiplier=1.0, sampling=0.1))], unit="user")
    assert some.mu < 0.5 * whole.mu


def test_nothing_released_promises_everything() -> None:
    present = np.random.default_rng(5).random(200) < 0.5
    found = judged(present.astype(float), present, Curve.of([], unit="user"))
    assert found.claimed_mu == 0
    assert found.refuted


def test_what_cannot_be_judged_is_refused() -> None:
    present = np.ones(30, bool)
    with pytest.raises(DataError, match="too few"):
        judged(np.zeros(10), present[:10], None)
    with pytest.raises(DataError, match="no NaN"):
        judged(np.full(30, np.nan), present, None)
    with pytest.raises(DataError, match="one score for each"):
        judged(np.zeros(29), present, None)
    with pytest.raises(ConfigError, match="confidence"):
        judged(np.zeros(30), present, None, confidence=95)
