import math
from dataclasses import FrozenInstanceError

import dp_accounting
import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from cofactor.errors import ConfigError, DataError
from cofactor.privacy.evidence import (
    Count,
    Kind,
    epsilon_at_least,
    epsilon_of_mu,
    evidence,
    mu_at_least,
    mu_of,
    proportion_at_least,
    proportion_at_most,
)

SURE = 1 - 1e-7
"""The confidence of audits: a bound above the truth in one of ten million."""

Floats = NDArray[np.float64]


@st.composite
def counts(draw: st.DrawFn, most: int = 100_000) -> Count:
    trials = draw(st.integers(1, most))
    return Count(hits=draw(st.integers(0, trials)), trials=trials)


confidences = st.floats(0.01, 0.999999999)


# One proportion


@given(counts(), confidences)
def test_limits_of_a_proportion_leave_the_tail_that_was_asked_for(count: Count, confidence: float) -> None:
    low, high = (bound(count, confidence=confidence) for bound in (proportion_at_least, proportion_at_most))
    if count.hits:
        assert stats.binom.sf(count.hits - 1, count.trials, low) == pytest.approx(1 - confidence, rel=1e-6)
    if count.hits < count.trials:
        assert stats.binom.cdf(count.hits, count.trials, high) == pytest.approx(1 - confidence, rel=1e-6)


@pytest.mark.parametrize("trials", [1, 2, 50, 10**6])
def test_a_proportion_at_its_edges_has_the_closed_form(trials: int) -> None:
    never, always = Count(hits=0, trials=trials), Count(hits=trials, trials=trials)
    assert proportion_at_least(never, confidence=SURE) == 0
    assert proportion_at_most(always, confidence=SURE) == 1
    assert proportion_at_least(always, confidence=SURE) == pytest.approx((1 - SURE) ** (1 / trials))
    assert proportion_at_most(never, confidence=SURE) == pytest.approx(
        -math.expm1(math.log(1 - SURE) / trials)
    )


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (70, 1000), (999, 1000)])
def test_limits_equal_those_of_scipy(hits: int, trials: int) -> None:
    interval = stats.binomtest(hits, trials).proportion_ci(0.9, method="exact")
    count = Count(hits=hits, trials=trials)
    assert proportion_at_least(count, confidence=0.95) == pytest.approx(interval.low, rel=1e-9)
    assert proportion_at_most(count, confidence=0.95) == pytest.approx(interval.high, rel=1e-9)


@pytest.mark.parametrize("truth", [0.001, 0.03, 0.3, 0.5, 0.97])
def test_limits_miss_as_often_as_they_say_and_hardly_less(truth: float) -> None:
    trials = 2000
    missed = [
        stats.binom.pmf(hits, trials, truth)
        for hits in range(trials + 1)
        if proportion_at_least(Count(hits=hits, trials=trials), confidence=0.9) > truth
    ]
    assert 0.05 < sum(missed) <= 0.1


@given(counts(), confidences, confidences)
def test_limits_widen_with_the_confidence_and_rise_with_the_hits(
    count: Count, some: float, other: float
) -> None:
    less, more = sorted((some, other))
    assert proportion_at_least(count, confidence=more) <= proportion_at_least(count, confidence=less)
    assert proportion_at_most(count, confidence=more) >= proportion_at_most(count, confidence=less)
    assume(count.hits < count.trials)
    raised = Count(hits=count.hits + 1, trials=count.trials)
    assert proportion_at_least(raised, confidence=some) > proportion_at_least(count, confidence=some)
    assert proportion_at_most(raised, confidence=some) > proportion_at_most(count, confidence=some)


# Two counts


@pytest.mark.parametrize("pair", [(0.3, 0.3), (0.5, 0.2), (0.02, 0.3), (0.99, 0.9), (1.0, 0.5)])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_bounds_from_counts_miss_no_more_often_than_they_say(pair: tuple[float, float], delta: float) -> None:
    trials, (one, other) = 40, pair
    ways = [(one, other), (other, one), (1 - one, 1 - other), (1 - other, 1 - one)]
    epsilon = max(math.log(max(1.0, (p - delta) / q)) if q else math.inf for p, q in ways)
    mu = abs(stats.norm.ppf(one) - stats.norm.ppf(other))
    missed = {"epsilon": 0.0, "mu": 0.0}
    for a, b in np.ndindex(trials + 1, trials + 1):
        chance = stats.binom.pmf(a, trials, one) * stats.binom.pmf(b, trials, other)
        if chance > 1e-9:
            pair_of_counts = Count(hits=a, trials=trials), Count(hits=b, trials=trials)
            found = epsilon_at_least(*pair_of_counts, confidence=0.9, delta=delta)
            missed["epsilon"] += chance * (found > epsilon)
            missed["mu"] += chance * (mu_at_least(*pair_of_counts, confidence=0.9) > mu)
    assert max(missed.values()) <= 0.1


