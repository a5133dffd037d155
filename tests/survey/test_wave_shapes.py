"""Theorem 3.5.2 and its lemmas (Li et al. 2020): no wave keeps the reports of two values as far apart as a
square one. Waves here are on cells, where a distance between values is a number of cells."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.privacy.answers import Wave
from cofactor.survey.method import Floats
from cofactor.survey.transforms import wave_matrix
from cofactor.survey.waves import GeneralWave, SquareWave

VALUES = 30


@st.composite
def heights(draw: st.DrawFn) -> tuple[float, Floats]:
    """Draw an epsilon and any admissible wave: its heights, as multiples of q, from 1 to e^epsilon."""
    epsilon = draw(st.floats(0.01, 6))
    spread = 2 * draw(st.integers(0, 12)) + 1
    places = draw(st.lists(st.floats(0, 1), min_size=spread, max_size=spread))
    return epsilon, 1 + math.expm1(epsilon) * np.array(places)


def reports_of(wave: Floats) -> tuple[Floats, float]:
    """Return the distribution of reports for each value, a column each, and q."""
    spread = len(wave)
    cells = VALUES + spread - 1
    q = 1 / (wave.sum() + cells - spread)
    columns = np.full((cells, VALUES), q)
    for value in range(VALUES):
        columns[value : value + spread, value] = q * wave
    return columns, q


def distance(columns: Floats, one: int, other: int) -> float:
    """Return the Wasserstein distance of two columns, in cells."""
    return float(np.abs(np.cumsum(columns[:, one] - columns[:, other])).sum())


def square(epsilon: float, spread: int) -> Floats:
    return np.full(spread, math.exp(epsilon))


@given(heights(), st.integers(0, VALUES - 1), st.integers(0, VALUES - 1))
def test_distance_of_reports_is_that_of_lemma_one(drawn: tuple[float, Floats], one: int, other: int) -> None:
    columns, q = reports_of(drawn[1])
    expected = abs(other - one) * (1 - len(columns) * q)
    assert distance(columns, one, other) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(heights())
def test_no_wave_has_a_lower_floor_than_the_square_one(drawn: tuple[float, Floats]) -> None:
    epsilon, wave = drawn
    _, q = reports_of(wave)
    _, least = reports_of(square(epsilon, len(wave)))
    spread = len(wave)
    assert least == pytest.approx(1 / (spread * math.exp(epsilon) + VALUES - 1), rel=1e-12)
    assert q >= least * (1 - 1e-12)
    if wave.min() < math.exp(epsilon) * (1 - 1e-6):
        assert q > least * (1 + 1e-9)


@given(heights(), st.integers(0, VALUES - 2))
def test_no_wave_keeps_reports_farther_apart_than_the_square_one(
    drawn: tuple[float, Floats], value: int
) -> None:
    epsilon, wave = drawn
    columns, _ = reports_of(wave)
    best, _ = reports_of(square(epsilon, len(wave)))
    for other in (value + 1, VALUES - 1):
        assert distance(columns, value, other) <= distance(best, value, other) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.5])
def test_trapezoids_and_the_triangle_fall_behind_in_order(epsilon: float) -> None:
    found = []
    for ratio in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        method = GeneralWave(epsilon=epsilon, buckets=100, half_width=0.25, discrete=True, ratio=ratio)
        columns = method.transform.matrix()
        assert len(columns) == 150
        assert distance(columns, 10, 60) == pytest.approx(50 * method.mechanism.moved, rel=1e-9)
        found.append(distance(columns, 10, 60))
    assert np.all(np.diff(found) > 0)
    best = SquareWave(epsilon=epsilon, buckets=100, half_width=0.25, discrete=True).transform.matrix()
    assert found[-1] == pytest.approx(distance(best, 10, 60), rel=1e-12)


@given(st.integers(1, 20), st.integers(1, 20), st.floats(0.01, 6))
def test_mechanism_is_an_admissible_wave_and_the_same_for_every_value(
    one: int, two: int, epsilon: float
) -> None:
    wave = Wave(choices=VALUES, epsilon=epsilon, wide=max(one, two), narrow=min(one, two))
    columns = wave_matrix(wave, VALUES)
    q = 1 / (wave.cells + math.expm1(epsilon) * wave.wide)
    shape = columns[: wave.wide + wave.narrow - 1, 0] / q
    assert shape.min() >= 1 - 1e-12
    assert shape.max() == pytest.approx(math.exp(epsilon), rel=1e-12)
    assert np.allclose(columns, reports_of(shape)[0], rtol=1e-11, atol=0)
