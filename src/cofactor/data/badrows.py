"""Finding the row that cannot be read, once a fast reader has refused the file."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

import numpy as np

from cofactor.data.columns import Columns
from cofactor.data.grouping import Index
from cofactor.data.layout import Record
from cofactor.data.scale import Scale
from cofactor.errors import DataError


@dataclass(frozen=True)
class Checker:
    """Checks records one by one."""

    label: str
    names: Sequence[str]
    columns: Columns
    scale: Scale | None

    def first_problem(self, records: Iterable[Record]) -> DataError | None:
        """Return the first bad row as an error that says where it is and what to do."""
        width, used = len(self.names), self.columns.used()
        for line, fields in records:
            if len(fields) != width:
                return DataError(
                    f"{self.label}, row {line}: {len(fields)} fields where there are {width} columns. "
                    "Fix the row, or put quotes around text that contains the separator."
                )
            for holds, place in used.items():
                wrong = self._wrong(holds, fields[place])
                if wrong is not None:
                    return DataError(f'{self.label}, row {line}, column "{self.names[place]}": {wrong}')
        return None

    def _wrong(self, holds: str, text: str) -> str | None:
        if not text or text.isspace():
            return f"the value is missing. Fill it in, or remove the row{_another(holds)}."
        if holds == "rating":
            return _wrong_rating(text, self.scale)
        return _wrong_time(text) if holds == "time" else None


def duplicate_lines(users: Index, items: Index, records: Iterable[Record]) -> tuple[int, int]:
    """Return both lines of the first pair that occurs twice; there must be one."""
    pairs = users.astype(np.int64) * (int(items.max()) + 1) + items
    order = np.argsort(pairs, kind="stable")
    same = np.flatnonzero(pairs[order][1:] == pairs[order][:-1])
    seconds = order[same + 1]
    at = int(np.argmin(seconds))
    second, first = int(seconds[at]), int(order[same[at]])
    lines = [line for line, _ in islice(records, second + 1)]
    return lines[first], lines[second]


def _wrong_rating(text: str, scale: Scale | None) -> str | None:
    try:
        value = float(text)
    except ValueError:
        comma = " Write decimals with a point." if re.fullmatch(r"\s*-?\d+,\d+\s*", text) else ""
        return f"cannot read {text!r} as a number.{comma} Fix the row{_another('rating')}."
    if not math.isfinite(value):
        return f"{text!r} is not a finite number. Fix or remove the row{_another('rating')}."
    if scale is not None and not scale.low <= value <= scale.high:
        return f"{text} lies outside the scale {scale}. Fix the row, or state the true scale with --scale."
    return None


def _wrong_time(text: str) -> str | None:
    if _is_time(text):
        return None
    remedy = f"Write seconds since 1970 or dates such as 2001-12-31{_another('time')}."
    return f"cannot read {text!r} as a time. {remedy}"


def _is_time(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        pass
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def _another(holds: str) -> str:
    return f", or name another column with --{holds}"
