"""Keys of sums that decrypters open, among parties who trust the coordinator with none of it.

Four rounds of signed notes (`crypto.boxes`), which the coordinator carries, and a last one in which all read
what the others confirm:

    0  every party commits to a number, and tells a fresh public key under which others seal for it
    1  every party tells its number: together they are the lot that says who decrypts, and in which order
    2  the first decrypter makes the keys, tells the public part, and seals each other one its secret
    3  every party tells which keys it has understood; all must have understood the same

Where sums are in shares (`SharedSum`), nobody makes keys: those of round 0 are the decrypters' own. A single
decrypter makes its key for itself. Where several hold keys, the first one is trusted to forget the others'.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from secrets import token_bytes

from cofactor.config import as_table
from cofactor.crypto.boxes import Circle, Minutes, apart, hashed, joined, opened_from, sealed_to
from cofactor.crypto.keys import PUBLIC_BYTES, Identity, KeyPair
from cofactor.crypto.written_keys import made
from cofactor.errors import ProtocolError
from cofactor.federation.messages import Message
from cofactor.federation.summing import Decryption
from cofactor.network.dealt_keys import AnyOpened, DealtKeys
from cofactor.network.posts import AskAll, Entries, Post, Turns, asked, by_name, notes_in
from cofactor.privacy.assumptions import Assumption
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum

_NONCE_BYTES = 32
_LAST = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class DealingPost(Post):
    """Notes of a dealing: to a party those of all of the round before, and back its own."""


class Dealing:
    """A party's end: `take` what it is asked, and return what it answers, until there is a `result`."""

    def __init__(
        self,
        aggregate: AnyOpened,
        *,
        party: str,
        roster: Mapping[str, bytes],
        identity: Identity,
        session: str,
    ) -> None:
        """Take what was agreed on; `session` must be a name that was never used before."""
        self._record = _Record(aggregate, roster, session)
        self._record.circle.check(party, identity)
        self._aggregate, self._party, self._identity = aggregate, party, identity
        self._pair, self._nonce = KeyPair.fresh(), token_bytes(_NONCE_BYTES)
        self._secret = b""
        self._turns, self._step = Turns(), 0

    @property
    def result(self) -> DealtKeys | None:
        """The keys, once all parties are known to have the same."""
        return self._kept() if self._record.agreed else None

    def take(self, message: Message) -> DealingPost:
        """Answer; ProtocolError says who does not keep to it. Asked the same again, answer the same."""
        if not isinstance(message, DealingPost):
            raise ProtocolError("Something else than a dealing of keys was asked for.")
        return self._turns.take(message, self._answer)

    def _answer(self, step: int, entries: Entries) -> Entries:
        if step != self._step:
            raise ProtocolError("A step of the dealing of keys was left out. Begin a new session.")
        self._step += 1
        if step > 0:
            self._record.take(by_name(entries))
        if step == _LAST:
            return []
        said = (self._hello, self._reveal, self._deal, self._confirm)[step]()
        return [(self._party, self._record.minutes.written(self._party, self._identity, said))]

    def _hello(self) -> bytes:
        return self._record.commitment(self._party, self._nonce) + self._pair.public

    def _reveal(self) -> bytes:
        if self._record.said[self._party] != self._hello():
            raise ProtocolError(f"{self._party}: an earlier note of its own was passed off as this one.")
        return self._nonce

    def _deal(self) -> bytes:
        """Make keys, if it is the one to do so, and keep its own."""
        record = self._record
        if isinstance(self._aggregate, SharedSum):
            self._secret = self._pair.private
            return b""
        if self._party != record.decrypters[0]:
            return b""
        public, secrets = made(self._aggregate.scheme, len(record.decrypters))
        self._secret = secrets[0]
        boxes = [
            sealed_to(record.keys[name], self._pair, secret, record.bound_to(name))
            for name, secret in zip(record.decrypters[1:], secrets[1:], strict=True)
        ]
        return joined([public, *boxes])

    def _confirm(self) -> bytes:
        """Open its own secret, and see that the keys can be used."""
        record, dealer = self._record, self._record.decrypters[0]
        try:
            if self._party in record.boxes:
                box, bound_to = record.boxes[self._party], record.bound_to(self._party)
                self._secret = opened_from(record.keys[dealer], self._pair, box, bound_to)
            self._kept().key(self._aggregate)
        except ProtocolError as error:
            raise ProtocolError(f"The key that {dealer} made for {self._party} is refused. {error}") from None
        return record.confirmed

    def _kept(self) -> DealtKeys:
        record = self._record
        secret = self._secret if self._party in record.decrypters else b""
        return DealtKeys(decrypters=record.decrypters, public=record.public, party=self._party, secret=secret)


def relay(aggregate: AnyOpened, *, roster: Mapping[str, bytes], session: str, ask_all: AskAll) -> DealtKeys:
    """Carry the notes of a dealing, the coordinator's end; return what everybody may know."""
    record = _Record(aggregate, roster, session)
    notes: dict[str, bytes] = {}
    for step in range(_LAST + 1):
        answers = asked(ask_all, {party: DealingPost.of(step, notes.items()) for party in roster})
        if step == _LAST:
            break
        notes = notes_in(answers)
        record.take(notes)
    return DealtKeys(decrypters=record.decrypters, public=record.public)


