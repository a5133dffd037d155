"""Tables of counts that two parties share: each ends with numbers that tell nothing and add up to the counts.

Both know, of the same users in the same order, one cluster each, or none. The first makes a Paillier key of
its own and *offers*, for every user, the encryption of a 1 in the slot of her cluster: every user has one,
also who is nowhere. The second multiplies the ciphertexts of the users of each of its clusters, which adds up
what they hold, adds a mask and sends one ciphertext a cluster back. The first opens them: counts plus masks.
Its share of the table is that, the second's is the masks taken off, both modulo 2^64.

What hides what. From the second, and everybody else, encryption hides the first party's clusters. From the
first, masks and fresh randomness do. A mask is uniform among all plaintexts, 0 to N - 1, and is encrypted
with a uniform N-th power: under a key that was made as it should be, an answer is a uniform ciphertext,
whatever was offered. Nothing is left to statistics there. What chance can spoil is a count: with a chance of
(users + clusters) / 2^95 at most a slot carries into the next, or all of them wrap around N. One user more or
less changes whether that happens with a chance of 2^-95 at most.

Both are taken to keep to the protocol. A party that offers anything else than a single 1 counts users several
times over, and so learns of them from the opened table what its noise was not made to hide; with a key that
is not the product of two large primes it can learn that from the answers alone.

Messages are little-endian: an offer is

    "CFTO", version 4, bits 4, users 8, rows 4, columns 4, then N, then a ciphertext a user

and an answer "CFTA" with the same numbers, then a ciphertext for each of the second party's clusters.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from secrets import randbelow, randbits, token_bytes
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from cofactor.config import plain_numbers, whole
from cofactor.crypto.gmp import Number, gmp
from cofactor.crypto.paillier import PrivateKey, exponent_bits
from cofactor.errors import ConfigError, ProtocolError, Refused

Integers = NDArray[np.int64]

SLOT_BITS = 96
"""Room of a count: 64 bits of a share, and 32 so that masks hardly ever carry into the next slot."""
_HEADER = struct.Struct("<4sIIQII")
_VERSION = 1
_FEWEST_BITS = 256
_WINDOW = 256
"""How many powers stand in a row of a table: exponents are read byte by byte."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What two parties agree on; public."""

    users: int
    rows: int
    """How many clusters the first party has: it makes the key."""
    columns: int
    """How many the second has."""
    bits: int = 3072
    """Size of the modulus N: 2048 bits for 112 bits of security, 3072 for 128."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(users=self.users, rows=self.rows, columns=self.columns, bits=self.bits)
        if self.bits < _FEWEST_BITS or self.bits % 16:
            raise ConfigError(f"bits must be a multiple of 16 from {_FEWEST_BITS} on, got {self.bits}.")
        if self.rows > most_slots(self.bits):
            raise ConfigError(
                f"a key of {self.bits:,} bits has room for {most_slots(self.bits)} clusters, and there are "
                f"{self.rows}. Find fewer local clusters, or use a key of "
                f"{64 * -(-(self.rows + 2) * SLOT_BITS // 64):,} bits."
            )

    @property
    def width(self) -> int:
        """Bytes of a ciphertext, a number below N^2."""
        return self.bits // 4

    @property
    def offer_bytes(self) -> int:
        """Size of an offer."""
        return _HEADER.size + self.bits // 8 + self.users * self.width

    @property
    def answer_bytes(self) -> int:
        """Size of an answer."""
        return _HEADER.size + self.columns * self.width

    def header(self, magic: bytes) -> bytes:
        """Return the first bytes of a message."""
        return _HEADER.pack(magic, _VERSION, self.bits, self.users, self.rows, self.columns)


def most_slots(bits: int) -> int:
    """Return how many counts stand below a modulus of so many bits, with one slot's room above them."""
    return (bits - 1) // SLOT_BITS - 1


