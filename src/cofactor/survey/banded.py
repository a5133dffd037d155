"""Products with a matrix that is constant along a band, written out at the band's edges, in linear time."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import inlined, kernel
from cofactor.survey.method import Floats, Integers

Places = NDArray[np.uint32]
"""Indexes without a sign: no kernel asks whether they count from the end, which saves a third of the time."""


class Side(NamedTuple):
    """A matrix as seen from its rows, or from its columns: entries of a row that differ from `everywhere`."""

    low: Places
    """Where a row's band begins ..."""
    high: Places
    """... and ends."""
    left_start: Places
    """Where the entries before the band begin."""
    left: Floats
    """Those entries, padded with 0 to the same number in every row."""
    right_start: Places
    """Where the entries after the band begin."""
    right: Floats
    """Those entries, padded with 0."""
    inside: float
    """What an entry in the band has more than `everywhere`."""
    everywhere: float
    """What every entry has."""


class Reach(NamedTuple):
    """For each row, the cells that it touches at all, and those that it touches in full, ends included."""

    first: Integers
    full_first: Integers
    full_last: Integers
    last: Integers


def side_of(
    reach: Reach,
    *,
    cells_each: int,
    columns: int,
    entry: Callable[[Integers, Integers], Floats],
    inside: float,
    everywhere: float,
) -> Side:
    """Lay out one side of a matrix with columns of `cells_each` cells; `entry` gives single entries."""
    first = np.clip(reach.first // cells_each, 0, columns)
    last = np.clip(reach.last // cells_each + 1, 0, columns)
    low = np.clip(-(-reach.full_first // cells_each), first, last)
    high = np.clip((reach.full_last + 1) // cells_each, first, last)
    low, high = np.where(low < high, low, last), np.where(low < high, high, last)
    left_start, left = _window(first, low, columns, entry)
    right_start, right = _window(high, last, columns, entry)
    return Side(_places(low), _places(high), left_start, left, right_start, right, inside, everywhere)


def _window(
    begin: Integers, end: Integers, columns: int, entry: Callable[[Integers, Integers], Floats]
) -> tuple[Places, Floats]:
    """Return entries from begin to end of each row, in windows that are all alike and inside the matrix."""
    width = int(np.max(end - begin))
    start = np.minimum(begin, columns - width)
    column = start[:, None] + np.arange(width)
    meant = (column >= begin[:, None]) & (column < end[:, None])
    return _places(start), np.where(meant, entry(np.arange(len(begin))[:, None], column), 0.0)


def _places(indexes: Integers) -> Places:
    return indexes.astype(np.uint32)


@inlined
def add_up(values: Any, prefix: Any) -> None:
    """Fill in the prefix sums of values: one number more than there are values."""
    total = 0.0
    prefix[0] = total
    for at in range(len(values)):
        total += values[at]
        prefix[at + 1] = total


@inlined
def multiply(side: Any, values: Any, prefix: Any, out: Any) -> None:
    """Fill in the product of a matrix with values; their prefix sums are filled in, too."""
    add_up(values, prefix)
    base = side.everywhere * prefix[-1]
    for row in range(len(out)):
        total = base + side.inside * (prefix[side.high[row]] - prefix[side.low[row]])
        start = side.left_start[row]
        for at in range(side.left.shape[1]):
            total += side.left[row, at] * values[start + at]
        start = side.right_start[row]
        for at in range(side.right.shape[1]):
            total += side.right[row, at] * values[start + at]
        out[row] = total


@inlined
def smooth(x: Any) -> None:
    """Mix each number with its neighbours, (1, 2, 1) / 4; beyond an end lies the same as at the end."""
    before = x[0]
    for at in range(len(x) - 1):
        here = x[at]
        x[at] = 0.25 * (before + x[at + 1]) + 0.5 * here
        before = here
    x[-1] = 0.25 * before + 0.75 * x[-1]


@inlined
def log_likelihood(counts: Any, likely: Any) -> Any:
    """Return the logarithm of the probability of counts; every report must be possible."""
    total = 0.0
    for at in range(len(counts)):
        total += counts[at] * np.log(likely[at])
    return total


@kernel
def product(side: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply a matrix by values, one for each of its columns."""
    out = np.empty(len(side.low))
    multiply(side, values, np.empty(len(values) + 1), out)
    return out


@kernel
def likelihood_steps(
    rows: Any, columns: Any, counts: NDArray[np.float64], tolerance: float, smoothing: bool, most_steps: int
) -> tuple[NDArray[np.float64], int, float, bool]:
    """Climb the likelihood of counts from a uniform start: `likelihood.plain_steps` in one go."""
    buckets, reports = len(columns.low), len(rows.low)
    people = counts.sum()
    shares = counts / people
    x, gain, prefix = np.full(buckets, 1.0 / buckets), np.empty(buckets), np.empty(buckets + 1)
    likely, ratio, report_prefix = np.empty(reports), np.empty(reports), np.empty(reports + 1)
    last, step = -np.inf, 0
    while True:
        multiply(rows, x, prefix, likely)
        found = people * log_likelihood(shares, likely)
        settled = abs(found - last) < tolerance
        if settled or step == most_steps:
            return x, step, found, settled
        last, step = found, step + 1
        for at in range(reports):
            ratio[at] = shares[at] / likely[at]
        multiply(columns, ratio, report_prefix, gain)
        for at in range(buckets):
            x[at] *= gain[at]
        if smoothing:
            smooth(x)
