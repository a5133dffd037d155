"""What mechanisms take, what they return, and that the noise drawn is the noise recorded."""

import json
import math
from typing import Any

import numpy as np
import pytest

from cofactor.config import as_table
from cofactor.errors import ConfigError, Refused
from cofactor.privacy.accountant import spent
from cofactor.privacy.answers import RandomizedResponse, UnaryEncoding
from cofactor.privacy.bounding import Bounded, whole_vector
from cofactor.privacy.events import Bound, Norm
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
    event_from_table,
)
from cofactor.randomness import InsecureRandom, SecureRandom
from tests.privacy.making import bound_for

ADDITIVE: list[Any] = [Gaussian, Laplace, DiscreteLaplace, DiscreteGaussian, Skellam]
EVERY: list[AnyMechanism] = [
    *(kind(noise_multiplier=1.7) for kind in ADDITIVE),
    SampledGaussian(noise_multiplier=1.7, sampling=0.1),
    SummedDiscreteGaussian(noise_multiplier=1.7, participants=4),
    PoissonBinomial(trials=8, theta=0.1, participants=50),
    RandomizedResponse(choices=4, epsilon=1.5),
    UnaryEncoding(choices=4, epsilon=1.5),
    UnaryEncoding(choices=4, epsilon=1.5, optimized=False),
]
STORY: dict[str, str] = {"what": "totals", "by": "north", "to": "coordinator"}

# Standard errors: a test on a mean or a variance fails by chance less than once in ten million runs.
SIGMAS = 5.5


def bounded(mechanism: AnyMechanism, value: Any = None, size: float = 3.0) -> Bounded:
    whole = mechanism.exact
    value = np.full(1000, 1 if whole else 0.5) if value is None else value
    return Bounded(value=value, bound=bound_for(mechanism, size=size))


@pytest.mark.parametrize("mechanism", EVERY, ids=str)
def test_release_comes_with_the_event_that_describes_it(mechanism: AnyMechanism) -> None:
    given = bounded(mechanism)
    noisy, event = mechanism.release(given, random=SecureRandom(), **STORY)
    assert len(noisy) == len(given.value)
    assert event.mechanism == mechanism
    assert event.bound == given.bound
    assert (event.what, event.by, event.to) == ("totals", "north", "coordinator")
    assert event.secure
    assert event.count == 1


@pytest.mark.parametrize("mechanism", EVERY, ids=str)
def test_insecure_noise_is_recorded_as_such(mechanism: AnyMechanism) -> None:
    _, event = mechanism.release(bounded(mechanism), random=InsecureRandom(7), **STORY)
    assert not event.secure


@pytest.mark.parametrize("mechanism", EVERY, ids=str)
def test_only_bounded_values_are_accepted(mechanism: AnyMechanism) -> None:
    plain: Any = np.ones(3)
    with pytest.raises(ConfigError, match=r"takes only a Bounded value.*cofactor\.privacy\.bounding"):
        mechanism.release(plain, random=SecureRandom(), **STORY)


@pytest.mark.parametrize("mechanism", EVERY, ids=str)
def test_a_bound_in_another_norm_is_refused(mechanism: AnyMechanism) -> None:
    other: Norm = "l1" if mechanism.norm == "l2" else "l2"
    given = Bounded(value=np.ones(3, np.int64), bound=Bound(size=3.0, norm=other, unit="user"))
    with pytest.raises(ConfigError, match=f"needs a bound in {mechanism.norm}, got one in {other}"):
        mechanism.release(given, random=SecureRandom(), **STORY)


@pytest.mark.parametrize("kind", [DiscreteLaplace, DiscreteGaussian, Skellam])
def test_whole_number_noise_refuses_real_numbers_and_bounds_below_one(kind: Any) -> None:
    with pytest.raises(ConfigError, match="needs whole numbers, got float64"):
        kind().release(bounded(kind(), np.ones(3)), random=SecureRandom(), **STORY)
    with pytest.raises(ConfigError, match=r"cannot be bounded by 0\.5"):
        kind().release(bounded(kind(), np.ones(3, np.int64), 0.5), random=SecureRandom(), **STORY)


