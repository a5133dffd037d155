"""What the messages of a secure sum look like, byte by byte.

Every message starts with 42 bytes: "CFSS", version, kind, the digest of the terms (32), and the place (4) of
the party that it comes from or goes to. Numbers are little-endian. A place inside a message takes 2 bytes
with up to 65,536 parties, else 4; a set of places is a bitmap, one bit for each party. Then follows:

    ADVERT          masking key 32, sealing key 32, chosen places, signature 64
    ADVERTS         set of those who advertised; for each neighbour: place, advert
    SHARES          for each chosen party that advertised, in the order chosen: its sealed shares
    HELD            set of those who shared; for each who chose this party: place, sealed shares
    MASKED          signature 64 of the set of those who shared, the packed numbers
    SURVIVORS       set of those whose numbers arrived; for each of them who chose this one: place, signature
    CONFIRMATION    signature 64
    CONFIRMATIONS   for each chosen party that confirmed: place, signature
    REVEALED        for each share that `asked` names: the share

Reading raises ProtocolError and nothing else, whatever the bytes are.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto.keys import PUBLIC_BYTES, SEAL_BYTES, SIGNATURE_BYTES
from cofactor.crypto.neighbours import Neighbourhood
from cofactor.crypto.ring import Words
from cofactor.crypto.shamir import PRIME, SHARE_BYTES
from cofactor.crypto.sum_terms import EXTRA, Terms
from cofactor.errors import ProtocolError

Places = frozenset[int]

_HEADER = 42
_MAGIC = b"CFSS"
_VERSION = 1


class Kind(IntEnum):
    """Which message it is."""

    ADVERT = 1
    ADVERTS = 2
    SHARES = 3
    HELD = 4
    MASKED = 5
    SURVIVORS = 6
    CONFIRMATION = 7
    CONFIRMATIONS = 8
    REVEALED = 9


@dataclass(frozen=True, eq=False)
class Advert:
    """The public keys of a party for one sum, and whom it chose; signed by its identity."""

    place: int
    masking: bytes
    sealing: bytes
    chosen: NDArray[np.unsignedinteger]
    signature: bytes = b""

    @property
    def content(self) -> bytes:
        """All but the signature, as it stands in a message."""
        return self.masking + self.sealing + self.chosen.tobytes()


def to_sign_advert(terms: Terms, advert: Advert) -> bytes:
    """Return the bytes that a party signs when it advertises."""
    return _bound(terms, "signed advert", advert.place) + advert.content


def to_sign_sharers(terms: Terms, place: int, sharers: bytes) -> bytes:
    """Return the bytes that a party signs to say with whom it masked: the bitmap of who shared secrets."""
    return _bound(terms, "signed sharers", place) + sharers


def to_sign_survivors(terms: Terms, place: int, sets: bytes) -> bytes:
    """Return the bytes that a party signs to confirm the bitmaps of who shared secrets and who is left."""
    return _bound(terms, "signed survivors", place) + sets


def pair_context(terms: Terms, one: int, other: int) -> bytes:
    """Return what the mask of two parties is bound to, whoever of them asks."""
    return _bound(terms, "mask of a pair", min(one, other), max(one, other))


def sign(place: int, other: int) -> int:
    """Return whether a party adds (1) or takes off (-1) the mask that it has with another: one does each."""
    return 1 if place < other else -1


def seal_context(terms: Terms, owner: int, holder: int) -> bytes:
    """Return what sealed shares are bound to: whose they are and who holds them."""
    return _bound(terms, "sealed shares", owner, holder)


def _bound(terms: Terms, purpose: str, *places: int) -> bytes:
    """Return bytes that no other purpose, places or terms have; the purpose has a fixed width."""
    numbers = (place.to_bytes(4, "little") for place in places)
    return b"".join((b"cofactor secure sum:", purpose.encode().ljust(24), terms.digest(), *numbers))


def header(terms: Terms, kind: Kind, place: int) -> bytes:
    """Return the bytes with which a message from or to a place starts."""
    return _MAGIC + bytes([_VERSION, kind]) + terms.digest() + place.to_bytes(4, "little")


def message(terms: Terms, kind: Kind, place: int, *parts: bytes) -> bytes:
    """Return a whole message."""
    return b"".join((header(terms, kind, place), *parts))


def bitmap(terms: Terms, places: Iterable[int]) -> bytes:
    """Return a set of places, one bit for each party."""
    bits = np.zeros(terms.parties, np.bool_)
    bits[list(places)] = True
    return np.packbits(bits, bitorder="little").tobytes()


def written(terms: Terms, place: int) -> bytes:
    """Return a place as it stands in a message."""
    return place.to_bytes(word(terms).itemsize, "little")


def word(terms: Terms) -> np.dtype[np.unsignedinteger]:
    """Return the type of a place in a message."""
    return np.dtype("<u2") if terms.parties <= 2**16 else np.dtype("<u4")


class Reader:
    """Takes bytes apart from front to back; no length is believed before it is checked."""

    def __init__(self, terms: Terms, data: bytes) -> None:
        self._terms, self._data, self._at = terms, data, 0

    @property
    def left(self) -> int:
        """How many bytes were not yet taken."""
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        if count > self.left:
            raise ProtocolError(f"A message ends {count - self.left} bytes too early.")
        self._at += count
        return self._data[self._at - count : self._at]

    def bitmap(self) -> Places:
        """Return the set of places that comes next."""
        parties = self._terms.parties
        bits = np.unpackbits(np.frombuffer(self.take(-(-parties // 8)), np.uint8), bitorder="little")
        if bits[parties:].any():
            raise ProtocolError("A set of places names some that do not exist.")
        return frozenset(np.flatnonzero(bits).tolist())

    def places(self, count: int) -> NDArray[np.unsignedinteger]:
        """Return the places that come next, which must rise."""
        kind = word(self._terms)
        places = np.frombuffer(self.take(count * kind.itemsize), kind)
        if (places[1:] <= places[:-1]).any() or (places[-1:] >= self._terms.parties).any():
            raise ProtocolError("A list of places is not in order, or names some that do not exist.")
        return places

    def entries(self) -> Iterator[int]:
        """Yield the place of each entry up to the end; the caller takes its content. Places must rise."""
        last = -1
        while self.left:
            place = int.from_bytes(self.take(word(self._terms).itemsize), "little")
            if not last < place < self._terms.parties:
                raise ProtocolError("Entries of a message are not in order, or of places that do not exist.")
            last = place
            yield place

    def end(self) -> None:
        """Refuse bytes after the end."""
        if self.left:
            raise ProtocolError(f"A message is {self.left} bytes too long.")


def read(terms: Terms, kind: Kind, place: int, data: bytes) -> Reader:
    """Return what follows the header, if it is the right one."""
    reader = Reader(terms, data)
    start = header(terms, kind, place)
    if reader.take(len(start)) != start:
        raise ProtocolError(
            f"Place {place}: a message does not start like the {kind.name} of this sum. It is damaged, or of "
            "another phase, round, session or party."
        )
    return reader


def read_advert(terms: Terms, place: int, data: bytes) -> Advert:
    """Read a party's ADVERT; its signature is not checked here."""
    reader = read(terms, Kind.ADVERT, place, data)
    advert = _advert(terms, place, reader)
    reader.end()
    return advert


