"""Many small whole numbers in one large one, so that adding the large ones adds all the small ones.

A plaintext is M = sum over k of v_k 2^(bits k) modulo N, with signs. Adding plaintexts adds their fields, and
M tells the fields again as long as each SUM of fields lies in [-2^(bits-1), 2^(bits-1)): the fields of single
parties need no room beyond that. Whether sums do is the business of whoever chose `bits`: a sum that does not
fit carries into its neighbour, unseen unless it stands in the highest field.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cofactor.config import plain_numbers, whole
from cofactor.crypto.ciphers import Integers
from cofactor.crypto.ring import Ring
from cofactor.errors import ConfigError, ProtocolError

SPARE_BITS = 64
"""Bits of each plaintext that stay empty: a random one passes for packed numbers in one of 2^64 cases."""


@dataclass(frozen=True)
class Packing:
    """How numbers stand in plaintexts."""

    bits: int
    """Size of a field, sign included, from 1 to 64."""
    fields: int
    """How many numbers stand in a plaintext."""
    modulus: int
    """Plaintexts are counted modulo this number, N."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(bits=self.bits, fields=self.fields)
        if self.bits > 64:
            raise ConfigError(f"bits must be at most 64, got {self.bits}.")
        if self.fields * self.bits + SPARE_BITS >= self.modulus.bit_length():
            raise ConfigError(
                f"{self.fields} numbers of {self.bits} bits leave fewer than {SPARE_BITS} bits free below a "
                f"modulus of {self.modulus.bit_length()} bits."
            )

    @classmethod
    def densest(cls, bits: int, modulus: int) -> "Packing":
        """Put as many numbers into a plaintext as the modulus has room for."""
        whole(bits=bits)
        return cls(bits, (modulus.bit_length() - 1 - SPARE_BITS) // bits, modulus)

    def pieces(self, length: int) -> int:
        """Return how many plaintexts hold so many numbers."""
        whole(length=length)
        return -(-length // self.fields)

    def packed(self, values: Integers) -> list[int]:
        """Return the plaintexts, each in [0, N), that hold the numbers."""
        values = self._fitting(values)
        ring, words = Ring(self.bits), values.astype(np.uint64) + np.uint64(self._half)
        rows = (words[start : start + self.fields] for start in range(0, len(words), self.fields))
        # The last plaintext may have fewer fields: what is taken off is as long as what was put in.
        return [
            (int.from_bytes(ring.packed(row), "little") - self._offset(len(row))) % self.modulus
            for row in rows
        ]

    def unpacked(self, plaintexts: Sequence[int], length: int) -> Integers:
        """Return the numbers; ProtocolError if a plaintext holds anything else."""
        if len(plaintexts) != self.pieces(length):
            raise ProtocolError(
                f"{length} numbers stand in {self.pieces(length)} plaintexts, got {len(plaintexts)}."
            )
        ring, values = Ring(self.bits), np.empty(length, np.int64)
        for piece, plaintext in enumerate(plaintexts):
            row = values[piece * self.fields : (piece + 1) * self.fields]
            data = self.raised(plaintext, len(row)).to_bytes(-(-self.bits * len(row) // 8), "little")
            row[:] = (ring.unpacked(data, len(row)).astype(np.uint64) - np.uint64(self._half)).view(np.int64)
        return values

    def count(self, piece: int, length: int) -> int:
        """Return how many of so many numbers stand in a piece: the last may hold fewer."""
        return min(self.fields, length - piece * self.fields)

    def raised(self, plaintext: int, count: int) -> int:
        """Return a plaintext of `count` fields, none of which is negative any more; refuse any other."""
        raised = (int(plaintext) + self._offset(count)) % self.modulus
        if raised.bit_length() > self.bits * count:
            raise ProtocolError(
                "A decrypted number holds no packed sums: it was encrypted with another key, the ciphertext "
                "or a part was changed, or a sum has more bits than were agreed on. Nothing was opened."
            )
        return raised

    @property
    def _half(self) -> int:
        return 1 << self.bits - 1

    def _offset(self, count: int) -> int:
        """Return the plaintext whose `count` fields all hold 2^(bits-1)."""
        return self._half * (((1 << self.bits * count) - 1) // ((1 << self.bits) - 1))

    def _fitting(self, values: Integers) -> Integers:
        if values.dtype != np.int64 or values.ndim != 1 or not len(values):
            raise ConfigError(
                "Encrypted sums add rows of one or more whole numbers (int64), "
                f"got {values.dtype} of shape {values.shape}."
            )
        if values.min() < -self._half or values.max() > self._half - 1:
            raise ConfigError(
                f"A number does not fit into the {self.bits} bits, sign included, that the sum was agreed to "
                "have. Nothing was encrypted. Use more bits, or a coarser step."
            )
        return values
