"""A line chart as one SVG file that needs nothing else: panels side by side, one legend below."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#5d3a9b", "#555555")
"""Told apart by colour-blind readers, too (Okabe and Ito, two of our own)."""
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _RIGHT = 520, 330, 62, 34, 46, 118
"""Of a panel, and of the space around its frame; levels are named at the right."""
_HEAD, _LEGEND_LINE, _PER_ROW, _MARGIN = 40, 20, 2, 14
_FONT = "font-family='Helvetica, Arial, sans-serif'"
_GREY = "#6b6b6b"


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

    def svg(self) -> str:
        """Return the file's text."""
        names = list(dict.fromkeys(name for panel in self.panels for name in panel.lines))
        across = min(_PER_ROW, len(self.panels))
        down = math.ceil(len(self.panels) / _PER_ROW)
        width, top = across * _WIDTH, _HEAD + down * _HEIGHT
        columns = 3 if across > 1 else 2
        height = top + 14 + _LEGEND_LINE * math.ceil(len(names) / columns)
        parts = [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
            f"height='{height}' role='img' {_FONT} font-size='12'>",
            f"<title>{escape(self.title)}</title>",
            f"<rect width='{width}' height='{height}' fill='white'/>",
            _text(width / 2, 25, self.title, anchor="middle", size=16, weight="bold"),
        ]
        for number, panel in enumerate(self.panels):
            at = (number % _PER_ROW) * _WIDTH, _HEAD + (number // _PER_ROW) * _HEIGHT
            parts += [f"<g transform='translate({at[0]},{at[1]})'>", *self._panel(panel, names), "</g>"]
        parts += _legend(names, columns, width, top + 14, joined=self.joined)
        return "\n".join([*parts, "</svg>\n"])

    def _panel(self, panel: Panel, names: list[str]) -> list[str]:
        frame = _Frame.around(panel, from_zero=not self.joined)
        parts = [
            _text(_LEFT, _TOP - 12, panel.title, weight="bold"),
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

    bottom: int
    """The lowest and the highest tick, counted in steps."""
    top: int
    step: float
    count: int
    """Columns."""

    @classmethod
    def around(cls, panel: Panel, *, from_zero: bool) -> "_Frame":
        points = [point for line in panel.lines.values() for point in line.values()]
        ends = [y for point in points for y in (point.y, point.low, point.high) if y is not None] or [0, 1]
        low, high = min([0.0, *ends] if from_zero else ends), max(ends)
        room = 0.5 * (high - low) or 0.1 * abs(high) or 1.0
        near = [y for y in panel.levels.values() if low - room <= y <= high + room]
        low, high = min([low, *near]), max([high, *near])
        step = _nice((high - low or abs(high) or 1.0) / 5)
        bottom = math.floor(low / step + 1e-9)
        return cls(bottom, max(math.ceil(high / step - 1e-9), bottom + 1), step, len(panel.columns))

    @property
    def slot(self) -> float:
        return (_WIDTH - _LEFT - _RIGHT) / max(self.count, 1)

    def x(self, place: int) -> float:
        return _LEFT + self.slot * (place + 0.5)

    def y(self, value: float) -> float:
        inner = _HEIGHT - _TOP - _BOTTOM
        return _TOP + inner * (self.top - value / self.step) / (self.top - self.bottom)

    def axes(self, columns: Sequence[str], measure: str) -> list[str]:
        right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        decimals = max(0, -math.floor(math.log10(self.step)))
        parts = []
        for number in range(self.bottom, self.top + 1):
            value = number * self.step
            y = self.y(value)
            parts.append(_stroke(_LEFT, y, right, y, "#e4e4e4"))
            parts.append(_text(_LEFT - 7, y + 4, f"{value:.{decimals}f}", anchor="end"))
        parts += [
            _stroke(_LEFT, _TOP, _LEFT, bottom, "black"),
            _stroke(_LEFT, bottom, right, bottom, "black"),
        ]
        for place, column in enumerate(columns):
            parts.append(_stroke(self.x(place), bottom, self.x(place), bottom + 5, "black"))
            parts.append(_text(self.x(place), bottom + 19, column, anchor="middle"))
        middle = (_TOP + bottom) / 2
        turned = f"transform='rotate(-90 16 {middle:.1f})'"
        return [*parts, _text(16, middle, measure, anchor="middle", more=turned)]

    def levels(self, levels: dict[str, float]) -> list[str]:
        """Draw levels, and their names beside them without overlap, from the top."""
        parts, right, last = [], _WIDTH - _RIGHT, -math.inf
        for name, value in sorted(levels.items(), key=lambda each: -each[1]):
            if self.bottom <= value / self.step <= self.top:
                y = self.y(value)
                last = max(y + 4, last + 12)
                parts.append(_stroke(_LEFT, y, right, y, _GREY, more="stroke-dasharray='5 4'"))
                parts.append(_text(right + 5, last, name, colour=_GREY, size=11))
        return parts

    def line(self, placed: Sequence[tuple[float, Point]], kind: int, *, joined: bool) -> list[str]:
        colour = _COLOURS[kind % len(_COLOURS)]
        parts = []
        if joined and len(placed) > 1:
            path = " ".join(f"{x:.1f},{self.y(point.y):.1f}" for x, point in placed)
            parts.append(
                f"<polyline points='{path}' fill='none' stroke='{colour}' stroke-width='1.8'{_dash(kind)}/>"
            )
        for x, point in placed:
            if point.low is not None and point.high is not None:
                parts.append(_stroke(x, self.y(point.low), x, self.y(point.high), colour))
            parts.append(_marker(x, self.y(point.y), kind))
        return parts


def _legend(names: Sequence[str], columns: int, width: float, top: float, *, joined: bool) -> list[str]:
    parts, each = [], (width - 2 * _MARGIN) / columns
    for number, name in enumerate(names):
        x = _MARGIN + 10 + (number % columns) * each
        y = top + (number // columns) * _LEGEND_LINE
        colour = _COLOURS[number % len(_COLOURS)]
        if joined:
            parts.append(_stroke(x, y, x + 26, y, colour, more=f"stroke-width='1.8'{_dash(number)}"))
        parts += [_marker(x + 13, y, number), _text(x + 33, y + 4, name)]
    return parts


def _marker(x: float, y: float, kind: int) -> str:
    colour = _COLOURS[kind % len(_COLOURS)]
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
    return " stroke-dasharray='2 3'" if kind >= len(_COLOURS) else ""


def _nice(step: float) -> float:
    """Round a distance between ticks up to 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * (1 - 1e-9))


def _stroke(x: float, y: float, to_x: float, to_y: float, colour: str, *, more: str = "") -> str:
    return f"<line x1='{x:.1f}' y1='{y:.1f}' x2='{to_x:.1f}' y2='{to_y:.1f}' stroke='{colour}' {more}/>"


def _text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    size: int = 12,
    weight: str = "normal",
    colour: str = "black",
    more: str = "",
) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-size='{size}' font-weight='{weight}' "
        f"fill='{colour}' {more}>{escape(words)}</text>"
    )
