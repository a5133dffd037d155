import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import wasserstein_distance

from cofactor.errors import ConfigError, DataError
from cofactor.survey import metrics

Floats = NDArray[np.float64]


def pair(seed: int, buckets: int = 37, *, signed: bool = False) -> tuple[Floats, Floats]:
    chance = np.random.default_rng(seed)
    truth = chance.dirichlet(np.full(buckets, 0.5))
    estimate = chance.normal(1 / buckets, 0.1, buckets) if signed else chance.dirichlet(np.full(buckets, 0.5))
    return truth, estimate


@pytest.mark.parametrize("seed", range(5))
def test_distances_agree_with_scipy_on_middles_of_buckets(seed: int) -> None:
    truth, estimate = pair(seed)
    middles = (np.arange(37) + 0.5) / 37
    known = wasserstein_distance(middles, middles, truth, estimate)
    assert metrics.wasserstein(truth, estimate) == pytest.approx(known, rel=1e-9)
    largest = max(abs(truth[:k].sum() - estimate[:k].sum()) for k in range(38))
    assert metrics.kolmogorov(truth, estimate) == pytest.approx(largest)


def test_the_toy_example_of_the_thesis() -> None:
    # Section 3.3.1: both estimates are as far in L1; (3.2) tells them apart. Its sums are divided by d = 4.
    truth, near, far = [0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]
    assert metrics.wasserstein(truth, near) == pytest.approx(0.6 / 4)
    assert metrics.wasserstein(truth, far) == pytest.approx(1.8 / 4)
    assert metrics.kolmogorov(truth, near) == pytest.approx(metrics.kolmogorov(truth, far))


@pytest.mark.parametrize("width", [0.1, 0.4, 0.93])
@pytest.mark.parametrize("signed", [False, True])
def test_the_error_of_ranges_is_the_mean_over_where_they_begin(width: float, signed: bool) -> None:
    truth, estimate = pair(3, signed=signed)
    edges = np.linspace(0, 1, 38)
    starts = (np.arange(200_000) + 0.5) / 200_000 * (1 - width)
    found = np.zeros(len(starts))
    for sign, x in ((1, truth), (-1, estimate)):
        below = np.concatenate([[0], np.cumsum(x)])
        found += sign * (np.interp(starts + width, edges, below) - np.interp(starts, edges, below))
    assert metrics.range_error(truth, estimate, width) == pytest.approx(np.abs(found).mean(), rel=1e-6)


def test_means_and_variances_are_those_of_middles() -> None:
    truth, estimate = [0.5, 0.5, 0, 0], [0, 0, 0, 1]
    assert metrics.mean_error(truth, estimate) == pytest.approx(0.875 - 0.25)
    assert metrics.variance_error(truth, estimate) == pytest.approx(0.125**2)


def test_a_decile_is_the_last_edge_with_no_more_below_it() -> None:
    even, one = np.full(10, 0.1), np.eye(10)[9]
    # Of `even`, 10% lie below edge 1, and so on; of `one`, nothing lies below edge 9, and all below edge 10.
    assert metrics.decile_error(even, one) == pytest.approx(np.mean(0.9 - np.arange(1, 10) / 10))
    # Where nothing lies between two edges, it is the later one.
    assert metrics.decile_error([0.5, 0.0, 0.0, 0.5], np.full(4, 0.25)) == pytest.approx(
        np.mean(np.abs(np.repeat([0, 0.75], (4, 5)) - np.floor(np.arange(1, 10) / 10 * 4) / 4))
    )


@given(st.integers(0, 10**6))
def test_errors_are_none_for_the_truth_the_same_both_ways_and_bounded(seed: int) -> None:
    truth, estimate = pair(seed)
    assert max(metrics.errors(truth, truth).values()) == 0
    found, back = metrics.errors(truth, estimate), metrics.errors(estimate, truth)
    assert found == pytest.approx(back)
    assert found["mean"] <= found["wasserstein"] + 1e-12 <= found["kolmogorov"] + 2e-12 <= 1 + 3e-12
    assert max(found["range_0.1"], found["range_0.4"]) <= 2 * found["kolmogorov"] + 1e-12


def test_each_kind_of_estimate_has_the_errors_of_table_3_2() -> None:
    truth, estimate = pair(1)
    assert list(metrics.errors(truth, estimate)) == [
        "wasserstein", "kolmogorov", "range_0.1", "range_0.4", "mean", "variance", "deciles",
    ]  # fmt: skip
    signed = pair(1, signed=True)[1]
    assert list(metrics.errors(truth, signed, "ranges")) == ["range_0.1", "range_0.4"]
    middles = (np.arange(37) + 0.5) / 37
    mean = float(truth @ middles)
    assert metrics.errors(truth, [mean + 0.25], "mean") == pytest.approx({"mean": 0.25})
    variance = float(truth @ (middles - mean) ** 2)
    both = metrics.errors(truth, [mean, variance - 0.01], "mean")
    assert both == pytest.approx({"mean": 0, "variance": 0.01})


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(DataError, match="2 buckets, the estimate 3"):
        metrics.wasserstein([0.5, 0.5], [0.2, 0.3, 0.5])
    with pytest.raises(DataError, match="finite"):
        metrics.kolmogorov([0.5, 0.5], [np.nan, 1])
    with pytest.raises(DataError, match="one number, or two"):
        metrics.errors([0.5, 0.5], [0.1, 0.2, 0.3], "mean")
    with pytest.raises(ConfigError, match="width"):
        metrics.range_error([0.5, 0.5], [0.5, 0.5], 1.0)
