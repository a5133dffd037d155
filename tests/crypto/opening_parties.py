"""Parties and decrypters of a small sum, each with everything that it would have at home."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto.ciphers import Dealt
from cofactor.crypto.hiding import Hiding, HolderOfKey, HolderOfShares, InShares, Opener, UnderCipher
from cofactor.crypto.keys import Identity, KeyPair
from cofactor.crypto.lattice import Lattice
from cofactor.crypto.opening_wire import Request, Upload, read_upload
from cofactor.crypto.openings import Collector, Decrypter, Opening, uploaded
from cofactor.crypto.threshold import ThresholdPaillier, dealt_from
from tests.crypto.paillier_keys import SMALL

LENGTH, BITS, PARTIES = 7, 40, 5


@dataclass
class Circle:
    """All who take part in one sum."""

    opening: Opening
    identities: list[Identity]
    hiding: Hiding
    openers: list[Opener]
    values: NDArray[np.int64]

    def upload(self, place: int, opening: Opening | None = None) -> bytes:
        return uploaded(
            opening or self.opening, place, self.identities[place], self.hiding, self.values[place]
        )

    def uploads(self, *places: int) -> dict[int, bytes]:
        return {place: self.upload(place) for place in places or range(len(self.identities))}

    def decrypter(self, number: int) -> Decrypter:
        pieces = self.hiding.pieces(self.opening.length, self.opening.bits)
        return Decrypter(self.opening, number, self.openers[number], pieces)

    def decrypters(self) -> dict[int, Decrypter]:
        return {place: self.decrypter(number) for number, place in enumerate(self.opening.decrypters)}

    def collector(self, uploads: dict[int, bytes]) -> Collector:
        return Collector(self.opening, self.hiding, uploads)

    def opened(self, collector: Collector, answering: set[int] | None = None) -> NDArray[np.int64]:
        """Let decrypters answer until the sum is known."""
        decrypters = self.decrypters()
        while not collector.finished:
            asks = collector.asks()
            collector.take(
                {
                    place: decrypters[place].answer(data)
                    for place, data in asks.items()
                    if answering is None or place in answering
                }
            )
        return collector.opened()

    def signed(self, place: int, *boxes: bytes) -> bytes:
        """Return an upload of any boxes, signed by a party that does what it likes."""
        hashes = b"".join(Upload.of(place, b"", boxes).hashes)
        signature = self.identities[place].sign(self.opening.bound_to(place) + hashes)
        return Upload.of(place, signature, boxes).to_bytes()

    def request(self, number: int, uploads: dict[int, bytes], total: bytes = b"") -> bytes:
        """Return what anybody can ask a decrypter: its part in the sum of these uploads."""
        pieces = (range(self.hiding.pieces(self.opening.length, self.opening.bits)),)
        found = [read_upload(uploads[place]) for place in sorted(uploads)]
        boxes = tuple(each.for_decrypter(number) if self.opening.recheck else each.named() for each in found)
        return Request(self.opening.digest, pieces, boxes, total).to_bytes()

    def with_terms(self, **terms: Any) -> "Circle":
        return replace(self, opening=replace(self.opening, **terms))


def in_shares(*, quorum: int = 2, decrypters: tuple[int, ...] = (4, 0, 2), fewest: int = 3) -> Circle:
    """Return a circle whose numbers are cut into shares."""
    pairs = [KeyPair.fresh() for _ in decrypters]
    hiding = InShares([pair.public for pair in pairs], quorum)
    return _circle(hiding, [HolderOfShares(pair) for pair in pairs], decrypters, fewest)


def under(dealt: Any, *, decrypters: tuple[int, ...] = (4, 0, 2), fewest: int = 3) -> Circle:
    """Return a circle whose numbers are encrypted with dealt keys."""
    openers = [HolderOfKey(dealt.cipher, holder) for holder in dealt.holders]
    return _circle(UnderCipher(dealt.cipher), openers, decrypters, fewest)


def under_paillier(*, shares: Any = "textbook", **terms: Any) -> Circle:
    """Return a circle under Paillier's encryption, with a short key: two of three open a sum."""
    return under(dealt_from(ThresholdPaillier(shares=shares), 3, SMALL), **terms)


def under_lattice(**terms: Any) -> Circle:
    """Return a circle under lattice encryption: each of three opens a sum alone."""
    return under(_lattice(), **terms)


@cache
def _lattice() -> Dealt:
    return Lattice().dealt(3)


def _circle(hiding: Any, openers: list[Any], decrypters: tuple[int, ...], fewest: int) -> Circle:
    identities = [Identity.generate() for _ in range(PARTIES)]
    opening = Opening(
        session="s",
        round=1,
        roster=tuple(each.public for each in identities),
        decrypters=decrypters,
        fewest=fewest,
        length=LENGTH,
        bits=BITS,
        keys=hiding.identity,
    )
    values = np.random.default_rng(3).integers(-(2**36), 2**36, (PARTIES, LENGTH))
    return Circle(opening, identities, hiding, openers, values)


KINDS: list[Callable[[], Circle]] = [in_shares, under_paillier, under_lattice]
ENCRYPTED: list[Callable[[], Circle]] = [under_paillier, under_lattice]
