"""What dpmf-rp claims in words and numbers, held against what we measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cofactor.papers.dpmf_rp_cases import OWN_MEAN, POPULARITY, PRIVATE_POPULARITY
from cofactor.papers.dpmf_rp_measures import F1, RESCALED, RMSE
from cofactor.papers.dpmf_rp_numbers import OTHER_DATA
from cofactor.papers.results import Row

_NEAR = 0.15
"""The part by which a number may differ from the paper's and still count as reproduced."""


@dataclass(frozen=True)
class Panel:
    """One panel's rows, by line and column."""

    name: str
    rows: Sequence[Row]

    @property
    def lines(self) -> dict[str, dict[str, Row]]:
        """All rows, by line and column."""
        found: dict[str, dict[str, Row]] = {}
        for row in self.rows:
            found.setdefault(row.line, {})[row.column] = row
        return found

    def value(self, line: str, column: str) -> float | None:
        """Return what was measured there, if anything was."""
        row = self.lines.get(line, {}).get(column)
        return None if row is None else row.ours


def panels(rows: Sequence[Row]) -> list[Panel]:
    """Return the panels in their order."""
    names = dict.fromkeys(row.panel for row in rows)
    return [Panel(name, [row for row in rows if row.panel == name]) for name in names]


def other_data(rows: Sequence[Row]) -> list[str]:
    """Say which of the paper's numbers are for other data than ours."""
    names = dict.fromkeys(panel.name.split(",")[0] for panel in panels(rows))
    return [f"{name}: {OTHER_DATA[name]}" for name in names if name in OTHER_DATA]


def against_paper(rows: Sequence[Row]) -> list[str]:
    """Say of each line which of the paper's numbers come out again."""
    found = []
    for panel in panels(rows):
        for line, own in panel.lines.items():
            pairs = {c: (r.ours, r.paper) for c, r in own.items() if r.ours is not None and r.paper}
            if pairs:
                found.append(f"{panel.name}: {line}, {_verdict(pairs)}.")
    return found


def _verdict(pairs: Mapping[str, tuple[float, float]]) -> str:
    near = [column for column, (ours, paper) in pairs.items() if abs(ours - paper) <= _NEAR * paper]
    far = [f"{c} ({ours:.3g}, paper {paper:g})" for c, (ours, paper) in pairs.items() if c not in near]
    within = f"within {_NEAR:.0%} of the paper"
    if not far:
        return f"reproduced: all {within}"
    if not near:
        return f"not reproduced: {', '.join(far)}"
    return f"reproduced in part: {within} {', '.join(near)}; not {', '.join(far)}"


def against_trivial(rows: Sequence[Row]) -> list[str]:
    """Say of each line with the paper's noise whether it beats what is trivial, or as private."""
    found = []
    for panel in panels(rows):
        for line, own in panel.lines.items():
            some = next(iter(own.values()))
            if some.epsilon_label is not None and some.epsilon is not None:
                parts = [*_ranks(panel, line), *_rates(panel, line)]
                cost = f"truly epsilon {some.epsilon:.3g}, delta {some.delta or 0:g}, for each user"
                if parts:
                    found.append(f"{panel.name}: {line} ({cost}): {'; '.join(parts)}.")
    return found


def _ranks(panel: Panel, line: str) -> list[str]:
    f1 = panel.value(line, F1)
    others = {
        other: value
        for other in panel.lines
        if other.startswith((POPULARITY, PRIVATE_POPULARITY))
        and (value := panel.value(other, F1)) is not None
    }
    return [] if f1 is None or not others else [f"F1 {f1:.3f} {_beside(f1, others, higher=True)}"]


def _rates(panel: Panel, line: str) -> list[str]:
    mean = panel.value(OWN_MEAN, RMSE)
    columns = [column for column in (RMSE, RESCALED) if panel.value(line, column) is not None]
    if mean is None or not columns:
        return []
    return [
        f"{column} {value:.3f} {_beside(value, {OWN_MEAN: mean}, higher=False)}"
        for column in columns
        if (value := panel.value(line, column)) is not None
    ]


def _beside(value: float, others: Mapping[str, float], *, higher: bool) -> str:
    better = [f"{name} ({one:.3f})" for name, one in others.items() if (value > one) == higher]
    worse = [f"{name} ({one:.3f})" for name, one in others.items() if (value > one) != higher]
    parts = [f"better than {', '.join(better)}"] if better else []
    parts += [f"not better than {', '.join(worse)}"] if worse else []
    return ", ".join(parts)


def best_at(own: Mapping[str, Row], wanted: str, *, lowest: bool) -> str:
    """Say whether a line is best where the paper says; not where its points differ less than chance does."""
    values = {column: row.ours for column, row in own.items() if row.ours is not None}
    ordered = sorted(values, key=lambda column: values[column], reverse=lowest)
    worst, best = ordered[0], ordered[-1]
    chance = ((own[best].high or 0.0) - (own[best].low or 0.0)) / 2
    numbers = f"{values[worst]:.3f} to {values[best]:.3f}, +- {chance:.3f}"
    if abs(values[best] - values[worst]) <= chance:
        return f"Not to be seen: all are alike ({numbers})"
    return f"Found ({numbers})" if best == wanted else f"Not found: it is best at {best} ({numbers})"


def claimed(panel: Panel, says: str, found: bool | None, numbers: str) -> list[str]:
    """Say whether what the paper claims is found in a panel; nothing, where it was not measured."""
    if found is None:
        return []
    return [f"{panel.name}: the paper says that {says}. {'Found' if found else 'Not found'} ({numbers})."]
