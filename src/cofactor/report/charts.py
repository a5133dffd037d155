"""Small pictures with real axes, values to point at, and the same numbers as a table for whoever cannot see.

Colours are classes that the style sheet knows, so that a picture is right on light and on dark pages.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cofactor.report.axes import Axis
from cofactor.report.markup import NOTHING, Content, Markup, element, folded, table, together

WIDTH, HEIGHT = 640, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 18, 34, 44
_BARE_TOP = 12
"""Where rows begin if nothing is written above them."""
_MOST_POINTS = 400
"""Of a line: more are no wider than a dot."""
_ROW = 30
_LETTER = 6.6
"""About how wide a letter is."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Numbers along an axis, and how sure they are."""

    name: str
    points: tuple[tuple[float, float], ...]
    band: tuple[tuple[float, float], ...] = ()
    """For each point, from where to where it may lie."""
    steps: bool = False
    """Whether a value stays until the next one."""
    dots: bool = False
    """Whether points are what was measured, and the line only leads the eye."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """A value that everything is compared with."""

    name: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Dot:
    """One number in a row of its own, and how sure it is."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    tone: str = "plain"
    """A class: "plain", "good", "doubt" or "bad", or "s0" to "s7"."""
    told: str = ""
    """A few words beside it; the number itself if left out."""


def line_chart(
    title: str,
    lines: Sequence[Line],
    *,
    x: str,
    y: str,
    levels: Sequence[Level] = (),
    beside: Content = None,
    logarithmic_x: bool = False,
    logarithmic_y: bool = False,
    from_zero: bool = False,
    lower_is_better: bool | None = None,
) -> Markup:
    """Draw lines over one axis, and levels to compare them with; `beside` stands next to the title."""
    kept = [_thinned(line) for line in lines]
    across = Axis.around(
        [at for line in kept for at, _ in line.points],
        start=_LEFT,
        end=WIDTH - _RIGHT,
        logarithmic=logarithmic_x,
        tight=True,
        whole=_whole(at for line in kept for at, _ in line.points),
    )
    heights = [value for line in kept for _, value in line.points]
    heights += [end for line in kept for ends in line.band for end in ends] + [each.value for each in levels]
    up = Axis.around(
        heights,
        start=HEIGHT - _BOTTOM,
        end=_TOP,
        logarithmic=logarithmic_y,
        from_zero=from_zero,
        ticks=5,
        whole=_whole(heights),
    )
    parts = [
        *_frame(across, up, x, _said(y, lower_is_better)),
        *(_level(level, up) for level in levels),
        *(each for at, line in enumerate(kept) for each in _drawn(line, at, across, up)),
    ]
    thin = sum(len(line.points) for line in kept) < sum(len(line.points) for line in lines)
    return figure(
        title,
        _picture(title, _told_lines(kept, levels, x, y), HEIGHT, parts),
        _legend([line.name for line in kept]),
        _numbers(kept, x, title),
        beside=beside,
        note="Of many points, some are shown." if thin else None,
    )


def dot_chart(
    title: str,
    dots: Sequence[Dot],
    *,
    x: str,
    levels: Sequence[Level] = (),
    beside: Content = None,
    from_zero: bool = False,
    stems: bool = False,
    lower_is_better: bool | None = None,
) -> Markup:
    """Draw numbers on one axis, each in its own row, with what is known of how sure they are.

    With `stems` a line leads to each from where the axis begins: sizes are told by their length.
    """
    left = min(_LEFT + max((len(dot.name) for dot in dots), default=0) * _LETTER - 40, 240)
    values = [each for dot in dots for each in (dot.value, dot.low, dot.high) if each is not None]
    values += [level.value for level in levels]
    across = Axis.around(values, start=left, end=WIDTH - 110, from_zero=from_zero)
    top = _TOP if levels else _BARE_TOP
    bottom = top + _ROW * len(dots)
    parts = [
        *(_upright(value, words, across, top, bottom) for value, words in across.marks()),
        _words((left + WIDTH - 110) / 2, bottom + 34, _said(x, lower_is_better), "axis", anchor="middle"),
        *(_upright_level(level, across, bottom) for level in levels),
        *(_row(dot, top + _ROW * (at + 0.5), across, left, stems) for at, dot in enumerate(dots)),
    ]
    said = "; ".join(f"{dot.name}: {_written(dot)}" for dot in dots[:12])
    rows = [(dot.name, f"{dot.value:.4g}", _range(dot.low, dot.high)) for dot in dots]
    return figure(
        title,
        _picture(title, f"{x}. {said}", bottom + _BOTTOM, parts),
        folded(
            "The numbers", table(("what", x, "range"), rows, caption=f"{title}: the numbers", numeric=(1, 2))
        ),
        beside=beside,
    )


