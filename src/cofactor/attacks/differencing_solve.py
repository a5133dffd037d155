"""Ratings from uploads whose noise is always the same: what is left when it is taken off.

A user of HDPMF uploads g = 2 (u . v - c) u + x for each item, in every epoch t, where c = W R is the rating
times its weight. V is known, and x and c are the same in all epochs. For given vectors u of the epochs, both
are linear unknowns and can be eliminated (variable projection); what is left is a small problem in u alone,
which Levenberg and Marquardt's method solves from any start near enough. The solution explains everything, so
that the attacker knows when it was found.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

EXACT = 1e-6
"""The part of all differences that may stay unexplained if the solution was found."""
_MOST_CALLS = 80
_SHORTEST, _LONGEST, _APART = 0.5, 1.0, 0.05
"""Where users are taken to be at first: longer from epoch to epoch, and hardly apart in direction."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """What explains a user's uploads best."""

    users: Reals
    """The user's vector in each epoch."""
    stretched: Reals
    """The rating of each item, times its weight."""
    misfit: float
    """The part of all differences between uploads that stays unexplained: 0 is none."""
    starts: int
    """How many starts it took."""


def solved(gradients: Reals, vectors: Reals, random: np.random.Generator, *, starts: int = 10) -> Solution:
    """Return the user's vectors and stretched ratings that explain all differences of uploads best.

    Both tables have a row for each epoch, each item of the user, and each factor. It ends at the first start
    that leads to a solution, or after so many.
    """
    from scipy.optimize import least_squares

    epochs, _, factors = gradients.shape
    size = float(np.linalg.norm(_centred(gradients)))
    best: Solution | None = None
    for start in range(1, starts + 1):
        found = least_squares(
            _misses,
            _guess(epochs, factors, random).ravel(),
            _slopes,
            method="lm",
            max_nfev=_MOST_CALLS,
            args=(gradients, vectors),
        )
        misfit = float(np.sqrt(2 * found.cost)) / size if size else 0.0
        if best is None or misfit < best.misfit:
            users = found.x.reshape(epochs, factors)
            best = _upright(users, _parts(users, gradients, vectors)[2], misfit, start)
        if best.misfit < EXACT:
            break
    assert best is not None
    return best


def _guess(epochs: int, factors: int, random: np.random.Generator) -> Reals:
    """Return vectors in one direction, chosen by chance, and some way apart."""
    direction = random.normal(size=factors)
    lengths = np.linspace(_SHORTEST, _LONGEST, epochs) / np.linalg.norm(direction)
    return np.asarray(lengths[:, None] * direction + _APART * random.normal(size=(epochs, factors)))


def _upright(users: Reals, stretched: Reals, misfit: float, starts: int) -> Solution:
    """Settle the sign, which uploads do not tell: ratings are more often above 0 than below."""
    sign = -1.0 if stretched.sum() < 0 else 1.0
    return Solution(users=sign * users, stretched=sign * stretched, misfit=misfit, starts=starts)


def _parts(users: Reals, gradients: Reals, vectors: Reals) -> tuple[Reals, Reals, Reals]:
    """Return what u . v leaves of uploads, what stretched ratings are multiplied by, and the best of these.

    Both are taken off their means over epochs: thus goes whatever is the same in all of them.
    """
    predicted = np.einsum("tk,tjk->tj", users, vectors)
    left = _centred(gradients - 2 * predicted[:, :, None] * users[:, None, :])
    slope = _centred(-2 * users)
    stretched = np.einsum("tjk,tk->j", left, slope) / max(float((slope**2).sum()), 1e-300)
    return left, slope, stretched


def _misses(flat: Reals, gradients: Reals, vectors: Reals) -> Reals:
    left, slope, stretched = _parts(flat.reshape(len(vectors), -1), gradients, vectors)
    return np.asarray(left - stretched[None, :, None] * slope[:, None, :]).ravel()


def _slopes(flat: Reals, gradients: Reals, vectors: Reals) -> Reals:
    """Return the derivatives of what is missed by the user's vectors (Kaufman 1975: to first order)."""
    epochs, items, factors = vectors.shape
    users = flat.reshape(epochs, factors)
    _, slope, stretched = _parts(users, gradients, vectors)
    error = np.einsum("tk,tjk->tj", users, vectors) - stretched
    own = -2 * (
        error[:, :, None, None] * np.eye(factors) + users[:, None, :, None] * vectors[:, :, None, :]
    )  # by epoch, item, coordinate of the upload, coordinate of that epoch's vector
    found = np.zeros((epochs, items, factors, epochs, factors))
    for epoch in range(epochs):
        along = np.einsum("k,jkl->jl", slope[epoch], own[epoch]) / max(float((slope**2).sum()), 1e-300)
        found[:, :, :, epoch, :] = -own[epoch] / epochs - slope[:, None, :, None] * along[None, :, None, :]
        found[epoch, :, :, epoch, :] += own[epoch]
    return found.reshape(epochs * items * factors, epochs * factors)


def _centred(values: Reals) -> Reals:
    return np.asarray(values - values.mean(axis=0))
