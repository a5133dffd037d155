"""The methods that chapter 5 compares, the thesis' and ours, as they would run but for the messages.

Methods of the thesis have noise for the parts into which Algorithm 2 divides the budget, whatever that costs
in truth; noise of ours is scaled until all releases together cost the budget.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from cofactor.cluster.baselines import exact_table
from cofactor.cluster.fitting import fitted_additively
from cofactor.cluster.local import LSHForest
from cofactor.cluster.method import Facts, Floats, Integers, Membership
from cofactor.cluster.planning import COUNT, Plan, planned
from cofactor.cluster.published_sketch import basic, two_party
from cofactor.cluster.simple import IndependentCounts, LocalMemberships
from cofactor.cluster.simple_halves import memberships, oracle_in
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.tables import SecureTable
from cofactor.papers.thesis22_cluster_data import CLUSTERS
from cofactor.papers.thesis22_cluster_judge import Measures, Split
from cofactor.papers.thesis22_cluster_names import (
    BASIC,
    CENTRAL,
    CENTRAL_OURS,
    CENTRAL_PRIVATE,
    INDEPENDENT,
    LOCAL_ANSWERS,
    NO_PRIVACY,
    PRIVATE_CENTRES,
    PRIVATE_TABLE,
    PROPORTIONAL,
    REPAIRED,
    SECURE,
    TWO_PARTY,
    parts_of,
)
from cofactor.papers.thesis22_cluster_rows import Cost, Way
from cofactor.papers.thesis22_cluster_runs import (
    DPLSF,
    OUR_LOCAL,
    budget_of,
    cost,
    count_release,
    final,
    local_releases,
    noisy_count,
    private_centres,
)
from cofactor.papers.thesis22_cluster_sketch import Shares, released
from cofactor.privacy.bounding import MEMBER
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import Random

_HISTOGRAMS, _ANSWERS = IndependentCounts(), LocalMemberships()
OURS: dict[str, Membership] = {REPAIRED: Sketches(), SECURE: SecureTable()}
"""By line, our own ways of counting memberships."""
_CENTRAL = {CENTRAL_PRIVATE: DPLSF, CENTRAL_OURS: OUR_LOCAL}
_SKETCHED = (BASIC, TWO_PARTY, PROPORTIONAL)


@dataclass(frozen=True, kw_only=True)
class NoPrivacy:
    """k-means of all columns in one place, and of several parties' columns (Ding et al. 2016)."""

    def costs(self, facts: Facts) -> Mapping[str, Cost]:  # noqa: ARG002
        """Return nothing: nobody is protected."""
        return {CENTRAL: Cost(), NO_PRIVACY: Cost()}

    def measures(self, split: Split, repeat: int, random: Random) -> Mapping[str, Measures]:  # noqa: ARG002
        """Cluster once centrally, once by parts."""
        centres = split.plain(CLUSTERS)
        cells = split.cells(centres)
        parts = final(split, centres, cells, exact_table(cells, CLUSTERS))
        return {CENTRAL: split.judge.measures(split.judge.centres), NO_PRIVACY: parts}


@dataclass(frozen=True, kw_only=True)
class CentralPrivate:
    """Private clusters of all columns in one place, with the whole budget: the thesis' way, and ours."""

    epsilon: float

    def costs(self, facts: Facts) -> Mapping[str, Cost]:
        """Return the budget, which noise is scaled to."""
        width = sum(facts.widths)
        return {
            line: cost(_central(local, width, facts.users, self.epsilon), self.epsilon, facts.users)
            for line, local in _CENTRAL.items()
        }

    def measures(self, split: Split, repeat: int, random: Random) -> Mapping[str, Measures]:
        """Cluster, as one party that has everything."""
        points, found = split.judge.points.values, {}
        for line, local in _CENTRAL.items():
            releases = _central(local, sum(split.widths), split.users, self.epsilon)
            centres = private_centres(local, points, CLUSTERS, releases, repeat, random)
            found[line] = split.judge.measures(centres)
        return found