def meter(
    name: str, value: float, most: float, *, told: str, ahead: float = 0.0, tone: str = "plain"
) -> Markup:
    """Draw how much of something is used up and, lighter, how much will be: what is `ahead`, in all."""
    shares = [(min(max(each / most, 0.0), 1.0) if most > 0 else 1.0) for each in (most, ahead, value)]
    bars = [
        element("rect", x=0, y=0, width=400 * share, height=14, rx=7, class_=kind)
        for share, kind in zip(shares, ("track", f"ahead fill {tone}", f"fill {tone}"), strict=True)
        if share
    ]
    picture = element(
        "svg", *bars, viewBox="0 0 400 14", role="img", aria_label=f"{name}: {told}", class_="meter"
    )
    return element("div", picture, element("span", told), class_="metered")


def figure(
    title: str, picture: Markup, *others: Content, beside: Content = None, note: str | None = None
) -> Markup:
    """Return a picture with its title, and what else belongs to it; a wide one scrolls by itself."""
    said = None if note is None else element("p", note, class_="aside")
    plot = element("div", picture, class_="plot")
    return element("figure", element("figcaption", title, " ", beside), plot, *others, said)


def _thinned(line: Line) -> Line:
    """Keep so many points that the picture stays small: always the first and the last one."""
    count = len(line.points)
    if count <= _MOST_POINTS:
        return line
    places = sorted({round(k * (count - 1) / (_MOST_POINTS - 1)) for k in range(_MOST_POINTS)})
    band = tuple(line.band[at] for at in places) if line.band else ()
    return Line(
        name=line.name,
        points=tuple(line.points[at] for at in places),
        band=band,
        steps=line.steps,
        dots=line.dots,
    )


def _picture(title: str, told: str, height: float, parts: Sequence[Markup]) -> Markup:
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH} {height:.0f}",
        role="img",
        tabindex=0,
        aria_label=f"{title}. {told}",
        class_="chart",
    )


def _frame(across: Axis, up: Axis, x: str, y: str) -> list[Markup]:
    """Draw both axes, with lines to read values by."""
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    levels = [
        together(
            [
                _stroke(_LEFT, up.place(value), right, up.place(value), "grid"),
                _words(_LEFT - 8, up.place(value) + 4, words, "tick", anchor="end"),
            ]
        )
        for value, words in up.marks()
    ]
    marks = [
        together(
            [
                _stroke(across.place(value), bottom, across.place(value), bottom + 5, "rule"),
                _words(across.place(value), bottom + 19, words, "tick", anchor="middle"),
            ]
        )
        for value, words in across.marks()
    ]
    return [
        *levels,
        *marks,
        _stroke(_LEFT, bottom, right, bottom, "rule"),
        _words((_LEFT + right) / 2, HEIGHT - 6, x, "axis", anchor="middle"),
        _words(6, 16, y, "axis"),
    ]


def _drawn(line: Line, at: int, across: Axis, up: Axis) -> list[Markup]:
    """Draw a line, its band below it, and a place to point at for each value."""
    places = [(across.place(x), up.place(y)) for x, y in line.points]
    parts = []
    if line.band:
        top = [(x, up.place(high)) for (x, _), (_, high) in zip(places, line.band, strict=True)]
        bottom = [(x, up.place(low)) for (x, _), (low, _) in zip(places, line.band, strict=True)]
        edge = _path([*top, *reversed(bottom)], steps=False)
        parts.append(element("path", d=f"{edge}Z", class_=f"band s{at % 8}"))
    parts.append(element("path", d=_path(places, steps=line.steps), class_=f"line s{at % 8}"))
    size = 3.5 if line.dots or len(places) == 1 else 1.8
    for (x, y), (along, value), ends in zip(
        places, line.points, line.band or ((None, None),) * len(places), strict=True
    ):
        told = f"{line.name}: {value:.4g}{_in_words(*ends)} at {along:,.6g}"
        parts.append(element("circle", element("title", told), cx=x, cy=y, r=size, class_=f"dot s{at % 8}"))
    return parts


def _path(places: Sequence[tuple[float, float]], *, steps: bool) -> str:
    if not places:
        return ""
    first, *others = places
    drawn = [f"M{first[0]:.1f} {first[1]:.1f}"]
    drawn += [f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}" for x, y in others]
    return "".join(drawn)


def _level(level: Level, up: Axis) -> Markup:
    height = up.place(level.value)
    return together(
        [
            _stroke(_LEFT, height, WIDTH - _RIGHT, height, "level"),
            _words(WIDTH - _RIGHT, height - 5, f"{level.name} {level.value:.4g}", "level", anchor="end"),
        ]
    )


