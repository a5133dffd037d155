"""Both sides of a piece of work, joined by bytes alone: what a seat and a conductor do, in a few lines.

Tables pass as JSON text, letters as bytes; a party that does not answer says a code, and nothing else.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.crypto.keys import Identity
from cofactor.errors import CofactorError
from cofactor.federation.channel import Answers
from cofactor.federation.declining import answers_from, code_of, declined
from cofactor.federation.door import COORDINATOR
from cofactor.federation.drive import Session, drive, farewell
from cofactor.federation.finding import Alignment, find_common
from cofactor.federation.halves import Coordinator
from cofactor.federation.host import Host
from cofactor.federation.messages import heading
from cofactor.federation.transcript import Transcript
from cofactor.network.proposal import Kind, Proposal
from cofactor.network.work import AtCoordinator, AtParty, Sitting
from cofactor.progress import nobody
from cofactor.randomness import InsecureRandom, Random, SecureRandom, own_random
from tests.federation.approving import approved

SESSION = "0123456789abcdef"


def plain(table: Any) -> Any:
    """Send a table, and return what arrives."""
    return json.loads(json.dumps(table))


def identities(names: Sequence[str]) -> dict[str, Identity]:
    return {name: Identity.generate() for name in names}


def proposal_of(
    kind: Kind,
    work: Mapping[str, Any],
    keys: Mapping[str, Identity],
    *,
    seed: int = 0,
    session: str = SESSION,
) -> Proposal:
    parties = {name: identity.public.hex() for name, identity in keys.items()}
    made = Proposal(kind=kind, session=session, version="1", parties=parties, work=plain(work), seed=seed)
    return Proposal.from_json(made.as_json())


def sitting_of(
    folder: Path,
    name: str,
    proposal: Proposal,
    keys: Mapping[str, Identity],
    *,
    split: str,
    insecure: int | None = None,
    most: float | None = None,
    newer_data: bool = False,
) -> Sitting:
    """Sit down; noise is that of the same party in one process."""
    place = list(proposal.parties).index(name)
    random: Random = SecureRandom() if insecure is None else own_random(InsecureRandom(insecure), place)
    own = folder / f"{name}-{proposal.session}"
    own.mkdir(exist_ok=True)
    sitting = Sitting(
        name=name,
        proposal=proposal,
        identity=keys[name],
        folder=own,
        random=random,
        most=most,
        newer_data=newer_data,
    )
    if not sitting.transcript_path.exists():
        Transcript.create(sitting.transcript_path, session=proposal.session, split=split)
    return sitting


@dataclass
class Seated:
    """A party's end."""

    sitting: Sitting
    work: AtParty
    host: Host | None = None

    def handle(self, data: bytes) -> bytes:
        """Answer, and never fail."""
        name, session = self.sitting.name, self.sitting.proposal.session
        try:
            if self.host is None:
                return declined("unknown session", session=session, round=1, sender=name)
            reply = self.host.handle(data)
        except CofactorError as error:
            return declined(code_of(error), session=session, round=1, sender=name)
        self._note(data, COORDINATOR, name)
        self._note(reply, name, COORDINATOR)
        return reply

    def _note(self, data: bytes, sender: str, receiver: str) -> None:
        head = heading(data)
        Transcript.open(self.sitting.transcript_path).note(
            data,
            round=head.round,
            sender=sender,
            receivers=[receiver],
            kind=head.kind,
            protection=head.protection,
        )


@dataclass
class Relay:
    """The channel: bytes go to and fro."""

    seats: Mapping[str, Seated]
    away: frozenset[str] = frozenset()
    asked: list[bytes] = field(default_factory=list)

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(self.seats)

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:  # noqa: ARG002
        replies: dict[str, bytes | str] = {}
        for party, data in letters.items():
            self.asked.append(data)
            replies[party] = "is gone" if party in self.away else self.seats[party].handle(data)
        return answers_from(replies)


def agreed(seats: Mapping[str, Seated], coordinator: AtCoordinator) -> tuple[Any, Any, Alignment | None]:
    """Let parties show, find and tell what they have agreed to; return terms, facts and alignment."""
    shown = {name: seat.work.showing() for name, seat in seats.items()}
    told_ids = {name: np.array(plain(ids.tolist())) for name, ids in shown.items() if ids is not None}
    alignment = None
    if told_ids:
        for seat in seats.values():
            seat.work.shown(told_ids)
    if coordinator.search is not None:
        wanted = {name: seat.work.ids() for name, seat in seats.items()}
        common = find_common(
            {name: ids for name, ids in wanted.items() if ids is not None},
            how="psi",
            among=coordinator.search.among,
        )
        alignment = common.alignment
        for name, seat in seats.items():
            seat.work.found(common.rows[name], common.ids, alignment)
    facts = {name: plain(seat.work.told()) for name, seat in seats.items()}
    return plain(coordinator.terms(facts, told_ids, alignment)), facts, alignment


def session_of(coordinator: Any, proposal: Proposal, folder: Path | None = None) -> Session:
    """Begin the coordinator's session, or take it up. After the terms."""
    return Session(
        name=proposal.session,
        kinds=coordinator.messages,
        transcript=Transcript.create(None, session=proposal.session, split=proposal.split),
        folder=folder,
        summing=coordinator.summing(None),
        forgiving=getattr(coordinator, "forgiving", False),
    )


def seat_all(seats: Mapping[str, Seated], coordinator: AtCoordinator) -> None:
    """Go through all that comes before the first round."""
    terms, facts, _ = agreed(seats, coordinator)
    for seat in seats.values():
        seat.host = seat.work.host(terms, facts, None, None)


def conducted(
    seats: Mapping[str, Seated],
    coordinator: Any,
    proposal: Proposal,
    folder: Path,
    *,
    away: frozenset[str] = frozenset(),
) -> Coordinator:
    """Do all of the work, and write everybody's folders; return the coordinator's half."""
    seat_all(seats, coordinator)
    session = session_of(coordinator, proposal)
    half: Coordinator = coordinator.begin()
    drive(half, Relay(seats, away=away), session, coordinator.listening(nobody))
    last = farewell(half, session, tuple(seats))
    approvals = tuple(
        approved(
            name,
            session=session.name,
            parties=seats,
            proposal=proposal.digest,
            key=seat.sitting.identity,
        )
        for name, seat in seats.items()
    )
    ledgers = {}
    for name, seat in seats.items():
        assert seat.host is not None
        seat.work.finish(seat.host, last, approvals)
        ledgers[name] = extract_of(seat)
    coordinator.save(folder, session, half, ledgers, approvals)
    return half


def extract_of(seat: Any) -> bytes:
    """Return what a party tells of its ledger in the end."""
    content: bytes = seat.work.ledger.extract(
        seat.sitting.proposal.session, party=seat.sitting.name, budget=seat.work.budget
    )
    return content
