import numpy as np
import pytest
from numba.core.errors import TypingError
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.factors.simd import (
    Table,
    add_outer,
    cells,
    column,
    combine,
    dot,
    inverse_root,
    load_row,
    minus_product,
    new_table,
    product,
    scaled,
    store_row,
    with_column,
    without_negatives,
)

A, B = np.float32(0.7), np.float32(-1.3)


def table_of(numbers: NDArray[np.float32]) -> Table:
    table = new_table(*numbers.shape)
    cells(table)[:] = numbers
    return table


@kernel
def _try_rows(table: Table, out: Table) -> tuple[float, float]:
    """Apply each operation to the first three rows; the rows of out are the results."""
    x, y, z = load_row(table, 0), load_row(table, 1), load_row(table, 2)
    store_row(out, 0, combine(A, x, B, y))
    store_row(out, 1, scaled(A, x))
    store_row(out, 2, product(x, y))
    store_row(out, 3, minus_product(x, y, z))
    store_row(out, 4, without_negatives(x))
    store_row(out, 5, with_column(with_column(x, -1, A), -2, B))
    store_row(out, 6, inverse_root(z))
    return dot(x, y), column(x, -2)


@pytest.mark.parametrize("width", [8, 24])
def test_row_operations_equal_their_numpy_twins(width: int) -> None:
    numbers = np.random.default_rng(width).normal(size=(3, width)).astype(np.float32)
    numbers[2] = np.abs(numbers[2]) + 0.1
    x, y, z = numbers.astype(np.float64)
    out = new_table(7, width)
    product_sum, one_number = _try_rows(table_of(numbers), out)
    replaced = x.copy()
    replaced[-1], replaced[-2] = A, B
    twins = [A * x + B * y, A * x, x * y, x - y * z, np.maximum(x, 0), replaced, 1 / np.sqrt(z)]
    np.testing.assert_allclose(cells(out), twins, rtol=1e-6, atol=1e-6)
    assert product_sum == pytest.approx(x @ y, abs=1e-5)
    assert one_number == numbers[0, -2]


@kernel
def _try_outer(table: Table, tile: Table, down: int, across: int) -> None:
    total = load_row(tile, 0)
    for k in range(table.size):
        total = add_outer(total, table, k, down, across)
    store_row(tile, 0, total)


@pytest.mark.parametrize(("down", "across"), [(0, 0), (0, 2), (2, 1)])
def test_outer_products_add_up_to_a_tile_of_the_gram_matrix(down: int, across: int) -> None:
    numbers = np.random.default_rng(0).normal(size=(50, 24)).astype(np.float32)
    tile = new_table(1, 64)
    cells(tile)[:] = 1
    _try_outer(table_of(numbers), tile, down, across)
    gram = numbers.T.astype(np.float64) @ numbers
    square = gram[8 * down : 8 * down + 8, 8 * across : 8 * across + 8]
    np.testing.assert_allclose(cells(tile).reshape(8, 8), 1 + square, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("columns", "width"), [(1, 8), (8, 8), (9, 16), (22, 24)])
def test_tables_are_padded_with_zeros_and_start_on_a_cache_line(columns: int, width: int) -> None:
    table = new_table(5, columns)
    assert cells(table).shape == (5, width)
    assert not cells(table).any()
    assert table.ctypes.data % 64 == 0
    assert np.shares_memory(cells(table), table)


def test_empty_table_is_a_table() -> None:
    assert cells(new_table(0, 10)).shape == (0, 16)


def test_storing_touches_its_own_row_only() -> None:
    numbers = np.arange(48, dtype=np.float32).reshape(6, 8)
    table = table_of(numbers)
    _double(table, 3)
    numbers[3] *= 2
    assert np.array_equal(cells(table), numbers)


@kernel
def _double(table: Table, index: int) -> None:
    store_row(table, index, scaled(np.float32(2), load_row(table, index)))


@kernel
def _copy(source: Table, target: Table) -> None:
    store_row(target, 0, load_row(source, 0))


def test_row_does_not_fit_a_table_of_another_width() -> None:
    with pytest.raises(TypingError, match=r"cannot hold a Row\(1\)"):
        _copy(new_table(1, 8), new_table(1, 9))


def test_plain_array_is_not_a_table() -> None:
    with pytest.raises(TypingError, match="not a table"):
        _copy(np.zeros((1, 8), np.float32), new_table(1, 8))
