"""What the coordinator makes of the noisy sums of `PersonalBiases`.

Numbers are in units of a scale from 1 to 5, less its middle. Sums of weights are never known: users' weights
are private, so that only about how large they are is (`Portion`), or a noisy sum of them.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import log_ndtr

from cofactor.federation.weights import PublicWeights
from cofactor.privacy.weights import taking_part
from cofactor.recipes.item_beliefs import GENEROSITY, RATING_VARIANCE, TINY, USUAL_MEAN, Beliefs
from cofactor.recipes.personal_span import Span

Reals = NDArray[np.float64]

_BIAS_VARIANCE, _LEAST_VARIANCE, _LARGEST_VARIANCE = 0.2, 0.02, 0.5
"""Of items' own biases: the usual one, and what is believed of others."""
_BEFORE = 8.0
"""As if so many items had been seen before that differ as usual."""
_MEAN_VARIANCE, _ON_FEATURES, _ON_CO_RATING = 0.1, 0.1, 0.8
"""Prior variances in the regression of biases: the mean, each public feature, each column of co-rating."""
_MANY_FEATURES = 30
"""With more features each of them tells less."""
_UNKNOWN = 0.3
"""Part of its uncertainty that is added to a count before its logarithm is taken."""
_POINTS = 16
"""Weights by which a group of users is represented."""


@dataclass(frozen=True, eq=False)
class Portion:
    """Which part of a rating of each item goes into its sum, on average over users: public."""

    mean: Reals
    square: Reals
    """The mean of its square."""

    @classmethod
    def of(cls, weights: PublicWeights | None, items: int, grains: int) -> "Portion":
        """Return it from the public policy; where no groups are named, from the expected weight.

        Weights that shrink ratings are rounded down to whole grains.
        """
        if weights is None:
            return cls(np.ones(items), np.ones(items))
        points, shares = representatives(weights)
        each = weights.items[:, None] * points
        if weights.threshold is not None:
            chance = taking_part(each, weights.epsilon, weights.threshold) @ shares
            return cls(chance, chance)
        each = np.maximum(np.floor(each * grains) / grains, TINY)
        return cls(each @ shares, each**2 @ shares)

    @property
    def variance(self) -> Reals:
        """How much it differs between users."""
        return np.maximum(self.square - self.mean**2, 0.0)


def representatives(weights: PublicWeights) -> tuple[Reals, Reals]:
    """Return weights that stand for those of all users, and how many of these each stands for."""
    middles = (np.arange(_POINTS) + 0.5) / _POINTS
    if not weights.groups:
        reach = min(weights.expected, 1 - weights.expected)
        return weights.expected + reach * (2 * middles - 1), np.full(_POINTS, 1 / _POINTS)
    points = [group.low + (group.high - group.low) * middles for group in weights.groups]
    shares = [np.full(_POINTS, group.share / _POINTS) for group in weights.groups]
    return np.concatenate(points), np.concatenate(shares)


@dataclass(frozen=True, kw_only=True, eq=False)
class Told:
    """Sums over the ratings of each item, as far as they are known."""

    counts: Reals
    """Sums of portions: about how many ratings went in."""
    count_variance: Reals
    values: Reals
    """Sums of ratings times portions."""
    noise: Reals | float
    """Variance of the noise of these."""
    offset: float
    """What is to be added to the mean of an item's ratings as they were told."""

    @classmethod
    def of_values(
        cls, counts: Reals, sums: Reals, noise: Reals | float, *, portion: Portion, span: Span
    ) -> "Told":
        """Return what is told where counts are exact: by sums of ratings from -1 to 1, and their noise."""
        return cls(
            counts=counts * portion.mean,
            count_variance=counts * portion.variance,
            values=span.slope * sums,
            noise=span.slope**2 * noise,
            offset=span.offset,
        )

    @classmethod
    def of_halves(cls, halves: Reals, noise: float, *, span: Span) -> "Told":
        """Return what is told by two sums for each item, each with noise of this variance."""
        return cls(
            counts=halves.sum(axis=1),
            count_variance=np.full(len(halves), 2 * noise),
            values=span.slope * (halves[:, 0] - halves[:, 1]),
            noise=span.slope**2 * 2 * noise,
            offset=span.offset,
        )


