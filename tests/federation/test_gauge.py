"""What a simulation reads of itself: signals beside their noise, and what was cut off."""

import math
from typing import Any

import numpy as np
import pytest

from cofactor.federation.door import Door
from cofactor.federation.gauge import STAGE, Gauge, deviation_of
from cofactor.federation.labels import in_round
from cofactor.privacy.bounding import Bounded, sum_of_records, sum_of_users, table_of_users, vector
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Bound
from cofactor.privacy.laws import law_of
from cofactor.privacy.layers import Layers
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    PoissonBinomial,
    SampledGaussian,
    Skellam,
)
from cofactor.randomness import SecureRandom
from tests.federation.making import ItemSums, parties, trained

BUDGET = Budget(epsilon=10.0, delta=1e-6, unit="user")
LAYERS = Layers(parties=5, fewest=3)
DRAWS = 400_000


def measures(gauge: Gauge) -> dict[str, dict[str, float]]:
    told = gauge.told(3, 7)
    assert all((event.stage, event.step, event.steps) == (STAGE, 3, 7) for event in told)
    return {event.note: dict(event.numbers) for event in told}


def whole(values: Any, size: float = 10.0, norm: Any = "l2") -> Bounded:
    return Bounded(value=np.array(values, np.int64), bound=Bound(size=size, norm=norm, unit="user"))


@pytest.mark.parametrize(
    ("mechanism", "size"),
    [
        (Gaussian(noise_multiplier=1.5), 2.0),
        (SampledGaussian(noise_multiplier=1.5, sampling=0.1), 2.0),
        (DiscreteGaussian(noise_multiplier=0.4), 3.0),
        (Skellam(noise_multiplier=0.7), 3.0),
        (Laplace(noise_multiplier=1.5), 2.0),
        (DiscreteLaplace(noise_multiplier=0.3), 2.0),
        (DiscreteLaplace(noise_multiplier=5.0), 2.0),
    ],
    ids=lambda value: str(value)[:40],
)
def test_deviations_are_those_of_noise_that_is_drawn(mechanism: Any, size: float) -> None:
    bound = Bound(size=size, norm=mechanism.norm, unit="user")
    kind = np.int64 if mechanism.exact else np.float64
    drawn = mechanism.noisy(Bounded(value=np.zeros(DRAWS, kind), bound=bound), SecureRandom())
    # The fourth moment of Laplace noise is 6 variances squared; of the others less.
    off = 6 * math.sqrt(5 / DRAWS)
    assert np.var(drawn.astype(np.float64)) == pytest.approx(
        (deviation_of(mechanism, bound) or 0) ** 2, rel=off
    )


def test_the_deviation_of_coins_is_that_of_the_estimate_which_they_give() -> None:
    coins = PoissonBinomial(trials=16, theta=0.05, participants=1)
    bound = Bound(size=2.0, norm="max", unit="user", adjacency="replace")
    heads = coins.noisy(Bounded(value=np.zeros(DRAWS), bound=bound), SecureRandom())
    found = coins.estimate(heads, 1, bound)
    assert np.std(found) == pytest.approx(deviation_of(coins, bound) or 0, rel=0.02)


def test_a_release_is_read_beside_its_noise_and_only_once() -> None:
    gauge, ledger = Gauge(), Ledger.create(None, party="north", fingerprint="data", budget=BUDGET)
    way = Door(party="north", ledger=ledger, random=SecureRandom(), run="first", gauge=gauge)
    way.begin(1)
    way.release(Gaussian(noise_multiplier=4.0), vector(np.full(4, 0.25), limit=1.0, unit="user"), what="sums")
    (entry,) = ledger.entries
    assert entry.event is not None
    assert entry.event.what == in_round("sums", 1)
    assert measures(gauge) == {"sums": {"signal_to_noise": pytest.approx(0.25 / 4)}}
    assert measures(gauge) == {}


def test_what_was_refused_is_not_read() -> None:
    gauge = Gauge()
    ledger = Ledger.create(
        None, party="north", fingerprint="data", budget=Budget(epsilon=0.01, delta=1e-6, unit="user")
    )
    way = Door(party="north", ledger=ledger, random=SecureRandom(), run="first", gauge=gauge)
    way.begin(1)
    with pytest.raises(Exception, match="epsilon"):
        way.release(Gaussian(noise_multiplier=1.0), vector(np.ones(1), limit=1.0, unit="user"), what="sums")
    assert measures(gauge) == {}