def test_bounds_from_many_trials_are_close_to_the_truth() -> None:
    one, other = Count(hits=500_000, trials=10**6), Count(hits=100_000, trials=10**6)
    assert epsilon_at_least(one, other, confidence=SURE) == pytest.approx(math.log(5), rel=0.02)
    assert epsilon_at_least(one, other, confidence=SURE, delta=0.1) == pytest.approx(math.log(4), rel=0.02)
    assert mu_at_least(one, other, confidence=SURE) == pytest.approx(-stats.norm.ppf(0.1), rel=0.02)


@given(counts(), counts(), confidences, st.floats(0, 0.5))
def test_bounds_do_not_care_which_input_or_which_event_comes_first(
    one: Count, other: Count, confidence: float, delta: float
) -> None:
    without = [Count(hits=count.trials - count.hits, trials=count.trials) for count in (one, other)]
    epsilon = epsilon_at_least(one, other, confidence=confidence, delta=delta)
    mu = mu_at_least(one, other, confidence=confidence)
    assert epsilon >= 0
    assert mu >= 0
    for pair in [(other, one), (without[0], without[1])]:
        found = epsilon_at_least(*pair, confidence=confidence, delta=delta)
        assert found == pytest.approx(epsilon, abs=1e-7)
        assert mu_at_least(*pair, confidence=confidence) == pytest.approx(mu, abs=1e-7)


@given(counts(1000), counts(1000), confidences, confidences, st.floats(0, 0.2), st.floats(0, 0.2))
def test_bounds_grow_with_clearer_counts_and_shrink_with_confidence_and_delta(
    one: Count, other: Count, some: float, another: float, delta: float, more_delta: float
) -> None:
    if one.hits * other.trials < other.hits * one.trials:
        one, other = other, one
    less, more = sorted((some, another))
    epsilon = epsilon_at_least(one, other, confidence=less, delta=delta)
    mu = mu_at_least(one, other, confidence=less)
    assert epsilon_at_least(one, other, confidence=more, delta=delta) <= epsilon
    assert epsilon_at_least(one, other, confidence=less, delta=delta + more_delta) <= epsilon
    assert mu_at_least(one, other, confidence=more) <= mu
    assume(one.hits < one.trials)
    clearer = Count(hits=one.hits + 1, trials=one.trials)
    assert epsilon_at_least(clearer, other, confidence=less, delta=delta) >= epsilon
    assert mu_at_least(clearer, other, confidence=less) >= mu


# mu and epsilon


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [1e-8, 1e-4, 0.005, 0.05, 0.7, 3.0, 40.0, 1000.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-6, 0.01, 0.6])
def test_epsilon_of_mu_gives_back_delta_in_sixty_digits(mu: float, delta: float) -> None:
    epsilon = epsilon_of_mu(mu, delta)
    if epsilon == 0:
        assert exact_delta(mu, 0) <= delta
    else:
        assert float(exact_delta(mu, epsilon) / mpmath.mpf(delta)) == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-6, 0.3, 2.0, 50.0, 1e4])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-5, 0.3, 0.9999])
def test_mu_of_gives_back_delta_in_sixty_digits(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    if mu < 1e-30:  # sixty digits would not do: there delta is mu / sqrt(2 pi) to the first order
        assert delta / mu == pytest.approx(1 / math.sqrt(2 * math.pi), rel=2)
    else:
        assert float(exact_delta(mu, epsilon) / mpmath.mpf(delta)) == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.0, 30.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.01])
def test_epsilon_and_mu_agree_with_dp_accounting(sigma: float, delta: float) -> None:
    epsilon = dp_accounting.get_epsilon_gaussian(sigma, delta)
    assert epsilon_of_mu(1 / sigma, delta) == pytest.approx(epsilon, rel=1e-9)
    assert mu_of(epsilon, delta) == pytest.approx(1 / sigma, rel=1e-9)


@given(st.floats(1e-6, 100), st.floats(1e-12, 0.4))
def test_mu_of_undoes_epsilon_of_mu(mu: float, delta: float) -> None:
    epsilon = epsilon_of_mu(mu, delta)
    assume(epsilon > 0)
    assert mu_of(epsilon, delta) == pytest.approx(mu, rel=1e-6)


