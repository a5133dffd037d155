"""Each user's taste, fitted at home to the user's own ratings: a ridge regression on what is known of items.

Item columns come in coordinates in which tastes have the prior N(0, I). Beside the fit the kernels give what
a user may send, bounded by nothing yet: residuals and tastes in which a rating itself had no part.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.grouping import Index, Offsets

Reals = NDArray[np.float64]

_LEAST = 0.2
"""The least part of a rating that the other ratings leave open: residuals are divided by it."""
_LEAST_TASTE, _LARGEST_TASTE = 1e-5, 10.0
"""Variances of tastes that are believed."""


class Fitted(NamedTuple):
    """What the fit of some users gives."""

    tastes: Reals
    """A row for each user."""
    residuals: Reals
    """Of each rating, from a fit to the user's other ratings."""
    told: Reals
    """For each rating, the user's taste in some directions, from a fit to the user's other ratings."""
    spreads: Reals
    """For each user, posterior covariance + taste taste' - I, as packed rows of a symmetric matrix; empty if
    not asked for."""


def fitted(
    ptr: Offsets,
    index: Index,
    targets: Reals,
    columns: Reals,
    weights: Reals,
    directions: Reals | None = None,
    *,
    spreads: bool = False,
) -> Fitted:
    """Fit users to targets: what their ratings of items are beyond what is expected of everybody.

    A rating of item j has the noise variance 1 / weights[j]. `directions` has a column for each direction in
    which tastes are told.
    """
    users, width = len(ptr) - 1, columns.shape[1]
    ways = np.zeros((width, 0)) if directions is None else np.ascontiguousarray(directions)
    packed = width * (width + 1) // 2 if spreads else 0
    out = Fitted(
        np.zeros((users, width)),
        np.zeros(len(targets)),
        np.zeros((len(targets), ways.shape[1])),
        np.zeros((users, packed)),
    )
    fit_users(ptr, index, targets, columns, weights, ways, *out)
    return out


@kernel
def fit_users(
    ptr: Offsets,
    index: Index,
    targets: Reals,
    columns: Reals,
    weights: Reals,
    directions: Reals,
    tastes: Reals,
    residuals: Reals,
    told: Reals,
    spreads: Reals,
) -> None:
    """Fill what `Fitted` holds."""
    width, ways = columns.shape[1], directions.shape[1]
    square, inverse, work = np.empty((width, width)), np.empty(width), np.empty(width)
    turned, whole, half = np.empty((width, ways)), np.empty(ways), np.empty((width, width))
    for user in range(ptr.size - 1):
        first, last = ptr[user], ptr[user + 1]
        taste = tastes[user]
        _normal_equations(index[first:last], targets[first:last], columns, weights, square, taste)
        _factorized(square, inverse)
        _solved(square, inverse, taste)
        _inverted(square, inverse, half)
        for way in range(ways):
            work[:] = directions[:, way]
            _solved(square, inverse, work)
            turned[:, way] = work
            whole[way] = 0.0
            for k in range(width):
                whole[way] += directions[k, way] * taste[k]
        for at in range(first, last):
            item = index[at]
            leverage = min(weights[item] * _square_length(columns[item], half, work), 1.0)
            missed = targets[at]
            for k in range(width):
                missed -= columns[item, k] * taste[k]
            residuals[at] = missed / max(1.0 - leverage, _LEAST)
            told[at] = 0.0
            for k in range(width):
                for way in range(ways):
                    told[at, way] += turned[k, way] * columns[item, k]
            own = weights[item] * residuals[at]
            for way in range(ways):
                told[at, way] = whole[way] - own * told[at, way]
        if spreads.shape[1] > 0:
            _spread(half, taste, work, spreads[user])


@kernel
def _normal_equations(
    index: Index, targets: Reals, columns: Reals, weights: Reals, square: Reals, right: Reals
) -> None:
    """Set the upper half of I + X'WX, and X'Wy. Four ratings at once: sums stay in registers for longer."""
    width, count = columns.shape[1], index.size
    square[:] = 0.0
    right[:] = 0.0
    for k in range(width):
        square[k, k] = 1.0
    for at in range(0, count - count % 4, 4):
        a, b, c, d = (
            columns[index[at]],
            columns[index[at + 1]],
            columns[index[at + 2]],
            columns[index[at + 3]],
        )
        of_a, of_b, of_c, of_d = (
            weights[index[at]],
            weights[index[at + 1]],
            weights[index[at + 2]],
            weights[index[at + 3]],
        )
        for k in range(width):
            wa, wb, wc, wd = of_a * a[k], of_b * b[k], of_c * c[k], of_d * d[k]
            right[k] += (wa * targets[at] + wb * targets[at + 1]) + (
                wc * targets[at + 2] + wd * targets[at + 3]
            )
            for h in range(k, width):
                square[k, h] += (wa * a[h] + wb * b[h]) + (wc * c[h] + wd * d[h])
    for at in range(count - count % 4, count):
        row, weight = columns[index[at]], weights[index[at]]
        for k in range(width):
            weighted = weight * row[k]
            right[k] += weighted * targets[at]
            for h in range(k, width):
                square[k, h] += weighted * row[h]


