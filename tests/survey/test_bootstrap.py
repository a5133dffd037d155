from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from cofactor.errors import ConfigError
from cofactor.randomness import InsecureRandom
from cofactor.survey.bootstrap import Band, Interval, band
from cofactor.survey.distribution import Distribution
from cofactor.survey.method import Asked, Gives, report
from cofactor.survey.waves import SquareWave

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TRUTH = np.array([0.1, 0.2, 0.4, 0.3])
HALF = 0.5 * TRUTH + 0.5 / 4
"""The law of answers: half of the people answer anything."""


@dataclass(frozen=True, kw_only=True)
class Halved:
    """Half of the people tell the truth: what remains of randomized response when its noise is left out."""

    gives: ClassVar[Gives] = "distribution"
    beside: ClassVar[tuple[str, ...]] = ()
    epsilon: float = 1.0
    buckets: int = 4
    mechanism: Any = None

    def asked(self, values: Floats, random: Any) -> Asked:
        raise NotImplementedError

    def tally(self, answers: Integers, **beside: NDArray[Any]) -> Integers:
        raise NotImplementedError

    def estimate(self, tally: Integers) -> Floats:
        found: Floats = 2 * tally / tally.sum() - 1 / self.buckets
        return found

    def resampled(self, tally: Integers, chance: np.random.Generator) -> Integers:
        return chance.multinomial(tally.sum(), tally / tally.sum())


class HalvedRanges(Halved):
    gives: ClassVar[Gives] = "ranges"


class HalvedMean(Halved):
    gives: ClassVar[Gives] = "mean"

    def estimate(self, tally: Integers) -> Floats:
        return np.array([super().estimate(tally) @ (np.arange(4) + 0.5) / 4])


EDGES = np.array([0.0, 10.0, 20.0, 30.0, 40.0])
MANY = np.round(10_000 * HALF).astype(np.int64)


def inside(interval: Interval, value: Any) -> NDArray[np.bool_]:
    return np.asarray((interval.low <= value) & (value <= interval.high))


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    # 400 surveys: at 95%, and with the deviation of 25 estimates only, 25 misses are expected of each. More
    # than 60, or fewer than 3, happen by chance in less than one of a million.
    chance = np.random.default_rng(0)
    known = Distribution(edges=EDGES, probabilities=TRUTH)
    held = []
    for seed in range(400):
        of = band(Halved(), chance.multinomial(3_000, HALF), edges=EDGES, repeats=25, seed=seed)
        found = [
            inside(of.mean, known.mean),
            inside(of.quantile(0.5), known.quantile(0.5)),
            *inside(of.probabilities, known.probabilities),
            *inside(of.cumulative, known.cumulative)[1:-1],
        ]
        held.append(found)
    misses = 400 - np.sum(held, axis=0)
    assert np.all(misses <= 60)
    assert np.all(misses >= 3)


def test_an_interval_is_as_wide_as_the_law_says() -> None:
    of = band(Halved(), MANY, edges=EDGES, repeats=2_000)
    deviations = 2 * np.sqrt(HALF * (1 - HALF) / 10_000)
    assert (of.probabilities.high - of.probabilities.low) / (2 * 1.95996) == pytest.approx(
        deviations, rel=0.12
    )
    wider = band(Halved(), MANY, edges=EDGES, repeats=2_000, level=0.99)
    ratio = (wider.mean.high - wider.mean.low) / (of.mean.high - of.mean.low)
    assert ratio == pytest.approx(2.5758 / 1.95996, rel=1e-3)


