"""From files to the records of parties: which columns, and between which numbers each lies."""

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.errors import ConfigError, DataError, did_you_mean

if TYPE_CHECKING:
    from cofactor.cluster.records import Range, Records

Ranges = Mapping[str, "Range"]
"""By column, or by party/column where parties have columns of the same name."""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Which files are read, and what of them is used."""

    files: tuple[Path, ...]
    ids: tuple[str, ...]
    """The column of ids: one name for all files, or one for each; found by itself, if there is none."""
    columns: tuple[str, ...] | None
    """Columns to use, of whichever files have them; all of numbers, if None."""
    ranges: Ranges
    member: str | None

    def __post_init__(self) -> None:
        """Tell of mistakes before anything is read."""
        if len(self.files) < 2:
            raise ConfigError(
                "clusters are found by two parties or more, each with a file of its own: cofactor cluster "
                "bank.csv shop.csv --id user --k 5 --epsilon 1. Columns that lie in one file need no other."
            )
        for path, count in Counter(file.resolve() for file in self.files).items():
            if count > 1:
                raise ConfigError(f"{path.name} is named {count} times. Name each party's file once.")
        if len(self.ids) not in (0, 1, len(self.files)):
            raise ConfigError("name --id once for all files, or once for each of them, in their order.")

    def records(self) -> "list[Records]":
        """Read all files; every range and every column that was named must be in one of them."""
        from cofactor.data.person_tables import column_names

        names = party_names(self.files)
        known = [column_names(file, member=self.member) for file in self.files]
        if all(known):
            self._check_columns(known)
        found = [
            self._read(place, name, own) for place, (name, own) in enumerate(zip(names, known, strict=True))
        ]
        check_ranges(self.ranges, found)
        return [each.with_ranges(ranges_of(self.ranges, each)) for each in found]

    def _check_columns(self, known: Sequence[Sequence[str]]) -> None:
        every = list(dict.fromkeys(name for own in known for name in own))
        for column in self.columns or ():
            if column not in every:
                words = ", ".join(f'"{name}"' for name in every)
                raise ConfigError(
                    f'--columns: no file has "{column}".{did_you_mean(column, every)} There are: {words}.'
                )

    def _read(self, place: int, name: str, known: Sequence[str]) -> "Records":
        from cofactor.cluster.records import read_records

        file, id = self.files[place], self.ids[place % len(self.ids)] if self.ids else None
        chosen = None
        if self.columns is not None:
            chosen = [column for column in self.columns if column in known or not known]
            if not chosen:
                raise DataError(f"{file} has none of the columns that --columns names. Name some of its own.")
        return read_records(file, id=id, columns=chosen, name=name, member=self.member)


def party_names(files: Sequence[Path]) -> list[str]:
    """Name parties after their files, and after the folders, too, where files are called the same."""
    from cofactor.federation.party import named_after

    names = [named_after(file) for file in files]
    return [
        name if names.count(name) == 1 else named_after(Path(f"{file.resolve().parent.name}-{name}"))
        for file, name in zip(files, names, strict=True)
    ]


def ranges_of(ranges: Ranges, records: "Records") -> "dict[str, Range]":
    """Return the ranges of one party's columns: those with its name on them before those without."""
    named = {column: (f"{records.name}/{column}", column) for column in records.columns}
    return {
        column: next(ranges[key] for key in keys if key in ranges)
        for column, keys in named.items()
        if any(key in ranges for key in keys)
    }


def check_ranges(ranges: Ranges, found: "Sequence[Records]") -> None:
    """Refuse ranges of columns that nobody has."""
    known = [name for each in found for own in each.columns for name in (own, f"{each.name}/{own}")]
    for name in ranges:
        if name not in known:
            used = ", ".join(f'"{column}"' for each in found for column in each.columns)
            raise ConfigError(
                f'a range is stated for "{name}", which no file has, or not as a column of numbers.'
                f"{did_you_mean(name, known)} Columns in use: {used}."
            )


def parsed_ranges(texts: Sequence[str], file: Path | None) -> "dict[str, Range]":
    """Read age=0:120 and a TOML file of ranges; those on the command line count, if both name a column."""
    found = {} if file is None else _from_toml(file)
    said: set[str] = set()
    for text in texts:
        name, _, ends = text.rpartition("=")
        try:
            low, high = (float(part) for part in ends.split(":"))
        except ValueError:
            raise ConfigError(f"--range must look like age=0:120, got {text!r}.") from None
        if not name.strip() or not low < high:
            raise ConfigError(f"--range must look like age=0:120, its lowest number first, got {text!r}.")
        if name.strip() in said:
            raise ConfigError(f"--range names {name.strip()} twice. Name it once.")
        said.add(name.strip())
        found[name.strip()] = (low, high)
    return found


def _from_toml(file: Path) -> "dict[str, Range]":
    try:
        told = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not valid TOML ({error}).") from None
    flat: dict[str, Any] = {}
    for name, value in told.items():
        flat |= (
            {f"{name}/{own}": ends for own, ends in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
    return {name: _ends(file, name, value) for name, value in flat.items()}


def _ends(file: Path, name: str, value: Any) -> "Range":
    numbers = isinstance(value, list) and all(isinstance(end, int | float) for end in value)
    if not numbers or len(value) != 2 or not value[0] < value[1]:
        raise ConfigError(
            f"{file}: {name} must be its lowest and its highest number, such as age = [0, 120]."
        )
    return float(value[0]), float(value[1])
