"""Pictures of a distribution: an SVG file that needs nothing else, and bars of letters for a terminal."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cofactor.config import whole as whole_number
from cofactor.errors import ConfigError
from cofactor.survey.bootstrap import Band
from cofactor.survey.distribution import Distribution, Floats, written
from cofactor.svg import COLOURS, GREY, PALE, decimals, nice_step, opened, stroke, text

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 36, 66, 76
"""Space around the frame."""
_BLUE, _ORANGE = COLOURS[:2]
_TICKS = 8
_UNEVEN = 4.0
"""Buckets that differ so much in width are drawn on a logarithmic scale."""


def svg(
    distribution: Distribution,
    *,
    band: Band | None = None,
    truth: Distribution | None = None,
    title: str = "",
    name: str = "",
) -> str:
    """Draw how much each bucket holds; with a band, what chance leaves open, and for simulations the truth.

    `name` says what the numbers are. Buckets of growing width are drawn on a logarithmic scale.
    """
    if band is not None and not np.array_equal(band.edges, distribution.edges):
        raise ConfigError("the band is of other buckets. Make both of the same answers.")
    axis = _Axis.of(distribution.edges)
    shares = {"estimate": distribution.probabilities}
    if band is not None:
        shares["high"] = np.asarray(band.probabilities.high)
        shares["low"] = np.asarray(band.probabilities.low)
    if truth is not None:
        shares["truth"] = _shares(truth, distribution.edges)
    frame = _Frame(axis, max(float(each.max()) for each in shares.values()))
    heading = title or (f"Distribution of {name}" if name else "Distribution")
    parts = [
        *opened(_WIDTH, _HEIGHT, heading, str(distribution)),
        text(_LEFT, 26, heading, size=16 if len(heading) < 70 else 11, weight="bold"),
        text(_LEFT, 47, _summary(distribution, band), colour=GREY),
        *frame.axes(name or "value", _per_bucket(distribution)),
        *_drawn(frame, distribution.edges, shares),
        *_legend(band, truth),
    ]
    return "\n".join([*parts, "</svg>\n"])


def bars(distribution: Distribution, *, width: int = 40, rows: int = 12) -> str:
    """Draw a distribution with letters: a line for each of about so many parts of its range."""
    whole_number(width=width, rows=rows)
    edges = _parts(distribution, rows)
    shares = _shares(distribution, edges)
    names = _names(edges, distribution.whole)
    longest, most = max(map(len, names)), float(shares.max())
    return "\n".join(
        f"{name:>{longest}}  {'#' * round(width * share / most):<{width}}  {share:.1%}"
        for name, share in zip(names, shares.tolist(), strict=True)
    )


@dataclass(frozen=True)
class _Axis:
    """From numbers to places between 0 and 1."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, edges: Floats) -> "_Axis":
        widths = np.diff(edges)
        uneven = bool(edges[0] > 0 and widths.max() > _UNEVEN * widths.min())
        return cls(float(edges[0]), float(edges[-1]), uneven)

    def places(self, values: Floats) -> Floats:
        if self.log:
            return np.asarray(np.log(values / self.low) / math.log(self.high / self.low))
        return (values - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """Return round numbers on the axis."""
        if self.log and self.high / self.low > 10:
            return _round_numbers(self.low, self.high, most)
        step = nice_step((self.high - self.low) / most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


@dataclass(frozen=True)
class _Frame:
    """Where numbers and shares stand in the picture."""

    axis: _Axis
    most: float

    @property
    def _step(self) -> float:
        return nice_step(100 * self.most / 5)

    @property
    def _top(self) -> float:
        """The highest tick, in percent."""
        return self._step * math.ceil(100 * self.most / self._step - 1e-9)

    def xs(self, values: Floats) -> Floats:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * self.axis.places(values)

    def ys(self, shares: Floats) -> Floats:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * 100 * shares / self._top

    def axes(self, name: str, measure: str) -> list[str]:
        right, bottom, step = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM, self._step
        parts = []
        for number in range(round(self._top / step) + 1):
            y = float(self.ys(np.array(number * step / 100)))
            parts.append(stroke(_LEFT, y, right, y, PALE))
            parts.append(text(_LEFT - 7, y + 4, f"{number * step:.{decimals(step)}f}%", anchor="end"))
        parts += [stroke(_LEFT, _TOP, _LEFT, bottom, "black"), stroke(_LEFT, bottom, right, bottom, "black")]
        ticks = self.axis.ticks(_TICKS)
        for x, words in zip(self.xs(np.array(ticks)).tolist(), _numbers(ticks), strict=True):
            parts.append(stroke(x, bottom, x, bottom + 5, "black"))
            parts.append(text(x, bottom + 18, words, anchor="middle"))
        turned = f"transform='rotate(-90 16 {(_TOP + bottom) / 2:.1f})'"
        parts.append(text((_LEFT + right) / 2, bottom + 36, name, anchor="middle"))
        return [*parts, text(16, (_TOP + bottom) / 2, measure, anchor="middle", more=turned)]

    def steps(self, edges: Floats, shares: Floats) -> list[tuple[float, float]]:
        """Return the corners of a curve that is level within each bucket."""
        xs, ys = np.repeat(self.xs(edges), 2)[1:-1], np.repeat(self.ys(shares), 2)
        return list(zip(xs.tolist(), ys.tolist(), strict=True))


def _drawn(frame: _Frame, edges: Floats, shares: dict[str, Floats]) -> list[str]:
    line, zero = frame.steps(edges, shares["estimate"]), float(frame.ys(np.array(0.0)))
    ends = [(line[-1][0], zero), (line[0][0], zero)]
    parts = []
    if "low" not in shares:
        parts.append(f"<polygon points='{_points([*line, *ends])}' fill='{_BLUE}' fill-opacity='0.15'/>")
    else:
        around = [*frame.steps(edges, shares["high"]), *reversed(frame.steps(edges, shares["low"]))]
        parts.append(f"<polygon points='{_points(around)}' fill='{_BLUE}' fill-opacity='0.35'/>")
    parts.append(_curve(line, _BLUE))
    if "truth" in shares:
        parts.append(_curve(frame.steps(edges, shares["truth"]), _ORANGE, " stroke-dasharray='5 3'"))
    return parts


def _legend(band: Band | None, truth: Distribution | None) -> list[str]:
    y, x = _HEIGHT - 14, float(_LEFT)
    parts = [stroke(x, y - 4, x + 24, y - 4, _BLUE, more="stroke-width='2'"), text(x + 30, y, "estimate")]
    x += 120
    if band is not None:
        parts.append(
            f"<rect x='{x:.1f}' y='{y - 10}' width='24' height='12' fill='{_BLUE}' fill-opacity='0.35'/>"
        )
        parts.append(text(x + 30, y, f"{band.level:.0%} interval of each bucket"))
        x += 230
    if truth is not None:
        more = "stroke-width='2' stroke-dasharray='5 3'"
        parts.append(stroke(x, y - 4, x + 24, y - 4, _ORANGE, more=more))
        parts.append(text(x + 30, y, "SIMULATION: the true values"))
    return parts


def _summary(distribution: Distribution, band: Band | None) -> str:
    mean, middle = (written(each) for each in (distribution.mean, distribution.quantile(0.5)))
    mean, middle = f"mean {mean}", f"median {middle}"
    if band is not None:
        mean, middle = f"{mean} ({band.mean})", f"{middle} ({band.quantile(0.5)})"
    return f"{mean}, {middle}"


def _per_bucket(distribution: Distribution) -> str:
    if distribution.whole and np.allclose(distribution.widths, 1):
        return "part with each number"
    return f"part in each of {len(distribution.probabilities):,} buckets"


def _shares(distribution: Distribution, edges: Floats) -> Floats:
    """Return how much lies between each two of these edges."""
    return np.diff(np.interp(edges, distribution.edges, distribution.cumulative))


def _parts(distribution: Distribution, rows: int) -> Floats:
    """Return edges of about so many parts of the range, at round numbers where it can be."""
    edges, half = distribution.edges, 0.5 if distribution.whole else 0.0
    low, high = float(edges[0]) + half, float(edges[-1]) + half
    axis = _Axis.of(edges)
    inner = np.array(axis.ticks(rows))
    if distribution.whole:
        inner = np.unique(np.ceil(inner))
    inner = inner[(inner > low + 1e-9) & (inner < high - 1e-9)]
    return np.concatenate([[low], inner, [high]]) - half


def _names(edges: Floats, whole: bool) -> list[str]:
    if not whole:
        return [f"{low} to {high}" for low, high in pairwise(_numbers(edges.tolist()))]
    both = pairwise(np.ceil(edges).astype(np.int64).tolist())
    return [f"{low:,}" if low + 1 == after else f"{low:,} to {after - 1:,}" for low, after in both]


def _numbers(values: Sequence[float]) -> list[str]:
    """Write numbers with as few digits as tell them apart."""
    for digits in range(4, 17):
        words = [f"{value:.{digits}g}" if abs(value) < 1e-4 else _plain(value, digits) for value in values]
        if len(set(words)) == len(values):
            break
    return words


def _plain(value: float, digits: int) -> str:
    if abs(value) >= 10 ** (digits + 3):
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    words = f"{value:,.{places}f}"
    return words.rstrip("0").rstrip(".") if "." in words else words


def _round_numbers(low: float, high: float, most: int) -> list[float]:
    """Return numbers 1, 2 and 5 times powers of ten; fewer of them, if that is too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [f * 10.0**power for power in powers for f in factors if low <= f * 10.0**power <= high]
        if len(found) <= most:
            return found
    return found[:: math.ceil(len(found) / most)]


def _curve(points: Sequence[tuple[float, float]], colour: str, more: str = "") -> str:
    return f"<polyline points='{_points(points)}' fill='none' stroke='{colour}' stroke-width='1.6'{more}/>"


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
