"""How far an estimate is from the truth (thesis section 3.3): numbers over equal buckets of [0, 1].

Distances are those of the unit interval, whatever the number of buckets: the thesis' (3.2) adds differences
up over buckets, here the sum is divided by how many there are.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import fraction
from cofactor.errors import DataError
from cofactor.survey.method import Gives

Floats = NDArray[np.float64]

WIDTHS = (0.1, 0.4)
"""Of the ranges that are asked for in the thesis."""
_TIE = 1e-12
"""Sums of the same numbers differ by their order."""


def wasserstein(truth: Any, estimate: Any) -> float:
    """Return how far mass must be moved, on average, to make one of the other."""
    return float(np.mean(np.abs(_difference(truth, estimate)[1:])))


def kolmogorov(truth: Any, estimate: Any) -> float:
    """Return the largest difference between how much lies below a place."""
    return float(np.max(np.abs(_difference(truth, estimate))))


def range_error(truth: Any, estimate: Any, width: float) -> float:
    """Return the mean error of how much lies in a range of this width.

    Where it begins is even in [0, 1 - width], as in section 3.6.3; the mean is exact, not of some ranges
    drawn by chance. Mass is even within buckets. Estimates may have negative numbers.
    """
    fraction(width=width)
    difference = _difference(truth, estimate)
    edges = np.linspace(0.0, 1.0, len(difference))
    starts = np.concatenate([edges, edges - width, [0.0, 1 - width]])
    starts = np.unique(starts[(starts >= 0) & (starts <= 1 - width)])
    errors = np.interp(starts + width, edges, difference) - np.interp(starts, edges, difference)
    return _mean_size(starts, errors)


def mean_error(truth: Any, estimate: Any) -> float:
    """Return how far means are apart; mass is in the middle of buckets."""
    first, second = _pair(truth, estimate)
    return abs(_mean(first) - _mean(second))


def variance_error(truth: Any, estimate: Any) -> float:
    """Return how far variances are apart; mass is in the middle of buckets."""
    first, second = _pair(truth, estimate)
    return abs(_variance(first) - _variance(second))


def decile_error(truth: Any, estimate: Any) -> float:
    """Return how far the places are apart that 10%, 20%, ... 90% lie below, on average.

    Such a place is the last edge with no more than that below it: Q(x, beta) of section 3.3.2.
    """
    first, second = _pair(truth, estimate)
    return float(np.mean(np.abs(_deciles(first) - _deciles(second))))


def errors(truth: Any, estimate: Any, gives: Gives = "distribution") -> dict[str, float]:
    """Return all errors that make sense for what an estimate gives (thesis, Table 3.2).

    An estimate that gives the mean is one number, or two: mean and variance.
    """
    if gives == "mean":
        return _moment_errors(truth, estimate)
    ranges = {f"range_{width:g}": range_error(truth, estimate, width) for width in WIDTHS}
    if gives == "ranges":
        return ranges
    return {
        "wasserstein": wasserstein(truth, estimate),
        "kolmogorov": kolmogorov(truth, estimate),
        **ranges,
        "mean": mean_error(truth, estimate),
        "variance": variance_error(truth, estimate),
        "deciles": decile_error(truth, estimate),
    }


def _moment_errors(truth: Any, estimate: Any) -> dict[str, float]:
    known, found = _row(truth, "truth"), _row(estimate, "estimate")
    if len(found) not in (1, 2):
        raise DataError("an estimate of the mean is one number, or two with the variance.")
    right = (_mean(known), _variance(known))
    names = ("mean", "variance")
    return {name: abs(a - float(b)) for name, a, b in zip(names, right, found, strict=False)}


def _mean_size(places: Floats, values: Floats) -> float:
    """Return the mean of |f| for f that is straight between places."""
    sizes, left, right = np.abs(values), values[:-1], values[1:]
    areas = 0.5 * (sizes[:-1] + sizes[1:])
    crossing = left * right < 0
    # Where f changes its sign, two triangles instead of a trapezoid.
    squares, total = left**2 + right**2, 2 * (sizes[:-1] + sizes[1:])
    areas[crossing] = squares[crossing] / total[crossing]
    return float(areas @ np.diff(places) / (places[-1] - places[0]))


def _difference(truth: Any, estimate: Any) -> Floats:
    """Return by how much cumulative sums differ, at every edge."""
    first, second = _pair(truth, estimate)
    return np.concatenate([[0.0], np.cumsum(first - second)])


def _mean(x: Floats) -> float:
    return float(x @ _middles(x))


def _variance(x: Floats) -> float:
    return float(x @ (_middles(x) - _mean(x)) ** 2)


def _middles(x: Floats) -> Floats:
    return (np.arange(len(x)) + 0.5) / len(x)


def _deciles(x: Floats) -> Floats:
    below = np.arange(1, 10) / 10 + _TIE
    return np.searchsorted(np.cumsum(x), below, side="right") / len(x)


def _pair(truth: Any, estimate: Any) -> tuple[Floats, Floats]:
    first, second = _row(truth, "truth"), _row(estimate, "estimate")
    if len(first) != len(second):
        raise DataError(f"truth has {len(first):,} buckets, the estimate {len(second):,}: use the same.")
    return first, second


def _row(values: Any, name: str) -> Floats:
    found = np.asarray(values, np.float64)
    if found.ndim != 1 or not len(found) or not np.all(np.isfinite(found)):
        raise DataError(f"{name} must be a row of finite numbers, one for each bucket.")
    return found
