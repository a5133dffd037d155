"""Parties for the tests of private steps, and the numpy twin of their gradients, in float64."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped, offsets
from cofactor.privacy.budget import Unit
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.recipes.clipping import Clipping, EmbeddingClipping, GradientClipping
from cofactor.recipes.private_descent import PrivateDescent

HIGHEST = 5.0
CLIPPINGS: list[Clipping] = [EmbeddingClipping(), GradientClipping(limit=3.0)]
UNITS: list[Unit] = ["rating", "user"]

Reals = NDArray[np.float64]

USERS, ITEMS, FACTORS, MOST = 4, 6, 5, 3
EMPTY: tuple[float | None, ...] = ()
"""A user, or a rating, that is not there."""

Ratings = tuple[float | None, ...]
"""Of a user, one for each item, None for no rating; of a rating, its value."""


def grouped(users: Sequence[Sequence[tuple[int, float]]]) -> Grouped:
    """Make ratings of (item, value) for each user."""
    flat = [rating for ratings in users for rating in ratings]
    items = np.array([item for item, _ in flat], np.int32)
    values = np.array([value for _, value in flat], np.float32)
    return Grouped(offsets(np.array([len(ratings) for ratings in users], np.int64)), items, values)


def random_ratings(users: int, items: int, most: int, seed: int = 0) -> Grouped:
    chance = np.random.default_rng(seed)
    counts = chance.integers(0, most + 1, users)
    counts[0] = most
    return grouped(
        [[(int(i), chance.uniform(0, HIGHEST)) for i in chance.permutation(items)[:n]] for n in counts]
    )


def random_party(
    clipping: Clipping, unit: Unit, *, users: int = 40, items: int = 30, factors: int = 5, most: int = 12,
    empty: bool = False,
) -> PrivateDescent:  # fmt: skip
    chance = np.random.default_rng(1)
    ratings = grouped([[]] * users) if empty else random_ratings(users, items, most)
    # Well within the radius, and some rows at it.
    rows = [chance.uniform(0.2, 0.5, (n, factors)) * chance.choice([1, 1, 9], (n, 1)) for n in (users, items)]
    return PrivateDescent(ratings, *rows, clipping=clipping, unit=unit, highest=HIGHEST, most_ratings=most)


def twin(
    party: PrivateDescent, ratings: Grouped, chosen: NDArray[np.int64], both: bool
) -> tuple[Reals, Reals]:
    """Add up the bounded gradients of the chosen users, one rating after the other."""
    all_users, all_items = party.users.astype(np.float64), party.items.astype(np.float64)
    for_users, for_items = np.zeros(all_users.shape), np.zeros(all_items.shape)
    for u in chosen:
        items = ratings.index[ratings.ptr[u] : ratings.ptr[u + 1]]
        values = ratings.values[ratings.ptr[u] : ratings.ptr[u + 1]].astype(np.float64)
        slopes = -2 * (values - all_items[items] @ all_users[u])
        of_user, of_items = slopes[:, None] * all_items[items], slopes[:, None] * all_users[u]
        if isinstance(party.clipping, GradientClipping):
            shares = shortenings(of_user, of_items, party.clipping.limit, party.unit, both)
            of_user, of_items = shares * of_user, shares * of_items
        for_users[u] += of_user.sum(axis=0)
        for_items[items] += of_items
    return for_users, for_items


def shortenings(of_user: Reals, of_items: Reals, limit: float, unit: Unit, both: bool) -> Reals:
    """Return what each rating's gradient is multiplied with."""
    if unit == "user":
        length = math.hypot(np.linalg.norm(of_user.sum(axis=0)) if both else 0, np.linalg.norm(of_items))
        return np.full((len(of_user), 1), min(1, limit / length) if length else 1)
    return longest_share(np.hstack([of_user, of_items]) if both else of_items, limit)


def projected(rows: Reals, radius: float, nonnegative: bool) -> Reals:
    rows = np.maximum(rows, 0) if nonnegative else rows
    return rows * longest_share(rows, radius)


def longest_share(rows: Reals, longest: float) -> Reals:
    """Return what to multiply each row with, so that none is too long."""
    lengths: Reals = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.minimum(1, longest / np.maximum(lengths, 1e-300)))


def vectors(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return vectors of which many are as long as they may be; user 0 is at right angles to items 0 to 2."""
    chance = np.random.default_rng(seed)
    users, items = chance.uniform(0, 3, (USERS, FACTORS)), chance.uniform(0, 3, (ITEMS, FACTORS))
    users[0], items[:MOST] = 9 * np.eye(FACTORS)[0], 9 * np.eye(FACTORS)[1]
    return users, items


def party_of(ratings: list[list[tuple[int, float]]], clipping: Clipping, unit: Unit) -> PrivateDescent:
    return PrivateDescent(
        grouped(ratings), *vectors(), clipping=clipping, unit=unit, highest=HIGHEST, most_ratings=MOST
    )


def by_user(units: tuple[Any, ...], unit: Unit) -> list[list[tuple[int, float]]]:
    """Return (item, value) for each user; rating number k is that of user k % USERS on item k // USERS."""
    if unit == "user":
        return [[(item, x) for item, x in enumerate(user) if x is not None] for user in units]
    ratings: list[list[tuple[int, float]]] = [[] for _ in range(USERS)]
    for k, rating in enumerate(units):
        if rating:
            ratings[k % USERS].append((k // USERS, rating[0]))
    return ratings


def datasets(unit: Unit, lowest: float) -> Datasets:
    def value(chance: np.random.Generator) -> float:
        return float(chance.choice([lowest, 0.0, HIGHEST, chance.uniform(lowest, HIGHEST)]))

    def draw(chance: np.random.Generator) -> Ratings:
        if unit == "rating":
            return (value(chance),)
        rated = chance.permutation(ITEMS)[: chance.integers(1, MOST + 1)]
        return tuple(value(chance) if item in rated else None for item in range(ITEMS))

    return Datasets(draw=draw, count=USERS if unit == "user" else USERS * ITEMS, empty=EMPTY)


def worst_case(unit: Unit) -> Neighbours:
    """User 0 gives the highest ratings to items that are predicted 0."""
    if unit == "rating":
        return Neighbours(units=((HIGHEST,),) * (USERS * ITEMS), which=0, other=EMPTY)
    everything = (HIGHEST,) * MOST + (None,) * (ITEMS - MOST)
    return Neighbours(units=(everything,) * USERS, which=0, other=EMPTY)


def lowest_for(clipping: Clipping) -> float:
    return 0.0 if isinstance(clipping, EmbeddingClipping) else -HIGHEST
