"""`Coding`: how the columns of a side table become numbers, fixed once and known to everybody."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np

from cofactor.config import as_table, from_table, whole
from cofactor.data.code_rules import Rules, words_of
from cofactor.data.codes import BETWEEN_TAGS, Category, Code, Number, Numbers, Tags, unseen, why_missing
from cofactor.data.features import Column
from cofactor.data.ids import Ids
from cofactor.data.tables import Table
from cofactor.errors import ConfigError, DataError, did_you_mean

_FORMAT = 1
_KINDS = ", ".join(kind.__name__ for kind in get_args(Code))


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
        if not self.columns:
            raise ConfigError('a coding names no column. Name one at least, such as {"gender": ("F", "M")}.')
        if len(self.columns) != len(self.codes):
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
        check_table(table)
        for name in as_category:
            _column(table, name)
        chosen = table.columns if columns is None else [_column(table, name) for name in columns]
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
        return tuple(f"{column}{suffix}" for column, code in self._pairs for suffix in code.suffixes())

    @property
    def width(self) -> int:
        """How many numbers describe one user or item."""
        return len(self.names)

    def encoded(self, table: Table, ids: Sequence[Any] | Ids) -> Numbers:
        """Return a row for each id: NaN where a value is missing, or all of the row if the id is unknown.

        What is no number where one is coded counts as missing; `unseen` counts it.
        """
        check_table(table)
        rows = table.rows(np.asarray(ids).tolist())
        nothing = np.full((1, self.width), np.nan, np.float32)
        parts = [code.encoded(self._cells(table, name)) for name, code in self._pairs]
        found: Numbers = np.concatenate([np.concatenate(parts, axis=1), nothing])[rows]
        return found

    def one(self, attributes: Mapping[str, Any]) -> Numbers:
        """Return the row of one user or item, from values by column; what is not named is missing (NaN).

        What is no number where one is coded is refused.
        """
        for name in self.not_coded(attributes):
            if why := why_missing(self.code(name)):
                raise DataError(f'what is given as "{name}" {why}. Correct it, or leave it out.')
        parts = [code.encoded([_cell(attributes.get(name), code)])[0] for name, code in self._pairs]
        return np.concatenate(parts)

    def unseen(self, table: Table) -> dict[str, int]:
        """Count, by column, the rows with a value that has no number of its own: 0 in all of the column's.

        Where a number is coded, count those with something else: it is missing, as `why_missing` says.
        """
        counts = {name: unseen(code, self._cells(table, name)) for name, code in self._pairs}
        return {name: count for name, count in counts.items() if count}

    def unknown(self, rows: Numbers) -> tuple[str, ...]:
        """Return the columns of which not one of the rows has a value that the coding knows."""
        ends = np.cumsum([len(code.suffixes()) for code in self.codes])[:-1]
        parts = zip(self._pairs, np.split(rows, ends, axis=1), strict=True)
        return tuple(name for (name, code), part in parts if not _known(code, part))

    def code(self, name: str) -> Code:
        """Return how a column is coded."""
        return self.codes[self.columns.index(name)]

    def not_coded(self, attributes: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the columns of which one user's or item's value has no number of its own."""
        self._check_names(attributes)
        cells = {name: [_cell(attributes.get(name), code)] for name, code in self._pairs}
        return tuple(name for name, code in self._pairs if unseen(code, cells[name]))

    def as_json(self) -> str:
        """Return all of it as text."""
        coded = [{"column": column} | as_table(code) for column, code in self._pairs]
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
        if not tables:
            raise ConfigError(
                f'[{where}] is empty. Name columns in it, such as gender = ["F", "M"], or leave it out: then '
                "the coding is read off their table."
            )
        return cls.stated({name: _of_setting(f"{where}.{name}", how) for name, how in tables.items()})

    def lines(self) -> tuple[str, ...]:
        """Say how each column is coded, in words."""
        return tuple(f"{name}: {code.words()}" for name, code in self._pairs)

    @property
    def _pairs(self) -> tuple[tuple[str, Code], ...]:
        return tuple(zip(self.columns, self.codes, strict=True))

    def _cells(self, table: Table, name: str) -> Sequence[str]:
        """Return the cells of a column; whatever stood between tags, the same does now."""
        try:
            column = _column(table, name)
        except DataError as error:
            raise DataError(f"{error} Add it (cells may be empty), or correct what names it.") from None
        if not isinstance(self.code(name), Tags) or column.kind != "tags":
            return column.cells
        return [BETWEEN_TAGS.join(column.values(row)) for row in range(len(column.cells))]

    def _check_names(self, attributes: Mapping[str, Any]) -> None:
        if not isinstance(attributes, Mapping):
            raise ConfigError(
                'attributes are given by name, such as {"age": 31, "gender": "F"}, and not as a '
                f"{type(attributes).__name__}."
            )
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
    try:
        return Category(tuple(map(str, how)))
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None


def _of_setting(where: str, how: Any) -> Code:
    if not isinstance(how, Mapping):
        return _code(where, how)
    if "kind" not in how:
        raise ConfigError(
            f'{where} needs a kind, such as {{ kind = "Groups", edges = [30, 45] }}. There are: {_KINDS}.'
        )
    return _from_table(where, how)


def _from_table(name: str, table: Mapping[str, Any]) -> Code:
    found: Code = from_table(Code, table, name)
    return found


def check_table(given: object) -> None:
    """Refuse what is no `Table`."""
    if not isinstance(given, Table):
        raise ConfigError(
            f"a table is needed, as read_users and read_items return it, and not a {type(given).__name__}. "
            "Read it from its file; write a data frame to a .csv or .parquet file first."
        )


def _column(table: Table, name: str) -> Column:
    try:
        return table.column(name)
    except DataError as error:
        raise DataError(f"{table.source or 'the table'}: {error}") from None


def _known(code: Code, rows: Numbers) -> bool:
    """Say whether some row has a value: any number where one is coded as such, otherwise a 1."""
    return bool(np.isfinite(rows).any() if isinstance(code, Number) else (rows > 0).any())


def _cell(value: Any, code: Code) -> str:
    """Return a value as a table would hold it; several are tags."""
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(code, Tags) and isinstance(value, Iterable) and not isinstance(value, str):
        return BETWEEN_TAGS.join(map(str, value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()
