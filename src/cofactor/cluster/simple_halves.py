"""The two halves of the plain ways to count memberships: every party tells its own, and they are joined."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.fitting import as_counts, fitted, independent
from cofactor.cluster.method import NOWHERE, Facts, Floats, Home, Integers
from cofactor.errors import RunError
from cofactor.federation.messages import Message
from cofactor.privacy.answers import RandomizedResponse
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound
from cofactor.privacy.noise import below
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import Random
from cofactor.survey import hashing
from cofactor.survey.method import Asked, checked_answers
from cofactor.survey.oracles import GRR, OLH, chances

SIZES = "sizes of local clusters"
MEMBERSHIPS = "memberships"
ONE_CLUSTER = Bound(size=1, norm="l1", unit="user")
"""A user is in one cluster of a party, or in none."""
_SEED_NUMBERS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class TellMemberships(Message):
    """The question: what is told was agreed on beforehand."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterSizes(Message):
    """How large a party's local clusters are, with noise."""

    sizes: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyMemberships(Message):
    """In which local cluster each user is, or by chance another one; beside it, how clusters were hashed."""

    answers: NDArray[np.int64]
    seeds: NDArray[np.uint32]
    """Nothing where clusters were not hashed."""


class SizesMember:
    """A party's half: it counts."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def answer(self, round: int, message: Message) -> Message:  # noqa: ARG002 (there is one)
        """Tell the sizes of the own clusters, with noise."""
        _check_asked(message, self._home)
        home = self._home
        noise = home.schedule.noise_of(SIZES)
        sizes: Any = home.door.release(noise, sizes_of_clusters(home.cells, home.facts), what=SIZES)
        return ClusterSizes(sizes=sizes)


class SizesCounter:
    """The coordinator's half: it multiplies."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._told: list[Integers] = []

    def ask(self, round: int) -> Message:  # noqa: ARG002
        """Ask for sizes."""
        return TellMemberships()

    def sums(self, round: int) -> bool:  # noqa: ARG002
        """Say that every party answers by itself."""
        return False

    def take(self, round: int, replies: Mapping[str, Message]) -> None:  # noqa: ARG002
        """Take in everybody's sizes."""
        clusters = (self._facts.local_clusters,)
        self._told = [_told(replies, party, "sizes", clusters, np.int64) for party in self._facts.parties]

    def table(self, count: float | None) -> Floats:  # noqa: ARG002 (sizes tell how many there are)
        """Return the product of all sizes."""
        return independent_table(self._told, self._facts)


class AnsweringMember:
    """A party's half: it answers for each user."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def answer(self, round: int, message: Message) -> Message:  # noqa: ARG002 (there is one)
        """Tell every user's cluster, or by chance another."""
        _check_asked(message, self._home)
        home = self._home
        oracle = oracle_in(home.schedule, home.facts)
        prepared = asked(oracle, home.cells, home.door.random)
        answers: Any = home.door.release(oracle.mechanism, prepared.bounded, what=MEMBERSHIPS)
        seeds = prepared.beside.get("seeds", np.empty((0, _SEED_NUMBERS), np.uint32))
        return NoisyMemberships(answers=answers, seeds=home.door.public(seeds))


class AnsweringCounter:
    """The coordinator's half: it joins the answers of all parties, user by user."""

    def __init__(self, facts: Facts, oracle: GRR | OLH, *, by_pairs: bool) -> None:
        self._facts, self._oracle, self._by_pairs = facts, oracle, by_pairs
        self._memberships: list[Floats] = []

    def ask(self, round: int) -> Message:  # noqa: ARG002
        """Ask for everybody's cluster."""
        return TellMemberships()

    def sums(self, round: int) -> bool:  # noqa: ARG002
        """Say that every party answers by itself."""
        return False

    def take(self, round: int, replies: Mapping[str, Message]) -> None:  # noqa: ARG002
        """Take in everybody's answers."""
        for party in self._facts.parties:
            answers = _told(replies, party, "answers", (self._facts.users,), np.int64)
            seeds = replies[party].arrays.get("seeds") if isinstance(self._oracle, OLH) else None
            self._memberships.append(memberships(self._oracle, answers, seeds))

    def table(self, count: float | None) -> Floats:  # noqa: ARG002 (everybody answers)
        """Return about how many users are in every combination of clusters."""
        return estimated_table(self._memberships, self._facts, by_pairs=self._by_pairs)


