"""Two plain ways to count memberships, which the thesis compares with: every party tells its own, alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from cofactor.cluster.method import Facts, Floats, Home, Integers
from cofactor.cluster.simple_halves import (
    MEMBERSHIPS,
    ONE_CLUSTER,
    SIZES,
    AnsweringCounter,
    AnsweringMember,
    ClusterSizes,
    NoisyMemberships,
    SizesCounter,
    SizesMember,
    TellMemberships,
    asked,
    estimated_table,
    independent_table,
    memberships,
    oracle_in,
    sizes_of_clusters,
)
from cofactor.config import fraction
from cofactor.federation.halves import Promise
from cofactor.federation.messages import Message
from cofactor.privacy.budget import Budget
from cofactor.privacy.mechanisms import DiscreteLaplace
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import Random
from cofactor.survey.oracles import best_oracle, chances

FEW = 5
"""Local clusters that answers by chance tell apart, where they tell anything."""


@dataclass(frozen=True, kw_only=True)
class IndependentCounts:
    """Every party tells how large its clusters are, and they are taken to be independent (IND-LAP).

    What parties' clusters have to do with each other is lost, whatever the budget.
    """

    rounds: ClassVar[int] = 1
    messages: ClassVar[tuple[type[Message], ...]] = (TellMemberships, ClusterSizes)
    wants_count: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    aggregate: ClassVar[None] = None

    share: float = 0.05
    """The part of epsilon that is meant for sizes: a few large numbers, which need little."""

    def __post_init__(self) -> None:
        fraction(share=self.share)

    def countable(self, wanted: int, *, users: int, parties: int, budget: Budget) -> int:  # noqa: ARG002
        """Return as many as are wanted: sizes are large numbers."""
        return wanted

    def releases(self, facts: Facts, *, epsilon: float, delta: float) -> tuple[Release, ...]:  # noqa: ARG002
        """Return one party's release: the sizes of its clusters."""
        return (
            Release(
                what=SIZES,
                mechanism=DiscreteLaplace(noise_multiplier=1 / epsilon),
                bound=ONE_CLUSTER,
                dimension=facts.local_clusters,
                bytes_per_number=8,
                rounds=1,
                first=2,
            ),
        )

    def member(self, home: Home) -> SizesMember:
        """Return a party's half."""
        return SizesMember(home)

    def counter(self, facts: Facts, schedule: Schedule) -> SizesCounter:  # noqa: ARG002
        """Return the coordinator's half."""
        return SizesCounter(facts)

    def simulated(
        self,
        facts: Facts,
        ids: Sequence[str],  # noqa: ARG002
        cells: Sequence[Integers],
        schedule: Schedule,
        random: Random,
        count: float | None,  # noqa: ARG002
    ) -> Floats:
        """Return the product of noisy sizes."""
        noise = schedule.noise_of(SIZES)
        return independent_table([noise.noisy(sizes_of_clusters(own, facts), random) for own in cells], facts)

    def concerns(self, facts: Facts, schedule: Schedule) -> tuple[str, ...]:  # noqa: ARG002
        """Say what no budget mends."""
        return (
            "Parties' clusters are taken to be independent of each other: segments that only show in the "
            "columns of several parties are not found.",
        )

    def alone(self, facts: Facts) -> bool:  # noqa: ARG002
        """Say that it does not matter who colludes: a party adds all of its noise itself."""
        return True

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        """Return what the guarantee says besides its numbers."""
        return Promise(
            against=("the coordinator", "the other parties", "everyone who sees the clusters"),
            covers=("The sizes of every party's local clusters, and whatever is made of them.",),
        )


@dataclass(frozen=True, kw_only=True)
class LocalMemberships:
    """Every user's cluster is told by randomized response, at every party (LDP-AGG), in the users' order.

    Trusts nobody, not even with secure sums, and needs a large epsilon. Users of whom a party does not know
    all columns answer as if their cluster had been drawn by lot: so their answer is as private as any other,
    and emptying a user is never seen better than replacing her.
    """

    rounds: ClassVar[int] = 1
    messages: ClassVar[tuple[type[Message], ...]] = (TellMemberships, NoisyMemberships)
    wants_count: ClassVar[bool] = False
    joint: ClassVar[bool] = False
    aggregate: ClassVar[None] = None

    share: float = 0.5
    """The part of epsilon that is meant for answers: they need much."""
    pairs: bool = True
    """Whether tables of pairs are estimated and fitted (LDP-AGG-2PEst); otherwise all cells by themselves."""

    def __post_init__(self) -> None:
        fraction(share=self.share)

    def countable(self, wanted: int, *, users: int, parties: int, budget: Budget) -> int:  # noqa: ARG002
        """Return as few as show anything at all: with more, chance drowns the counts."""
        return min(wanted, FEW)

    def releases(self, facts: Facts, *, epsilon: float, delta: float) -> tuple[Release, ...]:  # noqa: ARG002
        """Return one party's release: an answer for each user."""
        mechanism = best_oracle(epsilon, facts.local_clusters).mechanism
        return (
            Release(
                what=MEMBERSHIPS, mechanism=mechanism, bound=mechanism.bound, dimension=1, rounds=1, first=2
            ),
        )

    def member(self, home: Home) -> AnsweringMember:
        """Return a party's half."""
        return AnsweringMember(home)

    def counter(self, facts: Facts, schedule: Schedule) -> AnsweringCounter:
        """Return the coordinator's half."""
        return AnsweringCounter(facts, oracle_in(schedule, facts), by_pairs=self.pairs)

    def simulated(
        self,
        facts: Facts,
        ids: Sequence[str],  # noqa: ARG002
        cells: Sequence[Integers],
        schedule: Schedule,
        random: Random,
        count: float | None,  # noqa: ARG002
    ) -> Floats:
        """Return what is made of everybody's answers."""
        oracle, told = oracle_in(schedule, facts), []
        for own in cells:
            prepared = asked(oracle, own, random)
            answers = oracle.mechanism.noisy(prepared.bounded, random)
            told.append(memberships(oracle, answers, prepared.beside.get("seeds")))
        return estimated_table(told, facts, by_pairs=self.pairs)

    def concerns(self, facts: Facts, schedule: Schedule) -> tuple[str, ...]:
        """Say where chance drowns counts."""
        _, other, surplus = chances(oracle_in(schedule, facts).mechanism)
        # Of who is not in a cluster, the deviation of the estimate; of two parties' they are multiplied.
        deviation = math.sqrt(facts.users) * other * (1 - other) / surplus**2
        cell = facts.users / facts.local_clusters**2
        if deviation <= cell / 2:
            return ()
        return (
            f"By chance counts are off by about {deviation:,.0f} users, and a cell of a pair's table holds "
            f"{cell:,.0f} on average. Find fewer local clusters, or use SecureTable.",
        )

    def alone(self, facts: Facts) -> bool:  # noqa: ARG002
        """Say that it does not matter who colludes: a party adds all of its noise itself."""
        return True

    def promise(self, facts: Facts) -> Promise:  # noqa: ARG002
        """Return what the guarantee says besides its numbers."""
        return Promise(
            against=("the coordinator", "the other parties", "everyone who sees the answers"),
            covers=("Every user's answer at every party, and whatever is made of the answers.",),
        )
