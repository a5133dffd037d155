"""Single mechanisms against what shares no code with ours: closed forms, integrals, published numbers."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld
from numpy.typing import NDArray
from scipy import integrate, optimize, signal, stats

from cofactor.privacy import pairs
from cofactor.privacy.answers import RandomizedResponse, UnaryEncoding
from cofactor.privacy.budget import Adjacency
from cofactor.privacy.losses import loss_of
from cofactor.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonBinomial,
    SampledGaussian,
    Skellam,
    SummedDiscreteGaussian,
)
from tests.privacy.making import NOISES, SIZE, cost, epsilon_where, event, gaussian_delta

EMPTIED = dp_accounting.NeighboringRelation.REPLACE_SPECIAL


# Gaussian.


@pytest.mark.parametrize("multiplier", [0.7, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("count", [1, 7, 1000])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3])
def test_gaussian_equals_the_analytic_one(multiplier: float, count: int, delta: float) -> None:
    truth = epsilon_where(lambda epsilon: gaussian_delta(epsilon, multiplier / math.sqrt(count)), delta)
    found = cost(event(Gaussian(noise_multiplier=multiplier), count=count), delta=delta).epsilon
    assert truth * (1 - 1e-9) <= found <= truth * 1.002


@pytest.mark.parametrize("multiplier", [0.5, 2.0, 20.0])
def test_replacing_doubles_the_bound_of_emptying(multiplier: float) -> None:
    replaced = cost(event(Gaussian(noise_multiplier=multiplier)), adjacency="replace")
    truth = epsilon_where(lambda epsilon: gaussian_delta(epsilon, multiplier / 2), 1e-6)
    assert truth * (1 - 1e-9) <= replaced.epsilon <= truth * 1.002
    stated = event(Gaussian(noise_multiplier=multiplier / 2), size=2 * SIZE)
    stated = replace(stated, bound=replace(stated.bound, adjacency="replace"))
    assert cost(stated, adjacency="replace").epsilon == pytest.approx(replaced.epsilon)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
@pytest.mark.parametrize("count", [1, 4])
def test_replacing_costs_no_more_than_any_two_steps_would(noise: Any, count: int) -> None:
    released = event(noise.scaled(2.0), size=3.0, count=count)
    one = cost(released, delta=1e-6).epsilon
    assert cost(released, delta=1e-6, adjacency="replace").epsilon > one
    # (epsilon, delta) for one step gives (2 epsilon, (1 + e^epsilon) delta) for two.
    two = cost(released, delta=(1 + math.exp(one)) * 1e-6, adjacency="replace").epsilon
    assert 0 < two <= 2 * one * 1.002


def test_two_steps_do_not_keep_twice_the_delta() -> None:
    one = cost(event(Gaussian(noise_multiplier=1.5)), delta=1e-6).epsilon
    assert gaussian_delta(2 * one, 1.5 / 2) > 2e-6
    assert cost(event(Gaussian(noise_multiplier=1.5)), delta=2e-6, adjacency="replace").epsilon > 2 * one


# Gaussian noise on a sample.

Density = Callable[[float], float]


def sampled_densities(multiplier: float, sampling: float, adjacency: Adjacency) -> tuple[Density, Density]:
    def mixture(at: float) -> Density:
        return lambda x: (
            (1 - sampling) * stats.norm.pdf(x, 0, multiplier) + sampling * stats.norm.pdf(x, at, multiplier)
        )

    return mixture(1.0), mixture(-1.0 if adjacency == "replace" else 0.0)


def integrated_delta(upper: Density, lower: Density, epsilon: float, reach: float) -> float:
    """Integrate max(upper - e^epsilon lower, 0) between the points where it leaves 0."""

    def gap(x: float) -> float:
        return upper(x) - math.exp(epsilon) * lower(x)

    grid = np.linspace(-reach, reach, 400)
    signs = np.sign([gap(x) for x in grid])
    turns = [optimize.brentq(gap, grid[k], grid[k + 1]) for k in np.flatnonzero(signs[:-1] * signs[1:] < 0)]
    ends = [-reach, *turns, reach]
    spans = itertools.pairwise(ends)
    parts = [integrate.quad(gap, low, high, epsabs=1e-15, limit=200)[0] for low, high in spans]
    return float(sum(max(part, 0.0) for part in parts))


@pytest.mark.parametrize(("multiplier", "sampling"), [(0.6, 0.05), (1.5, 0.3)])
@pytest.mark.parametrize("adjacency", ["empty", "replace"])
def test_sampled_gaussian_equals_an_integral(
    multiplier: float, sampling: float, adjacency: Adjacency
) -> None:
    delta = 1e-5
    one, other = sampled_densities(multiplier, sampling, adjacency)
    reach = 1 + 9 * multiplier

    def worst(epsilon: float) -> float:
        return max(integrated_delta(one, other, epsilon, reach), integrated_delta(other, one, epsilon, reach))

    found = cost(
        event(SampledGaussian(noise_multiplier=multiplier, sampling=sampling)),
        delta=delta,
        adjacency=adjacency,
    ).epsilon
    assert worst(found) <= delta * (1 + 1e-6)
    assert found == 0 or worst(found * 0.998) > delta


def test_opposite_ends_are_the_worst_replacement_in_a_sample() -> None:
    # In the plane: one unit's vector turned away from, or shorter than, the other's.
    x = np.linspace(-6, 6, 301)
    across, along = np.meshgrid(x, x)

    def law(east: float, north: float) -> NDArray[np.float64]:
        weights = np.exp(-((across - east) ** 2 + (along - north) ** 2) / (2 * 0.8**2))
        return np.asarray(0.9 * np.exp(-(across**2 + along**2) / (2 * 0.8**2)) + 0.1 * weights)

    one, total = law(1, 0), law(1, 0).sum()
    for epsilon in (0.05, 0.3, 1.0):
        opposite = np.maximum(one - math.exp(epsilon) * law(-1, 0), 0).sum() / total
        for length, angle in ((1, 2.6), (1, 2.0), (1, 1.0), (0.5, np.pi), (0.9, 3.0), (0, 0)):
            other = law(length * math.cos(angle), length * math.sin(angle))
            assert np.maximum(one - math.exp(epsilon) * other, 0).sum() / total <= opposite
            assert np.maximum(other - math.exp(epsilon) * one, 0).sum() / total <= opposite


@dataclass(frozen=True)
class Bracket:
    """Losses of many steps, rounded down and rounded up on a fine grid: the truth lies between."""

    width: float
    first: int
    masses: tuple[NDArray[np.float64], NDArray[np.float64]]

    def delta(self, epsilon: float, which: int) -> float:
        masses = self.masses[which]
        losses = (self.first + np.arange(len(masses))) * self.width
        seen = losses > epsilon
        return float(masses[seen] @ -np.expm1(epsilon - losses[seen]))


def sampled_bracket(
    multiplier: float, sampling: float, adjacency: Adjacency, sign: int, count: int
) -> Bracket:
    """Cut the line into cells; a cell's loss lies between those at its ends."""
    width = 1e-4
    edges = np.linspace(-1 - 8.5 * multiplier, 1 + 8.5 * multiplier, 100_001)
    ends = (1.0, -1.0 if adjacency == "replace" else 0.0)[::sign]
    shares = [
        [(1 - sampling) * law(edges, 0, multiplier) + sampling * law(edges, at, multiplier) for at in ends]
        for law in (stats.norm.cdf, stats.norm.pdf)
    ]
    chance = np.diff(shares[0][0])
    loss = np.log(shares[1][0] / shares[1][1]) / width
    low, high = np.minimum(loss[:-1], loss[1:]), np.maximum(loss[:-1], loss[1:])
    first = int(np.floor(low.min()))
    rounded = [(np.floor(low) - first).astype(int), (np.ceil(high) - first).astype(int)]
    size = max(int(each.max()) for each in rounded) + 1
    masses = [np.bincount(each, chance, size).astype(np.float64) for each in rounded]
    total = list(masses)
    for _ in range(count - 1):
        total = [signal.fftconvolve(sums, one) for sums, one in zip(total, masses, strict=True)]
    return Bracket(width, first * count, (total[0], total[1]))


