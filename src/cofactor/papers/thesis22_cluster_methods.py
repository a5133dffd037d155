"""The methods that chapter 5 compares, the thesis' and ours, as they would run but for the messages.

All of them find private local clusters in the same way (`LSHForest`, the thesis' DPLSF). Methods of the thesis
have noise for the parts into which Algorithm 2 divides the budget; ours, for the whole of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cofactor.cluster.baselines import exact_table, vertical
from cofactor.cluster.joining import joined
from cofactor.cluster.local import LSHForest
from cofactor.cluster.method import Facts, Floats, Integers, Let, Membership
from cofactor.cluster.planning import COUNT, COUNTED, Plan, planned
from cofactor.cluster.simple import IndependentCounts, LocalMemberships
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.tables import SecureTable
from cofactor.papers.thesis22_cluster_data import CLUSTERS
from cofactor.papers.thesis22_cluster_judge import Measures, Split, table_error
from cofactor.papers.thesis22_cluster_names import (
    BASIC,
    CENTRAL,
    CENTRAL_PRIVATE,
    INDEPENDENT,
    LOCAL_ANSWERS,
    LOSS,
    NO_PRIVACY,
    PRIVATE_CENTRES,
    PRIVATE_TABLE,
    REPAIRED,
    SECURE,
    TABLE_ERROR,
    TWO_PARTY,
    V_MEASURE,
)
from cofactor.papers.thesis22_cluster_rows import Cost, Way
from cofactor.papers.thesis22_cluster_sketch import Shares, basic, released, two_party
from cofactor.privacy.accountant import spent
from cofactor.privacy.bounding import MEMBER, Bounded
from cofactor.privacy.budget import Budget
from cofactor.privacy.mechanisms import DiscreteLaplace
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import Random

LOCAL = LSHForest()


@dataclass(frozen=True, kw_only=True)
class NoPrivacy:
    """k-means of all columns in one place, and of several parties' columns (Ding et al. 2016)."""

    def costs(self, facts: Facts) -> Mapping[str, Cost]:  # noqa: ARG002
        """Return nothing: nobody is protected."""
        return {CENTRAL: Cost(), NO_PRIVACY: Cost()}

    def measures(self, split: Split, repeat: int, random: Random) -> Mapping[str, Measures]:  # noqa: ARG002
        """Cluster once centrally, once by parts."""
        central = split.judge.measures(split.judge.centres)
        table = exact_table(split.cells(split.plain_centres), CLUSTERS)
        return {CENTRAL: central, NO_PRIVACY: _final(split, split.plain_centres, table)}


@dataclass(frozen=True, kw_only=True)
class CentralPrivate:
    """DPLSF of all columns in one place, with the whole budget."""

    epsilon: float

    def costs(self, facts: Facts) -> Mapping[str, Cost]:
        """Return the budget, which noise is scaled to."""
        releases = _central(sum(facts.widths), facts.users, self.epsilon).releases
        return {CENTRAL_PRIVATE: _cost(releases, self.epsilon, facts.users)}

    def measures(self, split: Split, repeat: int, random: Random) -> Mapping[str, Measures]:
        """Cluster, as one party that has everything."""
        schedule = _central(sum(split.widths), split.users, self.epsilon)
        points = split.judge.points.values
        found = _centres(points, CLUSTERS, schedule.releases, repeat, random)
        return {CENTRAL_PRIVATE: split.judge.measures(found)}


@dataclass(frozen=True, kw_only=True)
class Published:
    """The thesis' methods that find the same local clusters: with its sketch, or as if clusters were independent."""

    epsilon: float
    lines: Sequence[str]
    """Which of them are wanted."""
    local_clusters: int = CLUSTERS

    def costs(self, facts: Facts) -> Mapping[str, Cost]:
        """Return what an exact accountant proves beside what the thesis claims."""
        shares = Shares.of(self.epsilon, facts.users, len(facts.parties))
        local, counted, sketch = _local(facts, shares.local), (_counted(shares.count),), (_sketched(facts, shares),)
        histograms = INDEPENDENT_COUNTS.releases(facts, epsilon=shares.members, delta=shares.delta)
        parts = {
            BASIC: (*local, *counted, *sketch),
            TWO_PARTY: (*local, *counted, *sketch),
            INDEPENDENT: (*local, *counted, *histograms * len(facts.parties)),
            PRIVATE_TABLE: (*counted, *sketch),
            PRIVATE_CENTRES: local,
        }
        notes = {PRIVATE_TABLE: "centres are not private", PRIVATE_CENTRES: "the table is not private"}
        return {
            line: _cost(parts[line], self.epsilon, facts.users, notes.get(line, "")) for line in self.lines
        }

    def measures(self, split: Split, repeat: int, random: Random) -> Mapping[str, Measures]:
        """Find local clusters, and what each of the methods makes of them."""
        facts = split.facts(self.local_clusters)
        shares = Shares.of(self.epsilon, facts.users, len(facts.parties))
        centres = [
            _centres(part, self.local_clusters, _local_of(width, facts, shares.local), repeat, random)
            for part, width in zip(split.parts, split.widths, strict=True)
        ]
        count = float(_counted(shares.count).mechanism.noisy(Bounded(value=))
        return {}
