"""A line chart as one SVG file that needs nothing else: panels side by side, one legend below."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from cofactor.svg import COLOURS, GREY, PALE, decimals, nice_step, opened, stroke, text

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _RIGHT = 520, 330, 62, 34, 46, 118
"""Of a panel, and of the space around its frame; levels are named at the right."""
_HEAD, _LEGEND_LINE, _PER_ROW, _MARGIN = 40, 20, 2, 14


@dataclass(frozen=True)
class Point:
    """A measured number and its interval."""

    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One part of a chart."""

    title: str
    columns: Sequence[str]
    """Where points can stand, from left to right."""
    lines: dict[str, dict[str, Point]]
    """By name of the line and by column."""
    levels: dict[str, float] = field(default_factory=dict)
    """Dashed from left to right; those far from all points are left out."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Panels that share a legend."""

    title: str
    measure: str
    """What the numbers are."""
    panels: Sequence[Panel]
    joined: bool = True
    """Whether the points of a line are joined."""
    log: bool = False
    """Whether equal factors are equally far apart: for numbers above 0."""

    def svg(self) -> str:
        """Return the file's text."""
        names = list(dict.fromkeys(name for panel in self.panels for name in panel.lines))
        across = min(_PER_ROW, len(self.panels))
        down = math.ceil(len(self.panels) / _PER_ROW)
        width, top = across * _WIDTH, _HEAD + down * _HEIGHT
        columns = 3 if across > 1 else 2
        height = top + 14 + _LEGEND_LINE * math.ceil(len(names) / columns)
        parts = [
            *opened(width, height, self.title),
            text(width / 2, 25, self.title, anchor="middle", size=16, weight="bold"),
        ]
        for number, panel in enumerate(self.panels):
            at = (number % _PER_ROW) * _WIDTH, _HEAD + (number // _PER_ROW) * _HEIGHT
            parts += [f"<g transform='translate({at[0]},{at[1]})'>", *self._panel(panel, names), "</g>"]
        parts += _legend(names, columns, width, top + 14, joined=self.joined)
        return "\n".join([*parts, "</svg>\n"])

    def _panel(self, panel: Panel, names: list[str]) -> list[str]:
        frame = _Frame.around(panel, from_zero=not self.joined, log=self.log)
        parts = [
            text(_LEFT, _TOP - 12, panel.title, weight="bold"),
            *frame.axes(panel.columns, self.measure),
        ]
        parts += frame.levels(panel.levels)
        for number, (name, points) in enumerate(panel.lines.items()):
            # Lines stand a little beside each other, so that their error bars do not hide each other.
            aside = (number - (len(panel.lines) - 1) / 2) * min(8.0, 0.6 * frame.slot / len(panel.lines))
            placed = [
                (frame.x(place) + aside, points[column])
                for place, column in enumerate(panel.columns)
                if column in points
            ]
            parts += frame.line(placed, names.index(name), joined=self.joined)
        return parts


@dataclass(frozen=True)
class _Frame:
    """Where the numbers of a panel stand."""

    ticks: Sequence[float]
    """From the frame's lower end to its upper one."""
    count: int
    """Columns."""
    step: float | None
    """Between two ticks; None where equal factors are equally far apart."""

    @classmethod
    def around(cls, panel: Panel, *, from_zero: bool, log: bool) -> "_Frame":
        points = [point for line in panel.lines.values() for point in line.values()]
        ends = [y for point in points for y in (point.y, point.low, point.high) if y is not None] or [0, 1]
        if log and (above := [y for y in ends if y > 0]):
            return cls(_factors(min(above), max(above)), len(panel.columns), None)
        low, high = min([0.0, *ends] if from_zero else ends), max(ends)
        room = 0.5 * (high - low) or 0.1 * abs(high) or 1.0
        near = [y for y in panel.levels.values() if low - room <= y <= high + room]
        low, high = min([low, *near]), max([high, *near])
        step = nice_step((high - low or abs(high) or 1.0) / 5)
        bottom = math.floor(low / step + 1e-9)
        top = max(math.ceil(high / step - 1e-9), bottom + 1)
        return cls([number * step for number in range(bottom, top + 1)], len(panel.columns), step)

    @property
    def slot(self) -> float:
        return (_WIDTH - _LEFT - _RIGHT) / max(self.count, 1)

    def x(self, place: int) -> float:
        return _LEFT + self.slot * (place + 0.5)

    def y(self, value: float) -> float:
        inner, low, high = _HEIGHT - _TOP - _BOTTOM, self.ticks[0], self.ticks[-1]
        if self.step is None:  # an interval may reach below 0
            low, high, value = math.log(low), math.log(high), math.log(max(value, low))
        return _TOP + inner * (high - value) / (high - low)

    def axes(self, columns: Sequence[str], measure: str) -> list[str]:
        right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        style = "g" if self.step is None else f".{decimals(self.step)}f"
        parts = []
        for value in self.ticks:
            y = self.y(value)
            parts.append(stroke(_LEFT, y, right, y, PALE))
            parts.append(text(_LEFT - 7, y + 4, f"{value:{style}}", anchor="end"))
        parts += [
            stroke(_LEFT, _TOP, _LEFT, bottom, "black"),
            stroke(_LEFT, bottom, right, bottom, "black"),
        ]
        for place, column in enumerate(columns):
            parts.append(stroke(self.x(place), bottom, self.x(place), bottom + 5, "black"))
            parts.append(text(self.x(place), bottom + 19, column, anchor="middle"))
        middle = (_TOP + bottom) / 2
        turned = f"transform='rotate(-90 16 {middle:.1f})'"
        return [*parts, text(16, middle, measure, anchor="middle", more=turned)]

    def levels(self, levels: dict[str, float]) -> list[str]:
        """Draw levels, and their names beside them without overlap, from the top."""
        parts, right, last = [], _WIDTH - _RIGHT, -math.inf
        for name, value in sorted(levels.items(), key=lambda each: -each[1]):
            if self.ticks[0] <= value <= self.ticks[-1]:
                y = self.y(value)
                last = max(y + 4, last + 12)
                parts.append(stroke(_LEFT, y, right, y, GREY, more="stroke-dasharray='5 4'"))
                parts.append(text(right + 5, last, name, colour=GREY, size=11))
        return parts

    def line(self, placed: Sequence[tuple[float, Point]], kind: int, *, joined: bool) -> list[str]:
        colour = COLOURS[kind % len(COLOURS)]
        parts = []
        if joined and len(placed) > 1:
            path = " ".join(f"{x:.1f},{self.y(point.y):.1f}" for x, point in placed)
            parts.append(
                f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='1.8'{_dash(kind)}/>"
            )
        for x, point in placed:
            if point.low is not None and point.high is not None:
                parts.append(stroke(x, self.y(point.low), x, self.y(point.high), colour))
            parts.append(_marker(x, self.y(point.y), kind))
        return parts


def _factors(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten, from the last below some numbers to the first above them."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [float(f"{factor}e{power}") for power in powers for factor in (1, 2, 5)]
    first = max(number for number, tick in enumerate(ticks) if tick <= low)
    last = next(number for number, tick in enumerate(ticks) if tick >= high and number > first)
    return ticks[first : last + 1]


def _legend(names: Sequence[str], columns: int, width: float, top: float, *, joined: bool) -> list[str]:
    parts, each = [], (width - 2 * _MARGIN) / columns
    for number, name in enumerate(names):
        x = _MARGIN + 10 + (number % columns) * each
        y = top + (number // columns) * _LEGEND_LINE
        colour = COLOURS[number % len(COLOURS)]
        if joined:
            parts.append(stroke(x, y, x + 26, y, colour, more=f"stroke-width='1.8'{_dash(number)}"))
        parts += [_marker(x + 13, y, number), text(x + 33, y + 4, name)]
    return parts


def _marker(x: float, y: float, kind: int) -> str:
    colour = COLOURS[kind % len(COLOURS)]
    shapes = (
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4' fill='{colour}'/>",
        f"<rect x='{x - 3.6:.1f}' y='{y - 3.6:.1f}' width='7.2' height='7.2' fill='{colour}'/>",
        f"<path d='M{x:.1f} {y - 4.6:.1f}l4.6 8h-9.2z' fill='{colour}'/>",
        f"<path d='M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z' fill='{colour}'/>",
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3.6' fill='white' stroke='{colour}' stroke-width='1.8'/>",
    )
    return shapes[kind % len(shapes)]


def _dash(kind: int) -> str:
    """Tell lines apart that share a colour."""
    return " stroke-dasharray='2 3'" if kind >= len(COLOURS) else ""
