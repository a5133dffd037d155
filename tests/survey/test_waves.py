import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from cofactor.config import as_table, from_table
from cofactor.errors import ConfigError, DataError
from cofactor.survey.method import report
from cofactor.survey.waves import GeneralWave, SquareWave, half_width


def exact_half_width(epsilon: float) -> float:
    with mpmath.workdps(80):
        e, power = mpmath.mpf(epsilon), mpmath.exp(epsilon)
        return float((e * power - power + 1) / (2 * power * (power - 1 - e)))


@pytest.mark.parametrize(
    "epsilon", [*np.geomspace(1e-9, 64, 60), 1e-8, math.nextafter(1, 0), 1.0, math.nextafter(1, 2), 50.0]
)
def test_half_width_has_all_digits_right(epsilon: float) -> None:
    assert half_width(float(epsilon)) == pytest.approx(exact_half_width(float(epsilon)), rel=2e-15, abs=0)


def test_half_width_falls_from_a_half_to_nothing() -> None:
    found = [half_width(float(epsilon)) for epsilon in np.geomspace(1e-6, 64, 2000)]
    assert np.all(np.diff(found) < 0)
    assert half_width(1e-9) == pytest.approx(0.5, abs=1e-9)
    assert 0 < half_width(64.0) < 1e-25
    assert half_width(1e4) == 0


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 1.5, 2.0, 2.5])
def test_half_width_maximises_the_bound_on_what_reports_tell(epsilon: float) -> None:
    def told(b: float) -> float:
        wave = 2 * b * math.exp(epsilon)
        return math.log((2 * b + 1) / (wave + 1)) + wave * epsilon / (wave + 1)

    best = minimize_scalar(lambda b: -told(b), bounds=(1e-3, 0.5), method="bounded", options={"xatol": 1e-9})
    assert half_width(epsilon) == pytest.approx(best.x, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_half_width_needs_a_positive_epsilon(epsilon: float) -> None:
    with pytest.raises(ConfigError, match="epsilon must be greater than 0"):
        half_width(epsilon)


@pytest.mark.parametrize("epsilon", [1e-8, 0.5, 1.0, 2.5])
@pytest.mark.parametrize("buckets", [256, 200])
def test_default_grid_meets_the_half_width(epsilon: float, buckets: int) -> None:
    wave = SquareWave(epsilon=epsilon, buckets=buckets).mechanism
    assert (wave.wide - 1) / (2 * wave.choices) == pytest.approx(half_width(epsilon), rel=6e-6)


@given(
    st.floats(1e-9, 64),
    st.integers(2, 2**16),
    st.integers(2, 2**16),
    st.one_of(st.none(), st.floats(1e-6, 1)),
)
def test_grid_is_in_whole_numbers_and_never_narrower_than_meant(
    epsilon: float, buckets: int, reports: int, half: float | None
) -> None:
    wave = SquareWave(epsilon=epsilon, buckets=buckets, reports=reports, half_width=half).mechanism
    b = half or half_width(epsilon)
    assert wave.narrow == 1
    assert wave.wide % 2 == 1
    assert wave.choices % buckets == 0
    assert wave.reports == reports
    assert wave.cells % reports == 0
    assert wave.choices <= 2**29 < 2 * wave.choices
    assert -1e-6 <= (wave.wide - 1) - 2 * b * wave.choices <= 2 * reports


@given(st.floats(1e-9, 64), st.integers(2, 500), st.booleans(), st.floats(0, 1))
def test_general_grid_has_the_ratio_that_was_meant(
    epsilon: float, buckets: int, discrete: bool, ratio: float
) -> None:
    settings = {"epsilon": epsilon, "buckets": buckets, "half_width": 0.3, "discrete": discrete}
    wave = GeneralWave(**settings, ratio=ratio).mechanism  # type: ignore[arg-type]
    lower, upper = wave.wide + wave.narrow, wave.wide - wave.narrow
    assert 1 <= wave.narrow <= wave.wide
    assert lower % 2 == 0
    assert abs(upper - ratio * lower) <= 2


def test_square_is_the_general_wave_of_ratio_one() -> None:
    assert (
        SquareWave(epsilon=1.3, buckets=90).mechanism
        == GeneralWave(epsilon=1.3, buckets=90, ratio=1.0).mechanism
    )


def test_a_general_wave_that_is_square_may_have_many_buckets() -> None:
    assert GeneralWave(epsilon=1.0, buckets=2**16, ratio=1.0).transform.reports == 2**16


def test_settings_may_be_numbers_of_numpy() -> None:
    method = SquareWave(epsilon=np.float64(1.0), buckets=np.int32(256))  # type: ignore[arg-type]
    assert method.mechanism == SquareWave(epsilon=1.0, buckets=256).mechanism


def test_discrete_wave_without_reach_is_randomized_response() -> None:
    wave = SquareWave(epsilon=8.0, buckets=10, discrete=True).mechanism
    assert (wave.wide, wave.cells, wave.reports) == (1, 10, 10)


@pytest.mark.parametrize(
    "method",
    [
        SquareWave(epsilon=1.0),
        SquareWave(epsilon=2.0, buckets=5, half_width=0.05, reports=7, smoothing=False),
        GeneralWave(epsilon=1.0, buckets=8, ratio=0.2, discrete=True),
    ],
)
def test_settings_come_back_from_a_table(method: SquareWave | GeneralWave) -> None:
    assert from_table(SquareWave | GeneralWave, as_table(method), "method") == method


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SquareWave(epsilon=0.0), "epsilon must be greater than 0"),
        (lambda: SquareWave(epsilon=65.0), "epsilon must lie between 1e-9 and 64"),
        (lambda: SquareWave(epsilon=1.0, buckets=1), "buckets must lie between 2 and"),
        (lambda: SquareWave(epsilon=1.0, buckets=10**6), "buckets must lie between 2 and"),
        (lambda: SquareWave(epsilon=1.0, half_width=0.0), "half_width must be greater than 0"),
        (lambda: SquareWave(epsilon=1.0, half_width=1.5), "half_width must be at most 1"),
        (lambda: SquareWave(epsilon=1.0, reports=1), "reports must lie between 2 and"),
        (lambda: SquareWave(epsilon=1.0, reports=10**6), "reports must lie between 2 and"),
        (lambda: SquareWave(epsilon=1.0, reports=9, discrete=True), "Leave reports out"),
        (lambda: GeneralWave(epsilon=1.0, ratio=1.5), "ratio must be at most 1"),
        (lambda: GeneralWave(epsilon=1.0, ratio=-0.5), "ratio must be 0 or more"),
        (lambda: GeneralWave(epsilon=1.0, buckets=2**14), "which is too large. Use fewer buckets"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_values_outside_the_range_are_refused() -> None:
    with pytest.raises(DataError, match="between 0 and 1"):
        report(SquareWave(epsilon=1.0), [0.5, 1.01])
