"""The arithmetic of `MultiViewMF` over the users of a party: always in the same order, so that it repeats.

A user's ratings are entries with a weight c each, and what has no entry has the weight `everywhere`: 0, or
InclUnc's alpha, which costs no more than 0, because all its terms are alike. Ratings of what is not rated
are 0. Attributes that are missing (NaN) weigh nothing.
"""

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.grouping import Index, Offsets

Reals = NDArray[np.float64]


@kernel
def gram(vectors: Reals) -> Reals:
    """Return the sum over all rows of the row's product with itself."""
    width = vectors.shape[1]
    total = np.zeros((width, width))
    for row in range(vectors.shape[0]):
        for a in range(width):
            for b in range(width):
                total[a, b] += vectors[row, a] * vectors[row, b]
    return total


@kernel
def solved_users(
    ptr: Offsets,
    index: Index,
    values: Reals,
    weights: Reals,
    everywhere: float,
    items: Reals,
    attributes: Reals,
    features: Reals,
    side_weight: float,
    penalty: float,
) -> Reals:
    """Return the best vector of each user, items and features given: equation (8)."""
    count, width = ptr.size - 1, items.shape[1]
    base, squares, right = everywhere * gram(items), np.empty((width, width)), np.empty(width)
    users = np.empty((count, width))
    for user in range(count):
        _equations(
            user, ptr, index, values, weights, everywhere, items, attributes, features, side_weight, penalty,
            base, squares, right,
        )  # fmt: skip
        _solve(squares, right, penalty)
        users[user] = right
    return users


@kernel
def stepped_users(
    users: Reals,
    rate: float,
    ptr: Offsets,
    index: Index,
    values: Reals,
    weights: Reals,
    everywhere: float,
    items: Reals,
    attributes: Reals,
    features: Reals,
    side_weight: float,
    penalty: float,
) -> Reals:
    """Return users after a step down their gradients: equations (9) and (10), with a rate for each.

    `rate` is relative to the trace of half the curvature, which no direction exceeds: below 2 no step
    overshoots.
    """
    count, width = ptr.size - 1, items.shape[1]
    base, squares, right = everywhere * gram(items), np.empty((width, width)), np.empty(width)
    moved = users.copy()
    for user in range(count):
        _equations(
            user, ptr, index, values, weights, everywhere, items, attributes, features, side_weight, penalty,
            base, squares, right,
        )  # fmt: skip
        trace = 0.0
        for a in range(width):
            trace += squares[a, a]
        for a in range(width):
            down = right[a]
            for b in range(width):
                down -= (squares[a, b] if b <= a else squares[b, a]) * users[user, b]
            moved[user, a] += rate * down / trace
    return moved


@kernel
def summed_gradients(
    users: Reals,
    ptr: Offsets,
    index: Index,
    values: Reals,
    weights: Reals,
    everywhere: float,
    items: Reals,
    attributes: Reals,
    features: Reals,
) -> Reals:
    """Return the sum over users of f(i, j) for each item, then of f(i, d): equations (5) and (7)."""
    width, item_count = items.shape[1], items.shape[0]
    table, spread, error = np.zeros((item_count + features.shape[0], width)), np.zeros((width, width)), 0.0
    for user in range(ptr.size - 1):
        for at in range(ptr[user], ptr[user + 1]):
            j, fitted = index[at], 0.0
            for a in range(width):
                fitted += users[user, a] * items[j, a]
            error = weights[at] * values[at] - (weights[at] - everywhere) * fitted
            for a in range(width):
                table[j, a] += error * users[user, a]
        for d in range(features.shape[0]):
            if not np.isnan(attributes[user, d]):
                error = attributes[user, d]
                for a in range(width):
                    error -= users[user, a] * features[d, a]
                for a in range(width):
                    table[item_count + d, a] += error * users[user, a]
        for a in range(width):
            for b in range(width):
                spread[a, b] += users[user, a] * users[user, b]
    if everywhere > 0:
        for j in range(item_count):
            for a in range(width):
                for b in range(width):
                    table[j, a] -= everywhere * spread[a, b] * items[j, b]
    return table


@kernel
def _equations(
    user: int,
    ptr: Offsets,
    index: Index,
    values: Reals,
    weights: Reals,
    everywhere: float,
    items: Reals,
    attributes: Reals,
    features: Reals,
    side_weight: float,
    penalty: float,
    base: Reals,
    squares: Reals,
    right: Reals,
) -> None:
    """Write down what a user's best vector p solves: squares p = right. Only the lower half is written."""
    width = items.shape[1]
    squares[:] = base
    right[:] = 0.0
    for at in range(ptr[user], ptr[user + 1]):
        row = items[index[at]]
        rated, more = weights[at] * values[at], weights[at] - everywhere
        for a in range(width):
            right[a] += rated * row[a]
            weighted = more * row[a]
            for b in range(a + 1):
                squares[a, b] += weighted * row[b]
    for d in range(features.shape[0]):
        if not np.isnan(attributes[user, d]):
            row = features[d]
            for a in range(width):
                right[a] += side_weight * attributes[user, d] * row[a]
                for b in range(a + 1):
                    squares[a, b] += side_weight * row[a] * row[b]
    for a in range(width):
        squares[a, a] += penalty


@kernel
def _solve(squares: Reals, right: Reals, least: float) -> None:
    """Solve squares x = right in place by Cholesky's method, where no eigenvalue is below `least`.

    No pivot is below it either, so that none that rounding spoiled can make the answer infinite.
    """
    width = right.size
    for a in range(width):
        for b in range(a):
            for k in range(b):
                squares[a, b] -= squares[a, k] * squares[b, k]
            squares[a, b] /= squares[b, b]
        pivot = squares[a, a]
        for k in range(a):
            pivot -= squares[a, k] * squares[a, k]
        squares[a, a] = np.sqrt(max(pivot, least))
        for k in range(a):
            right[a] -= squares[a, k] * right[k]
        right[a] /= squares[a, a]
    for a in range(width - 1, -1, -1):
        for k in range(a + 1, width):
            right[a] -= squares[k, a] * right[k]
        right[a] /= squares[a, a]
