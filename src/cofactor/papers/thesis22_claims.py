"""What the thesis says of its lines, held against rows whose noise is known.

Repeats differ. One error counts as lower than another only if it is so by more than chance would make it in
0.3% of cases; otherwise nothing was seen there.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from cofactor.papers.dpmf_rp_findings import Panel
from cofactor.papers.results import Row
from cofactor.papers.thesis22_rows import Repeated

_CHANCE = 0.0027
"""How likely it may be that equal errors are taken for different ones: three standard deviations."""
_ROUNDING = 1e-9
"""What two ways of computing the same number may differ by, as a part of it."""
HOLDS, OPEN, FAILS = 1, 0, -1


@dataclass(frozen=True)
class Point:
    """What one place of a figure says of a claim that an error is lower than another."""

    place: str
    first: Row
    """What is said to be lower."""
    second: Row
    outcome: int
    """Whether it is, the contrary is, or nothing was seen."""

    @classmethod
    def of(cls, place: str, first: Row, second: Row, *, times: float = 1.0) -> "Point":
        """Compare so many times the first error with the second."""
        return cls(place, first, second, compared(first, second, times=times))

    @property
    def ratio(self) -> float:
        """By which factor the first error exceeds the second."""
        return _value(self.first) / _value(self.second) if _value(self.second) else math.inf

    def __str__(self) -> str:
        names = [(row.line, row.column, row.panel) for row in (self.first, self.second)]
        told = next((pair for pair in zip(*names, strict=True) if pair[0] != pair[1]), ("", ""))
        first, second = (
            f"{name} {_value(row):.5f}" for name, row in zip(told, (self.first, self.second), strict=True)
        )
        return f"{self.place} ({first}; {second})"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """That some lines have lower errors than others."""

    says: str
    """To follow "the thesis says that"."""
    lines: Sequence[str]
    """Which are lower: all of them, unless `best`."""
    than: Sequence[str]
    """Than all of these."""
    best: bool = False
    """Whether it is enough that the best of `lines` is."""
    times: float = 1.0
    """By which factor they are lower, at least."""
    no_higher: bool = False
    """Whether it is enough that they are not seen to be higher."""
    most: bool = False
    """Whether it is said of most cases only."""
    columns: Callable[[Sequence[str]], Sequence[str]] = lambda columns: columns
    """Of which columns it is said."""

    def found(self, panel: Panel) -> list[str]:
        """Say whether we find it in a panel; nothing, where its lines were not measured."""
        points = self.points(panel)
        return [told(panel.name, self.says, points, most=self.most)] if points else []

    def points(self, panel: Panel) -> list[Point]:
        """Return what each column says."""
        columns = list(dict.fromkeys(row.column for row in panel.rows))
        sides = {
            column: [
                [row for row in panel.rows if row.column == column and row.line in lines]
                for lines in (self.lines, self.than)
            ]
            for column in self.columns(columns)
        }
        return [self._point(column, *rows) for column, rows in sides.items() if all(rows)]

    def _point(self, column: str, ours: Sequence[Row], others: Sequence[Row]) -> Point:
        first = best_of(ours) if self.best else max(ours, key=_value)
        found = Point.of(column, first, best_of(others), times=self.times)
        if self.no_higher and found.outcome == OPEN and _repeats(first) > 1:
            return Point(column, first, found.second, HOLDS)
        return found


def best_of(rows: Sequence[Row]) -> Row:
    """Return the row with the lowest error."""
    return min(rows, key=_value)


def compared(first: Row, second: Row, *, times: float = 1.0) -> int:
    """Say whether the first error, so many times, is lower than the second."""
    repeats = min(_repeats(first), _repeats(second))
    if repeats < 2:
        return OPEN
    difference = times * _value(first) - _value(second)
    error = _error_of_difference(first, second, times)
    # Fewer degrees of freedom than Welch would count: rather nothing is seen than too much.
    limit = error * float(stdtrit(repeats - 1, 1 - _CHANCE / 2)) + _ROUNDING * abs(_value(second))
    return OPEN if abs(difference) <= limit else HOLDS if difference < 0 else FAILS


def _error_of_difference(first: Row, second: Row, times: float) -> float:
    """Return one standard error; where repeats go together, what they have in common makes no difference."""
    pairs = list(zip(_values(first), _values(second), strict=False))
    if not pairs:
        return math.hypot(times * _standard_error(first), _standard_error(second))
    return statistics.stdev(times * one - other for one, other in pairs) / math.sqrt(len(pairs))


def _values(row: Row) -> tuple[float, ...]:
    return row.values if isinstance(row, Repeated) else ()


def _repeats(row: Row) -> int:
    return row.repeats if isinstance(row, Repeated) else 1


def _standard_error(row: Row) -> float:
    return math.inf if row.low is None or row.high is None else (row.high - row.low) / 2


def told(name: str, says: str, points: Sequence[Point], *, most: bool = False) -> str:
    """Say what was claimed of a panel, and whether the points confirm it."""
    counts = Counter(point.outcome for point in points)
    against = [point for point in points if point.outcome == FAILS]
    parts = [f"{counts[HOLDS]} of {len(points)} points"]
    parts += [f"within the noise at {counts[OPEN]}"] if counts[OPEN] else []
    if against:
        parts.append(f"the contrary at {len(against)}, most at {max(against, key=lambda one: one.ratio)}")
    return f"{name}: the thesis says that {says}. {_verdict(counts, most=most)}: {'; '.join(parts)}."


def _verdict(counts: Counter[int], *, most: bool) -> str:
    """Confirm what holds at more than half of the points, and of all cases only if none is contrary."""
    half, fails = counts.total() / 2, counts[FAILS]
    if counts[HOLDS] > half and (most or not fails):
        return "Confirmed"
    return "Not confirmed" if fails and (not most or fails >= half) else "Not settled"


def _value(row: Row) -> float:
    return math.inf if row.ours is None else row.ours