@dataclass(frozen=True, kw_only=True)
class Published:
    """The thesis' methods with the same local clusters: its sketch, and clusters taken to be independent."""

    epsilon: float
    lines: Sequence[str]
    """Which of them are wanted."""
    local_clusters: int = CLUSTERS

    def costs(self, facts: Facts) -> Mapping[str, Cost]:
        """Return what an exact accountant proves beside what the thesis claims."""
        facts = replace(facts, local_clusters=self.local_clusters)
        shares = Shares.of(self.epsilon, facts.users, len(facts.parties))
        local = tuple(release for own in local_releases(facts, shares.local) for release in own)
        count, sketch = count_release(shares.count), _sketch_release(facts, shares)
        parts = {
            **dict.fromkeys(_SKETCHED, (*local, count, sketch)),
            INDEPENDENT: (*local, count, *_histograms(facts, shares) * len(facts.parties)),
            PRIVATE_TABLE: (count, sketch),
            PRIVATE_CENTRES: local,
        }
        notes = {PRIVATE_TABLE: "centres are not private", PRIVATE_CENTRES: "the table is not private"}
        known = {own: cost(own, self.epsilon, facts.users) for own in {parts[line] for line in self.lines}}
        return {line: replace(known[parts[line]], note=notes.get(line, "")) for line in self.lines}

    def measures(self, split: Split, repeat: int, random: Random) -> Mapping[str, Measures]:
        """Find local clusters, and what each of the methods makes of them."""
        facts = split.facts(self.local_clusters)
        shares = Shares.of(self.epsilon, facts.users, len(facts.parties))
        count = noisy_count(facts.users, count_release(shares.count), random)
        found: dict[str, Measures] = {}
        if private := [line for line in self.lines if line != PRIVATE_TABLE]:
            releases = local_releases(facts, shares.local)
            centres = _local_centres(DPLSF, split, facts, releases, repeat, random)
            found |= self._with(split, facts, centres, private, shares, count, random)
        if PRIVATE_TABLE in self.lines:
            found |= self._with(
                split, facts, split.plain(self.local_clusters), [PRIVATE_TABLE], shares, count, random
            )
        return {line: found[line] for line in self.lines}

    def _with(
        self,
        split: Split,
        facts: Facts,
        centres: Sequence[Floats],
        lines: Sequence[str],
        shares: Shares,
        count: float,
        random: Random,
    ) -> dict[str, Measures]:
        """Return what becomes of these local centres; lines with a sketch share it."""
        cells = split.cells(centres)
        exact, sketch = exact_table(cells, self.local_clusters), shares.sketch(len(cells))
        registers = released(exact, sketch, random)
        tables: dict[str, Callable[[], Floats]] = {
            BASIC: lambda: basic(registers, sketch, count),
            TWO_PARTY: lambda: two_party(registers, sketch, count),
            PROPORTIONAL: lambda: two_party(registers, sketch, count, proportional=True),
            PRIVATE_TABLE: lambda: two_party(registers, sketch, count),
            INDEPENDENT: lambda: _HISTOGRAMS.simulated(
                facts,
                split.ids,
                cells,
                Schedule(releases=_histograms(facts, shares), rounds=3),
                random,
                count,
            ),
            PRIVATE_CENTRES: lambda: exact,
        }
        return {line: final(split, centres, cells, tables[line]()) for line in lines}


@dataclass(frozen=True, kw_only=True)
class Answers:
    """LDP-AGG-2PEst: every user's clusters are told, each with noise of its own; the count costs nothing."""

    epsilon: float

    def costs(self, facts: Facts) -> Mapping[str, Cost]:
        """Return what all parties' releases cost together."""
        shares = self._shares(facts)
        own = [
            *(release for each in local_releases(facts, shares.local) for release in each),
            *_answers(facts, shares) * len(facts.parties),
        ]
        return {LOCAL_ANSWERS: cost(own, self.epsilon, facts.users)}

    def measures(self, split: Split, repeat: int, random: Random) -> Mapping[str, Measures]:
        """Find local clusters, and tell who is in which."""
        facts = split.facts(CLUSTERS)
        shares = self._shares(facts)
        releases = local_releases(facts, shares.local)
        centres = _local_centres(DPLSF, split, facts, releases, repeat, random)
        cells = split.cells(centres)
        return {LOCAL_ANSWERS: final(split, centres, cells, _answered(facts, cells, shares, random))}

    def _shares(self, facts: Facts) -> Shares:
        return Shares.of(self.epsilon, facts.users, len(facts.parties), count=0.0)


