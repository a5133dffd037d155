"""The two halves of a clustering. They know no transport, as those of all recipes: letters come and go."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.kmeans import labels
from cofactor.cluster.method import NOWHERE, Counter, Floats, Home, Integers, Member
from cofactor.cluster.planning import COUNT, COUNTED, Plan
from cofactor.errors import RunError
from cofactor.federation.door import SUM, Door
from cofactor.federation.halves import State, array_of
from cofactor.federation.messages import Message
from cofactor.privacy.bounding import Bounded


@dataclass(frozen=True, kw_only=True, eq=False)
class FindCentres(Message):
    """The first question: which local clusters are there? How many was agreed on beforehand."""

    local_clusters: int


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalCentres(Message):
    """A party's local centres, in [-1, 1], and about how many users there are, if it was to tell."""

    centres: NDArray[np.float64]
    count: NDArray[np.int64]


CENTRES = (FindCentres, LocalCentres)


class Holding:
    """The half that lives with a party's columns."""

    def __init__(
        self, plan: Plan, points: Floats, door: Door, home: Callable[[Integers], Home], seed: int
    ) -> None:
        """Take scaled points, a row for each common user; one with a missing number is in no cluster.

        `home` says what counting memberships works with, once it is known who is in which local cluster.
        """
        self.door = door
        self._plan, self._points, self._home, self._seed = plan, points, home, seed
        self._schedule = plan.schedules[door.party]
        self._member: Member | None = None

    def handle(self, round: int, message: Message) -> Message:
        """Find local clusters first; then help to count who is in which."""
        if round == 1:
            return self._centres(message)
        if self._member is None:
            raise RunError(f"{self.door.party}: it has no local clusters yet, and cannot count.")
        return self._member.answer(round, message)

    def _centres(self, message: Message) -> Message:
        clusters = self._plan.facts.local_clusters
        if not isinstance(message, FindCentres) or message.local_clusters != clusters:
            raise RunError(f"{self.door.party}: agreed to find {clusters} local clusters, and nothing else.")
        complete = ~np.isnan(self._points).any(axis=1)
        centres = self._plan.local.centres(
            self._points[complete],
            clusters=clusters,
            users=self._plan.facts.users,
            schedule=self._schedule,
            let=self._let,
            seed=self._seed,
        )
        cells = np.full(len(self._points), NOWHERE, np.int64)
        cells[complete] = labels(self._points[complete], centres)
        self._member = self._plan.method.member(self._home(cells))
        return LocalCentres(centres=self.door.derived(centres), count=self._count(int(complete.sum())))

    def _let(self, what: str, bounded: Bounded) -> NDArray[np.int64]:
        released: Any = self.door.release(self._schedule.noise_of(what), bounded, what=what)
        return np.asarray(released, np.int64)

    def _count(self, users: int) -> NDArray[np.int64]:
        if all(release.what != COUNT for release in self._schedule.releases):
            return self.door.public(np.empty(0, np.int64))
        bounded = Bounded(value=np.array([users]), bound=COUNTED)
        released: Any = self.door.release(self._schedule.noise_of(COUNT), bounded, what=COUNT)
        return np.asarray(released)

    def finish(self, message: Message) -> Any:  # noqa: ARG002 (there is no model)
        """Refuse: a party needs nothing but the centres, which are public."""
        raise RunError("a clustering leaves no model at home.")

    def state(self) -> State:
        """Return nothing: whoever loses a clustering begins anew."""
        return {}

    def restore(self, state: State) -> None:
        """Go on from there."""


class Gathering:
    """The half that nobody trusts: it puts local clusters and counts together."""

    def __init__(self, plan: Plan) -> None:
        """Begin."""
        self.rounds = plan.rounds
        self._plan = plan
        self._counter: Counter = plan.method.counter(plan.facts, plan.whole)
        self._centres: list[Floats] = []
        self._count: float | None = None

    def ask(self, round: int) -> Message:
        """Return the question of a round."""
        if round == 1:
            return FindCentres(local_clusters=self._plan.facts.local_clusters)
        return self._counter.ask(round)

    def sums(self, round: int) -> bool:
        """Say whether only the sum of the answers is wanted."""
        return round > 1 and self._counter.sums(round)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Take in the answers. Everybody's columns are needed: whoever is missing ends it."""
        self._check_all(round, replies)
        if round > 1:
            self._counter.take(round, replies)
            return
        facts = self._plan.facts
        for party, width in zip(facts.parties, facts.widths, strict=True):
            found = array_of(replies[party], "centres", (facts.local_clusters, width), party)
            self._centres.append(np.clip(found.astype(np.float64), -1.0, 1.0))
        if self._plan.method.wants_count:
            first = facts.parties[0]
            told = array_of(replies[first], "count", (1,), first)
            self._count = float(np.clip(told[0], 1, None))

    def _check_all(self, round: int, replies: Mapping[str, Message]) -> None:
        wanted = (SUM,) if self.sums(round) else self._plan.facts.parties
        missing = [party for party in wanted if party not in replies]
        if missing:
            raise RunError(
                f"round {round}: {', '.join(missing)} did not answer, and nobody else has those columns. "
                "What was charged stays charged. Cluster again when all are back, or without them."
            )

    def found(self) -> tuple[tuple[Floats, ...], Floats]:
        """Return the parties' local centres, and how many users are in every combination of them."""
        return tuple(self._centres), self._counter.table(self._count)

    def last(self) -> Message:
        """Return the first question again: nobody needs anything to finish."""
        return self.ask(1)

    def published(self) -> None:
        """Return nothing: there is no model."""

    def state(self) -> State:
        """Return nothing: whoever loses a clustering begins anew."""
        return {}

    def restore(self, state: State) -> None:
        """Go on from there."""
