"""`Question`: what is asked, and between which numbers an answer lies. All of it is public."""

import math
from dataclasses import dataclass

import numpy as np

from cofactor.config import plain_numbers
from cofactor.errors import ConfigError
from cofactor.survey.method import Floats


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked.

    The range is agreed on beforehand and never read off the data: the smallest and the largest number are
    somebody's. Whoever lies outside answers as the nearer end would.
    """

    name: str
    """What the numbers are: "age", "ratings of a user"."""
    low: float
    """The smallest number that there can be."""
    high: float
    """The largest."""
    whole: bool = False
    """Whether only whole numbers make sense."""
    log: bool = False
    """Whether buckets are as wide as their numbers are large: for numbers of which a few are huge."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        if not isinstance(self.name, str) or not self.name or not self.name.isprintable():
            raise ConfigError(f"name must be a text on one line, got {self.name!r}.")
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
                raise ConfigError(f"{name} must be a number below 1e15, got {value!r}.")
        if not self.low < self.high:
            raise ConfigError(f"low must be below high, got {self.low:g} and {self.high:g}.")
        if self.whole and not (float(self.low).is_integer() and float(self.high).is_integer()):
            raise ConfigError(f"the ends of whole numbers are whole, got {self.low:g} and {self.high:g}.")
        if self.log and self.low <= 0:
            raise ConfigError(f"log needs numbers above 0, and low is {self.low:g}: begin above.")
        first, last = self._ends
        if not last - first > 1e-12 * max(abs(first), abs(last)):
            raise ConfigError(f"{self.low:g} and {self.high:g} are too close to tell numbers between apart.")

    def positions(self, values: Floats) -> tuple[Floats, int]:
        """Return where in [0, 1] numbers lie, and how many lay outside the range, and were clipped."""
        outside = int(np.count_nonzero((values < self.low) | (values > self.high)))
        first, last = self._ends
        scaled = self._scaled(np.clip(values, self.low, self.high))
        return np.clip((scaled - first) / (last - first), 0.0, 1.0), outside

    def edges(self, buckets: int) -> Floats:
        """Return the limits of so many buckets, in the numbers that were asked for."""
        first, last = self._ends
        edges = np.linspace(first, last, buckets + 1)
        return np.exp(edges) if self.log else edges

    @property
    def levels(self) -> int | None:
        """How many different numbers there are; None if they are not whole, or not alike in width."""
        return round(self.high - self.low) + 1 if self.whole and not self.log else None

    @property
    def _ends(self) -> tuple[float, float]:
        """The ends of the range, in the scale of the buckets; whole numbers have half a step around them."""
        step = 0.5 if self.whole else 0.0
        low, high = self.low - step, self.high + step
        return (math.log(low), math.log(high)) if self.log else (low, high)

    def _scaled(self, values: Floats) -> Floats:
        return np.log(values) if self.log else values
