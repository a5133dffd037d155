"""Reading private numbers from a table: one row for each person, one number in it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import polars as pl

from cofactor.config import one_of
from cofactor.data.columns import USUAL_COLUMNS, find_column
from cofactor.data.layout import SEPARATORS, SURE_SEPARATORS, Layout, is_number, layout_of
from cofactor.data.parquet import is_parquet, parquet_names
from cofactor.data.sources import Source, open_source
from cofactor.data.tables import read_users
from cofactor.errors import ConfigError, DataError
from cofactor.federation.party import fingerprint, named_after
from cofactor.privacy.noise import below
from cofactor.randomness import Random, SecureRandom
from cofactor.survey.method import Floats
from cofactor.survey.people import People
from cofactor.survey.question import Question

Missing = Literal["skip", "random"]
"""What becomes of people without a number: they do not answer, and that is then known; or they answer with a
number drawn from the range, so that nobody sees who has none, and the estimate is pulled towards evenness."""

_SECURE = SecureRandom()
_LISTED = 5
"""How many rows an error names."""
_PLACES = 2**40
"""Numbers that are drawn lie at one of so many places of the range."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """A column of numbers, one for each person, as a file holds it."""

    file: Path
    label: str
    """What errors call the file."""
    column: str
    values: Floats = field(repr=False)
    """NaN where somebody has none."""
    rows: Sequence[int] = field(repr=False)
    """The rows of the file that they stand in."""

    @property
    def missing(self) -> int:
        """How many people have none: LOCAL."""
        return int(np.isnan(self.values).sum())

    def people(
        self,
        *,
        question: Question | None = None,
        missing: Missing | None = None,
        name: str | None = None,
        random: Random = _SECURE,
    ) -> People:
        """Return the people who answer; what becomes of those without a number must be said."""
        values = self._filled(question, missing, random) if self.missing else self.values
        if not len(values):
            raise DataError(f'{self.label}, column "{self.column}": nobody has a number. Nobody can answer.')
        return People(
            name=name or named_after(self.file),
            values=values,
            file=self.file,
            fingerprint=fingerprint(self.file),
        )

    def _filled(self, question: Question | None, missing: Missing | None, random: Random) -> Floats:
        if missing is None:
            empty = [row for row, value in zip(self.rows, self.values, strict=True) if math.isnan(value)]
            raise DataError(
                f'{self.label}, column "{self.column}": {_counted(empty, "is empty", "are empty")}. Say what '
                "becomes of people without a number: --missing skip (they do not answer: how many those are "
                "is then known) or --missing random (they answer with a number drawn from the range: nobody "
                "sees who has none)."
            )
        one_of(get_args(Missing), missing=missing)
        if missing == "skip":
            return self.values[~np.isnan(self.values)]
        if question is None:
            raise ConfigError('missing="random" draws numbers from a range: name the question, too.')
        return np.where(np.isnan(self.values), drawn_from(question, len(self.values), random), self.values)


def read_people(
    path: str | Path,
    column: str,
    *,
    question: Question | None = None,
    user: str | None = None,
    missing: Missing | None = None,
    name: str | None = None,
    member: str | None = None,
    random: Random = _SECURE,
) -> People:
    """Read who holds which number from csv, tsv, parquet, MovieLens or RecBole files; plain, .gz or .zip.

    One row is one person: where there is a column of ids, which `user` may name, each must occur once. The
    ledger lies beside the file. `missing` says what becomes of people without a number; to draw one it takes
    the `question`. `member` names the file inside a .zip that holds several.
    """
    found = read_numbers(path, column, user=user, member=member)
    return found.people(question=question, missing=missing, name=name, random=random)


def read_numbers(
    path: str | Path, column: str, *, user: str | None = None, member: str | None = None
) -> Numbers:
    """Read a column of numbers; errors name rows, and nothing that stands in them."""
    source = open_source(path, "users", member)
    cells = _cells(source, path, member, column, user)
    if not cells.texts:
        raise DataError(f"{source.label} has a header but no rows below it. Name a file with people.")
    if cells.ids is not None:
        _check_once(cells, source.label)
    return Numbers(
        file=Path(path),
        label=source.label,
        column=column,
        values=_numbers(cells, f'{source.label}, column "{column}"'),
        rows=cells.rows,
    )


def drawn_from(question: Question, count: int, random: Random = _SECURE) -> Floats:
    """Return numbers that lie anywhere in a question's range, evenly over its buckets."""
    low, high = question.edges(1).tolist()
    part: Floats = below(count, _PLACES, random) / _PLACES
    found: Floats = low * (high / low) ** part if question.log else low + part * (high - low)
    found = np.rint(found) if question.whole else found
    clipped: Floats = np.clip(found, question.low, question.high)
    return clipped


@dataclass(frozen=True)
class _Cells:
    """One column as text, and who is in which row where that is known."""

    rows: Sequence[int]
    texts: Sequence[str]
    ids: Sequence[str] | None


def _cells(source: Source, path: str | Path, member: str | None, column: str, user: str | None) -> _Cells:
    if is_parquet(source):
        return _from_parquet(source, column, user)
    if _has_one_column(source):
        return _from_lines(source, column, user)
    layout = layout_of(source, latin=True)
    if layout.header:
        return _from_text(source, layout, column, user)
    # Of tables without a header a few are known by their form; others are refused.
    texts = read_users(path, id=user, member=member).column(column).cells
    return _Cells(range(1, len(texts) + 1), texts, None)


