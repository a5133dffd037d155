"""What registers tell: sizes of clusters and of unions, and how many users two clusters have in common.

A register has seen its cluster's users and `phantoms` besides, and is clipped to [low, high]: what is at an
end may lie beyond it. Registers are arrays of (rows, clusters). Numbers of users may come out negative, and
tables need not add up: `fitting` mends both.
"""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from scipy import optimize

from cofactor.cluster.method import Floats, Integers
from cofactor.cluster.register_law import RegisterLaw
from cofactor.privacy.sketches import PartitionSketch

_HARMONIC = 0.5 / math.log(2)
"""What makes the harmonic mean unbiased (Flajolet et al. 2007, for many elements)."""
_HALVINGS = 60
_TINY = 1e-300


def harmonic(registers: Integers, phantoms: float) -> Floats:
    """Return how many users registers have seen, from the harmonic mean of 2^register over the rows.

    Where no end of the clip is in reach, it is unbiased, and its relative deviation 1.04 / sqrt(rows).
    `phantoms` are those of all registers of which these are the largest.
    """
    return np.asarray(_HARMONIC / np.mean(2.0 ** -registers.astype(np.float64), axis=0) - phantoms)


def harmonic_as_written(registers: Integers, phantoms: float) -> Floats:
    """Return Algorithm 5, line 7, taken at its word: 2 to the harmonic mean of registers. It is far off."""
    return np.asarray(2.0 ** (1 / np.mean(1 / registers.astype(np.float64), axis=0)) - phantoms)


def sizes(registers: Integers, sketch: PartitionSketch) -> Floats:
    """Return how many users each cluster has, most likely, knowing where registers are clipped."""
    law = RegisterLaw(sketch)
    shares = (registers[:, :, None] == law.values).mean(axis=0)

    def slope(log_elements: Floats) -> Floats:
        chances, slopes = law.one(np.exp(log_elements))
        return np.asarray((shares * slopes / np.maximum(chances, _TINY)).sum(axis=1))

    ends = np.zeros(registers.shape[1]), np.full(registers.shape[1], (sketch.high + 4) * math.log(2))
    return np.exp(_root(slope, *ends)) - sketch.phantoms


def complements(
    registers: Sequence[Integers],
    phantoms: int,
    total: float,
) -> Floats:
    """Return the table of all combinations from unions of all others (BasicEst, Algorithm 5, lines 3 to 9).

    In a combination is who is in none of the other clusters of any party.
    """
    parties = len(registers)
    others = [_expanded(_largest_of_others(each), place, parties) for place, each in enumerate(registers)]
    union = reduce(np.maximum, others)
    made_up = phantoms * sum(each.shape[1] - 1 for each in registers)
    return total - harmonic(union, made_up)


def ties(first: Integers, second: Integers, sketch: PartitionSketch) -> Floats:
    """Return how many users clusters of two parties have in common, from how often their registers agree."""
    law = RegisterLaw(sketch)
    ones, others = np.broadcast_arrays(
        sizes(first, sketch)[:, None] + sketch.phantoms, sizes(second, sketch) + sketch.phantoms
    )
    seen = (first[:, :, None] == second[:, None, :]).mean(axis=0)

    def too_few(common: Floats) -> Floats:
        chances = law.two(ones - common, others - common, common).at
        return np.asarray(seen - np.trace(chances, axis1=-2, axis2=-1))

    # So that none is not overestimated, fewer than none may be found, as long as there are such laws.
    room = min(sketch.phantoms, 2**sketch.low) / 2
    return _root(too_few, np.full(seen.shape, -room), np.minimum(ones, others))


def likelihood(first: Integers, second: Integers, sketch: PartitionSketch, total: float) -> Floats:
    """Return the most likely table of two parties' clusters, from every two of their registers.

    The likelihoods of all pairs of clusters are multiplied as if they were independent (a composite
    likelihood), with the sizes of clusters being sums over the table. `total` is where the search begins, and
    the sum is near it by itself. No number is negative.
    """
    law = RegisterLaw(sketch)
    shares = _two_way(first, second, law)
    shape = (first.shape[1], second.shape[1])
    # Counted in average cells, the numbers are of a size with which the search makes good steps.
    cell = max(total, 1.0) / math.prod(shape)

    def loss(flat: Floats) -> tuple[float, Floats]:
        value, slope = _log_likelihood(flat.reshape(shape) * cell, shares, law, sketch.phantoms)
        return -value, -slope.reshape(-1) * cell

    start = np.ones(math.prod(shape))
    limits = [(0.0, None)] * start.size
    options = {"ftol": 1e-10, "maxiter": 500}
    found: Any = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options=options)
    return np.asarray(found.x.reshape(shape) * cell)


def deviation(sketch: PartitionSketch, users: float, local_clusters: int) -> float:
    """Return how far, about, the number of users in an average combination is off, as a standard deviation.

    By the information that its two registers have, with all clusters of a party equally large and their sizes
    known; infinite where there is none.
    """
    common = np.array(users / local_clusters**2)
    own = users / local_clusters + sketch.phantoms - common
    law = RegisterLaw(sketch).two(own, own, common)
    # Who moves into the intersection is no longer in one cluster alone.
    slope = law.common - law.own - law.other
    information = float((slope**2 / np.maximum(law.at, _TINY)).sum())
    return 1 / math.sqrt(sketch.rows * information) if information > _TINY else math.inf


def _log_likelihood(table: Floats, shares: Floats, law: RegisterLaw, phantoms: int) -> tuple[float, Floats]:
    """Return the mean over rows of the log-likelihood, summed over pairs of clusters, and its slope."""
    rows, columns = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    found = law.two(phantoms + rows - table, phantoms + columns - table, table)
    chances = np.maximum(found.at, _TINY)
    weights = shares / chances
    own, other, common = (
        (weights * slope).sum(axis=(2, 3)) for slope in (found.own, found.other, found.common)
    )
    # A user of a cell is one of the first's own elements for all other clusters of the second.
    slope = common + (own.sum(axis=1, keepdims=True) - own) + (other.sum(axis=0, keepdims=True) - other)
    return float((shares * np.log(chances)).sum()), slope


def _two_way(first: Integers, second: Integers, law: RegisterLaw) -> Floats:
    """Return, for every two clusters, in which part of the rows their registers have every two values."""
    one, other = ((each[:, :, None] == law.values).astype(np.float64) for each in (first, second))
    flat = one.reshape(len(one), -1).T @ other.reshape(len(other), -1) / len(one)
    values = len(law.values)
    return np.asarray(flat.reshape(first.shape[1], values, second.shape[1], values).transpose(0, 2, 1, 3))


def _largest_of_others(registers: Integers) -> Integers:
    """Return for every cluster the largest register of all others of its party; 0 if there are none."""
    clusters = registers.shape[1]
    found = [np.delete(registers, cluster, axis=1).max(axis=1, initial=0) for cluster in range(clusters)]
    return np.stack(found, axis=1)


def _expanded(registers: Integers, place: int, parties: int) -> Integers:
    """Return a party's registers with an axis for every party, the clusters along its own."""
    others = tuple(1 + other for other in range(parties) if other != place)
    return np.expand_dims(registers, others)


def _root(falling: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """Return where falling functions, one for each entry, cross 0; an end if they do not."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = falling(middle) > 0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return (low + high) / 2
