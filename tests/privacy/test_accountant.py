"""What is composed, for whom, and the ends of what floating point and memory allow."""

import math
from dataclasses import dataclass, replace
from typing import Any, get_args

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from cofactor.errors import Refused
from cofactor.privacy.accountant import spent, spent_apart, steps_between
from cofactor.privacy.answers import DividedResponse, RandomizedResponse, UnaryEncoding, Wave
from cofactor.privacy.budget import Adjacency, Unit
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.mechanisms import (
    AnyMechanism,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonBinomial,
    SampledGaussian,
    Skellam,
    SummedDiscreteGaussian,
)
from cofactor.privacy.sketches import PartitionSketch
from tests.privacy.making import NOISES, SIZE, cost, epsilon_where, event, gaussian_delta

EMPTIED = dp_accounting.NeighboringRelation.REPLACE_SPECIAL


def test_parties_and_mechanisms_compose_into_one() -> None:
    one = event(Gaussian(noise_multiplier=3.0), by="north", count=4)
    other = event(Gaussian(noise_multiplier=4.0), by="south", size=7.0, count=9)
    together = math.sqrt(4 / 3.0**2 + 9 / 4.0**2)
    truth = epsilon_where(lambda epsilon: gaussian_delta(epsilon, 1 / together), 1e-6)
    assert truth * (1 - 1e-9) <= cost(one, other).epsilon <= truth * 1.002


def test_same_release_listed_twice_counts_twice() -> None:
    one = event(Gaussian(noise_multiplier=3.0), what="round 1", by="north", count=2)
    other = event(Gaussian(noise_multiplier=3.0), what="round 2", by="south", count=3)
    assert cost(one, other) == cost(replace(one, count=5))


def test_mixture_costs_more_than_each_and_less_than_the_sum() -> None:
    several = [event(noise, size=3.0, count=3) for noise in NOISES]
    each = [cost(one, delta=1e-6).epsilon for one in several]
    assert max(each) < cost(*several, delta=6e-6).epsilon < sum(each)


def test_mixture_equals_dp_accounting() -> None:
    found = cost(
        event(SampledGaussian(noise_multiplier=1.1, sampling=0.02), count=50),
        event(Laplace(noise_multiplier=5.0), count=3),
        event(Gaussian(noise_multiplier=6.0)),
    )
    theirs = PLDAccountant(EMPTIED)
    theirs.compose(dp_accounting.PoissonSampledDpEvent(0.02, dp_accounting.GaussianDpEvent(1.1)), 50)
    theirs.compose(dp_accounting.LaplaceDpEvent(5.0), 3).compose(dp_accounting.GaussianDpEvent(6.0))
    assert found.epsilon == pytest.approx(theirs.get_epsilon(1e-6), rel=2e-3)


def test_parties_that_share_no_units_cost_what_the_worst_of_them_does() -> None:
    north = [
        event(Gaussian(noise_multiplier=2.0), by="north"),
        event(Laplace(noise_multiplier=9.0), by="north"),
    ]
    south = [event(Gaussian(noise_multiplier=5.0), by="south", count=3)]
    mixed = [north[0], *south, north[1]]
    assert spent_apart(mixed, 1e-6, unit="user") == cost(*north)
    assert spent_apart(mixed, 1e-6, unit="user").epsilon > cost(*south).epsilon
    assert spent_apart([], 1e-6, unit="user").epsilon == 0


def test_nothing_released_costs_nothing() -> None:
    assert cost().epsilon == 0
    assert cost(delta=0.0).epsilon == 0
    assert cost().renyi == 0


def test_insecure_noise_costs_the_same_and_is_told_elsewhere() -> None:
    noisy = event(Gaussian(noise_multiplier=2.0))
    assert cost(replace(noisy, secure=False)) == cost(noisy)


def test_slack_is_paid_from_delta_each_time() -> None:
    sure = event(Gaussian(noise_multiplier=2.0), count=10)
    slack = replace(sure, slack=3e-8)
    assert cost(slack).epsilon == pytest.approx(cost(sure, delta=1e-6 - 10 * 3e-8).epsilon)
    assert cost(slack).delta == 1e-6
    assert cost(replace(sure, slack=1.1e-7)).epsilon == math.inf
    pure = replace(event(Laplace(noise_multiplier=2.0)), slack=1e-9)
    assert cost(pure, delta=0.0).epsilon == math.inf
    assert cost(pure, delta=1e-9).epsilon == pytest.approx(0.5)


