"""What a clustering tells: how large segments are, and how they differ from all users."""

from cofactor.report.charts import WIDTH, Dot, dot_chart, figure
from cofactor.report.folder import Folder
from cofactor.report.markup import RELEASED, Content, Markup, element, listed, section, table, together

_CELL, _ROW, _NAME = 62.0, 28, 170
_SCALE = 1.15
"""How much larger other pictures are drawn, which are as wide as text."""
_FAINT = 0.1
"""The deepest colour stands for at least this part of a column's range."""


def clusters(folder: Folder) -> Markup:
    """Draw sizes and centres."""
    found = folder.facts["clustering"]
    sizes, centres = [float(size) for size in found["sizes"]], found["centres"]
    names = [name for columns in found["columns"] for name in columns]
    whole = max(sum(sizes), 1e-12)
    dots = [
        Dot(name=f"segment {at}", value=size, told=f"{size:,.0f} ({size / whole:.0%})", tone="s0")
        for at, size in enumerate(sizes, 1)
    ]
    rows = [
        (f"segment {at}", f"{size:,.0f}", *(_shown(value) for value in centre))
        for at, (size, centre) in enumerate(zip(sizes, centres, strict=True), 1)
    ]
    return section(
        "segments",
        "The segments",
        listed(found.get("concerns", ())),
        dot_chart("How large they are, about", dots, x="users", from_zero=True, stems=True, beside=RELEASED),
        _picture(folder, sizes, names),
        table(
            ("segment", "users", *names),
            rows,
            caption="Centres, in the columns' own units",
            numeric=range(1, len(names) + 2),
        ),
        lead=f"{len(centres):,} segments of {folder.facts['data']['users']:,} users whom "
        f"{' and '.join(found['parties'])} have in common. Nobody's own segment is in this folder.",
    )


def _picture(folder: Folder, sizes: list[float], names: list[str]) -> Markup:
    """Draw a row for each column: by how much of its range each segment lies off all users' mean."""
    found = folder.facts["clustering"]
    ranges = [tuple(map(float, ends)) for own in found["ranges"] for ends in own]
    whole = max(sum(sizes), 1e-12)
    cells: list[list[float]] = []
    for at, (low, high) in enumerate(ranges):
        values = [float(centre[at]) for centre in found["centres"]]
        mean = sum(value * size for value, size in zip(values, sizes, strict=True)) / whole
        cells.append([(value - mean) / ((high - low) or 1.0) for value in values])
    most = max([_FAINT, *(abs(each) for row in cells for each in row)])
    wide = min(max((WIDTH - _NAME - 10) / max(len(sizes), 1), _CELL), 2 * _CELL)
    width, height = _NAME + wide * len(sizes) + 10, 26 + _ROW * len(names)
    parts: list[Content] = [
        _text(
            _NAME + wide * (at + 0.5), 16, f"segment {at + 1}" if wide > 70 else str(at + 1), "tick", "middle"
        )
        for at in range(len(sizes))
    ]
    for row, (name, values) in enumerate(zip(names, cells, strict=True)):
        top = 24 + row * _ROW
        parts.append(_text(_NAME - 10, top + 18, name if len(name) < 25 else f"{name[:23]}…", "name", "end"))
        parts += [_cell(at, top, value, most, name, wide) for at, value in enumerate(values)]
    picture = element(
        "svg",
        *parts,
        viewBox=f"0 0 {width:.0f} {height}",
        width=round(_SCALE * width),
        role="img",
        tabindex=0,
        aria_label="How segments differ from all users, column by column; the table below has the numbers.",
        class_="chart cells",
    )
    note = (
        "Bars show by how much of its range a column's mean lies below (left) or above (right) that of all."
    )
    return figure("How they differ from all users", picture, beside=RELEASED, note=note)


def _cell(at: int, top: float, value: float, most: float, name: str, wide: float) -> Markup:
    middle = _NAME + wide * (at + 0.5)
    length = abs(value) / most * (wide / 2 - 4)
    told = element("title", f"{name}, segment {at + 1}: {value:+.1%} of the range")
    bar = element(
        "rect",
        told,
        x=middle - (length if value < 0 else 0.0),
        y=top + 6,
        width=max(length, 1.0),
        height=_ROW - 12,
        class_="fill s1" if value < 0 else "fill s0",
    )
    line = element("line", x1=middle, y1=top + 3, x2=middle, y2=top + _ROW - 3, class_="rule")
    return together([bar, line])


def _text(x: float, y: float, words: str, kind: str, anchor: str) -> Markup:
    return element("text", words, x=x, y=y, text_anchor=anchor, class_=kind)


def _shown(value: float) -> str:
    """Write a number in its own unit: large ones without a point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
