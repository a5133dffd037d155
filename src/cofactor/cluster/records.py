"""`Records`: what a party knows about its users: a row for each, with an id and a number in every column."""

import math
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from cofactor.cluster.method import Floats
from cofactor.data.person_tables import PersonTable, column_names, read_person_table
from cofactor.errors import ConfigError, DataError, did_you_mean
from cofactor.federation.party import check_name, fingerprint, ledger_path, named_after
from cofactor.privacy.budget import Budget

Range = tuple[float, float]
"""The lowest and the highest number of a column, agreed on beforehand."""

_OTHER_NUMBER = re.compile(r"[-+]?[\d.,\s]*\d\s*%?")
"""A number as some write it: 3,5 or 1,200 or 12%."""
_WORDS = 0.5
"""A column is one of numbers if more than this part of its filled cells are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Records:
    """A party's columns of its users: private, but for their names and ranges."""

    name: str
    """Letters, digits, dots, dashes and spaces: it names files, too."""
    ids: tuple[str, ...] = field(repr=False)
    """Whom each row is about; everybody once."""
    columns: tuple[str, ...]
    """What the columns are called: public."""
    values: Floats = field(repr=False)
    """A row for each user, a number for each column; NaN where one is missing."""
    ranges: Mapping[str, Range] = field(default_factory=dict, repr=False)
    """Between which numbers each column lies: public, and declared. What lies outside counts as the nearer
    end. A range that is left out is read off the data."""
    unstated: tuple[str, ...] = ()
    """Columns whose ranges were read off the data: their smallest and largest numbers are somebody's."""
    file: Path | None = None
    """Where the numbers came from; the ledger lies beside it."""
    fingerprint: str = field(default="", repr=False)
    """Which data these are: the hash of the file's bytes. It never leaves."""
    budget: Budget | None = None
    """A smaller budget of its own, if the party asks for more privacy than others do."""
    left_out: tuple[str, ...] = ()
    """Columns of the file that hold no numbers, and are not used."""

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "ids", _ids(self.ids, self.name))
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "values", _values(self.values, self.name))
        self._check_columns()
        for column, stated in self.ranges.items():
            _check_range(column, stated, self.columns, self.name)
        missing = [column for column in self.columns if column not in self.ranges]
        known = {column: (float(low), float(high)) for column, (low, high) in self.ranges.items()}
        found = known | {column: self._read_off(column) for column in missing}
        ordered = {column: found[column] for column in self.columns}
        object.__setattr__(self, "ranges", MappingProxyType(ordered))
        object.__setattr__(self, "unstated", tuple(dict.fromkeys((*self.unstated, *missing))))

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        id: str | None = None,
        columns: Sequence[str] | None = None,
        ranges: Mapping[str, Range] | None = None,
        name: str | None = None,
        member: str | None = None,
    ) -> "Records":
        """Read a table: see `read_records`."""
        return read_records(path, id=id, columns=columns, ranges=ranges, name=name, member=member)

    @property
    def ledger_path(self) -> Path | None:
        """Where its ledger lies, if it has a file."""
        return None if self.file is None else ledger_path(self.file)

    def __len__(self) -> int:
        return len(self.ids)

    def points(self) -> Floats:
        """Return the rows with every column scaled from its range to [-1, 1]; NaN stays."""
        return to_points(self.values, tuple(self.ranges.values()))

    def with_ranges(self, ranges: Mapping[str, Range]) -> "Records":
        """Return the same with ranges stated for some columns, or all."""
        unstated = tuple(column for column in self.unstated if column not in ranges)
        return replace(self, ranges={**self.ranges, **ranges}, unstated=unstated)

    def _check_columns(self) -> None:
        if self.values.shape != (len(self.ids), len(self.columns)):
            raise DataError(
                f"{self.name}: values have shape {self.values.shape} for {len(self.ids):,} ids and "
                f"{len(self.columns):,} columns. Give a row for each id, a number for each column."
            )
        if not self.columns:
            raise DataError(f"{self.name}: there is no column. Name at least one of numbers.")
        if not all(isinstance(column, str) and column.strip() for column in self.columns):
            raise DataError(f"{self.name}: every column needs a name.")
        if len(set(self.columns)) < len(self.columns):
            raise DataError(f"{self.name}: two columns have the same name. Give each its own.")

    def _read_off(self, column: str) -> Range:
        """Return where a column's numbers lie; a single number stands in the middle of its range."""
        known = self.values[:, self.columns.index(column)]
        known = known[~np.isnan(known)]
        if not len(known):
            raise DataError(
                f'{self.name}: nobody has a number in column "{column}". State its range, or leave it out.'
            )
        low, high = float(known.min()), float(known.max())
        if not math.isfinite(high - low):
            raise DataError(f'{self.name}: the numbers in column "{column}" lie too far apart. Scale them.')
        # Numbers near the largest of all have no room beside them.
        away = max(1.0, abs(low) / 2)
        return (low, high) if low < high else (low - away, low + away)


