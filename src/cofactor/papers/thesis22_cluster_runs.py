"""What the methods of chapter 5 share: local clusters, a count of users, final centres and their price."""

from collections.abc import Iterable, Sequence

import numpy as np

from cofactor.cluster.joining import joined
from cofactor.cluster.local import LSHForest, as_published
from cofactor.cluster.method import Facts, Floats, Integers
from cofactor.cluster.planning import COUNT, COUNTED
from cofactor.papers.thesis22_cluster_data import CLUSTERS
from cofactor.papers.thesis22_cluster_judge import Measures, Split, table_error
from cofactor.papers.thesis22_cluster_names import TABLE_ERROR
from cofactor.papers.thesis22_cluster_rows import Cost
from cofactor.privacy.accountant import spent
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.mechanisms import DiscreteLaplace
from cofactor.privacy.releasing import Releasing
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import Random

DPLSF = as_published()
"""How the thesis' methods find local clusters: by random planes."""
OUR_LOCAL = LSHForest()
"""How ours do."""
_MANY = 10
"""Rounds: more than anything here takes."""


def budget_of(epsilon: float, users: int) -> Budget:
    """Return the budget of an experiment: delta is one over the number of users, as in the thesis."""
    return Budget(epsilon=epsilon, delta=1 / users, unit="user")


def local_releases(facts: Facts, epsilon: float) -> list[tuple[Release, ...]]:
    """Return what each party releases for the thesis' local clusters with so much of epsilon."""
    return [
        DPLSF.releases(
            width=width, clusters=facts.local_clusters, users=facts.users, epsilon=epsilon, by=party
        )
        for party, width in zip(facts.parties, facts.widths, strict=True)
    ]


def count_release(epsilon: float) -> Release:
    """Return the release of the number of users (Algorithm 2, line 3a)."""
    mechanism = DiscreteLaplace(noise_multiplier=1 / epsilon)
    return Release(what=COUNT, mechanism=mechanism, bound=COUNTED, dimension=1, rounds=1)


def noisy_count(users: int, release: Release, random: Random) -> float:
    """Return about how many users there are."""
    bounded = Bounded(value=np.array([users]), bound=COUNTED)
    return float(_noisy(release, bounded, random)[0])


def private_centres(
    local: LSHForest,
    points: Floats,
    clusters: int,
    releases: Sequence[Release],
    repeat: int,
    random: Random,
) -> Floats:
    """Return a party's local centres."""
    by_name = {release.what: release for release in releases}
    return local.centres(
        points,
        clusters=clusters,
        users=len(points),
        schedule=Schedule(releases=tuple(releases), rounds=_MANY),
        let=lambda what, bounded: _noisy(by_name[what], bounded, random),
        seed=repeat,
    )


def final(split: Split, centres: Sequence[Floats], cells: Sequence[Integers], table: Floats) -> Measures:
    """Cluster the combinations of local centres, and say how well that went."""
    found = joined(centres, table, CLUSTERS, seed=0)
    return {**split.judge.measures(found), TABLE_ERROR: table_error(table, cells)}


def cost(releases: Iterable[Release], epsilon: float, users: int) -> Cost:
    """Return what releases cost beside what they are said to."""
    events: list[Event] = Schedule(releases=tuple(releases), rounds=_MANY).events()
    found = spent(events, 1 / users, unit="user")
    return Cost(label=epsilon, epsilon=found.epsilon, delta=1 / users)


def _noisy(release: Release, bounded: Bounded, random: Random) -> Integers:
    if bounded.bound != release.bound:
        raise AssertionError(f"{release.what} is not bounded as was planned")
    assert isinstance(release.mechanism, Releasing)
    return np.asarray(release.mechanism.noisy(bounded, random))
