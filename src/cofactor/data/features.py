"""Attributes as numbers: one row for each id, one column for each number or category."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["number", "category", "tags", "text"]


@dataclass(frozen=True)
class Features:
    """Numbers that describe users or items."""

    names: tuple[str, ...]
    matrix: NDArray[np.float32]
    """One row for each id that was asked for, one column for each name."""


@dataclass(frozen=True)
class Column:
    """One column of a side table, as text; an empty cell is a missing value."""

    name: str
    kind: Kind
    """number; category (one value a cell); tags (several); text (titles and other values seldom shared)."""
    cells: tuple[str, ...]
    between: str | None = None
    """What stands between tags; None for spaces."""

    def numbers(self) -> NDArray[np.float64]:
        """Return the cells as numbers; missing ones are NaN."""
        return np.array([float(cell) if cell else np.nan for cell in self.cells])

    def values(self, row: int) -> list[str]:
        """Return the categories of one row."""
        cell = self.cells[row]
        parts = cell.split(self.between) if self.kind == "tags" else [cell]
        return [part.strip() for part in parts if part.strip()]


def is_title(name: str) -> bool:
    """Say whether a column of this name holds titles."""
    return name.lower().replace("_", "") in ("title", "movietitle", "itemtitle", "booktitle", "name")


def encoded(column: Column) -> Features:
    """Turn a column into numbers, one row for each row of its table.

    Numbers are standardised over the table and a missing one is 0, the mean. Categories and tags become
    one column for each value that the table holds, in alphabetical order; missing ones are 0 throughout.
    """
    if column.kind == "number":
        return Features((column.name,), _standardised(column.numbers())[:, None])
    values = [column.values(row) for row in range(len(column.cells))]
    known = sorted({value for row in values for value in row})
    place = {value: at for at, value in enumerate(known)}
    matrix = np.zeros((len(values), len(known)), np.float32)
    for row, cell in enumerate(values):
        matrix[row, [place[value] for value in cell]] = 1
    return Features(tuple(f"{column.name}={value}" for value in known), matrix)


def _standardised(numbers: NDArray[np.float64]) -> NDArray[Any]:
    known = np.isfinite(numbers)
    if not known.any():
        return np.zeros(len(numbers), np.float32)
    centred = np.where(known, numbers - numbers[known].mean(), 0)
    spread = centred[known].std()
    return (centred / (spread if spread > 0 else 1)).astype(np.float32)
