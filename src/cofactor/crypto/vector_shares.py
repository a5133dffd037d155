"""Shamir's sharing of whole vectors: any `threshold` holders can open them together, fewer learn nothing.

Every number is the value at zero of a polynomial of degree threshold - 1 modulo PRIME whose other
coefficients are drawn afresh, and the holder at place h has its value at h + 1. Sums of shares are shares of
the sum. Nothing rests on a hard problem: what fewer holders see has the same distribution whatever was split.
"""

from collections.abc import Iterable, Mapping, Sequence
from secrets import token_bytes

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import inlined, kernel
from cofactor.errors import ConfigError, ProtocolError, TooFew

PRIME = 2**61 - 1
LARGEST = PRIME // 2
"""The largest absolute value that can be split, and that a sum of split numbers may have."""
MOST_BITS = 60
"""How many bits, sign included, sums always have room for; a sum of more could wrap around unnoticed."""
NUMBER_BYTES = 8

Share = NDArray[np.uint64]
"""One holder's numbers below PRIME."""

_MOST_HOLDERS = 2**31
_P = np.uint64(PRIME)


def split(values: NDArray[np.int64], *, threshold: int, holders: int) -> list[Share]:
    """Return each holder's share. Absolute values are LARGEST (2^60 - 1) at most."""
    if not 1 <= threshold <= holders < _MOST_HOLDERS:
        raise ConfigError(f"threshold must lie between 1 and the {holders} holders, got {threshold}.")
    if values.dtype != np.int64 or values.ndim != 1:
        raise ConfigError(f"A row of whole numbers (int64) is shared, got {values.dtype} {values.shape}.")
    if values.size and not -LARGEST <= values.min() <= values.max() <= LARGEST:
        raise ConfigError("A number of more than 60 bits and a sign cannot be shared. Use a coarser step.")
    constant = (values % PRIME).astype(np.uint64)
    coefficients = np.vstack([*(_random(len(values)) for _ in range(threshold - 1)), constant])
    return [_value(coefficients, np.uint64(holder + 1)) for holder in range(holders)]


def to_bytes(share: Share) -> bytes:
    """Return a share as it is sent: 8 bytes a number, the lowest first."""
    return share.astype("<u8").tobytes()


def from_bytes(data: bytes, length: int) -> Share:
    """Read a share of `length` numbers."""
    if len(data) != NUMBER_BYTES * length:
        raise ProtocolError(
            f"A share of {length} numbers takes {NUMBER_BYTES * length} bytes, got {len(data)}."
        )
    return _checked(np.frombuffer(data, "<u8").astype(np.uint64), length)


def added(shares: Iterable[Share]) -> Share:
    """Return the share of the sum, from the shares that one holder was given."""
    total: Share | None = None
    for share in shares:
        if total is None:
            total = _checked(share, share.size).copy()
        else:
            _add(total, _checked(share, total.size))
    if total is None:
        raise TooFew("There is no share to add up.")
    return total


def combined(shares: Mapping[int, Share], *, threshold: int) -> NDArray[np.int64]:
    """Return what was split, from the shares of `threshold` or more places; all of them must agree.

    A wrong share goes unnoticed among exactly `threshold`: only those beyond can be compared.
    """
    places = sorted(shares)
    if len(places) < max(threshold, 1):
        raise TooFew(f"The sum opens with the shares of {threshold} holders, got {len(places)}.")
    if not 0 <= places[0] <= places[-1] < _MOST_HOLDERS:
        raise ProtocolError("Places of holders count from 0.")
    length = shares[places[0]].size
    rows = np.vstack([_checked(shares[place], length) for place in places])
    points = [place + 1 for place in places]
    used = rows[:threshold]
    for row, point in zip(rows[threshold:], points[threshold:], strict=True):
        if not np.array_equal(_weighed(used, _weights(points[:threshold], point)), row):
            raise ProtocolError("The shares do not belong together: one of them, at least, is wrong.")
    return _signed(_weighed(used, _weights(points[:threshold], 0)))


def _checked(share: Share, length: int) -> Share:
    if share.dtype != np.uint64 or share.shape != (length,):
        raise ProtocolError(f"A share must hold {length} numbers (uint64), got {share.dtype} {share.shape}.")
    if share.size and share.max() >= PRIME:
        raise ProtocolError("A share must hold numbers below 2^61 - 1.")
    return share


def _random(count: int) -> Share:
    """Return numbers from the operating system, uniform below PRIME: the one word beyond is drawn again."""
    words = _drawn(count)
    while (beyond := words == _P).any():
        words[beyond] = _drawn(int(beyond.sum()))
    return words


def _drawn(count: int) -> Share:
    return np.frombuffer(token_bytes(NUMBER_BYTES * count), np.uint64) & _P


def _weights(points: Sequence[int], at: int) -> Share:
    """Return Lagrange's weights: how values at some points add up to the value at another one."""
    weights = []
    for point in points:
        above, below = 1, 1
        for other in points:
            if other != point:
                above, below = above * (at - other) % PRIME, below * (point - other) % PRIME
        weights.append(above * pow(below, -1, PRIME) % PRIME)
    return np.array(weights, np.uint64)


def _signed(numbers: Share) -> NDArray[np.int64]:
    whole = numbers.astype(np.int64)
    return np.where(whole > LARGEST, whole - PRIME, whole)


@inlined
def _reduced(number: np.uint64) -> np.uint64:
    """Bring any word below PRIME, modulo which 2^61 is 1."""
    folded = (number & _P) + (number >> np.uint64(61))
    return folded - _P if folded >= _P else folded


@inlined
def _product(a: np.uint64, b: np.uint64) -> np.uint64:
    """Multiply modulo PRIME; both factors lie below it, so that no sum of partial products reaches 2^64."""
    half, ones = np.uint64(31), np.uint64(2**31 - 1)
    a_high, a_low, b_high, b_low = a >> half, a & ones, b >> half, b & ones
    middle = a_high * b_low + a_low * b_high
    # 2^62 is 2, and 2^31 times the middle's part above 30 bits is that part.
    low_middle = (middle & np.uint64(2**30 - 1)) << half
    return _reduced(a_high * b_high * np.uint64(2) + (middle >> np.uint64(30)) + low_middle + a_low * b_low)


@kernel
def _add(total: Share, share: Share) -> None:
    for k in range(len(total)):
        total[k] = _reduced(total[k] + share[k])


@kernel
def _value(coefficients: Share, x: np.uint64) -> Share:
    """Evaluate each column's polynomial by Horner's rule, the highest coefficient first."""
    values: Share = coefficients[0].copy()
    for k in range(1, len(coefficients)):
        for j in range(len(values)):
            values[j] = _reduced(_product(values[j], x) + coefficients[k, j])
    return values


@kernel
def _weighed(rows: Share, weights: Share) -> Share:
    """Add up the rows, each times its weight."""
    total = np.zeros(rows.shape[1], np.uint64)
    for k in range(len(rows)):
        for j in range(len(total)):
            total[j] = _reduced(total[j] + _product(rows[k, j], weights[k]))
    return total
