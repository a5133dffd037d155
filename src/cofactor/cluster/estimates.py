"""What registers tell: sizes of clusters and of unions, and how many users two clusters have in common.

With F(z) = 1 - 2^-z, the largest hash of N elements is at most z with probability F(z)^N. A register has its
cluster's users and `phantoms` more, and is clipped to [low, high]: what lies at an end may lie beyond it.
Registers are arrays of (rows, clusters); numbers of users may come out negative, and tables do not add up:
`fitting` mends both.
"""

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from cofactor.cluster.method import Floats, Integers
from cofactor.privacy.sketches import PartitionSketch

_HARMONIC = 0.5 / np.log(2.0)
"""What makes the harmonic mean unbiased (Flajolet et al. 2007, in the limit of many elements)."""
_HALVINGS = 60


def harmonic(registers: Integers, phantoms: float) -> Floats:
    """Return how many users a register has seen, from the harmonic mean of 2^register over the rows.

    The bias is below 1% where neither end of the clip is in reach, the relative deviation 1.04 / sqrt(rows).
    `phantoms` are those of all registers of which these are the largest.
    """
    return np.asarray(_HARMONIC / np.mean(2.0 ** -registers.astype(np.float64), axis=0) - phantoms)


def harmonic_as_written(registers: Integers, phantoms: float) -> Floats:
    """Return what Algorithm 5, line 7, says if taken at its word: two to the harmonic mean. It is far off."""
    return np.asarray(2.0 ** (1 / np.mean(1 / registers.astype(np.float64), axis=0)) - phantoms)


def sizes(registers: Integers, sketch: PartitionSketch) -> Floats:
    """Return how many users each cluster has, most likely, knowing where registers are clipped."""
    values = np.arange(sketch.low, sketch.high + 1)
    counts = (registers[:, :, None] == values).mean(axis=0)
    log_below, log_under = _logs(sketch)

    def slope(elements: Floats) -> Floats:
        """Return the slope of the log-likelihood in the number of elements."""
        terms = _slope_of_difference(log_below, log_under, elements[:, None])
        return np.asarray((counts * terms).sum(axis=1))

    clusters = registers.shape[1]
    return _root(slope, np.full(clusters, 1e-3), np.full(clusters, 2.0 ** (sketch.high + 4))) - sketch.phantoms
