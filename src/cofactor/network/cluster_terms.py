"""What a clustering on a network is about, and the plan that follows from what its parties told.

The plan is a function of the proposal, of what all parties told, and of how many users they have in common:
everybody works it out alike.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.joining import joined
from cofactor.cluster.lloyd import PrivateLloyd
from cofactor.cluster.local import LSHForest
from cofactor.cluster.method import Floats
from cofactor.cluster.planning import Plan, check_budget
from cofactor.cluster.records import Range, Records
from cofactor.cluster.session import kinds_of
from cofactor.cluster.settling import plan_of
from cofactor.cluster.simple import IndependentCounts, LocalMemberships
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.tables import SecureTable
from cofactor.cluster.telling import Released
from cofactor.config import as_table, from_table, one_of, whole
from cofactor.crypto.psi import RULES, Rule
from cofactor.errors import ConfigError, RunError
from cofactor.federation.finding import Alignment, Among, How
from cofactor.federation.messages import Message
from cofactor.network.proposal import Proposal
from cofactor.network.work import Telling
from cofactor.privacy.budget import Budget

AnyCounting = SecureTable | Sketches | IndependentCounts | LocalMemberships
AnyLocal = LSHForest | PrivateLloyd

SHOWN = "Which users each party has: the coordinator passed all ids on, and saw them as all parties did."
"""What is not covered where ids are shown."""


@dataclass(frozen=True, kw_only=True)
class ClusteringWork:
    """A clustering: what everybody is told of it before anybody agrees."""

    clusters: int
    """How many are wanted."""
    budget: Budget
    """The most that all parties' releases may tell about a user."""
    method: AnyCounting = field(default_factory=SecureTable)
    """How memberships are counted."""
    local: AnyLocal = field(default_factory=LSHForest)
    """How each party clusters alone."""
    local_clusters: int | None = None
    """How many clusters each party finds alone; chosen from public numbers, if None."""
    align: How = "psi"
    """How users in common are found: "psi", or "ids", which all parties show each other."""
    among: Among = "leader"
    rule: Rule = "exact"
    """How ids are written before they are compared."""

    def __post_init__(self) -> None:
        whole(clusters=self.clusters, local_clusters=self.local_clusters)
        check_budget(self.budget)
        one_of(("psi", "ids"), align=self.align)
        one_of(("leader", "chain"), among=self.among)
        one_of(RULES, rule=self.rule)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "ClusteringWork":
        """Read it from a proposal, whoever wrote that."""
        return from_table(cls, table, "clustering")

    def table(self) -> dict[str, Any]:
        """Return it as a proposal holds it."""
        return as_table(self)

    @property
    def messages(self) -> tuple[type[Message], ...]:
        """All messages of it on a network."""
        return (*kinds_of(self.method), ClustersFound)

    @property
    def telling(self) -> Telling:
        """How ids become known."""
        return "psi" if self.align == "psi" else "intersection"

    @property
    def beside(self) -> tuple[str, ...]:
        """What else the guarantee does not cover."""
        return () if self.align == "psi" else (SHOWN,)

    def plan(self, columns: Mapping[str, tuple[str, ...]], users: int) -> Plan:
        """Return the plan for so many common users of parties with these columns."""
        return plan_of(
            tuple(columns),
            tuple(columns.values()),
            users,
            clusters=self.clusters,
            budget=self.budget,
            method=self.method,
            local=self.local,
            local_clusters=self.local_clusters,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ClustersFound(Message):
    """The last letter: local centres, table and centres, which everybody may see."""

    local: NDArray[np.float64]
    """All parties' local centres, one party's after the other's."""
    table: NDArray[np.float64]
    """About how many users are in every combination of them."""
    scaled: NDArray[np.float64]
    """The centres, with columns scaled to [-1, 1]."""

    @classmethod
    def of(cls, found: Released, clusters: int, seed: int) -> "ClustersFound":
        """Put local clusters together, and write it down."""
        centres, table = found
        return cls(
            local=np.concatenate([own.ravel() for own in centres]),
            table=table,
            scaled=joined(centres, table, clusters, seed=seed),
        )

    def released(self, plan: Plan) -> Released:
        """Return local centres and table; refuse what they cannot be."""
        facts = plan.facts
        sizes = [facts.local_clusters * width for width in facts.widths]
        shapes = ((sum(sizes),), facts.grid, (facts.clusters, sum(facts.widths)))
        for array, shape in zip((self.local, self.table, self.scaled), shapes, strict=True):
            if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise RunError("the last letter tells of other clusters than were agreed on.")
        if np.any(self.table < 0):
            raise RunError("the last letter tells of fewer users than none.")
        parts: list[Floats] = np.split(self.local, np.cumsum(sizes)[:-1])
        centres = tuple(part.reshape(facts.local_clusters, -1) for part in parts)
        return centres, self.table


@dataclass(frozen=True, kw_only=True)
class OwnColumns:
    """What one party tells: all of it is public."""

    columns: tuple[str, ...]
    ranges: tuple[Range, ...]
    """Between which numbers each lies."""
    unstated: tuple[str, ...]
    """Those whose ranges were read off the data."""

    @classmethod
    def at(cls, records: Records) -> "OwnColumns":
        """Return what a party tells of its records."""
        ranges = tuple(records.ranges[column] for column in records.columns)
        return cls(columns=records.columns, ranges=ranges, unstated=records.unstated)

    def table(self) -> dict[str, Any]:
        """Return it for JSON."""
        ranges = [list(each) for each in self.ranges]
        return {"columns": list(self.columns), "ranges": ranges, "unstated": list(self.unstated)}

    @classmethod
    def of(cls, table: object, party: str) -> "OwnColumns":
        """Read what a party has told; name it if it makes no sense."""
        try:
            found = _read(table)
        except (KeyError, TypeError, ValueError):
            found = None
        if found is None or not found._possible():
            raise RunError(f"{party} told facts that make no sense. Is it of the same version?")
        return found

    def _possible(self) -> bool:
        names = all(name.strip() and name.isprintable() for name in self.columns)
        ends = all(low < high and math.isfinite(high - low) for low, high in self.ranges)
        once = len(set(self.columns)) == len(self.columns) == len(self.ranges) > 0
        return names and ends and once and set(self.unstated) <= set(self.columns)


def _read(table: Any) -> OwnColumns:
    if not isinstance(table, Mapping) or set(table) != {"columns", "ranges", "unstated"}:
        raise ValueError
    columns, ranges, unstated = (table[name] for name in ("columns", "ranges", "unstated"))
    if not all(isinstance(each, list) for each in (columns, ranges, unstated)):
        raise ValueError
    if not all(isinstance(name, str) for name in (*columns, *unstated)):
        raise ValueError
    if not all(type(end) in (int, float) for each in ranges for end in each):
        raise ValueError
    pairs = tuple((float(low), float(high)) for low, high in ranges)
    return OwnColumns(columns=tuple(columns), ranges=pairs, unstated=tuple(unstated))


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """What all parties have come to."""

    plan: Plan
    told: Mapping[str, OwnColumns]
    alignment: Alignment

    @classmethod
    def of(
        cls, work: ClusteringWork, proposal: Proposal, told: Mapping[str, Any], alignment: Alignment
    ) -> "Agreed":
        """Work it out from what all parties told; refuse what does not fit together."""
        if set(told) != set(proposal.parties):
            raise RunError("others have told facts than those who take part.")
        if alignment.parties != tuple(proposal.parties):
            raise RunError("users in common were found for others than those who take part.")
        own = {party: OwnColumns.of(told[party], party) for party in proposal.parties}
        plan = work.plan({party: each.columns for party, each in own.items()}, alignment.common)
        return cls(plan=plan, told=own, alignment=alignment)

    def terms(self) -> dict[str, Any]:
        """Return the terms: what is clustered, by whom, and how users were found."""
        told = {party: own.table() for party, own in self.told.items()}
        table = {
            "facts": as_table(self.plan.facts),
            "told": told,
            "alignment": as_table(self.alignment),
            "rounds": self.plan.rounds,
        }
        plain: dict[str, Any] = json.loads(json.dumps(table))
        return plain

    @property
    def digest(self) -> str:
        """The hash of the terms, to which sums and signatures are bound."""
        return sha256(json.dumps(self.terms(), sort_keys=True).encode()).hexdigest()

    @property
    def ranges(self) -> tuple[tuple[Range, ...], ...]:
        """By party, between which numbers its columns lie."""
        return tuple(own.ranges for own in self.told.values())

    @property
    def unstated(self) -> dict[str, tuple[str, ...]]:
        """By party, the columns whose ranges were read off the data."""
        return {party: own.unstated for party, own in self.told.items()}


def check_kind(proposal: Proposal) -> None:
    """Refuse a proposal of something else, or with a seed that is none."""
    if proposal.kind != "clustering" or proposal.seed < 0:
        raise ConfigError("a proposal of a clustering has a seed of 0 or more.")