def read_records(
    path: str | Path,
    *,
    id: str | None = None,
    columns: Sequence[str] | None = None,
    ranges: Mapping[str, Range] | None = None,
    name: str | None = None,
    member: str | None = None,
) -> Records:
    """Read records from csv, tsv, parquet, MovieLens or RecBole files; plain, .gz or .zip.

    `id` names the column of ids, `columns` those to use; if they are left out, all columns of numbers are,
    and `left_out` names the others. `ranges` says between which numbers each lies. `member` names the file
    inside a .zip that holds several. Errors name rows and columns, and nothing that stands there.
    """
    _check_named(path, id, columns, ranges, member)
    table = read_person_table(path, columns=columns, user=id, member=member)
    if table.ids is None:
        words = ", ".join(f'"{column}"' for column in table.columns)
        raise DataError(
            f"{table.label}: no column looks like the ids of users: {words}. Name the right one with --id "
            "(in Python id=...): the parties find their common users by it."
        )
    table.check_once(
        why="everybody has one",
        remedy="Keep one row of each, or name the right column of ids with --id.",
    )
    chosen = _columns_of_numbers(table) if columns is None else list(columns)
    if columns is None:
        _check_no_other_numbers(table, [column for column in table.columns if column not in chosen])
    kept = [table.finite(column, instead=_INSTEAD) for column in chosen]
    return Records(
        name=name or named_after(Path(path)),
        ids=tuple(table.ids),
        columns=tuple(chosen),
        values=np.stack(kept, axis=1),
        ranges=ranges or {},
        file=Path(path),
        fingerprint=fingerprint(Path(path)),
        left_out=tuple(column for column in table.columns if column not in chosen),
    )


_INSTEAD = "name the columns to use with --columns (in Python columns=...)"


def to_points(values: Floats, ranges: Sequence[Range]) -> Floats:
    """Return numbers scaled from their columns' ranges to [-1, 1]; those outside become the nearer end."""
    low, high = np.array(ranges, np.float64).reshape(-1, 2).T
    # Clipped first: the difference of two finite numbers may be infinite, but not that of a range's ends.
    scaled: Floats = 2 * ((np.clip(values, low, high) - low) / (high - low)) - 1
    return np.clip(scaled, -1.0, 1.0)


def to_units(points: Floats, ranges: Sequence[Range]) -> Floats:
    """Return points of [-1, 1] in the units of their columns: the way back of `to_points`."""
    low, high = np.array(ranges, np.float64).reshape(-1, 2).T
    found: Floats = low + (points + 1) / 2 * (high - low)
    return found


def _check_named(
    path: str | Path,
    id: str | None,
    columns: Sequence[str] | None,
    ranges: Mapping[str, Range] | None,
    member: str | None,
) -> None:
    """Refuse wrong names before the file is read."""
    if columns is not None and (isinstance(columns, str) or not columns):
        raise ConfigError('columns must be a list of names, such as ["age", "income"].')
    if columns is not None and len(set(columns)) < len(columns):
        raise ConfigError("columns names the same column twice.")
    names = [name for name in column_names(path, member=member) if name != id]
    for column, stated in (ranges or {}).items():
        known = columns if columns is not None else names or [column]
        _check_range(column, stated, known, str(path))


