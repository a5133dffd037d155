"""Figures 2 and 4 of dpmf-rp: how far to project, what noise and projection cost, which settings matter."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from cofactor.data.ratings import Ratings
from cofactor.factors.model import Factors
from cofactor.papers import dpmf_rp_measures as measures
from cofactor.papers.cells import Effort
from cofactor.papers.dpmf_rp_cases import (
    BIASES,
    OWN_MEAN,
    POPULARITY,
    Case,
    Loss,
    measured_cases,
    private_popularity_at,
    trivial,
)
from cofactor.papers.dpmf_rp_findings import Panel, best_at, panels
from cofactor.papers.dpmf_rp_measures import F1, MAP, RESCALED, RMSE, Measured
from cofactor.papers.dpmf_rp_method import core, facts_of, fresh, labelled, noiseless_case, private_case
from cofactor.papers.material import Material
from cofactor.papers.results import ANY_EPSILON, Row
from cofactor.progress import Listener

PROJECTION, PRIVATISATION, SHARE = "projection error", "privatisation error", "part of privatisation"
NOISELESS = "no noise"
_LEAST = 10
"""Of Yelp: how many ratings users and businesses have at least."""
_RATIOS, _FEW_RATIOS = (1, 2, 3, 4, 6, 10), (1, 3, 10)
_SPLIT_AT = 3
"""m/p of the error analysis."""


@dataclass(frozen=True)
class Corner:
    """One line of Figure 2, and what the text says of it."""

    label: float
    """What the paper calls epsilon."""
    participation: float
    """beta."""
    best: int
    """m/p with the lowest error, says the paper."""
    share: float | None
    """The part of the error that is privatisation's, says the paper."""

    @property
    def line(self) -> str:
        """The line's name."""
        return f"label {self.label:g}, beta {self.participation:g}"

    @property
    def noiseless(self) -> str:
        """The line without coins, with as many participants."""
        return f"{NOISELESS}, beta {self.participation:g}"


CORNERS = (
    Corner(1.0, 0.1, 3, 0.43),
    Corner(0.01, 0.1, 4, 0.45),
    Corner(1.0, 0.01, 4, None),
    Corner(0.01, 0.01, 6, 0.62),
)


@dataclass(frozen=True, eq=False)
class Point:
    """Where a case stands in a figure; its measures become lines or panels."""

    line: str
    column: str
    case: Case


def _measured(material: Material, points: Sequence[Point], effort: Effort, progress: Listener) -> list[Row]:
    """Measure all points; what was measured stands in `panel` of each row."""
    names = {f"{point.line}, {point.column}": point for point in points}
    cases = [
        # What a user has on average is told in the tables, not at every point.
        replace(point.case, line=name, note="" if point.case.label is not None else point.case.note)
        for name, point in names.items()
    ]
    return [
        replace(row, panel=row.column, line=names[row.line].line, column=names[row.line].column)
        for row in measured_cases(material, "", cases, effort, progress)
    ]


