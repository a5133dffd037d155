import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from cofactor.errors import ConfigError
from cofactor.privacy.shuffling import (
    _Clones,
    shuffled,
    shuffled_by_formula,
    shuffled_delta,
    shuffled_rounds,
)


def every_outcome(report_epsilon: float, reports: int, epsilon: float) -> tuple[float, float]:
    """Both deltas of the pair in Theorem 3.2, outcome by outcome."""
    share, likely = math.exp(-report_epsilon), 1 / (1 + math.exp(-report_epsilon))
    first: dict[tuple[int, int], float] = defaultdict(float)
    second: dict[tuple[int, int], float] = defaultdict(float)
    for c in range(reports):
        clones = math.comb(reports - 1, c) * share**c * (1 - share) ** (reports - 1 - c)
        for a in range(c + 1):
            coins = clones * math.comb(c, a) / 2**c
            for d, chance in ((1, likely), (0, 1 - likely)):
                first[a + d, c - a + 1 - d] += coins * chance
                second[a + 1 - d, c - a + d] += coins * chance
    much = math.exp(epsilon)
    seen = first.keys() | second.keys()
    forth = math.fsum(max(0.0, first[x] - much * second[x]) for x in seen)
    back = math.fsum(max(0.0, second[x] - much * first[x]) for x in seen)
    return forth, back


def every_count(report_epsilon: float, reports: int, epsilon: float) -> float:
    """The same as sums of probabilities, one after the other: no tails, no blocks, nothing left out."""
    share, likely = math.exp(-report_epsilon), 1 / (1 + math.exp(-report_epsilon))
    much, total = math.exp(epsilon), 0.0
    for c, clones in enumerate(binom.pmf(np.arange(reports), reports - 1, share)):
        coins = np.concatenate([[0.0], binom.pmf(np.arange(c + 1), c, 0.5), [0.0]])
        one, other = coins[:-1], coins[1:]
        p, q = likely * one + (1 - likely) * other, (1 - likely) * one + likely * other
        total += clones * float(np.maximum(p - much * q, 0).sum())
    return total


@pytest.mark.parametrize("reports", [1, 2, 3, 7, 25])
@pytest.mark.parametrize("report_epsilon", [0.01, 0.7, 1.5, 5.0])
@pytest.mark.parametrize("part", [0.0, 0.2, 0.6, 0.95])
def test_delta_is_that_of_every_outcome_rounded_up(reports: int, report_epsilon: float, part: float) -> None:
    epsilon = part * report_epsilon
    forth, back = every_outcome(report_epsilon, reports, epsilon)
    assert forth == pytest.approx(back, rel=1e-9)
    found = shuffled_delta(report_epsilon, reports, epsilon)
    assert forth * (1 - 1e-12) <= found <= forth * (1 + 1e-6) + 1e-29


@pytest.mark.parametrize(("report_epsilon", "epsilon"), [(0.5, 0.06), (1.0, 0.15), (3.0, 0.6)])
def test_blocks_of_counts_cost_little(report_epsilon: float, epsilon: float) -> None:
    known = every_count(report_epsilon, 1500, epsilon)
    assert 1e-12 < known < 1e-2
    assert known <= shuffled_delta(report_epsilon, 1500, epsilon) <= 1.05 * known


def test_counts_that_are_not_looked_at_are_charged_in_full() -> None:
    # Three of ten surveys have fewer clones than the fewest that are looked at.
    found = _Clones(1.0, 1500, 0.3).delta(0.15)
    assert 0.2 < found - every_count(1.0, 1500, 0.15) < 0.31


@settings(max_examples=50)
@given(st.floats(1e-6, 12.0), st.integers(1, 10**8), st.floats(1e-12, 0.1))
def test_the_result_keeps_delta_and_no_more_is_lost_than_by_the_formula(
    report_epsilon: float, reports: int, delta: float
) -> None:
    found = shuffled(report_epsilon, reports, delta)
    formula = shuffled_by_formula(report_epsilon, reports, delta)
    assert 0 < found <= formula <= report_epsilon
    # Of the formula, the numbers say that it is right.
    for epsilon in (found, formula):
        assert shuffled_delta(report_epsilon, reports, epsilon) <= delta * 1.05 + 1e-29


def test_a_little_less_epsilon_would_not_do() -> None:
    for report_epsilon, reports, delta in ((1.0, 10**6, 1e-6), (4.0, 10**5, 1e-9), (0.1, 10**4, 1e-5)):
        found = shuffled(report_epsilon, reports, delta)
        assert shuffled_delta(report_epsilon, reports, 0.99 * found) > delta