def oracle_in(schedule: Schedule, facts: Facts) -> GRR | OLH:
    """Return how answers are drawn, as it was settled: clusters are hashed only to fewer answers."""
    mechanism, clusters = schedule.noise_of(MEMBERSHIPS), facts.local_clusters
    assert isinstance(mechanism, RandomizedResponse)
    if mechanism.choices == clusters:
        return GRR(epsilon=mechanism.epsilon, buckets=clusters)
    return OLH(epsilon=mechanism.epsilon, buckets=clusters, hashed=mechanism.choices)


def memberships(oracle: GRR | OLH, answers: Any, seeds: Any) -> Floats:
    """Return, for each user and cluster, an unbiased estimate of whether she is in it: 1 or 0."""
    told = checked_answers(answers, oracle.mechanism.choices)
    clusters = np.arange(oracle.buckets)
    _, other, surplus = chances(oracle.mechanism)
    if isinstance(oracle, GRR):
        return np.asarray(((told[:, None] == clusters) - other) / surplus)
    checked = hashing.checked_seeds(seeds, len(told))
    hashed = [hashing.hashes(checked, np.full(len(told), each), oracle.choices) for each in clusters]
    same = hashing.collision(oracle.choices)
    supported = np.stack(hashed, axis=1) == told[:, None]
    return np.asarray((supported - other - surplus * same) / (surplus * (1 - same)))


def estimated_table(told: Sequence[Floats], facts: Facts, *, by_pairs: bool) -> Floats:
    """Return the table that estimates of single memberships make: products of those of different parties."""
    if len(told) != len(facts.parties):
        raise RunError("memberships have not been told yet.")
    if by_pairs:
        pairs = {(first, second): told[first].T @ told[second] for first, second in facts.pairs}
        return fitted(pairs, facts.grid, facts.users)
    together = reduce(_beside, told[:-1]).T @ told[-1]
    return as_counts(together.reshape(facts.grid), facts.users)


def _beside(first: Floats, second: Floats) -> Floats:
    """Return each user's products of all estimates of one party with all of another."""
    return np.asarray((first[:, :, None] * second[:, None, :]).reshape(len(first), -1))


def asked(oracle: GRR | OLH, cells: Integers, random: Random) -> Asked:
    """Prepare everybody's cluster; by lot for whoever is in none."""
    answered = np.where(cells == NOWHERE, below(len(cells), oracle.buckets, random), cells)
    return oracle.asked((answered + 0.5) / oracle.buckets, random)


def sizes_of_clusters(cells: Integers, facts: Facts) -> Bounded:
    """Count the users of each cluster; whoever is nowhere is in none."""
    sizes = np.bincount(cells[cells != NOWHERE], minlength=facts.local_clusters)
    return Bounded(value=sizes.astype(np.int64), bound=ONE_CLUSTER)


def independent_table(sizes: Sequence[Any], facts: Facts) -> Floats:
    """Return the table of independent clusters of these noisy sizes."""
    if len(sizes) != len(facts.parties):
        raise RunError("sizes have not been told yet.")
    told = np.stack(sizes).astype(np.float64)
    total = float(np.clip(told.sum(axis=1).mean(), 1.0, facts.users))
    return independent([as_counts(each, total) for each in told], total)


def _check_asked(message: Message, home: Home) -> None:
    if not isinstance(message, TellMemberships):
        party = home.facts.parties[home.place]
        raise RunError(f"{party}: {type(message).__name__} is no question of counting.")


def _told(
    replies: Mapping[str, Message], party: str, name: str, shape: tuple[int, ...], dtype: Any
) -> NDArray[Any]:
    """Return what a party has told; refuse what is missing or cannot be."""
    if party not in replies:
        raise RunError(
            f"{party} did not answer, and nobody else has its columns. What was charged stays charged. "
            "Cluster again when all are back, or without it."
        )
    found = replies[party].arrays.get(name)
    if found is None or found.shape != shape or found.dtype != dtype:
        raise RunError(f"{party} sent {name} that are missing or not whole numbers of shape {shape}.")
    return found
