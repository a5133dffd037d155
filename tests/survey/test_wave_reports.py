import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from cofactor.errors import DataError, RunError
from cofactor.randomness import InsecureRandom, Seeds
from cofactor.survey.method import Floats, Integers, Method, report, simulated
from cofactor.survey.waves import GeneralWave, SquareWave

METHODS: list[SquareWave | GeneralWave] = [
    SquareWave(epsilon=1.0, buckets=8),
    SquareWave(epsilon=1.0, buckets=8, reports=20),
    SquareWave(epsilon=1.0, buckets=8, discrete=True),
    SquareWave(epsilon=2.0, buckets=5, half_width=0.05, reports=7),
    GeneralWave(epsilon=1.0, buckets=8),
    GeneralWave(epsilon=1.0, buckets=8, ratio=0.4),
    GeneralWave(epsilon=1.0, buckets=8, ratio=0.2, discrete=True),
]
BARS = {0.5: 0.0125, 1.0: 0.0060, 1.5: 0.0040, 2.0: 0.0027, 2.5: 0.0023}


def answers(method: Method, values: Floats, seed: int) -> Integers:
    return report(method, values, InsecureRandom(seed))["answers"]


def wasserstein(one: Floats, other: Floats) -> float:
    return float(np.abs(np.cumsum(one - other)).sum() / len(one))


@cache
def beta_values(seed: int) -> Floats:
    return Seeds(seed).generator("beta").beta(5, 2, 100_000)


def histogram(values: Floats, buckets: int) -> Floats:
    return np.histogram(values, np.linspace(0, 1, buckets + 1))[0] / len(values)


@pytest.mark.parametrize("method", METHODS)
def test_reports_come_as_the_transform_says(method: SquareWave | GeneralWave) -> None:
    people = 60_000
    for bucket in (0, method.buckets // 2, method.buckets - 1):
        values = (bucket + Seeds(bucket).generator("values").random(people)) / method.buckets
        counts = method.tally(answers(method, values, bucket))
        expected = people * method.transform.matrix()[:, bucket]
        distance = ((counts - expected) ** 2 / expected).sum()
        assert chi2.sf(distance, len(counts) - 1) > 1e-8


def most_surprising(one: Integers, other: Integers, epsilon: float) -> float:
    """Return by how many deviations a report was too frequent for epsilon, at most."""
    excess = one - math.exp(epsilon) * other
    return float((excess / np.sqrt(one + math.exp(2 * epsilon) * other + 1)).max())


def audited(method: SquareWave | GeneralWave, claimed: float) -> float:
    people = 150_000
    first, second = (
        method.tally(answers(method, np.full(people, value), seed)) for seed, value in enumerate([0.0, 1.0])
    )
    return max(most_surprising(first, second, claimed), most_surprising(second, first, claimed))


@pytest.mark.parametrize("method", METHODS)
def test_audit_finds_no_report_that_tells_more_than_epsilon(method: SquareWave | GeneralWave) -> None:
    # Above 6.5 deviations for one of at most 40 events: less than one in 10^8.
    assert audited(method, method.epsilon) < 6.5


@pytest.mark.parametrize("method", METHODS[:3])
def test_audit_would_notice_a_slightly_larger_epsilon(method: SquareWave | GeneralWave) -> None:
    assert audited(method, 0.9 * method.epsilon) > 6.5


def test_values_at_the_very_ends_are_in_the_outer_buckets() -> None:
    method = SquareWave(epsilon=50.0, buckets=4, reports=4)
    assert answers(method, np.array([0.0, 0.25, 0.5, 1.0]), 0).tolist() == [0, 1, 2, 3]


def test_tallies_of_parties_add_up_to_that_of_all() -> None:
    method = SquareWave(epsilon=1.0, buckets=16)
    told = answers(method, Seeds(1).generator("values").random(1000), 1)
    parts = method.tally(told[:400]) + method.tally(told[400:])
    assert np.array_equal(parts, method.tally(told))
    assert parts.sum() == 1000
    assert method.tally(told[:0]).tolist() == [0] * 16


@pytest.mark.parametrize("strange", [[-1], [16], [0.5], [[1]], [2**70], ["a"]])
def test_reports_that_cannot_be_are_refused(strange: list[object]) -> None:
    with pytest.raises(RunError, match="whole numbers from 0 to 15"):
        SquareWave(epsilon=1.0, buckets=16).tally(np.asarray(strange))


def test_nothing_goes_beside_reports() -> None:
    with pytest.raises(RunError, match="must be nothing"):
        SquareWave(epsilon=1.0, buckets=16).tally(np.array([1]), seeds=np.array([1]))


def test_resampled_tally_has_as_many_reports_of_those_that_were_made() -> None:
    method = SquareWave(epsilon=1.0, buckets=4)
    tally = np.array([10, 0, 30, 60])
    again = np.array([method.resampled(tally, Seeds(k).generator("again")) for k in range(400)])
    assert np.all(again.sum(axis=1) == 100)
    assert np.all(again[:, 1] == 0)
    # Five deviations and more of a mean of 400.
    assert np.allclose(again.mean(axis=0), tally, atol=6 * 5 / 20)
    with pytest.raises(DataError, match="nobody has answered"):
        method.resampled(np.zeros(4, np.int64), Seeds(0).generator("again"))


@pytest.mark.parametrize("epsilon", BARS)
def test_smoothed_estimates_of_a_beta_distribution_are_as_close_as_those_of_the_paper(epsilon: float) -> None:
    method = SquareWave(epsilon=epsilon)
    found = []
    for seed in range(20):
        values = beta_values(seed)
        truth = histogram(values, 256)
        tally = Seeds(seed).generator("reports").multinomial(100_000, method.transform.forward(truth))
        found.append(wasserstein(method.estimate(tally), truth))
    assert np.mean(found) <= BARS[epsilon]


@pytest.mark.parametrize("discrete", [False, True])
def test_smoothed_estimates_from_real_reports_are_as_close(discrete: bool) -> None:
    method = SquareWave(epsilon=1.0, discrete=discrete)
    found = []
    for seed in range(5):
        values = beta_values(seed)
        found.append(wasserstein(simulated(method, values, InsecureRandom(seed)), histogram(values, 256)))
    assert np.mean(found) <= 1.25 * BARS[1.0]


def test_a_square_wave_tells_more_than_a_triangle_and_smoothing_helps() -> None:
    def error(method: SquareWave | GeneralWave) -> float:
        truth = histogram(beta_values(0), 256)
        found = []
        for seed in range(6):
            tally = Seeds(seed).generator("reports").multinomial(100_000, method.transform.forward(truth))
            found.append(wasserstein(method.estimate(tally), truth))
        return float(np.mean(found))

    square = error(SquareWave(epsilon=1.0))
    assert square < error(GeneralWave(epsilon=1.0))
    assert square < error(SquareWave(epsilon=1.0, smoothing=False))


def test_steps_stop_where_the_thesis_stops() -> None:
    assert SquareWave(epsilon=2.0).tolerance == 1e-3
    assert SquareWave(epsilon=2.0, smoothing=False).tolerance == pytest.approx(1e-3 * math.exp(2))
    tally = np.arange(1000, 1256)
    fitted = SquareWave(epsilon=2.0).fitted(tally)
    assert fitted.converged
    assert np.array_equal(SquareWave(epsilon=2.0).estimate(tally), fitted.probabilities)
