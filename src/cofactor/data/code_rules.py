"""Which code suits a column of a side table, by its name and by what it holds."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.data.codes import Category, Code, Groups, Number, Region, Tags, Year, numbers_in, years_in
from cofactor.data.features import Column, is_title
from cofactor.data.layout import is_number
from cofactor.data.regions import is_zip
from cofactor.data.tablefiles import MOST_CATEGORIES

AGE_GROUPS = 7
MOVIELENS_AGES = (1, 18, 25, 35, 45, 50, 56)
"""In MovieLens 1M an age is where its group begins: under 18, 18 to 24, ..., 56 and above."""
DIGITS = 4
"""Centres, spreads and ends are rounded to so many significant digits: more would tell of single rows."""

_AGE = re.compile(r"\bages?\b")
_ZIP = re.compile(r"\b(zip|postal|post ?code|plz)")
_CODES = re.compile(r"\b(occupation|gender|sex|region|country|state)\b")
_YEAR = re.compile(r"\b(year|date|birthdate|birthday)\b")
_NAMES_SOMEBODY = re.compile(
    r"\b(ids?|uuid|index|unnamed|e ?mail|phone|(first|last|full|user|nick) ?name|login|address|url|link)\b"
)
_ALIKE = "all rows have the same"
_BETWEEN = re.compile(r"[;,\s]+")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How codes are chosen for a table's columns."""

    fewest: int = 5
    """A value that fewer rows have gets no number; so many rows lie at, or beyond, an end of groups."""
    as_category: tuple[str, ...] = ()
    """Columns of numbers that are codes, such as occupations."""

    def codes(self, columns: Sequence[Column]) -> dict[str, Code | str]:
        """Return by name how each column is coded, or why it is left out."""
        found = {column.name: self.code(column) for column in columns}
        titled = [name for name, code in found.items() if isinstance(code, Year) and is_title(name)]
        if sum(isinstance(code, Year) for code in found.values()) > len(titled):
            found |= dict.fromkeys(titled, "another column tells the year")
        return found

    def code(self, column: Column) -> Code | str:
        """Return how a column is coded, or why it is left out."""
        name, filled = words_of(column.name), [cell for cell in column.cells if cell]
        if not filled:
            return "it is empty"
        if column.name in self.as_category or (_CODES.search(name) and column.kind in ("number", "category")):
            return self._category(filled)
        if _ZIP.search(name):
            return Region() if _mostly([is_zip(cell) for cell in filled]) else "few of it are US zip codes"
        if _NAMES_SOMEBODY.search(name):
            return "it names somebody or something, and does not describe"
        if _AGE.search(name) and all(map(is_number, filled)):
            return self._ages(numbers_in(filled))
        years = years_in(filled) if is_title(column.name) or _YEAR.search(name) else []
        if _mostly([bool(year) for year in years]):
            made = self._number(numbers_in(years))
            return Year(made.centre, made.spread) if isinstance(made, Number) else made
        return self._usual(column, filled)

    def _usual(self, column: Column, filled: list[str]) -> Code | str:
        if column.kind == "number":
            return self._number(numbers_in(filled))
        if column.kind == "category":
            return self._category(filled)
        if column.kind == "text":
            return _text(filled)
        kept = self._frequent(
            [value for row in range(len(column.cells)) for value in set(column.values(row))]
        )
        return Tags(kept) if kept else self._too_rare

    def _category(self, filled: list[str]) -> Code | str:
        if len(set(filled)) == 1:
            return _ALIKE
        kept = self._frequent(filled)
        return Category(kept) if kept else self._too_rare

    @property
    def _too_rare(self) -> str:
        return (
            f"no value that at least {self.fewest} rows share; Coding.stated, or [attributes] in a --config "
            "file for users, can name its values"
        )

    @property
    def _too_few(self) -> str:
        return f"fewer than {self.fewest} rows have a number there"

    def _frequent(self, values: list[str]) -> tuple[str, ...]:
        """Return those that enough rows have, in the order of numbers if all are numbers."""
        kept = [value for value, count in Counter(values).items() if count >= self.fewest]
        return tuple(sorted(kept, key=float) if all(map(is_number, kept)) else sorted(kept))

    def _ages(self, numbers: NDArray[np.float64]) -> Code | str:
        known = np.sort(_known(numbers))
        if len(known) < self.fewest:
            return self._too_few
        if _are_movielens(known):
            return Groups(tuple(map(float, MOVIELENS_AGES[1:])))
        low, high = _rounded(known[self.fewest - 1]), _rounded(known[-self.fewest])
        return Groups.between(low, high, AGE_GROUPS) if low < high else _ALIKE

    def _number(self, numbers: NDArray[np.float64]) -> Number | str:
        known = _known(numbers)
        if len(known) < self.fewest:
            return self._too_few
        centre, spread = _rounded(known.mean()), _rounded(known.std())
        return Number(centre, spread) if spread > 0 else _ALIKE


def words_of(name: str) -> str:
    """Return a column's name as words: zipCode and zip_code are both "zip code"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]+", " ", name).lower()


def _text(filled: Sequence[str]) -> str:
    """Say that a column is text, and what would make tags of it if its cells consist of few words."""
    cells = set(filled)
    words = {word for cell in cells for word in _BETWEEN.split(cell) if word}
    few = len(words) < len(cells) and len(words) <= MOST_CATEGORIES
    return "it is text; write | between values, if a cell has several" if few else "it is text"


def _mostly(found: Sequence[bool]) -> bool:
    return 2 * sum(found) > len(found)


def _are_movielens(ages: NDArray[np.float64]) -> bool:
    """Say whether ages are those of MovieLens 1M: nothing else, and most of the seven."""
    found = set(ages.tolist())
    return found <= set(MOVIELENS_AGES) and len(found) >= 4


def _known(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    return numbers[np.isfinite(numbers)]


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