@dataclass(frozen=True, kw_only=True)
class Ours:
    """One of our own ways of counting memberships, with noise for the whole budget."""

    line: str
    epsilon: float
    local_clusters: int = CLUSTERS
    parts: bool = False
    """Whether to show what only its centres, or only its table, do in private."""

    def costs(self, facts: Facts) -> Mapping[str, Cost]:
        """Return the budget, which noise is scaled to."""
        facts = replace(facts, local_clusters=self.local_clusters)
        releases = _plan(self.line, facts, self.epsilon).whole.releases
        own = {self.line: cost(releases, self.epsilon, facts.users)}
        return own | {line: Cost(note="one half is not private") for line in parts_of(self.line)}

    def measures(self, split: Split, repeat: int, random: Random) -> Mapping[str, Measures]:
        """Find local clusters, and count memberships."""
        facts = split.facts(self.local_clusters)
        schedules = _plan(self.line, facts, self.epsilon).schedules
        releases = [schedules[party].releases for party in facts.parties]
        centres = _local_centres(OUR_LOCAL, split, facts, releases, repeat, random)
        cells = split.cells(centres)
        found = {self.line: final(split, centres, cells, self._table(split, facts, cells, random))}
        if self.parts:
            with_table, with_centres = parts_of(self.line)
            plain = split.plain(self.local_clusters)
            own = split.cells(plain)
            found[with_table] = final(split, plain, own, self._table(split, facts, own, random))
            found[with_centres] = final(split, centres, cells, exact_table(cells, self.local_clusters))
        return found

    def _table(self, split: Split, facts: Facts, cells: Sequence[Integers], random: Random) -> Floats:
        schedule = _plan(self.line, facts, self.epsilon).schedules[facts.parties[0]]
        counts = [release for release in schedule.releases if release.what == COUNT]
        count = noisy_count(facts.users, counts[0], random) if counts else None
        return OURS[self.line].simulated(facts, split.ids, cells, schedule, random, count)


def our_methods(epsilon: float, local_clusters: int = CLUSTERS, *, parts: bool = False) -> list[Way]:
    """Return all of ours."""
    return [Ours(line=line, epsilon=epsilon, local_clusters=local_clusters, parts=parts) for line in OURS]


@lru_cache(maxsize=256)
def _plan(line: str, facts: Facts, epsilon: float) -> Plan:
    return planned(facts, budget_of(epsilon, facts.users), method=OURS[line], local=OUR_LOCAL)


@lru_cache(maxsize=64)
def _central(local: LSHForest, width: int, users: int, epsilon: float) -> tuple[Release, ...]:
    nominal = local.releases(width=width, clusters=CLUSTERS, users=users, epsilon=epsilon, by="all")
    schedule = Schedule(releases=nominal, rounds=1, users=users)
    return calibrated(schedule, budget_of(epsilon, users)).releases


def _local_centres(
    local: LSHForest,
    split: Split,
    facts: Facts,
    releases: Sequence[Sequence[Release]],
    repeat: int,
    random: Random,
) -> list[Floats]:
    return [
        private_centres(local, part, facts.local_clusters, own, repeat, random)
        for part, own in zip(split.parts, releases, strict=True)
    ]


def _answered(facts: Facts, cells: Sequence[Integers], shares: Shares, random: Random) -> Floats:
    """Estimate tables of pairs from everybody's answers, and one for all as for sketches (Algorithm 6)."""
    oracle = oracle_in(Schedule(releases=_answers(facts, shares), rounds=3), facts)
    told = []
    for own in cells:
        asked = oracle.asked((own + 0.5) / oracle.buckets, random)
        answers = oracle.mechanism.noisy(asked.bounded, random)
        told.append(memberships(oracle, answers, asked.beside.get("seeds")))
    pairs = {(one, other): told[one].T @ told[other] for one, other in facts.pairs}
    return fitted_additively(pairs, facts.grid, facts.users)


def _sketch_release(facts: Facts, shares: Shares) -> Release:
    sketch = shares.sketch(len(facts.parties))
    return Release(what="sketch", mechanism=sketch, bound=MEMBER, dimension=1, rounds=1, joint=True)


def _histograms(facts: Facts, shares: Shares) -> tuple[Release, ...]:
    return _HISTOGRAMS.releases(facts, epsilon=shares.members, delta=shares.delta)


def _answers(facts: Facts, shares: Shares) -> tuple[Release, ...]:
    return _ANSWERS.releases(facts, epsilon=shares.members, delta=shares.delta)
