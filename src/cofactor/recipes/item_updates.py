"""What the coordinator makes of noisy sums about users and items.

Every number that was released is weighed by how noisy it is, against what was known before: an item of which
the sums tell nothing stays at what its popularity and public features tell.
"""

import math
from dataclasses import replace

import numpy as np

from cofactor.recipes.home_ridge import taste_root, unpacked
from cofactor.recipes.item_beliefs import RATING_VARIANCE, TINY, USUAL_MEAN, Beliefs, Reals
from cofactor.recipes.item_factors import Told, regauged, with_factors

_MEAN_SPREAD = 0.3
"""How far means of all ratings lie from where they usually do."""
_BIAS_SPREAD, _BIAS_SPREAD_UNKNOWN = 0.35, 0.45
"""How far item biases lie from what features and popularity tell, or popularity alone (deviations)."""
_MEAN_OF_USERS = 0.5
"""How far the mean of a user lies from that of all users."""
_CLEAR_SLOPE = 0.01
"""How much higher items are rated, for one unit of popularity, where that surely means something."""
_SURE = 3.0
"""How many times as large as its noise a count is that can be relied on."""
_DOUBT_OF_USUAL, _HARDLY, _LEAST_BIAS_SPREAD = 0.5, 0.15, 0.02
"""How far the variance of biases may lie from the usual one, as a part of it; up to which part of it items
hardly differ; and their least deviation."""
_EXPECTED_BIAS = 0.5
"""How large biases are, before anything is known of them."""
_SHIFT, _ON_FEATURES, _ON_POPULARITY, _ON_SQUARE = 0.05, 0.1, 0.1, 0.02
"""Prior variances in the regression of biases: constant, each public feature, log popularity, its square."""
_MANY_FEATURES = 30
"""With more features each of them tells less."""
_OPEN = 0.5
"""Up to how many deviations of its noise a loss is none."""
_LEAST_SPREAD = 0.05
"""The least that a variance of tastes may shrink to in one step."""


def with_users(beliefs: Beliefs, sums: Reals, noise: float, most: float) -> Beliefs:
    """Take in the number of users and the sum of their means, each with noise of this deviation.

    There are no more users than `most`.
    """
    users = float(np.clip(sums[0], max(1.0, noise), max(most, noise)))
    uncertain = (2.0 * noise / users) ** 2 + _MEAN_OF_USERS**2 / users
    gain = _MEAN_SPREAD**2 / (_MEAN_SPREAD**2 + uncertain)
    mean = USUAL_MEAN + gain * (2.0 * sums[1] / users - USUAL_MEAN)
    covariance = beliefs.covariance.copy()
    covariance[0, 0] += (1 - gain) * _MEAN_SPREAD**2
    return replace(beliefs, users=users, mean=float(np.clip(mean, -2.0, 2.0)), covariance=covariance)


def with_items(beliefs: Beliefs, sums: Reals, noise: Reals, count_weight: float, told: Told) -> Beliefs:
    """Take in sums about items, columns with noise of these deviations: counts, residuals, tastes."""
    known, seen, uncertain = _with_counts(beliefs, sums[:, 0] / count_weight, float(noise[0]) / count_weight)
    variance = noise[1] ** 2 + RATING_VARIANCE * seen / known.usual
    later = _with_first_biases if beliefs.seen == 0 else _with_biases
    found = later(known, sums[:, 1], seen, uncertain, variance)
    if told.factors:
        found = with_factors(found, sums[:, 2:], seen, uncertain, noise[2:], told)
    return replace(found, seen=beliefs.seen + 1)


def with_counts(beliefs: Beliefs, counts: Reals, noise: float) -> Beliefs:
    """Take in how often items were chosen, with noise of this deviation, where nothing else is told."""
    found, _, _ = _with_counts(beliefs, counts, noise)
    return replace(found, seen=beliefs.seen + 1)


def _with_counts(beliefs: Beliefs, counts: Reals, noise: float) -> tuple[Beliefs, Reals, Reals]:
    """Take in counts; return also how often each item was seen in this round's sums, and its deviation."""
    weights = beliefs.importance
    new, deviation = counts / weights, noise / weights
    if beliefs.seen == 0:
        found = replace(beliefs, counts=new, count_variance=deviation**2 + TINY)
        ratio = 1.0
    else:
        old = beliefs.counts
        popular = old >= np.quantile(old, 0.9)
        ratio = max(float(new[popular].sum() / max(old[popular].sum(), TINY)), 1e-3)
        precision = 1 / beliefs.count_variance, ratio**2 / (deviation**2 + TINY)
        total = precision[0] + precision[1]
        mean = (old * precision[0] + new / ratio * precision[1]) / total
        found = replace(beliefs, counts=mean, count_variance=1 / total)
    found = replace(found, popularity=_popularity(found))
    deviation = np.sqrt(found.count_variance)
    return found, np.maximum(found.counts, 0) * weights * ratio, deviation * weights * ratio


