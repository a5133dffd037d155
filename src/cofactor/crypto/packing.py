"""Many small whole numbers in one large one, so that adding the large ones adds all the small ones.

A plaintext is M = sum over k of v_k 2^(bits k) modulo N, with signs, and above all fields a check: the sum
of w_k v_k with fixed weights w_k. Adding plaintexts adds fields and checks, and M tells the fields again as
long as each SUM of fields lies in [-2^(bits-1), 2^(bits-1)): the fields of single parties need no room beyond
that. A sum that does not fit carries into its neighbour, and the check shows it: with e_k carried out of
field k it is off by the sum of e_k (w_(k+1) - 2^bits w_k), which is not 0 for one field, and for several only
if they happen to cancel. What was encrypted with another key passes the check in one of 2^64 cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cofactor.config import plain_numbers, whole
from cofactor.crypto.ciphers import Integers
from cofactor.crypto.ring import Ring
from cofactor.errors import ConfigError, ProtocolError

CHECK_BITS = 64
"""Size of a check, at least."""
_PRIME, _STEP = 1021, 10
"""Weights are powers of 10 modulo 1021: none is the one before times 2^bits, and 1020 are all different."""
_WEIGHT_BITS = 10


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
        if self.fields * self.bits + self.check_bits >= self.modulus.bit_length():
            raise ConfigError(
                f"{self.fields} numbers of {self.bits} bits leave fewer than {self.check_bits} bits for a "
                f"check below a modulus of {self.modulus.bit_length()} bits."
            )

    @classmethod
    def densest(cls, bits: int, modulus: int) -> "Packing":
        """Put as many numbers into a plaintext as the modulus has room for."""
        whole(bits=bits)
        room = modulus.bit_length() - 1
        most = (room - CHECK_BITS) // bits
        return cls(bits, (room - _check_bits(bits, most)) // bits, modulus)

    @property
    def check_bits(self) -> int:
        """Size of a check, sign included: room for the weighed sum of all fields."""
        return _check_bits(self.bits, self.fields)

    def pieces(self, length: int) -> int:
        """Return how many plaintexts hold so many numbers."""
        whole(length=length)
        return -(-length // self.fields)

    def packed(self, values: Integers) -> list[int]:
        """Return the plaintexts, each in [0, N), that hold the numbers."""
        values = self._fitting(values)
        rows = (values[start : start + self.fields] for start in range(0, len(values), self.fields))
        return [self._plaintext(row) for row in rows]

    def unpacked(self, plaintexts: Sequence[int], length: int) -> Integers:
        """Return the numbers; ProtocolError if a plaintext holds anything else."""
        if len(plaintexts) != self.pieces(length):
            raise ProtocolError(
                f"{length} numbers stand in {self.pieces(length)} plaintexts, got {len(plaintexts)}."
            )
        rows = [self.opened(each, self.count(piece, length)) for piece, each in enumerate(plaintexts)]
        return np.concatenate(rows)

    def count(self, piece: int, length: int) -> int:
        """Return how many of so many numbers stand in a piece: the last may hold fewer."""
        return min(self.fields, length - piece * self.fields)

    def opened(self, plaintext: int, count: int) -> Integers:
        """Return the numbers of a plaintext of `count` fields; refuse one whose check does not hold."""
        top, ring = self.bits * count, Ring(self.bits)
        middle = 1 << top + self.check_bits - 1
        # Raised by half of every field's range, and of the check's, so that nothing is negative any more.
        raised = (int(plaintext) + self._offset(count) + middle) % self.modulus
        data = (raised % (1 << top)).to_bytes(-(-top // 8), "little")
        row = (ring.unpacked(data, count).astype(np.uint64) - np.uint64(self._half)).view(np.int64)
        if raised >= 2 * middle or (raised - middle) >> top != _weighed(row):
            raise ProtocolError(
                "A decrypted number holds no packed sums: it was encrypted with another key, the ciphertext "
                "or a part was changed, or a sum has more bits than were agreed on. Nothing was opened."
            )
        return row

    def _plaintext(self, row: Integers) -> int:
        words = row.astype(np.uint64) + np.uint64(self._half)
        fields = int.from_bytes(Ring(self.bits).packed(words), "little") - self._offset(len(row))
        return (fields + (_weighed(row) << self.bits * len(row))) % self.modulus

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


def _check_bits(bits: int, fields: int) -> int:
    return max(CHECK_BITS, bits + _WEIGHT_BITS + fields.bit_length())


def _weighed(row: Integers) -> int:
    """Return the sum of w_k v_k, exactly: in two halves, neither of which overflows 63 bits."""
    weights, high, low = _weights(len(row)), row >> 32, row & 0xFFFFFFFF
    return (int(high @ weights) << 32) + int(low @ weights)


@lru_cache(8)
def _weights(count: int) -> Integers:
    return np.array([pow(_STEP, k + 1, _PRIME) for k in range(count)], np.int64)
