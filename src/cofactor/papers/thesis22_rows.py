"""From askings, done again and again, to rows of a figure."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cofactor.papers.cells import Effort
from cofactor.papers.results import Row
from cofactor.papers.thesis22_data import Numbers
from cofactor.papers.thesis22_methods import Errors
from cofactor.progress import Listener, Progress
from cofactor.randomness import InsecureRandom, Random


@dataclass(frozen=True, kw_only=True)
class Repeated(Row):
    """A mean of repeats, and one standard error of it each way."""

    repeats: int
    """How many: one standard error tells the less, the fewer there are."""
    values: tuple[float, ...] = ()
    """What each of them gave, where those of all lines go together: repeat by repeat, of the same users."""


class Asks(Protocol):
    """Something that asks people and knows how wrong the estimates are."""

    @property
    def epsilon(self) -> float:
        """What an answer costs."""

    def errors(self, numbers: Numbers, random: Random) -> Errors:
        """Return errors by line and panel."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """Where askings stand in a figure."""

    name: str
    askings: Sequence[Asks]


def rows_of(numbers: Numbers, columns: Sequence[Column], effort: Effort, progress: Listener) -> list[Row]:
    """Ask everything as often as effort says; panel by panel, and line by line.

    Chance is that of tests, so that a figure comes out the same again. The law is that of secure chance, but
    whoever knows the seed could take the noise off: these data are public or made up.
    """
    found: dict[tuple[str, str, str], list[float]] = {}
    costs: dict[tuple[str, str], float] = {}
    places = [(column.name, asking) for column in columns for asking in column.askings]
    for repeat in range(1, effort.seeds + 1):
        random = InsecureRandom(repeat)
        for column, asking in places:
            for line, errors in asking.errors(numbers, random).items():
                costs[line, column] = asking.epsilon
                for panel, error in errors.items():
                    found.setdefault((panel, line, column), []).append(error)
        progress(Progress("repeats", repeat, effort.seeds, numbers.name))
    order = list(dict.fromkeys(panel for panel, _, _ in found))
    return [
        _row(panel, line, column, costs[line, column], values)
        for (panel, line, column), values in sorted(found.items(), key=lambda each: order.index(each[0][0]))
    ]


def _row(panel: str, line: str, column: str, epsilon: float, values: Sequence[float]) -> Repeated:
    mean, several = statistics.fmean(values), len(values) > 1
    error = statistics.stdev(values) / math.sqrt(len(values)) if several else 0.0
    return Repeated(
        line=line,
        panel=panel,
        column=column,
        ours=mean,
        low=mean - error if several else None,
        high=mean + error if several else None,
        epsilon_label=epsilon,
        epsilon=epsilon,
        delta=0.0,
        repeats=len(values),
    )