@pytest.mark.parametrize("mechanism", EVERY, ids=str)
def test_events_survive_a_file(mechanism: AnyMechanism) -> None:
    _, event = mechanism.release(bounded(mechanism), random=SecureRandom(), **STORY)
    table = json.loads(json.dumps(as_table(event)))
    assert event_from_table(table, "entry 1") == event


def test_an_unknown_mechanism_in_a_file_is_refused_by_name() -> None:
    _, event = Gaussian().release(bounded(Gaussian()), random=SecureRandom(), **STORY)
    table = as_table(event)
    table["mechanism"] = {"kind": "Gausian", "noise_multiplier": 1.0}
    with pytest.raises(ConfigError, match=r'entry 1\.mechanism.*Gausian.*Did you mean "Gaussian"'):
        event_from_table(table, "entry 1")


@pytest.mark.parametrize("kind", ADDITIVE)
@pytest.mark.parametrize("size", [3.0, 7.5])
def test_noise_has_mean_zero_and_the_recorded_size(kind: Any, size: float) -> None:
    mechanism = kind(noise_multiplier=2.0)
    count = 200_000
    value = np.full(count, 4 if mechanism.exact else 0.25)
    noisy, event = mechanism.release(bounded(mechanism, value, size), random=SecureRandom(), **STORY)
    added = noisy - value
    scale = event.mechanism.noise_multiplier * event.bound.size
    decay = math.exp(-1 / scale)
    variance = {
        Laplace: 2 * scale**2,
        DiscreteLaplace: 2 * decay / (1 - decay) ** 2,
    }.get(kind, scale**2)
    assert abs(added.mean()) < SIGMAS * math.sqrt(variance / count)
    # A sample variance has a standard error of sqrt((kurtosis - 1) / n) times itself; kurtosis: about 6.
    assert added.var() / variance == pytest.approx(1, abs=SIGMAS * math.sqrt(5.1 / count) + 1e-3)


@pytest.mark.parametrize("kind", [Gaussian, Laplace])
def test_real_releases_lie_on_a_grid_of_powers_of_two_that_no_input_moves(kind: Any) -> None:
    mechanism = kind(noise_multiplier=2.0)
    values = np.random.default_rng(1).normal(size=10_000)
    noisy, _ = mechanism.release(bounded(mechanism, values), random=SecureRandom(), **STORY)
    steps = noisy * 4  # the size of the noise is 6: the grid is 6/32 < 1/4 < 6/16
    assert np.array_equal(steps, np.round(steps))


def test_whole_number_releases_stay_whole() -> None:
    for kind in (DiscreteLaplace, DiscreteGaussian, Skellam):
        noisy, _ = kind().release(bounded(kind()), random=SecureRandom(), **STORY)
        assert np.issubdtype(noisy.dtype, np.integer)


def test_sampling_chooses_each_unit_with_its_probability_and_independently() -> None:
    mechanism = SampledGaussian(sampling=0.3)
    chosen = np.zeros((2000, 100), np.int64)
    for row in chosen:
        row[mechanism.choose(100, SecureRandom())] = 1
    error = SIGMAS * math.sqrt(0.3 * 0.7)
    assert abs(chosen.mean() - 0.3) < error / math.sqrt(chosen.size)
    # Independent choices: the number chosen varies like a binomial, and is not fixed.
    assert chosen.sum(axis=1).var() == pytest.approx(100 * 0.3 * 0.7, rel=SIGMAS * math.sqrt(2 / 2000))


def test_sampled_sums_are_bounded_by_what_one_unit_contributes() -> None:
    bound = Bound(size=1.0, norm="l2", unit="user", adjacency="replace")
    given = Bounded(value=np.ones(3), bound=bound)
    with pytest.raises(ConfigError, match='adjacency "empty", got "replace"'):
        SampledGaussian(sampling=0.1).release(given, random=SecureRandom(), **STORY)