STEPS: list[tuple[Unit, Adjacency, Unit, Adjacency, int | None]] = [
    # bound: unit, adjacency; budget: unit, adjacency; steps; why
    ("user", "empty", "user", "empty", 1),  # the same neighbours
    ("user", "empty", "user", "replace", 2),  # to nothing, and on to the other data
    ("user", "empty", "user", "value", 2),  # to nothing, and on to the other values
    ("user", "empty", "rating", "empty", 2),  # all of the user's to nothing, and back without the one rating
    ("user", "empty", "rating", "replace", 2),  # to nothing, and back with another rating
    ("user", "empty", "rating", "value", 2),  # to nothing, and back with another value
    ("user", "replace", "user", "empty", 1),  # nothing is one of the replacements
    ("user", "replace", "user", "replace", 1),  # the same neighbours
    ("user", "replace", "user", "value", 1),  # other values are one of the replacements
    ("user", "replace", "rating", "empty", 1),  # one rating less is one of the replacements
    ("user", "replace", "rating", "replace", 1),  # another rating is one of the replacements
    ("user", "replace", "rating", "value", 1),  # another value is one of the replacements
    ("user", "value", "user", "empty", None),  # who rated what would change
    ("user", "value", "user", "replace", None),  # who rated what would change
    ("user", "value", "user", "value", 1),  # the same neighbours
    ("user", "value", "rating", "empty", None),  # who rated what would change
    ("user", "value", "rating", "replace", None),  # who rated what would change
    ("user", "value", "rating", "value", 1),  # one value is a part of all values
    ("rating", "empty", "user", "empty", None),  # a user may have any number of ratings
    ("rating", "empty", "user", "replace", None),  # a user may have any number of ratings
    ("rating", "empty", "user", "value", None),  # a user may have any number of ratings
    ("rating", "empty", "rating", "empty", 1),  # the same neighbours
    ("rating", "empty", "rating", "replace", 2),  # to nothing, and on to the other rating
    ("rating", "empty", "rating", "value", 2),  # to nothing, and on to the other value
    ("rating", "replace", "user", "empty", None),  # a user may have any number of ratings
    ("rating", "replace", "user", "replace", None),  # a user may have any number of ratings
    ("rating", "replace", "user", "value", None),  # a user may have any number of ratings
    ("rating", "replace", "rating", "empty", 1),  # nothing is one of the replacements
    ("rating", "replace", "rating", "replace", 1),  # the same neighbours
    ("rating", "replace", "rating", "value", 1),  # another value is one of the replacements
    ("rating", "value", "user", "empty", None),  # a user may have any number of ratings
    ("rating", "value", "user", "replace", None),  # a user may have any number of ratings
    ("rating", "value", "user", "value", None),  # a user may have any number of ratings
    ("rating", "value", "rating", "empty", None),  # who rated what would change
    ("rating", "value", "rating", "replace", None),  # who rated what would change
    ("rating", "value", "rating", "value", 1),  # the same neighbours
]


@pytest.mark.parametrize(("bound_unit", "bound_adjacency", "unit", "adjacency", "steps"), STEPS)
def test_bound_for_some_neighbours_serves_others_only_where_there_is_a_proof(
    bound_unit: Unit, bound_adjacency: Adjacency, unit: Unit, adjacency: Adjacency, steps: int | None
) -> None:
    bound = Bound(size=SIZE, norm="l2", unit=bound_unit, adjacency=bound_adjacency)
    if steps is not None:
        assert steps_between(bound, unit, adjacency) == steps
        return
    with pytest.raises(Refused, match=rf'for each {bound_unit} \("{bound_adjacency}"\) proves nothing'):
        spent([replace(event(Gaussian()), bound=bound)], 1e-6, unit=unit, adjacency=adjacency)


def test_table_of_neighbours_is_complete() -> None:
    assert len({row[:4] for row in STEPS}) == 36


@dataclass(frozen=True, kw_only=True)
class Whisper(Gaussian):
    """A mechanism of somebody else's that adds less noise than the one it is derived from."""


class Silence:
    """A mechanism of somebody else's."""

    norm = "l2"
    exact = False

    def check(self, bound: Bound) -> None:
        """Accept anything."""

    def scaled(self, _: float) -> "Silence":
        return self


@pytest.mark.parametrize("kind", [Whisper, Silence])
def test_unknown_mechanism_is_refused_by_name(kind: Any) -> None:
    with pytest.raises(Refused, match=rf"does not know the mechanism {kind.__name__}"):
        cost(event(kind()))


def test_every_mechanism_has_a_cost() -> None:
    settings_of: dict[Any, dict[str, Any]] = {
        SampledGaussian: {"sampling": 0.1},
        PoissonBinomial: {"trials": 2, "theta": 0.1, "participants": 3},
        SummedDiscreteGaussian: {"participants": 2},
        RandomizedResponse: {"choices": 3, "epsilon": 1.0},
        UnaryEncoding: {"choices": 3, "epsilon": 1.0},
        DividedResponse: {"choices": (3, 4), "epsilon": 1.0},
        Wave: {"choices": 3, "epsilon": 1.0, "wide": 2},
        PartitionSketch: {"rows": 16, "phantoms": 100, "low": 2, "high": 9},
    }
    for kind in get_args(AnyMechanism):
        assert 0 < cost(event(kind(**settings_of.get(kind, {})))).epsilon < math.inf


# The ends of what floating point and memory allow.

