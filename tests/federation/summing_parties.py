"""Parties of the toy that only sum, and leave in the middle of it: all of a round, but for the reckoning."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto.keys import Identity
from cofactor.federation.channel import ANSWER, NO_FAILURES, Answers, Channel, Failures, InProcess
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.drive import Round, Session, drive
from cofactor.federation.federation import Federation
from cofactor.federation.host import Host
from cofactor.federation.messages import Letter, Message
from cofactor.federation.transcript import Transcript
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import InsecureRandom, own_random
from cofactor.recipes.hosts import host_of, keys_for, summing_of
from tests.federation.making import BUDGET, Averager, Guess, ItemSums, OffInAll, horizontal

NEVER = 99


class FirstParties:
    """A lot that always falls on the first ones."""

    def sample(self, parties: Any, count: int) -> Any:
        return parties[:count]


class Leaving:
    """A channel whose parties leave for good before some step of a sum."""

    def __init__(self, channel: Channel, leaves: Mapping[str, int]) -> None:
        self._channel, self._leaves, self.parties = channel, leaves, channel.parties

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:
        # A sum that is simulated has one step, that of the answers.
        now = ANSWER if step is None else step
        gone = {party for party in letters if self._leaves.get(party, NEVER) <= now}
        left = {party: letter for party, letter in letters.items() if party not in gone}
        answers = self._channel.ask(round, left, step)
        missing = {**answers.missing, **dict.fromkeys(gone, "has left")}
        return Answers(by_party=answers.by_party, missing=missing, lost=answers.lost)


class Watching(Averager):
    """A coordinator that keeps all totals."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.totals: list[NDArray[np.int64] | None] = []

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        total = replies.get(SUM)
        self.totals.append(total.hundredths if isinstance(total, OffInAll) else None)
        super().take(round, replies)


@dataclass
class Played:
    """What came of it."""

    coordinator: Watching
    session: Session
    ledgers: dict[str, Ledger]
    hosts: dict[str, Host]
    rounds: list[Round] = field(default_factory=list)

    @property
    def total(self) -> NDArray[np.int64] | None:
        """The sum of the only round."""
        (found,) = self.coordinator.totals
        return found

    def protections(self, party: str) -> list[str]:
        return [each.protection for each in self.session.transcript.sent if each.sender == party]


def prepared(
    recipe: ItemSums, federation: Federation, *, private: bool = True, folder: Path | None = None
) -> Played:
    """Return all ends of a session; its noise is not calibrated, and nobody may look at its budget."""
    facts = federation.facts
    settled = recipe.settled(facts, BUDGET)
    identities = {name: Identity.generate() for name in facts.parties}
    roster = {name: identity.public for name, identity in identities.items()}
    decryption, keys = keys_for(settled, facts)
    session = Session(
        name="s",
        kinds=settled.messages,
        transcript=Transcript.create(None, session="s"),
        folder=folder,
        summing=summing_of(settled, facts, roster, decryption),
    )
    schedule: Schedule | None = settled.schedule(facts, "user") if private else None
    ledgers = {
        name: Ledger.create(None, party=name, fingerprint="a toy", budget=BUDGET)
        for name in (facts.parties if private else ())
    }
    hosts = {
        party.name: host_of(
            settled,
            party,
            facts,
            session,
            schedule=schedule,
            ledger=ledgers.get(party.name),
            random=own_random(InsecureRandom(5), facts.place(party.name)),
            identity=identities[party.name],
            key=keys.get(party.name),
        )
        for party in federation.parties
    }
    return Played(Watching(settled, facts), session, ledgers, hosts)


def play(
    aggregate: Any,
    count: int,
    *,
    leaves: Mapping[str, int] | None = None,
    failures: Failures = NO_FAILURES,
    private: bool = True,
    rounds: int = 1,
    kind: type[ItemSums] = ItemSums,
) -> Played:
    """Let so many parties play; by default one round, in which everybody stays."""
    played = prepared(kind(rounds=rounds, aggregate=aggregate), horizontal(count), private=private)
    channel = InProcess(played.hosts, failures=failures)
    try:
        drive(played.coordinator, Leaving(channel, leaves or {}), played.session, played.rounds.append)
    finally:
        channel.close()
    return played


def plain_sum(count: int, names: Any) -> NDArray[np.int64]:
    """Return what the first round's sum of some parties is without any noise."""
    silent = prepared(ItemSums(rounds=1), horizontal(count), private=False)
    asked = silent.coordinator.ask(1)
    total = np.zeros(5, np.int64)
    for name in names:
        half: Any = silent.hosts[name]._participant
        total += np.trunc(100 * half._off(asked.arrays["mean"]).value).astype(np.int64)
    return total


def question(round: int = 1) -> bytes:
    """Return the coordinator's first letter of a round."""
    body = Guess(mean=np.full(5, 3.0))
    return Letter(session="s", round=round, sender=COORDINATOR, body=body).to_bytes()
