"""Which files a party brings, and how they are read: its own settings, which no proposal can change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from cofactor.config import one_of
from cofactor.data.duplicates import Duplicates
from cofactor.data.ratings import Scale
from cofactor.errors import ConfigError, DataError
from cofactor.federation.declining import Declining

if TYPE_CHECKING:
    from cofactor.cluster.records import Records
    from cofactor.data.coding import Coding
    from cofactor.federation.party import Party
    from cofactor.randomness import Random
    from cofactor.survey.people import People
    from cofactor.survey.question import Question

Missing = Literal["skip", "random"]


@dataclass(frozen=True, kw_only=True)
class RatingsSource:
    """A file of ratings, for trainings."""

    file: str
    user: str | None = None
    item: str | None = None
    rating: str | None = None
    time: str | None = None
    scale: str | None = None
    """Lowest and highest rating, as 1:5. A proposal must have the same: were the file read with whatever is
    proposed, refusals would tell between which numbers ratings lie."""
    duplicates: str = "error"
    implicit: bool = False
    member: str | None = None
    """The right file in a .zip that holds several."""
    attributes: str | None = None
    """A table of what is known about users, for recipes that use it."""

    def __post_init__(self) -> None:
        one_of(get_args(Duplicates), duplicates=self.duplicates)
        if (scale_of(self.scale) is None) != self.implicit:
            raise ConfigError(
                "ratings need their scale, such as 1:5 for the lowest and the highest (--scale 1:5, or scale "
                f'= "1:5" under [ratings]); rows without values need --implicit instead. File: {self.file}'
            )

    def party(self, name: str, folder: Path, scale: Scale | None, coding: "Coding | None") -> "Party":
        """Read the file; attributes only where a proposal says how they are coded."""
        from dataclasses import replace

        from cofactor.federation.party import Party

        own = scale_of(self.scale)
        if own != scale:
            asked = "rows without values" if scale is None else f"{scale.low:g}:{scale.high:g}"
            stated = "implicit = true" if own is None else f"scale = {self.scale!r}"
            raise Declining("scale", f"site.toml says {stated}; the proposal says {asked}.")
        columns = {each: getattr(self, each) for each in ("user", "item", "rating", "time", "member")}
        party = Party.from_csv(
            folder / self.file,
            name=name,
            scale=own,
            duplicates=cast(Duplicates, self.duplicates),
            implicit=self.implicit,
            **columns,
        )
        if coding is None:
            return party
        return replace(party, attributes=self._attributes(folder, coding, party))

    def _attributes(self, folder: Path, coding: "Coding", party: "Party") -> Any:
        from cofactor.data.attributes import UserAttributes

        if self.attributes is None:
            raise Declining(
                "no data", "the recipe uses user attributes, and site.toml names no file of them."
            )
        found = UserAttributes.from_file(folder / self.attributes, coding=coding)
        return found.rows(party.ratings.user_ids)


@dataclass(frozen=True, kw_only=True)
class PeopleSource:
    """A table with a row for each person and a number in it, for surveys."""

    file: str
    column: str
    """The only one that is ever asked for."""
    asked: str | None = None
    """What a question about it is called; as the column, if left out."""
    user: str | None = None
    """The column of ids."""
    missing: str | None = None
    """People without a number: skip, or random."""
    member: str | None = None

    def __post_init__(self) -> None:
        if self.missing is not None:
            one_of(get_args(Missing), missing=self.missing)

    def people(
        self, name: str, folder: Path, question: "Question | None", random: "Random | None"
    ) -> "People":
        """Read the file; refuse a question about anything else than the column that is offered."""
        from cofactor.randomness import SecureRandom
        from cofactor.survey.reading import read_people

        about = self.asked or self.column
        if question is not None and question.name != about:
            raise Declining(
                "no data",
                f'this party answers about "{about}", and is asked about "{question.name}". If they are the '
                f"same, say so in site.toml under [people]: asked = ...",
            )
        return read_people(
            folder / self.file,
            self.column,
            question=question,
            user=self.user,
            missing=cast("Missing | None", self.missing),
            name=name,
            member=self.member,
            random=random or SecureRandom(),
        )


@dataclass(frozen=True, kw_only=True)
class RecordsSource:
    """A table with a row for each user, for clusterings."""

    file: str
    id: str | None = None
    """The column of ids."""
    columns: tuple[str, ...] = ()
    """Those that are used; nothing else of the file is."""
    ranges: Mapping[str, Any] = field(default_factory=dict, metadata={"table": False})
    """Between which numbers each column lies: public, and declared, never read off the data."""
    member: str | None = None

    def __post_init__(self) -> None:
        if not self.columns:
            raise ConfigError('columns must name those to use, such as ["age", "income"].')
        missing = [column for column in self.columns if column not in self.ranges]
        if missing:
            raise ConfigError(
                f"ranges must say between which numbers {', '.join(missing)} lie: they become public, so "
                "they are not read off the data. For example age = [0, 120]."
            )

    def records(self, name: str, folder: Path) -> "Records":
        """Read the file."""
        from cofactor.cluster.records import Records

        try:
            ranges = {column: (float(low), float(high)) for column, (low, high) in self.ranges.items()}
        except (TypeError, ValueError):
            raise ConfigError("ranges: each must be two numbers, such as age = [0, 120].") from None
        return Records.from_csv(
            folder / self.file,
            id=self.id,
            columns=list(self.columns),
            ranges=ranges,
            name=name,
            member=self.member,
        )


def scale_of(text: str | None) -> Scale | None:
    """Read 1:5."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(":"))
    except (ValueError, AttributeError):
        raise ConfigError(f"scale must look like 1:5 (lowest, colon, highest), got {text!r}.") from None
    return Scale(low, high)


def readable(source: "RatingsSource | PeopleSource | RecordsSource", folder: Path) -> None:
    """Refuse a file that is not there, before anything begins."""
    path = folder / source.file
    if not path.is_file():
        raise DataError(f"{path} is not there. Name the data file again.")
