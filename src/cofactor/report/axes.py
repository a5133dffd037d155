"""Where numbers lie on an axis, and which of them are written beside it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from cofactor.svg import decimals, nice_step

_DECADES = 3
"""A logarithmic axis this long has ticks at powers of ten alone."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A stretch of numbers, and where its ends are drawn."""

    low: float
    high: float
    start: float
    """Where the low end is drawn."""
    end: float
    logarithmic: bool = False
    ticks: int = 6
    """About how many numbers are written beside it."""
    whole: bool = False
    """Whether there is nothing between whole numbers, so that none is written there."""

    @classmethod
    def around(
        cls,
        values: Iterable[float],
        *,
        start: float,
        end: float,
        logarithmic: bool = False,
        from_zero: bool = False,
        tight: bool = False,
        ticks: int = 6,
        whole: bool = False,
    ) -> "Axis":
        """Return an axis with room for all values; those that no axis can show are passed over.

        A `tight` one ends where the values do, others at a round number; logarithmic ones a little beyond.
        """
        usable = [each for each in values if math.isfinite(each) and (each > 0 or not logarithmic)]
        low, high = (min(usable), max(usable)) if usable else (1.0, 2.0)
        if logarithmic:
            room = 1.3 if low == high else 1.0 if tight else min((high / low) ** 0.06, 2.0)
            low, high = low / room, high * room
            return cls(low=low, high=high, start=start, end=end, logarithmic=True, ticks=ticks)
        low = min(low, 0.0) if from_zero else low
        if low == high:
            low, high = (low - 0.5 * abs(low), high + 0.5 * abs(high)) if low else (0.0, 1.0)
        if tight:
            return cls(low=low, high=high, start=start, end=end, ticks=ticks, whole=whole)
        step = _step(high - low, ticks, whole)
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        return cls(low=low, high=high, start=start, end=end, ticks=ticks, whole=whole)

    def place(self, value: float) -> float:
        """Return where a value is drawn; what lies beyond an end is drawn there."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(max(value, self.low))
        share = min(max((at - low) / (high - low), 0.0), 1.0)
        return self.start + share * (self.end - self.start)

    def marks(self) -> list[tuple[float, str]]:
        """Return the numbers to write beside it, each with its words."""
        plain = self._logarithmic_marks() if self.logarithmic else []
        if len(plain) > 1:
            return [(value, f"{value:g}") for value in plain]
        # A short stretch of a logarithmic axis has none of these, and is nearly even.
        step = _step(self.high - self.low, self.ticks, self.whole)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        digits = decimals(step)
        return [((first + k) * step, f"{(first + k) * step:,.{digits}f}") for k in range(count)]

    def _logarithmic_marks(self) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        length = math.log10(self.high / self.low)
        factors = (1,) if length > _DECADES else (1, 2, 5) if length > 1 else (1, 1.5, 2, 3, 4, 5, 7)
        found = [10.0**power * factor for power in powers for factor in factors]
        return [each for each in found if self.low * (1 - 1e-9) <= each <= self.high * (1 + 1e-9)]


def _step(length: float, ticks: int, whole: bool) -> float:
    step = nice_step(length / ticks)
    return max(step, 1.0) if whole else step