def test_releases_that_are_seen_one_by_one_are_read_together() -> None:
    gauge = Gauge()
    for value in (1.0, 7.0):
        bounded = vector(np.full(2, value), limit=100.0, unit="user")
        gauge.released("sums", bounded, Gaussian(noise_multiplier=0.05))
    assert measures(gauge)["sums"]["signal_to_noise"] == pytest.approx(math.sqrt((1 + 49) / 2) / 5)


@pytest.mark.parametrize("answered", [3, 4, 5])
def test_a_sum_is_read_as_it_is_opened_with_the_noise_that_stays(answered: int) -> None:
    gauge, skellam = Gauge(), Skellam(noise_multiplier=4.0)
    for _ in range(answered):
        gauge.shared("sums", whole([3, 4]), skellam, LAYERS)
    bound = whole([0]).bound
    part = law_of(skellam, bound).part(LAYERS.part(answered))
    drawn = part.drawn((DRAWS // 4,), SecureRandom()).astype(np.float64)
    noise = math.sqrt(answered * np.var(drawn))
    signal = answered * math.sqrt((9 + 16) / 2)
    assert measures(gauge)["sums"]["signal_to_noise"] == pytest.approx(signal / noise, rel=0.03)


def test_a_sum_of_too_few_is_not_opened_and_has_no_signal() -> None:
    gauge = Gauge()
    for _ in range(2):
        gauge.shared("sums", whole([3, 4]), Skellam(noise_multiplier=4.0), LAYERS)
    assert measures(gauge) == {}


def test_parts_of_a_sum_may_cancel() -> None:
    gauge = Gauge()
    for value in (5, -5, 0):
        gauge.shared("sums", whole([value]), Skellam(noise_multiplier=4.0), LAYERS)
    assert measures(gauge)["sums"]["signal_to_noise"] == 0.0


def test_whoever_adds_all_of_the_noise_is_read_so() -> None:
    gauge, alone = Gauge(), Gauge()
    for at in range(3):
        gauge.shared("sums", whole([8]), Skellam(noise_multiplier=4.0), LAYERS)
        alone.shared("sums", whole([8]), Skellam(noise_multiplier=4.0), LAYERS, alone=at == 0)
    louder = measures(alone)["sums"]["signal_to_noise"]
    assert louder < measures(gauge)["sums"]["signal_to_noise"]
    assert louder == pytest.approx(24 / math.sqrt(40**2 + 2 * LAYERS.remaining(3, 40.0**2)))


def test_a_cohort_is_read_with_the_noise_of_all_its_devices() -> None:
    gauge = Gauge()
    gauge.shared("sums", whole([24]), Skellam(noise_multiplier=4.0), LAYERS, devices=4)
    noise = math.sqrt(LAYERS.together(4, 4, 40.0**2))
    assert measures(gauge)["sums"]["signal_to_noise"] == pytest.approx(24 / noise)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_contributions_that_were_shortened_are_counted_and_those_at_the_limit_are_not(norm: Any) -> None:
    rows = np.array([[0.5], [1.0], [1.00001], [3.0]])
    for bounded in (
        sum_of_records(rows, limit=1.0, norm=norm, unit="user"),
        sum_of_users(rows, np.arange(5), limit=1.0, norm=norm),
        table_of_users(rows, np.arange(5), np.zeros(4, np.int64), place_count=1, limit=1.0, norm=norm),
    ):
        assert bounded.shortened == (2, 4)
    gauge = Gauge()
    for _ in range(2):
        gauge.released("sums", bounded, object())
    gauge.trimmed("sums", 1, 10)
    gauge.trimmed("sums", 5, 20)
    assert measures(gauge) == {"sums": {"clipped": 0.5, "trimmed": 0.2}}


def test_how_many_were_shortened_is_never_printed() -> None:
    bounded = sum_of_records(np.array([[3.0]]), limit=1.0, unit="user")
    assert "shortened" not in repr(bounded)


def test_only_make_believe_parties_are_read() -> None:
    run = trained(ItemSums())
    assert run.together is not None
    assert not run.together.simulated
    assert {event.stage for event in run.events} == {"round"}
    assert len(parties()) == len(run.together.parties)
