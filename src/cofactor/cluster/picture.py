"""A picture of clusters: how large each is, and how it differs from all users, column by column.

It is drawn from what was released, and from nothing else: there are no points in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np

from cofactor.cluster.method import Floats
from cofactor.cluster.records import Range
from cofactor.errors import ConfigError
from cofactor.svg import COLOURS, GREY, PALE, decimals, opened, stroke, text

_CELL, _ROW = 66, 24
"""Width and height of a cell."""
_BARS = 74
"""Height of the largest cluster's bar."""
_LETTER = 6.6
"""About how wide a letter is."""
_LONGEST = 30
"""Names of more letters than this are cut short; pointing at one shows all of it."""
_TOP, _EDGE, _GAP = 78, 24, 12
_NARROWEST = 660
_FAINT = 0.1
"""The deepest colour stands for at least this part of a range: where clusters hardly differ, it shows."""
_BLUE, _ORANGE = COLOURS[:2]
_EXPLAINED = "Every column's mean in each cluster, and in all. Colours: below or above that of all users."


def drawn(
    centres: Floats,
    sizes: Floats,
    *,
    parties: Sequence[str],
    columns: Sequence[Sequence[str]],
    ranges: Sequence[Range],
    title: str = "",
) -> str:
    """Draw clusters: a bar for each one's size, and below it its centre, a cell for every column.

    `centres` has a row for each cluster and the columns of all parties side by side, in their own units;
    `columns` names those of each party, `ranges` has one for each. Colours tell by how much of the range a
    centre lies above or below the mean of all users.
    """
    clusters, width = centres.shape
    if len(sizes) != clusters or sum(map(len, columns)) != width or len(ranges) != width:
        raise ConfigError(
            "a picture of clusters needs a size for each, and a name and range for each column."
        )
    names = [name for own in columns for name in own]
    sheet = _Sheet.of(names, tuple(len(own) for own in columns), clusters, parties)
    mean = _mean(centres, sizes)
    spans = np.array([high - low for low, high in ranges])
    away = (centres - mean) / spans
    most = max(_FAINT, float(np.abs(away).max(initial=0.0)))
    heading = title or f"{clusters} clusters of users"
    parts = [
        *opened(sheet.width, sheet.height, heading, _described(sizes)),
        text(_EDGE, 30, heading, size=16 if len(heading) < sheet.width / 10 else 11, weight="bold"),
        text(_EDGE, 50, _EXPLAINED, colour=GREY),
        *_bars(sheet, sizes),
        *_heads(sheet, parties),
        *_names(sheet, names, ranges),
        *_cells(sheet, mean[None], np.zeros((1, width)), ranges, first=0),
        *_cells(sheet, centres, away / most, ranges, first=1),
        *_legend(sheet, most),
    ]
    return "\n".join([*parts, "</svg>\n"])


def written(value: float, stated: Range) -> str:
    """Write a number of a column with as many digits as its range makes sense of."""
    low, high = stated
    places = decimals((high - low) / 1000)
    if max(abs(value), abs(low), abs(high)) >= 1e7 or places > 4:
        return f"{value:.3g}".replace("e+0", "e").replace("e-0", "e-")
    return f"{value:,.{places}f}" if abs(value) >= 10_000 else f"{value:.{places}f}"


@dataclass(frozen=True)
class _Sheet:
    """Where things stand."""

    left: float
    """Where the cells begin; names stand before them."""
    clusters: int
    tops: tuple[float, ...]
    """Where each column's row of cells begins."""
    heads: tuple[float, ...]
    """Where each party's name stands."""
    right: float
    """How much room ranges need behind the cells."""

    @classmethod
    def of(
        cls, names: Sequence[str], widths: Sequence[int], clusters: int, parties: Sequence[str]
    ) -> "_Sheet":
        longest = max(len(_short(name)) for name in (*names, *parties))
        place, tops, heads = float(_TOP + _BARS + 34), [], []
        for width in widths:
            heads.append(place + 15)
            tops += [place + _ROW + at * _ROW for at in range(width)]
            place += _ROW * (width + 1) + _GAP
        return cls(_EDGE + 14 + _LETTER * longest, clusters, tuple(tops), tuple(heads), 150)

    def x(self, cluster: int) -> float:
        """Return where a cluster's cells begin; those of all users are number 0, a little apart."""
        return self.left + _CELL * cluster + (_GAP if cluster else 0)

    @property
    def end(self) -> float:
        """Where the last cluster's cells end."""
        return self.x(self.clusters + 1)

    @property
    def width(self) -> int:
        return round(max(self.end + self.right, _NARROWEST))

    @property
    def height(self) -> int:
        return round(self.tops[-1] + _ROW + 52)


