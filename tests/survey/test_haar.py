"""HaarHRR: unbiased for every bucket, exactly epsilon, and nothing but possible reports."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.errors import ConfigError, DataError, RunError
from cofactor.privacy.answer_noise import response_weights
from cofactor.randomness import InsecureRandom
from cofactor.survey.haar import HaarHRR
from cofactor.survey.method import Floats, Integers, report, simulated


def outcomes(method: HaarHRR) -> NDArray[np.int64]:
    """Return every (layer, row, bit) that can be sent."""
    layers = range(method.layers)
    return np.array([(k, row, bit) for k in layers for row in range(2**k) for bit in (0, 1)])


def transform(method: HaarHRR) -> Floats:
    """Return the chance of every outcome, for each bucket, of the whole numbers that are drawn."""
    layers, rows, bits = outcomes(method).T
    truth, other = (weight / 2**64 for weight in response_weights(2, method.epsilon))
    buckets = np.arange(method.buckets)
    true = np.stack([method.bits(np.full_like(layers, each), layers, rows) for each in buckets], axis=1)
    chance = np.where(true == bits[:, None], truth, other)
    return np.asarray(chance / (method.layers * 2.0 ** layers[:, None]))


def expected_tally(method: HaarHRR, bucket: int) -> Integers:
    tally = np.zeros((2, method.buckets), np.int64)
    layers, rows, bits = outcomes(method).T
    tally[bits, 2**layers + rows] = np.rint(1e18 * transform(method)[:, bucket])
    return tally


@pytest.mark.parametrize(("epsilon", "buckets"), [(0.01, 8), (1.0, 16), (3.0, 2), (1.0, 64)])
def test_estimates_are_unbiased_for_every_bucket(epsilon: float, buckets: int) -> None:
    method = HaarHRR(epsilon=epsilon, buckets=buckets)
    for bucket in range(buckets):
        found = method.estimate(expected_tally(method, bucket))
        np.testing.assert_allclose(found, np.eye(buckets)[bucket], rtol=0, atol=1e-12)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 4.0])
def test_every_column_sums_to_one_and_no_outcome_tells_more_than_epsilon(epsilon: float) -> None:
    chances = transform(HaarHRR(epsilon=epsilon, buckets=16))
    np.testing.assert_allclose(chances.sum(axis=0), 1, rtol=0, atol=1e-12)
    most = np.log(chances.max(axis=1) / chances.min(axis=1))
    np.testing.assert_allclose(most, epsilon, rtol=1e-9)


def test_what_goes_beside_does_not_depend_on_the_values() -> None:
    method, chance = HaarHRR(epsilon=1.0), np.random.default_rng(1)
    one, other = (report(method, chance.random(500), InsecureRandom(7)) for _ in range(2))
    for name in method.beside:
        np.testing.assert_array_equal(one[name], other[name])


def test_rows_are_drawn_evenly_within_their_layer() -> None:
    sent = report(HaarHRR(epsilon=1.0, buckets=8), np.zeros(60_000), InsecureRandom(3))
    places, counts = np.unique(2 ** sent["layers"].astype(int) + sent["rows"], return_counts=True)
    expected = np.array([20_000, 10_000, 10_000, 5_000, 5_000, 5_000, 5_000])
    np.testing.assert_array_equal(places, np.arange(1, 8))
    # Six deviations: a false alarm in 10^8.
    assert np.all(np.abs(counts - expected) < 6 * np.sqrt(expected))


def test_coefficients_vary_as_much_as_the_law_says() -> None:
    method, chance = HaarHRR(epsilon=1.0, buckets=64), np.random.default_rng(5)
    values = chance.beta(5, 2, 200_000)
    tally = method.tally(**report(method, values, InsecureRandom(8)))
    for layer in range(method.layers):
        halves = np.histogram(values, 2 ** (layer + 1), (0, 1))[0].reshape(-1, 2) / values.size
        answered = tally[:, 2**layer : 2 ** (layer + 1)].sum()
        off = method.coefficients(tally, layer) - (halves[:, 0] - halves[:, 1])
        deviation = 1 / math.tanh(0.5) / math.sqrt(answered)
        # Of 63 numbers none is off by 6.5 deviations, but once in 10^8; and their squares are as expected.
        assert np.abs(off).max() < 6.5 * deviation
        if layer == 5:
            assert 0.3 < np.mean(off**2) / deviation**2 < 2.7


def test_tallies_of_parties_add_up_and_estimates_add_up_to_one() -> None:
    method, values = HaarHRR(epsilon=2.0, buckets=32), np.random.default_rng(2).random(1000)
    sent = report(method, values, InsecureRandom(1))
    parts = [
        method.tally(**{name: rows[part] for name, rows in sent.items()})
        for part in (slice(400), slice(400, None))
    ]
    np.testing.assert_array_equal(sum(parts), method.tally(**sent))
    assert method.estimate(sum(parts)).sum() == pytest.approx(1, abs=1e-12)  # type: ignore[arg-type]
    assert simulated(method, values[:3], InsecureRandom(1)).shape == (32,)


def test_resampled_tallies_vary_as_answers_do() -> None:
    method, chance = HaarHRR(epsilon=1.0, buckets=4), np.random.default_rng(9)
    tally = method.tally(**report(method, chance.random(20_000), InsecureRandom(2)))
    drawn = np.stack([method.resampled(tally, chance) for _ in range(2000)])
    assert np.all(drawn.sum(axis=(1, 2)) == 20_000)
    np.testing.assert_allclose(drawn.mean(axis=0), tally, rtol=0.02)
    np.testing.assert_allclose(drawn.var(axis=0), tally * (1 - tally / 20_000), rtol=0.25)


@pytest.mark.parametrize(
    ("answers", "layers", "rows"),
    [
        ([2, 0], [0, 0], [0, 0]),
        ([1, 0], [0, 4], [0, 0]),
        ([1, 0], [0, -1], [0, 0]),
        ([1, 0], [0, 1], [0, 2]),
        ([1, 0], [1, 1], [-1, 0]),
        ([1, 0], [1, 1], [0]),
        ([1, 0], [1], [0]),
        ([1.0, 0.5], [1, 1], [0, 0]),
    ],
)
def test_reports_that_cannot_be_are_refused(answers: list[int], layers: list[int], rows: list[int]) -> None:
    with pytest.raises(RunError, match="are not"):
        HaarHRR(epsilon=1.0, buckets=16).tally(
            np.array(answers), layers=np.array(layers), rows=np.array(rows)
        )


def test_tallies_that_cannot_be_are_refused() -> None:
    method = HaarHRR(epsilon=1.0, buckets=4)
    tallies: list[Any] = [np.ones(8, int), np.ones((2, 8), int), -np.ones((2, 4), int), np.ones((2, 4))]
    for tally in tallies:
        with pytest.raises(RunError, match="a tally"):
            method.estimate(tally)
    with pytest.raises(DataError, match="nobody"):
        method.estimate(np.zeros((2, 4), int))
    with pytest.raises(RunError, match="layers and rows"):
        method.tally(np.array([1]), rows=np.array([0]))


def test_buckets_must_be_a_power_of_two() -> None:
    with pytest.raises(ConfigError, match=r"power of two, got 100\. The nearest are 64 and 128"):
        HaarHRR(epsilon=1.0, buckets=100)
    for epsilon, buckets in itertools.product((0.0, math.nan, 65.0), (16,)):
        with pytest.raises(ConfigError, match="epsilon"):
            HaarHRR(epsilon=epsilon, buckets=buckets)
