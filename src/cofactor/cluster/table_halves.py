"""The two halves of counting under encryption: what parties offer, answer and sum, and who passes it on.

All messages of a party for another are signed by its identity, for one session, round and receiver: a
coordinator that puts keys or numbers of its own in between is noticed, and nothing is answered.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.fitting import fitted
from cofactor.cluster.method import FIRST_ROUND, Facts, Floats, Home, Integers
from cofactor.cluster.stepwise import Step, Stepwise
from cofactor.crypto.keys import SIGNATURE_BYTES, verified
from cofactor.crypto.products import Layout, Offering, answered
from cofactor.errors import ProtocolError, RunError
from cofactor.federation.door import SUM
from cofactor.federation.messages import Message
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound

Bytes = NDArray[np.uint8]

TABLES = "membership tables"
_OFFERS, _ANSWERS, SUMMED = FIRST_ROUND, FIRST_ROUND + 1, FIRST_ROUND + 2
_ALL = "all"
"""The receiver of what is for several parties."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OfferTables(Message):
    """The first question: what is to be counted was agreed on beforehand."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TableOffers(Message):
    """Encrypted clusters: a party's own, and then, as a question, those of all parties but the last."""

    relays: ClassVar[bool] = True

    offers: Bytes
    """A signed offer in each row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TableAnswers(Message):
    """Encrypted counts: a party's answers to all before it, and then, as a question, those of all pairs."""

    relays: ClassVar[bool] = True

    answers: Bytes
    """A signed answer in each row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyTables(Message):
    """A party's shares of all pairs' tables, with its noise; in the sum, the tables with all of it."""

    counts: NDArray[np.int64]


class TableMember(Stepwise):
    """A party's half: it offers, answers offers, and adds noise to its shares; each of it once."""

    def __init__(self, home: Home, layout: Layout) -> None:
        super().__init__(home)
        self._layout = layout
        self._offering: Offering | None = None
        self._shares: dict[tuple[int, int], Integers] = {}

    def _steps(self) -> Sequence[Step]:
        return ((OfferTables, self._offer), (TableOffers, self._answer), (TableAnswers, self._sum))

    def _offer(self, message: Message) -> Message:  # noqa: ARG002 (what is to be counted is known)
        """Offer the own clusters, encrypted, to all parties that come later."""
        home, rows = self._home, []
        if home.place < len(home.facts.parties) - 1:
            self._offering = Offering(self._layout)
            rows = [self._signed(_OFFERS, _ALL, self._offering.offered(home.cells))]
        return TableOffers(offers=home.door.sealed(_stacked(rows, _signed_size(self._layout.offer_bytes))))

    def _answer(self, message: Message) -> Message:
        """Answer the offers of all parties that come earlier, and keep the own shares."""
        home, layout, parties = self._home, self._layout, self._home.facts.parties
        found = _rows(
            message, "offers", len(parties) - 1, _signed_size(layout.offer_bytes), "the coordinator"
        )
        # All of them, so that all parties refuse the same.
        offers = [
            self._checked(row, _OFFERS, party, _ALL) for row, party in zip(found, parties[:-1], strict=True)
        ]
        rows = []
        for place, party in enumerate(parties[: home.place]):
            reply, self._shares[place, home.place] = answered(offers[place], layout, home.cells)
            rows.append(self._signed(_ANSWERS, party, reply))
        return TableAnswers(answers=home.door.sealed(_stacked(rows, _signed_size(layout.answer_bytes))))

    def _sum(self, message: Message) -> Message:
        """Open what was answered to the own offer, and hand all shares, with noise, to the sum.

        Shares are any numbers modulo 2^64, and noise may wrap around: in the sum, which is small, that does
        no harm. The bound is that of the sum.
        """
        home, size = self._home, _signed_size(self._layout.answer_bytes)
        answers = self._answers(_rows(message, "answers", len(home.facts.pairs), size, "the coordinator"))
        if self._offering is not None:
            own = {pair: data for pair, data in answers.items() if pair[0] == home.place}
            self._shares |= {pair: self._offering.share(data) for pair, data in own.items()}
        none = np.zeros(_shape(home.facts)[1:], np.int64)
        shares = np.stack([self._shares.pop(pair, none) for pair in home.facts.pairs])
        counts = home.door.share(
            home.schedule.noise_of(TABLES),
            Bounded(value=shares, bound=bound_of(home.facts)),
            what=TABLES,
            largest_sum=home.facts.users,
            joint=True,
        )
        return NoisyTables(counts=counts)

    def _answers(self, rows: Bytes) -> dict[tuple[int, int], bytes]:
        """Return what parties have answered each other, by pair; all must be signed."""
        facts = self._home.facts
        return {
            (first, second): self._checked(row, _ANSWERS, facts.parties[second], facts.parties[first])
            for (first, second), row in zip(facts.pairs, rows, strict=True)
        }

    def _signed(self, round: int, receiver: str, data: bytes) -> Bytes:
        signature = self._home.identity.sign(self._told(round, self._party, receiver, data))
        return np.frombuffer(signature + data, np.uint8)

    def _checked(self, row: Bytes, round: int, sender: str, receiver: str) -> bytes:
        """Return what a party has signed for this session, round and receiver; refuse anything else."""
        signature, data = row[:SIGNATURE_BYTES].tobytes(), row[SIGNATURE_BYTES:].tobytes()
        if not verified(self._home.roster[sender], self._told(round, sender, receiver, data), signature):
            raise ProtocolError(
                f"{self._party}: what came as that of {sender} was not signed by {sender}, for this session, "
                "round and receiver. Somebody put other numbers in between, or keys were mixed up. Nothing "
                "was answered."
            )
        return data

    def _told(self, round: int, sender: str, receiver: str, data: bytes) -> bytes:
        """Return what is signed."""
        words = ["cofactor table", self._home.session, round, sender, receiver, sha256(data).hexdigest()]
        return json.dumps(words).encode()


