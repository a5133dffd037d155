"""Hold what the thesis says against our rows, figure by figure."""

from collections.abc import Callable, Mapping, Sequence

from cofactor.papers.dpmf_rp_findings import panels
from cofactor.papers.results import Row
from cofactor.papers.thesis22_claims import Claim, Point, best_of, told
from cofactor.papers.thesis22_data import BETA
from cofactor.papers.thesis22_figures import EPSILONS, SHAPES, STAR, epsilon_column, panel_of
from cofactor.papers.thesis22_methods import EMS, WASSERSTEIN
from cofactor.papers.thesis22_said import FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_7, Said

BARS = dict(zip(map(epsilon_column, EPSILONS), (0.0125, 0.0060, 0.0040, 0.0027, 0.0023), strict=True))
"""What SW with EMS may have at most on Beta(5, 2): our own demand, not the thesis'."""
_NEAR_BEST = 0.1
"""By which part an error may exceed the best one and still be among the best."""

Findings = Callable[[Sequence[Row]], list[str]]


def _held(said: Sequence[Said]) -> Findings:
    def found(rows: Sequence[Row]) -> list[str]:
        by_name = {panel.name: panel for panel in panels(rows)}
        return [
            sentence
            for names, measure, claim in said
            for name in names
            if (panel := by_name.get(panel_of(name, measure))) is not None
            for sentence in claim.found(panel)
        ]

    return found


_distances = _held(FIGURE_2)
findings3, findings4, findings7 = _held(FIGURE_3), _held(FIGURE_4), _held(FIGURE_7)


def findings2(rows: Sequence[Row]) -> list[str]:
    """Hold what is said of distances against ours, and ours against what we demand."""
    return [*_distances(rows), *_bars(rows)]


def _bars(rows: Sequence[Row]) -> list[str]:
    own = [row for row in rows if (row.panel, row.line) == (panel_of(BETA, WASSERSTEIN), EMS)]
    met = {row.column: row.ours is not None and row.ours <= BARS[row.column] for row in own}
    if not met:
        return []
    asked = ", ".join(f"{BARS[column]:g} at {column}" for column in met)
    missed = [column for column, there in met.items() if not there]
    verdict = f"Not met at {', '.join(missed)}" if missed else "Met"
    return [f"{own[0].panel}: we demand of {EMS} at most {asked}. {verdict}."]


def findings5(rows: Sequence[Row]) -> list[str]:
    """Hold what is said of the shapes of waves against ours."""
    square, *others = SHAPES
    best = Claim(says="the square wave has the lowest errors, whatever b is", lines=(square,), than=others)
    ends = Claim(says="the square wave is better than the triangle", lines=(square,), than=others[-1:])
    found = []
    for panel in panels(rows):
        steps = [
            point
            for line, next_line in zip(SHAPES, others, strict=False)
            for point in Claim(says="", lines=(line,), than=(next_line,)).points(panel)
        ]
        says = "errors grow, in general, as the ratio falls"
        found += [*best.found(panel), *ends.found(panel), told(panel.name, says, steps, most=True)]
    return found


def findings6(rows: Sequence[Row]) -> list[str]:
    """Say whether the b that epsilon settles is among the best."""
    says = f"its b is among the best (here: at most {_NEAR_BEST:.0%} above the best of the others)"
    found = []
    for panel in panels(rows):
        points = [_settled(name, own) for name, own in panel.lines.items()]
        ratios = sorted(point.ratio for point in points)
        beside = f"It has {ratios[0]:.2f} to {ratios[-1]:.2f} times the error of the best other."
        found.append(f"{told(panel.name, says, points)} {beside}")
    return found


def _settled(name: str, rows: Mapping[str, Row]) -> Point:
    settled = next(row for column, row in rows.items() if column.startswith(STAR))
    best = best_of([row for row in rows.values() if row is not settled])
    return Point.of(name, settled, best, times=1 / (1 + _NEAR_BEST))


def findings_table(rows: Sequence[Row]) -> list[str]:
    """Say whether methods are measured by what the thesis' table says."""
    other = [f"{row.line}, {row.column}" for row in rows if row.ours != row.paper]
    verdict = f"not: {'; '.join(other)}" if other else f"all {len(rows)} places as in the thesis"
    return [f"What each method's estimate can be measured by: {verdict}."]
