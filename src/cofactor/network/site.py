"""`Site`: a party's own folder. All that it decides, and all that it must not lose, is in it.

site.toml        which files it brings, and how they are read
policy.toml      what it allows
peers.toml       the keys of the others, as people compared them
identity.pem     its own key; whoever has it can pass for the party
approvals/       what was asked, who said yes, when; signed
sessions/NAME/   what it keeps of each piece of work
kit/             certificates and settings of the network engine
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from cofactor.config import as_table, from_table
from cofactor.crypto.keys import Identity
from cofactor.errors import ConfigError, Refused, did_you_mean
from cofactor.federation.declining import Declining
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.party import check_name
from cofactor.network.pins import Pins
from cofactor.network.policy import TEMPLATE, Policy
from cofactor.network.proposal import check_session
from cofactor.network.sources import PeopleSource, RatingsSource, RecordsSource, readable
from cofactor.network.toml import read_toml, toml, write_private

if TYPE_CHECKING:
    from cofactor.cluster.records import Records
    from cofactor.data.coding import Coding
    from cofactor.data.ratings import Scale
    from cofactor.federation.party import Party
    from cofactor.randomness import Random
    from cofactor.survey.people import People
    from cofactor.survey.question import Question

SITE: Final = "site.toml"
POLICY: Final = "policy.toml"
PEERS: Final = "peers.toml"
IDENTITY: Final = "identity.pem"

Source = TypeVar("Source", RatingsSource, PeopleSource)
_TABLES = ("ratings", "people", "records")
_HEAD = """# Which files this party brings, and how they are read. 'cofactor join run' writes it.