def test_estimate_from_bent_coins_is_unbiased() -> None:
    mechanism = PoissonBinomial(trials=8, theta=0.2, participants=400)
    value = np.linspace(-3.0, 3.0, 101)
    given = bounded(mechanism, value)
    releases = [mechanism.release(given, random=SecureRandom(), **STORY)[0] for _ in range(400)]
    assert min(np.min(r) for r in releases) >= 0
    assert max(np.max(r) for r in releases) <= 8
    estimate = mechanism.estimate(np.sum(releases, axis=0), 400, given.bound)
    error = math.sqrt(400 * 8 / 4) * 3.0 / (0.2 * 8)
    assert np.abs(estimate - 400 * value).max() < 6.5 * error  # 101 chances of 8e-11 each


def test_parts_of_a_discrete_gaussian_add_up_to_the_recorded_noise() -> None:
    mechanism, count = SummedDiscreteGaussian(noise_multiplier=2.0, participants=5), 100_000
    given = bounded(mechanism, np.ones(count, np.int64), 3.0)
    parts = [mechanism.release(given, random=SecureRandom(), **STORY)[0] - 1 for _ in range(5)]
    error = SIGMAS * math.sqrt(2 / count)
    assert np.var(np.sum(parts, axis=0)) == pytest.approx(36, rel=error)
    assert np.var(parts[0]) == pytest.approx(36 / 5, rel=error)
    assert np.issubdtype(parts[0].dtype, np.integer)


def test_parts_too_small_to_add_up_are_refused() -> None:
    mechanism = SummedDiscreteGaussian(noise_multiplier=2.0, participants=17)
    message = r"each of 17 participants would add noise of 1\.46 steps.*1\.5 on.*or Skellam"
    with pytest.raises(ConfigError, match=message):
        mechanism.release(bounded(mechanism), random=SecureRandom(), **STORY)
    with pytest.raises(ConfigError, match="participants must be at least 1"):
        SummedDiscreteGaussian(participants=0)
    assert mechanism.scaled(2).participants == 17


def test_every_coordinate_is_bounded_against_replacement_only() -> None:
    with pytest.raises(ConfigError, match=r'its adjacency is "replace", got "empty"'):
        Bound(size=1.0, norm="max", unit="user")


def test_answers_have_the_odds_that_epsilon_allows() -> None:
    for choices, epsilon in ((2, 0.5), (5, 1.0), (1000, 4.0)):
        truth = RandomizedResponse(choices=choices, epsilon=epsilon).truth
        lie = (1 - truth) / (choices - 1)
        assert math.log(truth / lie) == pytest.approx(epsilon, rel=1e-12)
        for optimized in (True, False):
            bits = UnaryEncoding(choices=choices, epsilon=epsilon, optimized=optimized)
            odds = bits.kept * (1 - bits.raised) / (bits.raised * (1 - bits.kept))
            assert math.log(odds) == pytest.approx(epsilon, rel=1e-12)


