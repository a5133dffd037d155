import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.errors import ConfigError
from cofactor.privacy.answers import Wave
from cofactor.survey.banded import Side, product
from cofactor.survey.method import Floats, Integers
from cofactor.survey.transforms import (
    BandTransform,
    DenseTransform,
    staying,
    transform_of,
    wave_matrix,
    ways,
)
from cofactor.survey.waves import GeneralWave, SquareWave

SHAPES = [(2, 2), (3, 7), (16, 16), (100, 37), (37, 100), (200, 333), (256, 256), (256, 2), (2, 256)]
EPSILONS = [1e-8, 0.1, 1.0, 4.0, 12.0, 25.0, 50.0]


@st.composite
def small_waves(draw: st.DrawFn) -> tuple[Wave, int]:
    buckets, own = draw(st.integers(2, 6)), draw(st.integers(1, 5))
    wide = draw(st.integers(1, 30))
    narrow = draw(st.integers(1, wide))
    cells = buckets * own + wide + narrow - 2
    reports = draw(st.sampled_from([n for n in range(1, cells + 1) if cells % n == 0]))
    wave = Wave(choices=buckets * own, epsilon=1.5, wide=wide, narrow=narrow, buckets=reports)
    return wave, buckets


def ways_one_by_one(wave: Wave, buckets: int) -> Integers:
    found = np.zeros((wave.reports, buckets), np.int64)
    own, each = wave.choices // buckets, wave.cells // wave.reports
    for cell, one, two in itertools.product(range(wave.choices), range(wave.wide), range(wave.narrow)):
        found[(cell + one + two) // each, cell // own] += 1
    return found


def all_ways(wave: Wave, buckets: int) -> Integers:
    return ways(wave, buckets, np.arange(wave.reports)[:, None], np.arange(buckets)[None, :])


def product_in_numpy(side: Side, values: Floats) -> Floats:
    out = np.empty(len(side.low))
    for row in range(len(out)):
        left, right = int(side.left_start[row]), int(side.right_start[row])
        out[row] = (
            side.everywhere * values.sum()
            + side.inside * values[side.low[row] : side.high[row]].sum()
            + side.left[row] @ values[left : left + side.left.shape[1]]
            + side.right[row] @ values[right : right + side.right.shape[1]]
        )
    return out


@given(small_waves())
def test_ways_are_those_that_one_counts(case: tuple[Wave, int]) -> None:
    wave, buckets = case
    assert np.array_equal(all_ways(wave, buckets), ways_one_by_one(wave, buckets))


@given(small_waves(), st.integers(0, 2**32))
def test_products_are_those_of_the_matrix_however_odd_the_wave(case: tuple[Wave, int], seed: int) -> None:
    wave, buckets = case
    chance = np.random.default_rng(seed)
    values, weights = chance.random(buckets), chance.random(wave.reports)
    transform, matrix = transform_of(wave, buckets), wave_matrix(wave, buckets)
    assert np.allclose(transform.forward(values), matrix @ values, rtol=1e-13, atol=0)
    assert np.allclose(transform.backward(weights), matrix.T @ weights, rtol=1e-13, atol=0)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("buckets", "reports"), SHAPES)
