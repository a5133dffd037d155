"""What a clustering will release, and with how much noise: settled beforehand, from public numbers only."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cofactor.cluster.method import Facts, LocalClustering, Membership
from cofactor.config import whole
from cofactor.errors import ConfigError
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import DiscreteLaplace
from cofactor.privacy.schedule import Release, Schedule

COUNT = "number of users"
COUNT_SHARE = 0.02
"""The part of epsilon with which the number of users is told, where counting memberships needs it."""
COUNTED = Bound(size=1, norm="l1", unit="user")
"""A user counts once."""
MOST_PARTIES = 5
FAR = 0.05
"""The part of a column's range beyond which it is worth a word that noise moves centres."""
MOST_CELLS = 10**6
"""Of the table of all combinations of local clusters."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that is settled before anything is released."""

    facts: Facts
    budget: Budget
    method: Membership
    local: LocalClustering
    schedules: Mapping[str, Schedule]
    """By party, what it releases and charges."""
    whole: Schedule
    """What concerns one user: the releases of all parties, joint ones once."""

    @property
    def concerns(self) -> tuple[str, ...]:
        """What one should know beforehand: sentences."""
        return (*self._blurred(), *self.method.concerns(self.facts, self.whole))

    def _blurred(self) -> tuple[str, ...]:
        """Say if noise moves local centres far."""
        facts = self.facts
        most, party = max(
            (
                self.local.blur(
                    width=width,
                    clusters=facts.local_clusters,
                    users=facts.users,
                    schedule=self.schedules[party],
                ),
                party,
            )
            for party, width in zip(facts.parties, facts.widths, strict=True)
        )
        if most <= FAR:
            return ()
        return (
            f"Noise moves local centres of {party} by about {100 * min(most, 1):.0f}% of a column's range: "
            "segments that are closer are not told apart. Find more users, give a larger epsilon, or ask for "
            "fewer clusters.",
        )

    @property
    def rounds(self) -> int:
        """How many rounds there are."""
        return 1 + self.method.rounds


def planned(facts: Facts, budget: Budget, *, method: Membership, local: LocalClustering) -> Plan:
    """Divide epsilon between local clusters, memberships and the count; then scale all noise to the budget.

    The parts are composed exactly in the end, which gives more than they do added up.
    """
    check_facts(facts)
    check_budget(budget)
    counted = COUNT_SHARE * budget.epsilon if method.wants_count else 0.0
    alone = (budget.epsilon * (1 - method.share) - counted) / len(facts.parties)
    if alone <= 0:
        raise ConfigError(f"share must leave some of epsilon to local clusters, got {method.share:g}.")
    own = [
        local.releases(width=width, clusters=facts.local_clusters, users=facts.users, epsilon=alone, by=party)
        for party, width in zip(facts.parties, facts.widths, strict=True)
    ]
    if counted:
        own[0] = (*own[0], _count(counted))
    times = 1 if method.joint else len(facts.parties)
    together = method.releases(
        facts, epsilon=method.share * budget.epsilon / times, delta=budget.delta / times
    )
    return _settled(facts, budget, method, local, own, together)


def _settled(
    facts: Facts,
    budget: Budget,
    method: Membership,
    local: LocalClustering,
    own: Sequence[tuple[Release, ...]],
    together: tuple[Release, ...],
) -> Plan:
    rounds, times = 1 + method.rounds, 1 if method.joint else len(facts.parties)
    marked = tuple(replace(release, joint=method.joint) for release in together)
    listed = (*(release for each in own for release in each), *marked * times)
    scaled = calibrated(Schedule(releases=listed, rounds=rounds, users=facts.users), budget)
    settled = iter(scaled.releases)
    alone = [tuple(next(settled) for _ in each) for each in own]
    shared = tuple(next(settled) for _ in marked)  # those of other parties, if there are any, are the same
    schedules = {
        party: Schedule(releases=(*each, *shared), rounds=rounds)
        for party, each in zip(facts.parties, alone, strict=True)
    }
    return Plan(facts=facts, budget=budget, method=method, local=local, schedules=schedules, whole=scaled)


def _count(epsilon: float) -> Release:
    """Return the release of how many users there are: by the first party, as in Algorithm 2 of the thesis."""
    return Release(
        what=COUNT,
        mechanism=DiscreteLaplace(noise_multiplier=1 / epsilon),
        bound=COUNTED,
        dimension=1,
        rounds=1,
        bytes_per_number=8,
    )


def check_facts(facts: Facts) -> None:
    """Refuse what cannot be clustered."""
    whole(clusters=facts.clusters)
    if len(facts.parties) > MOST_PARTIES:
        raise ConfigError(
            f"at most {MOST_PARTIES} parties cluster together, got {len(facts.parties)}: the table of all "
            "combinations of their local clusters would hold more cells than users. Join some of them first."
        )
    if facts.clusters < 2:
        raise ConfigError("clusters must be at least 2, got 1: one cluster is everybody.")
    if facts.users < 2 or facts.clusters > facts.users:
        raise ConfigError(
            f"{facts.clusters:,} clusters of {facts.users:,} users cannot be. Ask for fewer clusters, or "
            'find more users: ids may be written differently (rule="folded", --id-rule folded).'
        )
    if facts.local_clusters ** len(facts.parties) < facts.clusters:
        raise ConfigError(
            f"{facts.local_clusters} local clusters at each of {len(facts.parties)} parties make fewer "
            f"combinations than the {facts.clusters} clusters that are wanted. Find more: local_clusters=5."
        )
    if facts.local_clusters ** len(facts.parties) > MOST_CELLS:
        raise ConfigError(
            f"{facts.local_clusters} local clusters at each of {len(facts.parties)} parties make more than "
            f"{MOST_CELLS:,} combinations. Ask for fewer: local_clusters=5."
        )


def check_budget(budget: Budget) -> None:
    """Refuse a budget that a clustering cannot keep."""
    if type(budget) is not Budget or budget.personal is not None:
        raise ConfigError("budget must be a Budget that is not personal: a clustering treats all alike.")
    if budget.unit != "user" or budget.adjacency == "value":
        raise ConfigError(
            'a clustering protects whole users: give a budget with unit="user" and adjacency "empty".'
        )
    if budget.delta <= 0:
        raise ConfigError(
            "a clustering needs a delta above 0, such as 1e-6: what is hidden by keys is hidden with "
            "overwhelming probability only."
        )


def usual_local_clusters(
    method: Membership, *, users: int, parties: int, clusters: int, budget: Budget
) -> int:
    """Return how many local clusters every party finds, if nobody says.

    Of two parties twice as many as clusters are wanted tell more; of more parties there would be too many
    combinations of them.
    """
    whole(users=users, parties=parties, clusters=clusters)
    wanted = 2 * clusters if parties == 2 else clusters
    found = method.countable(min(wanted, users), users=users, parties=parties, budget=budget)
    # Enough for as many combinations as clusters are wanted.
    return max(found, math.ceil(round(float(clusters ** (1 / parties)), 9)))
