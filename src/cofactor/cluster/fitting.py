"""Tables of counts: made possible, and a full one fitted to noisy tables of all pairs of parties.

A pair's table says how many users lie in every combination of two parties' local clusters. Noise makes
numbers negative, and makes two tables disagree on the sizes of a cluster that is in both.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.method import Floats
from cofactor.errors import DataError
from cofactor.randomness import Seeds
from cofactor.survey.simplex import norm_sub

Pairs = Mapping[tuple[int, int], Floats]
"""By the places of two parties, the smaller first, the table of their local clusters."""

_SWEEPS = 100
"""More of them fit a table to the noise of its pairs, and no longer to the counts."""
_SETTLED = 1e-5
"""Fitting stops before, once no more than this part of all users moves."""


def as_counts(table: NDArray[np.floating], total: float) -> Floats:
    """Return the nearest table without negative numbers whose sum is `total` (norm-sub, Algorithm 5 line 11).

    With nobody in it, all of it is 0.
    """
    values = np.asarray(table, np.float64)
    if not np.all(np.isfinite(values)) or not math.isfinite(total):
        raise DataError("a table of counts must hold finite numbers.")
    if total <= 0:
        return np.zeros(values.shape)
    return norm_sub(values.reshape(-1) / total).reshape(values.shape) * total


def fitted(pairs: Pairs, grid: Sequence[int], total: float) -> Floats:
    """Return a table for all parties whose tables of pairs are close to those given.

    Beginning with independent clusters, every cell is multiplied by how much too small its pairs are
    (iterative proportional fitting). All pairs have their turn at once, and the factor is their mean: so it
    settles, at the nearest tables of pairs that there are (by divergence), even where no table agrees with
    all of them. It sums to `total`, and no number is negative. Of two parties, it is their table.
    """
    grid = tuple(grid)
    _check(pairs, grid)
    wanted = {pair: as_counts(table, total) for pair, table in pairs.items()}
    if total <= 0 or len(grid) == 2:
        return wanted[0, 1] if len(grid) == 2 else np.zeros(grid)
    table = independent(sizes_of(wanted, grid), total)
    for _ in range(_SWEEPS):
        factors = [
            _spread(_ratio(goal, projected(table, pair)), pair, len(grid)) for pair, goal in wanted.items()
        ]
        moved = table * (sum(factors) / len(factors))
        settled = np.abs(moved - table).sum() <= _SETTLED * total
        table = moved
        if settled:
            break
    return table


def fitted_additively(
    pairs: Pairs,
    grid: Sequence[int],
    total: float,
    *,
    sizes: Sequence[Floats] | None = None,
    updates: int = 600,
    step: float = 1.0,
    seed: int = 0,
) -> Floats:
    """Return the full table of the thesis (Algorithm 6, lines 5 and 9 to 17), which leaves T and eta open.

    Pairs are drawn in public from those of two different parties; every update takes `step` times a pair's
    difference evenly off all cells. That loses the sum, and makes numbers negative: the last step mends it.
    """
    grid = tuple(grid)
    _check(pairs, grid)
    if total <= 0:
        return np.zeros(grid)
    table = independent(sizes_of(pairs, grid) if sizes is None else sizes, total)
    order = sorted(pairs)
    for drawn in Seeds(seed).generator("pairs of parties").integers(0, len(order), updates):
        pair = order[int(drawn)]
        difference = projected(table, pair) - pairs[pair]
        cells = table.size / difference.size
        table = table - step / cells * _spread(difference, pair, len(grid))
    return as_counts(table, total)


def projected(table: Floats, pair: tuple[int, int]) -> Floats:
    """Return the table of two parties that a table of all has (Proj of Algorithm 6)."""
    others = tuple(place for place in range(table.ndim) if place not in pair)
    return np.asarray(table.sum(axis=others))


def independent(sizes: Sequence[Floats], total: float) -> Floats:
    """Return the table of clusters of these sizes, if knowing one told nothing about the others.

    Sizes below 0 count as 0 here; where none is above, all clusters of that party are taken to be equal.
    """
    table = np.asarray(total)
    for each in sizes:
        parts = np.maximum(np.asarray(each, np.float64), 0.0)
        parts = parts / parts.sum() if parts.sum() > 0 else np.full(len(parts), 1 / len(parts))
        table = np.multiply.outer(table, parts)
    return np.asarray(table)


def sizes_of(pairs: Pairs, grid: Sequence[int]) -> list[Floats]:
    """Return how large every party's clusters are, on average over the tables that the party is in."""
    found: list[list[Floats]] = [[] for _ in grid]
    for (one, other), table in pairs.items():
        found[one].append(table.sum(axis=1))
        found[other].append(table.sum(axis=0))
    return [np.mean(each, axis=0) for each in found]


def _ratio(wanted: Floats, has: Floats) -> Floats:
    """Return by how much a table is too small; where it is empty it stays so."""
    return np.divide(wanted, has, out=np.zeros_like(wanted), where=has > 0)


def _spread(table: Floats, pair: tuple[int, int], parties: int) -> Floats:
    """Return a pair's table such that it can be added to one of all parties."""
    others = tuple(place for place in range(parties) if place not in pair)
    return np.expand_dims(table, others)


def _check(pairs: Pairs, grid: tuple[int, ...]) -> None:
    """Refuse anything but one table of the right shape for every pair of parties."""
    expected = {(one, other): (grid[one], grid[other]) for one, other in combinations(range(len(grid)), 2)}
    if len(grid) < 2 or {pair: table.shape for pair, table in pairs.items()} != expected:
        raise DataError("fitting needs a table for every pair of parties, the smaller place first.")
