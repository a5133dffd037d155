"""What parties who have pinned each other's keys tell each other through somebody whom none of them trusts.

`Minutes` are rounds in which every party says something to all. Each note is signed, together with everything
that was said in the rounds before: two who have read one more round than they talk about have seen the same,
or refuse. `sealed_to` and `opened_from` are for what one party tells one other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from cofactor.crypto.keys import PUBLIC_BYTES, SIGNATURE_BYTES, Identity, KeyPair, opened, sealed, verified
from cofactor.errors import ConfigError, ProtocolError

_LENGTH_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class Circle:
    """Who talks, and about what: everything that is signed or sealed is bound to it."""

    purpose: str
    """What it is about, so that nothing said here passes for something else."""
    session: str
    """A name that no other session of these parties ever had."""
    roster: Mapping[str, bytes]
    """The parties' public identity keys, as every party has pinned them, in one order."""
    agreed: str = ""
    """What else all of them must have in common: settings, in one way of writing."""

    def __post_init__(self) -> None:
        keys = list(self.roster.values())
        if len(keys) < 2 or len(set(keys)) < len(keys) or any(len(key) != PUBLIC_BYTES for key in keys):
            raise ConfigError("The roster needs two parties or more, and an identity key of 32 bytes each.")

    @cached_property
    def digest(self) -> bytes:
        """32 bytes that name all this."""
        texts = [self.purpose, self.session, self.agreed, *self.roster]
        return hashed(b"cofactor circle 1", *(text.encode() for text in texts), *self.roster.values())

    def between(self, sender: str, receiver: str, about: bytes) -> bytes:
        """Return what a message of one party to another is bound to."""
        return hashed(b"cofactor box 1", self.digest, about, sender.encode(), receiver.encode())

    def check(self, party: str, identity: Identity) -> None:
        """Refuse to speak for somebody else."""
        if self.roster.get(party) != identity.public:
            raise ConfigError(
                f"{party}: the roster has another key for this party than its own. Pin its public key again."
            )


class Minutes:
    """Rounds in which every party tells all others something, and signs what it has heard so far."""

    def __init__(self, circle: Circle) -> None:
        self._circle = circle
        self.round = 0
        """How many rounds were read."""
        self.heard = circle.digest
        """32 bytes that name everything that all parties have said."""

    def written(self, party: str, identity: Identity, data: bytes) -> bytes:
        """Return a party's note of this round. It writes one only."""
        return identity.sign(self._signed(party, data)) + data

    def read(self, notes: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return what each party says in this round, and go on to the next one."""
        said = {party: self.read_one(party, notes.get(party)) for party in self._circle.roster}
        if len(notes) != len(said):
            raise ProtocolError("Somebody who does not take part has sent a note.")
        # Without signatures: one who makes two for the same note cannot set others against each other.
        self.heard = hashed(b"cofactor minutes 1", self.heard, *said.values())
        self.round += 1
        return said

    def read_one(self, party: str, note: bytes | None) -> bytes:
        """Return what a party says in this round; the round is not over by it."""
        if note is None:
            raise ProtocolError(f"{party}: its note is missing.")
        signature, data = note[:SIGNATURE_BYTES], note[SIGNATURE_BYTES:]
        if not verified(self._circle.roster[party], self._signed(party, data), signature):
            raise ProtocolError(
                f"{party}: its note is not signed by the key that is pinned for it, for this session, these "
                "settings and what others have said. Somebody changed it, or parties were told different "
                "things."
            )
        return data

    def _signed(self, party: str, data: bytes) -> bytes:
        place = self.round.to_bytes(_LENGTH_BYTES, "little")
        return hashed(b"cofactor note 1", self._circle.digest, place, self.heard, party.encode(), data)


def sealed_to(peer: bytes, pair: KeyPair, data: bytes, bound_to: bytes) -> bytes:
    """Hide data from all but the owner of a public X25519 key, who knows that the pair's owner sent it."""
    return sealed(pair.agreed(peer, bound_to), data, bound_to)


def opened_from(peer: bytes, pair: KeyPair, data: bytes, bound_to: bytes) -> bytes:
    """Return what the owner of a public X25519 key has sealed for the pair's owner, bound to the same."""
    return opened(pair.agreed(peer, bound_to), data, bound_to)


def joined(parts: Sequence[bytes]) -> bytes:
    """Put parts one behind the other, each after its length, so that they can be told apart."""
    return b"".join(len(part).to_bytes(_LENGTH_BYTES, "little") + part for part in parts)


def apart(data: bytes) -> list[bytes]:
    """Return the parts that were joined; ProtocolError if the bytes are anything else."""
    parts, at = [], 0
    while at < len(data):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(data[at:start], "little")
        if at > len(data) or start > len(data):
            raise ProtocolError("A message is cut off.")
        parts.append(data[start:at])
    return parts


def hashed(*parts: bytes) -> bytes:
    """Return the SHA-256 of parts, of which none can be taken for another."""
    return sha256(joined(parts)).digest()
