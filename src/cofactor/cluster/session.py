"""One clustering, message by message: every party with its door, its half and its end of the wire."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cofactor.cluster.halves import CENTRES, Gathering, Holding
from cofactor.cluster.method import Home, Integers
from cofactor.cluster.planning import Plan
from cofactor.cluster.records import Records
from cofactor.crypto.keys import Identity
from cofactor.federation.channel import Failures, InProcess
from cofactor.federation.door import Door
from cofactor.federation.drive import Session, drive
from cofactor.federation.host import Host
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
    hosts = {}
    for place, each in enumerate(holders):
        door = _door(plan, each.name, ledgers[each.name], session, own_random(random, place))
        half = _holding(plan, each, place, door, session, identities[each.name], roster, seed)
        hosts[each.name] = Host(
            half,
            door,
            session=session.name,
            kinds=session.kinds,
            summing=session.summing,
            identity=identities[each.name],
            capture=capture,
        )
    gathering, channel = Gathering(plan), InProcess(hosts, failures=failures)
    try:
        drive(gathering, channel, session, lambda _: None)
    finally:
        channel.close()
    return session, gathering


def _session(plan: Plan, roster: Mapping[str, bytes]) -> Session:
    name, parties, aggregate = secrets.token_hex(8), len(roster), plan.method.aggregate
    summing = None
    if aggregate is not None:
        summing = Summing(
            layers=aggregate.layers(parties),
            neighbourhood=aggregate.neighbourhood(parties),
            roster=dict(roster),
        )
    return Session(
        name=name,
        kinds=(*CENTRES, *plan.method.messages),
        transcript=Transcript.create(None, session=name, split="vertical"),
        summing=summing,
    )


def _door(plan: Plan, party: str, ledger: Ledger, session: Session, random: Random) -> Door:
    return Door(
        party=party,
        ledger=ledger,
        random=random,
        run=session.name,
        schedule=plan.schedules[party],
        layers=None if session.summing is None else session.summing.layers,
    )


def _holding(
    plan: Plan,
    each: Records,
    place: int,
    door: Door,
    session: Session,
    identity: Identity,
    roster: Mapping[str, bytes],
    seed: int,
) -> Holding:
    def home(cells: Integers) -> Home:
        return Home(
            place=place,
            facts=plan.facts,
            ids=each.ids,
            cells=cells,
            door=door,
            schedule=plan.schedules[each.name],
            identity=identity,
            roster=roster,
            session=session.name,
        )

    return Holding(plan, each.points(), door, home, seed)