class Offering:
    """The first party's end: it holds the key, and offers once."""

    def __init__(self, layout: Layout) -> None:
        """Draw a key."""
        self._layout = layout
        first, second = _prime_pair(layout.bits)
        self._modulus = first * second
        self._key = PrivateKey(first, second)
        self._encryption = _OwnEncryption(first, second, exponent_bits(layout.bits, "short"))

    def __repr__(self) -> str:
        return f"Offering({self._layout})"

    def __reduce__(self) -> NoReturn:
        raise Refused("A private key is neither copied nor pickled.")

    def offered(self, cells: Integers) -> bytes:
        """Return the encrypted clusters of all users, in their order; a negative number is no cluster."""
        layout = self._layout
        cells = _checked(cells, layout.users, layout.rows)
        plaintexts = [gmp().mpz(1) << SLOT_BITS * row for row in range(layout.rows)]
        # The last of them, at -1, is that of users who are nowhere.
        ciphertexts = self._encryption.encrypted([*plaintexts, gmp().mpz(0)], cells.tolist())
        modulus = _joined([self._modulus], layout.bits // 8)
        return layout.header(b"CFTO") + modulus + _joined(ciphertexts, layout.width)

    def share(self, answer: bytes) -> Integers:
        """Open an answer: the first party's share of the table, rows by columns."""
        layout, square = self._layout, self._modulus**2
        numbers = _numbers(_body(answer, layout, b"CFTA", layout.answer_bytes), layout.width, square)
        _check_units(numbers, self._modulus)
        columns = [_slots(self._key.decrypted(number), layout.rows) for number in numbers]
        return np.stack(columns, axis=1).view(np.int64)


def answered(offer: bytes, layout: Layout, cells: Integers) -> tuple[bytes, Integers]:
    """Return the second party's answer to an offer, and its share of the table: the masks, taken off.

    An offer serves one answer of each party: its share belongs to that answer.
    """
    cells = _checked(cells, layout.users, layout.columns)
    body = _body(offer, layout, b"CFTO", layout.offer_bytes)
    modulus = _modulus(bytes(body[: layout.bits // 8]), layout.bits)
    square = modulus**2
    offered = _numbers(body[layout.bits // 8 :], layout.width, square)
    _check_units(offered, modulus)
    products = _products(offered, cells.tolist(), layout.columns, square)
    masks = [gmp().mpz(randbelow(int(modulus))) for _ in products]
    hidden = [
        product * _freshly_encrypted(mask, modulus) % square
        for product, mask in zip(products, masks, strict=True)
    ]
    taken_off = np.stack([_slots(mask, layout.rows) for mask in masks], axis=1)
    return layout.header(b"CFTA") + _joined(hidden, layout.width), (-taken_off).view(np.int64)


class _OwnEncryption:
    """Encryption by who knows the primes: modulo p^2 and q^2, which takes half as long as modulo N^2.

    A plaintext is hidden by h^a, where h is the N-th power of a random number, which nobody else learns, and
    a is drawn anew. Powers of h stand in tables.
    """

    def __init__(self, first: Number, second: Number, exponent_bits: int) -> None:
        self._modulus, self._squares = first * second, (first**2, second**2)
        self._lift = gmp().invert(*self._squares)
        self._digits = exponent_bits // 8
        base = gmp().mpz(1 + randbelow(int(self._modulus) - 1))
        self._tables = [self._powers(base, square) for square in self._squares]

    def encrypted(self, plaintexts: Sequence[Number], chosen: Iterable[int]) -> list[Number]:
        """Encrypt the chosen ones of some plaintexts, each under fresh randomness."""
        p2, q2 = self._squares
        rows = list(zip(*self._tables, strict=True))
        starts = [((1 + m * self._modulus) % p2, (1 + m * self._modulus) % q2) for m in plaintexts]
        ciphertexts = []
        for choice in chosen:
            low, high = starts[choice]
            for (low_row, high_row), digit in zip(rows, token_bytes(self._digits), strict=True):
                low = low * low_row[digit] % p2
                high = high * high_row[digit] % q2
            # By the Chinese remainder theorem, modulo N^2.
            ciphertexts.append(low + (high - low) * self._lift % q2 * p2)
        return ciphertexts

    def _powers(self, base: Number, square: Number) -> list[list[Number]]:
        """Return h^(digit * 256^place) modulo a prime's square, by place and digit."""
        step, table = gmp().powmod(base, self._modulus, square), []
        for _ in range(self._digits):
            row = [gmp().mpz(1)]
            while len(row) < _WINDOW:
                row.append(row[-1] * step % square)
            table.append(row)
            step = row[-1] * step % square
        return table


def _prime_pair(bits: int) -> tuple[Number, Number]:
    """Return two different primes whose product has exactly `bits` bits.

    Nobody shares this key, so that they need not be safe primes. Each is the first one above a random start,
    the two highest bits of which are set.
    """
    half = bits // 2
    while True:
        first, second = (gmp().next_prime(gmp().mpz(randbits(half) | 3 << half - 2)) for _ in range(2))
        if first != second and (first * second).bit_length() == bits:
            return first, second


def _products(offered: Sequence[Number], cells: Sequence[int], columns: int, square: Number) -> list[Number]:
    """Multiply the ciphertexts of the users of each cluster."""
    products = [gmp().mpz(1)] * columns
    for ciphertext, cell in zip(offered, cells, strict=True):
        if cell >= 0:
            products[cell] = products[cell] * ciphertext % square
    return products


def _freshly_encrypted(plaintext: Number, modulus: Number) -> Number:
    """Encrypt with a uniform N-th power: no number that the owner of the key has chosen is relied on."""
    chance = gmp().mpz(0)
    while gmp().gcd(chance, modulus) != 1:
        chance = gmp().mpz(randbelow(int(modulus)))
    square = modulus**2
    return (1 + plaintext * modulus) * gmp().powmod(chance, modulus, square) % square


def _slots(plaintext: Number, slots: int) -> NDArray[np.uint64]:
    """Return what stands in the slots of a plaintext, modulo 2^64."""
    bytes_each = SLOT_BITS // 8
    low = plaintext % (1 << SLOT_BITS * slots)
    rows = np.frombuffer(low.to_bytes(bytes_each * slots, "little"), np.uint8).reshape(slots, bytes_each)
    return rows[:, :8].copy().view("<u8")[:, 0].astype(np.uint64)


def _checked(cells: Integers, users: int, clusters: int) -> Integers:
    """Return every user's cluster, -1 for none; refuse others than were agreed on."""
    if cells.shape != (users,) or cells.dtype.kind != "i" or np.any(cells >= clusters):
        raise ConfigError(f"clusters of {users:,} users are whole numbers below {clusters}, one each.")
    return np.maximum(cells, -1)


def _body(message: bytes, layout: Layout, magic: bytes, size: int) -> memoryview:
    """Return what follows the first bytes of a message; refuse another kind, layout or length."""
    header = layout.header(magic)
    if len(message) != size or not message.startswith(header):
        raise ProtocolError(
            f"A message about a table of {layout.rows} by {layout.columns} clusters of {layout.users:,} "
            f"users under {layout.bits:,} bits is of another kind, layout or length. Do both have the same "
            "settings?"
        )
    return memoryview(message)[len(header) :]


def _modulus(data: bytes, bits: int) -> Number:
    modulus = gmp().mpz.from_bytes(data, "little")
    if modulus.bit_length() != bits or modulus % 2 == 0 or gmp().is_prime(modulus) or gmp().is_power(modulus):
        raise ProtocolError(f"A key is no product of two large primes, of {bits:,} bits.")
    return modulus


def _numbers(body: memoryview, width: int, square: Number) -> list[Number]:
    number = gmp().mpz.from_bytes
    numbers = [number(body[start : start + width], "little") for start in range(0, len(body), width)]
    if max(numbers) >= square:
        raise ProtocolError("A message holds a number that is too large for its key.")
    return numbers


def _check_units(numbers: Iterable[Number], modulus: Number) -> None:
    """Refuse numbers that share a factor with N: no ciphertext does."""
    product = gmp().mpz(1)
    for number in numbers:
        product = product * number % modulus
    if gmp().gcd(product, modulus) != 1:
        raise ProtocolError("A ciphertext shares a factor with the key: nobody encrypted anything to it.")


def _joined(numbers: Sequence[Number], width: int) -> bytes:
    return b"".join([number.to_bytes(width, "little") for number in numbers])
