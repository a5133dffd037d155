import math

import numpy as np
import pytest
from numba.core.errors import TypingError
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.factors.simd import Table, cells, load_row, new_table, store_row
from cofactor.factors.whole_rows import MOST, add_whole, noisy, row_at, step_size, whole_cells
from cofactor.privacy.noise import GAUSSIAN_REACH

WIDTH = 16


@kernel
def _add(totals: Table, rows: Table) -> None:
    for r in range(rows.size):
        store_row(totals, 0, add_whole(load_row(totals, 0), load_row(rows, r)))


@kernel
def _noisy(totals: Table, rows: Table) -> None:
    store_row(rows, 0, noisy(load_row(totals, 0), load_row(rows, 0)))


@kernel
def _copy(numbers: NDArray[np.float32], start: int, rows: Table) -> None:
    store_row(rows, 0, row_at(numbers, start, rows))


def table_of(numbers: NDArray[np.floating]) -> Table:
    table = new_table(*numbers.shape)
    cells(table)[:] = numbers
    return table


def test_sums_are_those_of_numbers_cut_towards_zero() -> None:
    rows = np.random.default_rng(0).normal(0, 1e4, (50, WIDTH)).astype(np.float32)
    totals = new_table(1, WIDTH)
    _add(totals, table_of(rows))
    np.testing.assert_array_equal(whole_cells(totals)[0], np.trunc(rows).sum(axis=0))


def test_a_sum_stands_still_at_its_limit_and_comes_back_from_it() -> None:
    totals = new_table(1, WIDTH)
    whole_cells(totals)[:] = np.where(np.arange(WIDTH) % 2, MOST - 3, 3 - MOST)
    away = np.where(np.arange(WIDTH) % 2, 5.0, -5.0)[None]
    _add(totals, table_of(away))
    np.testing.assert_array_equal(np.abs(whole_cells(totals)), MOST)
    _add(totals, table_of(-away))
    np.testing.assert_array_equal(np.abs(whole_cells(totals)), MOST - 5)


def test_limited_sums_never_move_apart() -> None:
    chance = np.random.default_rng(1)
    steps = table_of(chance.uniform(-MOST / 2, MOST / 2, (200, WIDTH)))
    pair = [new_table(1, WIDTH) for _ in range(2)]
    apart = chance.integers(-1000, 1000, WIDTH)
    whole_cells(pair[1])[0] = apart
    for totals in pair:
        _add(totals, steps)
    change = np.abs(whole_cells(pair[1])[0].astype(np.int64) - whole_cells(pair[0])[0])
    assert np.all(change <= np.abs(apart))


def test_noise_is_rounded_to_the_nearest_whole_number() -> None:
    totals = new_table(1, WIDTH)
    whole_cells(totals)[0] = np.arange(WIDTH) - 8
    rows = np.random.default_rng(2).normal(0, 3, (1, WIDTH)).astype(np.float32)
    found = table_of(rows)
    _noisy(totals, found)
    np.testing.assert_array_equal(cells(found)[0], np.arange(WIDTH) - 8 + np.rint(rows[0]))


@pytest.mark.parametrize("longest", [1e-6, 1.0, 22.4, 2e18])
@pytest.mark.parametrize("multiplier", [0.0, 1e-3, 3.9, 4.1, 1e9])
def test_neither_contributions_nor_noise_have_too_many_steps(longest: float, multiplier: float) -> None:
    step, deviation = step_size(longest, multiplier * longest), multiplier * longest
    assert math.frexp(step)[0] == 0.5
    assert longest <= 2**16 * step
    assert deviation <= 2**12 * step
    assert longest >= 2**15 * step or deviation >= 2**11 * step
    # The farthest noise still has two binary digits below a step.
    assert np.spacing(np.float32(GAUSSIAN_REACH * deviation / step)) <= 2**-2


@pytest.mark.parametrize("start", [0, 1, 7, 24])
def test_a_row_is_read_from_any_place_of_an_array(start: int) -> None:
    numbers = np.arange(40, dtype=np.float32)
    found = new_table(1, WIDTH)
    _copy(numbers, start, found)
    np.testing.assert_array_equal(cells(found)[0], numbers[start : start + WIDTH])


def test_a_row_is_read_from_float32_only() -> None:
    with pytest.raises(TypingError, match="array of float32"):
        _copy(np.zeros(40), 0, new_table(1, WIDTH))  # type: ignore[arg-type]
