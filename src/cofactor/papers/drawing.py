"""From a figure's rows to a chart."""

from collections.abc import Sequence

from cofactor.papers.chart import Chart, Panel, Point
from cofactor.papers.results import ANY_EPSILON, Reproduction, Row

_LEVELS = {"global_mean": "global mean", "user_mean": "user mean", "bias": "biases"}
"""Baselines that are drawn, and what they are called."""


def chart(made: Reproduction) -> Chart:
    """Return the chart of a figure; rows without a number are left out, and so are panels without any."""
    rows = [row for row in made.rows if row.ours is not None]
    names = ", ".join(data["name"] for data in (made.data, *made.more_data))
    return Chart(
        title=f"{made.title} ({names})",
        measure=made.measure,
        panels=[
            _panel(panel, [row for row in rows if row.panel == panel], _levels(made))
            for panel in dict.fromkeys(row.panel for row in rows)
        ],
        joined=made.item.startswith("figure") and made.measure != "MB",
        log=made.log,
    )


def _levels(made: Reproduction) -> dict[str, float]:
    known = {name: made.baselines[key].ours for key, name in _LEVELS.items() if key in made.baselines}
    return {name: value for name, value in known.items() if value is not None}


def _panel(title: str, rows: Sequence[Row], levels: dict[str, float]) -> Panel:
    points = [(row, Point(row.ours, row.low, row.high)) for row in rows if row.ours is not None]
    lines: dict[str, dict[str, Point]] = {}
    for row, point in points:
        if row.column != ANY_EPSILON:
            lines.setdefault(row.line, {})[row.column] = point
    own = {row.line: point.y for row, point in points if row.column == ANY_EPSILON}
    columns = list(dict.fromkeys(row.column for row, _ in points if row.column != ANY_EPSILON))
    return Panel(title=title, columns=columns, lines=lines, levels=levels | own)
