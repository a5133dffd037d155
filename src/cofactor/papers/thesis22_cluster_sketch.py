"""The thesis' own sketch, DPFMPS: its budget, its registers, and what its two estimators make of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cofactor.cluster.estimates import complements, harmonic
from cofactor.cluster.fitting import as_counts, fitted, fitted_additively
from cofactor.cluster.method import Floats, Integers
from cofactor.cluster.sketching import LARGEST_HASH, drawn
from cofactor.privacy.bounding import registers as bounded_registers
from cofactor.privacy.sketches import PartitionSketch
from cofactor.randomness import Random

ROWS = 4096
"""M in the thesis."""
_COUNT = 0.02
"""The part of epsilon that goes to the number of users (footnote 1 of section 5.2.5)."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """How Algorithm 2 divides a budget."""

    count: float
    """epsilon_0, for the number of users."""
    local: float
    """epsilon_1, for one party's local clusters."""
    members: float
    """epsilon_2, for one party's memberships."""
    delta: float
    """delta_2, of one party's memberships."""

    @classmethod
    def of(cls, epsilon: float, users: int, parties: int, *, count: float = _COUNT) -> "Shares":
        """Divide epsilon, and a delta of one over the number of users."""
        each = (1 - count) * epsilon / (2 * parties)
        return cls(count=count * epsilon, local=each, members=each, delta=1 / users / parties)

    def sketch(self, parties: int) -> PartitionSketch:
        """Return the sketch of Algorithm 4, whose keys all parties share."""
        per_row = self.members / (4 * math.sqrt(ROWS * math.log(1 / self.delta)))
        return PartitionSketch(
            rows=ROWS,
            phantoms=math.ceil(1 / math.expm1(per_row)),
            low=math.ceil(-math.log2(-math.expm1(-per_row))),
            high=LARGEST_HASH,
            parties=parties,
        )


def released(table: Floats, sketch: PartitionSketch, random: Random) -> list[Integers]:
    """Draw every party's registers from their joint law, given how many users are where, and add phantoms."""
    found = drawn(table.astype(np.int64), sketch.rows, random)
    return [np.asarray(sketch.noisy(bounded_registers(own), random)) for own in found]


def basic(registers: Sequence[Integers], users: float, phantoms: int) -> Floats:
    """Estimate a table by Algorithm 5: everybody less those who are outside of a combination of clusters."""
    return as_counts(complements(registers, phantoms, users), users)


def two_party(
    registers: Sequence[Integers], users: float, phantoms: int, *, proportional: bool = False
) -> Floats:
    """Estimate a table by Algorithm 6: those of all pairs of parties, and one for all that goes with them.

    Its additive steps leave the possible tables; proportional ones do not.
    """
    grid = tuple(own.shape[1] for own in registers)
    pairs = {
        (one, other): basic([registers[one], registers[other]], users, phantoms)
        for one, other in combinations(range(len(grid)), 2)
    }
    if proportional:
        return fitted(pairs, grid, users)
    sizes = [harmonic(own, phantoms) for own in registers]
    return fitted_additively(pairs, grid, users, sizes=sizes)
