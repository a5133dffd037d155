"""The thesis' own sketch, DPFMPS: its part of a budget, and registers drawn by its law."""

from dataclasses import dataclass

import numpy as np

from cofactor.cluster.method import Floats, Integers
from cofactor.cluster.published_sketch import published
from cofactor.cluster.sketching import drawn
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
        return published(rows=ROWS, parties=parties, epsilon=self.members, delta=self.delta)


def released(table: Floats, sketch: PartitionSketch, random: Random) -> list[Integers]:
    """Draw every party's registers from their joint law, given how many users are where, and add phantoms."""
    found = drawn(table.astype(np.int64), sketch.rows, random)
    return [np.asarray(sketch.noisy(bounded_registers(own), random)) for own in found]