def test_the_same_seed_draws_the_same_and_another_another() -> None:
    first, again, other = (band(Halved(), MANY, repeats=20, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.again, again.again)
    assert not np.array_equal(first.again, other.again)
    assert np.array_equal(first.edges, np.linspace(0, 1, 5))


def test_no_interval_leaves_what_is_possible() -> None:
    few = np.array([9, 9, 14, 8], np.int64)
    of = Band(level=0.95, edges=EDGES, estimate=np.array([0.0, 0.0, 0.5, 0.5]), again=_rows(few))
    for found in (of.probabilities, of.cumulative, of.between(0, 5)):
        assert np.all(np.asarray(found.low) >= 0)
        assert np.all(np.asarray(found.high) <= 1)
        assert np.all(np.asarray(found.low) <= np.asarray(found.high))
    assert of.deviation.low >= 0
    assert of.mean.high <= 40


def _rows(tally: Integers) -> Floats:
    chance = np.random.default_rng(0)
    return chance.dirichlet(tally, 50)


def test_quantiles_of_whole_numbers_have_whole_ends() -> None:
    of = band(Halved(), MANY // 20, edges=np.arange(-0.5, 4), whole=True)
    found = of.quantile(np.array([0.25, 0.5, 0.75]))
    assert np.array_equal(found.low, np.round(found.low))
    assert np.array_equal(found.high, np.round(found.high))
    assert found.low.tolist() == [0, 2, 2]
    assert found.high.tolist() == [2, 2, 3]
    # Everything sits on 0, 1, 2 and 3.
    assert inside(of.mean, float(TRUTH @ np.arange(4)))


def test_methods_that_tell_ranges_have_intervals_for_ranges_and_the_mean() -> None:
    exact = band(Halved(), MANY, edges=EDGES, repeats=50)
    of = band(HalvedRanges(), MANY, edges=EDGES, repeats=50)
    for name in ("probabilities", "cumulative", "mean"):
        assert getattr(of, name).low == pytest.approx(getattr(exact, name).low)
    assert of.between(5, 25).high == pytest.approx(exact.between(5, 25).high)
    assert of.between(np.array([0, 5]), np.array([10, 25])).high.shape == (2,)
    with pytest.raises(ConfigError, match="tells ranges and the mean only"):
        _ = of.deviation
    with pytest.raises(ConfigError, match="Use SquareWave"):
        of.quantile(0.5)


def test_methods_that_tell_the_mean_have_an_interval_for_it_alone() -> None:
    exact = band(Halved(), MANY, edges=EDGES, repeats=50)
    of = band(HalvedMean(buckets=4), MANY, edges=EDGES, repeats=50)
    assert of.mean.low == pytest.approx(exact.mean.low)
    assert of.mean.high == pytest.approx(exact.mean.high)
    for name in ("probabilities", "cumulative", "deviation"):
        with pytest.raises(ConfigError, match="tells the mean only"):
            getattr(of, name)
    with pytest.raises(ConfigError, match="tells the mean only"):
        of.between(0, 1)


def test_an_interval_can_be_read() -> None:
    assert str(Interval(low=1.23456, high=2.0)) == "1.235 to 2"
    assert str(Interval(low=np.array([1, 2]), high=np.array([3, 4]))) == "1 to 3, 2 to 4"


@pytest.mark.parametrize(("settings", "words"), [({"level": 1.0}, "level"), ({"repeats": 5}, "at least 20")])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        band(Halved(), MANY, **settings)


@pytest.mark.slow
def test_what_smoothed_waves_hold_is_what_the_documentation_says() -> None:
    method, edges = SquareWave(epsilon=1.0), np.linspace(0, 1, 257)
    known = Distribution(edges=edges, probabilities=np.diff(beta.cdf(edges, 5, 2)))
    chance, random, held = np.random.default_rng(3), InsecureRandom(3), []
    for seed in range(60):
        tally = method.tally(**report(method, chance.beta(5, 2, 100_000), random))
        of = band(method, tally, repeats=60, seed=seed)
        some = (known.cumulative > 0.01) & (known.cumulative < 0.99)
        held.append(
            [
                inside(of.mean, known.mean),
                inside(of.quantile(0.5), known.quantile(0.5)),
                inside(of.cumulative, known.cumulative)[some].mean(),
                inside(of.deviation, known.deviation),
            ]
        )
    mean, median, curve, deviation = np.mean(held, axis=0)
    assert min(mean, median) > 0.8
    assert curve > 0.75
    assert 0.45 < deviation < 0.95  # smoothing makes it too large: these intervals miss it too often
