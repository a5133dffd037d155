"""Means and variances: unbiased, exactly epsilon, and bounded whatever mean is broadcast."""

import math
from fractions import Fraction

import numpy as np
import pytest

from cofactor.errors import ConfigError, DataError, RunError
from cofactor.privacy.answer_noise import moved_weight, response_weights
from cofactor.randomness import InsecureRandom
from cofactor.survey.means import (
    AnyMean,
    PiecewiseMean,
    StochasticRounding,
    largest_square,
    mean_and_variance,
    report_mean,
    report_square,
    variance_of,
)
from cofactor.survey.method import Floats, Method, report, simulated

METHODS: list[AnyMean] = [StochasticRounding(epsilon=1.0), PiecewiseMean(epsilon=1.0)]
EPSILONS = (1e-3, 0.5, 1.0, 2.5, 6.0)
STEPS = 2**16


def rounded_variance(epsilon: float, value: float) -> float:
    return float(1 / (4 * math.tanh(epsilon / 2) ** 2) - (value - 0.5) ** 2)


def piecewise_variance(epsilon: float, value: float) -> float:
    """Return that of Wang et al. (2019), Lemma 1, whose values lie in [-1, 1]."""
    root = math.exp(epsilon / 2)
    return ((2 * value - 1) ** 2 / (root - 1) + (root + 3) / (3 * (root - 1) ** 2)) / 4


