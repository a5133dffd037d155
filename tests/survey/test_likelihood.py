import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from cofactor.errors import ConfigError, DataError, RunError
from cofactor.survey.likelihood import (
    Fitted,
    checked_counts,
    expectation_maximisation,
    smoothed,
)
from cofactor.survey.method import Floats, Integers
from cofactor.survey.transforms import DenseTransform, Transform
from cofactor.survey.waves import GeneralWave, SquareWave


def beta_counts(transform: Transform, people: int = 20_000, seed: int = 0) -> Integers:
    chance = np.random.default_rng(seed)
    edges = np.linspace(0, 1, transform.buckets + 1)
    truth = np.histogram(chance.beta(5, 2, people), edges)[0] / people
    return chance.multinomial(people, transform.forward(truth))


def dense(transform: Transform) -> DenseTransform:
    return DenseTransform(entries=transform.matrix())


def slopes(transform: Transform, counts: Integers, x: Floats) -> Floats:
    """Return how the log-likelihood grows with each probability, for each report."""
    return transform.backward(counts / counts.sum() / transform.forward(x))


def log_likelihood(transform: Transform, counts: Integers, x: Floats) -> float:
    return float(counts @ np.log(transform.forward(x)))


@pytest.mark.parametrize("smoothing", [True, False])
@pytest.mark.parametrize(
    ("epsilon", "buckets", "reports"), [(0.5, 64, 64), (1.0, 100, 37), (2.5, 37, 100), (6.0, 64, 64)]
)
def test_compiled_steps_are_those_with_the_matrix(
    epsilon: float, buckets: int, reports: int, smoothing: bool
) -> None:
    method = SquareWave(epsilon=epsilon, buckets=buckets, reports=reports, smoothing=smoothing)
    counts = beta_counts(method.transform)
    fast, slow = (
        expectation_maximisation(each, counts, tolerance=1e-3, smoothing=smoothing)
        for each in (method.transform, dense(method.transform))
    )
    assert fast.steps == slow.steps
    assert fast.converged
    assert slow.converged
    assert np.allclose(fast.probabilities, slow.probabilities, rtol=1e-9, atol=1e-12)
    assert fast.log_likelihood == pytest.approx(slow.log_likelihood, rel=1e-12)


def test_likelihood_never_falls_without_smoothing() -> None:
    transform = SquareWave(epsilon=1.0, buckets=32).transform
    counts = beta_counts(transform)
    found = [
        expectation_maximisation(transform, counts, tolerance=1e-300, most_steps=steps).log_likelihood
        for steps in range(1, 80)
    ]
    assert np.all(np.diff(found) > 0)


def test_stated_likelihood_is_that_of_the_stated_probabilities() -> None:
    transform = SquareWave(epsilon=1.0, buckets=32).transform
    counts = beta_counts(transform)
    fitted = expectation_maximisation(transform, counts, tolerance=1e-3, smoothing=True)
    expected = log_likelihood(transform, counts, fitted.probabilities)
    assert fitted.log_likelihood == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("method", [SquareWave(epsilon=1.0, buckets=8), GeneralWave(epsilon=1.0, buckets=8)])
def test_expectation_maximisation_ends_at_the_maximum(method: SquareWave | GeneralWave) -> None:
    counts = beta_counts(method.transform, people=5_000)
    fitted = expectation_maximisation(method.transform, counts, tolerance=1e-9, most_steps=200_000)
    found = slopes(method.transform, counts, fitted.probabilities)
    # Karush, Kuhn, Tucker: the slope is 1 wherever there is probability, and nowhere more.
    assert fitted.converged
    assert found.max() <= 1 + 1e-6
    assert np.abs(found - 1)[fitted.probabilities > 1e-3].max() <= 1e-5


