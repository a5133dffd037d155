"""How a party hides whole numbers from all but a quorum of decrypters, and how these open a sum.

`UnderCipher` encrypts: one box, which everybody may add to others. `InShares` cuts the numbers themselves
into Shamir's shares: one box for each decrypter, sealed with a key of its own; nothing rests on a dealer.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Protocol

from cofactor.crypto import vector_shares
from cofactor.crypto.ciphers import Cipher, Holder, Integers, Part
from cofactor.crypto.keys import PUBLIC_BYTES, KeyPair, opened, sealed
from cofactor.errors import CofactorError, ConfigError, ProtocolError


class Hiding(Protocol):
    """What everybody may have."""

    @property
    def identity(self) -> bytes:
        """32 bytes that name keys and parameters."""

    @property
    def quorum(self) -> int:
        """How many decrypters must help to open a sum."""

    @property
    def box_count(self) -> int:
        """How many boxes a party sends: one for all decrypters, or one for each of them."""

    def boxes(self, values: Integers, bits: int, bound_to: bytes) -> tuple[bytes, ...]:
        """Return numbers as they are sent: one box for all decrypters, or one for each of them.

        What is `bound_to` a sum and a party, whose place it ends with, opens nowhere else, where boxes are
        sealed.
        """

    def pieces(self, length: int, bits: int) -> int:
        """Return into how many pieces the work of opening can be divided."""

    def total(self, boxes: Iterable[bytes], length: int, bits: int) -> bytes:
        """Return the sum of what everybody can add up, without opening it."""

    def combined(self, total: bytes, length: int, bits: int, parts: Sequence[Part]) -> Integers:
        """Return the sum, from the parts of a quorum."""


class Opener(Protocol):
    """One decrypter's secret."""

    def total(self, boxes: Iterable[tuple[bytes, bytes]], length: int, bits: int) -> bytes:
        """Add up boxes, each with what it is bound to, without opening the sum."""

    def part(self, total: bytes, length: int, bits: int, pieces: range) -> bytes:
        """Return its part in opening some pieces of a sum."""


class UnderCipher:
    """Numbers under encryption."""

    box_count = 1

    def __init__(self, cipher: Cipher) -> None:
        self._cipher = cipher
        self.identity, self.quorum = cipher.identity, cipher.quorum

    def boxes(self, values: Integers, bits: int, bound_to: bytes) -> tuple[bytes, ...]:  # noqa: ARG002
        """Return the numbers, encrypted, in one box; who sends them to which sum is signed beside it."""
        return (self._cipher.encrypted(values, bits),)

    def pieces(self, length: int, bits: int) -> int:
        """Return how many ciphertexts there are."""
        return self._cipher.pieces(length, bits)

    def total(self, boxes: Iterable[bytes], length: int, bits: int) -> bytes:
        """Add up under encryption."""
        return self._cipher.added(boxes, length, bits)

    def combined(self, total: bytes, length: int, bits: int, parts: Sequence[Part]) -> Integers:
        """Return the sum."""
        return self._cipher.combined(total, length, bits, parts)


class HolderOfKey:
    """A decrypter that holds a key, or a part of one."""

    def __init__(self, cipher: Cipher, holder: Holder) -> None:
        self.cipher, self._holder = cipher, holder

    def total(self, boxes: Iterable[tuple[bytes, bytes]], length: int, bits: int) -> bytes:
        """Add up under encryption."""
        return self.cipher.added((box for box, _ in boxes), length, bits)

    def part(self, total: bytes, length: int, bits: int, pieces: range) -> bytes:
        """Return its part in opening some ciphertexts."""
        return self._holder.part(total, length, bits, pieces)


class InShares:
    """Numbers in Shamir's shares, one for each decrypter, sealed for it."""

    def __init__(self, keys: Sequence[bytes], quorum: int) -> None:
        """Take the decrypters' public sealing keys, in the order of their places."""
        if not 2 <= quorum <= len(keys):
            raise ConfigError(f"quorum must lie between 2 and the {len(keys)} decrypters, got {quorum}.")
        self._keys, self.quorum, self.box_count = tuple(keys), quorum, len(keys)
        self.identity = sha256(b"cofactor shares %d" % quorum + b"".join(keys)).digest()

    def boxes(self, values: Integers, bits: int, bound_to: bytes) -> tuple[bytes, ...]:
        """Return a sealed share for each decrypter."""
        _check_fits(bits)
        _check_range(values, bits, ConfigError)
        shares = vector_shares.split(values, threshold=self.quorum, holders=len(self._keys))
        pair = KeyPair.fresh()
        return tuple(
            pair.public + sealed(pair.agreed(key, bound_to), vector_shares.to_bytes(share), bound_to)
            for key, share in zip(self._keys, shares, strict=True)
        )

    def pieces(self, length: int, bits: int) -> int:  # noqa: ARG002 (it is milliseconds' work)
        """Return one: the work is not divided."""
        return 1

    def total(self, boxes: Iterable[bytes], length: int, bits: int) -> bytes:  # noqa: ARG002
        """Return nothing: only decrypters can add up shares."""
        return b""

    def combined(self, total: bytes, length: int, bits: int, parts: Sequence[Part]) -> Integers:  # noqa: ARG002
        """Return the sum."""
        _check_fits(bits)
        found = {part.place: vector_shares.from_bytes(part.data, length) for part in parts}
        values = vector_shares.combined(found, threshold=self.quorum)
        _check_range(values, bits, ProtocolError)
        return values


class HolderOfShares:
    """A decrypter that receives shares."""

    def __init__(self, pair: KeyPair) -> None:
        self._pair = pair

    def total(self, boxes: Iterable[tuple[bytes, bytes]], length: int, bits: int) -> bytes:  # noqa: ARG002
        """Open the shares that were sealed for it, and add them up: a share of the sum."""
        shares = (vector_shares.from_bytes(self._opened(*box), length) for box in boxes)
        return vector_shares.to_bytes(vector_shares.added(shares))

    def part(self, total: bytes, length: int, bits: int, pieces: range) -> bytes:  # noqa: ARG002
        """Return its share of the sum."""
        return total

    def _opened(self, box: bytes, bound_to: bytes) -> bytes:
        sender, data = box[:PUBLIC_BYTES], box[PUBLIC_BYTES:]
        try:
            return opened(self._pair.agreed(sender, bound_to), data, bound_to)
        except (ProtocolError, ValueError):
            place = int.from_bytes(bound_to[-4:], "little")
            raise ProtocolError(
                f"The share that the party at place {place} sealed does not open. Nothing was opened."
            ) from None


def _check_fits(bits: int) -> None:
    """Refuse sums that would wrap around unseen."""
    if bits > vector_shares.MOST_BITS:
        raise ConfigError(
            f"Shared sums have {vector_shares.MOST_BITS} bits at most, this one {bits}. Use a coarser "
            "grain, or an encrypted sum."
        )


def _check_range(values: Integers, bits: int, error: type[CofactorError]) -> None:
    """Refuse numbers, or a sum, that have more bits than was said."""
    most = 2 ** (bits - 1)
    if values.size and not -most <= values.min() <= values.max() < most:
        raise error(f"A number needs more than the {bits} bits that all numbers together may have.")
