"""The two halves of counting by sketches: parties agree on keys, two by two, and send registers.

The coordinator passes keys on. Each is signed by its party's identity, for one session and one place among
the parties: a coordinator that puts a key of its own in between is noticed, and nothing is sent.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.method import FIRST_ROUND, Facts, Floats, Home, Integers
from cofactor.cluster.sketching import registers
from cofactor.cluster.stepwise import Step, Stepwise
from cofactor.crypto.keys import PUBLIC_BYTES, SIGNATURE_BYTES, KeyPair, verified
from cofactor.errors import ProtocolError, RunError
from cofactor.federation.halves import array_of
from cofactor.federation.messages import Message
from cofactor.privacy import bounding
from cofactor.privacy.schedule import Schedule
from cofactor.privacy.sketches import PartitionSketch

Bytes = NDArray[np.uint8]
Registers = Mapping[tuple[int, int], tuple[Integers, Integers]]
"""By pair of parties, the registers of the one and of the other."""

SKETCHES = "membership sketches"
KEYS, REGISTERS = FIRST_ROUND, FIRST_ROUND + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class OfferSketchKey(Message):
    """The first question: what is to be counted was agreed on beforehand."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SketchKeys(Message):
    """Public keys, each with its signature, in a row: a party's own, and then, as a question, everybody's."""

    relays: ClassVar[bool] = True

    keys: Bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class SketchRegisters(Message):
    """A party's registers for each pair of parties that it is in, in the order of all pairs."""

    registers: Bytes


class SketchMember(Stepwise):
    """A party's half: it offers a key, and makes registers with the keys of the others; each of it once."""

    def __init__(self, home: Home) -> None:
        """Draw a fresh key, for this session only."""
        super().__init__(home)
        self._pair = KeyPair.fresh()
        self._sketch = sketch_of(home.schedule)

    def _steps(self) -> Sequence[Step]:
        return ((OfferSketchKey, self._offer), (SketchKeys, self._registers))

    def _offer(self, message: Message) -> Message:  # noqa: ARG002 (what is to be counted is known)
        """Tell the public key, signed."""
        home = self._home
        signature = home.identity.sign(_to_sign(home.session, home.facts, home.place, self._pair.public))
        row = np.frombuffer(self._pair.public + signature, np.uint8)
        return SketchKeys(keys=home.door.public(row.reshape(1, -1)))

    def _registers(self, message: Message) -> Message:
        """Check everybody's keys; then charge all pairs' sketches, and make those of the own pairs."""
        home, secrets = self._home, self._agreed(message)
        facts, sketch = home.facts, self._sketch
        event = sketch.event(
            bounding.MEMBER,
            dimension=numbers_of(facts, sketch.rows),
            random=home.door.random,
            **home.door.label(SKETCHES),
        )
        # Registers of two parties are one release, and so are those of all pairs: every party charges all.
        event = replace(event, count=len(facts.pairs), joint=True)

        def make() -> NDArray[Any]:
            noisy = [sketch.noisy(self._own(secret), home.door.random) for secret in secrets]
            return np.stack(noisy).astype(np.uint8)

        return SketchRegisters(registers=home.door.made(event, make))

    def _own(self, secret: bytes) -> bounding.Bounded:
        """Return the party's registers under one key: whoever is in the data is in one cluster at most."""
        home = self._home
        found = registers(secret, home.ids, home.cells, home.facts.local_clusters, self._sketch.rows)
        return bounding.registers(found)

    def _agreed(self, message: Message) -> list[bytes]:
        """Return the keys shared with each other party, in the order of pairs, once all signatures hold."""
        home, facts = self._home, self._home.facts
        rows = _rows(message, len(facts.parties), "the coordinator")
        keys = [row[:PUBLIC_BYTES].tobytes() for row in rows]
        for place, (party, row) in enumerate(zip(facts.parties, rows, strict=True)):
            signed = _to_sign(home.session, facts, place, keys[place])
            known = home.roster.get(party, b"")
            if not verified(known, signed, row[PUBLIC_BYTES:].tobytes()):
                raise ProtocolError(
                    f"{self._party}: {party} has not signed the key that came under its name. Somebody else "
                    "may have put it there. Nothing was sent."
                )
        if keys[home.place] != self._pair.public:
            raise ProtocolError(f"{self._party}: its own key came back changed. Nothing was sent.")
        return [
            self._pair.agreed(keys[other], _context(home.session, pair))
            for pair in facts.pairs
            if home.place in pair
            for other in pair
            if other != home.place
        ]


