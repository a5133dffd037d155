import math
from dataclasses import replace
from typing import Any

import pytest

from cofactor.errors import ConfigError
from cofactor.privacy.answers import RandomizedResponse, UnaryEncoding
from cofactor.privacy.events import Bound, Event, Mechanism
from cofactor.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonBinomial,
    SampledGaussian,
    Skellam,
)

COINS = PoissonBinomial(trials=4, theta=0.1, participants=10)
BOUND = Bound(size=2.5, norm="l2", unit="user")


def event(**changes: Any) -> Event:
    fixed: dict[str, Any] = {"what": "sums", "by": "north", "to": "coordinator"}
    return Event(**fixed | {"mechanism": Gaussian(noise_multiplier=2.0), "bound": BOUND} | changes)


@pytest.mark.parametrize("size", [0.0, -1.0, math.nan, math.inf])
def test_bound_must_be_a_positive_number(size: float) -> None:
    with pytest.raises(ConfigError, match=r"^size must be greater than 0"):
        Bound(size=size, norm="l2", unit="user")


def test_bound_on_every_coordinate_is_about_replacing() -> None:
    with pytest.raises(ConfigError, match=r'its adjacency is "replace", got "empty"'):
        Bound(size=1.0, norm="max", unit="user")
    Bound(size=1.0, norm="max", unit="user", adjacency="replace")


@pytest.mark.parametrize(
    ("mechanism", "norm"),
    [
        (Gaussian(), "l1"),
        (SampledGaussian(sampling=0.1), "l1"),
        (Laplace(), "l2"),
        (DiscreteLaplace(), "l2"),
        (DiscreteGaussian(), "l1"),
        (Skellam(), "l1"),
        (COINS, "l2"),
        (RandomizedResponse(choices=3, epsilon=1.0), "l1"),
        (UnaryEncoding(choices=3, epsilon=1.0), "l2"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_noise_made_for_another_norm_is_refused(mechanism: Mechanism, norm: Any) -> None:
    with pytest.raises(ConfigError, match=rf"{type(mechanism).__name__} needs a bound in"):
        event(mechanism=mechanism, bound=Bound(size=3.0, norm=norm, unit="user"))


@pytest.mark.parametrize("adjacency", ["replace", "value"])
def test_sampled_sum_needs_to_know_what_one_unit_contributes(adjacency: Any) -> None:
    # Amplification compares with nothing being added; a bound on a difference says nothing about that.
    with pytest.raises(ConfigError, match='needs a bound for adjacency "empty"'):
        event(mechanism=SampledGaussian(sampling=0.1), bound=replace(BOUND, adjacency=adjacency))


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(), DiscreteGaussian(), Skellam()])
def test_whole_numbers_cannot_change_by_less_than_one(mechanism: Mechanism) -> None:
    with pytest.raises(ConfigError, match=r"whole numbers cannot be bounded by 0\.5"):
        event(mechanism=mechanism, bound=Bound(size=0.5, norm=mechanism.norm, unit="user"))


@pytest.mark.parametrize(
    "change", [{"count": 0}, {"dimension": 0}, {"count": 1.5}, {"slack": 0.0}, {"slack": 1.0}]
)
def test_event_that_cannot_have_happened_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"^{next(iter(change))} must"):
        event(**change)


def test_times_multiplies() -> None:
    assert event(count=3).times(4).count == 12


def test_events_that_cost_the_same_are_equal_once_their_story_is_dropped() -> None:
    one = event(what="a", by="north", to="everyone", count=3, secure=False)
    other = event(what="b", by="south", to="coordinator")
    assert one != other
    assert one.once() == other.once()
    assert hash(one.once()) == hash(other.once())


@pytest.mark.parametrize(
    "change",
    [
        {"mechanism": Gaussian(noise_multiplier=3.0)},
        {"mechanism": SampledGaussian(noise_multiplier=2.0, sampling=0.5)},
        {"bound": replace(BOUND, size=2.0)},
        {"bound": replace(BOUND, unit="rating")},
        {"bound": replace(BOUND, adjacency="replace")},
        {"dimension": 2},
        {"slack": 1e-9},
    ],
    ids=lambda change: next(iter(change)),
)
def test_events_that_cost_differently_stay_different(change: dict[str, Any]) -> None:
    assert event(**change).once() != event().once()
