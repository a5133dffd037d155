"""Items' factors: columns of their own that residuals times tastes tell about, round by round."""

import math
from dataclasses import dataclass, replace

import numpy as np

from cofactor.recipes.item_beliefs import RATING_VARIANCE, TINY, Beliefs, Reals

FACTOR_SPREAD = 0.1
"""How large factors are, where tastes for them have unit variance."""
_LEAST_TOLD = 0.02
"""The least variance of tastes in a direction, relative to the largest: below it there is mostly noise."""


@dataclass(frozen=True, eq=False)
class Told:
    """How users tell their tastes for factors."""

    whitening: Reals
    """By which tastes are multiplied, so that those of all users vary alike in all directions."""

    @property
    def factors(self) -> int:
        """How many numbers are told."""
        return len(self.whitening)

    @property
    def weight(self) -> float:
        """What multiplies tastes in a message, beside residuals: gamma."""
        return 1.5 / math.sqrt(max(self.factors, 1))

    @property
    def longest(self) -> float:
        """How long a taste may be in a message."""
        return 2.0 * math.sqrt(self.factors)


def told_of(beliefs: Beliefs, factors: int) -> Told:
    """Whiten tastes by how they are expected to vary, as far as ratings tell them."""
    if factors == 0:
        return Told(np.zeros((0, 0)))
    columns, covariance = beliefs.columns, beliefs.covariance
    moments = (columns * beliefs.shares[:, None]).T @ columns * beliefs.usual**2 / RATING_VARIANCE
    # What is left is the inverse of inv(covariance) + moments, which need not have one in 64 bits.
    root = np.linalg.cholesky(covariance)
    seen, axes = np.linalg.eigh(root.T @ moments @ root)
    part = np.maximum(seen, 0.0) / (1 + np.maximum(seen, 0.0))
    sizes, vectors = np.linalg.eigh(((root @ axes * part) @ (root @ axes).T)[-factors:, -factors:])
    return Told(vectors * np.maximum(sizes, _LEAST_TOLD * max(sizes[-1], TINY)) ** -0.5)


def with_factors_begun(beliefs: Beliefs, factors: int, random: np.random.Generator) -> Beliefs:
    """Add columns for factors: the directions in which ratings vary most between users, then by lot."""
    covariance = beliefs.covariance[1:, 1:]
    known = beliefs.columns[:, 1:] - beliefs.shares @ beliefs.columns[:, 1:]
    root = np.linalg.cholesky(covariance)
    moments = root.T @ (known * beliefs.shares[:, None]).T @ known @ root
    vectors = np.linalg.eigh(moments)[1][:, ::-1][:, :factors]
    begun = np.column_stack(
        [known @ root @ vectors, random.standard_normal((len(known), factors - vectors.shape[1]))]
    )
    begun = begun - beliefs.shares @ begun
    sizes = np.sqrt(beliefs.shares @ begun**2)
    width = len(beliefs.covariance)
    wider = np.eye(width + factors)
    wider[:width, :width] = beliefs.covariance
    return replace(beliefs, factors=FACTOR_SPREAD * begun / np.maximum(sizes, TINY), covariance=wider)


def with_idle_factors(beliefs: Beliefs, factors: int) -> Beliefs:
    """Add columns that are 0 for all items, up to so many factors: whoever reads them is told nothing."""
    items, there = beliefs.factors.shape
    if there >= factors:
        return beliefs
    width = len(beliefs.covariance)
    wider = np.eye(width + factors - there)
    wider[:width, :width] = beliefs.covariance
    idle = np.column_stack([beliefs.factors, np.zeros((items, factors - there))])
    return replace(beliefs, factors=idle, covariance=wider)


def with_factors(
    beliefs: Beliefs, sums: Reals, seen: Reals, uncertain: Reals, noise: Reals, told: Told
) -> Beliefs:
    """Move factors by what residuals times tastes tell: one step towards the best fit for each item.

    Where tastes are white, the sum of their squares is about what an item is seen. Earlier estimates count
    for half as much in every round: they were made with other tastes.
    """
    old = beliefs.factors @ np.linalg.inv(told.whitening).T
    along = told.weight * seen
    variance = noise**2 + (told.weight * uncertain[:, None]) ** 2 * np.square(old).mean() + TINY
    precision, before = along[:, None] ** 2 / variance, 0.5 * beliefs.factor_precision[:, None]
    total = before + precision + TINY
    found = old + sums * along[:, None] / variance / total
    doubt = 1 / total + (RATING_VARIANCE / beliefs.usual / np.maximum(seen, TINY))[:, None]
    gain = FACTOR_SPREAD**2 / (FACTOR_SPREAD**2 + doubt)
    factors = (gain * found) @ told.whitening.T
    return replace(
        beliefs,
        factors=factors - beliefs.shares @ factors,
        factor_variance=(gain * doubt).sum(axis=1),
        factor_precision=total.mean(axis=1),
    )


def regauged(beliefs: Beliefs) -> Beliefs:
    """Bring factors to units in which tastes for them have unit covariance; predictions stay the same."""
    factors = beliefs.factors.shape[1]
    if factors == 0:
        return beliefs
    half = np.linalg.cholesky(beliefs.covariance[-factors:, -factors:])
    turn = np.eye(len(beliefs.covariance))
    turn[-factors:, -factors:] = np.linalg.inv(half)
    return replace(beliefs, factors=beliefs.factors @ half, covariance=turn @ beliefs.covariance @ turn.T)