@kernel
def _inverted(root: Reals, inverse: Reals, half: Reals) -> None:
    """Set H, upper triangular, with R H = I."""
    width = len(root)
    half[:] = 0.0
    for k in range(width - 1, -1, -1):
        half[k, k] = inverse[k]
        for g in range(k + 1, width):
            factor = root[k, g] * inverse[k]
            for h in range(g, width):
                half[k, h] -= factor * half[g, h]


@kernel
def _square_length(row: Reals, half: Reals, work: Reals) -> float:
    """Return the square of the length of x'H: x'A^-1 x."""
    width, length = len(row), 0.0
    work[:] = 0.0
    for k in range(0, width - width % 4, 4):
        a, b, c, d = row[k], row[k + 1], row[k + 2], row[k + 3]
        for h in range(k, width):
            work[h] += (a * half[k, h] + b * half[k + 1, h]) + (c * half[k + 2, h] + d * half[k + 3, h])
    for k in range(width - width % 4, width):
        for h in range(k, width):
            work[h] += row[k] * half[k, h]
    for k in range(width):
        length += work[k] * work[k]
    return length


@kernel
def _factorized(square: Reals, inverse: Reals) -> None:
    """Replace the upper half of A by R with A = R'R, and set the inverses of R's diagonal."""
    width = len(square)
    for k in range(width):
        inverse[k] = 1.0 / np.sqrt(square[k, k])
        for h in range(k, width):
            square[k, h] *= inverse[k]
        for g in range(k + 1, width):
            factor = square[k, g]
            for h in range(g, width):
                square[g, h] -= factor * square[k, h]


@kernel
def _half_solved(root: Reals, inverse: Reals, right: Reals) -> float:
    """Replace b by z with R'z = b, and return the square of its length: b'A^-1 b."""
    width, length = len(root), 0.0
    for k in range(width):
        right[k] *= inverse[k]
        length += right[k] * right[k]
        for h in range(k + 1, width):
            right[h] -= root[k, h] * right[k]
    return length


@kernel
def _solved(root: Reals, inverse: Reals, right: Reals) -> None:
    """Replace b by A^-1 b."""
    _half_solved(root, inverse, right)
    for k in range(len(root) - 1, -1, -1):
        for h in range(k + 1, len(root)):
            right[k] -= root[k, h] * right[h]
        right[k] *= inverse[k]


@kernel
def _spread(half: Reals, taste: Reals, work: Reals, packed: Reals) -> None:
    """Set HH' + u u' - I, row by row of its lower half; numbers off the diagonal times the root of 2.

    The length of a packed row is then the Frobenius norm of the matrix.
    """
    width = len(half)
    turned = half.T.copy()
    for k in range(width):
        work[: k + 1] = 0.0
        for g in range(k, width):
            for h in range(k + 1):
                work[h] += half[k, g] * turned[g, h]
        at = k * (k + 1) // 2
        for h in range(k):
            packed[at + h] = np.sqrt(2.0) * (work[h] + taste[k] * taste[h])
        packed[at + k] = work[k] + taste[k] * taste[k] - 1.0


def taste_root(covariance: Reals) -> Reals:
    """Return the symmetric root of the nearest covariance of tastes that is believed: neither flat nor huge.

    It is the same on every machine, whichever way that points its eigenvectors.
    """
    sizes, vectors = np.linalg.eigh(np.clip((covariance + covariance.T) / 2, -1e3, 1e3))
    return np.asarray((vectors * np.sqrt(np.clip(sizes, _LEAST_TASTE, _LARGEST_TASTE))) @ vectors.T)


def unpacked(packed: Reals, width: int) -> Reals:
    """Return the symmetric matrix that a packed row stands for."""
    low = np.zeros((width, width))
    low[np.tril_indices(width)] = packed
    halves = np.tril(low, -1) / np.sqrt(2.0)
    return np.asarray(halves + halves.T + np.diag(np.diag(low)))
