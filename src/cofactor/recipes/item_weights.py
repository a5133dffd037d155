"""Users who allow only a part of the budget: how much of them goes into sums about items.

Either all that a user adds is multiplied by her weight ("stretching"), or she takes part by chance
("sampling"): once, for all rounds, and nobody learns it. Fits at home know nothing of either.
"""

import math

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import ConfigError
from cofactor.federation.halves import Home
from cofactor.federation.weights import PublicWeights
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.noise import came_true
from cofactor.privacy.weights import LEAST_WEIGHT, taking_part

Reals = NDArray[np.float64]
Chosen = NDArray[np.bool_]

_LEAST = 0.05
"""The least weight that is reckoned with, where no groups say it; users of less round theirs away."""
_POINTS = 256
"""Weights of a group at which it is asked how likely they take part."""

STRETCHED = (
    "Whatever is asked, a user of weight w adds at most w times what one of weight 1 may add, in every sum."
)
SAMPLED = (
    "Whose ratings go into sums: chance decides at home, once for all rounds. Those whose ratings do not "
    "answer all the same, as if they had rated nothing, with the same part of the noise."
)
SECRET = Assumption(
    what="nobody learns whose ratings go into sums",
    met="it is drawn where the ratings are, with the probability that a weight allows, kept there in case of "
    "a crash, and in no message",
)


def stretches(weights: PublicWeights | None) -> bool:
    """Say whether a user's weight multiplies what she adds."""
    return weights is not None and weights.mechanism == "stretching"


def samples(weights: PublicWeights | None) -> bool:
    """Say whether users take part by chance."""
    return weights is not None and weights.mechanism == "sampling"


def least_weight(weights: PublicWeights | None) -> float:
    """Return down to which weight grids are as fine as they are for 1: the root of the least, public.

    Bounds have room for rounding in a whole table, of which a user fills a small part. Finer grids make noise
    slower to draw, and errors at most 0.004 smaller: measured with weights from 0.1 on MovieLens 100K.
    """
    if weights is None or not stretches(weights) or weights.expected == 1.0:
        return 1.0
    return math.sqrt(min((group.low for group in weights.groups), default=_LEAST))


def mean_part(weights: PublicWeights | None) -> float:
    """Return how much of a user is in a sum on average, from public numbers.

    A sum that is divided by it is about whole users again, with so much more noise.
    """
    if weights is None:
        return 1.0
    return _mean_chance(weights) if samples(weights) else weights.expected


def own_weights(home: Home) -> Reals | None:
    """Return by what each user's numbers are multiplied; None if by nothing."""
    return _checked_weights(home) if stretches(home.facts.weights) else None


def drawn_to_take_part(home: Home) -> Chosen:
    """Draw in secret who takes part: everybody, unless the federation samples users."""
    public = home.facts.weights
    if public is None or not samples(public):
        return np.ones(home.party.ratings.user_count, np.bool_)
    chances = taking_part(_checked_weights(home), public.epsilon, _threshold(public))
    return came_true(chances, home.door.random)


def multiplied(rows: Reals, weights: Reals | None) -> Reals:
    """Return rows, each multiplied by its own weight."""
    return rows if weights is None else rows * weights[:, None]


def _mean_chance(weights: PublicWeights) -> float:
    def mean(low: float, high: float) -> float:
        inside = low + (high - low) * (np.arange(_POINTS) + 0.5) / _POINTS
        return float(taking_part(inside, weights.epsilon, _threshold(weights)).mean())

    if not weights.groups:
        return mean(weights.expected, weights.expected)
    return sum(group.share * mean(group.low, group.high) for group in weights.groups)


def _threshold(weights: PublicWeights) -> float:
    if weights.threshold is None:
        raise ConfigError("users are sampled for a threshold, and none is stated. Use a PersonalBudget.")
    return weights.threshold


def _checked_weights(home: Home) -> Reals:
    own, name = home.party.weights, home.party.name
    if own is None:
        raise ConfigError(f"{name}: its users have no weights. Give them some: party.with_weights(weights).")
    if own.shape != (home.party.ratings.user_count,) or not ((own >= LEAST_WEIGHT) & (own <= 1)).all():
        raise ConfigError(f"{name}: weights of users must lie between {LEAST_WEIGHT:g} and 1, one for each.")
    return own.astype(np.float64)