def test_no_other_way_to_maximise_finds_more() -> None:
    transform = SquareWave(epsilon=1.0, buckets=8).transform
    counts = beta_counts(transform, people=5_000)
    fitted = expectation_maximisation(transform, counts, tolerance=1e-9, most_steps=200_000)
    other = minimize(
        lambda x: -log_likelihood(transform, counts, x) / counts.sum(),
        np.full(8, 1 / 8),
        jac=lambda x: -slopes(transform, counts, x),
        bounds=[(1e-12, 1)] * 8,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert fitted.log_likelihood == pytest.approx(-other.fun * counts.sum(), abs=1e-4)
    assert np.abs(fitted.probabilities - other.x).max() < 1e-2


def test_truth_is_found_from_what_is_expected_of_it() -> None:
    transform = SquareWave(epsilon=4.0, buckets=6).transform
    truth = np.array([0.1, 0.3, 0.05, 0.25, 0.2, 0.1])
    counts = np.round(transform.forward(truth) * 1e12).astype(np.int64)
    fitted = expectation_maximisation(transform, counts, tolerance=1e-2, most_steps=100_000)
    assert np.abs(fitted.probabilities - truth).max() < 1e-4


def test_a_step_is_that_of_the_thesis() -> None:
    transform = SquareWave(epsilon=1.0, buckets=5).transform
    counts = np.array([5, 0, 7, 1, 2])
    matrix, x = transform.matrix(), np.full(5, 0.2)
    likelihoods = x * (matrix.T @ (counts / (matrix @ x)))
    step = expectation_maximisation(transform, counts, tolerance=1e-300, most_steps=1)
    assert np.allclose(step.probabilities, likelihoods / likelihoods.sum(), rtol=1e-14)
    step = expectation_maximisation(transform, counts, tolerance=1e-300, most_steps=1, smoothing=True)
    assert np.allclose(step.probabilities, smoothed(likelihoods / likelihoods.sum()), rtol=1e-14)


def test_smoothing_is_one_two_one_and_reflects_at_the_ends() -> None:
    assert smoothed(np.array([4.0, 0, 0, 0, 8])).tolist() == [3, 1, 0, 2, 6]


@given(arrays(np.float64, st.integers(2, 40), elements=st.floats(0, 1)))
def test_smoothing_keeps_the_sum(values: Floats) -> None:
    assert smoothed(values).sum() == pytest.approx(values.sum(), rel=1e-13)


def test_steps_stop_by_an_absolute_change_of_the_likelihood_of_all_counts() -> None:
    transform = SquareWave(epsilon=1.0, buckets=32).transform
    counts = beta_counts(transform)

    def fit(counts: Integers, tolerance: float, most_steps: int = 10_000) -> Fitted:
        return expectation_maximisation(
            transform, counts, tolerance=tolerance, smoothing=True, most_steps=most_steps
        )

    once = fit(counts, 1e-3)
    before, earlier = (fit(counts, 1e-300, once.steps - back).log_likelihood for back in (1, 2))
    assert abs(once.log_likelihood - before) < 1e-3 <= abs(before - earlier)
    assert fit(100 * counts, 1e-1).steps == once.steps
    assert fit(100 * counts, 1e-3).steps > once.steps


def test_steps_that_ran_out_are_said_to_have() -> None:
    transform = SquareWave(epsilon=1.0, buckets=32).transform
    fitted = expectation_maximisation(transform, beta_counts(transform), tolerance=1e-3, most_steps=3)
    assert (fitted.steps, fitted.converged) == (3, False)


@pytest.mark.parametrize("smoothing", [True, False])
@pytest.mark.parametrize("discrete", [True, False])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-8, 1.0, 10.0, 20.0, 36.0, 50.0, 64.0])
def test_probabilities_are_probabilities_whatever_was_reported(
    epsilon: float, discrete: bool, smoothing: bool
) -> None:
    transform = SquareWave(epsilon=epsilon, buckets=16, discrete=discrete).transform
    one_report = np.zeros(transform.reports, np.int64)
    one_report[-1] = 1
    ends = one_report + 10**12 * one_report[::-1]
    for counts in (one_report, ends, np.arange(transform.reports)):
        fitted = expectation_maximisation(transform, counts, tolerance=1e-3, smoothing=smoothing)
        assert np.all(fitted.probabilities >= 0)
        assert fitted.probabilities.sum() == pytest.approx(1, abs=1e-12)
        assert math.isfinite(fitted.log_likelihood)


def test_without_privacy_the_histogram_comes_back() -> None:
    transform = SquareWave(epsilon=50.0, buckets=16).transform
    counts = np.arange(16)
    fitted = expectation_maximisation(transform, counts, tolerance=1e-3)
    assert np.allclose(fitted.probabilities, counts / counts.sum(), atol=1e-9)


def test_nobody_knows_anything_at_a_tiny_epsilon() -> None:
    transform = SquareWave(epsilon=1e-8, buckets=16).transform
    fitted = expectation_maximisation(transform, np.arange(16), tolerance=1e-3)
    assert np.allclose(fitted.probabilities, 1 / 16, rtol=1e-6)


def test_nobody_answered() -> None:
    with pytest.raises(DataError, match="nobody has answered"):
        checked_counts(np.zeros(4, np.int64), 4)


@pytest.mark.parametrize(
    "counts",
    [[1, 2], [[1, 2, 3]], [1, -1, 3], [1.0, 2.0, 3.0], [math.nan, 1, 1], [True, False, True], "abc"],
)
def test_tallies_that_cannot_be_are_refused(counts: object) -> None:
    with pytest.raises(RunError, match="array of 3 counts"):
        checked_counts(counts, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("counts", [[2**62, 2**62, 2**62], np.array([2**63 + 1, 1, 1], np.uint64)])
def test_tallies_of_more_answers_than_there_are_people_are_refused(counts: object) -> None:
    with pytest.raises(RunError, match="cannot be"):
        checked_counts(counts, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("tolerance", [0.0, -1.0, math.nan, math.inf])
def test_tolerance_must_be_a_positive_number(tolerance: float) -> None:
    transform = SquareWave(epsilon=1.0, buckets=4).transform
    with pytest.raises(ConfigError, match="tolerance"):
        expectation_maximisation(transform, [1, 1, 1, 1], tolerance=tolerance)