class SketchCounter:
    """The coordinator's half: it passes keys on, and estimates from registers."""

    def __init__(
        self, facts: Facts, schedule: Schedule, estimate: Callable[[Registers, float], Floats]
    ) -> None:
        """Know how tables are estimated from the registers of all pairs, and the number of users."""
        self._facts, self._sketch, self._estimate = facts, sketch_of(schedule), estimate
        self._keys: Bytes | None = None
        self._found: dict[str, Integers] = {}

    def ask(self, round: int) -> Message:
        """Return the question of a round, the same for all parties."""
        if round == KEYS:
            return OfferSketchKey()
        if self._keys is None:
            raise RunError("keys are asked for before registers.")
        return SketchKeys(keys=self._keys)

    def sums(self, round: int) -> bool:  # noqa: ARG002 (in none)
        """Every answer is seen by itself: registers are the largest of many, not sums."""
        return False

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Take in the answers; none may be missing."""
        if round == KEYS:
            rows = [_rows(replies[party], 1, party) for party in self._facts.parties]
            self._keys = np.concatenate(rows)
        else:
            self._found = {party: self._checked(replies[party], party) for party in self._facts.parties}

    def table(self, count: float | None) -> Floats:
        """Return the table of all combinations of local clusters, as far as sketches tell."""
        if not self._found:
            raise RunError("no registers have come, so there is nothing to estimate from.")
        total = float(self._facts.users) if count is None else max(float(count), 0.0)
        return self._estimate({pair: self._pair(*pair) for pair in self._facts.pairs}, total)

    def _pair(self, one: int, other: int) -> tuple[Integers, Integers]:
        """Return what two parties sent for each other; a party's pairs are in the order of its partners."""
        parties = self._facts.parties
        return self._found[parties[one]][other - 1], self._found[parties[other]][one]

    def _checked(self, reply: Message, party: str) -> Integers:
        """Return registers that can be; what a party sends may be anything."""
        _check_kind(reply, SketchRegisters, party)
        facts, sketch = self._facts, self._sketch
        shape = (len(facts.parties) - 1, sketch.rows, facts.local_clusters)
        found = array_of(reply, "registers", shape, party).astype(np.int64)
        if np.any((found < sketch.low) | (found > sketch.high)):
            raise RunError(f"{party} sent registers that are not from {sketch.low} to {sketch.high}.")
        return found


def sketch_of(schedule: Schedule) -> PartitionSketch:
    """Return the sketch that a schedule has settled on."""
    found: PartitionSketch = schedule.noise_of(SKETCHES)
    return found


def numbers_of(facts: Facts, rows: int) -> int:
    """Return how many registers there are for a pair of parties."""
    return 2 * rows * facts.local_clusters


def _check_kind(message: Message, kind: type[Message], whose: str) -> None:
    if not isinstance(message, kind):
        raise RunError(f"{whose}: {type(message).__name__} came where {kind.__name__} was expected.")


def _rows(message: Message, count: int, sender: str) -> Bytes:
    """Return keys with signatures, a row of bytes each; refuse any others."""
    _check_kind(message, SketchKeys, sender)
    found = array_of(message, "keys", (count, PUBLIC_BYTES + SIGNATURE_BYTES), sender)
    if found.dtype != np.uint8:
        raise RunError(f"{sender} sent keys that are not bytes.")
    return found


def _to_sign(session: str, facts: Facts, place: int, key: bytes) -> bytes:
    """Return what a party signs: that this key is its own, in this session, in this place among these."""
    return b"cofactor sketch key " + json.dumps([session, facts.parties, place, key.hex()]).encode()


def _context(session: str, pair: tuple[int, int]) -> bytes:
    return b"cofactor sketch of a pair " + json.dumps([session, pair]).encode()