"""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A party's own folder, and what its people said in it."""

    folder: Path
    name: str
    ratings: RatingsSource | None = None
    people_source: PeopleSource | None = None
    records_source: RecordsSource | None = None

    @classmethod
    def create(cls, folder: str | Path, *, name: str | None = None) -> "Site":
        """Make a new folder, with a new identity, that its owner alone may read."""
        place = Path(folder)
        named = name or place.resolve().name
        check_name(named)
        if named in (COORDINATOR, SUM):
            raise ConfigError(f"no party can be called {named!r}: reports use the word otherwise.")
        if (place / IDENTITY).exists() or (place / SITE).exists():
            raise Refused(f"{place} already is a party's folder. Use it, or name another.")
        try:
            place.mkdir(parents=True, exist_ok=True)
            place.chmod(0o700)
            for inner in ("approvals", "sessions"):
                (place / inner).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{place} cannot be made ({error.strerror}). Name another folder.") from None
        Identity.generate().save(place / IDENTITY)
        if not (place / POLICY).exists():
            write_private(place / POLICY, TEMPLATE)
        site = cls(folder=place.resolve(), name=named)
        site.write()
        return site

    @classmethod
    def open(cls, folder: str | Path) -> "Site":
        """Read a party's folder; refuse one that others may look into."""
        place = Path(folder)
        if not (place / SITE).is_file():
            raise ConfigError(f"{place} is no party's folder. Make one: cofactor join new {place}")
        mode = stat.S_IMODE(place.stat().st_mode)
        if mode & 0o077:
            raise Refused(
                f"{place} may be read or changed by others than its owner (mode {mode:o}). If nobody did, "
                f"run: chmod 700 {place}"
            )
        table = read_toml(place / SITE)
        name = table.pop("name", None)
        if not isinstance(name, str):
            raise ConfigError(f'{place / SITE} needs the party\'s name: name = "north".')
        check_name(name)
        for key in table:
            if key not in _TABLES:
                known = ", ".join(("name", *_TABLES))
                raise ConfigError(f'{SITE} has "{key}".{did_you_mean(key, _TABLES)} Known: {known}.')
        return cls(
            folder=place.resolve(),
            name=name,
            ratings=_source(RatingsSource, table, "ratings"),
            people_source=_source(PeopleSource, table, "people"),
            records_source=_records_source(table),
        )

    def write(self) -> None:
        """Write `site.toml` anew."""
        records = self.records_source
        tables: dict[str, Any] = {
            "ratings": _table(self.ratings),
            "people": _table(self.people_source),
            "records": None if records is None else {**_table(records), "ranges": dict(records.ranges)},
        }
        said = {name: table for name, table in tables.items() if table}
        write_private(self.folder / SITE, _HEAD + toml({"name": self.name, **said}))

    def bringing(self, *sources: RatingsSource | PeopleSource | RecordsSource) -> "Site":
        """Return the site with these files, each of which must be there."""
        site = self
        for each in sources:
            readable(each, self.folder)
            if isinstance(each, RatingsSource):
                site = replace(site, ratings=each)
            elif isinstance(each, PeopleSource):
                site = replace(site, people_source=each)
            else:
                site = replace(site, records_source=each)
        return site

    @property
    def identity(self) -> Identity:
        """The key by which the others know this party."""
        return Identity.load(self.folder / IDENTITY)

    @property
    def policy(self) -> Policy:
        """What this party allows, as its file says now."""
        return Policy.read(self.folder / POLICY)

    @property
    def pins(self) -> Pins:
        """The keys of the others."""
        return Pins.read(self.folder / PEERS)

    @property
    def approvals(self) -> Path:
        """Where approvals are kept."""
        return self._own("approvals")

    @property
    def kit(self) -> Path:
        """Where the network engine's kit is."""
        return self.folder / "kit"

    def session_folder(self, session: str) -> Path:
        """Return where one piece of work is kept; a session's name comes from outside, and is checked."""
        check_session(session)
        return self._own("sessions") / session

    def sessions(self) -> list[Path]:
        """Return the folders of all sessions, oldest first."""
        return sorted(self._own("sessions").iterdir(), key=lambda path: path.stat().st_mtime)

    def party(self, scale: "Scale | None" = None, coding: "Coding | None" = None) -> "Party":
        """Read the ratings; attributes of users too, if a coding of them is agreed on."""
        if self.ratings is None:
            raise _nothing("ratings", "cofactor join run FOLDER ratings.csv --scale 1:5")
        return self.ratings.party(self.name, self.folder, scale, coding)

    def people(self, question: "Question | None" = None, random: "Random | None" = None) -> "People":
        """Read who answers a survey, and refuse questions about anything that is not offered."""
        if self.people_source is None:
            raise _nothing("people", "cofactor join run FOLDER --people people.csv --column age")
        return self.people_source.people(self.name, self.folder, question, random)

    def records(self) -> "Records":
        """Read the records that are clustered."""
        if self.records_source is None:
            raise _nothing("records", "cofactor join run FOLDER --records users.csv --range age=0:120")
        return self.records_source.records(self.name, self.folder)

    def _own(self, part: str) -> Path:
        place = self.folder / part
        place.mkdir(mode=0o700, exist_ok=True)
        return place


def os_user() -> str:
    """Return who runs this, as the operating system says, not the environment."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _nothing(table: str, command: str) -> Declining:
    return Declining(
        "no data", f"{SITE} has no [{table}]: this party brings no such file. Name one: {command}"
    )


def _table(source: object) -> dict[str, Any]:
    return (
        {} if source is None else {name: value for name, value in as_table(source).items() if name != "kind"}
    )


def _source(kind: type[Source], tables: Mapping[str, Any], name: str) -> Source | None:
    return from_table(kind, tables[name], f"{SITE} [{name}]") if name in tables else None


def _records_source(tables: Mapping[str, Any]) -> RecordsSource | None:
    """Read [records]; its ranges have names that only the file knows."""
    if "records" not in tables:
        return None
    table = dict(tables["records"]) if isinstance(tables["records"], Mapping) else {}
    ranges = table.pop("ranges", {})
    if not isinstance(ranges, Mapping):
        raise ConfigError(f"{SITE} [records.ranges] must name columns, such as age = [0, 120].")
    unknown = [name for name in table if name not in RecordsSource.__dataclass_fields__]
    if unknown:
        hint = did_you_mean(unknown[0], RecordsSource.__dataclass_fields__)
        raise ConfigError(f'{SITE} [records] has "{unknown[0]}".{hint}')
    if not isinstance(table.get("file"), str) or not isinstance(table.get("columns"), list):
        raise ConfigError(f"{SITE} [records] needs file and columns.")
    return RecordsSource(**{**table, "columns": tuple(table["columns"]), "ranges": dict(ranges)})
