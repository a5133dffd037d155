"""Hold what section 5.5 of the thesis says against our rows, figure by figure."""

from collections.abc import Callable, Sequence

from cofactor.papers.dpmf_rp_findings import Panel, panels
from cofactor.papers.results import ANY_EPSILON, Row
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
from cofactor.papers.thesis22_cluster_table import WRITTEN, chosen
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
        letter, *others = (
            by_panel.get(parties_panel(name, parties)) for name in (LETTER, TAXI, ADULT)
        )
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
        [Point.of(f"{panel.name}, {line}", one, more) for one, more in zip(own, own[1:], strict=False)]
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


def findings8(users: dict[str, int]) -> Callable[[Sequence[Row]], list[str]]:
    """Return what holds what is said of the number of local clusters against ours, for sets of these sizes."""

    def found(rows: Sequence[Row]) -> list[str]:
        own = [(panel, panel.lines[TWO_PARTY]) for panel in panels(rows) if TWO_PARTY in panel.lines]
        largest = max(_epsilon(panel) for panel, _ in own)
        at_largest = [
            _best(panel.name, _more(columns), [columns[local_column(CLUSTERS)]])
            for panel, columns in own
            if _epsilon(panel) == largest
        ]
        fewer = [
            _best(panel.name, _fewer(columns), _more(columns))
            for panel, columns in own
            if four_parties(panel.name)
        ]
        automatic = [point for panel, columns in own for point in _automatic(panel, columns, users)]
        return [
            *pooled("all sets", LARGER_HELPS, [at_largest]),
            *pooled("S = 4", FEWER_HELP, [fewer]),
            *pooled("all sets", AUTOMATIC_IS_GOOD, [automatic]),
        ]

    return found
