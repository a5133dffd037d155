"""How one column of a side table becomes numbers: one small class for each kind of column.

Whatever is coded lies within known bounds: standardised numbers in [-3, 3], all others are 0 or 1. A missing
value, which is an empty cell, or no number where one is coded, is NaN in all numbers of its column.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import plain_numbers, positive, whole
from cofactor.data.regions import REGIONS, region_of
from cofactor.errors import ConfigError

Numbers = NDArray[np.float32]
WIDEST = 3.0
"""Standardised numbers are cut off at so many spreads: one odd value must not outweigh all others."""
BETWEEN_TAGS = "|"
"""What stands between the values of a cell with several."""
_ALSO_BETWEEN_TAGS = (re.compile(r"[|;,]"), re.compile(r"[|;,\s]"))
"""What else may stand there, where it leaves nothing but known values."""
_HUGE = 1e15
"""Numbers beyond this are taken to be missing: arithmetic on them would overflow."""
_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")


@dataclass(frozen=True)
class Number:
    """A number, standardised: (value - centre) / spread, cut off at 3 spreads on both sides."""

    centre: float
    spread: float

    def __post_init__(self) -> None:
        _finite(centre=self.centre)
        positive(spread=self.spread)
        plain_numbers(self)

    def suffixes(self) -> tuple[str, ...]:
        """Return what is put behind the column's name to name each number."""
        return ("",)

    def words(self) -> str:
        """Say in words what becomes of the column."""
        return f"standardised about {self.centre:g} by {self.spread:g}"

    def encoded(self, cells: Sequence[str]) -> Numbers:
        """Return a row of numbers for each cell."""
        standard = (numbers_in(cells) - self.centre) / self.spread
        return np.clip(standard, -WIDEST, WIDEST).astype(np.float32)[:, None]


@dataclass(frozen=True)
class Year(Number):
    """The last year that a text names, standardised: "Heat (1995)", "01-Jan-1995"."""

    def suffixes(self) -> tuple[str, ...]:
        """Return what is put behind the column's name to name each number."""
        return (" (year)",)

    def words(self) -> str:
        """Say in words what becomes of the column."""
        return f"its year, {super().words()}"

    def encoded(self, cells: Sequence[str]) -> Numbers:
        """Return a row of numbers for each cell."""
        return super().encoded(years_in(cells))


@dataclass(frozen=True)
class Groups:
    """A number in groups: below the first edge, between two of them, and from the last one on."""

    edges: tuple[float, ...]
    """Where one group ends and the next begins; an edge itself lies in the upper one."""

    def __post_init__(self) -> None:
        if not isinstance(self.edges, tuple) or not self.edges:
            raise ConfigError(f"edges must be a list of numbers, at least one, got {self.edges!r}.")
        for edge in self.edges:
            _finite(edges=edge)
        if any(low >= high for low, high in pairwise(self.edges)):
            raise ConfigError(f"edges of groups must increase, got {self.edges!r}.")
        object.__setattr__(self, "edges", tuple(map(float, self.edges)))

    @classmethod
    def between(cls, low: float, high: float, groups: int = 7) -> "Groups":
        """Make groups of equal width between two ends; what lies beyond an end is in the end's group."""
        _finite(low=low, high=high)
        whole(groups=groups)
        if groups < 2 or low >= high:
            raise ConfigError(
                f"{groups} groups between {low:g} and {high:g} cannot be. Give at least 2, and a low end "
                "below the high one."
            )
        return cls(tuple(low + (high - low) * at / groups for at in range(1, groups)))

    def suffixes(self) -> tuple[str, ...]:
        """Return what is put behind the column's name to name each number."""
        edges = [f"{edge:g}" for edge in self.edges]
        between = [f"={first} to {last}" for first, last in pairwise(edges)]
        return (f"=below {edges[0]}", *between, f"={edges[-1]} and above")

    def words(self) -> str:
        """Say in words what becomes of the column."""
        edges = ", ".join(f"{edge:g}" for edge in self.edges)
        return f"{len(self.edges) + 1} groups, divided at {edges}"

    def encoded(self, cells: Sequence[str]) -> Numbers:
        """Return a row of numbers for each cell."""
        numbers = numbers_in(cells)
        places = np.searchsorted(np.array(self.edges), numbers, side="right")
        flags: Numbers = (places[:, None] == np.arange(len(self.edges) + 1)).astype(np.float32)
        flags[np.isnan(numbers)] = np.nan
        return flags