class TableCounter:
    """The coordinator's half: it passes on what it cannot read, and is told the tables with noise."""

    def __init__(self, facts: Facts, layout: Layout) -> None:
        self._facts, self._layout = facts, layout
        self._question: Message = OfferTables()
        self._tables: Integers | None = None

    def ask(self, round: int) -> Message:  # noqa: ARG002 (each question follows from the last answers)
        """Return the question of a round: what parties have for each other."""
        return self._question

    def sums(self, round: int) -> bool:
        """Say that tables are opened as a sum, in the last round."""
        return round == SUMMED

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Take in the answers of all parties, and in the end their sum: without one of them there is none."""
        wanted = (SUM,) if round == SUMMED else self._facts.parties
        missing = [party for party in wanted if party not in replies]
        if missing:
            raise RunError(
                f"round {round}: there is no answer of {', '.join(missing)}: a party is missing, and tables "
                "cannot be counted without it. What was charged stays charged. Cluster again when all are "
                "back, or without it."
            )
        take = {_OFFERS: self._take_offers, _ANSWERS: self._take_answers, SUMMED: self._take_sum}
        take[round](replies)

    def table(self, count: float | None) -> Floats:  # noqa: ARG002 (tables tell how many there are)
        """Return how many users are in every combination of local clusters."""
        if self._tables is None:
            raise RunError("memberships have not been counted yet.")
        return fitted_tables(self._tables, self._facts)

    def _take_offers(self, replies: Mapping[str, Message]) -> None:
        parties, size = self._facts.parties, _signed_size(self._layout.offer_bytes)
        offers = [_rows(replies[party], "offers", 1, size, party) for party in parties[:-1]]
        self._question = TableOffers(offers=np.concatenate(offers))

    def _take_answers(self, replies: Mapping[str, Message]) -> None:
        parties, size = self._facts.parties, _signed_size(self._layout.answer_bytes)
        answers = [
            _rows(replies[party], "answers", place, size, party) for place, party in enumerate(parties)
        ]
        rows = [answers[second][first] for first, second in self._facts.pairs]
        self._question = TableAnswers(answers=np.stack(rows))

    def _take_sum(self, replies: Mapping[str, Message]) -> None:
        counts, shape = replies[SUM].arrays.get("counts"), _shape(self._facts)
        if counts is None or counts.shape != shape or counts.dtype != np.int64:
            raise RunError("the parties have summed something else than tables.")
        self._tables = counts


def bound_of(facts: Facts) -> Bound:
    """Return by how much a user changes all tables: she is in one cell of each, or in none."""
    return Bound(size=len(facts.pairs), norm="l1", unit="user")


def fitted_tables(tables: Integers, facts: Facts) -> Floats:
    """Return one table for all parties, from the noisy ones of all pairs; of how many users, they tell."""
    total = float(np.clip(tables.sum(axis=(1, 2), dtype=np.float64).mean(), 1.0, facts.users))
    pairs = {pair: table.astype(np.float64) for pair, table in zip(facts.pairs, tables, strict=True)}
    return fitted(pairs, facts.grid, total)


def _shape(facts: Facts) -> tuple[int, int, int]:
    return len(facts.pairs), facts.local_clusters, facts.local_clusters


def _signed_size(data: int) -> int:
    return SIGNATURE_BYTES + data


def _stacked(rows: Sequence[Bytes], size: int) -> Bytes:
    return np.stack(rows) if rows else np.empty((0, size), np.uint8)


def _rows(message: Message, name: str, count: int, size: int, sender: str) -> Bytes:
    """Return rows of bytes from outside; refuse others than so many of this size."""
    found = message.arrays.get(name)
    if found is None or found.shape != (count, size) or found.dtype != np.uint8:
        raise RunError(f"{sender} sent something else than {count} {name} of {size:,} bytes.")
    return found