def test_twice_the_noise_is_twice_the_noise() -> None:
    assert Gaussian(noise_multiplier=1.5).scaled(2) == Gaussian(noise_multiplier=3.0)
    assert SampledGaussian(noise_multiplier=1.5, sampling=0.1).scaled(2).sampling == 0.1
    assert PoissonBinomial(trials=8, theta=0.1, participants=9).scaled(2).theta == 0.05
    assert PoissonBinomial(trials=8, theta=0.1, participants=9).scaled(0.1).theta == 0.25
    assert RandomizedResponse(choices=4, epsilon=1.0).scaled(2).epsilon == 0.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(noise_multiplier=0.0), "noise_multiplier must be greater than 0"),
        (lambda: Gaussian(noise_multiplier=math.nan), "noise_multiplier must be greater than 0"),
        (lambda: Gaussian(noise_multiplier=1e200), "between 1e-3 and 1e9, got 1e"),
        (lambda: UnaryEncoding(choices=3, epsilon=710.0), "between 1e-9 and 64, got 710"),
        (lambda: SampledGaussian(sampling=1.0), "sampling must lie between 0 and 1"),
        (lambda: PoissonBinomial(trials=0, theta=0.1, participants=9), "trials must be at least 1"),
        (lambda: PoissonBinomial(trials=8, theta=0.3, participants=9), "at most 1/4, got 0.3"),
        (lambda: PoissonBinomial(trials=8, theta=math.nan, participants=9), "at most 1/4, got nan"),
        (lambda: RandomizedResponse(choices=1, epsilon=1.0), "choices must be at least 2, got 1"),
        (lambda: RandomizedResponse(choices=3, epsilon=-1.0), "epsilon must be greater than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


NUMPY_NUMBERS = [np.uint8, np.int8, np.uint16, np.uint32, np.int64, np.float16, np.float32]


@pytest.mark.parametrize("kind", NUMPY_NUMBERS)
def test_numpy_numbers_become_plain_ones_that_do_not_wrap(kind: Any) -> None:
    assert type(Gaussian(noise_multiplier=kind(2)).noise_multiplier) in (int, float)
    assert type(Bound(size=kind(100), norm="l2", unit="user").size) in (int, float)
    assert Gaussian(noise_multiplier=kind(2)).noise_size(Bound(size=kind(100), norm="l2", unit="user")) == 200


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.int64])
def test_coins_counted_in_numpy_numbers_cost_the_same(kind: Any) -> None:
    plain = PoissonBinomial(trials=5, theta=0.1, participants=100)
    counted = PoissonBinomial(trials=kind(5), theta=0.1, participants=kind(100))
    given = bounded(plain, np.ones(10))
    _, one = counted.release(given, random=SecureRandom(), **STORY)
    _, other = plain.release(given, random=SecureRandom(), **STORY)
    assert spent([one], 1e-6, unit="user").epsilon == spent([other], 1e-6, unit="user").epsilon
    assert one.times(kind(100)).times(kind(100)).count == 10_000


def test_one_units_vector_is_not_taken_for_the_answers_of_many() -> None:
    vector = whole_vector([3, 1, 2], limit=3, norm="max", unit="user", adjacency="replace")
    with pytest.raises(ConfigError, match="needs a bound in choice, got one in max"):
        RandomizedResponse(choices=4, epsilon=2.0).release(vector, random=SecureRandom(), **STORY)


def test_a_sum_of_too_few_is_not_made_use_of() -> None:
    mechanism = PoissonBinomial(trials=8, theta=0.2, participants=400)
    bound = Bound(size=1.0, norm="max", unit="user", adjacency="replace")
    with pytest.raises(Refused, match="399 participants was opened, where at least 400"):
        mechanism.estimate(np.zeros(3), 399, bound)


@pytest.mark.parametrize("random", [None, np.random.default_rng(1), SecureRandom])
def test_only_our_two_kinds_of_chance_are_accepted(random: Any) -> None:
    with pytest.raises(ConfigError, match="random must be SecureRandom"):
        Gaussian().release(bounded(Gaussian()), random=random, **STORY)


def test_chance_that_only_says_it_is_secure_is_not() -> None:
    class Liar(InsecureRandom):
        secure = True

    _, event = Gaussian().release(bounded(Gaussian()), random=Liar(7), **STORY)
    assert not event.secure


@pytest.mark.parametrize("kind", [np.uint64, np.float64])
def test_numbers_that_noise_would_overflow_are_refused(kind: Any) -> None:
    given = bounded(DiscreteLaplace(), np.ones(3, kind))
    with pytest.raises(ConfigError, match="needs whole numbers"):
        DiscreteLaplace().release(given, random=SecureRandom(), **STORY)
