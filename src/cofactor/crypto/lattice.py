"""Sums under lattice encryption (TenSEAL, Microsoft SEAL): thousands of numbers in each ciphertext.

The circuit is nothing but additions of whole numbers, and the parameters follow from it. They are the same
for all sums that can be opened, so that no sum runs out of room and no scale out of bounds:

- Degree 8192 and a modulus of two primes of 48 bits; SEAL demands a third one for its keys. These 144 bits
  lie far below the 218 that the standard's table allows for 128 bits of security.
- BFV reckons modulo the batching prime 2^60 - 2^14 + 1: signed sums of 59 bits are exact. Noise has 28 bits
  of room in a fresh ciphertext, and as many uploads as one sum takes use up 20 of them at the very most.
- CKKS gives a number 40 bits after the point, which leaves 8 bits beside the 48 of the largest sum. Noise of
  all those uploads stays below a hundredth; errors of double precision are about a tenth at 48 bits, and
  halve with every bit less. So sums come out as they are when they are rounded to whole numbers.

The last slots of every ciphertext hold zeros. What was made with another key or damaged opens to chance in
all slots, and is refused. A change by somebody who knows the public key is not noticed: uploads are signed.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from cofactor.config import one_of, whole
from cofactor.crypto.ciphers import OWN_NUMBERS, Dealt, Integers, Part
from cofactor.errors import ConfigError, ProtocolError, Refused, TooFew

Variant = Literal["bfv", "ckks"]

DEGREE = 8192
PRIMES = (48, 48, 48)
"""Bits of the primes of the modulus; ciphertexts live in all but the last."""
PLAIN_PRIME = 2**60 - 2**14 + 1
SCALE = 2.0**40
SLOTS = {"bfv": DEGREE, "ckks": DEGREE // 2}
MOST_BITS = {"bfv": 59, "ckks": 48}
MOST_UPLOADS = 2**20
CHECKS = 4
"""Slots of each ciphertext that hold zeros."""

_HEAD = struct.Struct("<4sB32sII")
_MAGIC, _VERSION = b"cfLT", 1
_SIZE = struct.Struct("<I")
_NUMBER_BYTES = 8
_LARGEST_BLOCK = 2 * DEGREE * (len(PRIMES) - 1) * 8 + 1024


@dataclass(frozen=True, kw_only=True)
class Lattice:
    """Lattice encryption with a key that every decrypter holds: they divide the pieces among them."""

    variant: Variant = "bfv"
    """"bfv" is exact; "ckks" reckons with real numbers and rounds what it opens."""

    unsafe: ClassVar[str] = (
        "The decrypter holds the whole key: together with the coordinator it opens every party's upload. Use "
        "ThresholdPaillier or SharedSum instead."
    )

    def __post_init__(self) -> None:
        one_of(("bfv", "ckks"), variant=self.variant)

    @property
    def exact(self) -> bool:
        """Whether sums come out as they are, to the last bit, whatever the numbers."""
        return self.variant == "bfv"

    def quorum_of(self, decrypters: int) -> int:
        """Return 1: whoever holds the key opens alone."""
        whole(decrypters=decrypters)
        return 1

    def assumptions(self, decrypters: int) -> tuple[str, ...]:
        """Return what hiding rests on, one clause each."""
        whole(decrypters=decrypters)
        common = (
            "no decrypter talks to the coordinator or is broken into: whoever is one holds the whole key",
            "an honest dealer makes the key, hands it to the decrypter and forgets it",
            f"learning with errors over rings is hard at degree {DEGREE} and {sum(PRIMES)} bits of modulus "
            "(beyond 128 bits of security in the homomorphic encryption standard)",
            f"parties and coordinator keep to the protocol: {OWN_NUMBERS}; and whether a ciphertext that was "
            "made to fail does so tells something about the key",
        )
        return common if self.variant == "bfv" else (*common, _APPROXIMATE)

    def dealt(self, decrypters: int) -> Dealt:
        """Make a fresh key for so many decrypters."""
        whole(decrypters=decrypters)
        private = _fresh_context(self.variant)
        cipher = LatticeCipher(self.variant, private.serialize(True, False, False, False))
        return Dealt(cipher, tuple(LatticeHolder(cipher, place, private) for place in range(decrypters)))


_APPROXIMATE = (
    "decrypters round sums to whole numbers before anybody sees them: approximate sums carry traces of the "
    "noise that hides the key (Li and Micciancio 2021), and rounding leaves none while errors are below 1/2"
)


class LatticeCipher:
    """The public key, and how numbers are laid out under it."""

    quorum = 1

    def __init__(self, variant: Variant, public: bytes) -> None:
        self.variant: Variant = variant
        self.identity = sha256(b"cofactor lattice " + variant.encode() + b" " + public).digest()
        self._context = _tenseal().Context.load(public, 1)
        self._room = SLOTS[variant] - CHECKS

    def encrypted(self, values: Integers, bits: int) -> bytes:
        """Return one party's numbers under fresh randomness; refuse numbers that have more than `bits`."""
        self.check_bits(bits)
        if values.dtype != np.int64 or values.ndim != 1:
            raise ConfigError(f"A row of whole numbers (int64) is encrypted, got {values.dtype}.")
        if not _within(values, bits):
            raise ConfigError(f"Numbers of more than {bits} bits, sign included, cannot be encrypted.")
        return self._written([self._vector(row) for row in self._rows(values)], len(values))

    def added(self, uploads: Iterable[bytes], length: int, bits: int) -> bytes:
        """Return the encryption of the sum of uploads of `length` numbers each."""
        self.check_bits(bits)
        total: list[Any] = []
        for count, upload in enumerate(uploads):
            if count == MOST_UPLOADS:
                raise ConfigError(f"One sum takes {MOST_UPLOADS:,} uploads at most.")
            vectors = [self._read(block, self._context) for block in self.blocks(upload, length)]
            total = [_sum(*pair) for pair in zip(total, vectors, strict=True)] if count else vectors
        if not total:
            raise TooFew("There is no upload to add up.")
        return self._written(total, length)

    def pieces(self, length: int, bits: int) -> int:
        """Return into how many ciphertexts so many numbers go."""
        self.check_bits(bits)
        return self._count(length)

    def combined(self, total: bytes, length: int, bits: int, parts: Sequence[Part]) -> Integers:
        """Return the sum, from parts that cover all pieces; those that opened the same piece must agree."""
        self.check_bits(bits)
        self.blocks(total, length)
        rows: list[Integers | None] = [None] * self._count(length)
        for part in parts:
            for piece, row in zip(part.pieces, self._opened_rows(part, length), strict=True):
                known = rows[piece]
                if known is not None and not np.array_equal(known, row):
                    raise ProtocolError("Two decrypters opened a piece of the sum to different numbers.")
                rows[piece] = row
        opened = [row for row in rows if row is not None]
        if len(opened) < len(rows):
            raise TooFew(f"Nobody opened {len(rows) - len(opened)} of the sum's {len(rows)} pieces.")
        return _checked(np.concatenate(opened), bits)

    def blocks(self, data: bytes, length: int) -> list[bytes]:
        """Take an upload or a sum apart into ciphertexts, unread."""
        count = self._count(length)
        start = _HEAD.size + _SIZE.size * count
        if len(data) < start or data[: _HEAD.size] != self._head(length):
            raise ProtocolError(
                f"This is no encryption of {length} numbers under this key: it was made with other "
                "parameters or another key, or it is damaged."
            )
        sizes = [size for (size,) in _SIZE.iter_unpack(data[_HEAD.size : start])]
        if start + sum(sizes) != len(data) or max(sizes) > _LARGEST_BLOCK:
            raise ProtocolError("An encryption is cut off, or longer than it says.")
        ends = [start, *(start + size for size in accumulate(sizes))]
        return [data[first:last] for first, last in pairwise(ends)]

    def opened(self, block: bytes, bits: int, private: Any) -> Integers:
        """Open one ciphertext with the key, which its holder passes; zeros fill up the last one."""
        slots = np.array(self._read(block, private).decrypt())
        if self.variant == "ckks":
            slots = np.rint(slots)
        if slots[self._room :].any():
            raise ProtocolError(
                "A ciphertext does not open: it was made with another key, or changed. Nothing was decrypted."
            )
        return _checked(slots[: self._room], bits)

    def spans(self, pieces: range, length: int) -> list[int]:
        """Return how many numbers some neighbouring pieces hold, each."""
        count = self._count(length)
        if pieces.step != 1 or not 0 <= pieces.start <= pieces.stop <= count:
            raise ProtocolError(f"The sum has {count} pieces, and others were asked for or opened.")
        return [min(self._room, length - piece * self._room) for piece in pieces]

    def check_bits(self, bits: int) -> None:
        """Refuse sums that this cipher cannot hold."""
        most = MOST_BITS[self.variant]
        if not 1 <= bits <= most:
            raise ConfigError(
                f"Sums under lattice encryption ({self.variant}) have 1 to {most} bits, got {bits}. "
                "Use fewer parties, a coarser step, or ThresholdPaillier."
            )

    def _count(self, length: int) -> int:
        return max(1, -(-length // self._room))

    def _rows(self, values: Integers) -> Integers:
        """Lay numbers out, one row for each ciphertext, with zeros in the slots that check."""
        filled = np.zeros((self._count(len(values)), self._room), np.int64)
        filled.reshape(-1)[: len(values)] = values
        return np.pad(filled, ((0, 0), (0, CHECKS)))

    def _vector(self, row: Integers) -> Any:
        if self.variant == "bfv":
            return _tenseal().bfv_vector(self._context, row.tolist())
        return _tenseal().ckks_vector(self._context, row.astype(np.float64).tolist(), SCALE)

    def _read(self, block: bytes, context: Any) -> Any:
        """Read a ciphertext; SEAL itself checks that it belongs to the parameters."""
        load = _tenseal().bfv_vector_from if self.variant == "bfv" else _tenseal().ckks_vector_from
        try:
            vector = load(context, block)
        except (RuntimeError, ValueError):
            raise ProtocolError("A ciphertext cannot be read: damaged, or of other parameters.") from None
        scale = 1.0 if self.variant == "bfv" else SCALE
        shapes = [(each.size(), each.coeff_modulus_size(), each.scale) for each in vector.ciphertext()]
        if vector.size() != SLOTS[self.variant] or shapes != [(2, len(PRIMES) - 1, scale)]:
            raise ProtocolError("A ciphertext has another shape than fresh ones and their sums have.")
        return vector

    def _written(self, vectors: Sequence[Any], length: int) -> bytes:
        blocks = [vector.serialize() for vector in vectors]
        return b"".join([self._head(length), *(_SIZE.pack(len(block)) for block in blocks), *blocks])

    def _head(self, length: int) -> bytes:
        return _HEAD.pack(_MAGIC, _VERSION, self.identity, length, self._count(length))

    def _opened_rows(self, part: Part, length: int) -> list[Integers]:
        spans = self.spans(part.pieces, length)
        if len(part.data) != _NUMBER_BYTES * sum(spans):
            raise ProtocolError("A decrypter's part has not one number for each of its pieces' numbers.")
        values = np.frombuffer(part.data, "<i8").astype(np.int64)
        return np.split(values, np.cumsum(spans)[:-1]) if spans else []


class LatticeHolder:
    """A decrypter with the key, which is neither printed nor copied."""

    def __init__(self, cipher: LatticeCipher, place: int, private: Any) -> None:
        self.place = place
        self._cipher, self._private = cipher, private

    def part(self, total: bytes, length: int, bits: int, pieces: range) -> bytes:
        """Open some neighbouring pieces of a sum: 8 bytes a number."""
        self._cipher.check_bits(bits)
        spans = self._cipher.spans(pieces, length)
        blocks = self._cipher.blocks(total, length)[pieces.start : pieces.stop]
        rows = [self._cipher.opened(block, bits, self._private) for block in blocks]
        return b"".join(row[:span].astype("<i8").tobytes() for row, span in zip(rows, spans, strict=True))

    def __repr__(self) -> str:
        return f"LatticeHolder(place={self.place})"

    def __reduce__(self) -> NoReturn:
        raise Refused("A decrypter's key is neither copied nor pickled.")


def _fresh_context(variant: Variant) -> Any:
    """Draw a key; SEAL takes its randomness from the operating system."""
    tenseal = _tenseal()
    scheme = tenseal.SCHEME_TYPE.BFV if variant == "bfv" else tenseal.SCHEME_TYPE.CKKS
    # One thread: the parties of a federation are threads themselves.
    return tenseal.context(
        scheme, DEGREE, plain_modulus=PLAIN_PRIME, coeff_mod_bit_sizes=list(PRIMES), n_threads=1
    )


def _tenseal() -> Any:
    try:
        import tenseal
    except ImportError:
        raise ConfigError(
            "Lattice needs TenSEAL. Install it: pip install tenseal (or, in a clone, pip install '.[he]')"
        ) from None
    return tenseal


def _sum(mine: Any, other: Any) -> Any:
    try:
        return mine.add_(other)
    except (RuntimeError, ValueError):
        raise ProtocolError("Two ciphertexts cannot be added: one was not made by encryption.") from None


def _within(values: NDArray[Any], bits: int) -> bool:
    half = 2 ** (bits - 1)
    return values.size == 0 or bool(-half <= values.min() and values.max() < half)


def _checked(values: NDArray[Any], bits: int) -> Integers:
    if not _within(values, bits):
        raise ProtocolError(f"A sum has more than the {bits} bits agreed on. Nothing was decrypted.")
    return values.astype(np.int64)