def _columns_of_numbers(table: PersonTable) -> list[str]:
    """Return the columns that hold numbers, words in a few cells notwithstanding: those are mistakes."""
    found = [column for column in table.columns if not _is_index(column) and _holds_numbers(table, column)]
    if not found:
        words = ", ".join(f'"{column}"' for column in table.columns)
        raise DataError(
            f"{table.label}: no column holds numbers{f': {words}' if words else ''}. Clusters are found in "
            "numbers: write categories as numbers, such as 0 and 1."
        )
    return found


def _check_no_other_numbers(table: PersonTable, columns: Sequence[str]) -> None:
    """Refuse columns that would be left out though they hold numbers, written otherwise."""
    for column in columns:
        if _is_index(column):
            continue
        filled = [cell for cell in table.columns[column] if cell]
        if filled and sum(map(bool, map(_OTHER_NUMBER.fullmatch, filled))) > _WORDS * len(filled):
            raise DataError(
                f'{table.label}, column "{column}": its numbers are written with commas or percent signs. '
                "Write them with a decimal point and no signs; or name the columns to use with columns=[...] "
                "or --columns."
            )


def _is_index(column: str) -> bool:
    """Say whether a column counts rows: its name is what programs write who were told of none."""
    return not column or column.lower().startswith("unnamed:")


def _holds_numbers(table: PersonTable, column: str) -> bool:
    found = table.numbers(column)
    filled, wrong = int((~np.isnan(found)).sum()), int(np.isinf(found).sum())
    return filled - wrong > _WORDS * filled


def _check_range(column: str, stated: object, columns: Sequence[str], where: str) -> None:
    if column not in columns:
        words = ", ".join(f'"{name}"' for name in columns)
        raise ConfigError(
            f'{where}: a range is stated for "{column}", which is no column of it.'
            f"{did_you_mean(column, columns)} Its columns: {words}."
        )
    if not _is_range(stated):
        raise ConfigError(
            f'{where}: the range of "{column}" must be its lowest and its highest number, such as (0, 120): '
            f"two finite numbers, the first below the second; got {stated!r}."
        )


def _is_range(stated: object) -> bool:
    """Say whether something is two numbers, the first below the second, by a finite distance."""
    if not isinstance(stated, tuple | list) or len(stated) != 2:
        return False
    if not all(isinstance(end, numbers.Real) and not isinstance(end, bool) for end in stated):
        return False
    try:
        low, high = (float(end) for end in stated)
    except OverflowError:
        return False
    return low < high and math.isfinite(high - low)


def _ids(ids: Iterable[object], name: str) -> tuple[str, ...]:
    found = []
    seen: dict[str, int] = {}
    for row, one in enumerate(ids, start=1):
        if not isinstance(one, str | int | np.integer) or isinstance(one, bool):
            raise DataError(
                f"{name}, row {row}: ids must be text or whole numbers. Convert them to str first."
            )
        text = str(one).strip()
        if not text:
            raise DataError(f"{name}, row {row}: the id is missing. Fill it in, or remove the row.")
        if text in seen:
            raise DataError(f"{name}, rows {seen[text]} and {row}: the same id. Keep one row of each user.")
        seen[text] = row
        found.append(text)
    return tuple(found)


def _values(values: object, name: str) -> Floats:
    try:
        found = np.array(values, np.float64)
    except (ValueError, TypeError, OverflowError):
        raise DataError(f"{name}: values must be numbers, a row of them for each user.") from None
    if found.ndim != 2:
        raise DataError(f"{name}: values must have a row for each user and a number for each column.")
    wrong = np.argwhere(np.isinf(found))
    if len(wrong):
        raise DataError(
            f"{name}, row {wrong[0][0] + 1}: an infinite number. Fix it, or write NaN if it is missing."
        )
    found.flags.writeable = False
    return found