def test_columns_add_up_to_one_and_products_are_those_of_the_matrix(
    buckets: int, reports: int, epsilon: float
) -> None:
    transform = SquareWave(epsilon=epsilon, buckets=buckets, reports=reports).transform
    matrix = transform.matrix()
    assert matrix.shape == (reports, buckets)
    assert np.abs(matrix.sum(axis=0) - 1).max() <= 1e-12
    chance = np.random.default_rng(3)
    values, weights = chance.random(buckets), chance.random(reports)
    assert np.allclose(transform.forward(values), matrix @ values, rtol=1e-13, atol=1e-14)
    assert np.allclose(transform.backward(weights), matrix.T @ weights, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("ratio", [0.0, 0.2, 0.4, 0.6, 0.8])
@pytest.mark.parametrize(("buckets", "reports"), SHAPES)
def test_columns_of_trapezoids_add_up_to_one(buckets: int, reports: int, ratio: float) -> None:
    transform = GeneralWave(epsilon=1.0, buckets=buckets, reports=reports, ratio=ratio).transform
    assert np.abs(transform.matrix().sum(axis=0) - 1).max() <= 1e-12


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_ways_add_up_exactly_on_the_finest_grid(ratio: float) -> None:
    method = GeneralWave(epsilon=1e-8, buckets=48, half_width=1.0, ratio=ratio)
    wave = method.mechanism
    total = wave.choices // 48 * wave.wide * wave.narrow
    assert all_ways(wave, 48).sum(axis=0).tolist() == [total] * 48
    assert all_ways(wave, 48).min() >= 0


@pytest.mark.parametrize("half_width", [0.001, 0.01, 0.256, 0.5, 1.0])
def test_products_take_few_entries_besides_the_band(half_width: float) -> None:
    transform = SquareWave(epsilon=1.0, buckets=1000, half_width=half_width).transform
    assert isinstance(transform, BandTransform)
    for side in (transform.rows, transform.columns):
        assert side.left.shape[1] + side.right.shape[1] <= 9


def test_compiled_product_is_that_of_numpy() -> None:
    transform = SquareWave(epsilon=1.0, buckets=90, reports=70).transform
    assert isinstance(transform, BandTransform)
    values = np.random.default_rng(1).random(90)
    assert np.allclose(product(transform.rows, values), product_in_numpy(transform.rows, values), rtol=1e-14)


@given(small_waves(), st.floats(1e-6, 20))
def test_no_report_of_any_cell_tells_more_than_epsilon(case: tuple[Wave, int], epsilon: float) -> None:
    given_wave, _ = case
    wave = Wave(
        choices=given_wave.choices,
        epsilon=epsilon,
        wide=given_wave.wide,
        narrow=given_wave.narrow,
        buckets=given_wave.buckets,
    )
    matrix = wave_matrix(wave, wave.choices)
    assert (matrix.max(axis=1) / matrix.min(axis=1)).max() <= math.exp(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("epsilon", [1e-8, 0.5, 1.0, 2.5, 10.0])
def test_square_wave_costs_exactly_epsilon(epsilon: float, discrete: bool) -> None:
    wave = SquareWave(epsilon=epsilon, buckets=64, discrete=discrete).mechanism
    each = wave.cells // wave.reports
    report = np.arange(wave.reports)
    # The cell whose wave covers most of a report, and one whose wave is as far away as can be.
    near = np.clip(report * each + each // 2 - wave.wide // 2, 0, wave.choices - 1)
    far = np.where(report < wave.reports // 2, wave.choices - 1, 0)
    reached = ways(wave, wave.choices, report, near), ways(wave, wave.choices, report, far)
    likely, unlikely = (found * (wave.moved / wave.wide) + staying(wave) / wave.reports for found in reached)
    inside = (reached[0] == each) & (reached[1] == 0)
    assert np.any(inside) == (wave.wide >= each)
    assert np.allclose((likely / unlikely)[inside], math.exp(epsilon), rtol=1e-12, atol=0)
    assert np.all(likely / unlikely <= math.exp(epsilon) * (1 + 1e-12))


def test_discrete_square_wave_is_that_of_the_thesis() -> None:
    method = SquareWave(epsilon=1.0, buckets=40, discrete=True)
    b = math.floor(0.2559 * 40)
    q = 1 / ((2 * b + 1) * math.e + 40 - 1)
    expected = np.full((40 + 2 * b, 40), q)
    for value in range(40):
        expected[value : value + 2 * b + 1, value] = math.e * q
    assert np.allclose(method.transform.matrix(), expected, rtol=1e-13, atol=0)


def test_fine_square_wave_is_the_continuous_one_of_the_thesis() -> None:
    b, epsilon = 0.25, 1.0
    matrix = SquareWave(epsilon=epsilon, buckets=4, reports=6, half_width=b).transform.matrix()
    # A bucket and a report are 1/4 wide; a value of bucket 0 reaches -1/4 to 1/2, and report 1 in full.
    q = 1 / (2 * b * math.exp(epsilon) + 1)
    p = math.exp(epsilon) * q
    ramp = (p + q) / 2
    expected = 0.25 * np.array([ramp, p, ramp, q, q, q])
    assert np.allclose(matrix[:, 0], expected, rtol=1e-7, atol=0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_does_not_come_from_the_wave_is_the_rest(epsilon: float) -> None:
    wave = SquareWave(epsilon=epsilon, buckets=8).mechanism
    assert staying(wave) + wave.moved == pytest.approx(1, abs=1e-15)
    assert staying(wave) > 0


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_transposed_product_is_transposed(seed: int) -> None:
    chance = np.random.default_rng(seed)
    transform = SquareWave(
        epsilon=1.0, buckets=int(chance.integers(2, 90)), reports=int(chance.integers(2, 90))
    ).transform
    x, y = chance.random(transform.buckets), chance.random(transform.reports)
    assert y @ transform.forward(x) == pytest.approx(transform.backward(y) @ x, rel=1e-12)


def test_what_cannot_be_undone_is_refused() -> None:
    with pytest.raises(ConfigError, match="do not make 3 equal buckets"):
        transform_of(Wave(choices=10, epsilon=1.0, wide=3), 3)
    with pytest.raises(ConfigError, match="too fine to be undone"):
        transform_of(Wave(choices=2**32, epsilon=1.0, wide=3), 2)
    with pytest.raises(ConfigError, match="too fine to be undone"):
        transform_of(Wave(choices=2**22, epsilon=1.0, wide=3, narrow=2), 2)
    with pytest.raises(ConfigError, match="does not fit"):
        wave_matrix(Wave(choices=2**13, epsilon=1.0, wide=1), 2**13)


def test_products_with_too_few_numbers_are_refused() -> None:
    transform = SquareWave(epsilon=1.0, buckets=5, reports=9).transform
    with pytest.raises(ConfigError, match="a transform of 5 numbers was given 4"):
        transform.forward(np.ones(4))
    with pytest.raises(ConfigError, match="a transform of 9 numbers was given 5"):
        transform.backward(np.ones(5))


def test_a_written_matrix_must_hold_distributions() -> None:
    with pytest.raises(ConfigError, match="above 0"):
        DenseTransform(entries=np.eye(3))
    with pytest.raises(ConfigError, match="add up to 1"):
        DenseTransform(entries=np.full((3, 3), 0.5))
    assert DenseTransform(entries=np.full((4, 2), 0.25)).reports == 4
