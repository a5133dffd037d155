"""From options of `cofactor join run` to the files that a party brings."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.network.sources import PeopleSource, RatingsSource, RecordsSource


def ratings_of(file: Path | None, reading: Mapping[str, Any]) -> "RatingsSource | None":
    """Return the file of ratings, if one is named."""
    from cofactor.network.sources import RatingsSource

    usual = {"duplicates": "error", "implicit": False}
    said = [name for name, value in reading.items() if value not in (None, usual.get(name))]
    if file is None:
        if said:
            words = ", ".join(f"--{name}" for name in said)
            raise ConfigError(f"{words}: say that together with the file of ratings.")
        return None
    attributes = reading["attributes"]
    where = None if attributes is None else str(attributes.resolve())
    return RatingsSource(**{**reading, "file": str(file.resolve()), "attributes": where})


def people_of(
    people: Path | None, column: str | None, missing: str | None, id_column: str | None
) -> "PeopleSource | None":
    """Return the table for surveys, if one is named."""
    from cofactor.network.sources import PeopleSource

    if people is None:
        if column or missing:
            raise ConfigError("--column and --missing go with --people FILE.")
        return None
    if column is None:
        raise ConfigError("--people needs --column: the only one that is ever asked for.")
    return PeopleSource(file=str(people.resolve()), column=column, missing=missing, user=id_column)


def records_of(records: Path | None, ranges: Sequence[str], id_column: str | None) -> "RecordsSource | None":
    """Return the table for clusterings, if one is named."""
    from cofactor.network.sources import RecordsSource

    if records is None:
        if ranges:
            raise ConfigError("--range goes with --records FILE.")
        return None
    stated = dict(map(_range, ranges))
    if not stated:
        raise ConfigError("--records needs --range age=0:120 for each column to use: ranges become public.")
    file = str(records.resolve())
    return RecordsSource(file=file, id=id_column, columns=tuple(stated), ranges=stated)


def _range(text: str) -> tuple[str, list[float]]:
    """Read age=0:120."""
    column, _, ends = text.rpartition("=")
    try:
        low, high = (float(part) for part in ends.split(":"))
    except ValueError:
        low, high = 0.0, 0.0
    if not column or not low < high:
        raise ConfigError(f"--range must look like age=0:120, got {text!r}.")
    return column, [low, high]
