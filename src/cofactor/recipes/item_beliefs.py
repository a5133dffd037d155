"""What the coordinator makes of noisy sums about items. Nothing here sees anything but what was released.

Ratings are in units of a scale from 1 to 5, less its middle. Every number that was released is weighed by how
noisy it is, against what was known before: an item of which the sums tell nothing stays at what its
popularity and public features tell.
"""

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.recipes.home_ridge import taste_root, unpacked

Reals = NDArray[np.float64]

RATING_VARIANCE = 0.75
"""Of a rating around its prediction, if user and item were known."""
_BIAS_SPREAD, _BIAS_SPREAD_UNKNOWN = 0.35, 0.45
"""How far item biases lie from what features and popularity tell, or popularity alone (deviations)."""
GENEROSITY, FEATURE_SLOPE, POPULARITY_SLOPE, BIAS_SLOPE = 0.2, 0.05, 0.02, 0.12
"""Prior variances of a user's taste: constant, on each public feature, on log popularity, on item bias."""
_USUAL_MEAN, _MEAN_SPREAD = 0.6, 0.3
"""Where means of all ratings usually lie, above the middle of the scale, and how far from there."""
_MEAN_OF_USERS = 0.5
"""How far the mean of a user lies from that of all users."""
_CLEAR_SLOPE = 0.01
"""How much higher items are rated, for one unit of popularity, where that surely means something."""
_HARDLY, _LEAST_BIAS_SPREAD = 0.1, 0.02
"""Items hardly differ if their biases have less than this part of the usual variance."""
_EXPECTED_BIAS = 0.5
"""How large biases are, before anything is known of them."""
_SHIFT, _ON_FEATURES, _ON_POPULARITY, _ON_SQUARE = 0.05, 0.1, 0.1, 0.02
"""Prior variances in the regression of biases: constant, each public feature, log popularity, its square."""
_MANY_FEATURES = 30
"""With more features each of them tells less."""
FACTOR_SPREAD = 0.1
"""How large factors are, where tastes for them have unit variance."""
_LEAST_TOLD = 0.02
"""The least variance of tastes in a direction, relative to the largest: below it there is mostly noise."""
_FALL = 0.35
"""Items count the less in a message the more often they are rated: count to the power of minus this."""
_LEAST_SPREAD = 0.05
"""The least that a variance of tastes may shrink to in one step."""
_TINY = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Beliefs:
    """All that is known, with how certain it is."""

    features: Reals
    """Public columns, balanced."""
    users: float
    mean: float
    covariance: Reals
    """Of tastes: constant, public features, popularity, bias."""
    bias: Reals
    variance: Reals
    counts: Reals
    """About how many ratings an item has, in units of their own: each user's ratings count for less, the more
    there are of them."""
    count_variance: Reals
    popularity: Reals
    """Log count, in standard units over ratings."""
    factors: Reals
    """Further columns, in units in which tastes for them have unit variance."""
    factor_variance: Reals
    """How uncertain an item's part in a prediction is because of its factors."""
    factor_precision: Reals
    """How precise they are, noise of the sums alone counted."""
    seen: int = 0
    """Rounds of sums about items that went in."""

    @classmethod
    def beginning(cls, features: Reals, users: int) -> "Beliefs":
        """Return what is known before anything was released: public features, and how many users there are."""
        items, width = features.shape
        slopes = [GENEROSITY, *[FEATURE_SLOPE] * width, POPULARITY_SLOPE, BIAS_SLOPE]
        nothing = np.zeros(items)
        return cls(
            features=features,
            users=max(float(users), 1.0),
            mean=_USUAL_MEAN,
            covariance=np.diag(slopes),
            bias=nothing,
            variance=nothing,
            counts=np.ones(items),
            count_variance=nothing,
            popularity=nothing,
            factors=np.zeros((items, 0)),
            factor_variance=nothing,
            factor_precision=nothing,
        )

    @property
    def shares(self) -> Reals:
        """The share of the ratings that each item has."""
        known = np.maximum(self.counts, 0)
        total = known.sum()
        return known / total if total > 0 else np.full(len(known), 1 / max(len(known), 1))

    @property
    def certainty(self) -> float:
        """How much of what counts tell about popularity is not noise: between 0 and 1, over ratings."""
        real = max(float(np.var(self.counts) - np.mean(self.count_variance)), 1e-12)
        return float(self.shares @ (real / (real + self.count_variance)))

    @property
    def importance(self) -> Reals:
        """How much an item counts in a user's message."""
        if self.seen == 0:
            return np.ones(len(self.counts))
        least = max(1.0, float(np.sqrt(np.median(self.count_variance))))
        return np.asarray(np.maximum(self.counts, least) ** -_FALL)

    @property
    def columns(self) -> Reals:
        """What users' tastes are about: a row for each item."""
        popularity = math.sqrt(self.certainty) * self.popularity
        learned = np.column_stack([popularity, self.bias - self.shares @ self.bias])
        own = (np.ones(len(self.bias)), self.features, learned * (self.seen > 0), self.factors)
        return np.column_stack(own)

    @property
    def usual(self) -> float:
        """About the root of how many ratings a user has."""
        return max(float(np.maximum(self.counts, 0).sum()) / self.users, 1.0)

    @property
    def uncertainty(self) -> Reals:
        """The variance of an item's part in a prediction."""
        return self.variance + self.factor_variance

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays, to be kept."""
        return {each.name: np.asarray(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> "Beliefs":
        """Return what `arrays` has kept."""
        plain: dict[str, Any] = {name: each if each.ndim else each.item() for name, each in arrays.items()}
        return cls(**plain)


def with_users(beliefs: Beliefs, sums: Reals, noise: float, most: float) -> Beliefs:
    """Take in the number of users and the sum of their means, each with noise of this deviation.

    There are no more users than `most`.
    """
    users = float(np.clip(sums[0], max(1.0, noise), max(most, noise)))
    uncertain = (2.0 * noise / users) ** 2 + _MEAN_OF_USERS**2 / users
    gain = _MEAN_SPREAD**2 / (_MEAN_SPREAD**2 + uncertain)
    mean = _USUAL_MEAN + gain * (2.0 * sums[1] / users - _USUAL_MEAN)
    covariance = beliefs.covariance.copy()
    covariance[0, 0] += (1 - gain) * _MEAN_SPREAD**2
    return replace(beliefs, users=users, mean=float(np.clip(mean, -2.0, 2.0)), covariance=covariance)


def with_items(beliefs: Beliefs, sums: Reals, noise: Reals, count_weight: float, told: "Told") -> Beliefs:
    """Take in sums about items, columns with noise of these deviations: counts, residuals, tastes."""
    known, seen, uncertain = _with_counts(beliefs, sums[:, 0] / count_weight, float(noise[0]) / count_weight)
    variance = noise[1] ** 2 + RATING_VARIANCE * seen / known.usual
    later = _with_first_biases if beliefs.seen == 0 else _with_biases
    found = later(known, sums[:, 1], seen, uncertain, variance)
    if told.factors:
        found = _with_factors(found, sums[:, 2:], seen, uncertain, noise[2:], told)
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
        found = replace(beliefs, counts=new, count_variance=deviation**2 + _TINY)
        ratio = 1.0
    else:
        old = beliefs.counts
        popular = old >= np.quantile(old, 0.9)
        ratio = max(float(new[popular].sum() / max(old[popular].sum(), _TINY)), 1e-3)
        precision = 1 / beliefs.count_variance, ratio**2 / (deviation**2 + _TINY)
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
    return np.asarray(centred / max(math.sqrt(beliefs.shares @ centred**2), 1e-6))


def _with_first_biases(
    beliefs: Beliefs, told: Reals, seen: Reals, uncertain: Reals, variance: Reals
) -> Beliefs:
    """Regress biases on features and popularity, and shrink each item's own to that."""
    width, certain = beliefs.features.shape[1], beliefs.certainty + _TINY
    popularity = beliefs.popularity
    known = np.column_stack([np.ones(len(told)), beliefs.features, popularity, popularity**2 - 1])
    each = _ON_FEATURES * min(1.0, _MANY_FEATURES / max(width, 1))
    prior = np.array([_SHIFT, *[each] * width, _ON_POPULARITY * certain, _ON_SQUARE * certain])
    own = (_BIAS_SPREAD if width else _BIAS_SPREAD_UNKNOWN) ** 2
    # Twice: what the first regression leaves open says whether items differ as much as they usually do.
    for _ in range(2):
        precision = 1 / (variance + (uncertain * _EXPECTED_BIAS) ** 2 + seen**2 * own)
        weighted = (known * (seen * precision)[:, None]).T
        spread = np.linalg.inv(weighted @ (known * seen[:, None]) + np.diag(1 / prior))
        slopes = spread @ (weighted @ told)
        expected = known @ slopes
        left, noisy = told - seen * expected, variance + uncertain**2 * (expected**2 + own)
        most = _most_spread(left, seen, noisy, own)
        own = most if most < _HARDLY * own else own
    begun = replace(beliefs, bias=expected, variance=np.full(len(told), own))
    found = _shrunk(_with_popular_tastes(begun, float(slopes[1 + width])), left, seen, noisy)
    # What an item's own sums leave open is as uncertain as the regression is there.
    doubt = np.einsum("ij,jk,ik->i", known, spread, known) * (found.variance / own) ** 2
    return replace(found, variance=found.variance + doubt)


