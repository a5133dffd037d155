"""A table of items as numbers, by rules that look at nothing but the table.

The rules are those of `PublicItems`; the page on public items says them in full. No rule knows the ratings:
what a column becomes cannot tell anything about them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.features import Column, is_title

MOST_COLUMNS = 64
"""If there would be more, those that vary the least from item to item are left out: rare values first."""
FEWEST_ITEMS = 5
"""A value or a word that fewer items have, or that all but fewer have, is left out."""
MOST_WORDS = 16
"""Words taken from one column of text, the most frequent first."""
COMMONEST_WORD = 0.2
"""A word that a larger part of the items has tells little about any of them."""
KNOTS = 8
"""Hat functions made of a number that takes many values."""
MANY_VALUES = 20
"""A number that takes fewer values than this is standardised instead."""
WIDEST = 3.0
"""Standardised numbers are cut off at so many standard deviations."""

_HUGE = 1e15
"""Numbers beyond this are taken to be missing: arithmetic on them would overflow."""

_SEQUEL = re.compile(r"( II+\b| IV\b| VI*\b|\b[2-9]\b|: The |Part \d|Return of|Revenge)")
_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")
_YEAR_IN_TITLE = re.compile(r"\(([12]\d{3})\)\s*$")
_WORD = re.compile(r"[^\W\d_]{4,}")
_NAMES_THINGS = re.compile(r"\b(ids?|isbn\d*|asin|index|unnamed|url|uri|link|href|image|poster|cover|zip)\b")
_TOLD_BY_USERS = re.compile(
    r"(?<!ope)rating|rat(ed|ers?)\b|review|vote|score|popular|bayes|listener|download|purchase|follower|"
    r"watcher|favou?rite|\b(average|avg|mean|stars?|rank(ing)?|views?|likes?|members|users|sales|plays|hits|"
    r"owned|want(ed|ing)|checkins?)\b"
)


@dataclass(frozen=True)
class Described:
    """What became of a table."""

    names: tuple[str, ...]
    matrix: NDArray[np.float32]
    """One row for each item of the table, one column for each name."""
    left_out: tuple[str, ...]
    """Which columns of the table were left out, and why: one sentence each."""


@dataclass(frozen=True)
class _Part:
    """What became of one column."""

    names: Sequence[str]
    columns: NDArray[np.float64]


def described(columns: Sequence[Column], *, chosen: bool = False) -> Described:
    """Turn the columns of a table into numbers; of `chosen` ones none is left out for its name."""
    dated = any(map(_is_year, columns))
    parts: list[_Part] = []
    left_out: list[str] = []
    for column in columns:
        reason = None if chosen else unfit(column)
        made = [] if reason else [part for part in _parts(column, dated) if len(part.names)]
        parts += made
        if not made:
            left_out.append(f'"{column.name}": {reason or "no value that enough items share"}.')
    names = [name for part in parts for name in part.names]
    rows = len(columns[0].cells) if columns else 0
    matrix = np.concatenate([np.zeros((rows, 0)), *(part.columns for part in parts)], axis=1)
    # Sums may differ in their last digits from machine to machine; what is public must not.
    rounded = np.round(matrix, 4).astype(np.float32)
    kept, crowded_out = _worth_keeping(rounded)
    if crowded_out:
        left_out.append(f"{crowded_out} columns that vary less than the {MOST_COLUMNS} that were kept.")
    return Described(tuple(names[at] for at in kept), rounded[:, kept], tuple(left_out))


def unfit(column: Column) -> str | None:
    """Say why a column must not, or need not, be used; None if it may."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]+", " ", column.name).lower()
    if _NAMES_THINGS.search(plain) or _mostly(column, re.compile("https?://")):
        return "it names things, and does not describe them"
    if column.kind == "number" and _TOLD_BY_USERS.search(plain):
        return "by its name it may be reckoned from the ratings that are to be protected"
    return None


def _parts(column: Column, dated: bool) -> Iterable[_Part]:
    if is_title(column.name):
        yield _title_flags(column)
        if not dated:
            years = [_YEAR_IN_TITLE.search(cell) for cell in column.cells]
            yield _scaled("year", _numbers(found.group(1) if found else "" for found in years))
    elif _is_year(column):
        years = [_YEAR.search(cell) for cell in column.cells]
        yield _scaled(column.name, _numbers(found.group() if found else "" for found in years))
    elif column.kind == "number":
        yield _scaled(column.name, _numbers(column.cells))
    else:
        yield from _values(column)


def _is_year(column: Column) -> bool:
    """Say whether a column tells when: by its name, if most of its cells have a year in them."""
    named = not is_title(column.name) and re.search("year|date", column.name.lower()) is not None
    return named and _mostly(column, _YEAR)


