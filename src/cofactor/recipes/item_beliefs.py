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
BIAS_SPREAD = 0.35
"""How far item biases lie from what features and popularity tell (standard deviation)."""
GENEROSITY, FEATURE_SLOPE, POPULARITY_SLOPE, BIAS_SLOPE = 0.2, 0.05, 0.02, 0.12
"""Prior variances of a user's taste: constant, on each public feature, on log popularity, on item bias."""
_USUAL_MEAN, _MEAN_SPREAD = 0.6, 0.3
"""Where means of all ratings usually lie, above the middle of the scale, and how far from there."""
_MEAN_OF_USERS = 0.5
"""How far the mean of a user lies from that of all users."""
_EXPECTED_BIAS = 0.5
"""How large biases are, before anything is known of them."""
_SHIFT, _ON_FEATURES, _ON_POPULARITY, _ON_SQUARE = 0.05, 0.1, 0.1, 0.02
"""Prior variances in the regression of biases: constant, each public feature, log popularity, its square."""
_MANY_FEATURES = 30
"""With more features each of them tells less."""
_FACTOR_SPREAD = 0.07
"""How far an item lies along a direction from what its columns tell, where tastes have unit variance."""
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
    factor_variance: Reals
    directions: Reals
    reliability: Reals
    """How well a user's taste along a direction shows in the user's ratings: a variance ratio."""
    seen: int = 0
    """Rounds of sums about items that went in."""

    @classmethod
    def beginning(cls, features: Reals) -> "Beliefs":
        """Return what is known before anything was released."""
        items, width = features.shape
        slopes = [GENEROSITY, *[FEATURE_SLOPE] * width, POPULARITY_SLOPE, BIAS_SLOPE]
        nothing = np.zeros(items)
        return cls(
            features=features,
            users=1.0,
            mean=_USUAL_MEAN,
            covariance=np.diag(slopes),
            bias=nothing,
            variance=nothing,
            counts=np.ones(items),
            count_variance=nothing,
            popularity=nothing,
            factors=np.zeros((items, 0)),
            factor_variance=np.zeros((items, 0)),
            directions=np.zeros((width + 3, 0)),
            reliability=np.zeros(0),
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
        base = np.column_stack([np.ones(len(self.bias)), self.features, learned * (self.seen > 0)])
        return np.asarray(base + self.factors @ self.directions.T)

    @property
    def uncertainty(self) -> Reals:
        """The variance of an item's part in a prediction."""
        return np.asarray(self.variance + self.factor_variance @ self.reliability)

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
    usual = max(float(np.maximum(known.counts, 0).sum()) / known.users, 1.0)
    variance = noise[1] ** 2 + RATING_VARIANCE * seen / usual
    later = _with_first_biases if beliefs.seen == 0 else _with_biases
    found = later(known, sums[:, 1], seen, uncertain, variance)
    if told.directions.shape[1] > 0:
        found = _with_factors(found, sums[:, 2:], seen, uncertain, noise[2:], usual, told)
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
    logs = np.log(np.maximum(beliefs.counts, 0) + np.sqrt(beliefs.count_variance))
    centred = logs - beliefs.shares @ logs
    return np.asarray(centred / max(math.sqrt(beliefs.shares @ centred**2), 1e-6))


def _with_first_biases(
    beliefs: Beliefs, told: Reals, seen: Reals, uncertain: Reals, variance: Reals
) -> Beliefs:
    """Regress biases on features and popularity, and shrink each item's own to that."""
    own, popularity, certain = BIAS_SPREAD**2, beliefs.popularity, beliefs.certainty + _TINY
    known = np.column_stack([np.ones(len(told)), beliefs.features, popularity, popularity**2 - 1])
    width = beliefs.features.shape[1]
    each = _ON_FEATURES * min(1.0, _MANY_FEATURES / max(width, 1))
    prior = np.array([_SHIFT, *[each] * width, _ON_POPULARITY * certain, _ON_SQUARE * certain])
    precision = 1 / (variance + (uncertain * _EXPECTED_BIAS) ** 2 + seen**2 * own)
    design = known * seen[:, None]
    weighted = (design * precision[:, None]).T
    spread = np.linalg.inv(weighted @ design + np.diag(1 / prior))
    expected = known @ (spread @ (weighted @ told))
    noisy = variance + uncertain**2 * (expected**2 + own)
    begun = replace(beliefs, bias=expected, variance=np.full(len(told), own))
    found = _shrunk(begun, told - seen * expected, seen, noisy)
    # What an item's own sums leave open is as uncertain as the regression is there.
    doubt = np.einsum("ij,jk,ik->i", known, spread, known) * (found.variance / own) ** 2
    return replace(found, variance=found.variance + doubt)


def _with_biases(beliefs: Beliefs, told: Reals, seen: Reals, uncertain: Reals, variance: Reals) -> Beliefs:
    return _shrunk(beliefs, told, seen, variance + uncertain**2 * beliefs.variance)


def _shrunk(beliefs: Beliefs, told: Reals, seen: Reals, variance: Reals) -> Beliefs:
    """Move biases by what residuals tell, as far as their noise lets them."""
    prior = beliefs.variance
    moved = told * seen / (seen**2 + variance / prior)
    return replace(beliefs, bias=beliefs.bias + moved, variance=1 / (1 / prior + seen**2 / variance))


@dataclass(frozen=True, eq=False)
class Told:
    """In which directions users tell their tastes, and how much that weighs in their messages."""

    directions: Reals
    reliability: Reals

    @property
    def weight(self) -> float:
        """What multiplies tastes in a message: gamma."""
        total = float(self.reliability.sum())
        return 1 / math.sqrt(total) if total > 0 else 0.0

    @property
    def longest(self) -> float:
        """How long a taste may be in a message."""
        return 1.5 * math.sqrt(float(self.reliability.sum()))


def told_of(beliefs: Beliefs, factors: int) -> Told:
    """Choose the directions in which ratings vary most between users."""
    if factors == 0 or beliefs.seen == 0:
        return Told(np.zeros((len(beliefs.covariance), 0)), np.zeros(0))
    columns = beliefs.columns[:, 1:]
    root = np.linalg.cholesky(beliefs.covariance[1:, 1:])
    moments = root.T @ (columns * beliefs.shares[:, None]).T @ columns @ root
    sizes, vectors = np.linalg.eigh(moments)
    sizes, vectors = sizes[::-1][:factors], vectors[:, ::-1][:, :factors]
    usual = max(float(np.maximum(beliefs.counts, 0).sum()) / beliefs.users, 1.0)
    reliability = sizes * usual**2 / (RATING_VARIANCE + sizes * usual**2)
    directions = np.vstack([np.zeros((1, vectors.shape[1])), np.linalg.solve(root.T, vectors)])
    return Told(directions, np.maximum(reliability, 0))


def _with_factors(
    beliefs: Beliefs,
    sums: Reals,
    seen: Reals,
    uncertain: Reals,
    noise: Reals,
    usual: float,
    told: Told,
) -> Beliefs:
    """Move items along the directions by what residuals times tastes tell."""
    scale = told.weight * told.reliability
    along = seen[:, None] * scale
    prior = np.full(sums.shape, _FACTOR_SPREAD**2)
    variance = noise**2 + RATING_VARIANCE / usual * told.weight * along
    variance = variance + (uncertain[:, None] * scale) ** 2 * prior
    moved = sums * along / (along**2 + variance / prior)
    return replace(
        beliefs,
        factors=moved,
        factor_variance=1 / (1 / prior + along**2 / variance),
        directions=told.directions,
        reliability=told.reliability,
    )


def with_spread(beliefs: Beliefs, sums: Reals) -> Beliefs:
    """Take in the sum of how tastes spread beyond what was thought: a step of EM for their covariance."""
    width = len(beliefs.covariance)
    middle = unpacked(sums, width) / beliefs.users + np.eye(width)
    sizes, vectors = np.linalg.eigh(middle)
    root = taste_root(beliefs.covariance)
    covariance = root @ (vectors * np.maximum(sizes, _LEAST_SPREAD)) @ vectors.T @ root.T
    return replace(beliefs, covariance=(covariance + covariance.T) / 2)
