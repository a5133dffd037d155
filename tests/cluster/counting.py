"""Parties that know who is in which of their clusters, and count memberships: round 1 is left out."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cofactor.cluster.method import Counter, Facts, Home, Integers, Member, Membership
from cofactor.crypto.keys import Identity
from cofactor.federation.channel import NO_FAILURES, Failures, InProcess
from cofactor.federation.door import Door
from cofactor.federation.drive import Round, Session, drive
from cofactor.federation.host import Host
from cofactor.federation.messages import Message
from cofactor.federation.summing import Summing
from cofactor.federation.transcript import Transcript
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import Random, SecureRandom
from tests.cluster.making import facts

with warnings.catch_warnings(action="ignore"):
    PLENTY = Budget(epsilon=1000.0, delta=1e-6, unit="user")
NO_NOISE = 400.0
"""So large an epsilon that noise is 0, but once in e^60 times."""


class NoQuestion(Message):
    """What stands for the first round."""


@dataclass
class Waiting:
    """A party's half that has found its clusters already."""

    member: Member

    def handle(self, round: int, message: Message) -> Message:
        return NoQuestion() if round == 1 else self.member.answer(round, message)

    def finish(self, message: Message) -> Any:
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Any) -> None:
        raise NotImplementedError


Between = Callable[[int, Message], Message]


@dataclass
class Asking:
    """The coordinator's half, which may change questions on their way."""

    counter: Counter
    rounds: int
    between: Between

    def ask(self, round: int) -> Message:
        return self.between(round, NoQuestion() if round == 1 else self.counter.ask(round))

    def sums(self, round: int) -> bool:
        return round > 1 and self.counter.sums(round)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        if round > 1:
            self.counter.take(round, replies)

    def last(self) -> Message:
        raise NotImplementedError

    def published(self) -> None:
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Any) -> None:
        raise NotImplementedError


@dataclass
class Counting:
    """A session of parties that count."""

    facts: Facts
    cells: Sequence[Integers]
    schedule: Schedule
    counter: Any
    session: Session
    ledgers: dict[str, Ledger]
    homes: list[Home]
    members: list[Any]
    hosts: dict[str, Host]
    rounds: list[Round] = field(default_factory=list)

    def run(
        self, *, failures: Failures = NO_FAILURES, between: Between = lambda _, question: question
    ) -> "Counting":
        channel = InProcess(self.hosts, failures=failures)
        try:
            asking = Asking(self.counter, self.schedule.rounds, between)
            drive(asking, channel, self.session, self.rounds.append)
        finally:
            channel.close()
        return self

    def protections(self, round: int) -> set[str]:
        sent = self.session.transcript.sent
        return {each.protection for each in sent if each.round == round and each.sender in self.hosts}

    def events(self) -> list[Any]:
        return [entry.event for ledger in self.ledgers.values() for entry in ledger.entries if entry.event]


def drawn_cells(parties: int, users: int, clusters: int, seed: int = 3) -> list[Integers]:
    """Return clusters of some users, of whom some are nowhere."""
    chance = np.random.default_rng(seed)
    return [chance.integers(-1, clusters, users) for _ in range(parties)]


def schedule_of(method: Membership, about: Facts, epsilon: float) -> Schedule:
    releases = method.releases(about, epsilon=epsilon, delta=1e-6)
    return Schedule(releases=releases, rounds=1 + method.rounds)


def counting(
    method: Any,
    cells: Sequence[Integers],
    *,
    clusters: int,
    epsilon: float = NO_NOISE,
    random: Random | None = None,
    session: str = "s",
) -> Counting:
    """Return all ends of a session."""
    about = facts(users=len(cells[0]), widths=(1,) * len(cells), local_clusters=clusters)
    schedule = schedule_of(method, about, epsilon)
    identities = {name: Identity.generate() for name in about.parties}
    roster = {name: identity.public for name, identity in identities.items()}
    summing = _summing(method, roster)
    ledgers = {
        name: Ledger.create(None, party=name, fingerprint="toy", budget=PLENTY) for name in about.parties
    }
    homes = [
        Home(
            place=place,
            facts=about,
            ids=[str(user) for user in range(about.users)],
            cells=cells[place],
            door=Door(
                party=name,
                ledger=ledgers[name],
                random=random or SecureRandom(),
                run=session,
                schedule=schedule,
                layers=None if summing is None else summing.layers,
            ),
            schedule=schedule,
            identity=identities[name],
            roster=roster,
            session=session,
        )
        for place, name in enumerate(about.parties)
    ]
    kinds = (NoQuestion, *method.messages)
    members = [method.member(home) for home in homes]
    hosts = {
        home.door.party: Host(
            Waiting(member), home.door, session=session, kinds=kinds, summing=summing, identity=home.identity
        )
        for home, member in zip(homes, members, strict=True)
    }
    made = Session(
        name=session, kinds=kinds, transcript=Transcript.create(None, session=session), summing=summing
    )
    counter = method.counter(about, schedule)
    return Counting(about, cells, schedule, counter, made, ledgers, homes, members, hosts)


def _summing(method: Membership, roster: Mapping[str, bytes]) -> Summing | None:
    if method.aggregate is None:
        return None
    parties = len(roster)
    return Summing(
        layers=method.aggregate.layers(parties),
        neighbourhood=method.aggregate.neighbourhood(parties),
        roster=dict(roster),
    )
