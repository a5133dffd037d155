"""Alternating least squares on tables of rows: solve for every row of one side while the other side stays.

A row is [vector, zeros, 1, bias] on both sides. Gathered for the other side's equations, its last column
gives way to the target, rating less bias: the sum of outer products of gathered rows then holds the normal
equations (vector and own bias as unknowns) and, in its last column, their right-hand side. Without biases
the ones are zeros: the bias is then 0 by itself. So are the padding's unknowns.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.grouping import Grouped, Index, Offsets, Values
from cofactor.factors.simd import (
    LANES,
    Cells,
    Table,
    add_outer,
    cells,
    column,
    fetch_row,
    inverse_root,
    load_row,
    minus_product,
    new_table,
    product,
    scaled,
    store_row,
    with_column,
)
from cofactor.factors.team import Team

ONE, BIAS = -2, -1
_CHUNK = 128
"""Rows gathered at a time: they stay in the first cache while their outer products are added up."""


_AHEAD = 16
"""How many rows ahead memory is asked for: enough to hide its delay where the table outgrows the caches."""


class Weighing(NamedTuple):
    """What a rating asks for, and how much it counts."""

    mean: float | np.float32 = 0.0
    spread: float | np.float32 = 1.0
    """An explicit rating asks for (rating - mean) / spread and counts once."""
    confidence: float | np.float32 = 0.0
    """Above 0, a rating r asks for 1 and counts 1 + confidence * r; all other pairs ask for 0 and count 1."""


class _Work(NamedTuple):
    """Memory of one thread."""

    gathered: Table
    gram: Table
    """Upper triangle of the sum of outer products, tile by tile."""
    gram_cells: Cells
    systems: Table
    """Eight systems of equations at once: row p * width + q holds entry (p, q) of all eight."""
    system_cells: Cells


def new_rows(vectors: NDArray[np.floating], *, biases: bool) -> Table:
    """Return a table with these vectors and biases of 0."""
    table = new_table(len(vectors), vectors.shape[1] + 2)
    cells(table)[:, : vectors.shape[1]] = vectors
    cells(table)[:, ONE] = biases
    return table


def solve_side(
    grouped: Grouped, others: Table, rows: Table, ridge: Values, prior: Cells, weighing: Weighing, team: Team
) -> None:
    """Replace each row by the solution of its equations: Gram + prior + ridge on the diagonal."""
    shares = np.linspace(0, grouped.ptr[-1], team.size + 1)
    cuts = np.searchsorted(grouped.ptr[:-1], shares, side="left")
    cuts[0], cuts[-1] = 0, len(rows)

    # As float32: what numba computes from them stays so.
    numbers = Weighing(*(np.float32(number) for number in weighing))

    def solve(part: int) -> None:
        _solve_rows(
            grouped.ptr, grouped.index, grouped.values, others, cells(rows), ridge, prior,
            numbers, _new_work(others), cuts[part], cuts[part + 1],
        )  # fmt: skip

    team.together(solve)


def _new_work(table: Table) -> _Work:
    width = cells(table).shape[1]
    tiles = width // LANES
    gram = new_table(tiles * (tiles + 1) // 2, LANES * LANES)
    systems = new_table(width * width, LANES)
    square = cells(systems).reshape(width, width, LANES)
    return _Work(new_table(_CHUNK, width), gram, cells(gram), systems, square)


@kernel
def _solve_rows(
    ptr: Offsets,
    index: Index,
    values: Values,
    others: Table,
    rows: Cells,
    ridge: Values,
    prior: Cells,
    weighing: Weighing,
    work: _Work,
    first: int,
    last: int,
) -> None:
    width = rows.shape[1]
    for start in range(first, last, LANES):
        stop = min(start + LANES, last)
        for row in range(start, stop):
            work.gram_cells[:] = 0
            for at in range(ptr[row], ptr[row + 1], _CHUNK):
                end = min(at + _CHUNK, ptr[row + 1])
                _gather(others, index[at:end], values[at:end], weighing, work.gathered)
                _add_gram(work.gram, work.gathered, end - at, width // LANES)
            _set_system(work.system_cells, row - start, work.gram_cells, prior, ridge[row])
        # Where fewer than eight rows are left, some lanes hold no system; what becomes of them is not read.
        _solve_systems(work.systems, width)
        for row in range(start, stop):
            solution = work.system_cells[:, width - 1, row - start]
            rows[row, : width - 2] = solution[: width - 2]
            rows[row, width - 1] = solution[width - 2]


@kernel
def _gather(others: Table, index: Index, values: Values, weighing: Weighing, gathered: Table) -> None:
    """Copy the other side's rows, scaled by the root of their weight, each with its target."""
    for k in range(index.size):
        fetch_row(others, index[min(k + _AHEAD, index.size - 1)])
        row = load_row(others, index[k])
        if weighing.confidence == 0:
            target = (values[k] - weighing.mean) / weighing.spread - column(row, -1)
            store_row(gathered, k, with_column(row, -1, target))
        else:
            # The prior counts every pair once and asks it for 0. On top of that this one counts its weight,
            # and the right-hand side, root times target, comes to the 1 + weight that asks it for 1.
            root = np.sqrt(weighing.confidence * values[k])
            store_row(gathered, k, with_column(scaled(root, row), -1, root + 1 / root))


@kernel
def _add_gram(gram: Table, gathered: Table, count: int, tiles: int) -> None:
    """Add the outer products of the gathered rows, in tiles of eight by eight that stay in registers."""
    number = 0
    for down in range(tiles):
        for across in range(down, tiles):
            tile = load_row(gram, number)
            for k in range(count):
                tile = add_outer(tile, gathered, k, down, across)
            store_row(gram, number, tile)
            number += 1


@kernel
def _set_system(systems: Cells, lane: int, gram: Cells, prior: Cells, ridge: float) -> None:
    """Write one system among the eight."""
    width = systems.shape[0]
    number = 0
    for down in range(0, width, LANES):
        for across in range(down, width, LANES):
            for p in range(LANES):
                for q in range(LANES):
                    entry = gram[number, p * LANES + q] + prior[down + p, across + q]
                    systems[down + p, across + q, lane] = entry
            number += 1
    for p in range(width):
        systems[p, p, lane] += ridge


@kernel
def _solve_systems(systems: Table, width: int) -> None:
    """Solve eight systems at once, by Cholesky; the solutions replace the last column.

    Systems are symmetric and positive; only entries on and above the diagonal are read.
    """
    last = width - 1
    for p in range(last):
        scale = inverse_root(load_row(systems, p * width + p))
        store_row(systems, p * width + p, scale)
        for q in range(p + 1, width):
            store_row(systems, p * width + q, product(scale, load_row(systems, p * width + q)))
        for r in range(p + 1, last):
            factor = load_row(systems, p * width + r)
            for q in range(r, width):
                rest = minus_product(
                    load_row(systems, r * width + q), factor, load_row(systems, p * width + q)
                )
                store_row(systems, r * width + q, rest)
    for p in range(last - 1, -1, -1):
        value = load_row(systems, p * width + last)
        for q in range(p + 1, last):
            value = minus_product(
                value, load_row(systems, p * width + q), load_row(systems, q * width + last)
            )
        store_row(systems, p * width + last, product(value, load_row(systems, p * width + p)))
