"""Section 5.5 of the thesis, figure by figure: which clusterings stand side by side."""

from collections.abc import Callable

from cofactor.papers.cells import Effort
from cofactor.papers.results import ANY_EPSILON, Row
from cofactor.papers.thesis22_cluster_data import GAUSSIAN, LETTER, Crowd
from cofactor.papers.thesis22_cluster_methods import (
    Answers,
    CentralPrivate,
    NoPrivacy,
    Published,
    our_methods,
)
from cofactor.papers.thesis22_cluster_names import (
    BASIC,
    INDEPENDENT,
    LOSS,
    PRIVATE_CENTRES,
    PRIVATE_TABLE,
    PROPORTIONAL,
    TABLE_ERROR,
    TWO_PARTY,
    even,
    local_column,
    parties_panel,
    split_panel,
)
from cofactor.papers.thesis22_cluster_rows import Place, Way, rows_of
from cofactor.papers.thesis22_figures import epsilon_column
from cofactor.progress import Listener

EPSILONS, FEW_EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0), (0.5, 4.0)
PARTIES = (2, 4)
SPLITS = {GAUSSIAN: ((4, 4), (3, 5), (2, 6)), LETTER: ((8, 8), (6, 10), (4, 12))}
"""Of columns, in figure 5.4: even ones, and those of the thesis, which has 6:10 and 4:12 of loans."""
MORE_PARTIES = (2, 3, 4, 5)
SOME_EPSILONS = (0.5, 1.0, 4.0)
LOCAL_CLUSTERS, FEW_LOCAL_CLUSTERS = tuple(range(3, 10)), (3, 5, 7)

Rows = Callable[[Crowd, Effort, Listener], list[Row]]


def by_epsilon(measure: str) -> Rows:
    """Return figures 5.2 and 5.3: everything, for two and for four parties."""

    def rows(crowd: Crowd, effort: Effort, progress: Listener) -> list[Row]:
        places = [
            place
            for parties in PARTIES
            for place in _panel(parties_panel(crowd.name, parties), even(crowd.columns, parties), effort)
        ]
        return rows_of(crowd, places, measure, effort, progress)

    return rows


def uneven(crowd: Crowd, effort: Effort, progress: Listener) -> list[Row]:
    """Return figure 5.4: two parties, of which one has more columns."""
    places = [
        place
        for widths in SPLITS[crowd.name]
        for place in _panel(split_panel(crowd.name, widths), widths, effort)
    ]
    return rows_of(crowd, places, LOSS, effort, progress)


def by_parties(crowd: Crowd, effort: Effort, progress: Listener) -> list[Row]:
    """Return figure 5.5: from two parties to five."""
    places = [
        Place(
            panel=f"{crowd.name}, {epsilon_column(epsilon)}",
            column=f"S = {parties}",
            widths=even(crowd.columns, parties),
            ways=[NoPrivacy(), *_private(epsilon)],
        )
        for epsilon in effort.shown(SOME_EPSILONS, SOME_EPSILONS[1:2])
        for parties in MORE_PARTIES
    ]
    return rows_of(crowd, places, LOSS, effort, progress)


def table_errors(crowd: Crowd, effort: Effort, progress: Listener) -> list[Row]:
    """Return figure 5.6: how far the tables are off, from which final centres are made."""
    return rows_of(crowd, _places(crowd, effort, _private), TABLE_ERROR, effort, progress)


def components(crowd: Crowd, effort: Effort, progress: Listener) -> list[Row]:
    """Return figure 5.7: only the centres, or only the table, in private."""

    def ways(epsilon: float) -> list[Way]:
        lines = (TWO_PARTY, PRIVATE_TABLE, PRIVATE_CENTRES)
        return [Published(epsilon=epsilon, lines=lines), *our_methods(epsilon, parts=True)]

    return rows_of(crowd, _places(crowd, effort, ways), LOSS, effort, progress)


def by_local_clusters(crowd: Crowd, effort: Effort, progress: Listener) -> list[Row]:
    """Return figure 5.8: from three local clusters to nine."""
    places = [
        Place(
            panel=f"{parties_panel(crowd.name, parties)}, {epsilon_column(epsilon)}",
            column=local_column(local),
            widths=even(crowd.columns, parties),
            ways=[
                Published(epsilon=epsilon, lines=(TWO_PARTY,), local_clusters=local),
                *our_methods(epsilon, local),
            ],
        )
        for parties in PARTIES
        for epsilon in FEW_EPSILONS
        for local in effort.shown(LOCAL_CLUSTERS, FEW_LOCAL_CLUSTERS)
    ]
    return rows_of(crowd, places, LOSS, effort, progress)


def _panel(panel: str, widths: tuple[int, ...], effort: Effort) -> list[Place]:
    """Return what needs no epsilon, and all methods by epsilon."""
    level = Place(panel=panel, column=ANY_EPSILON, widths=widths, ways=[NoPrivacy()])
    private = [
        Place(
            panel=panel,
            column=epsilon_column(epsilon),
            widths=widths,
            ways=[*_private(epsilon), CentralPrivate(epsilon=epsilon)],
        )
        for epsilon in effort.shown(EPSILONS, FEW_EPSILONS)
    ]
    return [level, *private]


def _places(crowd: Crowd, effort: Effort, ways: Callable[[float], list[Way]]) -> list[Place]:
    return [
        Place(
            panel=parties_panel(crowd.name, parties),
            column=epsilon_column(epsilon),
            widths=even(crowd.columns, parties),
            ways=ways(epsilon),
        )
        for parties in PARTIES
        for epsilon in effort.shown(EPSILONS, FEW_EPSILONS)
    ]


def _private(epsilon: float) -> list[Way]:
    """Return all private methods for several parties."""
    lines = (BASIC, TWO_PARTY, PROPORTIONAL, INDEPENDENT)
    return [Published(epsilon=epsilon, lines=lines), Answers(epsilon=epsilon), *our_methods(epsilon)]
