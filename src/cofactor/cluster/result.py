"""`Clustering`: the segments that parties found together, and what may be said about their users' privacy."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cofactor.cluster.joining import combinations_of, joined, sizes_of
from cofactor.cluster.kmeans import labels, loss
from cofactor.cluster.method import NOWHERE, Facts, Floats, Integers
from cofactor.cluster.picture import drawn
from cofactor.cluster.records import Range, Records, to_units
from cofactor.errors import ConfigError, RunError, UnknownId
from cofactor.federation.folder import FORMAT, digests, read_facts, write_facts, write_whole
from cofactor.federation.run import (
    DataFacts,
    Together,
    together_as_json,
    together_from_json,
    versions,
    write_together,
)
from cofactor.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from cofactor.data.attributes import UserAttributes

_ARRAYS = "clusters.npz"
_CLOSE = 1e-6
"""By how much numbers may differ that another machine makes of the same releases."""
_WORSE = 1.01
"""How much worse centres may be than those that another version of k-means finds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Clustering:
    """Segments of users. Everything in it was released, with noise, or follows from that."""

    facts: Facts
    settings: Mapping[str, Any]
    """How it was made: tables of the method and of the local clustering."""
    ranges: tuple[tuple[Range, ...], ...]
    """By party, between which numbers its columns lie."""
    local_centres: tuple[Floats, ...] = field(repr=False)
    """By party, the centres of its local clusters, with columns scaled to [-1, 1]."""
    table: Floats = field(repr=False)
    """About how many users are in every combination of local clusters."""
    scaled: Floats = field(repr=False)
    """The centres, with columns scaled to [-1, 1]."""
    concerns: tuple[str, ...]
    """Sentences: why the segments may be worse than they look."""
    guarantee: Guarantee
    together: Together
    """Who took part and what was sent."""
    seed: int
    created: str
    """When it began, in UTC."""
    seconds: float

    @property
    def columns(self) -> tuple[str, ...]:
        """What the columns are called, party by party; named after their party where two share a name."""
        names = [name for own in self.facts.columns for name in own]
        if len(set(names)) == len(names):
            return tuple(names)
        owners = zip(self.facts.parties, self.facts.columns, strict=True)
        return tuple(f"{party}/{name}" for party, own in owners for name in own)

    @cached_property
    def centres(self) -> Floats:
        """The centres, a row for each, in the columns' own units."""
        return to_units(self.scaled, [each for own in self.ranges for each in own])

    @cached_property
    def sizes(self) -> Floats:
        """About how many users belong to each of them."""
        return sizes_of(self.local_centres, self.table, self.scaled)

    @property
    def clusters(self) -> int:
        """How many there are."""
        return len(self.scaled)

    def assign(self, records: Records) -> Integers:
        """Return the segment of each of a party's users, by her columns there; NOWHERE if one is missing.

        Nobody sees a user's other columns, so it is the segment whose centre is closest in these. What comes
        out belongs to the party: LOCAL.
        """
        if not isinstance(records, Records):
            raise ConfigError("assign takes a party's Records, such as Records.from_csv(file).")
        place = self._place(records)
        points = records.with_ranges(dict(zip(records.columns, self.ranges[place], strict=True))).points()
        complete = ~np.isnan(points).any(axis=1)
        first = sum(self.facts.widths[:place])
        found = np.full(len(points), NOWHERE, np.int64)
        found[complete] = labels(points[complete], self.scaled[:, first : first + points.shape[1]])
        return found

    def _place(self, records: Records) -> int:
        if records.name in self.facts.parties:
            place = self.facts.parties.index(records.name)
            if self.facts.columns[place] == records.columns:
                return place
            told = f"{records.name} has the columns {', '.join(records.columns)}, and clustered by "
            raise ConfigError(f"{told}{', '.join(self.facts.columns[place])}. Give the same, in that order.")
        raise UnknownId(f"there is no party {records.name!r}. There are {', '.join(self.facts.parties)}.")

    @property
    def promised(self) -> str:
        """What is promised, in two words."""
        budget = (self.together.budget or {}).get("epsilon", 0.0)
        return f"epsilon {budget:g}" if self.guarantee.holds else "no guarantee"

    def segments(self, records: Records) -> "UserAttributes":
        """Return the same as attributes of the users, for recipes: see `cofactor.cluster.segments`."""
        from cofactor.cluster.segments import segments

        return segments(self, records)

    def svg(self) -> str:
        """Draw the clusters: how large they are, and where their centres lie."""
        return drawn(
            self.centres,
            self.sizes,
            parties=self.facts.parties,
            columns=self.facts.columns,
            ranges=[each for own in self.ranges for each in own],
            title=f"{self.clusters} clusters of {self.facts.users:,} users, {self.promised}",
        )

    def check(self) -> None:
        """Refuse centres that do not follow from what was released: k-means finds far better ones anew."""
        points, weights = combinations_of(self.local_centres), self.table.reshape(-1)
        anew = joined(self.local_centres, self.table, self.clusters, seed=self.seed)
        if loss(points, self.scaled, weights) > _WORSE * loss(points, anew, weights) + _CLOSE:
            raise RunError("The centres do not follow from what was released.")

    def told(self) -> dict[str, Any]:
        """Return what a run folder's run.json says of the segments."""
        return {
            "parties": list(self.facts.parties),
            "columns": [list(own) for own in self.facts.columns],
            "ranges": [[list(each) for each in own] for own in self.ranges],
            "local_clusters": self.facts.local_clusters,
            "centres": self.centres.tolist(),
            "sizes": self.sizes.tolist(),
            "concerns": list(self.concerns),
        }

    def as_json(self) -> dict[str, Any]:
        """Return everything but arrays, transcript and ledgers, as the folder's run.json holds it."""
        data = DataFacts(users=self.facts.users, items=sum(self.facts.widths), ratings=0, scale="")
        return {
            "format": FORMAT,
            "created": self.created,
            "seconds": round(self.seconds, 3),
            "recipe": dict(self.settings),
            "seed": self.seed,
            "data": asdict(data),
            "guarantee": self.guarantee.as_json(),
            "scores": {},
            "clustering": self.told(),
            "together": together_as_json(self.together),
            "versions": versions(),
        }

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run folder whole or not at all; an existing one is kept unless told otherwise."""
        return write_whole(folder, self._write, overwrite=overwrite)

    def _write(self, folder: Path) -> None:
        local = {f"local_{place}": own for place, own in enumerate(self.local_centres)}
        np.savez(folder / _ARRAYS, allow_pickle=False, table=self.table, scaled=self.scaled, **local)
        write_together(self.together, folder)
        write_facts(folder, self.as_json())

    @classmethod
    def load(cls, folder: str | Path) -> "Clustering":
        """Read a clustering's run folder."""
        facts, place = read_facts(folder), Path(folder)
        if "clustering" not in facts:
            raise RunError(f"{folder} holds no clustering. Look at it with 'cofactor show {folder}'.")
        if digests(place) != facts.get("files"):
            raise RunError(f"{folder}: files were changed, added or lost after the clustering was saved.")
        try:
            found = cls._read(facts, place)
            told, anew = (_flat(each) for each in (facts["clustering"], found.told()))
        except (KeyError, TypeError, ValueError, OSError, ConfigError) as error:
            why = f"{type(error).__name__}: {error}"
            raise RunError(f"{folder}: the run folder is damaged ({why}). Cluster again.") from None
        if told.shape != anew.shape or not np.allclose(told, anew, rtol=_CLOSE, atol=_CLOSE):
            raise RunError(f"{folder}: centres or sizes in run.json do not follow from what was released.")
        return found

    @classmethod
    def _read(cls, facts: Mapping[str, Any], folder: Path) -> "Clustering":
        told = facts["clustering"]
        with np.load(folder / _ARRAYS, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return cls(
            facts=Facts(
                parties=tuple(told["parties"]),
                users=int(facts["data"]["users"]),
                columns=tuple(tuple(own) for own in told["columns"]),
                clusters=len(told["sizes"]),
                local_clusters=int(told["local_clusters"]),
            ),
            settings=facts["recipe"],
            ranges=tuple(tuple((float(low), float(high)) for low, high in own) for own in told["ranges"]),
            local_centres=tuple(arrays[f"local_{place}"] for place in range(len(told["parties"]))),
            table=arrays["table"],
            scaled=arrays["scaled"],
            concerns=tuple(told["concerns"]),
            guarantee=Guarantee.from_json(facts["guarantee"]),
            together=together_from_json(facts["together"], folder),
            seed=facts["seed"],
            created=facts["created"],
            seconds=facts["seconds"],
        )


def _flat(told: Mapping[str, Any]) -> Floats:
    """Return the centres and sizes that run.json tells, in a row."""
    return np.array([*np.ravel(told["centres"]), *told["sizes"]], np.float64)
