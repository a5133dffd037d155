"""One clustering, message by message: every party with its door, its half and its end of the wire."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cofactor.cluster.halves import CENTRES, Gathering, Holding
from cofactor.cluster.method import Home, Integers, Membership
from cofactor.cluster.planning import Plan
from cofactor.cluster.records import Records
from cofactor.crypto.keys import Identity
from cofactor.federation.channel import Failures, InProcess
from cofactor.federation.door import Door
from cofactor.federation.drive import Session, drive
from cofactor.federation.host import Host
from cofactor.federation.messages import Message
from cofactor.federation.summing import Summing
from cofactor.federation.transcript import Transcript
from cofactor.federation.view import Capture
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import Random, own_random


def run(
    plan: Plan,
    holders: Sequence[Records],
    ledgers: Mapping[str, Ledger],
    seed: int,
    random: Random,
    failures: Failures,
    capture: Capture | None = None,
) -> tuple[Session, Gathering]:
    """Let all parties and the coordinator work, in this process; return what the coordinator found."""
    identities = {each.name: Identity.generate() for each in holders}
    roster = {name: identity.public for name, identity in identities.items()}
    session = replace(_session(plan, roster), capture=capture)
    hosts = {
        each.name: host_of(
            plan,
            each,
            ledger=ledgers[each.name],
            session=session.name,
            identity=identities[each.name],
            roster=roster,
            seed=seed,
            random=own_random(random, place),
            capture=capture,
        )
        for place, each in enumerate(holders)
    }
    gathering, channel = Gathering(plan), InProcess(hosts, failures=failures)
    try:
        drive(gathering, channel, session, lambda _: None)
    finally:
        channel.close()
    return session, gathering


def kinds_of(method: Membership) -> tuple[type[Message], ...]:
    """Return the messages of a clustering."""
    return (*CENTRES, *method.messages)


def summing_of(plan: Plan, roster: Mapping[str, bytes], *, agreed: str = "") -> Summing | None:
    """Return how parties with these public keys, who agreed on the same, make sums, if there are any."""
    aggregate, parties = plan.method.aggregate, len(roster)
    if aggregate is None:
        return None
    return Summing(
        layers=aggregate.layers(parties),
        neighbourhood=aggregate.neighbourhood(parties),
        roster=dict(roster),
        agreed=agreed,
    )


def host_of(
    plan: Plan,
    each: Records,
    *,
    ledger: Ledger,
    session: str,
    identity: Identity,
    roster: Mapping[str, bytes],
    seed: int,
    random: Random,
    capture: Capture | None = None,
    agreed: str = "",
) -> Host:
    """Return a party's end of the wire; its records are those of the common users, in their order.

    By its door passes what was planned and no more, whoever asks. It holds keys, and remembers nothing.
    `agreed` is the hash of terms that all must have, where they cannot but differ on the way.
    """
    summing = summing_of(plan, roster, agreed=agreed)
    door = Door(
        party=each.name,
        ledger=ledger,
        random=random,
        run=session,
        schedule=plan.schedules[each.name],
        layers=None if summing is None else summing.layers,
    )
    return Host(
        _holding(plan, each, door, f"{session} {agreed}".strip(), identity, roster, seed),
        door,
        session=session,
        kinds=kinds_of(plan.method),
        summing=summing,
        identity=identity,
        capture=capture,
    )


def _session(plan: Plan, roster: Mapping[str, bytes]) -> Session:
    name = secrets.token_hex(8)
    return Session(
        name=name,
        kinds=kinds_of(plan.method),
        transcript=Transcript.create(None, session=name, split="vertical"),
        summing=summing_of(plan, roster),
    )


def _holding(
    plan: Plan,
    each: Records,
    door: Door,
    session: str,
    identity: Identity,
    roster: Mapping[str, bytes],
    seed: int,
) -> Holding:
    def home(cells: Integers) -> Home:
        return Home(
            place=plan.facts.parties.index(each.name),
            facts=plan.facts,
            ids=each.ids,
            cells=cells,
            door=door,
            schedule=plan.schedules[each.name],
            identity=identity,
            roster=roster,
            session=session,
        )

    return Holding(plan, each.points(), door, home, seed)
