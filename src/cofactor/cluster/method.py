"""What the parts of a clustering have in common: how a party clusters alone, and how memberships are counted.

Every party finds a few local clusters of its own columns. Then it is counted how many users lie in every
combination of local clusters, and the combinations, with their counts, are clustered in the open.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from cofactor.config import plain_numbers, whole
from cofactor.crypto.keys import Identity
from cofactor.errors import ConfigError
from cofactor.federation.door import Door
from cofactor.federation.halves import Promise
from cofactor.federation.hidden_sums import SecureSum
from cofactor.federation.messages import Message
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Budget
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import Random

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NOWHERE = -1
"""The local cluster of a user of whom a party does not know all columns."""
FIRST_ROUND = 2
"""In which round memberships are counted first: centres come before."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What everybody knows of a clustering."""

    parties: tuple[str, ...]
    users: int
    """How many users the parties have in common."""
    columns: tuple[tuple[str, ...], ...]
    """What each party's columns are called."""
    clusters: int
    """How many clusters are wanted, k."""
    local_clusters: int
    """How many each party finds in its own columns, k'."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(users=self.users, clusters=self.clusters, local_clusters=self.local_clusters)
        if len(self.parties) != len(self.columns) or len(self.parties) < 2:
            raise ConfigError("a clustering has two parties or more, each with columns of its own.")

    @property
    def widths(self) -> tuple[int, ...]:
        """How many columns each party has."""
        return tuple(len(columns) for columns in self.columns)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All pairs of parties, by their places."""
        return tuple(combinations(range(len(self.parties)), 2))

    @property
    def grid(self) -> tuple[int, ...]:
        """The shape of a table with a cell for every combination of local clusters."""
        return (self.local_clusters,) * len(self.parties)


Let = Callable[[str, Bounded], NDArray[np.int64]]
"""Release something under the name that the schedule has for it: bounded whole numbers in, noisy ones out."""


class LocalClustering(Protocol):
    """How a party finds clusters in its own columns: a frozen dataclass, public."""

    def releases(
        self, *, width: int, clusters: int, users: int, epsilon: float, by: str
    ) -> tuple[Release, ...]:
        """Return all that a party with so many columns releases, with noise for epsilon, in round 1."""

    def centres(
        self, points: Floats, *, clusters: int, users: int, schedule: Schedule, let: Let, seed: int
    ) -> Floats:
        """Return centres of points in [-1, 1], made of nothing but what `let` lets out, and public numbers.

        `users` is how many users there are in public; of some of them there may be no point.
        """

    def blur(self, *, width: int, clusters: int, users: int, schedule: Schedule) -> float:
        """Return by about which part of a column's range noise moves a centre, if that can be told."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Home:
    """What a party's half of counting memberships works with."""

    place: int
    """The party's place among all."""
    facts: Facts
    ids: Sequence[str] = field(repr=False)
    """The common users, in the same order at all parties."""
    cells: Integers = field(repr=False)
    """In which local cluster each of them is, or NOWHERE."""
    door: Door = field(repr=False)
    schedule: Schedule
    """What the party releases, with its noise settled."""
    identity: Identity = field(repr=False)
    roster: Mapping[str, bytes] = field(repr=False)
    """By party, the public key by which the others know it."""
    session: str


class Member(Protocol):
    """A party's half of counting memberships."""

    def answer(self, round: int, message: Message) -> Message:
        """Answer the coordinator. All arrays of the answer went through the door. Rounds begin at 2."""


class Counter(Protocol):
    """The coordinator's half."""

    def ask(self, round: int) -> Message:
        """Return the question of a round, the same for all parties."""

    def sums(self, round: int) -> bool:
        """Say whether only the sum of the answers is wanted in this round."""

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Take in the answers; a party that is missing is an error here: its columns are."""

    def table(self, count: float | None) -> Floats:
        """Return how many users are in every combination of local clusters, as far as can be told.

        No number is negative; their shape is `facts.grid`. `count` is about how many users there are.
        """


class Membership(Protocol):
    """How memberships are counted: a frozen dataclass, public."""

    rounds: ClassVar[int]
    """How many rounds that takes, from round 2 on."""
    messages: ClassVar[tuple[type[Message], ...]]
    wants_count: ClassVar[bool]
    """Whether the number of users must be told by itself, with noise, for it."""
    joint: ClassVar[bool]
    """Whether its releases are one of all parties together, which each charges; else each has its own."""

    @property
    def share(self) -> float:
        """The part of epsilon that is meant for it; local clusters, and the count, have the rest."""

    @property
    def aggregate(self) -> SecureSum | None:
        """How sums are made, if it wants any."""

    def countable(self, wanted: int, *, users: int, parties: int, budget: Budget) -> int:
        """Return how many local clusters it counts well, of as many as are wanted."""

    def releases(self, facts: Facts, *, epsilon: float, delta: float) -> tuple[Release, ...]:
        """Return what counting releases, with noise for (epsilon, delta).

        If it is joint, every party charges all of it, as `Event.joint`, whichever part of it the party sends.
        If not, these are the releases of one party.
        """

    def member(self, home: Home) -> Member:
        """Return a party's half."""

    def counter(self, facts: Facts, schedule: Schedule) -> Counter:
        """Return the coordinator's half."""

    def simulated(
        self,
        facts: Facts,
        ids: Sequence[str],
        cells: Sequence[Integers],
        schedule: Schedule,
        random: Random,
        count: float | None,
    ) -> Floats:
        """Return such a table as `Counter.table` would, drawn from the same law, without any messages.

        For experiments: all parties' cells lie in one place.
        """

    def concerns(self, facts: Facts, schedule: Schedule) -> tuple[str, ...]:
        """Say what one should know beforehand: sentences, such as that noise drowns the counts."""

    def alone(self, facts: Facts) -> bool:
        """Say whether a party's users lose no more than it charges even if all other parties collude."""

    def promise(self, facts: Facts) -> Promise:
        """Return what the guarantee says besides its numbers."""