def reports_of(method: PiecewiseMean, step: int) -> Floats:
    """Return the chance of every report of the whole numbers that are drawn."""
    wave = method.mechanism
    moved = moved_weight(wave.cells, wave.wide, method.epsilon) / 2**64
    chances = np.full(wave.cells, (1 - moved) / wave.cells)
    chances[step : step + wave.wide] += moved / wave.wide
    return chances


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_stochastic_rounding_is_unbiased_and_varies_by_its_formula(epsilon: float) -> None:
    method = StochasticRounding(epsilon=epsilon)
    truth, other = (weight / 2**64 for weight in response_weights(2, epsilon))
    for value in (0.0, 0.2, 0.5, 1.0):
        ones = value * truth + (1 - value) * other
        readings = [method.estimate(np.array([bit, 1]))[0] for bit in (0, 1)]
        mean = ones * readings[1] + (1 - ones) * readings[0]
        assert mean == pytest.approx(value, abs=1e-12)
        squares = ones * readings[1] ** 2 + (1 - ones) * readings[0] ** 2
        assert squares - mean**2 == pytest.approx(rounded_variance(epsilon, value), rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_piecewise_mean_is_unbiased_and_varies_as_the_paper_says(epsilon: float) -> None:
    method = PiecewiseMean(epsilon=epsilon)
    middle = (method.mechanism.cells - 1) // 2
    reports = np.arange(method.mechanism.cells) - middle
    readings = 0.5 + reports / (method.mechanism.moved * STEPS)
    assert method.estimate(np.array([7, 49, 1]))[0] == readings[middle + 7]
    for step in (0, 13_107, STEPS // 2, STEPS):
        chances = reports_of(method, step)
        assert chances.sum() == pytest.approx(1, abs=1e-12)
        # Readings of a small epsilon are large, and so is what floating point loses in adding them up.
        lost = 1e-15 * np.abs(readings).max()
        mean = float(np.sum(chances * readings))
        assert mean == pytest.approx(step / STEPS, abs=max(1e-12, lost))
        variance = float(np.sum(chances * (readings - mean) ** 2))
        assert variance == pytest.approx(piecewise_variance(epsilon, step / STEPS), rel=1e-3)


@pytest.mark.parametrize("epsilon", [1e-9, *EPSILONS, 20.0, 64.0])
def test_no_report_of_the_piecewise_mean_tells_more_than_epsilon(epsilon: float) -> None:
    wave = PiecewiseMean(epsilon=epsilon).mechanism
    moved = Fraction(moved_weight(wave.cells, wave.wide, epsilon), 2**64)
    low = (1 - moved) / wave.cells
    ratio = (low + moved / wave.wide) / low
    assert wave.wide % 2 == 1
    told = math.log1p(ratio - 1)
    assert told <= epsilon * (1 + 1e-15)
    if epsilon <= 20:
        assert told == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_everything_in_between_is_rounded_by_chance_and_right_on_average(method: AnyMean) -> None:
    # Between two steps of the grid; 10^6 coins, six deviations: a false alarm in 10^8.
    values = np.full(1_000_000, 0.3 / STEPS)
    steps = method.asked(values, InsecureRandom(3)).bounded.value
    share = 0.3 / (STEPS if isinstance(method, StochasticRounding) else 1)
    assert abs(steps.mean() - share) < 6 * math.sqrt(share / 1e6)
    assert set(np.unique(steps)) == {0, 1}


@pytest.mark.parametrize("method", METHODS)
def test_estimates_are_as_near_as_their_variance_says(method: AnyMean) -> None:
    values = np.random.default_rng(4).beta(5, 2, 200_000)
    formula = rounded_variance if isinstance(method, StochasticRounding) else piecewise_variance
    variance = np.mean([formula(1.0, value) for value in values[:2000]])
    off = float(simulated(method, values, InsecureRandom(11))[0]) - values.mean()
    assert abs(off) < 6 * math.sqrt(variance / values.size)


@pytest.mark.parametrize("method", METHODS)
def test_an_estimate_may_lie_outside(method: AnyMean) -> None:
    small = type(method)(epsilon=0.01)
    found = [simulated(small, np.zeros(10), InsecureRandom(seed))[0] for seed in range(50)]
    assert min(found) < 0
    assert max(found) > 1


@pytest.mark.parametrize("method", METHODS)
def test_tallies_of_parties_add_up(method: AnyMean) -> None:
    answers = report(method, np.random.default_rng(2).random(1000), InsecureRandom(5))["answers"]
    parts = method.tally(answers[:300]) + method.tally(answers[300:])
    np.testing.assert_array_equal(parts, method.tally(answers))
    assert parts.dtype == np.int64
    assert parts[-1] == 1000


@pytest.mark.parametrize("method", METHODS)
def test_resampled_tallies_vary_as_answers_do(method: AnyMean) -> None:
    values, chance = np.random.default_rng(6).beta(5, 2, 20_000), np.random.default_rng(7)
    tally = method.tally(**report(method, values, InsecureRandom(6)))
    drawn = [method.estimate(method.resampled(tally, chance))[0] for _ in range(2000)]
    formula = rounded_variance if isinstance(method, StochasticRounding) else piecewise_variance
    expected = np.mean([formula(1.0, value) for value in values[:2000]]) / values.size
    # A mean of 2,000 within six deviations; their variance (which includes that of the values) within 20%.
    assert abs(np.mean(drawn) - method.estimate(tally)[0]) < 6 * math.sqrt(expected / 2000)
    assert np.var(drawn) == pytest.approx(expected + values.var() / values.size, rel=0.2)
    for people in (1, 2):
        few = method.tally(**report(method, values[:people], InsecureRandom(6)))
        for _ in range(50):
            method.estimate(method.resampled(few, chance))


def test_sums_of_a_thousand_million_people_fit() -> None:
    for epsilon in (1e-9, 1.0, 64.0):
        wave = PiecewiseMean(epsilon=epsilon).mechanism
        assert ((wave.cells - 1) // 2) ** 2 * 10**9 < 2**63
    tally = PiecewiseMean(epsilon=1.0).tally(np.array([0]))
    found = PiecewiseMean(epsilon=1.0).resampled(tally * 10**9, np.random.default_rng(1))
    assert found[2] == 10**9


@pytest.mark.parametrize("method", METHODS)
def test_reports_that_cannot_be_are_refused(method: AnyMean) -> None:
    most = 2 if isinstance(method, StochasticRounding) else method.mechanism.cells
    for answers in ([0, most], [-1], [0.5], [[0]], [math.nan], ["1"]):
        with pytest.raises(RunError):
            method.tally(np.array(answers))
    with pytest.raises(RunError, match="beside"):
        method.tally(np.array([0]), seeds=np.array([0]))
    with pytest.raises(DataError, match="nobody"):
        method.estimate(method.tally(np.array([], np.int64)))


@pytest.mark.parametrize(
    ("method", "tally"),
    [
        (METHODS[0], [11, 10]),
        (METHODS[0], [-1, 10]),
        (METHODS[0], [1, 2, 10]),
        (METHODS[0], [1.5, 10]),
        (METHODS[1], [10, 9, 10]),
        (METHODS[1], [1, -1, 10]),
        (METHODS[1], [1, 10]),
        (METHODS[1], [-11, 11, 10]),
    ],
)
def test_tallies_that_cannot_be_are_refused(method: AnyMean, tally: list[int]) -> None:
    for read in (method.estimate, lambda found: method.resampled(found, np.random.default_rng(1))):
        with pytest.raises(RunError, match="a tally"):
            read(np.array(tally))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mean", [1e300, -1e300, math.inf, -math.inf, 2.0, -0.5, 0.0, 1.0, 0.5, 5e-324])
def test_whatever_mean_is_broadcast_squares_stay_within_bounds(method: AnyMean, mean: float) -> None:
    values = np.array([0.0, 1.0, 0.3, np.nextafter(1, 0), 5e-324])
    sent = report_square(method, values, mean, InsecureRandom(1))
    assert method.tally(**sent)[-1] == values.size
    nearest = min(max(mean, 0.0), 1.0)
    same = report_square(method, values, nearest, InsecureRandom(1))
    np.testing.assert_array_equal(sent["answers"], same["answers"])
    assert 0.25 <= largest_square(nearest) <= 1


@pytest.mark.parametrize("values", [np.zeros(0), np.zeros(3), np.full(3, math.nan)])
def test_what_is_no_number_is_refused_by_everybody_alike(values: Floats) -> None:
    with pytest.raises(RunError, match="broadcast is not a number"):
        report_square(METHODS[0], values, math.nan)


def test_squares_are_scaled_to_reach_both_ends() -> None:
    # With epsilon 64 answers are true: of the farthest value always 1, of the mean itself always 0.
    method = StochasticRounding(epsilon=64)
    assert report_square(method, np.full(50, 1.0), 0.25)["answers"].tolist() == [1] * 50
    assert report_square(method, np.full(50, 0.25), 0.25)["answers"].tolist() == [0] * 50
    tally = method.tally(**report_square(method, np.full(50, 1.0), 0.25))
    assert variance_of(method, tally, 0.25) == pytest.approx(0.75**2)


@pytest.mark.parametrize("method", METHODS)
def test_half_of_the_people_give_the_mean_and_the_others_the_variance(method: AnyMean) -> None:
    values = np.random.default_rng(8).beta(5, 2, 100_000)
    mean, variance = mean_and_variance(method, values, InsecureRandom(2))
    # No answer varies by more than 1.4 at epsilon 1, squares are scaled by less than 0.6: six deviations.
    assert abs(mean - values.mean()) < 6 * math.sqrt(1.4 / 50_000)
    assert abs(variance - values.var()) < 6 * 0.6 * math.sqrt(1.4 / 50_000)


def test_nobody_answers_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []

    def listen(method: Method, values: Floats, random: object) -> object:
        heard.append(len(values))
        return report(method, values, InsecureRandom(1))

    monkeypatch.setattr("cofactor.survey.means.report", listen)
    mean_and_variance(METHODS[0], np.full(101, 0.5))
    assert sorted(heard) == [50, 51]


def test_mistakes_are_explained() -> None:
    with pytest.raises(DataError, match="at least two people"):
        mean_and_variance(METHODS[0], [0.5])
    with pytest.raises(DataError, match="between 0 and 1"):
        report_mean(METHODS[1], [1.5])
    for kind in (StochasticRounding, PiecewiseMean):
        with pytest.raises(ConfigError, match="epsilon"):
            kind(epsilon=-1.0)
