"""What chance leaves open about an estimate: intervals, by drawing answers again from those that came."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cofactor.config import fraction, whole as whole_number
from cofactor.errors import ConfigError
from cofactor.randomness import Seeds
from cofactor.survey.distribution import Distribution
from cofactor.survey.method import Floats, Gives, Integers, Method


@dataclass(frozen=True, kw_only=True, eq=False)
class Interval:
    """Between which numbers something lies; arrays for many somethings."""

    low: Any
    high: Any

    def __str__(self) -> str:
        return f"{self.low:.4g} to {self.high:.4g}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Band:
    """Intervals around an estimate, each by itself: of many at once, some miss.

    They say what the choice of people and the noise of their answers leave open. They do not say how far a
    method is off on average: smoothing flattens peaks that are narrower than the wave, and bins hide what is
    in them. They are made of what was released already, so they cost no privacy.
    """

    level: float
    """How often such an interval is meant to hold what it is for."""
    edges: Floats
    """Where buckets begin and end."""
    estimate: Floats
    """What was estimated of the answers."""
    drawn: Floats
    """Row by row, what is estimated of answers drawn again."""
    gives: Gives
    whole: bool = False

    @cached_property
    def probabilities(self) -> Interval:
        """For how much each bucket holds."""
        self._needs("ranges")
        return self._around(self.estimate, self.drawn)

    @cached_property
    def cumulative(self) -> Interval:
        """For how much lies below each edge."""
        self._needs("ranges")
        return self._around(_sums(self.estimate), _sums(self.drawn))

    @cached_property
    def mean(self) -> Interval:
        """For the mean."""
        if self.gives == "distribution":
            return self.of(lambda each: each.mean)
        if self.gives == "mean":
            first, last = self.edges[0], self.edges[-1]
            found, again = first + self.estimate[0] * (last - first), first + self.drawn[:, 0] * (last - first)
        else:
            middles = (self.edges[:-1] + self.edges[1:]) / 2
            found, again = self.estimate @ middles, self.drawn @ middles
        return self._around(found, again)

    @cached_property
    def deviation(self) -> Interval:
        """For the standard deviation."""
        return self.of(lambda each: each.deviation)

    def quantile(self, q: Any) -> Interval:
        """For quantiles, of a number or of many."""
        return self.of(lambda each: each.quantile(q))

    def between(self, low: Any, high: Any) -> Interval:
        """For how much lies in a range, or in many."""
        if self.gives == "distribution":
            return self.of(lambda each: each.between(low, high))
        self._needs("ranges")
        ...

    def of(self, question: Callable[[Distribution], Any]) -> Interval:
        """For whatever can be asked of a distribution."""
        self._needs("distribution")
        return self._around(question(self._distributions[0]), [question(each) for each in self._distributions[1:]])
