"""Sums of whole numbers under Paillier's encryption: uploads, their sum, and the parts that open it.

Messages are little-endian. An upload, and likewise a sum, is

    "CFPU", version 4, identity 32, bits 4, length 8, pieces 8, then that many ciphertexts of one width

and a holder's part in opening pieces `start` to `stop` of a sum is

    "CFPP", version 4, identity 32, SHA-256 of the sum 32, place 4, start 8, stop 8, then one number a piece

Reading raises ProtocolError, whatever the bytes are.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NoReturn, Protocol

from cofactor.crypto.ciphers import Integers, Part
from cofactor.crypto.gmp import Number, gmp
from cofactor.crypto.packing import Packing
from cofactor.crypto.paillier import PublicKey
from cofactor.errors import ProtocolError, Refused, TooFew

_UPLOAD = struct.Struct("<4sI32sIQQ")
_PART = struct.Struct("<4sI32s32sIQQ")
_VERSION = 1


class Way(Protocol):
    """A way to open: how what holders tell of a ciphertext becomes its plaintext."""

    @property
    def name(self) -> str:
        """Which way of opening it is; keys for one do not serve another."""

    @property
    def quorum(self) -> int:
        """How many holders must tell."""

    @property
    def decrypters(self) -> int:
        """How many holders there are."""

    @property
    def modulus(self) -> Number:
        """What a holder tells is a number below this one."""

    def opened(self, ciphertext: Number, told: Mapping[int, Number]) -> Number:
        """Return the plaintext from what `quorum` holders or more told, by place."""


class PaillierSums:
    """The cipher that all Paillier schemes share; they differ in how a sum is opened."""

    def __init__(self, key: PublicKey, way: Way, *, packed: bool = True) -> None:
        self._key = key
        self._way = way
        self._packed = packed
        self._identity = self._hashed()

    def __repr__(self) -> str:
        bits = self._key.modulus.bit_length()
        return f"PaillierSums({self._way.name}, {bits} bits, {self.quorum} of {self._way.decrypters})"

    def __reduce__(self) -> NoReturn:
        raise Refused("A cipher holds a public key and its tables, and is not pickled.")

    @property
    def identity(self) -> bytes:
        """32 bytes that name the key, who can open, and how numbers are laid out."""
        return self._identity

    @property
    def quorum(self) -> int:
        """How many holders must open each piece."""
        return self._way.quorum

    def pieces(self, length: int, bits: int) -> int:
        """Return into how many ciphertexts so many numbers go."""
        return self.packing(bits).pieces(length)

    def packing(self, bits: int) -> Packing:
        """Return how numbers stand in plaintexts."""
        modulus = int(self._key.modulus)
        return Packing.densest(bits, modulus) if self._packed else Packing(bits, 1, modulus)

    def encrypted(self, values: Integers, bits: int) -> bytes:
        """Return one party's numbers under fresh randomness; refuse numbers that have more than `bits`."""
        return self._written(self._key.encrypted(self.packing(bits).packed(values)), len(values), bits)

    def added(self, uploads: Iterable[bytes], length: int, bits: int) -> bytes:
        """Return the encryption of the sum, looking at one upload at a time.

        Ciphertexts that share a factor with the key are found in the product, which does not tell whose they
        are: `added` of one upload does.
        """
        square, total = self._key.square, None
        for upload in uploads:
            numbers = self._numbers(upload, length, bits)
            if total is None:
                total = numbers
            else:
                total = [a * b % square for a, b in zip(total, numbers, strict=True)]
        if total is None:
            raise TooFew("There is no upload to add up. Nothing is opened.")
        self._key.check_units(total)
        return self._written(total, length, bits)

    def combined(self, total: bytes, length: int, bits: int, parts: Sequence[Part]) -> Integers:
        """Return the sum, from the parts of at least `quorum` holders for each piece."""
        ciphertexts = self.ciphertexts(total, length, bits, range(self.pieces(length, bits)))
        told = self._told(total, parts, len(ciphertexts))
        fewest = min(len(by_place) for by_place in told)
        if fewest < self.quorum:
            raise TooFew(
                f"A piece of the sum opens with the parts of {self.quorum} decrypters, got {fewest}. "
                "Nothing is opened."
            )
        plaintexts = [
            self._way.opened(ciphertext, by_place)
            for ciphertext, by_place in zip(ciphertexts, told, strict=True)
        ]
        return self.packing(bits).unpacked(plaintexts, length)

    def ciphertexts(self, total: bytes, length: int, bits: int, pieces: range) -> list[Number]:
        """Read some pieces of a sum; all of it must be as it should."""
        numbers = self._numbers(total, length, bits)
        _check_pieces(pieces, len(numbers))
        self._key.check_units(numbers)
        return numbers[pieces.start : pieces.stop]

    def part(self, total: bytes, place: int, pieces: range, numbers: Sequence[Number]) -> bytes:
        """Write down what a holder tells of some pieces of a sum."""
        return self._part_header(total, place, pieces) + _joined(numbers, self._part_width)

    def _told(self, total: bytes, parts: Sequence[Part], pieces: int) -> list[dict[int, Number]]:
        """Return what was told of each piece, by place."""
        told: list[dict[int, Number]] = [{} for _ in range(pieces)]
        for part in parts:
            _check_pieces(part.pieces, pieces)
            for piece, number in zip(part.pieces, self._part_numbers(total, part), strict=True):
                if part.place in told[piece]:
                    raise ProtocolError(f"The decrypter at place {part.place} opened a piece twice.")
                told[piece][part.place] = number
        return told

    def _part_numbers(self, total: bytes, part: Part) -> list[Number]:
        if not 0 <= part.place < self._way.decrypters:
            raise ProtocolError(f"There is no decrypter at place {part.place}.")
        header = self._part_header(total, part.place, part.pieces)
        if not part.data.startswith(header):
            raise ProtocolError(
                f"The part of the decrypter at place {part.place} is of another key, sum, place or piece."
            )
        body = memoryview(part.data)[len(header) :]
        return _split(body, self._part_width, len(part.pieces), self._way.modulus)

    def _part_header(self, total: bytes, place: int, pieces: range) -> bytes:
        digest = sha256(total).digest()
        return _PART.pack(b"CFPP", _VERSION, self._identity, digest, place, pieces.start, pieces.stop)

    @property
    def _part_width(self) -> int:
        return -(-int(self._way.modulus).bit_length() // 8)

    def _written(self, numbers: Sequence[Number], length: int, bits: int) -> bytes:
        return self._upload_header(length, bits) + _joined(numbers, self._key.width)

    def _numbers(self, upload: bytes, length: int, bits: int) -> list[Number]:
        """Read an upload's ciphertexts; whether they share a factor with the key is not looked at."""
        header = self._upload_header(length, bits)
        if not upload.startswith(header):
            raise ProtocolError(self._what_differs(upload, length, bits))
        body = memoryview(upload)[len(header) :]
        return _split(body, self._key.width, self.pieces(length, bits), self._key.square)

    def _upload_header(self, length: int, bits: int) -> bytes:
        return _UPLOAD.pack(b"CFPU", _VERSION, self._identity, bits, length, self.pieces(length, bits))

    def _what_differs(self, upload: bytes, length: int, bits: int) -> str:
        if len(upload) < _UPLOAD.size:
            return "An encrypted upload ends before its header does."
        magic, version, identity, *layout = _UPLOAD.unpack_from(upload)
        if (magic, version) != (b"CFPU", _VERSION):
            return "An encrypted upload does not start as one of this version does."
        if identity != self._identity:
            return "An upload was encrypted with another key or other parameters. Nothing was added."
        return (
            f"An upload holds {layout[1]} numbers of {layout[0]} bits in {layout[2]} pieces; "
            f"{length} numbers of {bits} bits in {self.pieces(length, bits)} are added up."
        )

    def _hashed(self) -> bytes:
        key, way = self._key, self._way
        numbers = (key.modulus, key.base, key.exponent_bits, way.quorum, way.decrypters, self._packed)
        words = ("cofactor: Paillier sums", way.name, *(str(int(number)) for number in numbers))
        return sha256("\n".join(words).encode()).digest()


def _check_pieces(pieces: range, count: int) -> None:
    if pieces.step != 1 or not 0 <= pieces.start < pieces.stop <= count:
        raise ProtocolError(f"{pieces} is no run of the {count} pieces of this sum.")


def _joined(numbers: Sequence[Number], width: int) -> bytes:
    return b"".join([number.to_bytes(width, "little") for number in numbers])


def _split(body: memoryview, width: int, count: int, modulus: Number) -> list[Number]:
    """Read numbers of [0, modulus) that stand one after the other."""
    if len(body) != width * count:
        raise ProtocolError(f"{count} numbers of {width} bytes take {width * count} bytes, got {len(body)}.")
    number = gmp().mpz.from_bytes
    numbers = [number(body[start : start + width], "little") for start in range(0, len(body), width)]
    if max(numbers) >= modulus:
        raise ProtocolError("A message holds a number that is too large for its key.")
    return numbers