def test_more_reports_help_and_more_epsilon_or_less_delta_do_not() -> None:
    by_reports = [shuffled(2.0, n, 1e-6) for n in (1, 10, 100, 1000, 10**4, 10**5, 10**6, 10**9, 10**12)]
    assert np.all(np.diff(by_reports) <= 1e-9)
    by_epsilon = [shuffled(e, 10**5, 1e-6) for e in (1e-3, 0.1, 0.5, 1, 2, 4, 8, 16, 32)]
    assert np.all(np.diff(by_epsilon) > 0)
    by_delta = [shuffled(1.0, 10**5, d) for d in (1e-2, 1e-4, 1e-6, 1e-9, 1e-12, 1e-15)]
    assert np.all(np.diff(by_delta) > 0)


def test_one_report_alone_hides_among_nobody() -> None:
    # Of one report, delta is (e^3 - e^epsilon) / (e^3 + 1).
    least = math.log(math.exp(3) - 1e-6 * (math.exp(3) + 1))
    assert least <= shuffled(3.0, 1, 1e-6) <= 3.0
    assert shuffled_delta(3.0, 1, 1.0) == pytest.approx((math.exp(3) - math.e) / (math.exp(3) + 1), rel=1e-6)


@pytest.mark.parametrize("report_epsilon", [30.0, 50.0, 63.0, 80.0, 1e6])
def test_where_no_clones_are_nothing_is_gained(report_epsilon: float) -> None:
    assert report_epsilon - 1e-5 <= shuffled(report_epsilon, 10**6, 1e-6) <= report_epsilon
    assert shuffled_delta(report_epsilon, 10**6, report_epsilon - 5) > 0.99
    assert shuffled_delta(report_epsilon, 10**6, report_epsilon) == 0


def test_the_formula_is_that_of_theorem_3_1_with_its_condition() -> None:
    # (e - 1) / (e + 1) = 0.46212; 8 sqrt(e ln(4e6) / 1e6) = 0.051427; 8 e / 1e6 = 0.0000217.
    assert shuffled_by_formula(1.0, 1_000_000, 1e-6) == pytest.approx(
        math.log1p(0.46212 * (0.051427 + 2.17e-5)), rel=1e-4
    )
    edge = math.log(10_000 / (16 * math.log(2e6)))
    assert shuffled_by_formula(edge - 1e-9, 10_000, 1e-6) < edge / 2
    assert shuffled_by_formula(edge + 1e-9, 10_000, 1e-6) == edge + 1e-9
    assert shuffled_by_formula(1.0, 100, 1e-6) == 1.0


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5])
@pytest.mark.parametrize("reports", [50, 5_000, 50_000])
def test_no_shuffled_bits_lose_more_than_is_stated(epsilon: float, reports: int) -> None:
    # What a shuffler lets out of answers of one bit is how many are 1. All others hold a 0.
    delta, truth = 1e-6, 1 / (1 + math.exp(-epsilon))
    counts = np.arange(-1, reports + 1)
    others = binom.pmf(counts, reports - 1, 1 - truth)
    before = np.concatenate([[0.0], others[:-1]])
    zero, one = others * truth + before * (1 - truth), others * (1 - truth) + before * truth
    stated = shuffled(epsilon, reports, delta)
    assert stated < epsilon
    for p, q in ((zero, one), (one, zero)):
        assert np.maximum(p - math.exp(stated) * q, 0).sum() <= delta
    assert np.maximum(one - math.exp(stated / 20) * zero, 0).sum() > delta  # it does lose something


@given(st.floats(0.01, 8.0), st.integers(100, 10**7), st.integers(1, 50))
def test_rounds_cost_more_than_one_and_never_more_than_their_sum(
    epsilon: float, reports: int, rounds: int
) -> None:
    once = shuffled_by_formula(epsilon, reports, 1e-6)
    all_rounds = shuffled_rounds(epsilon, reports, rounds, 1e-6)
    assert once <= epsilon
    assert all_rounds <= rounds * epsilon * (1 + 1e-12)
    assert all_rounds >= once * (1 - 1e-12)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="report_epsilon"):
        shuffled(0.0, 10, 1e-6)
    with pytest.raises(ConfigError, match="reports"):
        shuffled(1.0, 0, 1e-6)
    with pytest.raises(ConfigError, match="delta"):
        shuffled(1.0, 10, 0.0)
    with pytest.raises(ConfigError, match="epsilon"):
        shuffled_delta(1.0, 10, -1.0)
