"""How private numbers are spread: probabilities of buckets, and whatever can be read off them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import ConfigError, DataError

if TYPE_CHECKING:
    from cofactor.survey.bootstrap import Band

Floats = NDArray[np.float64]

_NEAR_ONE = 1e-9
"""How far from 1 probabilities may add up to; then they are made to."""
_TIE = 1e-9
"""Probabilities that are so close are the same: sums of the same numbers differ by their order."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Distribution:
    """Probabilities of buckets that lie side by side; within a bucket every value is as likely as another.

    Of whole numbers, what a bucket holds is rounded to the nearest one: with buckets of width 1 around whole
    numbers, everything sits on them, exactly.
    """

    edges: Floats
    """Where buckets begin and end: increasing, one more than there are buckets."""
    probabilities: Floats
    """How much each bucket holds: not negative, 1 together."""
    whole: bool = False
    """Whether values are whole numbers."""

    def __post_init__(self) -> None:
        edges, probabilities = _row(self.edges, "edges"), _row(self.probabilities, "probabilities")
        if len(probabilities) < 1 or len(edges) != len(probabilities) + 1:
            raise DataError(
                f"{len(edges):,} edges do not go with {len(probabilities):,} probabilities: give 1 more."
            )
        if np.any(np.diff(edges) <= 0):
            raise DataError("edges must increase.")
        object.__setattr__(self, "edges", _kept(edges))
        object.__setattr__(self, "probabilities", _kept(_normalised(probabilities)))
        object.__setattr__(self, "whole", bool(self.whole))

    @classmethod
    def from_values(cls, values: Any, edges: Any, *, whole: bool = False) -> Self:
        """Return how known values are spread; for comparisons."""
        found, bounds = _row(values, "values"), _row(edges, "edges")
        if not len(found) or len(bounds) < 2:
            raise DataError("give at least one value and two edges.")
        if np.any(np.diff(bounds) <= 0):
            raise DataError("edges must increase.")
        outside = int(np.sum((found < bounds[0]) | (found > bounds[-1])))
        if outside:
            raise DataError(f"{outside:,} values lie outside the edges. Clip them, or give wider edges.")
        counts, _ = np.histogram(found, bounds)
        return cls(edges=bounds, probabilities=counts / len(found), whole=whole)

    @cached_property
    def cumulative(self) -> Floats:
        """How much lies below each edge, by the mass that is even within a bucket: from 0 to 1."""
        sums = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        # The same division for all: edges above the last value have 1, exactly.
        return _kept(sums / sums[-1])

    @property
    def widths(self) -> Floats:
        """How wide each bucket is."""
        return np.diff(self.edges)

    @property
    def density(self) -> Floats:
        """Probability for a step of 1, bucket by bucket."""
        return self.probabilities / self.widths

    @cached_property
    def mean(self) -> float:
        """The mean of all values."""
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])
        origin = _origin(float(self.probabilities @ middle), self.whole)
        first, _ = _moments(self.edges - origin, self.whole)
        return float(origin + self.probabilities @ first)

    @cached_property
    def variance(self) -> float:
        """The mean squared distance from the mean."""
        origin = _origin(self.mean, self.whole)
        first, second = _moments(self.edges - origin, self.whole)
        return max(0.0, float(self.probabilities @ second - (self.probabilities @ first) ** 2))

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return float(np.sqrt(self.variance))

    @property
    def deciles(self) -> Floats:
        """The values that a tenth, two tenths and so on to nine tenths lie below."""
        found: Floats = self.quantile(np.arange(1, 10) / 10)
        return found

    def quantile(self, q: Any) -> Any:
        """Return the smallest value that at least a part q of everything does not exceed.

        For a number a number, for an array an array. Of 0 it is where values begin.
        """
        parts = np.asarray(q, np.float64)
        if not np.all((parts >= 0) & (parts <= 1)):
            raise ConfigError("quantiles are asked for by numbers between 0 and 1.")
        # The first edge with at least so much below it; the bucket before it is not empty.
        beginning = int(np.searchsorted(self.cumulative, 0.0, side="right"))
        last = np.maximum(np.searchsorted(self.cumulative, parts - _TIE * self.whole), beginning)
        before, after = self.cumulative[last - 1], self.cumulative[last]
        inside = np.clip((parts - before) / (after - before), 0.0, 1.0)
        found = self.edges[last - 1] + inside * self.widths[last - 1]
        if self.whole:
            found = self._whole_from(found, parts, _nearest(self.edges[beginning - 1] + _TIE))
        return found if parts.ndim else float(found)

    def _whole_from(self, found: Floats, parts: Floats, least: Any) -> Floats:
        up = np.ceil(found - 0.5)
        # One less, if rounding alone made it more.
        enough = self.below(up - 1) >= parts - _TIE
        return np.asarray(np.maximum(np.where(enough, up - 1, up), least))

    def below(self, x: Any) -> Any:
        """Return how much does not exceed x: for a number a number, for an array an array."""
        at = _numbers(x)
        found = np.interp(np.floor(at) + 0.5 if self.whole else at, self.edges, self.cumulative)
        return found if at.ndim else float(found)

    def between(self, low: Any, high: Any) -> Any:
        """Return how much lies from `low` to `high`, both included."""
        first, last = _numbers(low), _numbers(high)
        if np.any(first > last):
            raise ConfigError("a range must begin before it ends: give low before high.")
        before = self.below(np.ceil(first) - 1) if self.whole else self.below(first)
        found = np.asarray(self.below(last) - before)
        return found if found.ndim else float(found)

    def mean_below_cap(self, caps: Any) -> Any:
        """Return the mean of all values when those above a cap count as the cap: of each cap, if many."""
        cap = _numbers(caps)
        if not np.all(np.isfinite(cap)):
            raise ConfigError("caps must be finite numbers.")
        end = np.floor(cap) + 0.5 if self.whole else cap
        origin = _origin(self.mean, self.whole)
        shifted = np.clip(end, self.edges[0], self.edges[-1]) - origin
        edges = self.edges - origin
        place = np.clip(np.searchsorted(self.edges, end, side="right") - 1, 0, len(self.widths) - 1)
        first, _ = _integrals(edges, self.whole)
        here, _ = _integrals(shifted, self.whole)
        below = np.concatenate([[0.0], np.cumsum(self.density * np.diff(first))])[place]
        below = below + self.density[place] * (here - first[place])
        part = np.interp(end, self.edges, self.cumulative)
        found = np.asarray(below + origin * part + cap * (1 - part))
        return found if cap.ndim else float(found)

    def as_json(self) -> dict[str, Any]:
        """Return plain lists for a file."""
        return {
            "edges": self.edges.tolist(),
            "probabilities": self.probabilities.tolist(),
            "whole": self.whole,
        }

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> Self:
        """Return what `as_json` wrote down."""
        try:
            return cls(edges=table["edges"], probabilities=table["probabilities"], whole=table["whole"])
        except (KeyError, TypeError) as error:
            raise DataError("this is no distribution: it needs edges, probabilities and whole.") from error

    def svg(
        self,
        *,
        band: "Band | None" = None,
        truth: "Distribution | None" = None,
        title: str = "",
        name: str = "",
    ) -> str:
        """Return a picture, as the text of an SVG file: see `survey.plotting`."""
        from cofactor.survey import plotting  # it draws distributions, so it stands above them

        return plotting.svg(self, band=band, truth=truth, title=title, name=name)

    def __str__(self) -> str:
        quarters = ", ".join(written(value) for value in self.quantile(np.array([0.25, 0.5, 0.75])))
        low, high = written(self.quantile(0.1)), written(self.quantile(0.9))
        return "\n".join(
            [
                f"mean {written(self.mean)}, standard deviation {written(self.deviation)}",
                f"quarters end at {quarters}; four of five lie between {low} and {high}",
                f"{len(self.probabilities):,} buckets from {self.edges[0]:.6g} to {self.edges[-1]:.6g}",
            ]
        )