def _upright(value: float, words: str, across: Axis, top: float, bottom: float) -> Markup:
    place = across.place(value)
    return together(
        [
            _stroke(place, top - 6, place, bottom, "grid"),
            _words(place, bottom + 16, words, "tick", anchor="middle"),
        ]
    )


def _upright_level(level: Level, across: Axis, bottom: float) -> Markup:
    place = across.place(level.value)
    return together(
        [
            _stroke(place, _TOP - 8, place, bottom, "level"),
            _words(place, _TOP - 14, f"{level.name} {level.value:.4g}", "level", anchor="middle"),
        ]
    )


def _row(dot: Dot, height: float, across: Axis, left: float, stem: bool) -> Markup:
    """Draw one number with its range."""
    place, named = across.place(dot.value), _shortened(dot.name, left)
    parts = [_words(left - 10, height + 4, named, "name", anchor="end", title=dot.name)]
    if stem:
        parts.append(_stroke(across.start, height, place, height, f"range {dot.tone}"))
    if dot.low is not None and dot.high is not None:
        ends = across.place(dot.low), across.place(dot.high)
        parts.append(_stroke(ends[0], height, ends[1], height, f"range {dot.tone}"))
    told = element("title", f"{dot.name}: {_written(dot)}")
    parts.append(element("circle", told, cx=place, cy=height, r=5, class_=f"dot {dot.tone}"))
    parts.append(_words(WIDTH - 100, height + 4, dot.told or f"{dot.value:.4g}", "tick"))
    return together(parts)


def _words(
    x: float, y: float, words: str, kind: str, *, anchor: str = "start", title: str | None = None
) -> Markup:
    told = NOTHING if title is None or title == words else element("title", title)
    return element("text", words, told, x=round(x, 1), y=round(y, 1), text_anchor=anchor, class_=kind)


def _stroke(x: float, y: float, to_x: float, to_y: float, kind: str) -> Markup:
    return element("line", x1=round(x, 1), y1=round(y, 1), x2=round(to_x, 1), y2=round(to_y, 1), class_=kind)


def _legend(names: Sequence[str]) -> Markup:
    """Name the lines, where there are several."""
    if len(names) < 2:
        return NOTHING
    return element(
        "ul",
        *(element("li", _swatch(at), name) for at, name in enumerate(names)),
        class_="legend",
    )


def _swatch(at: int) -> Markup:
    line = element("line", x1=0, y1=6, x2=22, y2=6, class_=f"line s{at % 8}")
    return element("svg", line, viewBox="0 0 22 12", width=22, height=12, aria_hidden="true")


def _numbers(lines: Sequence[Line], x: str, title: str) -> Markup:
    """Return the numbers of all lines, side by side, for whoever cannot see them."""
    along = sorted({at for line in lines for at, _ in line.points})
    by_line = [dict(line.points) for line in lines]
    rows = [
        (f"{at:,.6g}", *(f"{values[at]:.4g}" if at in values else "" for values in by_line)) for at in along
    ]
    columns = (x, *(line.name for line in lines))
    numbers = table(columns, rows, caption=f"{title}: the numbers", numeric=range(len(columns)))
    return folded("The numbers", numbers)


def _told_lines(lines: Sequence[Line], levels: Sequence[Level], x: str, y: str) -> str:
    """Say in words what a picture of lines shows."""
    said = [
        f"{line.name}: from {line.points[0][1]:.4g} to {line.points[-1][1]:.4g}"
        for line in lines
        if line.points
    ]
    said += [f"{level.name}: {level.value:.4g}" for level in levels]
    return f"{y} by {x}. {'; '.join(said)}."


def _whole(values: Iterable[float]) -> bool:
    """Say whether there are none but whole numbers, such as rounds."""
    return all(float(value).is_integer() for value in values)


def _said(x: str, lower_is_better: bool | None) -> str:
    if lower_is_better is None:
        return x
    return f"{x} ({'lower' if lower_is_better else 'higher'} is better)"


def _written(dot: Dot) -> str:
    return f"{dot.told or f'{dot.value:.4g}'}{_in_words(dot.low, dot.high)}"


def _in_words(low: float | None, high: float | None) -> str:
    found = _range(low, high)
    return f" ({found})" if found else ""


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{low:.4g} to {high:.4g}"


def _shortened(name: str, width: float) -> str:
    """Cut a name that is too long for its place; pointing at it shows the whole."""
    room = max(int((width - 16) / _LETTER), 4)
    return name if len(name) <= room else f"{name[: room - 1]}…"