def _popularity(beliefs: Beliefs) -> Reals:
    # Without noise, too, an item that nobody has rated is not infinitely unpopular.
    logs = np.log(np.maximum(beliefs.counts, 0) + np.maximum(np.sqrt(beliefs.count_variance), 0.1))
    centred = logs - beliefs.shares @ logs
    # Where noise leaves one item to have all of the ratings, there is no unit.
    return np.asarray(np.clip(centred / max(math.sqrt(beliefs.shares @ centred**2), 1e-6), -10.0, 10.0))


def _with_first_biases(
    beliefs: Beliefs, told: Reals, seen: Reals, uncertain: Reals, variance: Reals
) -> Beliefs:
    """Regress biases on features and popularity, and shrink each item's own to that."""
    width, certain = beliefs.features.shape[1], beliefs.certainty + TINY
    popularity = beliefs.popularity
    known = np.column_stack([np.ones(len(told)), beliefs.features, popularity, popularity**2 - 1])
    each = _ON_FEATURES * min(1.0, _MANY_FEATURES / max(width, 1))
    prior = np.array([_SHIFT, *[each] * width, _ON_POPULARITY * certain, _ON_SQUARE * certain])
    own = usual = (_BIAS_SPREAD if width else _BIAS_SPREAD_UNKNOWN) ** 2
    # Twice: what the first regression leaves open says whether items differ as much as they usually do.
    for _ in range(2):
        precision = 1 / (variance + (uncertain * _EXPECTED_BIAS) ** 2 + seen**2 * own)
        weighted = (known * (seen * precision)[:, None]).T
        spread = np.linalg.inv(weighted @ (known * seen[:, None]) + np.diag(1 / prior))
        slopes = spread @ (weighted @ told)
        expected = known @ slopes
        left, noisy = told - seen * expected, variance + uncertain**2 * (expected**2 + own)
        sure = seen > _SURE * uncertain
        own = _own_variance(left[sure], seen[sure], variance[sure], usual)
    begun = replace(beliefs, bias=expected, variance=np.full(len(told), own))
    found = _shrunk(_with_popular_tastes(begun, float(slopes[1 + width])), left, seen, noisy)
    # What an item's own sums leave open is as uncertain as the regression is there.
    doubt = np.einsum("ij,jk,ik->i", known, spread, known) * (found.variance / own) ** 2
    return replace(found, variance=found.variance + doubt)


def _with_popular_tastes(beliefs: Beliefs, slope: float) -> Beliefs:
    """Expect users to differ in how they rate what is popular only where popularity tells of ratings."""
    covariance, at = beliefs.covariance.copy(), 1 + beliefs.features.shape[1]
    covariance[at, at] *= (slope**2 + TINY) / (slope**2 + _CLEAR_SLOPE**2)
    return replace(beliefs, covariance=covariance)


def _own_variance(left: Reals, seen: Reals, noise: Reals, usual: float) -> float:
    """Return the variance of items' own biases: the usual one, unless their sums say that they hardly differ.

    By moments, weighted by how much each item tells. These are items of which it is sure how often they were
    seen: others seem to differ less than they do.
    """
    weights = 1 / (noise + seen**2 * usual) ** 2
    told = float(weights @ seen**4)
    moment = float(weights @ (seen**2 * (left**2 - noise)))
    # Moments as if so many items had been seen before that differ as usual.
    before = 2 / (_DOUBT_OF_USUAL * usual) ** 2
    found = (moment + before * usual) / (told + before)
    return max(found, _LEAST_BIAS_SPREAD**2) if found < _HARDLY * usual else usual


def _with_biases(beliefs: Beliefs, told: Reals, seen: Reals, uncertain: Reals, variance: Reals) -> Beliefs:
    return _shrunk(beliefs, told, seen, variance + uncertain**2 * beliefs.variance)


def _shrunk(beliefs: Beliefs, told: Reals, seen: Reals, variance: Reals) -> Beliefs:
    """Move biases by what residuals tell, as far as their noise lets them."""
    prior = beliefs.variance
    moved = told * seen / (seen**2 + variance / prior)
    return replace(beliefs, bias=beliefs.bias + moved, variance=1 / (1 / prior + seen**2 / variance))


def with_gain(beliefs: Beliefs, gain: float, noise: float) -> Beliefs:
    """Take in by how much users predict better; where noise leaves it open, what is known is believed."""
    return replace(beliefs, helps=gain > -_OPEN * noise)


def with_spread(beliefs: Beliefs, sums: Reals) -> Beliefs:
    """Take in the sum of how tastes spread beyond what was thought: a step of EM for their covariance."""
    width = len(beliefs.covariance)
    middle = unpacked(sums, width) / beliefs.users + np.eye(width)
    sizes, vectors = np.linalg.eigh(middle)
    root = taste_root(beliefs.covariance)
    covariance = root @ (vectors * np.maximum(sizes, _LEAST_SPREAD)) @ vectors.T @ root.T
    return regauged(replace(beliefs, covariance=(covariance + covariance.T) / 2))