def _from_text(source: Source, layout: Layout, column: str, user: str | None) -> _Cells:
    wanted, owner = _places(layout.names, source.label, column, user)
    rows: list[int] = []
    texts: list[str] = []
    ids: list[str] = []
    for row, fields in layout.records(source):
        if len(fields) != layout.width:
            raise DataError(
                f"{source.label}, row {row}: {len(fields)} fields where there are {layout.width} columns. "
                "Fix the row, or put quotes around text that contains the separator."
            )
        rows.append(row)
        texts.append(fields[wanted].strip())
        ids.append("" if owner is None else fields[owner].strip())
    return _Cells(rows, texts, None if owner is None else ids)


def _from_parquet(source: Source, column: str, user: str | None) -> _Cells:
    names = parquet_names(source)
    wanted, owner = _places(names, source.label, column, user)
    chosen = list(dict.fromkeys(names[at] for at in (wanted, owner) if at is not None))
    try:
        frame = pl.read_parquet(source.data, columns=chosen)
        frame = frame.with_columns(pl.all().cast(pl.String))
    except pl.exceptions.PolarsError:
        told = f'{source.label}: column "{column}" cannot be read. Name a column of numbers.'
        raise DataError(told) from None
    texts = frame[names[wanted]].fill_null("").to_list()
    ids = None if owner is None else frame[names[owner]].fill_null("").to_list()
    return _Cells(range(1, len(texts) + 1), texts, ids)


def _has_one_column(source: Source) -> bool:
    first = next(iter(source.lines()), b"")
    separators = (*SURE_SEPARATORS, *SEPARATORS)
    return bool(first.strip()) and not any(separator.encode() in first for separator in separators)


def _from_lines(source: Source, column: str, user: str | None) -> _Cells:
    """Read a file with one column: an empty line is somebody without a number, but for those at its end."""
    texts = [line.decode("utf-8", "replace").strip().strip('"') for line in source.lines()]
    name = texts[0].removeprefix("\ufeff").strip('"').removesuffix(":float")
    if is_number(name):
        raise DataError(f"{source.label} has no header. Add a first line with the name of the column.")
    find_column([name], source.label, (), column)
    find_column([name], source.label, (), user)
    while not texts[-1]:
        texts.pop()
    return _Cells(range(2, len(texts) + 1), texts[1:], None)


def _places(names: Sequence[str], label: str, column: str, user: str | None) -> tuple[int, int | None]:
    """Return where the numbers are, and the ids of people, if there are any."""
    place = find_column(names, label, (), column)
    assert place is not None
    if names.count(column) > 1:
        raise DataError(f'{label} has {names.count(column)} columns "{column}". Give each its own name.')
    owner = find_column(names, label, (*USUAL_COLUMNS["user"], "id"), user)
    if owner == place and user is not None:
        raise ConfigError(f'column "{column}" cannot hold both the numbers and the ids of people.')
    return place, None if owner == place else owner


def _check_once(cells: _Cells, label: str) -> None:
    """Refuse people with several rows: whoever answers twice loses twice as much."""
    assert cells.ids is not None
    seen: dict[str, int] = {}
    again: set[str] = set()
    rows: list[int] = []
    for row, one in zip(cells.rows, cells.ids, strict=True):
        if not one:
            raise DataError(f"{label}, row {row}: the id is missing. Fill it in, or remove the row.")
        if one in seen:
            rows = rows or [seen[one], row]
            again.add(one)
        seen.setdefault(one, row)
    if again:
        some = "1 person has" if len(again) == 1 else f"{len(again):,} people have"
        raise DataError(
            f"{label}: {some} several rows, such as rows {rows[0]} and {rows[1]}, and everybody answers "
            "once. Keep one row of each, or name the right column of ids with --user. Of a file of ratings, "
            "ask each user for one of hers with --rating, or for how many she has with --activity."
        )


def _numbers(cells: _Cells, where: str) -> Floats:
    """Return numbers, NaN for empty cells; refuse words."""
    found = np.fromiter(map(_number, cells.texts), np.float64, len(cells.texts))
    wrong = np.flatnonzero(np.isinf(found))
    if len(wrong):
        rows = [cells.rows[at] for at in wrong.tolist()]
        raise DataError(
            f"{where}: {_counted(rows, 'is no number', 'are no numbers')}. Fix them (decimals have a point, "
            "and who has no number an empty cell), or name another column with --column."
        )
    return found


def _number(text: str) -> float:
    """Read a cell: NaN if it is empty, infinity if it is no number."""
    if not text:
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.inf


def _counted(rows: Iterable[int], one: str, many: str) -> str:
    """Name the first rows, and say how many more there are."""
    known = list(rows)
    listed = ", ".join(f"{row}" for row in islice(known, _LISTED))
    if len(known) == 1:
        return f"row {listed} {one}"
    more = f" and {len(known) - _LISTED:,} more" if len(known) > _LISTED else ""
    return f"rows {listed}{more} {many}"
