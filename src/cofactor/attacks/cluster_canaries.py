"""Canaries in a clustering: users of whom a coin decides whether any party knows their numbers.

A canary is among the common users either way, for who is common is public. If she is absent, all her numbers
are missing at all parties: the neighbour that the guarantee speaks of. She is judged by all that the
coordinator sees: local centres, and whatever counts memberships.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.charged import charged
from cofactor.attacks.cluster_canaries_centres import Shadow, Shadowed, centres_evidence, shadowed
from cofactor.attacks.cluster_canaries_counts import Known, counts_evidence
from cofactor.attacks.target import Played
from cofactor.cluster.clustering import find_clusters
from cofactor.cluster.halves import LocalCentres
from cofactor.cluster.kmeans import labels
from cofactor.cluster.local import LSHForest
from cofactor.cluster.method import NOWHERE, Facts, Floats, Integers, LocalClustering, Membership
from cofactor.cluster.planning import Plan, planned
from cofactor.cluster.records import Records, to_units
from cofactor.cluster.tables import SecureTable
from cofactor.config import not_negative, whole
from cofactor.errors import ConfigError
from cofactor.federation.door import COORDINATOR
from cofactor.federation.finding import find_common
from cofactor.federation.view import Capture, View
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import counted_once
from cofactor.privacy.one_run import Curve
from cofactor.randomness import InsecureRandom, Random, Seeds

_CANDIDATES = 16
"""How many random places each canary's is chosen from: the farthest from those before her."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterTarget:
    """A clustering in which some users are canaries: those present have numbers, at places of their own."""

    records: Sequence[Records]
    """What parties hold besides; `nobody` gives parties with columns and no users. No ledger is charged."""
    budget: Budget
    method: Membership = SecureTable()  # noqa: RUF009 (it is frozen)
    """How memberships are counted."""
    local: LocalClustering = LSHForest()  # noqa: RUF009
    """How a party finds clusters alone."""
    clusters: int = 4
    """How many clusters are wanted."""
    local_clusters: int = 8
    """How many each party finds."""
    canaries: int = 32
    """How many there are. Few are told apart better, and many make up for it: several plays count as one."""
    shadows: int = 40
    """How often whoever looks plays the parties beforehand to learn what a canary does to their centres; 0
    leaves centres aside."""
    seed: int = 0
    """That of places, shadows and public chance; noise has none."""
    seen_by: str = COORDINATOR

    def __post_init__(self) -> None:
        whole(canaries=self.canaries, clusters=self.clusters, local_clusters=self.local_clusters)
        not_negative(shadows=self.shadows)
        if self.seen_by != COORDINATOR:
            raise ConfigError(
                f"canaries of a clustering are judged by what the {COORDINATOR} sees; got {self.seen_by!r}."
            )
        if len(self.records) < 2 or not all(isinstance(each, Records) for each in self.records):
            raise ConfigError("records must be those of two parties or more, such as nobody(widths=(1, 1)).")

    @property
    def name(self) -> str:
        """What is audited."""
        return f"a clustering by {type(self.method).__name__} and {type(self.local).__name__}"

    def play(self, present: NDArray[np.bool_], random: Random) -> Played:
        """Cluster everybody once, and score canaries by all that the coordinator saw."""
        capture = Capture(self.seen_by)
        found = find_clusters(
            [self._with_canaries(place, present) for place in range(len(self.records))],
            clusters=self.clusters,
            budget=self.budget,
            method=self.method,
            local=self.local,
            local_clusters=self.local_clusters,
            align="ids",
            seed=self.seed,
            random=random,
            capture=capture,
        )
        events = counted_once(charged(found.together))
        return Played(
            scores=self.scores(capture.view(self.seen_by)),
            promised=Curve.of(events, unit="user", adjacency=self.budget.adjacency),
            guarantee=found.guarantee,
        )

    def scores(self, view: View) -> Floats:
        """Return how much all that was seen speaks for the presence of each canary, in log-odds.

        Whoever looks knows all other users, which the guarantee allows, and nothing of the coins.
        """
        centres = [
            next(view.messages(LocalCentres.__name__, sender=each.name)).arrays["centres"]
            for each in self.records
        ]
        known = Known(
            plan=self._plan,
            rows=self._rows,
            canaries=tuple(labels(*pair) for pair in zip(self._places, centres, strict=True)),
            others=tuple(_cells(*pair) for pair in zip(self._others, centres, strict=True)),
        )
        found = counts_evidence(view, known)
        return found + centres_evidence(self._shadowed, centres) if self.shadows else found

    def _with_canaries(self, place: int, present: NDArray[np.bool_]) -> Records:
        """Return a party's records with canaries among them; without its file, so that nothing is charged."""
        own, ranges = self.records[place], tuple(self.records[place].ranges.values())
        values = np.where(present[:, None], to_units(self._places[place], ranges), np.nan)
        return replace(
            own,
            ids=(*own.ids, *self._names),
            values=np.concatenate([own.values, values]),
            file=None,
            fingerprint="",
        )

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(f"canary {number:06d}" for number in range(self.canaries))

    @cached_property
    def _places(self) -> tuple[Floats, ...]:
        """By party, where canaries are, scaled to [-1, 1]: by chance, and far from each other."""
        chance = Seeds(self.seed).generator("places of canaries")
        return tuple(_far_apart(self.canaries, len(each.columns), chance) for each in self.records)

    @cached_property
    def _common(self) -> tuple[list[str], dict[str, Integers]]:
        """All common users, in order, and the rows that they have at each party."""
        everybody = {each.name: (*each.ids, *self._names) for each in self.records}
        common = find_common(everybody, how="ids")
        return [str(each) for each in common.ids.tolist()], dict(common.rows)

    @cached_property
    def _rows(self) -> Integers:
        at = {user: row for row, user in enumerate(self._common[0])}
        return np.array([at[name] for name in self._names], np.int64)

    @cached_property
    def _others(self) -> tuple[Floats, ...]:
        """By party, the points of all common users who are no canaries, in order."""
        rows = self._common[1]
        return tuple(each.points()[rows[each.name][rows[each.name] < len(each)]] for each in self.records)

    @cached_property
    def _plan(self) -> Plan:
        facts = Facts(
            parties=tuple(each.name for each in self.records),
            users=len(self._common[0]),
            columns=tuple(each.columns for each in self.records),
            clusters=self.clusters,
            local_clusters=self.local_clusters,
        )
        return planned(facts, self.budget, method=self.method, local=self.local)

    @cached_property
    def _shadowed(self) -> list[Shadowed]:
        return [self._shadow(place) for place in range(len(self.records))]

    def _shadow(self, place: int) -> Shadowed:
        others = self._others[place]
        party = Shadow(
            local=self.local,
            schedule=self._plan.schedules[self.records[place].name],
            canaries=self._places[place],
            others=others[~np.isnan(others).any(axis=1)],
            clusters=self.local_clusters,
            users=self._plan.facts.users,
            seed=self.seed,
        )
        return shadowed(party, self.shadows, InsecureRandom(self.seed), self.seed + place)


def nobody(*, widths: Sequence[int] = (1, 1)) -> tuple[Records, ...]:
    """Return parties that have so many columns each, from -1 to 1, and no users: canaries are then alone."""
    found = []
    for place, width in enumerate(widths):
        columns = tuple(f"column {number}" for number in range(width))
        found.append(
            Records(
                name=f"party {place}",
                ids=(),
                columns=columns,
                values=np.empty((0, width)),
                ranges=dict.fromkeys(columns, (-1.0, 1.0)),
            )
        )
    return tuple(found)


def _far_apart(count: int, width: int, chance: np.random.Generator) -> Floats:
    found = chance.uniform(-1, 1, (1, width))
    while len(found) < count:
        candidates = chance.uniform(-1, 1, (_CANDIDATES, width))
        distances = np.square(candidates[:, None] - found).sum(axis=2).min(axis=1)
        found = np.concatenate([found, candidates[[np.argmax(distances)]]])
    return found


def _cells(points: Floats, centres: Floats) -> Integers:
    """Return in which local cluster each user is; nowhere if a number is missing."""
    complete = ~np.isnan(points).any(axis=1)
    found = np.full(len(points), NOWHERE, np.int64)
    found[complete] = labels(points[complete], centres)
    return found
