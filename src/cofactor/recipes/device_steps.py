"""The arithmetic of `OnDeviceMF`, for one device or for a whole cohort of them at once.

A device contributes one row of whole numbers for each rating that it has drawn, of bounded length, and adds
it to the row of the item. Its items are all different, so the squares of its rows add up.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.grouping import Grouped, Index
from cofactor.errors import RunError
from cofactor.federation.halves import Facts, Home
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound
from cofactor.privacy.fixed_point import FixedPoint
from cofactor.privacy.trimming import trimmed
from cofactor.randomness import Random, Seeds
from cofactor.recipes.home_fit import fitted_users
from cofactor.recipes.local_steps import shortened
from cofactor.recipes.steps import Steps
from cofactor.recipes.summed_steps import projected

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

_FARTHEST = 0.1
"""How far an item may move in a round, as a part of the length at which it begins. Whatever the learning
rate, an item that many have rated then cannot overshoot."""
_ROWS, _USERS = 2**17, 2**14
"""Ratings, and users, that are worked on at once: what they need fits into memory for any cohort."""


def bound_of(grid: FixedPoint, *, limit: float, factors: int, most_ratings: int) -> Bound:
    """Return the most by which one device changes the sum, in whole numbers.

    Each of its rows is at most as long as the grid makes one that is `limit` long.
    """
    row = grid.whole_limit(limit, factors)
    return Bound(size=float(math.ceil(math.sqrt(most_ratings) * row)), norm="l2", unit="user")


def fitted_at_home(ratings: Grouped, items: Floats, steps: Steps, facts: Facts, centre: float) -> Floats:
    """Fit each user's vector to all of the user's ratings; none is negative, nor too long."""
    level = steps.level(centre)
    # Penalties are counted in ratings of items of length 1: so long are items now where they begin.
    length = math.sqrt(centre)
    unit = (items / length).astype(np.float32)
    count = len(ratings.ptr) - 1
    found = [
        fitted_users(ratings.window(begin, min(begin + _USERS, count)), unit, level * length).vectors
        for begin in range(0, count, _USERS)
    ]
    return projected(np.concatenate(found) / np.float32(length), steps, facts)


def left_in(round: int, home: Home) -> NDArray[np.bool_]:
    """Say which devices of a cohort have not dropped out of a round; one device that is asked has not."""
    count = home.party.ratings.user_count
    if not home.facts.cohort:
        return np.ones(count, np.bool_)
    chance = Seeds(home.seed).generator(f"dropouts of round {round}")
    return np.asarray(chance.random(count) >= home.dropout)


def drawn(ratings: Grouped, most_ratings: int, left: NDArray[np.bool_], random: Random) -> Grouped:
    """Draw some ratings of each device that is left, in secret and anew whenever it is called."""
    chosen = trimmed(ratings.ptr, most_ratings, random)
    return ratings.keep(chosen & np.repeat(left, ratings.sizes))


def gradients(users: NDArray[Any], items: NDArray[Any], values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the gradient of each rating's squared error by its item's vector: -2 u (x - <u, v>)."""
    wide = users.astype(np.float64)
    errors = values - np.einsum("ij,ij->i", wide, items)
    return np.asarray(-2 * errors[:, None] * wide)


def summed(
    ratings: Grouped,
    users: Floats,
    items: Floats,
    grid: FixedPoint,
    *,
    limit: float,
    most_ratings: int,
    random: Random,
) -> Bounded:
    """Return the sum of the gradients of ratings that were drawn, at most `most_ratings` of each device."""
    table, owners = np.zeros(items.shape, np.int64), ratings.members()
    if ratings.sizes.max(initial=0) > most_ratings:
        raise RunError("a device has drawn more ratings than its bound allows. Nothing was released.")
    for begin in range(0, len(owners), _ROWS):
        part = slice(begin, begin + _ROWS)
        at = ratings.index[part]
        rows = gradients(users[owners[part]], items[at], ratings.values[part])
        add_rows(table, at, grid.rows(rows, limit=limit, random=random))
    bound = bound_of(grid, limit=limit, factors=items.shape[1], most_ratings=most_ratings)
    return Bounded(value=table, bound=bound)


@kernel
def add_rows(table: Integers, places: Index, rows: Integers) -> None:
    """Add each row to the row of the table where it belongs."""
    for at in range(places.size):
        place = places[at]
        for k in range(table.shape[1]):
            table[place, k] += rows[at, k]


def moved(
    items: Floats, mean_gradients: NDArray[np.float64], rate: float, steps: Steps, facts: Facts, centre: float
) -> Floats:
    """Return items after a step against the mean of the devices' gradients."""
    step = shortened(rate * mean_gradients, _FARTHEST * math.sqrt(centre))
    return projected(items - step, steps, facts)
