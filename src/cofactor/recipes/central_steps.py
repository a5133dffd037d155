"""The arithmetic of `CentralDPSGD`: users solved exactly, and what all of them add to a step of the items.

All of it is stated for ratings in units in which a scale from 1 to 5 has unit 1. The first coordinate of an
item is its bias, and that of every user is 1; a user's own bias is fitted beside it.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.grouping import Grouped, Index, Offsets, Values
from cofactor.factors.model import HomeFit
from cofactor.federation.halves import Facts
from cofactor.privacy.bounding import Bounded, table_of_users
from cofactor.recipes.local_steps import shortened
from cofactor.recipes.objective import ridge

Floats = NDArray[np.float32]

RADIUS = 4.0
"""No item is longer than this: its bias would reach from one end of the scale to the other."""
COUNT_LIMIT = 1.0
"""The length of what a user adds to the counts of items."""
_LEAST_WEIGHT = 1e-6


class Chosen(NamedTuple):
    """What a rule chooses where a recipe leaves it open."""

    factors: int
    rounds: int
    rate: float
    power: float
    least_count: float


class Penalties(NamedTuple):
    """What holds users back, counted in ratings."""

    bias: float
    taste: float


class Users(NamedTuple):
    """What is known of each user."""

    bias: Floats
    tastes: Floats


def fitted(ratings: Grouped, items: Floats, penalties: Penalties) -> Users:
    """Solve for each user's bias and tastes, given the items: the exact half of the alternation."""
    # One penalty serves all columns of a ridge regression: the column of the bias is scaled instead.
    size = np.float32(math.sqrt(penalties.taste / penalties.bias))
    columns = np.column_stack([np.full(len(items), size, np.float32), items[:, 1:]])
    left = Grouped(ratings.ptr, ratings.index, ratings.values - items[ratings.index, 0])
    found = ridge(left, columns, penalties.taste)
    return Users(found[:, 0] * size, found[:, 1:])


def counted(ratings: Grouped, items: int) -> Bounded:
    """Count who rated each item, where every user counts as much in all: 1 / sqrt(k) for each of k items."""
    each = 1 / np.sqrt(np.maximum(ratings.sizes, 1))
    rows = np.repeat(each, ratings.sizes)[:, None]
    return table_of_users(rows, ratings.ptr, ratings.index, place_count=items, limit=COUNT_LIMIT)


def weights_of(counts: NDArray[Any], least: float, power: float) -> Floats:
    """Let items that few have rated count more: (noisy count)^-power, and at least `least` for a count.

    The weights of Krichene et al. (2023); a user's own are then scaled until their squares add up to 1.
    """
    return np.asarray((np.maximum(counts, least) / least) ** -power, np.float32)


def summed(ratings: Grouped, users: Users, items: Floats, weights: NDArray[Any], limit: float) -> Bounded:
    """Add up what users contribute to a step, all of a user's rows together shortened to the limit."""
    known = np.clip(weights, _LEAST_WEIGHT, 1.0).astype(np.float32)
    rows = slopes(ratings.ptr, ratings.index, ratings.values, users.bias, users.tastes, items, known)
    return table_of_users(rows, ratings.ptr, ratings.index, place_count=len(items), limit=limit)


@kernel
def slopes(
    ptr: Offsets,
    index: Index,
    values: Values,
    bias: Floats,
    tastes: Floats,
    items: Floats,
    weights: Floats,
) -> Floats:
    """Return, for each rating, its weight times its residual times (1, the user's tastes)."""
    width = items.shape[1]
    rows = np.empty((index.size, width), np.float32)
    for user in range(ptr.size - 1):
        squares = 0.0
        for at in range(ptr[user], ptr[user + 1]):
            squares += np.float64(weights[index[at]]) ** 2
        for at in range(ptr[user], ptr[user + 1]):
            item = index[at]
            left = values[at] - bias[user] - items[item, 0]
            for k in range(1, width):
                left -= tastes[user, k - 1] * items[item, k]
            left *= weights[item] / np.sqrt(squares)
            rows[at, 0] = left
            for k in range(1, width):
                rows[at, k] = left * tastes[user, k - 1]
    return rows


def moved(items: Floats, total: NDArray[Any], rate: float) -> Floats:
    """Return items after a step along the noisy sum of the users' slopes."""
    return shortened(items + rate * total, RADIUS)


def started(items: int, factors: int, spread: float, random: np.random.Generator) -> Floats:
    """Return items to begin with: no biases, and small tastes by chance."""
    vectors = random.normal(0.0, spread, (items, factors)).astype(np.float32)
    vectors[:, 0] = 0.0
    return shortened(vectors, RADIUS)


def unit_size(facts: Facts) -> float:
    """Return the units of training: 1 for a scale from 1 to 5."""
    return (facts.scale.high - facts.scale.low) / 4


def fold_in(penalties: Penalties, factors: int, size: float, items: int) -> HomeFit:
    """Return how a user who comes later is fitted: as all others are, in the units of ratings."""
    precision = np.diag([penalties.bias, *([penalties.taste * size**2] * (factors - 1))])
    return HomeFit(precision, np.ones(items))
