"""What ratings add to the sums of `PersonalBiases`: each a function of itself, its weight and public numbers.

A rating touches one item, so every item's sum may have all of the budget: what is bounded is the change of
the whole table.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.errors import RunError
from cofactor.federation.weights import PublicWeights
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Adjacency
from cofactor.privacy.noise import came_true
from cofactor.privacy.stretching import stretched_table
from cofactor.privacy.weights import taking_part
from cofactor.randomness import Random
from cofactor.recipes.personal_span import Span

Reals = NDArray[np.float64]


def table_of(
    ratings: Grouped,
    own: Reals | None,
    public: PublicWeights | None,
    *,
    items: int,
    span: Span,
    grains: int,
    adjacency: Adjacency,
    random: Random,
) -> Bounded:
    """Add up ratings, which lie between -2 and 2, by item, each shrunk by its weight or taken by chance.

    `own` are the weights of the users, and stay here. Who is not drawn adds nothing: where values alone are
    protected that is their middle, half a bound from either end. Between the ends, noise for t gives odds of
    (1 - p + p s) / (1 - p + p / s), s = exp(t / 2), if one takes part with chance p: no more than the
    1 + p (s^2 - 1) of eq. 5, of which what is left is p (1 - p) (s - 1)^2 (s + 1) / (1 - p + p / s) / s.
    """
    weights = weights_of(ratings, own, public)
    weighed = public is not None and public.threshold is None
    if public is not None and public.threshold is not None:
        ratings = ratings.keep(came_true(taking_part(weights, public.epsilon, public.threshold), random))
        weights = np.ones(len(ratings.index))
    table = stretched_table(
        _rows(span.told(ratings.values), adjacency),
        weights,
        ratings.index,
        place_count=items,
        grains=grains,
        random=random,
        adjacency=adjacency,
    )
    return Bounded(value=table.value, bound=replace(table.bound, weighed=weighed))


def _rows(values: Reals, adjacency: Adjacency) -> Reals:
    """Return what a rating from -1 to 1 adds: itself, or two halves that add up to 1 if it counts, too."""
    return values[:, None] if adjacency == "value" else np.column_stack([1 + values, 1 - values]) / 2


def weights_of(ratings: Grouped, own: Reals | None, public: PublicWeights | None) -> Reals:
    """Return the weight of each rating: beta_i gamma_j."""
    if public is None:
        return np.ones(len(ratings.index))
    if own is None:
        raise RunError("users have weights here, and those of this party are missing. Nothing was released.")
    return np.asarray(own[ratings.members()] * public.items[ratings.index])