def read_adverts(terms: Terms, place: int, data: bytes) -> tuple[Places, dict[int, Advert]]:
    """Read who advertised, and the adverts of a party's neighbours; signatures are not checked here."""
    reader = read(terms, Kind.ADVERTS, place, data)
    there = reader.bitmap()
    return there, {other: _advert(terms, other, reader) for other in reader.entries()}


def read_shares(terms: Terms, place: int, data: bytes, count: int) -> list[bytes]:
    """Read the sealed shares of a party, one for each of `count` holders."""
    reader = read(terms, Kind.SHARES, place, data)
    boxes = [reader.take(_sealed_bytes(terms)) for _ in range(count)]
    reader.end()
    return boxes


def read_held(terms: Terms, place: int, data: bytes) -> tuple[Places, dict[int, bytes]]:
    """Read who shared, and the sealed shares that a party is to hold, by owner."""
    reader = read(terms, Kind.HELD, place, data)
    sharers = reader.bitmap()
    return sharers, {owner: reader.take(_sealed_bytes(terms)) for owner in reader.entries()}


def read_masked(terms: Terms, place: int, data: bytes) -> tuple[bytes, Words]:
    """Read a party's signature of who shared (it is not checked here), and its masked numbers."""
    reader = read(terms, Kind.MASKED, place, data)
    return reader.take(SIGNATURE_BYTES), terms.ring.unpacked(reader.take(reader.left), terms.length)


