"""What the other parties' noisy messages say about a user's taste, as a normal likelihood.

Let A be the sum of t t' over the ratings that the others have of a user, M_tt and M_tx the means of t t' and
t x' over all ratings. Then told = kappa A M_tt^-1 M_tx u + noise, where kappa is how much of a small change
clipping lets through. The noise is that of privacy, that of ratings, what is not known about A, and a
mismatch: the user is not quite the same person with the others.
"""

import math
from dataclasses import dataclass

import numpy as np

from cofactor.factors.bayes_told import Evidence, Told
from cofactor.recipes.taste_items import Matrix, Vector
from cofactor.recipes.taste_message import COUNT_WEIGHT, Directions, parts

_PASSES = math.erf(1.0 / math.sqrt(2 * 0.95))
"""Share of ratings that clipping at 1 leaves alone, if they have a variance of 0.95."""

_UNEXPLAINED = 0.8
"""Variance of a clipped rating that taste along the directions does not explain."""
_LEAST_NOISE = 1e-3
"""Without a budget there is none, and about a user without ratings nothing would be uncertain."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Means over the ratings of all parties, by released weights."""

    products: Matrix
    """Mean of t t'."""
    spread: float
    """How far one rating's t t' is from that: variances of a row's entries, the constant's left out, added
    up; the mean over rows."""
    known: Matrix
    """Mean of t x', for what x holds at home about an item."""

    @classmethod
    def of(cls, rows: Matrix, weights: Vector, known: Matrix) -> "Moments":
        """Take the means, with one row of everything for each item."""
        weighted = (rows * weights[:, None]).T
        products = weighted @ rows
        variances = ((rows**2 * weights[:, None]).T @ rows**2 - products**2)[1:, 1:]
        return cls(products, float(variances.sum()) / max(len(variances), 1), weighted @ known)

    def combinations(self) -> Matrix:
        """Return M_tt^-1 M_tx; a direction in which items do not differ says nothing."""
        safe = self.products + 1e-9 * np.eye(len(self.products))
        return np.asarray(np.linalg.solve(safe, self.known), np.float64)


def told_by_others(
    messages: Matrix, directions: Directions, moments: Moments, noise: float, mismatch: float
) -> Told:
    """Return what the sum of the others' messages says.

    Its noise has this standard deviation. `mismatch` is how differently a user behaves with the others: a
    variance, in units in which her taste itself has about 1.
    """
    least = max(noise, _LEAST_NOISE)

    def about(users: slice) -> Evidence:
        return _evidence(messages[users], directions, moments, least, mismatch)

    return Told(moments.combinations(), len(messages), about)


def _evidence(
    messages: Matrix, directions: Directions, moments: Moments, noise: float, mismatch: float
) -> Evidence:
    sums, told = parts(messages)
    level, width = directions.rows[0, 0], directions.rows.shape[1]
    counts = np.maximum(sums[:, 0] / level, 0.0)
    gathered = _gathered(counts, sums, moments, level, noise)
    # Tastes along the directions vary by `scale`: so much does an error in A weigh.
    missing = (level * noise / COUNT_WEIGHT) ** 2 + counts * moments.spread
    unknown = noise**2 + (_PASSES * directions.scale) ** 2 * missing
    covariance = unknown[:, None, None] * np.eye(width)
    covariance += _UNEXPLAINED * counts[:, None, None] * moments.products
    covariance += (_PASSES**2 * mismatch) * (gathered @ gathered)
    weighted = _PASSES * np.linalg.solve(covariance, gathered).transpose(0, 2, 1)
    precision = _PASSES * weighted @ gathered
    information = np.einsum("ufg,ug->uf", weighted, told)
    return Evidence((precision + precision.transpose(0, 2, 1)) / 2, information)


def _gathered(counts: Vector, sums: Matrix, moments: Moments, level: float, noise: float) -> Matrix:
    """Return the best guess at A, the sum of t t' over each user's ratings.

    Its first row was sent, as t begins with a constant; it is drawn towards what so many ratings have on
    average, by how noisy it is. The rest is what they have on average.
    """
    gathered = counts[:, None, None] * moments.products
    prior = counts[:, None] * np.diag(moments.products)[1:]
    gain = prior / (prior + (noise / COUNT_WEIGHT) ** 2)
    first = gathered[:, 0, 1:] + gain * (level * sums[:, 1:] - gathered[:, 0, 1:])
    gathered[:, 0, 1:] = gathered[:, 1:, 0] = first
    return gathered
