"""The law of clipped registers: of one, and of two clusters' that have users in common.

With F(z) = 1 - 2^-z, the largest hash of N elements is at most z with probability F(z)^N. Clipped to
[low, high], it is never above `high`, and what would be below `low` is at it.
"""

from dataclasses import dataclass

import numpy as np

from cofactor.cluster.method import Floats
from cofactor.privacy.sketches import PartitionSketch


@dataclass(frozen=True, eq=False)
class Slopes:
    """Probabilities, and how they change with what they depend on."""

    at: Floats
    own: Floats
    """With the elements that only the first has."""
    other: Floats
    """With those that only the second has."""
    common: Floats
    """With those that both have."""


class RegisterLaw:
    """Probabilities of every value of a register; a last axis, or two, for the values from low to high."""

    def __init__(self, sketch: PartitionSketch) -> None:
        """Read where registers are clipped."""
        self.values = np.arange(sketch.low, sketch.high + 1)
        self._log = np.append(np.log1p(-(2.0 ** -self.values[:-1].astype(np.float64))), 0.0)
        # Nothing lies under the lowest value: its factor is 0, whatever the power.
        self._log_under = np.append(0.0, self._log[:-1])
        self._above_low = (self.values > sketch.low).astype(np.float64)
        self._rising = (self.values[:, None] < self.values).astype(np.float64)

    def one(self, elements: Floats) -> tuple[Floats, Floats]:
        """Return P(register = z) for so many elements, and its slope in their number."""
        below, under = self._powers(elements)
        return below - under, self._log * below - self._log_under * under

    def two(self, own: Floats, other: Floats, common: Floats) -> Slopes:
        """Return P(first = s, second = t), where each has elements of its own and some are common to both.

        Where the second register is larger, it is by elements of its own, and the first is the largest of
        its own and the common ones; and the other way round.
        """
        own, other, common = np.broadcast_arrays(own, other, common)
        (first, first_slope), (second, second_slope) = self.one(own + common), self.one(other + common)
        (mine, mine_slope), (theirs, theirs_slope) = self.one(own), self.one(other)
        rising, falling = self._rising, self._rising.T
        up = _outer(first_slope, theirs) * rising
        down = _outer(mine, second_slope) * falling
        slopes = Slopes(
            at=_outer(first, theirs) * rising + _outer(mine, second) * falling,
            own=up + _outer(mine_slope, second) * falling,
            other=_outer(first, theirs_slope) * rising + down,
            common=up + down,
        )
        self._set_equal(slopes, own, other, common)
        return slopes

    def _set_equal(self, slopes: Slopes, own: Floats, other: Floats, common: Floats) -> None:
        """Fill in where both are equal: by a common element, or each by one of its own and none in common."""
        (mine, mine_slope), (theirs, theirs_slope) = self.one(own), self.one(other)
        shared, shared_slope = self.one(common)
        _, under = self._powers(common)
        at_most, _ = self._powers(own + other)
        same = np.arange(len(self.values))
        slopes.at[..., same, same] = shared * at_most + under * mine * theirs
        slopes.own[..., same, same] = shared * self._log * at_most + under * mine_slope * theirs
        slopes.other[..., same, same] = shared * self._log * at_most + under * mine * theirs_slope
        slopes.common[..., same, same] = shared_slope * at_most + self._log_under * under * mine * theirs

    def _powers(self, elements: Floats) -> tuple[Floats, Floats]:
        """Return the probabilities that a register is at most each value, and that it is below."""
        number = np.asarray(elements, np.float64)[..., None]
        return np.exp(number * self._log), np.exp(number * self._log_under) * self._above_low


def _outer(first: Floats, second: Floats) -> Floats:
    return np.asarray(first[..., :, None] * second[..., None, :])
