"""`Schedule`: everything a recipe will release, before anything is. Reads no data."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from cofactor.config import plain_numbers, whole
from cofactor.errors import ConfigError, RunError
from cofactor.privacy.events import Bound, Event, Mechanism


@dataclass(frozen=True, kw_only=True)
class Release:
    """One kind of message that every party sends, round after round."""

    what: str
    """What is released, in the words of its recipe."""
    mechanism: Mechanism
    """How noise is added. Noise is relative: calibration scales that of all releases alike."""
    bound: Bound
    """The most that one unit can change."""
    dimension: int
    """How many numbers a message holds. Each of them costs, where noise is for every coordinate."""
    times: int = 1
    """How often in each round the data are asked: local steps, each with noise of its own."""
    bytes_per_number: float = 4.0
    """Size of one number on the wire."""
    rounds: int | None = None
    """In how many of the rounds it is sent: in all, if None."""
    first: int = 1
    """In which round it is sent first."""
    slack: float | None = None
    """What each costs of delta besides its noise: as in `Event`."""
    joint: bool = False
    """Whether it is one release of all parties together, which each charges: see `Event`."""
    fixed: bool = False
    """Whether its noise is settled: it was made before, and calibration leaves it as it is."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(dimension=self.dimension, times=self.times, rounds=self.rounds, first=self.first)
        self.mechanism.check(self.bound)

    def count(self, rounds: int) -> int:
        """Return how often the data are asked in so many rounds."""
        sent = max(rounds + 1 - self.first, 0)
        return self.times * (sent if self.rounds is None else min(sent, self.rounds))


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """What all parties will release in all rounds."""

    releases: tuple[Release, ...]
    rounds: int
    parties: int = 1
    """How many parties send these messages."""
    shared_units: bool = False
    """True if parties hold parts of the same users (vertical): their releases add up for each of them.
    False if every user is at one party only."""
    users: int | None = None
    """How many users there are at all parties together, if that is public."""
    ratings: int | None = None
    """The same of ratings: each of them pulls where releases are bounded for each rating."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(rounds=self.rounds, parties=self.parties, users=self.users, ratings=self.ratings)
        if not self.releases or not all(isinstance(release, Release) for release in self.releases):
            raise ConfigError("a schedule needs at least one Release.")
        object.__setattr__(self, "releases", tuple(self.releases))

    def events(self, rounds: int | None = None) -> list[Event]:
        """Return what concerns one unit in so many rounds: the events of all parties that know it."""
        rounds, parties = rounds or self.rounds, self.parties if self.shared_units else 1
        by = "each party" if self.parties > 1 else "the party"
        return [
            Event(
                what=release.what,
                by=by,
                to="coordinator",
                mechanism=release.mechanism,
                bound=release.bound,
                dimension=release.dimension,
                count=release.count(rounds) * (1 if release.joint else parties),
                slack=release.slack,
                joint=release.joint,
            )
            for release in self.releases
            if release.count(rounds)
        ]

    def noise_of(self, what: str) -> Any:
        """Return the mechanism of a release, as it was settled."""
        for release in self.releases:
            if release.what == what:
                return release.mechanism
        raise RunError(f"{what}: that was not planned. Nothing was released.")

    def scaled(self, factor: float) -> "Schedule":
        """Return the same schedule with `factor` times the noise in every release."""
        return replace(
            self,
            releases=tuple(
                release if release.fixed else replace(release, mechanism=release.mechanism.scaled(factor))
                for release in self.releases
            ),
        )

    def with_fixed(self, events: Iterable[Event]) -> "Schedule":
        """Return the schedule with what was released before, by each party, and counts as well."""
        before = tuple(
            Release(
                what=event.what,
                mechanism=event.mechanism,
                bound=event.bound,
                dimension=event.dimension,
                times=event.count,
                rounds=1,
                slack=event.slack,
                joint=event.joint,
                fixed=True,
            )
            for event in events
        )
        return replace(self, releases=(*self.releases, *before))

    def without_fixed(self) -> "Schedule":
        """Return what is still to be released."""
        return replace(self, releases=tuple(each for each in self.releases if not each.fixed))