def _mostly(column: Column, pattern: re.Pattern[str]) -> bool:
    """Say whether more than half of the cells that are filled have the pattern in them."""
    filled = [cell for cell in column.cells if cell]
    return 2 * sum(1 for cell in filled if pattern.search(cell)) > len(filled)


def _title_flags(column: Column) -> _Part:
    sequel = [bool(_SEQUEL.search(title)) for title in column.cells]
    other = ["(" in _YEAR_IN_TITLE.sub("", title) for title in column.cells]
    return _shared(("sequel", "alternative title"), np.column_stack([sequel, other]))


def _numbers(cells: Iterable[str]) -> NDArray[np.float64]:
    read = np.array([float(cell) if cell else np.nan for cell in cells])
    return np.where(np.abs(read) < _HUGE, read, np.nan)


def _scaled(name: str, numbers: NDArray[np.float64]) -> _Part:
    """Spread a number over hat functions, or standardise it; where it is missing, take the mean."""
    known = np.isfinite(numbers)
    values, counts = np.unique(numbers[known], return_counts=True)
    spread = numbers[known].std() if len(values) else 0.0
    if spread == 0:
        return _Part((), np.zeros((len(numbers), 0)))
    if len(values) < MANY_VALUES:
        standard = np.clip((numbers - numbers[known].mean()) / spread, -WIDEST, WIDEST)
        return _Part((name,), np.where(known, standard, 0.0)[:, None])
    knots = _knots(values, counts)
    hats = np.stack([np.interp(numbers[known], knots, hat) for hat in np.eye(len(knots))], axis=1)
    columns = np.tile(hats.mean(axis=0), (len(numbers), 1))
    columns[known] = hats
    return _Part([f"{name} {knot:g}" for knot in knots], columns)


def _knots(values: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return quantiles of the values, each weighing the root of how many items have it.

    That lies between knots at equal distances and knots with equally many items in between: old films are
    few, but each decade differs; new films are many.
    """
    weights = np.sqrt(counts)
    middles = np.cumsum(weights) - weights / 2
    wanted = (np.arange(KNOTS) + 0.5) / KNOTS * weights.sum()
    return np.unique(values[np.minimum(np.searchsorted(middles, wanted), len(values) - 1)])


def _values(column: Column) -> Iterable[_Part]:
    """Make one column of each value, tag or word that enough items have."""
    split, several = _splitter(column)
    rows = [set(split(cell)) for cell in column.cells]
    words = split is _words
    counts = Counter(value for row in rows for value in row)
    if words:
        counts = Counter({word: n for word, n in counts.items() if n <= COMMONEST_WORD * len(rows)})
    known = sorted(_most_frequent(counts, MOST_WORDS if words else MOST_COLUMNS))
    flags = np.array([[value in row for value in known] for row in rows]).reshape(len(rows), len(known))
    yield _shared([f"{column.name}={value}" for value in known], flags)
    if several:
        many = np.array([[len(row) >= 3] for row in rows])
        yield _shared((f"{column.name}: three or more",), many)


def _most_frequent(counts: Counter[str], most: int) -> list[str]:
    """Return the values that the most items have; of equally frequent ones the first in the alphabet."""
    return sorted(counts, key=lambda value: (-counts[value], value))[:most]


def _splitter(column: Column) -> tuple[Callable[[str], list[str]], bool]:
    """Return what takes a cell apart, and whether its parts are tags, of which an item may have several."""
    bars = any("|" in cell for cell in column.cells)
    if column.kind == "tags" or bars:
        between = "|" if bars else column.between
        return lambda cell: _stripped(cell.split(between)), True
    if column.kind == "text":
        return _words, False
    often = [mark for mark in ";," if 10 * sum(mark in cell for cell in column.cells) >= len(column.cells)]
    if often:
        return lambda cell: _stripped(cell.split(often[0])), True
    return lambda cell: _stripped([cell]), False


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _stripped(values: Iterable[str]) -> list[str]:
    return [value.strip() for value in values if value.strip()]


def _shared(names: Sequence[str], flags: NDArray[Any]) -> _Part:
    """Keep what neither too few items have nor all but too few."""
    items = flags.sum(axis=0)
    kept = np.flatnonzero(np.minimum(items, len(flags) - items) >= FEWEST_ITEMS).tolist()
    return _Part([names[at] for at in kept], flags[:, kept].astype(np.float64))


def _worth_keeping(matrix: NDArray[np.float32]) -> tuple[list[int], int]:
    """Return the places of the columns to keep, and how many were left out for want of room.

    Constant columns, and those equal to an earlier one, are no loss.
    """
    first: dict[bytes, int] = {}
    for at, column in enumerate(matrix.T):
        if len(column) and (column != column[0]).any():
            first.setdefault(column.tobytes(), at)
    places = sorted(first.values(), key=lambda at: -round(float(matrix[:, at].var()), 6))
    return sorted(places[:MOST_COLUMNS]), max(len(places) - MOST_COLUMNS, 0)