@dataclass(frozen=True)
class Category:
    """One of several values: 1 for that value and 0 for the others; 0 for all if it is none of them."""

    values: tuple[str, ...]

    def __post_init__(self) -> None:
        _different(self.values)

    def suffixes(self) -> tuple[str, ...]:
        """Return what is put behind the column's name to name each number."""
        return tuple(f"={value}" for value in self.values)

    def words(self) -> str:
        """Say in words what becomes of the column."""
        return f"one of {len(self.values)} values"

    def parts(self, cell: str) -> list[str]:
        """Return the values in a cell."""
        return [cell] if cell else []

    def encoded(self, cells: Sequence[str]) -> Numbers:
        """Return a row of numbers for each cell."""
        return _flags([self.parts(cell) for cell in cells], self.values)


@dataclass(frozen=True)
class Tags(Category):
    """Any number of several values, such as genres: 1 for those that a cell names and 0 for the others.

    They stand between bars; between semicolons, commas or spaces too, if all parts are known then.
    """

    def words(self) -> str:
        """Say in words what becomes of the column."""
        return f"any of {len(self.values)} values"

    def parts(self, cell: str) -> list[str]:
        """Return the values in a cell."""
        usual = _stripped(cell.split(BETWEEN_TAGS))
        others = (_stripped(between.split(cell)) for between in _ALSO_BETWEEN_TAGS)
        return next((parts for parts in (usual, *others) if self._known.issuperset(parts)), usual)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.values)


@dataclass(frozen=True)
class Region:
    """The US region of a zip code; whatever is no such code lies in "other"."""

    def suffixes(self) -> tuple[str, ...]:
        """Return what is put behind the column's name to name each number."""
        return tuple(f"={region}" for region in REGIONS)

    def words(self) -> str:
        """Say in words what becomes of the column."""
        return f"US region: {', '.join(REGIONS)}"

    def encoded(self, cells: Sequence[str]) -> Numbers:
        """Return a row of numbers for each cell."""
        return _flags([[region_of(cell)] if cell else [] for cell in cells], REGIONS)


Code = Number | Year | Groups | Category | Tags | Region


def unseen(code: Code, cells: Sequence[str]) -> int:
    """Return how many cells hold a value that has no number of its own, or is none where one is coded."""
    if isinstance(code, Region):
        return 0
    if not isinstance(code, Category):
        filled = [cell for cell in cells if cell]
        return int(np.isnan(code.encoded(filled)[:, 0]).sum())
    known = set(code.values)
    return sum(1 for cell in cells if not set(code.parts(cell)) <= known)


def why_missing(code: Code) -> str:
    """Say why a value counts as missing though it is there; nothing where an unseen value is 0 instead."""
    if isinstance(code, Category | Region):
        return ""
    return "names no year" if isinstance(code, Year) else "is not a number"


def numbers_in(cells: Sequence[str]) -> NDArray[np.float64]:
    """Return the cells as numbers, NaN where one is missing or is no number."""
    read = np.array([_number(cell) for cell in cells], np.float64)
    return np.where(np.abs(read) < _HUGE, read, np.nan)


def years_in(cells: Sequence[str]) -> list[str]:
    """Return the last year that each cell names, empty where it names none."""
    found = [_YEAR.findall(cell) for cell in cells]
    return [years[-1] if years else "" for years in found]


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _stripped(parts: Sequence[str]) -> list[str]:
    return [part.strip() for part in parts if part.strip()]


def _flags(rows: Sequence[Sequence[str]], known: Sequence[str]) -> Numbers:
    places = {value: at for at, value in enumerate(known)}
    flags = np.zeros((len(rows), len(known)), np.float32)
    for at, row in enumerate(rows):
        flags[at, [places[value] for value in row if value in places]] = 1
        if not row:
            flags[at] = np.nan
    return flags


def _finite(**settings: Any) -> None:
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not abs(float(value)) < _HUGE:
            raise ConfigError(f"{name} must be a number, got {value!r}.")


def _different(values: tuple[str, ...]) -> None:
    plain = isinstance(values, tuple) and all(isinstance(value, str) and value.strip() for value in values)
    if not plain or not values or len(set(values)) < len(values):
        raise ConfigError(
            f"values must be different texts, at least one, got {values!r}. Write them as ('F', 'M')."
        )
