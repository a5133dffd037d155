"""What comes out of making a figure again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

ANY_EPSILON = "any epsilon"
"""The column of a row that has no noise to choose: a level that others are compared with."""
NO_NOISE = "no noise"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One point of a figure: the paper's number, if its text gives one, and ours."""

    line: str
    """Which line of the figure it belongs to."""
    panel: str
    """Which part of the figure: most have one for each unit of privacy."""
    column: str
    """Where on the line: an epsilon, a number of parties."""
    ours: float | None
    """None where there is nothing to measure; the note says why."""
    low: float | None = None
    high: float | None = None
    paper: float | None = None
    epsilon_label: float | None = None
    """What the paper would call epsilon."""
    epsilon: float | None = None
    """What the accountant proves for what was released."""
    delta: float | None = None
    note: str = ""
    at_home: bool = False
    """Whether it is a model made from raw ratings, which stays with its party: the budget is not its cost."""

    @property
    def private(self) -> bool:
        """Whether what was released costs no more than the column says."""
        return self.epsilon is not None and (
            self.epsilon_label is None or self.epsilon <= self.epsilon_label * (1 + 1e-6)
        )

    @property
    def name(self) -> str:
        """The line and the panel."""
        return f"{self.line}, {self.panel}"

    def as_json(self) -> dict[str, Any]:
        """Return the row with stable keys."""
        found = {"row": self.name} | asdict(self)
        return {key: found[key] for key in _ROW_KEYS}


_ROW_KEYS = (
    "row", "column", "paper", "ours", "low", "high", "epsilon_label", "epsilon", "delta", "note",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What a figure is to be compared with."""

    ours: float | None
    low: float | None = None
    high: float | None = None
    paper: float | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A figure made again."""

    paper: str
    item: str
    title: str
    measure: str
    """What the numbers are: "MSE", "MB", or in each column something else."""
    data: Mapping[str, Any]
    """Which data, how large, and how often they were split anew."""
    rows: Sequence[Row]
    baselines: Mapping[str, Baseline]
    findings: Sequence[str]
    """What the paper claims and what we find, a sentence each."""
    seconds: float
    reading: str = ""
    """How to read the numbers."""
    more_data: Sequence[Mapping[str, Any]] = ()
    """The same about further sets of data, where there are several."""
    decimals: int = 3
    """With how many to print the numbers."""
    log: bool = False
    """Whether to draw equal factors equally far apart."""

    def as_json(self) -> dict[str, Any]:
        """Return everything with stable keys."""
        return {
            "paper": self.paper,
            "item": self.item,
            "title": self.title,
            "measure": self.measure,
            "data": dict(self.data),
            "more_data": [dict(one) for one in self.more_data],
            "rows": [row.as_json() for row in self.rows],
            "baselines": {name: asdict(one) for name, one in self.baselines.items()},
            "findings": list(self.findings),
            "seconds": round(self.seconds, 1),
        }
