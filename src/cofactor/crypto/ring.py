"""Whole numbers modulo 2^bits: what is masked, summed and sent.

A mask is the AES-256-CTR stream of a seed, a secret of 32 bytes. The nonce is zero, so that a seed may serve
for one mask only: two masks of the same seed are equal, and the difference of what they hide lies open.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.config import whole
from cofactor.errors import ConfigError, ProtocolError

Words = NDArray[np.unsignedinteger[Any]]
"""Numbers of a ring, in words of 32 bits if they fit, else of 64. What stands above `bits` means nothing."""

SEED_BYTES = 32
_BLOCK = 1 << 16
"""Bytes of a stream made at a time: they are added while they are still in the nearest cache."""
_NOTHING = bytes(_BLOCK)


@dataclass(frozen=True)
class Ring:
    """Arithmetic modulo 2^bits."""

    bits: int
    """Size of each number on the wire, from 1 to 64."""

    def __post_init__(self) -> None:
        whole(bits=self.bits)
        if self.bits > 64:
            raise ConfigError(f"bits must be at most 64, got {self.bits}.")

    @classmethod
    def holding(cls, largest: int) -> "Ring":
        """Return the smallest ring in which every sum of absolute value `largest` or less comes out right."""
        if not 0 <= largest < 2**63:
            raise ConfigError(
                f"Sums of up to {largest.bit_length()} bits and a sign do not fit into 64 bits. "
                "Use fewer parties or a coarser step."
            )
        return cls(largest.bit_length() + 1)

    @property
    def word(self) -> np.dtype[np.unsignedinteger[Any]]:
        """The type of the words."""
        return np.dtype(np.uint32 if self.bits <= 32 else np.uint64)

    def reduced(self, values: NDArray[np.int64]) -> Words:
        """Return the values modulo 2^bits, in words of their own."""
        if values.dtype != np.int64:
            raise ConfigError(f"A secure sum adds whole numbers (int64), got {values.dtype}.")
        return (values.astype(np.uint64) & np.uint64(2**self.bits - 1)).astype(self.word)

    def mask(self, words: Words, seed: bytes, sign: int) -> None:
        """Add (sign 1) or take off (sign -1) the mask of a seed, in place. A seed serves one mask only."""
        if len(seed) != SEED_BYTES:
            raise ProtocolError(f"A mask needs a secret of {SEED_BYTES} bytes.")
        if sign not in (1, -1) or words.ndim != 1 or words.dtype != self.word:
            raise ConfigError(f"A mask is added (1) to or taken off (-1) a row of {self.word} words.")
        combine = np.add if sign == 1 else np.subtract
        stream = Cipher(AES256(seed), CTR(bytes(16))).encryptor()
        block = bytearray(_BLOCK)
        masks = np.frombuffer(block, self.word.newbyteorder("<"))
        for start in range(0, len(words), len(masks)):
            part = words[start : start + len(masks)]
            stream.update_into(_NOTHING[: part.nbytes], block)
            combine(part, masks[: len(part)], out=part)

    def signed(self, words: Words) -> NDArray[np.int64]:
        """Return each number's representative in [-2^(bits-1), 2^(bits-1))."""
        unused = np.uint64(64 - self.bits)
        return (words.astype(np.uint64) << unused).view(np.int64) >> unused.astype(np.int64)

    def packed(self, words: Words) -> bytes:
        """Return the numbers as they are sent: `bits` bits each, the lowest first; zeros fill up the byte."""
        row = np.zeros(-(-len(words) * self.bits // 64), np.uint64)
        _pack(words.astype(np.uint64), row, self.bits)
        return row.astype("<u8").tobytes()[: self._bytes(len(words))]

    def unpacked(self, data: bytes, count: int) -> Words:
        """Read what `packed` made of `count` numbers."""
        if len(data) != self._bytes(count):
            raise ProtocolError(f"{count} numbers take {self._bytes(count)} bytes, got {len(data)}.")
        unused = 8 * len(data) - count * self.bits
        if unused and data[-1] >> (8 - unused):
            raise ProtocolError("The bits after the last number must be zero.")
        row = np.frombuffer(data + bytes(-len(data) % 8), "<u8").astype(np.uint64)
        words = np.empty(count, np.uint64)
        _unpack(row, words, self.bits)
        return words.astype(self.word)

    def _bytes(self, count: int) -> int:
        return -(-count * self.bits // 8)


@kernel
def _pack(words: NDArray[np.uint64], row: NDArray[np.uint64], bits: int) -> None:
    """Write the low `bits` of each word one after the other."""
    ones = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - bits)
    for i in range(len(words)):
        number, (to, shift) = words[i] & ones, divmod(i * bits, 64)
        row[to] |= number << np.uint64(shift)
        if shift + bits > 64:
            row[to + 1] = number >> np.uint64(64 - shift)


@kernel
def _unpack(row: NDArray[np.uint64], words: NDArray[np.uint64], bits: int) -> None:
    """Read numbers of `bits` bits that stand one after the other."""
    ones = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - bits)
    for i in range(len(words)):
        start, shift = divmod(i * bits, 64)
        number = row[start] >> np.uint64(shift)
        if shift + bits > 64:
            number |= row[start + 1] << np.uint64(64 - shift)
        words[i] = number & ones