def read_survivors(terms: Terms, place: int, data: bytes) -> tuple[Places, dict[int, bytes]]:
    """Read whose masked numbers arrived, and what they signed with them; signatures are not checked here."""
    reader = read(terms, Kind.SURVIVORS, place, data)
    return reader.bitmap(), {owner: reader.take(SIGNATURE_BYTES) for owner in reader.entries()}


def read_confirmation(terms: Terms, place: int, data: bytes) -> bytes:
    """Read a party's signature of the survivors; it is not checked here."""
    reader = read(terms, Kind.CONFIRMATION, place, data)
    signature = reader.take(SIGNATURE_BYTES)
    reader.end()
    return signature


def read_confirmations(terms: Terms, place: int, data: bytes) -> dict[int, bytes]:
    """Read the signatures of others by place; they are not checked here."""
    reader = read(terms, Kind.CONFIRMATIONS, place, data)
    return {other: reader.take(SIGNATURE_BYTES) for other in reader.entries()}


def read_revealed(terms: Terms, place: int, data: bytes, count: int) -> list[bytes]:
    """Read the `count` shares that a party reveals."""
    reader = read(terms, Kind.REVEALED, place, data)
    shares = split_shares(terms, reader.take(count * SHARE_BYTES))
    reader.end()
    return shares


def split_shares(terms: Terms, data: bytes) -> list[bytes]:
    """Return the shares that stand one after the other."""
    reader = Reader(terms, data)
    shares = []
    while reader.left:
        shares.append(reader.take(SHARE_BYTES))
        if int.from_bytes(shares[-1], "big") >= PRIME:
            raise ProtocolError("A share is no number below the prime.")
    return shares


def _advert(terms: Terms, place: int, reader: Reader) -> Advert:
    masking, sealing = reader.take(PUBLIC_BYTES), reader.take(PUBLIC_BYTES)
    chosen = reader.places(terms.neighbourhood.chosen)
    if place in chosen:
        raise ProtocolError(f"Place {place} chose itself.")
    return Advert(place, masking, sealing, chosen, reader.take(SIGNATURE_BYTES))


def _sealed_bytes(terms: Terms) -> int:
    return SEAL_BYTES + (EXTRA + terms.secrets) * SHARE_BYTES


def overhead(who: Neighbourhood, secrets: int) -> int:
    """Return about how many bytes a party sends and receives in one sum besides its numbers.

    Those who chose it are about as many as it chose; a share of an extra secret may be revealed with each.
    """
    others, chosen, entry = who.parties - 1, who.chosen, 2 if who.parties <= 2**16 else 4
    neighbours = chosen + chosen * (others - chosen) // others
    advert = 2 * PUBLIC_BYTES + entry * chosen + SIGNATURE_BYTES
    box = SEAL_BYTES + (EXTRA + secrets) * SHARE_BYTES
    revealed = SHARE_BYTES * (1 + bool(secrets))
    sent = advert + chosen * box + 2 * SIGNATURE_BYTES + chosen * revealed
    signatures = 2 * chosen * (entry + SIGNATURE_BYTES)
    received = neighbours * (entry + advert) + chosen * (entry + box) + signatures
    return sent + received + 9 * _HEADER + 3 * -(-who.parties // 8)