def believed(
    told: Told, portion: Portion, features: Reals, co_rating: Reals, *, users: int, exact: bool
) -> Beliefs:
    """Return what follows for items; `exact` says that ratings were counted, and only portions are guessed.

    An item's bias is regressed on features; how far its own sum moves it from there depends on how noisy that
    is, and on how much items were found to differ.
    """
    deviation = np.sqrt(told.count_variance)
    seen = told.counts if exact else _above_zero(told.counts, deviation)
    known, prior = np.column_stack([np.ones(len(seen)), features, co_rating]), _priors(features, co_rating)
    bias, variance = _biases(told, seen, seen * portion.square / portion.mean, known, prior)
    counts = seen / portion.mean
    uncertain = np.zeros(len(seen)) if exact else deviation / portion.mean
    shares = counts / counts.sum() if counts.sum() > 0 else np.full(len(counts), 1 / max(len(counts), 1))
    mean = float(shares @ bias)
    begun = Beliefs.beginning(features, users)
    return replace(
        begun,
        mean=mean,
        covariance=block_diag(begun.covariance, np.eye(co_rating.shape[1])),
        bias=bias - mean,
        variance=variance,
        counts=counts,
        count_variance=uncertain**2 + TINY,
        popularity=_popularity(counts + _UNKNOWN * np.maximum(uncertain, 1.0), shares),
        factors=co_rating,
        seen=1,
    )


def _priors(features: Reals, co_rating: Reals) -> Reals:
    """Return the prior variances of the regression."""
    each = _ON_FEATURES * min(1.0, _MANY_FEATURES / max(features.shape[1], 1))
    return np.array([_MEAN_VARIANCE, *[each] * features.shape[1], *[_ON_CO_RATING] * co_rating.shape[1]])


def _biases(told: Told, seen: Reals, squares: Reals, known: Reals, prior: Reals) -> tuple[Reals, Reals]:
    """Return how high items are rated, and how uncertain that is.

    What is expected of an item is taken off its sum by the count as it was told: however wrong that is, what
    is left then has its mean at 0. It is uncertain by the noise, by that of the count, and because those who
    rated the item, and their ratings of it, differ (`squares`, the sum of squared portions, of each).
    """
    scatter = told.noise + (RATING_VARIANCE + GENEROSITY) * squares + TINY
    begun = np.zeros(known.shape[1])
    begun[0] = USUAL_MEAN - told.offset
    slopes, own = begun, _BIAS_VARIANCE
    # Three times: how much items differ, and how wrong counts are, depends on what is expected of them.
    for _ in range(3):
        noise = scatter + told.count_variance * ((known @ slopes) ** 2 + own)
        weighted = known * (seen / (noise + seen**2 * own))[:, None]
        spread = np.linalg.inv(weighted.T @ (known * seen[:, None]) + np.diag(1 / prior))
        left = told.values - told.counts * (known @ slopes)
        slopes = slopes + spread @ (weighted.T @ left - (slopes - begun) / prior)
        left = told.values - told.counts * (known @ slopes)
        own = _own_variance(left, seen, noise)
    noise = scatter + told.count_variance * ((known @ slopes) ** 2 + own)
    certain = seen * own / (noise + seen**2 * own)
    variance = own * noise / (noise + seen**2 * own)
    doubt = np.einsum("ij,jk,ik->i", known, spread, known) * (variance / own) ** 2
    return told.offset + known @ slopes + certain * left, variance + doubt


def _own_variance(left: Reals, seen: Reals, noise: Reals) -> float:
    """Return the variance of items' own biases, by moments, weighted by how much each item tells."""
    weights = 1 / (noise + seen**2 * _BIAS_VARIANCE) ** 2
    before = _BEFORE / _BIAS_VARIANCE**2
    moment = float(weights @ (seen**2 * (left**2 - noise))) + before * _BIAS_VARIANCE
    found = moment / (float(weights @ seen**4) + before)
    return float(np.clip(found, _LEAST_VARIANCE, _LARGEST_VARIANCE))


def _above_zero(counts: Reals, deviation: Reals) -> Reals:
    """Return the mean of a count that was told with noise, given that it is not negative."""
    ratio = counts / np.maximum(deviation, TINY)
    hazard = np.exp(-(ratio**2) / 2 - log_ndtr(ratio)) / np.sqrt(2 * np.pi)
    return np.asarray(np.maximum(counts + deviation * hazard, 0.0))


def _popularity(counts: Reals, shares: Reals) -> Reals:
    """Return log counts in standard units over ratings."""
    logs = np.log(counts)
    centred = logs - shares @ logs
    return np.asarray(np.clip(centred / max(float(np.sqrt(shares @ centred**2)), 1e-6), -10.0, 10.0))