def _with_popular_tastes(beliefs: Beliefs, slope: float) -> Beliefs:
    """Expect users to differ in how they rate what is popular only where popularity tells of ratings."""
    covariance, at = beliefs.covariance.copy(), 1 + beliefs.features.shape[1]
    covariance[at, at] *= (slope**2 + _TINY) / (slope**2 + _CLEAR_SLOPE**2)
    return replace(beliefs, covariance=covariance)


def _most_spread(left: Reals, seen: Reals, noise: Reals, usual: float) -> float:
    """Return the largest variance of items' own biases that what is left of their sums is compatible with.

    By moments, weighted by how much each item tells, and one and a half standard errors above.
    """
    weights = 1 / (noise + seen**2 * usual) ** 2
    told = float(weights @ seen**4) + _TINY
    moment = float(weights @ (seen**2 * (left**2 - noise))) / told
    return max(moment + 1.5 * math.sqrt(2 / told), _LEAST_BIAS_SPREAD**2)


def _with_biases(beliefs: Beliefs, told: Reals, seen: Reals, uncertain: Reals, variance: Reals) -> Beliefs:
    return _shrunk(beliefs, told, seen, variance + uncertain**2 * beliefs.variance)


def _shrunk(beliefs: Beliefs, told: Reals, seen: Reals, variance: Reals) -> Beliefs:
    """Move biases by what residuals tell, as far as their noise lets them."""
    prior = beliefs.variance
    moved = told * seen / (seen**2 + variance / prior)
    return replace(beliefs, bias=beliefs.bias + moved, variance=1 / (1 / prior + seen**2 / variance))


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
    left = np.linalg.inv(np.linalg.inv(covariance) + moments)
    sizes, vectors = np.linalg.eigh((covariance - left)[-factors:, -factors:])
    return Told(vectors * np.maximum(sizes, _LEAST_TOLD * max(sizes[-1], _TINY)) ** -0.5)


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
    return replace(beliefs, factors=FACTOR_SPREAD * begun / np.maximum(sizes, _TINY), covariance=wider)


