"""The laws against other ways to compute them: mpmath, scipy, dp-accounting and brute force."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

from cofactor.privacy import pairs
from cofactor.privacy.pairs import Pair

Floats = NDArray[np.float64]
ORDERS = (1.1, 1.5, 2.0, 4.0, 16.0, 64.0, 256.0)
EPSILONS = (0.0, 0.01, 0.1, 0.3, 1.0, 2.0, 5.0)


def hockey_stick(upper: Floats, lower: Floats, epsilon: float) -> float:
    return float(np.maximum(upper - math.exp(epsilon) * lower, 0.0).sum())


def both_ways(upper: Floats, lower: Floats, epsilon: float) -> float:
    return max(hockey_stick(upper, lower, epsilon), hockey_stick(lower, upper, epsilon))


def exact_delta(pair: Pair, epsilon: float) -> float:
    return both_ways(np.exp(pair.log_upper), np.exp(pair.log_lower), epsilon)


def divergence(upper: Floats, lower: Floats, order: float) -> float:
    logs = order * np.log(upper) + (1 - order) * np.log(lower)
    return float(special.logsumexp(logs)) / (order - 1)


def deltas(distribution: Any, epsilons: Sequence[float]) -> list[float]:
    return [float(distribution.get_delta_for_epsilon(epsilon)) for epsilon in epsilons]


# What a grid of losses does to a law.

laws = st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=6)


@settings(max_examples=200)
@given(laws, laws, st.floats(0.003, 0.7), st.floats(0, 4))
def test_distribution_is_never_below_the_truth(
    one: list[float], other: list[float], width: float, epsilon: float
) -> None:
    size = min(len(one), len(other))
    upper, lower = (np.array(law[:size]) / sum(law[:size]) for law in (one, other))
    pair = Pair(np.log(upper), np.log(lower))
    found = pair.distribution(width).get_delta_for_epsilon(epsilon)
    assert found >= both_ways(upper, lower, epsilon) - 1e-14


@settings(max_examples=50)
@given(laws, st.floats(0.003, 0.7))
def test_distribution_keeps_all_probability_under_both_inputs(weights: list[float], width: float) -> None:
    upper = np.array(weights) / sum(weights)
    pair = Pair(np.log(upper), np.log(upper[::-1].copy()))
    losses = pair.distribution(width)
    # At epsilon -30 hardly anything is subtracted: delta is 1 - e^-30 if both masses are 1.
    assert losses.get_delta_for_epsilon(-30.0) == pytest.approx(-math.expm1(-30.0), abs=1e-12)


def test_error_of_the_grid_falls_with_the_square_of_its_width() -> None:
    pair = pairs.skellam(20.0, 3)
    composed = [pair.distribution(width).self_compose(20) for width in (0.08, 0.04, 0.02, 0.0025)]
    *errors, truth = [float(each.get_epsilon_for_delta(1e-6)) for each in composed]
    ratios = [(coarse - truth) / (fine - truth) for coarse, fine in itertools.pairwise(np.array(errors))]
    assert all(3.0 < ratio < 5.5 for ratio in ratios), ratios


def test_what_was_left_out_counts_as_given_away() -> None:
    even = np.log(np.array([0.5, 0.5]))
    assert Pair(even, even, 1e-3, math.inf).distribution(0.1).get_delta_for_epsilon(5.0) == 1e-3
    assert Pair(even, even, 1e-3, math.inf).pure == math.inf
    assert Pair(even, even, 1e-3, 2.0).renyi([3.0]) == pytest.approx(math.log1p(1e-3 * math.exp(6)) / 2)


# Additive noise on whole numbers.


@pytest.mark.parametrize(("scale", "shift"), [(0.3, 1), (2.0, 1), (2.0, 5), (40.0, 7)])
def test_discrete_laplace_equals_a_sum_over_all_outcomes(scale: float, shift: int) -> None:
    outcomes = np.arange(-3000, 3001)
    weights = np.exp(-np.abs(outcomes) / scale)
    upper, lower = weights / weights.sum(), np.exp(-np.abs(outcomes - shift) / scale) / weights.sum()
    pair = pairs.discrete_laplace(scale, shift)
    for epsilon in EPSILONS:
        assert exact_delta(pair, epsilon) == pytest.approx(both_ways(upper, lower, epsilon), abs=1e-13)
    assert pair.pure == pytest.approx(shift / scale)
    theirs = pld.from_discrete_laplace_mechanism(
        1 / scale, shift, value_discretization_interval=1e-2, use_connect_dots=True
    )
    assert deltas(pair.distribution(1e-2), EPSILONS) == pytest.approx(deltas(theirs, EPSILONS), abs=1e-11)


@pytest.mark.parametrize(("sigma", "shift"), [(0.2, 1), (0.7, 2), (5.0, 3), (60.0, 100)])
def test_discrete_gaussian_equals_dp_accounting(sigma: float, shift: int) -> None:
    theirs = pld.from_discrete_gaussian_mechanism(
        sigma, shift, value_discretization_interval=1e-2, use_connect_dots=True
    )
    ours = pairs.discrete_gaussian(sigma, shift).distribution(1e-2)
    assert deltas(ours, EPSILONS) == pytest.approx(deltas(theirs, EPSILONS), abs=1e-11)


@pytest.mark.parametrize(("sigma", "shift"), [(0.4, 1), (3.0, 4)])
def test_discrete_gaussian_equals_a_sum_in_many_digits(sigma: float, shift: int) -> None:
    with mpmath.workdps(40):
        weights = {
            k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for k in range(-99, 100)
        }
        total = mpmath.fsum(weights.values())
        pair = pairs.discrete_gaussian(sigma, shift)
        for epsilon in EPSILONS:
            parts = [weights[k] - mpmath.exp(epsilon) * weights[k - shift] for k in range(-90, 91)]
            truth = float(mpmath.fsum(max(part, 0) for part in parts) / total)
            assert exact_delta(pair, epsilon) == pytest.approx(truth, rel=1e-10, abs=1e-30)


@pytest.mark.parametrize(("sigma", "size"), [(0.5, 3.0), (2.0, 4.0), (9.0, 2.5)])
def test_vectors_with_discrete_gaussian_noise_keep_the_concentrated_bound(sigma: float, size: float) -> None:
    random = np.random.default_rng(5)
    for _ in range(30):
        change = _whole_change(random, size)
        exact = sum(_curve(pairs.discrete_gaussian(sigma, shift)) for shift in change if shift)
        assert np.all(exact <= np.array(ORDERS) * float(change @ change) / (2 * sigma**2) * (1 + 1e-9))


@pytest.mark.parametrize(("variance", "shift"), [(0.3, 1), (4.0, 2), (900.0, 20)])
def test_skellam_equals_scipy_and_a_product_of_poisson_laws(variance: float, shift: int) -> None:
    pair = pairs.skellam(variance, shift)
    outcomes = np.arange(-400, 401)
    law = stats.skellam(variance / 2, variance / 2)
    upper, lower = law.pmf(outcomes), law.pmf(outcomes - shift)
    for epsilon in EPSILONS:
        truth = both_ways(upper, lower, epsilon)
        assert exact_delta(pair, epsilon) == pytest.approx(truth, rel=1e-7, abs=1e-12)
    centre = int(np.argmax(pair.log_upper))
    assert math.exp(pair.log_upper[centre + 2]) == pytest.approx(_skellam_at(2, variance), rel=1e-12)


def _skellam_at(outcome: int, variance: float) -> float:
    """Multiply two Poisson laws out, in many digits and without a Bessel function."""
    with mpmath.workdps(30):
        half = mpmath.mpf(variance) / 2
        poisson = [mpmath.exp(-half) * half**k / mpmath.factorial(k) for k in range(1000)]
        return float(mpmath.fsum(poisson[k] * poisson[k + outcome] for k in range(900)))


def skellam_bound(order: float, l2: float, l1: float, variance: float) -> float:
    """Theorem 3.5 of Agarwal, Kairouz and Liu 2021 and its form for vectors; whole orders."""
    first = ((2 * order - 1) * l2**2 + 6 * l1) / (4 * variance**2)
    return order * l2**2 / (2 * variance) + min(first, 1.5 * l1 / variance)


@pytest.mark.parametrize("variance", [0.05, 0.5, 3.0, 50.0, 4e4])
def test_published_bound_is_never_below_the_skellam_law(variance: float) -> None:
    for shift, order in itertools.product((1, 2, 7), (2, 3, 8, 32)):
        exact = divergence_of_skellam(variance, shift, order)
        assert exact <= skellam_bound(order, shift, shift, variance) * (1 + 1e-9)


def divergence_of_skellam(variance: float, shift: int, order: float) -> float:
    """Sum over outcomes far enough out that what is left does not count at this order."""
    reach = 200 + order * shift + math.ceil(20 * math.sqrt(variance))
    outcomes = np.arange(-reach, reach + 1)
    with np.errstate(divide="ignore"):
        logs = [np.log(special.ive(np.abs(outcomes - at), variance)) for at in (0, shift)]
    seen = np.isfinite(logs[0]) & np.isfinite(logs[1])
    return max(
        float(special.logsumexp(order * one[seen] + (1 - order) * other[seen])) / (order - 1)
        for one, other in (logs, logs[::-1])
    )


def test_published_bound_is_never_below_the_skellam_law_of_vectors() -> None:
    random = np.random.default_rng(3)
    for variance, size in itertools.product((0.4, 6.0, 300.0), (2.0, 4.5)):
        for _ in range(10):
            change = np.abs(_whole_change(random, size))
            for order in (2, 5, 16):
                exact = sum(divergence_of_skellam(variance, int(shift), order) for shift in change if shift)
                l2, l1 = math.sqrt(float(change @ change)), float(change.sum())
                assert exact <= skellam_bound(order, l2, l1, variance) * (1 + 1e-9)


def test_published_bound_is_near_the_skellam_law_of_much_noise() -> None:
    exact = divergence_of_skellam(1e4, 10, 8)
    assert exact == pytest.approx(skellam_bound(8, 10, 10, 1e4), rel=1e-3)


def _whole_change(random: np.random.Generator, size: float) -> NDArray[np.int64]:
    direction = random.normal(size=random.integers(1, 6))
    change = np.trunc(direction * (size / np.linalg.norm(direction))).astype(np.int64)
    change[np.argmax(np.abs(direction))] += 0 if change.any() else 1
    return change


def _curve(pair: Pair) -> Floats:
    """Return the Renyi curve of the outcomes that are listed."""
    return Pair(pair.log_upper, pair.log_lower).renyi(ORDERS)


def test_one_coordinate_is_the_worst_place_for_a_change_in_l1() -> None:
    for scale, shift in ((1.0, 4), (3.0, 6), (0.7, 3)):
        whole = pairs.discrete_laplace(scale, shift)
        for parts in ((1, shift - 1), (2, shift - 2), (1, 1, shift - 2)):
            split = _product([pairs.discrete_laplace(scale, part) for part in parts])
            for epsilon in np.linspace(0, shift / scale, 30):
                assert exact_delta(split, epsilon) <= exact_delta(whole, epsilon) + 1e-14
            assert np.all(split.renyi(ORDERS) <= whole.renyi(ORDERS) * (1 + 1e-12))


def test_one_coordinate_is_the_worst_place_for_a_change_of_real_numbers_in_l1() -> None:
    # Whole numbers on an ever finer grid become real ones.
    whole = pairs.discrete_laplace(60.0, 120)
    for part in (12, 30, 60):
        split = _product([pairs.discrete_laplace(60.0, each) for each in (part, 120 - part)])
        for epsilon in np.linspace(0, 2, 20):
            assert exact_delta(split, epsilon) <= exact_delta(whole, epsilon) + 1e-14


def _product(several: list[Pair]) -> Pair:
    upper, lower = np.zeros(1), np.zeros(1)
    for each in several:
        upper = np.add.outer(upper, each.log_upper).ravel()
        lower = np.add.outer(lower, each.log_lower).ravel()
    return Pair(upper, lower)


@pytest.mark.parametrize("shift", [1, 3, 10])
def test_discrete_laplace_gives_away_more_on_a_coarser_grid(shift: int) -> None:
    coarse, fine = pairs.discrete_laplace(2.0, shift), pairs.discrete_laplace(24.0, 12 * shift)
    for epsilon in np.linspace(0, shift / 2, 41):
        assert exact_delta(coarse, epsilon) >= exact_delta(fine, epsilon) - 1e-14
    points = [shift / 2 * (1 - 2 * k / shift) for k in range(shift // 2 + 1)]
    for epsilon in points:
        assert exact_delta(coarse, epsilon) == pytest.approx(exact_delta(fine, epsilon), abs=1e-13)


# The Poisson binomial mechanism.


def coins(probabilities: Sequence[float]) -> Floats:
    law = np.ones(1)
    for probability in probabilities:
        law = np.convolve(law, [1 - probability, probability])
    return law


def extreme_inputs(participants: int, trials: int, theta: float) -> list[tuple[Floats, Floats]]:
    """List the laws of the sum for every number of others at the upper end, and both ends of the one."""
    found = []
    for at_top in range(participants):
        ends = [0.5 + theta] * at_top + [0.5 - theta] * (participants - 1 - at_top)
        others = coins(np.repeat(ends, trials).tolist())
        one, other = (np.convolve(others, coins([0.5 + bend] * trials)) for bend in (theta, -theta))
        found.append((one, other))
    return found


SMALL = list(itertools.product((1, 2, 3, 5), (1, 2, 4), (0.005, 0.05, 0.25)))


@pytest.mark.parametrize(("participants", "trials", "theta"), SMALL)
def test_coins_renyi_curve_equals_brute_force_over_all_extreme_inputs(
    participants: int, trials: int, theta: float
) -> None:
    worst = np.max(
        [
            [max(divergence(one, other, order), divergence(other, one, order)) for order in ORDERS]
            for one, other in extreme_inputs(participants, trials, theta)
        ],
        axis=0,
    )
    found = pairs.poisson_binomial(participants, trials, theta).renyi(ORDERS)
    assert found == pytest.approx(worst, rel=1e-9)


def test_coins_of_inputs_between_the_ends_cost_less() -> None:
    random = np.random.default_rng(2)
    for participants, trials, theta in SMALL:
        curve = pairs.poisson_binomial(participants, trials, theta).renyi(ORDERS)
        for _ in range(5):
            others = coins(np.repeat(0.5 + theta * random.uniform(-1, 1, participants - 1), trials).tolist())
            bends = theta * random.uniform(-1, 1, 2)
            one, other = (np.convolve(others, coins([0.5 + bend] * trials)) for bend in bends)
            assert np.all([divergence(one, other, order) for order in ORDERS] <= curve)


@pytest.mark.parametrize("participants", [100, 1_000, 20_000])
@pytest.mark.parametrize("trials", [1, 4, 16])
@pytest.mark.parametrize("theta", [0.0005, 0.005])
def test_coins_hardly_bent_follow_the_law_of_small_bends(
    participants: int, trials: int, theta: float
) -> None:
    orders = np.array([1.5, 2.0, 4.0, 16.0, 64.0])
    law = 8 * orders * theta**2 * trials / (participants * (1 - 4 * theta**2))
    found = pairs.poisson_binomial(participants, trials, theta).renyi(orders.tolist())
    assert found == pytest.approx(law, rel=1e-3)


def test_constant_that_the_paper_leaves_open_is_3_84() -> None:
    # Chen et al. 2022: D = C_0 theta^2 / (1 - 2 theta)^4 * alpha^2 / (alpha - 1) * trials / participants.
    alpha, theta, trials, participants = 2.0, 0.005, 16, 1_000
    [found] = pairs.poisson_binomial(participants, trials, theta).renyi([alpha])
    scale = theta**2 / (1 - 2 * theta) ** 4 * alpha**2 / (alpha - 1) * trials / participants
    assert found / scale == pytest.approx(3.84, abs=0.005)


@pytest.mark.parametrize(("participants", "trials", "theta"), SMALL)
def test_coins_distribution_is_never_below_any_inputs(participants: int, trials: int, theta: float) -> None:
    # No inputs are the worst at every epsilon: all others at one end are not, nor is one direction.
    losses = pairs.poisson_binomial_fair(participants, trials, theta).distribution(0.001)
    most = trials * math.log((1 + 2 * theta) / (1 - 2 * theta))
    for epsilon in np.linspace(0, most, 20):
        worst = max(both_ways(*laws, epsilon) for laws in extreme_inputs(participants, trials, theta))
        assert losses.get_delta_for_epsilon(epsilon) >= worst - 1e-13


def test_coins_distribution_is_never_below_coordinates_that_change_in_opposite_ways() -> None:
    for participants, trials, theta in ((2, 1, 0.25), (3, 1, 0.25), (3, 2, 0.1), (5, 1, 0.1)):
        losses = pairs.poisson_binomial_fair(participants, trials, theta).distribution(0.001).self_compose(2)
        laws = extreme_inputs(participants, trials, theta)
        ways = laws + [(other, one) for one, other in laws]
        for (up1, low1), (up2, low2) in itertools.product(laws, ways):
            upper, lower = np.outer(up1, up2).ravel(), np.outer(low1, low2).ravel()
            for epsilon in (0.0, 0.1, 0.3, 0.7):
                assert losses.get_delta_for_epsilon(epsilon) >= both_ways(upper, lower, epsilon) - 1e-13


@pytest.mark.parametrize(
    ("participants", "trials", "theta"), [(10, 2, 0.05), (1_000, 16, 0.005), (50_000, 4, 0.02)]
)
def test_coins_distribution_costs_little_more_than_the_worst_inputs(
    participants: int, trials: int, theta: float
) -> None:
    fair = pairs.poisson_binomial_fair(participants, trials, theta)
    exact = pairs.poisson_binomial(participants, trials, theta)
    assert np.exp(fair.log_upper).sum() == pytest.approx(1, abs=1e-13)
    assert 1 <= (fair.spread / exact.spread) ** 2 <= (1 + 2 * theta) * 1.005


# Answers by chance.


@pytest.mark.parametrize(("choices", "epsilon"), [(2, 0.5), (3, 1.0), (100, 4.0)])
def test_randomized_response_equals_its_closed_form(choices: int, epsilon: float) -> None:
    pair = pairs.randomized_response(choices, epsilon)
    truth = math.exp(epsilon) / (math.exp(epsilon) + choices - 1)
    for smaller in np.linspace(0, epsilon, 7):
        closed = truth * -math.expm1(smaller - epsilon)
        assert exact_delta(pair, smaller) == pytest.approx(closed, abs=1e-14)
    assert pair.pure == pytest.approx(epsilon)
    assert np.exp(pair.log_upper).sum() == pytest.approx(1)


@pytest.mark.parametrize(("kept", "raised"), [(0.5, 0.1), (0.8, 0.2), (0.6, 0.3)])
def test_unary_encoding_equals_its_closed_form(kept: float, raised: float) -> None:
    pair = pairs.unary_encoding(kept, raised)
    most = math.log(kept * (1 - raised) / (raised * (1 - kept)))
    for epsilon in np.linspace(0, most, 7):
        closed = kept * (1 - raised) - math.exp(epsilon) * raised * (1 - kept)
        assert exact_delta(pair, epsilon) == pytest.approx(closed, abs=1e-14)
    assert pair.pure == pytest.approx(most)


def test_orders_at_once_and_one_by_one_are_the_same() -> None:
    pair = pairs.skellam(400.0, 6)
    orders: list[float] = np.linspace(1.01, 90, 700).tolist()
    np.testing.assert_array_equal(pair.renyi(orders), [pair.renyi([order])[0] for order in orders])
