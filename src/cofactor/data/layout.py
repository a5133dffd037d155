"""How the text of a table is laid out: separator, header, names of the columns."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cofactor.data.sources import Source
from cofactor.errors import DataError

SURE_SEPARATORS = ("::", "\t")
"""They hardly occur inside a field."""
SEPARATORS = (",", ";", "|")
"""These do, as in 4,5 or Action|Drama: the most frequent one separates."""
_TYPED_NAME = re.compile(r"(.+):(token|token_seq|float|float_seq)")

HEAD = 16_384
"""How many bytes of a file are looked at before it is read."""

WHOLE_NUMBER = r"^-?(0|[1-9][0-9]{0,17})$"
"""Ids of this form become integers; leading zeros would be lost, so such ids stay text."""

Record = tuple[int, list[str]]
"""The line a record starts on, counted from 1, and its fields."""


@dataclass(frozen=True)
class Layout:
    """What a text table looks like."""

    separator: str
    header: bool
    names: tuple[str, ...]
    """Column names; empty where the file has no header."""
    types: tuple[str, ...]
    """RecBole's type of each column; empty for all other files."""
    width: int
    quoted: bool
    """Whether fields may stand in double quotes."""
    sample: tuple[Record, ...]
    """The first records."""
    encoding: str = "utf-8"

    def records(self, source: Source) -> Iterator[Record]:
        """Yield every record but the header; empty lines are left out."""
        found = self._split(_decoded(source, self.encoding))
        try:
            if self.header:
                next(found)
            yield from found
        except csv.Error as error:
            raise DataError(f"{source.label}: cannot be read as a table ({error}). Check the file.") from None

    def _split(self, lines: Iterator[str]) -> Iterator[Record]:
        if self.separator == "::":
            for line, text in enumerate(lines, start=1):
                if text.strip():
                    yield line, text.rstrip("\r\n").split("::")
            return
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE
        reader = csv.reader(lines, delimiter=self.separator, quoting=quoting)
        start = 1
        for fields in reader:
            if fields:
                yield start, fields
            start = reader.line_num + 1


def layout_of(source: Source, *, latin: bool = False) -> Layout:
    """Look at the first lines of a file; `latin` allows Latin-1 where it is not UTF-8."""
    head = source.head(HEAD)
    if not head.strip():
        raise DataError(f"{source.label} is empty. Name a file with one row for each entry.")
    if b"\0" in head:
        raise DataError(f"{source.label}: not UTF-8 text; it may be UTF-16. Save it as UTF-8 and try again.")
    encoding = "latin-1" if latin and not _is_utf8(source) else "utf-8"
    lines = _whole_lines(source, head, encoding)
    if not lines[0].strip():
        raise DataError(f"{source.label}: the first line is empty. Remove it.")
    return _layout(source, lines, encoding)


def _layout(source: Source, lines: list[str], encoding: str) -> Layout:
    separator = _separator(source, lines[0])
    recbole = source.name.lower().endswith((".inter", ".user", ".item"))
    quoted = separator in ",;" or (separator == "\t" and not recbole and not _has_number(lines[0], separator))
    bare = Layout(separator, False, (), (), 0, quoted, (), encoding)
    records = list(bare._split(iter(lines)))
    first = records[0][1]
    header = not any(is_number(field) for field in first)
    names, types = _names(first) if header else ((), ())
    sample = tuple(records[1:] if header else records)
    return Layout(separator, header, names, types, len(first), quoted, sample, encoding)


def is_number(text: str) -> bool:
    """Say whether a field reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _names(first: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    typed = [_TYPED_NAME.fullmatch(field.strip()) for field in first]
    if all(typed):
        pairs = [match.groups() for match in typed if match]
        return tuple(name for name, _ in pairs), tuple(kind for _, kind in pairs)
    return tuple(field.strip() for field in first), ()


def _separator(source: Source, line: str) -> str:
    for separator in SURE_SEPARATORS:
        if separator in line:
            return separator
    most = max(SEPARATORS, key=line.count)
    if most in line:
        return most
    raise DataError(
        f"{source.label}: the first line has a single column, {line.strip()[:40]!r}. "
        "Separate the columns by commas or tabs."
    )


def _has_number(line: str, separator: str) -> bool:
    return any(is_number(field) for field in line.split(separator))


def _is_utf8(source: Source) -> bool:
    try:
        for line in source.lines():
            line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _whole_lines(source: Source, head: bytes, encoding: str) -> list[str]:
    """Decode the head up to its last whole line."""
    whole = head if len(head) < HEAD or b"\n" not in head else head[: head.rindex(b"\n") + 1]
    lines = whole.removeprefix(b"\xef\xbb\xbf").splitlines(keepends=True)
    return [_text(source, number, line, encoding) for number, line in enumerate(lines, start=1)]


def _decoded(source: Source, encoding: str) -> Iterator[str]:
    for number, line in enumerate(source.lines(), start=1):
        text = _text(source, number, line, encoding)
        yield text.removeprefix("\ufeff") if number == 1 else text


def _text(source: Source, number: int, line: bytes, encoding: str) -> str:
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        wrong = line[error.start : error.start + 1].hex()
        raise DataError(
            f"{source.label}, row {number}: byte 0x{wrong} is not UTF-8; the file may be Latin-1. "
            "Save it as UTF-8, for example with iconv -f latin1 -t utf-8."
        ) from None
