"""What users of `MultiViewMF` add to the sum of a round, with a bound on each of them, and without."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cofactor.privacy import bounding
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.fixed_point import FixedPoint
from cofactor.randomness import Random
from cofactor.recipes.multiview_kernels import summed_gradients
from cofactor.recipes.multiview_weights import Entries

Reals = NDArray[np.float64]

_ROWS = 2**17
"""Rows that are worked on at once: what they need fits into memory for any cohort."""


def plain_sum(
    users: Reals,
    entries: Entries,
    items: Reals,
    attributes: Reals,
    features: Reals,
    *,
    step: float,
    most: int,
) -> Bounded:
    """Return the gradients of all users together, rounded once, in whole steps; none is larger than `most`.

    No user is bounded: the bound that is stated is that of two tables of such numbers.
    """
    total = summed_gradients(users, *entries, items, attributes, features)
    whole = np.clip(np.rint(total / step), -most, most).astype(np.int64)
    return bounding.stated(whole, limit=max(2.0 * most, 1.0) * np.sqrt(whole.size), unit="user")


def bounded_sum(
    users: Reals,
    entries: Entries,
    items: Reals,
    attributes: Reals,
    features: Reals,
    grid: FixedPoint,
    limit: float,
    random: Random,
) -> Bounded:
    """Return the same sum, to which no user adds more than `limit`, by ratings and attributes together.

    It is rounded by chance, user by user.
    """
    count, width = len(items) + len(features), items.shape[1]
    total = np.zeros((count, width), np.int64)
    for part in _windows(entries, len(items), len(features)):
        own = entries.window(part.start, part.stop)
        rows, ptr, places = _rows(users[part], own, items, attributes[part], features)
        added = grid.table(rows, ptr, places, place_count=count, limit=limit, random=random)
        total += added.value
    return bounding.stated(total, limit=grid.whole_limit(limit, total.size), unit="user")


def _windows(entries: Entries, items: int, features: int) -> Iterator[slice]:
    """Yield users, so many at once as have about `_ROWS` rows together."""
    sizes = np.diff(entries.ptr) if entries.everywhere == 0 else np.full(len(entries.ptr) - 1, items)
    ends = np.cumsum(sizes + features)
    start = 0
    while start < len(sizes):
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + _ROWS, side="right")), start + 1)
        yield slice(start, stop)
        start = stop


def _rows(
    users: Reals, entries: Entries, items: Reals, attributes: Reals, features: Reals
) -> tuple[Reals, NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that users add, where each user's begin, and to which row of the table each goes."""
    if entries.everywhere > 0:
        entries = entries.dense(len(items))
    count, sizes = len(users), np.diff(entries.ptr)
    owners = np.concatenate([np.repeat(np.arange(count), sizes), np.repeat(np.arange(count), len(features))])
    errors = entries.weights * (
        entries.values - _predicted(users, owners[: sizes.sum()], items[entries.items])
    )
    missed = attributes - users @ features.T
    heights = np.concatenate([errors, np.where(np.isnan(missed), 0.0, missed).ravel()])
    places = np.concatenate([entries.items, np.tile(len(items) + np.arange(len(features)), count)])
    order = np.argsort(owners, kind="stable")
    rows = heights[order, None] * users[owners[order]]
    return rows, entries.ptr + np.arange(count + 1) * len(features), places[order].astype(np.int64)


def _predicted(users: Reals, owners: NDArray[np.int64], items: Reals) -> Reals:
    return np.asarray(np.einsum("rk,rk->r", users[owners], items))