def figure2(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Measure errors over m/p, and split them at m/p = 3 as section 6.2.2 does."""
    shown = core(material, _LEAST)
    corners, ratios = effort.shown(CORNERS, CORNERS[:1]), effort.shown(_RATIOS, _FEW_RATIOS)
    recipes = {
        (corner, ratio): replace(fresh(shown), reduction=ratio, participation=corner.participation)
        for corner, ratio in product(corners, ratios)
    }
    points = [
        Point(corner.line, _over(ratio), private_case("", recipe, shown, corner.label, measure=both_errors))
        for (corner, ratio), recipe in recipes.items()
    ]
    # Cases 1 and 4 of the ablation; they are the same for all labels.
    without = {
        (corner.noiseless, ratio): recipe
        for (corner, ratio), recipe in recipes.items()
        if ratio in (1, _SPLIT_AT)
    }
    points += [
        Point(line, _over(ratio), noiseless_case("", recipe, measure=both_errors))
        for (line, ratio), recipe in without.items()
    ]
    for case in trivial(None):
        if case.line in (OWN_MEAN, BIASES):
            points.append(Point(case.line, ANY_EPSILON, replace(case, measure=_error)))
    rows = _measured(shown, points, effort, progress)
    return [*rows, *(row for panel in panels(rows) for row in _splits(panel, corners))]


def both_errors(model: Factors, train: Ratings, test: Ratings, seed: int) -> Measured:
    """Return the error of scores as they are, and of scores that users rescale at home."""
    again = measures.rating_error(measures.rescaled(model, train), test, seed)
    return {RMSE: measures.rating_error(model, test, seed)[RMSE], RESCALED: again[RMSE]}


def _error(model: Factors, train: Ratings, test: Ratings, seed: int) -> Measured:  # noqa: ARG001
    """Return the error of what predicts ratings as they are, for both panels."""
    found = measures.rating_error(model, test, seed)[RMSE]
    return {RMSE: found, RESCALED: found}


def _over(ratio: int) -> str:
    return f"m/p = {ratio}"


def _splits(panel: Panel, corners: Sequence[Corner]) -> list[Row]:
    """Split errors into what projection and privatisation add: the means of both ways to add them."""
    found = []
    for corner in corners:
        one, four = (panel.value(corner.noiseless, _over(ratio)) for ratio in (1, _SPLIT_AT))
        three, whole = (panel.value(corner.line, _over(ratio)) for ratio in (1, _SPLIT_AT))
        if one is None or three is None or four is None or whole is None:
            continue
        projection = ((four - one) + (whole - three)) / 2
        privatisation = ((three - one) + (whole - four)) / 2
        parts = {PROJECTION: projection, PRIVATISATION: privatisation}
        # Where one of them lowers the error, there are no parts of a whole.
        if min(projection, privatisation) > 0:
            parts[SHARE] = privatisation / (projection + privatisation)
        found += [
            Row(
                line=corner.line,
                panel=f"{panel.name}: error analysis at m/p = {_SPLIT_AT}",
                column=column,
                ours=value,
                paper=corner.share if column == SHARE else None,
            )
            for column, value in parts.items()
        ]
    return found


def findings2(rows: Sequence[Row]) -> list[str]:
    """Hold section 6.2.2 against ours."""
    found = []
    for panel, corner in product(panels(rows), CORNERS):
        own = panel.lines.get(corner.line, {})
        share = panel.value(corner.line, SHARE)
        if share is not None:
            told = "no number" if corner.share is None else f"{corner.share:.0%}"
            found.append(
                f"{panel.name}, {corner.line}: privatisation is {share:.0%} of the error; the paper has "
                f"{told}."
            )
        elif own and PROJECTION not in own:
            mean = panel.value(OWN_MEAN, ANY_EPSILON) or 0.0
            found.append(
                f"{panel.name}, {corner.line}: the paper says that the error is lowest around "
                f"{_over(corner.best)}. {best_at(own, _over(corner.best), lowest=True)}. The user's own mean "
                f"has {mean:.3f}."
            )
    return found


SWEPT: dict[str, tuple[str, Sequence[float], float]] = {
    "B1": ("user_limit", (0.0001, 0.0005, 0.001, 0.005, 0.01), 0.001),
    "k": ("factors", (6, 10, 14, 18, 22), 14),
    "lambda": ("penalty", (0.05, 0.1, 0.2, 0.4, 0.8), 0.2),
    "mu": ("item_penalty", (0.1, 0.5, 0.9, 1.5, 3.0), 0.9),
}
"""By the paper's name: our setting, the values shown, and where the text sees the best results."""


def figure4(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Change one setting at a time, with the paper's noise and without."""
    loss = labelled(fresh(material), facts_of(material.ratings), 1.0)[1]
    levels = _levels(material, loss, effort, progress)
    rows: list[Row] = []
    for name, (setting, values, _) in SWEPT.items():
        points = []
        for value in effort.shown(values, values[::2]):
            changed: dict[str, Any] = {setting: value}
            recipe = replace(fresh(material), **changed)
            column = f"{name} = {value:g}"
            private = private_case("", recipe, material, 1.0, measure=measures.ranked)
            points.append(Point("label 1", column, private))
            points.append(Point(NOISELESS, column, noiseless_case("", recipe, measure=measures.ranked)))
        found = _measured(material, points, effort, progress)
        rows += [
            replace(row, panel=f"{material.name}, {name}", line=f"{row.panel}, {row.line}")
            for row in (*found, *levels)
            if row.panel in (F1, MAP)
        ]
    return rows


def _levels(material: Material, loss: Loss, effort: Effort, progress: Listener) -> list[Row]:
    """Measure what is trivial once for all panels."""
    popular = next(case for case in trivial(None) if case.line == POPULARITY)
    points = [Point(case.line, ANY_EPSILON, case) for case in (popular, private_popularity_at(loss))]
    return _measured(material, points, effort, progress)


def findings4(rows: Sequence[Row]) -> list[str]:
    """Hold appendix K against ours: where each setting does best."""
    found = []
    for panel, line in product(panels(rows), (f"{F1}, label 1", f"{F1}, {NOISELESS}")):
        name = panel.name.rsplit(", ", 1)[-1]
        wanted = f"{name} = {SWEPT[name][2]:g}"
        found.append(
            f"{panel.name}: the paper says that results are best around {wanted}. {line}: "
            f"{best_at(panel.lines[line], wanted, lowest=False)}."
        )
    return found
