"""Distributions from a few bins."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.config import as_table, from_table
from cofactor.errors import ConfigError, DataError, RunError
from cofactor.survey.binning import Binning
from cofactor.survey.method import report, simulated
from cofactor.survey.oracles import GRR, OLH
from cofactor.survey.simplex import norm_sub


@pytest.mark.parametrize(("epsilon", "bins"), [(0.5, 16), (1.0, 32), (4.0, 64), (1e-8, 2), (50.0, 64)])
def test_estimates_are_probabilities_spread_evenly_over_bins(epsilon: float, bins: int) -> None:
    values = np.random.default_rng(0).beta(5, 2, 2000)
    found = simulated(Binning(epsilon=epsilon, buckets=256, bins=bins), values)
    assert found.shape == (256,)
    assert np.all(found >= 0)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    parts = found.reshape(bins, -1)
    assert np.all(parts == parts[:, :1])


def test_without_noise_bins_hold_what_lies_in_them() -> None:
    values = np.random.default_rng(0).beta(5, 2, 5000)
    found = simulated(Binning(epsilon=50.0, buckets=64, bins=16), values)
    shares = np.histogram(values, 16, (0, 1))[0] / 5000
    np.testing.assert_allclose(found.reshape(16, 4).sum(axis=1), shares, rtol=0, atol=1e-12)


def test_the_estimate_is_the_oracles_made_to_probabilities() -> None:
    method = Binning(epsilon=1.0, buckets=30, bins=15)
    tally = method.tally(**report(method, np.linspace(0, 1, 500)))
    assert np.array_equal(method.estimate(tally), np.repeat(norm_sub(method.oracle.estimate(tally)) / 2, 2))


@given(epsilon=st.floats(0.01, 8), bins=st.integers(2, 500))
def test_the_oracle_follows_the_rule_of_the_thesis(epsilon: float, bins: int) -> None:
    method = Binning(epsilon=epsilon, buckets=bins, bins=bins)
    expected = GRR if bins - 2 < 3 * math.exp(epsilon) else OLH
    assert isinstance(method.oracle, expected)
    assert method.mechanism == method.oracle.mechanism
    assert method.mechanism.epsilon == epsilon
    assert method.beside == expected.beside


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_reports_tallies_and_resampled_tallies_are_the_oracles(epsilon: float) -> None:
    method, values = Binning(epsilon=epsilon), np.random.default_rng(0).random(500)
    sent = report(method, values)
    assert tuple(sent) == ("answers", *method.beside)
    tally = method.tally(**sent)
    assert np.array_equal(tally, method.oracle.tally(**sent))
    one, same = (each.resampled(tally, np.random.default_rng(1)) for each in (method, method.oracle))
    assert np.array_equal(one, same)


def test_without_people_there_is_a_clear_error() -> None:
    method = Binning(epsilon=1.0)
    with pytest.raises(DataError, match="nobody has answered"):
        simulated(method, [])


def test_reports_that_cannot_be_are_refused() -> None:
    with pytest.raises(RunError, match="answers are not"):
        Binning(epsilon=4.0).tally(np.array([32]))
    with pytest.raises(RunError, match="beside the answers must be seeds"):
        Binning(epsilon=0.5).tally(np.array([0]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"buckets": 100, "bins": 32}, "bins must be at least 2 and divide buckets, got 32 for 100"),
        ({"bins": 1}, "bins must be at least 2"),
        ({"bins": 512}, "divide buckets"),
        ({"bins": 2.0}, "bins must be a whole number"),
        ({"epsilon": -1.0}, "epsilon"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Binning(**{"epsilon": 1.0, **settings})


def test_the_method_survives_a_table() -> None:
    method = Binning(epsilon=0.5, buckets=128, bins=64)
    assert from_table(Binning, as_table(method), "method") == method
