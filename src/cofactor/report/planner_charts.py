"""Pictures and the table of what a planner tried, on made-up ratings."""

from collections.abc import Sequence
from itertools import groupby

from cofactor.report import names
from cofactor.report.charts import Line, line_chart
from cofactor.report.folder import Facts
from cofactor.report.markup import Markup, table
from cofactor.report.planner_folder import PlanFolder

_BESIDE = ("user_mean", "alone", "pooled")
"""What the recipe's own models are compared with: sends nothing, trains alone, and is not private."""


def curve_name(folder: PlanFolder, cell: Facts) -> str:
    """Return which picture a cell is in: all budgets of one population; nothing if none was tried."""
    found = [each for each in folder.cells if each["place"][:3] == cell["place"][:3]]
    tried = any(folder.training(each) is not None for each in found)
    return "-".join(str(at) for at in cell["place"][:3]) if tried else ""


def curves(folder: PlanFolder) -> list[str]:
    """Return the names of all pictures."""
    return [name for name, _ in groupby(curve_name(folder, cell) for cell in folder.cells) if name]


def curve(folder: PlanFolder, name: str) -> Markup:
    """Draw errors by budget, for one population."""
    cells = [cell for cell in folder.cells if curve_name(folder, cell) == name]
    tried = [found for cell in cells if (found := folder.training(cell)) is not None]
    own = tried[0]["own"]
    lines = [_line(each, tried) for each in (own, *_BESIDE) if all(each in found["rmse"] for found in tried)]
    users = tried[0]["users"]
    smaller = users < cells[0]["users"]
    title = f"{users:,} made-up users with {tried[0]['ratings'] / users:,.3g} ratings each"
    title += f", in place of {cells[0]['users']:,}" if smaller else ""
    return line_chart(title, lines, x="epsilon", y="root mean squared error", logarithmic_x=True)


def trainings(folder: PlanFolder) -> Markup:
    """Return a table of everything that was tried."""
    found = folder.facts["trainings"]
    columns = (
        *("Users", "Ratings", "Rounds", "Epsilon", "Trainings", "Error", "95% interval", "Spread"),
        *(names.model(name) for name in _BESIDE),
    )
    rows = [_row(each) for each in found]
    return table(columns, rows, caption="Root mean squared errors on made-up ratings", numeric=range(11))


def _row(training: Facts) -> tuple[str, ...]:
    own = training["rmse"][training["own"]]
    sure = own["low"] is not None
    return (
        f"{training['users']:,}",
        f"{training['ratings']:,}",
        "as chosen" if training["rounds"] is None else f"{training['rounds']:,}",
        f"{training['epsilon']:g}",
        str(training["repeats"]),
        f"{own['mean']:.4f}",
        f"{own['low']:.4f} to {own['high']:.4f}" if sure else "not known",
        f"{own['spread']:.4f}" if sure else "not known",
        *(f"{training['rmse'][name]['mean']:.4f}" if name in training["rmse"] else "" for name in _BESIDE),
    )


def _line(name: str, tried: Sequence[Facts]) -> Line:
    found = [(each["epsilon"], each["rmse"][name]) for each in tried]
    band = tuple(
        (error["mean"], error["mean"]) if error["low"] is None else (error["low"], error["high"])
        for _, error in found
    )
    return Line(
        name=names.model(name),
        points=tuple((epsilon, error["mean"]) for epsilon, error in found),
        band=band if name == tried[0]["own"] else (),
        dots=name == tried[0]["own"],
    )