@pytest.mark.parametrize("adjacency", ["empty", "replace"])
def test_steps_of_sampled_gaussian_equal_a_convolution_on_a_fine_grid(adjacency: Adjacency) -> None:
    multiplier, sampling, count, delta = 1.0, 0.1, 4, 1e-5
    noise = SampledGaussian(noise_multiplier=multiplier, sampling=sampling)
    found = cost(event(noise, count=count), delta=delta, adjacency=adjacency).epsilon
    brackets = [sampled_bracket(multiplier, sampling, adjacency, sign, count) for sign in (1, -1)]
    below, above = (
        [each.delta(found * scale, which) for each in brackets] for scale, which in ((0.997, 0), (1.001, 1))
    )
    assert max(below) > delta, "more than 0.3% above the truth"
    assert max(above) < delta, "below the truth"


PUBLISHED = [
    # Abadi et al. 2016: q = 0.01, sigma = 4, delta = 1e-5, 10,000 steps.
    (0.01, 4.0, 10_000, 1.26),
    # The table of TensorFlow Privacy's MNIST tutorial: batches of 256, 15 and 60 epochs.
    (256 / 60_000, 1.3, 15 * 60_000 // 256, 1.19),
    (256 / 60_000, 1.1, 60 * 60_000 // 256, 3.01),
]


@pytest.mark.parametrize(("sampling", "multiplier", "count", "published"), PUBLISHED)
def test_published_training_runs_cost_what_was_published_and_less_since(
    sampling: float, multiplier: float, count: int, published: float
) -> None:
    found = cost(
        event(SampledGaussian(noise_multiplier=multiplier, sampling=sampling), count=count), delta=1e-5
    )
    their_event = dp_accounting.PoissonSampledDpEvent(sampling, dp_accounting.GaussianDpEvent(multiplier))
    moments = rdp.RdpAccountant(neighboring_relation=EMPTIED).compose(their_event, count)
    # As both papers converted: Mironov 2017, Proposition 3.
    classic = min(
        divergence + math.log(1e5) / (order - 1)
        for order, divergence in zip(moments._orders, moments._rdp, strict=True)
    )
    assert classic == pytest.approx(published, abs=0.006)
    distribution = PLDAccountant(EMPTIED).compose(their_event, count)
    assert found.epsilon == pytest.approx(distribution.get_epsilon(1e-5), rel=3e-3)
    assert found.renyi == pytest.approx(moments.get_epsilon(1e-5), rel=0.01)
    assert found.epsilon < found.renyi < published


# Laplace.


@pytest.mark.parametrize("multiplier", [0.3, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-6, 5e-3])
def test_laplace_equals_its_closed_form(multiplier: float, delta: float) -> None:
    # delta = 1 - e^((epsilon - pure) / 2), so epsilon = pure + 2 log(1 - delta).
    found = cost(event(Laplace(noise_multiplier=multiplier)), delta=delta).epsilon
    truth = 1 / multiplier + 2 * math.log1p(-delta)
    assert truth * (1 - 1e-9) <= found <= truth * 1.002


@pytest.mark.parametrize("noise", [Laplace(noise_multiplier=4.0), DiscreteLaplace(noise_multiplier=4.0)])
def test_laplace_adds_up_where_nothing_may_fail(noise: Any) -> None:
    total = cost(event(noise, size=3.0, count=12), delta=0.0)
    assert total.method == "pure"
    assert total.epsilon == pytest.approx(3.0)
    assert cost(event(noise, size=3.0, count=12), delta=0.0, adjacency="replace").epsilon == pytest.approx(
        6.0
    )


def test_many_laplace_releases_cost_as_a_gaussian_in_the_limit() -> None:
    found = cost(event(Laplace(noise_multiplier=1e3), count=10**6))
    truth = epsilon_where(lambda epsilon: gaussian_delta(epsilon, 1.0), 1e-6)
    assert found.epsilon == pytest.approx(truth, rel=5e-3)


def test_whole_numbers_are_bounded_by_whole_numbers() -> None:
    # A change of at most 2.9 is one of at most 2.
    found = cost(event(DiscreteLaplace(noise_multiplier=1.0), size=2.9), delta=0.0).epsilon
    assert found == pytest.approx(2 / 2.9)


@pytest.mark.parametrize("kind", [DiscreteLaplace, DiscreteGaussian, Skellam])
def test_noise_on_a_fine_grid_costs_what_noise_on_reals_does(kind: Any) -> None:
    reals = Laplace(noise_multiplier=2.0) if kind is DiscreteLaplace else Gaussian(noise_multiplier=2.0)
    truth = cost(event(reals, count=3)).epsilon
    near, bound_only = (
        cost(event(kind(noise_multiplier=2.0), size=size, count=3)).epsilon for size in (5e3, 2.0**40)
    )
    assert near == pytest.approx(truth, rel=3e-3)
    assert truth * 0.999 <= bound_only <= truth * 1.08


# The Poisson binomial mechanism.

COINS = PoissonBinomial(trials=16, theta=0.005, participants=1_000)
COORDINATES = 1_700_000


def coins_limit(mechanism: PoissonBinomial, coordinates: int, delta: float) -> float:
    """Return epsilon of the Gaussian that so many coordinates approach: small theta, D = alpha mu^2 / 2."""
    bend = 16 * mechanism.theta**2 * mechanism.trials / (1 - 4 * mechanism.theta**2)
    multiplier = 1 / math.sqrt(bend / mechanism.participants * coordinates)
    return epsilon_where(lambda epsilon: gaussian_delta(epsilon, multiplier), delta)


def coins_on_grid(width: float, delta: float) -> float:
    pair = pairs.poisson_binomial(COINS.participants, COINS.trials, COINS.theta)
    losses = pair.distribution(width * pair.spread).self_compose(COORDINATES)
    return float(losses.get_epsilon_for_delta(delta))


@pytest.mark.slow
def test_millions_of_coins_are_within_two_percent_of_a_fine_grid_and_of_their_limit() -> None:
    found = cost(event(COINS, dimension=COORDINATES), delta=1e-5)
    grids = [coins_on_grid(width, 1e-5) for width in (0.2, 0.1, 0.05)]
    assert abs(grids[2] / grids[1] - 1) < abs(grids[1] / grids[0] - 1) < 0.01
    assert grids[2] * (1 - 1e-4) <= found.epsilon <= grids[2] * 1.02
    assert found.epsilon == pytest.approx(coins_limit(COINS, COORDINATES, 1e-5), rel=0.02)
    assert found.epsilon < found.renyi < found.epsilon * 1.08


@pytest.mark.slow
def test_default_grid_of_dp_accounting_is_far_too_coarse_for_coins() -> None:
    pair = pairs.poisson_binomial(COINS.participants, COINS.trials, COINS.theta)
    laws = [dict(enumerate(law.tolist())) for law in (pair.log_lower, pair.log_upper)]
    theirs = pld.from_two_probability_mass_functions(*laws).self_compose(COORDINATES)
    ours = cost(event(COINS, dimension=COORDINATES), delta=1e-5).epsilon
    assert theirs.get_epsilon_for_delta(1e-5) > 4 * ours


def test_coordinates_and_rounds_of_coins_multiply() -> None:
    assert cost(event(COINS, dimension=6, count=5)) == cost(event(COINS, dimension=30))


# Other noise.


@pytest.mark.parametrize("noise", [DiscreteGaussian(noise_multiplier=3.0), Skellam(noise_multiplier=3.0)])
def test_vectors_of_whole_numbers_cost_a_little_more_than_reals(noise: Any) -> None:
    reals = cost(event(Gaussian(noise_multiplier=3.0), count=10)).epsilon
    vectors = cost(event(noise, size=40.0, dimension=1000, count=10))
    assert vectors.method == "Renyi"
    assert reals < vectors.epsilon < reals * 1.12


@pytest.mark.parametrize(("steps", "multiplier"), [(1, 0.3), (2, 0.3), (1, 4.0)])
def test_vectors_with_skellam_noise_cost_the_published_bound(steps: int, multiplier: float) -> None:
    # Agarwal, Kairouz and Liu 2021, for l2 = 3 * steps: in 4 numbers l1 is at most 2 l2, and at most l2^2.
    curve = loss_of(event(Skellam(noise_multiplier=multiplier), size=3.0, dimension=4), steps).renyi
    assert curve is not None
    l2, variance, orders = 3.0 * steps, (3.0 * multiplier) ** 2, np.array([2.0, 3.0, 8.0, 32.0])
    first = ((2 * orders - 1) * l2**2 + 6 * 2 * l2) / (4 * variance**2)
    bound = orders * l2**2 / (2 * variance) + np.minimum(first, 3 * 2 * l2 / (2 * variance))
    assert curve(orders.tolist()) == pytest.approx(bound)
    assert curve([2.1]) == pytest.approx(curve([3.0]))


def summed_law(sigma: float, participants: int) -> NDArray[np.float64]:
    """Add up the laws of the parts, one after the other; all of it that floats can tell from 0."""
    reach = math.ceil(40 * sigma)
    one = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    law = one / one.sum()
    total = law
    for _ in range(participants - 1):
        total = np.convolve(total, law)
    return np.asarray(total)


def divergence(law: NDArray[np.float64], change: int, order: float) -> float:
    one, other = np.append(law, np.zeros(change)), np.append(np.zeros(change), law)
    seen = (one > 1e-290) & (other > 1e-290)
    terms = order * np.log(one[seen]) + (1 - order) * np.log(other[seen])
    return float(np.log(np.exp(terms).sum()) / (order - 1))


@pytest.mark.parametrize(
    ("size", "multiplier", "participants"), [(3.0, 1.0, 2), (3.0, 2.0, 4), (8.0, 0.7, 9)]
)
@pytest.mark.parametrize("steps", [1, 2])
def test_summed_discrete_gaussian_equals_an_exact_convolution(
    size: float, multiplier: float, participants: int, steps: int
) -> None:
    noise = SummedDiscreteGaussian(noise_multiplier=multiplier, participants=participants)
    curve = loss_of(event(noise, size=size), steps).renyi
    assert curve is not None
    law = summed_law(multiplier * size / math.sqrt(participants), participants)
    for order in (1.5, 2.0, 5.0):
        truth = divergence(law, steps * int(size), order)
        assert truth * (1 - 1e-6) <= curve([order])[0] <= truth * (1 + 1e-6)


@pytest.mark.parametrize("sigma", [0.5, 0.7, 1.0])
def test_bound_holds_for_parts_that_are_too_small_to_be_used(
    monkeypatch: pytest.MonkeyPatch, sigma: float
) -> None:
    monkeypatch.setattr(SummedDiscreteGaussian, "smallest_share", 0.0)
    noise = SummedDiscreteGaussian(noise_multiplier=2 * sigma, participants=4)
    curve, law = loss_of(event(noise, size=1.0), 1).renyi, summed_law(sigma, 4)
    assert curve is not None
    for order in (1.5, 2.0, 5.0):
        assert divergence(law, 1, order) <= curve([order])[0]


def test_parts_of_half_a_step_cost_more_than_a_discrete_gaussian_of_their_size() -> None:
    exact, gaussian = divergence(summed_law(0.5, 4), 1, 2.0), 2.0 / 2
    assert exact > gaussian * 1.001


def test_parts_as_small_as_allowed_cost_nothing_in_millions_of_dimensions() -> None:
    noise = SummedDiscreteGaussian(noise_multiplier=15.0, participants=100)
    reals = cost(event(Gaussian(noise_multiplier=15.0), count=10)).renyi
    found = cost(event(noise, size=1.0, dimension=10**7, count=10)).renyi
    assert reals <= found <= reals * 1.001


@pytest.mark.parametrize(
    "noise", [RandomizedResponse(choices=4, epsilon=0.7), UnaryEncoding(choices=4, epsilon=0.7)]
)
def test_answers_add_up_where_nothing_may_fail(noise: Any) -> None:
    assert cost(event(noise, count=10), delta=0.0).epsilon == pytest.approx(7.0)


def test_answer_equals_its_closed_form() -> None:
    noise = RandomizedResponse(choices=4, epsilon=2.0)
    found = cost(event(noise), delta=5e-3).epsilon
    truth = 2.0 + math.log1p(-5e-3 / noise.truth)
    assert truth * (1 - 1e-9) <= found <= truth * 1.002


def test_repeated_answers_are_counted_although_dp_accounting_forgets_to() -> None:
    noise = RandomizedResponse(choices=2, epsilon=0.5)
    assert cost(event(noise, count=10)).epsilon > 5 * cost(event(noise)).epsilon
    flipped = dp_accounting.RandomizedResponseDpEvent(2 * (1 - noise.truth), 2)
    one, ten = (PLDAccountant(EMPTIED).compose(flipped, count).get_epsilon(1e-6) for count in (1, 10))
    assert ten == one, "dp-accounting now counts repeated answers: this warning can go"