def written(value: float) -> str:
    """Write a number for people: four digits, and large ones without powers of ten."""
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1e15 else f"{value:.4g}"


def _moments(edges: Floats, whole: bool) -> tuple[Floats, Floats]:
    """Return the mean value and the mean square in each bucket."""
    if not whole:
        middle = 0.5 * (edges[1:] + edges[:-1])
        return middle, middle**2 + np.diff(edges) ** 2 / 12
    first, second = _integrals(edges, whole)
    return np.diff(first) / np.diff(edges), np.diff(second) / np.diff(edges)


def _integrals(x: Floats, whole: bool) -> tuple[Floats, Floats]:
    """Return integrals from a fixed place to x of the value and of its square; whole ones are rounded."""
    if not whole:
        return x**2 / 2, x**3 / 3
    number = _nearest(x)
    rest = x + 0.5 - number
    sums = number * (number - 1) / 2, (number - 1) * number * (2 * number - 1) / 6
    return sums[0] + number * rest, sums[1] + number**2 * rest


def _nearest(x: Any) -> Any:
    return np.floor(x + 0.5)


def _origin(near: float, whole: bool) -> float:
    """Return where to count from, so that squares of large numbers lose no digits."""
    return float(_nearest(near)) if whole else near


def _row(values: Any, name: str) -> Floats:
    try:
        found = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be a row of numbers.") from None
    if found.ndim != 1 or not np.all(np.isfinite(found)):
        raise DataError(f"{name} must be a row of finite numbers.")
    return found


def _numbers(values: Any) -> Floats:
    found = np.asarray(values, np.float64)
    if np.any(np.isnan(found)):
        raise ConfigError("NaN is no place in a distribution.")
    return found


def _normalised(probabilities: Floats) -> Floats:
    total = float(probabilities.sum())
    if np.any(probabilities < 0) or abs(total - 1) > _NEAR_ONE:
        raise DataError(
            "probabilities must not be negative and must add up to 1. "
            "Estimates for ranges have negative ones: see `survey.simplex.norm_sub`."
        )
    # What was divided once stays as it is, so that files give back what was written.
    return probabilities if abs(total - 1) < 1e-15 * len(probabilities) else probabilities / total


def _kept(values: Floats) -> Floats:
    values.setflags(write=False)
    return values
