"""Hold what section 5.5 of the thesis says against our rows, figure by figure."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from cofactor.papers.dpmf_rp_findings import Panel, panels
from cofactor.papers.results import Row
from cofactor.papers.thesis22_claims import Point, best_of
from cofactor.papers.thesis22_cluster_data import ADULT, CLUSTERS, GAUSSIAN, LETTER, TAXI
from cofactor.papers.thesis22_cluster_names import (
    INDEPENDENT,
    LOCAL_ANSWERS,
    NO_PRIVACY,
    PRIVATE_CENTRES,
    PRIVATE_TABLE,
    REPAIRED,
    SECURE,
    TWO_PARTY,
    four_parties,
    local_column,
    parties_panel,
)
from cofactor.papers.thesis22_cluster_said import (
    ALIKE,
    AUTOMATIC_IS_GOOD,
    BARELY_FALLS,
    FEWER_HELP,
    FIGURE_2,
    FIGURE_3,
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    FIGURE_7,
    FINER_GRID,
    GROWS_WITH_PARTIES,
    LARGER_HELPS,
    LOWER_ON_LETTER,
    SAME_BY_SPLIT,
    SIMILAR_EFFECT,
    TABLE_COSTS_MORE,
    Said,
    pooled,
)
from cofactor.papers.thesis22_cluster_table import WRITTEN, by_rule
from cofactor.papers.thesis22_figures import epsilon_column

BARS = {
    (parties_panel(GAUSSIAN, 2), REPAIRED): 1.25,
    (parties_panel(GAUSSIAN, 2), SECURE): 1.18,
    (parties_panel(GAUSSIAN, 4), REPAIRED): 1.75,
    (parties_panel(GAUSSIAN, 4), SECURE): 1.2,
    (parties_panel(LETTER, 2), REPAIRED): 1.2,
    (parties_panel(LETTER, 2), SECURE): 1.2,
}
"""What our loss may be at most at epsilon 1, divided by that of central k-means: our own demand."""
BARS_EPSILON = 1.0
_THREE = (TWO_PARTY, INDEPENDENT, LOCAL_ANSWERS)


def findings2(rows: Sequence[Row]) -> list[str]:
    """Hold what is said of losses against ours, and ours against what we demand."""
    finer = [
        _across(rows, NO_PRIVACY, parties_panel(name, 4), parties_panel(name, 2)) for name in _names(rows)
    ]
    return [*_held(FIGURE_2, rows), *pooled("all sets", FINER_GRID, finer), *_bars(rows)]


def findings3(rows: Sequence[Row]) -> list[str]:
    """Hold what is said of V-measures against ours."""
    by_panel = {panel.name: panel for panel in panels(rows)}
    points = []
    for parties in (2, 4):
        letter, *others = (by_panel.get(parties_panel(name, parties)) for name in (LETTER, TAXI, ADULT))
        known = [panel for panel in others if panel is not None]
        if letter is not None and known:
            points.append(_lower_than_all(letter, known))
    return [*_held(FIGURE_3, rows), *pooled("letter", LOWER_ON_LETTER, points)]


def findings4(rows: Sequence[Row]) -> list[str]:
    """Hold what is said of uneven splits against ours."""
    points = []
    for name in _names(rows):
        own = [row for row in rows if row.panel.split(",")[0] == name and row.line == TWO_PARTY]
        points.append([_range(f"{name}, {column}", some) for column, some in _by_column(own).items()])
    return [*_held(FIGURE_4, rows), *pooled("all sets", SAME_BY_SPLIT, points)]


def findings5(rows: Sequence[Row]) -> list[str]:
    """Hold what is said of more parties against ours."""
    points = [
        [Point.of(f"{panel.name}, {line}", one, more) for one, more in pairwise(own)]
        for panel in panels(rows)
        for line in _THREE
        for own in [list(panel.lines.get(line, {}).values())]
    ]
    return [*_held(FIGURE_5, rows), *pooled("all sets", GROWS_WITH_PARTIES, points, most=True)]


def findings6(rows: Sequence[Row]) -> list[str]:
    """Hold what is said of tables against ours."""
    points = []
    for panel in panels(rows):
        own = list(panel.lines.get(INDEPENDENT, {}).values())
        if len(own) > 1:
            points.append([Point.of(panel.name, own[0], own[-1], times=1 - ALIKE)])
    return [*_held(FIGURE_6, rows), *pooled("all sets", BARELY_FALLS, points)]


def findings7(rows: Sequence[Row]) -> list[str]:
    """Hold what is said of a private table and private centres against ours."""
    four = [
        _range(f"{panel.name}, {column}", some)
        for panel in panels(rows)
        if four_parties(panel.name)
        for column, some in _by_column(
            [row for row in panel.rows if row.line in (PRIVATE_TABLE, PRIVATE_CENTRES)]
        ).items()
    ]
    more = [
        _across(rows, PRIVATE_TABLE, parties_panel(name, 2), parties_panel(name, 4)) for name in _names(rows)
    ]
    return [
        *_held(FIGURE_7, rows),
        *pooled("S = 4", SIMILAR_EFFECT, [four]),
        *pooled("all sets", TABLE_COSTS_MORE, more),
    ]


def findings8(rows: Sequence[Row]) -> list[str]:
    """Hold what is said of the number of local clusters against ours."""
    own = [(panel.name, panel.lines[TWO_PARTY]) for panel in panels(rows) if TWO_PARTY in panel.lines]
    largest = max((_label(columns) for _, columns in own), default=0.0)
    larger = [
        _best(name, _beyond(columns, 1), _beyond(columns, 0))
        for name, columns in own
        if _label(columns) == largest
    ]
    fewer = [
        _best(name, _beyond(columns, -1), _beyond(columns, 1)) for name, columns in own if four_parties(name)
    ]
    automatic = [point for name, columns in own for point in _automatic(name, columns)]
    return [
        *pooled("all sets", LARGER_HELPS, [larger]),
        *pooled("S = 4", FEWER_HELP, [fewer]),
        *pooled("all sets", AUTOMATIC_IS_GOOD, [automatic]),
    ]


def _held(said: Sequence[Said], rows: Sequence[Row]) -> list[str]:
    return [sentence for one in said for sentence in one.found(rows)]


def _bars(rows: Sequence[Row]) -> list[str]:
    found = []
    for (panel, line), most in BARS.items():
        for row in rows:
            if (row.panel, row.line, row.column) == (panel, line, epsilon_column(BARS_EPSILON)) and row.ours:
                verdict = "Met" if row.ours <= most else "Not met"
                asked = f"we demand of {line} at most {most:g} at {row.column}"
                found.append(f"{panel}: {asked}. {verdict}: {row.ours:.3f}.")
    return found


def _names(rows: Sequence[Row]) -> list[str]:
    """Return the sets that are shown."""
    return list(dict.fromkeys(row.panel.split(",")[0] for row in rows))


def _by_column(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return {
        column: [row for row in rows if row.column == column]
        for column in dict.fromkeys(row.column for row in rows)
    }


def _across(rows: Sequence[Row], line: str, lower: str, higher: str) -> list[Point]:
    """Compare a line in one panel with itself in another, column by column."""
    own = {panel.name: panel.lines.get(line, {}) for panel in panels(rows)}
    first, second = own.get(lower, {}), own.get(higher, {})
    return [
        Point.of(f"{lower}, {column}", row, second[column])
        for column, row in first.items()
        if column in second
    ]


def _lower_than_all(letter: Panel, others: Sequence[Panel]) -> list[Point]:
    """Compare scores on letters with the lowest of other sets."""
    return [
        Point.of(f"{letter.name}, {line}, {column}", row, best_of(there))
        for line in _THREE
        for column, row in letter.lines.get(line, {}).items()
        if (there := [panel.lines[line][column] for panel in others if column in panel.lines.get(line, {})])
    ]


def _range(place: str, rows: Sequence[Row]) -> Point:
    """Say whether numbers that should be alike are."""
    lowest = best_of(rows)
    highest = max(rows, key=lambda row: row.ours or 0.0)
    return Point.of(place, highest, lowest, times=1 / (1 + ALIKE))


def _best(place: str, some: Sequence[Row], others: Sequence[Row]) -> Point:
    return Point.of(place, best_of(some), best_of(others))


def _beyond(columns: Mapping[str, Row], side: int) -> list[Row]:
    """Return rows with more local clusters than clusters (1), as many (0), or fewer (-1)."""
    order = list(columns)
    middle = order.index(local_column(CLUSTERS))
    parts = {1: order[middle + 1 :], 0: order[middle : middle + 1], -1: order[:middle]}
    return [columns[column] for column in parts[side]]


def _label(columns: Mapping[str, Row]) -> float:
    return next(iter(columns.values())).epsilon_label or 0.0


def _automatic(name: str, columns: Mapping[str, Row]) -> list[Point]:
    """Compare what the rule chooses with the best there is, if it was measured."""
    row = next(iter(columns.values()))
    if row.delta is None or row.epsilon_label is None:
        return []
    local = by_rule(
        users=round(1 / row.delta),
        parties=4 if four_parties(name) else 2,
        epsilon=row.epsilon_label,
        rho=WRITTEN,
    )
    if local_column(local) not in columns:
        return []
    others = [other for column, other in columns.items() if column != local_column(local)]
    return [Point.of(name, columns[local_column(local)], best_of(others), times=1 / (1 + ALIKE))]
