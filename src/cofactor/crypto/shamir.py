"""Shamir's secret sharing: any `threshold` holders of shares know the secret, fewer know nothing at all.

A secret of 32 bytes is the value at zero of a random polynomial of degree threshold - 1 modulo a prime, and
holder h has its value at h + 1. Python's whole numbers are not constant-time: whoever can time the machine
that splits or combines very finely may learn about the secrets. The protocol assumes that nobody can.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from secrets import randbits

import numpy as np

from cofactor.errors import ConfigError, ProtocolError

PRIME = 2**256 + 297
"""The smallest prime above all secrets."""
SECRET_BYTES = 32
SHARE_BYTES = 33

_LIMB_BYTES = 48
_LIMB = 8 * _LIMB_BYTES
"""Bits from one number of a row to the next. So many random bits are uniform modulo PRIME, but for 2^-127."""
_FOLDED = 258
"""Bits of a number that was folded."""
_MOST_HOLDERS = 2**31


def split(secrets: Sequence[bytes], *, threshold: int, holders: int) -> list[list[bytes]]:
    """Return each holder's share of each secret: [holder][secret]. A secret has 32 bytes."""
    _check(secrets, threshold, holders)
    row = _Row(len(secrets))
    constant = row.of([int.from_bytes(secret, "big") for secret in secrets])
    coefficients = [*(row.random() for _ in range(threshold - 1)), constant]
    return [row.shares(row.value(coefficients, holder + 1)) for holder in range(holders)]


@dataclass(frozen=True)
class Weights:
    """How the shares of some holders add up to a secret; the same weights serve all secrets they share."""

    weights: tuple[int, ...]
    """Lagrange's weights at zero, one for each holder."""

    @classmethod
    def of(cls, places: Sequence[int]) -> "Weights":
        """Weigh the shares of the holders at these places, counted from 0: exactly `threshold` of them."""
        if not places or not all(0 <= place < _MOST_HOLDERS for place in places):
            raise ProtocolError("Shares are combined from one or more holders, whose places count from 0.")
        if len(set(places)) != len(places):
            raise ProtocolError("Two shares are said to come from the same holder.")
        points = [place + 1 for place in places]
        above = math.prod(points) % PRIME
        return cls(tuple(above * inverse % PRIME for inverse in _inverses(_denominators(points))))

    def combine(self, shares: Sequence[bytes]) -> bytes:
        """Return the secret; the shares come in the order of the places."""
        if len(shares) != len(self.weights):
            raise ProtocolError(f"The secret opens with {len(self.weights)} shares, got {len(shares)}.")
        products = (weight * _number(share) for weight, share in zip(self.weights, shares, strict=True))
        secret = sum(products) % PRIME
        if secret >= 2 ** (8 * SECRET_BYTES):
            raise ProtocolError("The shares do not belong together: they open to no secret.")
        return secret.to_bytes(SECRET_BYTES, "big")


def _check(secrets: Sequence[bytes], threshold: int, holders: int) -> None:
    if not 1 <= threshold <= holders < _MOST_HOLDERS:
        raise ConfigError(f"threshold must lie between 1 and the {holders} holders, got {threshold}.")
    if any(len(secret) != SECRET_BYTES for secret in secrets):
        raise ConfigError(f"A secret that is shared must have {SECRET_BYTES} bytes.")


class _Row:
    """The numbers of all secrets side by side in one whole number, so that one product serves them all."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._primes = self.of([PRIME] * length)
        self._low = self.of([2**256 - 1] * length)
        self._high = self.of([2 ** (_LIMB - 256) - 1] * length)

    def of(self, numbers: Sequence[int]) -> int:
        """Put numbers below 2^384 side by side."""
        data = [number.to_bytes(_LIMB_BYTES, "little") for number in numbers]
        return int.from_bytes(b"".join(data), "little")

    def random(self) -> int:
        """Return numbers that are uniform modulo PRIME, folded."""
        return self.folded(randbits(_LIMB * self._length))

    def folded(self, row: int) -> int:
        """Bring each number below 2^258. It stays the same modulo PRIME, where 2^256 is -297."""
        return (row & self._low) + self._primes - 297 * (row >> 256 & self._high)

    def value(self, coefficients: Sequence[int], x: int) -> int:
        """Evaluate at x by Horner's rule, the highest coefficient first."""
        # k steps multiply a folded number by at most (x + 1)^k: fold before it grows into its neighbour.
        steps, value = (_LIMB - _FOLDED) // x.bit_length(), 0
        for done, coefficient in enumerate(coefficients, start=1):
            value = value * x + coefficient
            if done % steps == 0:
                value = self.folded(value)
        return value

    def shares(self, row: int) -> list[bytes]:
        """Take the numbers apart."""
        data = row.to_bytes(_LIMB_BYTES * self._length, "little")
        parts = (data[start : start + _LIMB_BYTES] for start in range(0, len(data), _LIMB_BYTES))
        return [(int.from_bytes(part, "little") % PRIME).to_bytes(SHARE_BYTES, "big") for part in parts]


def _denominators(points: Sequence[int]) -> list[int]:
    """Return x * (product of y - x over all other points y) for each point x."""
    ends = np.array(points, np.int64)
    factors = ends - ends[:, None]
    np.fill_diagonal(factors, ends)
    # So many factors at a time still fit into 63 bits.
    together = np.arange(0, len(points), 63 // max(points).bit_length())
    return [math.prod(row) for row in np.multiply.reduceat(factors, together, axis=1).tolist()]


def _inverses(numbers: Sequence[int]) -> list[int]:
    """Invert many numbers modulo PRIME for the price of one inversion (Montgomery's trick)."""
    products = [1]
    for number in numbers:
        products.append(products[-1] * number % PRIME)
    inverse, inverses = pow(products[-1], -1, PRIME), []
    for number, before in zip(reversed(numbers), reversed(products[:-1]), strict=True):
        inverses.append(inverse * before % PRIME)
        inverse = inverse * number % PRIME
    return inverses[::-1]


def _number(share: bytes) -> int:
    number = int.from_bytes(share, "big")
    if len(share) != SHARE_BYTES or number >= PRIME:
        raise ProtocolError(f"A share must have {SHARE_BYTES} bytes and be a number below the prime.")
    return number
