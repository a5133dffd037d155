"""The sketch as published (thesis, Algorithms 3 to 6), to be compared with and audited. No recipe uses it.

All parties share keys, and nothing clips large registers: a large one that two parties share tells who is in
both clusters. Its theorem does not hold; `published` returns the mechanism that says what it truly costs.
"""

import math
from collections.abc import Sequence
from itertools import combinations

from cofactor.cluster.estimates import complements, harmonic
from cofactor.cluster.fitting import Pairs, as_counts, fitted, fitted_additively
from cofactor.cluster.method import Floats, Integers
from cofactor.cluster.sketching import LARGEST_HASH, registers
from cofactor.config import fraction, positive, whole
from cofactor.privacy import bounding
from cofactor.privacy.sketches import PartitionSketch
from cofactor.randomness import Random


def published(*, rows: int, parties: int, epsilon: float, delta: float) -> PartitionSketch:
    """Return the sketch of Algorithm 4 for one party's epsilon_2 and delta_2, with gamma = 1.

    Algorithm 3 has e^(epsilon' - 1) where e^epsilon' - 1 is meant. Hashes have 32 bits, so that the largest
    register is 33, which hardly ever happens.
    """
    whole(rows=rows, parties=parties)
    positive(epsilon=epsilon)
    fraction(delta=delta)
    each = epsilon / (4 * math.sqrt(rows * math.log(1 / delta)))
    phantoms = math.ceil(1 / math.expm1(each))
    # alpha_min: the smallest z with 1 - 2^-z >= e^-epsilon'.
    low = math.ceil(-math.log2(-math.expm1(-each)))
    return PartitionSketch(rows=rows, phantoms=phantoms, low=low, high=LARGEST_HASH, parties=parties)


def published_registers(
    sketch: PartitionSketch,
    key: bytes,
    ids: Sequence[str],
    cells: Integers,
    clusters: int,
    random: Random,
) -> Integers:
    """Return one party's registers; `key` is that of all parties."""
    real = registers(key, ids, cells, clusters, sketch.rows)
    return sketch.noisy(bounding.registers(real), random)


def basic(found: Sequence[Integers], sketch: PartitionSketch, total: float) -> Floats:
    """Return the table of all parties by BasicEst (Algorithm 5)."""
    return as_counts(complements(found, sketch.phantoms, total), total)


def two_party(
    found: Sequence[Integers], sketch: PartitionSketch, total: float, *, proportional: bool = False
) -> Floats:
    """Return the table of all parties by 2PEst (Algorithm 6), its sizes biased by alpha_min as they are.

    Its additive steps leave the possible tables; `proportional` ones do not.
    """
    pairs: Pairs = {
        (one, other): basic([found[one], found[other]], sketch, total)
        for one, other in combinations(range(len(found)), 2)
    }
    grid = [each.shape[1] for each in found]
    if proportional:
        return fitted(pairs, grid, total)
    sizes = [harmonic(each, sketch.phantoms) for each in found]
    return fitted_additively(pairs, grid, total, sizes=sizes)