def _with_factors(
    beliefs: Beliefs, sums: Reals, seen: Reals, uncertain: Reals, noise: Reals, told: Told
) -> Beliefs:
    """Move factors by what residuals times tastes tell: one step towards the best fit for each item.

    Where tastes are white, the sum of their squares is about what an item is seen. Earlier estimates count
    for half as much in every round: they were made with other tastes.
    """
    old = beliefs.factors @ np.linalg.inv(told.whitening).T
    along = told.weight * seen
    variance = noise**2 + (told.weight * uncertain[:, None]) ** 2 * np.square(old).mean() + _TINY
    precision, before = along[:, None] ** 2 / variance, 0.5 * beliefs.factor_precision[:, None]
    total = before + precision + _TINY
    found = old + sums * along[:, None] / variance / total
    doubt = 1 / total + (RATING_VARIANCE / beliefs.usual / np.maximum(seen, _TINY))[:, None]
    gain = FACTOR_SPREAD**2 / (FACTOR_SPREAD**2 + doubt)
    factors = (gain * found) @ told.whitening.T
    return replace(
        beliefs,
        factors=factors - beliefs.shares @ factors,
        factor_variance=(gain * doubt).sum(axis=1),
        factor_precision=total.mean(axis=1),
    )


def with_spread(beliefs: Beliefs, sums: Reals) -> Beliefs:
    """Take in the sum of how tastes spread beyond what was thought: a step of EM for their covariance."""
    width = len(beliefs.covariance)
    middle = unpacked(sums, width) / beliefs.users + np.eye(width)
    sizes, vectors = np.linalg.eigh(middle)
    root = taste_root(beliefs.covariance)
    covariance = root @ (vectors * np.maximum(sizes, _LEAST_SPREAD)) @ vectors.T @ root.T
    return _regauged(replace(beliefs, covariance=(covariance + covariance.T) / 2))


def _regauged(beliefs: Beliefs) -> Beliefs:
    """Bring factors to units in which tastes for them have unit covariance; predictions stay the same."""
    factors = beliefs.factors.shape[1]
    if factors == 0:
        return beliefs
    half = np.linalg.cholesky(beliefs.covariance[-factors:, -factors:])
    turn = np.eye(len(beliefs.covariance))
    turn[-factors:, -factors:] = np.linalg.inv(half)
    return replace(beliefs, factors=beliefs.factors @ half, covariance=turn @ beliefs.covariance @ turn.T)