def test_without_delta_only_no_mu_at_all_has_an_epsilon() -> None:
    assert epsilon_of_mu(0.0, 0.0) == 0
    assert epsilon_of_mu(0.1, 0.0) == math.inf
    assert mu_of(5.0, 0.0) == 0


# From scores to evidence


def normals(mu: float, trials: int) -> tuple[Floats, Floats]:
    chance = np.random.default_rng()
    return chance.normal(mu, 1, trials), chance.normal(0, 1, trials)


def coins(one: float, other: float, trials: int) -> tuple[Floats, Floats]:
    chance = np.random.default_rng()
    return (chance.random(trials) < one).astype(np.float64), (chance.random(trials) < other).astype(
        np.float64
    )


AUDITS = 400


def most_missed(confidence: float) -> int:
    """More misses among so many audits are a false alarm once in a hundred million runs."""
    return int(stats.binom.isf(1e-8, AUDITS, 1 - confidence))


@pytest.mark.parametrize("kind", ["epsilon", "mu"])
def test_choosing_among_many_thresholds_does_not_cost_confidence(kind: Kind) -> None:
    found = [evidence(*normals(0.0, 1000), kind=kind, confidence=0.5).lower_bound for _ in range(AUDITS)]
    assert np.sum(np.array(found) > 0) <= most_missed(0.5)


def test_evidence_at_90_percent_misses_no_more_often_than_that() -> None:
    shifts = [evidence(*normals(1.5, 200), kind="mu", confidence=0.9) for _ in range(AUDITS)]
    assert sum(each.refutes(1.5) for each in shifts) <= most_missed(0.9)
    flips = [evidence(*coins(0.6, 0.1, 200), kind="epsilon", confidence=0.9) for _ in range(AUDITS)]
    assert sum(each.refutes(math.log(6)) for each in flips) <= most_missed(0.9)


def test_evidence_of_an_audit_is_never_above_the_truth() -> None:
    # A bound is above the truth only if two limits together are off by 2 x 5.4 deviations: below 1e-10 each.
    for _ in range(100):
        assert not evidence(*normals(0.5, 2000), kind="mu", confidence=SURE).refutes(0.5)
        assert not evidence(*normals(4.0, 2000), kind="mu", confidence=SURE).refutes(4.0)
        assert not evidence(*coins(0.6, 0.1, 2000), kind="epsilon", confidence=SURE).refutes(math.log(6))
        assert not evidence(*coins(0.1, 0.1, 2000), kind="epsilon", confidence=SURE).refutes(0)


def test_evidence_comes_close_to_the_truth() -> None:
    # Deviations of the estimates are below 1%, the bounds some six of them below the truth.
    assert evidence(*normals(1.0, 100_000), kind="mu", confidence=SURE).lower_bound > 0.9
    assert evidence(*coins(0.5, 0.1, 100_000), kind="epsilon", confidence=SURE).lower_bound > 0.9 * math.log(
        5
    )


def test_counting_is_blind_to_a_gaussian_that_leaks_a_third_more_than_claimed_and_mu_is_not() -> None:
    delta, claimed, real = 1e-6, 1.0, 1.33
    one, other = normals(mu_of(real, delta), 10**6)
    by_counting = evidence(one, other, kind="epsilon", confidence=0.95, delta=delta)
    assert by_counting.trials == 10**6
    assert not by_counting.refutes(claimed)
    by_mu = evidence(one, other, kind="mu", confidence=SURE)
    assert by_mu.refutes(mu_of(claimed, delta))
    assert claimed < epsilon_of_mu(by_mu.lower_bound, delta) < real


def test_the_best_event_of_a_million_draws_counts_0_83_where_1_33_is_true() -> None:
    delta, trials = 1e-6, 500_000
    mu = mu_of(1.33, delta)
    found = []
    for threshold in np.linspace(-5, 5, 501):
        hits = [round(trials * stats.norm.sf(threshold - mean)) for mean in (mu, 0.0)]
        one, other = (Count(hits=each, trials=trials) for each in hits)
        found.append(epsilon_at_least(one, other, confidence=0.95, delta=delta))
    assert max(found) == pytest.approx(0.83, abs=0.005)


