"""A figure that can be made again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cofactor.papers.cells import Effort
from cofactor.papers.results import Baseline, Row
from cofactor.progress import Listener


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What a figure shows and how it is measured."""

    title: str
    measure: str
    """What its numbers are: "MSE" or "MB"."""
    rows: Callable[[Any, Effort, Listener], list[Row]]
    """Makes it with one set of data, of the kind that its paper is about: ratings, or numbers of people."""
    findings: Callable[[Sequence[Row]], list[str]]
    """Says what the paper claims and what the rows show."""
    baselines: Callable[[Any, Effort], dict[str, Baseline]] | None = None
    """What stands below it for comparison; None where that is among its rows."""
    reading: str = ""
    """How to read its numbers, in a sentence or two."""
    data: tuple[str, ...] = ()
    """The known sets that it shows, as far as they are there; any one, if none is named."""
    decimals: int = 3
    """With how many its numbers are printed."""
    repeats: tuple[int, int] | None = None
    """How often it is made anew, and how often where few must do; as its whole paper, if None."""
    log: bool = False
    """Whether it is drawn with equal factors equally far apart."""
