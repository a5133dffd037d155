"""The values a rating may take."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Values
from cofactor.errors import DataError

MOST_STEPS = 101
"""More distinct values than this are taken for a scale without steps."""


@dataclass(frozen=True)
class Scale:
    """The values a rating may take."""

    low: float
    high: float
    step: float | None = None
    """Distance between neighbouring values; None when any value in between is possible."""

    def __post_init__(self) -> None:
        if not (self.low < self.high and np.isfinite([self.low, self.high]).all()):
            raise DataError(f"a rating scale needs finite low < high, got {self.low:g} to {self.high:g}.")
        if self.step is not None and not self.step > 0:
            raise DataError(f"the step of a rating scale must be greater than 0, got {self.step:g}.")

    def __str__(self) -> str:
        steps = f" in steps of {self.step:g}" if self.step else ""
        return f"{self.low:g} to {self.high:g}{steps}"

    def clip(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring predictions back onto the scale."""
        clipped: NDArray[Any] = np.clip(values, self.low, self.high)
        return clipped

    def covers(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Say of each value whether it lies between the ends."""
        inside: NDArray[np.bool_] = (values >= self.low) & (values <= self.high)
        return inside

    @classmethod
    def of(cls, values: Values) -> "Scale | None":
        """Read the scale off the values; None when all of them are equal."""
        if len(values) == 0 or values.min() == values.max():
            return None
        return cls(_as_written(values.min()), _as_written(values.max()), _step(values))


def _step(values: Values) -> float | None:
    """Return the distance that all distinct values are multiples of, where there are few enough."""
    distinct = _distinct(values)
    if len(distinct) > MOST_STEPS:
        return None
    gaps = np.diff(distinct.astype(np.float64))
    multiples = gaps / gaps.min()
    regular = multiples.max() < 1e6 and np.allclose(multiples, np.round(multiples), atol=1e-3)
    return float(f"{gaps.min():.6g}") if regular else None


def _distinct(values: Values) -> Values:
    first = np.unique(values[:10_000])
    # Testing membership of a few values is several times faster than sorting all ratings.
    if len(first) > MOST_STEPS or bool(np.isin(values, first).all()):
        return first
    return np.unique(values)


def _as_written(value: np.float32) -> float:
    """Return the number a person would write: 0.1, where float(value) is 0.10000000149."""
    return float(str(value))


def scale_of(values: Values) -> Scale | None:
    """Read the scale off the values; nothing but ones is implicit, nothing but fives cannot be told."""
    scale = Scale.of(values)
    if scale is None and len(values) and values[0] != 1:
        raise DataError(
            f"every rating is {values[0]:g}, so the rating scale cannot be seen. State it with --scale 1:5 "
            "or scale=Scale(1, 5), or leave the ratings out if they only say that something happened."
        )
    return scale


def check_scale(values: Values, scale: Scale) -> None:
    """Refuse ratings outside a stated scale."""
    outside = ~scale.covers(values)
    if outside.any():
        worst = values[np.argmax(outside)]
        raise DataError(
            f"{int(outside.sum()):,} ratings lie outside the scale {scale}, the first is {worst:g}. "
            "Correct them, or state the true scale."
        )