EXTREMES: list[tuple[str, Event, float]] = [
    (f"{type(noise).__name__}, delta {delta:g}, {count} times", event(noise, size=3.0, count=count), delta)
    for delta in (0.0, 1e-15, 1e-6)
    for noise, count in (
        (Gaussian(noise_multiplier=1e-3), 1),
        (Gaussian(noise_multiplier=1e6), 1),
        (Gaussian(noise_multiplier=1e3), 10**7),
        (SampledGaussian(noise_multiplier=1e-3, sampling=0.01), 1),
        (SampledGaussian(noise_multiplier=1.0, sampling=1e-7), 1),
        (Laplace(noise_multiplier=1e-3), 1),
        (Laplace(noise_multiplier=1e4), 10**7),
        (DiscreteLaplace(noise_multiplier=1e-3), 2),
        (DiscreteGaussian(noise_multiplier=1e-3), 2),
        (Skellam(noise_multiplier=1e-2), 2),
        (PoissonBinomial(trials=1, theta=0.25, participants=1), 10**4),
        (PoissonBinomial(trials=2, theta=1e-6, participants=10**6), 1),
        (RandomizedResponse(choices=2, epsilon=60.0), 3),
        (UnaryEncoding(choices=5, epsilon=1e-6), 1),
    )
]


@pytest.mark.parametrize(
    ("released", "delta"), [row[1:] for row in EXTREMES], ids=[row[0] for row in EXTREMES]
)
def test_extremes_have_a_sensible_cost_and_no_complaint(
    released: Event, delta: float, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    found = cost(released, delta=delta)
    assert found.epsilon >= 0
    no_delta = (Laplace, DiscreteLaplace, PoissonBinomial, RandomizedResponse, UnaryEncoding)
    least = 0.0
    if isinstance(released.mechanism, Gaussian):  # its noise ends at 9.4 deviations
        least = released.count * stats.norm.sf(9.4 - 1 / released.mechanism.noise_multiplier)
    assert math.isfinite(found.epsilon) == (delta > least or isinstance(released.mechanism, no_delta))
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_noise_that_ends_pays_for_what_lies_beyond() -> None:
    # At a fifth of the bound one outcome in 200,000 could not come from the neighbour.
    impossible = stats.norm.sf(9.4 - 5)
    assert cost(event(Gaussian(noise_multiplier=0.2)), delta=0.9 * impossible).epsilon == math.inf
    assert cost(event(Gaussian(noise_multiplier=0.2)), delta=2 * impossible).epsilon < math.inf


def test_small_delta_is_not_answered_with_rounding_errors() -> None:
    deltas = [1e-6, 1e-9, 1e-11, 1e-12, 1e-14, 1e-15]
    costs = [cost(event(Gaussian(noise_multiplier=2.0), count=5), delta=delta).epsilon for delta in deltas]
    for delta, found in zip(deltas, costs, strict=True):
        truth = epsilon_where(lambda epsilon: gaussian_delta(epsilon, 2 / math.sqrt(5)), delta)
        assert truth <= found <= truth * 1.06


noises = st.sampled_from(["gaussian", "laplace", "coins", "answers"])


def scaled_noise(name: str, scale: float) -> Any:
    kinds: dict[str, Any] = {
        "gaussian": Gaussian(noise_multiplier=1.0),
        "laplace": Laplace(noise_multiplier=1.0),
        "coins": PoissonBinomial(trials=2, theta=0.1, participants=20),
        "answers": RandomizedResponse(choices=3, epsilon=1.0),
    }
    return kinds[name].scaled(scale)


@settings(max_examples=10)
@given(
    noises, st.floats(0.5, 20), st.floats(1.05, 2), st.integers(1, 30), st.sampled_from([1e-8, 1e-5, 1e-3])
)
def test_cost_falls_with_noise_and_delta_and_rises_with_repetition(
    name: str, scale: float, factor: float, count: int, delta: float
) -> None:
    found = cost(event(scaled_noise(name, scale), count=count), delta=delta).epsilon
    assume(found > 0)
    # Grids differ: a promise may be 0.2% above the truth.
    assert cost(event(scaled_noise(name, scale * factor), count=count), delta=delta).epsilon <= found * 1.002
    assert cost(event(scaled_noise(name, scale), count=count + 1), delta=delta).epsilon >= found * 0.998
    assert cost(event(scaled_noise(name, scale), count=count), delta=delta * factor).epsilon <= found * 1.002


def test_cost_of_a_sample_falls_with_noise_and_rises_with_sampling_and_repetition() -> None:
    def sampled(noise_multiplier: float, sampling: float, count: int) -> float:
        noise = SampledGaussian(noise_multiplier=noise_multiplier, sampling=sampling)
        return cost(event(noise, count=count)).epsilon

    found = sampled(1.0, 0.05, 20)
    assert sampled(1.1, 0.05, 20) < found < sampled(1.0, 0.06, 20)
    assert found < sampled(1.0, 0.05, 22) < cost(event(Gaussian(noise_multiplier=1.0), count=22)).epsilon