def _bars(sheet: _Sheet, sizes: Floats) -> list[str]:
    """Draw how many users each cluster has."""
    known = np.maximum(sizes, 0)
    most, total, base = float(known.max()), float(known.sum()), float(_TOP + _BARS + 16)
    parts = [stroke(sheet.x(1), base, sheet.end, base, GREY)]
    for cluster, size in enumerate(known.tolist()):
        x, height = sheet.x(cluster + 1), (_BARS - 22) * size / most if most else 0.0
        parts.append(
            f"<rect x='{x + 10:.1f}' y='{base - height:.1f}' width='{_CELL - 20}' height='{height:.1f}' "
            f"fill='{GREY}'><title>cluster {cluster}: about {size:,.0f} users</title></rect>"
        )
        part = f"{size / total:.0%}" if total else ""
        parts.append(text(x + _CELL / 2, base - height - 18, part, anchor="middle", weight="bold"))
        parts.append(text(x + _CELL / 2, base - height - 5, _counted(size), anchor="middle", size=11))
    parts.append(text(sheet.left + _CELL, base - 5, "about how many users", anchor="end", colour=GREY))
    return parts


def _heads(sheet: _Sheet, parties: Sequence[str]) -> list[str]:
    """Name clusters and parties."""
    base = _TOP + _BARS + 32
    words = ["all", *(f"cluster {cluster}" for cluster in range(sheet.clusters))]
    parts = [
        text(sheet.x(at) + _CELL / 2, base, word, anchor="middle", weight="bold")
        for at, word in enumerate(words)
    ]
    for party, y in zip(parties, sheet.heads, strict=True):
        parts.append(text(_EDGE, y, _short(party), weight="bold", more=f"aria-label='{escape(party)}'"))
        parts.append(stroke(_EDGE, y + 6, sheet.end, y + 6, PALE))
    return parts


def _names(sheet: _Sheet, names: Sequence[str], ranges: Sequence[Range]) -> list[str]:
    """Name columns, and say behind them which ranges they have."""
    parts = []
    for name, (low, high), top in zip(names, ranges, sheet.tops, strict=True):
        label = text(sheet.left - 8, top + 16, _short(name), anchor="end")
        parts.append(f"<g><title>{escape(name)}</title>{label}</g>")
        words = f"range {_end(low)} to {_end(high)}"
        parts.append(text(sheet.end + 8, top + 16, words, colour=GREY, size=11))
    return parts


def _cells(sheet: _Sheet, values: Floats, away: Floats, ranges: Sequence[Range], *, first: int) -> list[str]:
    """Draw cells of clusters with their numbers; `away` says how deep each colour is, from -1 to 1."""
    parts = []
    for cluster, (numbers, depths) in enumerate(zip(values.tolist(), away.tolist(), strict=True)):
        x = sheet.x(cluster + first)
        for top, number, depth, stated in zip(sheet.tops, numbers, depths, ranges, strict=True):
            fill = _colour(depth)
            parts.append(
                f"<rect x='{x:.1f}' y='{top:.1f}' width='{_CELL}' height='{_ROW}' fill='{fill}' "
                f"stroke='white' stroke-width='2'/>"
            )
            words, ink = written(number, stated), _ink(fill)
            parts.append(text(x + _CELL / 2, top + 16, words, anchor="middle", size=11, colour=ink))
    return parts


def _legend(sheet: _Sheet, most: float) -> list[str]:
    y, x, steps = sheet.tops[-1] + _ROW + 18, float(_EDGE), 8
    parts = [text(x, y + 11, f"{most:.0%} of the range below the mean", size=11)]
    x += 180
    for step, (low, high) in enumerate(pairwise(np.linspace(-1, 1, steps + 2).tolist())):
        fill = _colour((low + high) / 2)
        parts.append(f"<rect x='{x + 18 * step:.1f}' y='{y}' width='18' height='14' fill='{fill}'/>")
    parts.append(text(x + 18 * (steps + 1) + 8, y + 11, f"{most:.0%} above", size=11))
    return parts


def _mean(centres: Floats, sizes: Floats) -> Floats:
    weights = np.maximum(sizes, 0)
    if not weights.sum() > 0:
        weights = np.ones(len(sizes))
    found: Floats = weights @ centres / weights.sum()
    return found


def _described(sizes: Floats) -> str:
    told = ", ".join(f"cluster {at} has about {size:,.0f} users" for at, size in enumerate(sizes.tolist()))
    return f"{told}. Numbers are released centres; no user's own are shown."


def _colour(depth: float) -> str:
    """Return white for 0, blue towards -1 and orange towards 1."""
    full = _ORANGE if depth > 0 else _BLUE
    part = min(abs(depth), 1.0)
    # Cells of no colour are a little grey, or they would not be seen on white.
    plain = (244, 244, 244)
    mixed = (
        round(low + part * (int(full[at : at + 2], 16) - low))
        for low, at in zip(plain, (1, 3, 5), strict=True)
    )
    return "#" + "".join(f"{level:02x}" for level in mixed)


def _ink(fill: str) -> str:
    """Return black or white, whichever reads better on a colour (relative luminance of WCAG)."""
    levels = [int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4 for level in levels
    )
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "black" if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else "white"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _end(value: float) -> str:
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1e6 else f"{value:.4g}".replace("e+0", "e")


def _counted(size: float) -> str:
    return f"{size:,.0f}" if size < 100_000 else f"{size / 1e6:.3g}m" if size >= 1e6 else f"{size / 1e3:.3g}k"
