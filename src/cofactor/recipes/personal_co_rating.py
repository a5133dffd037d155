"""Which items the same users rate: columns about items that no rating's value has a part in.

The matrix of who rated what, rows and columns divided by the roots of their lengths, has leading singular
vectors that tell items apart by their audience. They are found by subspace iteration, of which users make one
step together: each adds to the items it rated the mean direction of these.
"""

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Index, Offsets

Reals = NDArray[np.float64]

ROUNDS = 4
"""Steps of subspace iteration."""
_BESIDE = 5
"""Directions beside those wanted: the first only tells popularity, and others let the rest settle sooner."""
_FEW = 50.0
"""So many ratings more are taken to be there: users and items with few of them count for less."""
_TASTE_VARIANCE = 0.025
"""Prior variance of a user's taste for an average column."""
_FINE = 2**20
"""Steps of the fixed point in 1."""
LARGEST = _FINE
"""The largest whole number that one user adds to an item."""


def direction_count(columns: int) -> int:
    """Return along how many directions is asked for so many columns."""
    return columns + _BESIDE


def co_rated(ptr: Offsets, index: Index, directions: Reals, left: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Add up, over users who are left, where the items they rated lie. Takes no rating's value."""
    table = np.zeros(directions.shape, np.int64)
    for user in np.flatnonzero(left).tolist():
        own = index[ptr[user] : ptr[user + 1]]
        mean = directions[own].sum(axis=0) / (len(own) + _FEW)
        table[own] += np.rint(_FINE * np.clip(mean, -1.0, 1.0)).astype(np.int64)
    return table


def first_directions(items: int, columns: int, random: np.random.Generator) -> Reals:
    """Return where the iteration begins."""
    return np.linalg.qr(random.standard_normal((items, min(direction_count(columns), items))))[0]


def asked_along(basis: Reals, counts: Reals) -> Reals:
    """Return directions as users get them: none of their numbers beyond 1."""
    rows = basis / np.sqrt(counts + _FEW)[:, None]
    return np.asarray(rows / max(float(np.abs(rows).max(initial=0.0)), 1e-12))


def settled_along(sums: Reals, counts: Reals) -> tuple[Reals, Reals]:
    """Return, from what users added up, an orthonormal basis, and how much lies along each of its vectors."""
    basis, sizes, _ = np.linalg.svd(sums / np.sqrt(counts + _FEW)[:, None], full_matrices=False)
    return np.asarray(basis), np.asarray(sizes)


def columns_of(basis: Reals, sizes: Reals, counts: Reals, wanted: int) -> Reals:
    """Return columns in units in which users' tastes for them have unit variance; not that of popularity."""
    found = np.zeros((len(counts), wanted))
    kept, own = basis[:, 1 : wanted + 1] / np.sqrt(counts + _FEW)[:, None], sizes[1 : wanted + 1]
    shares = counts / max(float(counts.sum()), 1.0)
    centred = kept - shares @ kept
    lengths = np.sqrt(shares @ centred**2)
    strengths = np.sqrt(own * own.size / max(float(own.sum()), 1e-12))
    scale = np.divide(strengths, lengths, out=np.zeros_like(lengths), where=lengths > 1e-9)
    found[:, : kept.shape[1]] = centred * scale * np.sqrt(_TASTE_VARIANCE)
    return found