def test_scores_with_ties_infinities_and_other_signs_are_evidence_too() -> None:
    one, other = coins(0.5, 0.1, 20_000)
    expected = evidence(one, other, kind="epsilon", confidence=SURE)
    assert expected.threshold == 1
    assert expected.lower_bound > 1.3
    extreme = [np.where(scores > 0, np.inf, -np.inf) for scores in (one, other)]
    assert evidence(*extreme, kind="epsilon", confidence=SURE).lower_bound == expected.lower_bound
    assert evidence(-one, -other, kind="epsilon", confidence=SURE).lower_bound == pytest.approx(
        expected.lower_bound
    )
    assert evidence(other, one, kind="epsilon", confidence=SURE).lower_bound == expected.lower_bound
    constant = np.zeros(1000)
    assert evidence(constant, constant, kind="mu", confidence=SURE).lower_bound == 0


def test_a_single_rare_but_telling_outcome_is_found_among_very_unequal_samples() -> None:
    one, other = coins(0.5, 0.5, 10**6)
    one[::500] = 50.0
    found = evidence(one, other[:100_000], kind="epsilon", confidence=SURE)
    assert (found.one.trials, found.other.trials) == (500_000, 50_000)
    assert found.threshold == 50
    assert found.other.hits == 0
    # Some 1,000 of 500,000 against fewer than 18 of 50,000, which is what "none" proves.
    assert found.lower_bound > 1.3


def test_sorted_scores_prove_what_shuffled_ones_prove() -> None:
    one, other = normals(1.0, 100_000)
    found = evidence(np.sort(one), np.sort(other), kind="mu", confidence=SURE)
    assert 0.9 < found.lower_bound < 1.0


def test_trials_that_share_their_noise_stay_together() -> None:
    noise, _ = normals(0.0, 1000)
    found = evidence(noise, noise, kind="mu", confidence=0.5)
    assert found.one == found.other


# What people get wrong


def test_nan_and_tables_are_refused_as_scores() -> None:
    good, _ = normals(0.0, 100)
    with pytest.raises(DataError, match=r"second sample must be one list .* 1 NaN"):
        evidence(good, np.append(good, np.nan), kind="mu", confidence=SURE)
    with pytest.raises(DataError, match=r"first sample must be one list .* shape \(10, 10\)"):
        evidence(good.reshape(10, 10), good, kind="mu", confidence=SURE)


def test_too_few_trials_are_refused_with_the_number_needed() -> None:
    with pytest.raises(DataError, match=r"51 trials, too few .* Run at least 52"):
        evidence(np.ones(51), np.zeros(51), kind="epsilon", confidence=SURE)
    assert evidence(np.ones(52), np.zeros(52), kind="epsilon", confidence=SURE).lower_bound > 0


def test_settings_that_make_no_sense_are_refused() -> None:
    one, other = coins(0.5, 0.1, 100)
    with pytest.raises(ConfigError, match="confidence must lie between 0 and 1"):
        evidence(one, other, kind="mu", confidence=95)
    with pytest.raises(ConfigError, match="mu needs no delta"):
        evidence(one, other, kind="mu", confidence=0.9, delta=1e-6)
    with pytest.raises(ConfigError, match=r'kind must be one of epsilon, mu.*Did you mean "epsilon"'):
        evidence(one, other, kind="epsilom", confidence=0.9)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="delta must be 0 or more"):
        evidence(one, other, kind="epsilon", confidence=0.9, delta=-0.1)
    with pytest.raises(ConfigError, match="mu must be a finite number"):
        epsilon_of_mu(math.nan, 1e-6)


@pytest.mark.parametrize(("hits", "trials"), [(-1, 5), (6, 5), (0, 0), (2.5, 5)])
def test_impossible_counts_are_refused(hits: int, trials: int) -> None:
    with pytest.raises(ConfigError):
        Count(hits=hits, trials=trials)


def test_evidence_is_frozen_and_reads_as_a_sentence() -> None:
    one, other = np.repeat([1.0, 0.0], [2000, 2000]), np.repeat([0.0, 1.0], [3900, 100])
    found = evidence(one, other, kind="epsilon", confidence=SURE, delta=0.01)
    assert str(found).startswith(
        f"epsilon is at least {found.lower_bound:.4g} at delta 0.01, with 99.99999% "
    )
    assert str(found).endswith(f"(hits: {found.one.hits:,} of 2,000 against {found.other.hits} of 2,000)")
    assert "with 90% confidence" in str(evidence(one, other, kind="mu", confidence=0.9))
    with pytest.raises(FrozenInstanceError):
        found.lower_bound = 0.0  # type: ignore[misc]
