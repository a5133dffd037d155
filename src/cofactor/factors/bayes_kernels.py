"""Sums of second moments over ratings, and their way to covariances: what both halves of `Bayes` need.

The moments of a vector v are one row: 1, v, and the upper triangle of v v', row by row. That is also the
upper triangle of (1, v)(1, v)'. A regression on v needs nothing but sums of such rows.
"""

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.grouping import Index, Offsets, Values

Matrices = NDArray[np.float64]
Vector = NDArray[np.float64]


def pack(matrices: Matrices) -> Matrices:
    """Keep the upper triangle of each symmetric matrix."""
    size = matrices.shape[-1]
    rows, columns = np.triu_indices(size)
    triangles: Matrices = np.take(matrices.reshape(-1, size * size), rows * size + columns, axis=1)
    return triangles


def unpack(triangles: Matrices, size: int) -> Matrices:
    """Rebuild symmetric matrices from their upper triangles."""
    places = np.zeros((size, size), np.int64)
    places[np.triu_indices(size)] = np.arange(triangles.shape[1])
    return np.take(triangles, np.maximum(places, places.T), axis=1)


@kernel
def sum_moments(
    ptr: Offsets, index: Index, targets: Values, moments: Values, width: int
) -> tuple[Matrices, Matrices]:
    """Sum the moments of the other side over each group's ratings; also target times 1, v.

    The width of 1, v is given. Sums are in double precision: an item may have a hundred thousand ratings.
    """
    groups = ptr.size - 1
    plain = np.zeros((groups, moments.shape[1]))
    by_target = np.zeros((groups, width))
    for group in range(groups):
        first, last = ptr[group], ptr[group + 1]
        _add_rows(plain[group], moments, index[first:last])
        weighted = by_target[group]
        for position in range(first, last):
            row, target = moments[index[position]], targets[position]
            for k in range(width):
                weighted[k] += target * row[k]
    return plain, by_target


@kernel
def _add_rows(total: Vector, table: Values, rows: Index) -> None:
    """Add some rows of a table to the total, four at a time: it is then read and written less often."""
    fours = rows.size // 4 * 4
    for at in range(0, fours, 4):
        a, b, c, d = table[rows[at]], table[rows[at + 1]], table[rows[at + 2]], table[rows[at + 3]]
        for k in range(total.size):
            total[k] += (a[k] + b[k]) + (c[k] + d[k])
    for at in range(fours, rows.size):
        row = table[rows[at]]
        for k in range(total.size):
            total[k] += row[k]


@kernel
def invert(matrices: Matrices) -> None:
    """Replace each symmetric positive definite matrix by its inverse (Gauss-Jordan needs no pivoting)."""
    size = matrices.shape[1]
    for which in range(matrices.shape[0]):
        matrix = matrices[which]
        for k in range(size):
            scale = 1.0 / matrix[k, k]
            matrix[k, k] = 1.0
            for column in range(size):
                matrix[k, column] *= scale
            for row in range(size):
                if row != k:
                    factor = matrix[row, k]
                    matrix[row, k] = 0.0
                    for column in range(size):
                        matrix[row, column] -= factor * matrix[k, column]
