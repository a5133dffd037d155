"""The peer of `bench_private`: private steps (Li et al. 2022, eq. 7) in straightforward numpy, float64."""

import math

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped

Reals = NDArray[np.float64]


class NaiveDescent:
    """The steps of `PrivateDescent` with embedding clipping and unit "rating", both sides moving."""

    def __init__(self, ratings: Grouped, users: Reals, items: Reals, *, highest: float) -> None:
        self.ratings, self.members, self.highest = ratings, ratings.members(), highest
        self.users, self.items = users.astype(np.float64), items.astype(np.float64)
        self.random = np.random.default_rng()

    def take(self, steps: int, *, noise_multiplier: float, sampling: float, rate: float) -> None:
        """Take steps, each on ratings chosen anew."""
        deviation = noise_multiplier * 2 * math.sqrt(2) * self.highest**1.5
        for _ in range(steps):
            chosen = np.flatnonzero(self.random.random(len(self.ratings.values)) < sampling)
            for_users, for_items = self.gradients(chosen)
            for_users += self.random.normal(0, deviation, for_users.shape)
            for_items += self.random.normal(0, deviation, for_items.shape)
            self.users = projected(self.users - rate * for_users, self.highest)
            self.items = projected(self.items - rate * for_items, self.highest)

    def gradients(self, chosen: NDArray[np.int64]) -> tuple[Reals, Reals]:
        """Return the sums of gradients over the chosen ratings."""
        users, items = self.members[chosen], self.ratings.index[chosen]
        user_rows, item_rows = self.users[users], self.items[items]
        slopes = -2 * (self.ratings.values[chosen] - np.einsum("rk,rk->r", user_rows, item_rows))
        for_users = added(users, slopes[:, None] * item_rows, len(self.users))
        for_items = added(items, slopes[:, None] * user_rows, len(self.items))
        return for_users, for_items


def added(places: NDArray[np.integer], rows: Reals, count: int) -> Reals:
    """Add each row to its place in a table; column by column, which is faster than np.add.at."""
    columns = [np.bincount(places, weights=column, minlength=count) for column in rows.T]
    return np.stack(columns, axis=1)


def projected(rows: Reals, highest: float) -> Reals:
    """Return rows without negative numbers, and no longer than the root of the highest rating."""
    rows = np.maximum(rows, 0)
    lengths: Reals = np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= np.minimum(1, math.sqrt(highest) / np.maximum(lengths, 1e-12))
    return rows