class _Record:
    """What everybody sees of a dealing, and checks: parties and coordinator alike."""

    def __init__(self, aggregate: AnyOpened, roster: Mapping[str, bytes], session: str) -> None:
        settings = json.dumps(as_table(aggregate), sort_keys=True)
        self.circle = Circle(purpose="keys of sums", session=session, roster=dict(roster), agreed=settings)
        self.minutes = Minutes(self.circle)
        self._aggregate = aggregate
        self.said: dict[str, bytes] = {}
        """By party, what it said in the round that was read last."""
        self.keys: dict[str, bytes] = {}
        """By party, under which key others seal for it."""
        self.decrypters: tuple[str, ...] = ()
        self.public = b""
        self.boxes: dict[str, bytes] = {}
        """By decrypter, what the first one has sealed for it."""
        self.confirmed = b""
        """What all parties must say of the keys."""
        self._commitments: dict[str, bytes] = {}
        self.agreed = False
        """Whether all have said so."""
        self._sealed_for = b""

    def take(self, notes: Mapping[str, bytes]) -> None:
        """Read a round."""
        step = self.minutes.round
        self.said = self.minutes.read(notes)
        (self._hellos, self._lot, self._dealt, self._same)[step]()

    def commitment(self, party: str, nonce: bytes) -> bytes:
        """Return what binds a party to its number, and does not tell it."""
        return hashed(b"cofactor lot 1", self.circle.digest, party.encode(), nonce)

    def bound_to(self, receiver: str) -> bytes:
        """Return what the first decrypter's box for another is bound to: also all that was said so far."""
        return self.circle.between(self.decrypters[0], receiver, self._sealed_for)

    def _hellos(self) -> None:
        for party, said in self.said.items():
            if len(said) != 32 + PUBLIC_BYTES:
                raise ProtocolError(f"{party} begins a dealing of keys otherwise than this version does.")
            self._commitments[party], self.keys[party] = said[:32], said[32:]
            _check_key(party, self.keys[party])
        if len(set(self.keys.values())) < len(self.keys):
            raise ProtocolError("Two parties have the same key: one of them sent another's.")

    def _lot(self) -> None:
        for party, nonce in self.said.items():
            committed = self.commitment(party, nonce)
            if len(nonce) != _NONCE_BYTES or not compare_digest(committed, self._commitments[party]):
                raise ProtocolError(f"{party} tells another number than it committed to. No lot was drawn.")
        count = self._aggregate.decrypter_count(len(self.keys))
        self.decrypters = drawn(tuple(self.keys), count, self.minutes.heard)
        self._sealed_for = self.minutes.heard

    def _dealt(self) -> None:
        dealer = None if isinstance(self._aggregate, SharedSum) else self.decrypters[0]
        talker = next((party for party, said in self.said.items() if said and party != dealer), None)
        if talker is not None:
            raise ProtocolError(f"{talker} deals keys, and it is not its turn.")
        if dealer is None:
            self.public = b"".join(self.keys[name] for name in self.decrypters)
        else:
            self._read_dealt(dealer)
        decryption = self._understood(dealer)
        self.confirmed = hashed(decryption.hiding.identity, *(name.encode() for name in self.decrypters))

    def _read_dealt(self, dealer: str) -> None:
        try:
            parts = apart(self.said[dealer])
        except ProtocolError:
            parts = []
        if len(parts) != len(self.decrypters):
            raise ProtocolError(f"{dealer} was to make keys for {len(self.decrypters)}, and did not.")
        self.public, *boxes = parts
        self.boxes = dict(zip(self.decrypters[1:], boxes, strict=True))

    def _understood(self, dealer: str | None) -> Decryption:
        try:
            return DealtKeys(decrypters=self.decrypters, public=self.public).decryption(self._aggregate)
        except ProtocolError as error:
            raise ProtocolError(f"The keys that {dealer} has made are refused. {error}") from None

    def _same(self) -> None:
        other = next((party for party, said in self.said.items() if said != self.confirmed), None)
        if other is not None:
            raise ProtocolError(f"{other} has understood other keys than the rest. None are used.")
        self.agreed = True


def _check_key(party: str, key: bytes) -> None:
    try:
        KeyPair.fresh().agreed(key, b"")
    except ProtocolError:
        raise ProtocolError(f"{party} tells a key with which nobody can seal anything.") from None


def drawn(parties: Sequence[str], count: int, lot: bytes) -> tuple[str, ...]:
    """Return `count` parties in an order that only the lot decides: it is the same for whoever knows it."""
    return tuple(sorted(parties, key=lambda party: hashed(b"cofactor lot 2", lot, party.encode()))[:count])


def dealing_assumptions(aggregate: AnyOpened, parties: int) -> tuple[Assumption, ...]:
    """Return what a guarantee rests on because keys were dealt over a network."""
    count = aggregate.decrypter_count(parties)
    dealer = isinstance(aggregate, EncryptedSum) and count > 1
    return (*((DEALER,) if dealer else ()), *((LOT,) if dealer or count < parties else ()))


DEALER = Assumption(
    what="the decrypter that the lot names first, which makes the keys, is not among those who collude and "
    "forgets the keys of the others",
    met="it is taken on trust: while it makes them it could open every upload; a SharedSum needs nobody who "
    "makes keys",
)
LOT = Assumption(
    what="nobody breaks off the drawing of decrypters until the lot suits them",
    met="the lot is made of numbers to which all parties had committed before any was told, so that nobody "
    "chooses; a party that tells its number last, and the coordinator, know the lot first and can break off, "
    "but after three times in all sessions, unless half of the rounds were answered and charged, a party "
    "deals no more until its people have looked into it",
)
