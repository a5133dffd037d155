"""`Coding`: how the columns of a side table become numbers, fixed once and known to everybody."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cofactor.config import as_table, from_table, whole
from cofactor.data.code_rules import Rules, words_of
from cofactor.data.codes import BETWEEN_TAGS, Category, Code, Numbers, Tags, unseen
from cofactor.data.features import Column
from cofactor.data.ids import Ids
from cofactor.data.tables import Table
from cofactor.errors import ConfigError, DataError, did_you_mean

_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Coding:
    """How columns of a side table become numbers: public, and the same for all who train together.

    `stated` makes one by hand. `of_table` reads one off a table by these rules:

    - ages: seven groups of equal width between the 5th lowest and the 5th highest; the seven of MovieLens 1M,
      if they are its own
    - zip and postal codes: the four US regions, and other
    - occupations and other codes, categories, tags: a number for each value that at least 5 rows have; a row
      with another value has 0 in all of them
    - years, also those that end titles, and other numbers: standardised, cut off at 3 standard deviations
    - left out, and listed in `left_out`: ids and names, text, columns in which all rows are alike

    A coding that is read off a table of users tells something about them: which values 5 of them share, and
    means, spreads and ends to four digits. State it by hand if that is too much.
    """

    columns: tuple[str, ...]
    """The names of the columns that are used."""
    codes: tuple[Code, ...]
    """How each of them becomes numbers."""
    read_off: bool = False
    """Whether it was made from a table; otherwise it was stated by hand."""
    left_out: tuple[str, ...] = ()
    """Columns of the table that were left out, and why: one sentence each."""

    def __post_init__(self) -> None:
        if not self.columns or len(self.columns) != len(self.codes):
            raise ConfigError(f"{len(self.columns)} columns and {len(self.codes)} codes. Name one for each.")
        if len(set(self.columns)) < len(self.columns):
            raise ConfigError("a coding names a column twice. Name each once.")

    @classmethod
    def stated(cls, columns: Mapping[str, Code | Sequence[str]]) -> "Coding":
        """State how columns are coded, from what everybody knows; a plain list of values is a Category.

        Such as {"age": Groups.between(0, 70), "gender": ("F", "M"), "zip": Region()}.
        """
        return cls(columns=tuple(columns), codes=tuple(_code(name, how) for name, how in columns.items()))

    @classmethod
    def of_table(
        cls,
        table: Table,
        columns: Sequence[str] | None = None,
        *,
        as_category: Sequence[str] = (),
        fewest: int = 5,
    ) -> "Coding":
        """Choose a code for each column of a table, or for the named ones only, by the rules above.

        `as_category` names columns of numbers that are codes; `fewest` replaces the 5 of the rules.
        """
        whole(fewest=fewest)
        for name in as_category:
            table.column(name)
        chosen = table.columns if columns is None else [table.column(name) for name in columns]
        rules = Rules(fewest=fewest, as_category=tuple(as_category))
        found = rules.codes(chosen)
        left_out = tuple(f'"{name}": {reason}.' for name, reason in found.items() if isinstance(reason, str))
        codes = {name: code for name, code in found.items() if not isinstance(code, str)}
        if not codes:
            reasons = " ".join(left_out) or "It has no column but the ids."
            raise DataError(f"{table.source or 'the table'}: nothing in it can be used. {reasons}")
        return cls(columns=tuple(codes), codes=tuple(codes.values()), read_off=True, left_out=left_out)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """One for each number: "gender=F"."""
        pairs = zip(self.columns, self.codes, strict=True)
        return tuple(f"{column}{suffix}" for column, code in pairs for suffix in code.suffixes())

    @property
    def width(self) -> int:
        """How many numbers describe one user or item."""
        return len(self.names)

    def encoded(self, table: Table, ids: Sequence[Any] | Ids) -> Numbers:
        """Return a row for each id: NaN where a value is missing, or all of the row if the id is unknown."""
        rows = table.rows(np.asarray(ids).tolist())
        nothing = np.full((1, self.width), np.nan, np.float32)
        parts = [
            _encoded(column, code, _cells(table.column(column), code))
            for column, code in zip(self.columns, self.codes, strict=True)
        ]
        found: Numbers = np.concatenate([np.concatenate(parts, axis=1), nothing])[rows]
        return found

    def one(self, attributes: Mapping[str, Any]) -> Numbers:
        """Return the row of one user or item, from values by column; what is not named is missing (NaN)."""
        self._check_names(attributes)
        parts = [
            _encoded(column, code, [_cell(attributes.get(column), code)])[0]
            for column, code in zip(self.columns, self.codes, strict=True)
        ]
        return np.concatenate(parts)

    def unseen(self, table: Table) -> dict[str, int]:
        """Count, by column, the rows with a value that has no number of its own: 0 in all of the column's."""
        counts = {
            name: unseen(code, _cells(table.column(name), code))
            for name, code in zip(self.columns, self.codes, strict=True)
        }
        return {name: count for name, count in counts.items() if count}

    def not_coded(self, attributes: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the columns of which one user's or item's value has no number of its own."""
        self._check_names(attributes)
        pairs = zip(self.columns, self.codes, strict=True)
        return tuple(name for name, code in pairs if unseen(code, [_cell(attributes.get(name), code)]))

    def as_json(self) -> str:
        """Return all of it as text."""
        pairs = zip(self.columns, self.codes, strict=True)
        coded = [{"column": column} | as_table(code) for column, code in pairs]
        told = {"format": _FORMAT, "columns": coded, "read_off": self.read_off, "left_out": self.left_out}
        return json.dumps(told)

    @classmethod
    def from_json(cls, text: str) -> "Coding":
        """Read what `as_json` wrote."""
        try:
            told = json.loads(text)
            if told["format"] != _FORMAT:
                raise DataError(f"a coding of format {told['format']}; this version reads {_FORMAT}.")
            names = tuple(str(each.pop("column")) for each in told["columns"])
            codes = tuple(_from_table(name, each) for name, each in zip(names, told["columns"], strict=True))
            read_off, left_out = bool(told["read_off"]), tuple(map(str, told["left_out"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError("a coding that cannot be read: it is damaged or of another kind.") from None
        return cls(columns=names, codes=codes, read_off=read_off, left_out=left_out)

    @classmethod
    def of_settings(cls, tables: Mapping[str, Any], where: str = "attributes") -> "Coding":
        """State a coding by settings, as a TOML file holds them: a table with a kind for each column."""
        return cls.stated(
            {
                name: _from_table(f"{where}.{name}", how) if isinstance(how, Mapping) else how
                for name, how in tables.items()
            }
        )

    def lines(self) -> tuple[str, ...]:
        """Say how each column is coded, in words."""
        pairs = zip(self.columns, self.codes, strict=True)
        return tuple(f"{name}: {code.words()}" for name, code in pairs)

    def _check_names(self, attributes: Mapping[str, Any]) -> None:
        for name in attributes:
            if name not in self.columns:
                known = ", ".join(self.columns)
                raise DataError(
                    f'there is no "{name}".{did_you_mean(name, self.columns)} There are: {known}.'
                )


def published_coding(table: Table) -> Coding:
    """Return the coding of Mai and Pang, PrivMVMF, section VI.A: age, gender, occupation and zip code.

    Ages in seven groups of equal width (MovieLens 1M comes with seven), zip codes as US regions; nothing is
    merged for being rare.
    """
    wanted = ("age", "gender", "occupation", "zip")
    named = {word: name for name in table.names for word in words_of(name).split() if word in wanted}
    missing = [each for each in wanted if each not in named]
    if missing:
        raise DataError(
            f"{table.source or 'the table'} has no {' and no '.join(missing)}: the published setting has "
            "the users' age, gender, occupation and zip code, as MovieLens 100K and 1M do."
        )
    return Coding.of_table(
        table, [named[each] for each in wanted], as_category=(named["occupation"],), fewest=1
    )


def _code(name: str, how: Code | Sequence[str]) -> Code:
    if isinstance(how, Code):
        return how
    if isinstance(how, str) or not isinstance(how, Sequence):
        raise ConfigError(
            f"{name} must be a list of its values, or Groups, Category, Tags, Number, Year or Region, got "
            f"{how!r}."
        )
    return Category(tuple(map(str, how)))


def _from_table(name: str, table: Mapping[str, Any]) -> Code:
    found: Code = from_table(Code, table, name)
    return found


def _encoded(name: str, code: Code, cells: Sequence[str]) -> Numbers:
    try:
        return code.encoded(cells)
    except DataError as error:
        raise DataError(f'column "{name}": {error}') from None


def _cells(column: Column, code: Code) -> Sequence[str]:
    """Return the cells of a column; whatever stood between tags, the same does now."""
    if not isinstance(code, Tags) or column.kind != "tags":
        return column.cells
    return [BETWEEN_TAGS.join(column.values(row)) for row in range(len(column.cells))]


def _cell(value: Any, code: Code) -> str:
    """Return a value as a table would hold it; several are tags."""
    if value is None:
        return ""
    if isinstance(code, Tags) and isinstance(value, Iterable) and not isinstance(value, str):
        return BETWEEN_TAGS.join(map(str, value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()
