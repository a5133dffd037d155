"""What a paper claims about its lines, held against what we measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cofactor.papers.results import ANY_EPSILON, Baseline, Row

_TIE = 0.002
"""Errors that differ by less than this part count as equal: seeds differ by about as much."""
_ALIKE = 0.01
"""Errors that differ by less than this part show "no significant difference"."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a figure."""

    line: str
    panel: str

    def among(self, rows: Sequence[Row]) -> dict[str, float]:
        """Return what was measured, by column."""
        own = [row for row in rows if (row.line, row.panel) == (self.line, self.panel)]
        return {row.column: row.ours for row in own if row.ours is not None}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """That one line has lower errors than another, or the same."""

    says: str
    """The paper's claim, to follow "the paper says that"."""
    lower: Line
    than: Line
    alike: bool = False
    """Whether the claim is that there is no difference."""
    no_lower: bool = False
    """Whether the claim is only that it is not lower than the other: that it does not help."""
    by: str = "the paper says that"
    """Who says so."""
    also: tuple[Line, ...] = ()
    """More lines of the same panel of which the same is said."""

    def found(self, rows: Sequence[Row]) -> str:
        """Say whether we find it too."""
        pairs = self._pairs(rows)
        claim = f"{self.lower.panel}: {self.by} {self.says}."
        if not pairs:
            return f"{claim} Not measured here."
        return f"{claim} {self._verdict(pairs)} ({_range(pairs)})."

    def _pairs(self, rows: Sequence[Row]) -> list[tuple[float, float]]:
        others = self.than.among(rows)
        return [
            pair for line in (self.lower, *self.also) for pair in _paired(line.among(rows), others).values()
        ]

    def _verdict(self, pairs: Sequence[tuple[float, float]]) -> str:
        holds = [self._holds(ours, other) for ours, other in pairs]
        if not any(holds):
            return "Not found" if len(pairs) == 1 else f"Not found at any of {len(pairs)} points"
        if all(holds):
            return "Found" if len(pairs) == 1 else f"Found at all {len(pairs)} points"
        return f"Found at {sum(holds)} of {len(pairs)} points"

    def _holds(self, ours: float, other: float) -> bool:
        if self.alike:
            return abs(ours - other) <= _ALIKE * other
        return lower(ours, other) != self.no_lower


def lower(ours: float, other: float) -> bool:
    """Say whether an error is lower than another by more than seeds differ."""
    return ours < other * (1 - _TIE)


def _paired(ours: Mapping[str, float], others: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return by column the errors of two lines where both have one; a level stands in every column."""
    columns = dict.fromkeys((*ours, *others))
    if len(columns) > 1:
        columns.pop(ANY_EPSILON, None)
    found = {
        column: (ours.get(column, ours.get(ANY_EPSILON)), others.get(column, others.get(ANY_EPSILON)))
        for column in columns
    }
    return {column: (a, b) for column, (a, b) in found.items() if a is not None and b is not None}


def _range(pairs: Sequence[tuple[float, float]]) -> str:
    changes = sorted(ours - other for ours, other in pairs)
    if len(changes) == 1:
        return f"difference {changes[0]:+.3f}"
    return f"differences {changes[0]:+.3f} to {changes[-1]:+.3f}"


def against_baselines(rows: Sequence[Row], baselines: Mapping[str, Baseline]) -> list[str]:
    """Say for each panel whether the best of what was released beats what costs no privacy or no thought."""
    found = []
    for panel in dict.fromkeys(row.panel for row in rows):
        private = [
            (row.ours, row)
            for row in rows
            if row.panel == panel and row.private and row.ours is not None and not row.at_home
        ]
        if not private:
            continue
        value, best = min(private, key=lambda pair: pair[0])
        beaten, others = _beside(value, baselines)
        parts = [f"{panel}: the lowest private error is {value:.3f} ({best.line}, {best.column})"]
        parts += [f"lower than {', '.join(beaten)}"] if beaten else []
        parts += [f"not lower than {', '.join(others)}"] if others else []
        found.append("; ".join(parts) + ".")
    return found


_SIMPLE = {
    "global_mean": "the global mean",
    "user_mean": "the user mean",
    "item_mean": "the item mean",
    "bias": "biases",
}


def _beside(value: float, baselines: Mapping[str, Baseline]) -> tuple[list[str], list[str]]:
    """Return the simple models with a higher error, and the others."""
    beaten: list[str] = []
    others: list[str] = []
    for name, words in _SIMPLE.items():
        other = baselines[name].ours if name in baselines else None
        if other is not None:
            side = beaten if lower(value, other) else others
            side.append(f"{words} ({other:.3f})")
    return beaten, others
