"""Safe primes, drawn from the operating system: p = 2u + 1 where u is prime, too.

With two of them the numbers that hide Paillier's plaintexts lie in a group without small subgroups, which is
what sharing a key relies on.
"""

import math
from collections.abc import Iterator
from secrets import randbits

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto.gmp import Number, gmp
from cofactor.errors import ConfigError

_WINDOW = 2**20
"""Candidates that are sieved at a time; at 1024 bits about five of them are what is looked for."""
_SIEVE = 2**20
"""Candidates with a prime factor below this are struck out, and no larger factor is looked for."""
_ROUNDS = 40
"""A composite passes for a prime with probability below 4^-16, whoever chose it."""
_FEWEST_BITS = 64


def safe_prime_pair(bits: int) -> tuple[Number, Number]:
    """Return two different safe primes whose product has exactly `bits` bits."""
    if bits % 2:
        raise ConfigError(f"The product of two primes of one size has an even number of bits, got {bits}.")
    small = _small_primes()
    first = _safe_prime(bits // 2, small)
    second = first
    while second == first:
        second = _safe_prime(bits // 2, small)
    return first, second


def _safe_prime(bits: int, small: NDArray[np.int64]) -> Number:
    """Return a safe prime of exactly `bits` bits, the two highest of them set.

    The first one above a random start is taken. That favours primes after long gaps: a loss of entropy of a
    few bits out of hundreds (Brandt and Damgard 1993).
    """
    if bits < _FEWEST_BITS:
        raise ConfigError(f"Safe primes are drawn from {_FEWEST_BITS} bits on, got {bits}.")
    while True:
        start = gmp().mpz(randbits(bits - 1) | 3 << bits - 3 | 1)
        for half in _candidates(start, small):
            prime = 2 * half + 1
            if _is_prime(half) and _is_prime(prime) and prime.bit_length() == bits:
                return prime


def _candidates(start: Number, small: NDArray[np.int64]) -> Iterator[Number]:
    """Yield those of the odd numbers u from `start` for which neither u nor 2u + 1 has a small factor."""
    left = np.ones(_WINDOW, np.bool_)
    rests = np.array([int(start % prime) for prime in small.tolist()])
    halves = (small + 1) // 2
    # With u = start + 2k: q divides u at k = -start/2, and 2u + 1 at k = -(start + 1/2)/2, modulo q.
    for prime, first, second in np.stack(
        (small, -rests * halves % small, -(rests + halves) * halves % small), axis=1
    ).tolist():
        left[first::prime] = False
        left[second::prime] = False
    for k in np.flatnonzero(left).tolist():
        yield start + 2 * k


def _is_prime(number: Number) -> bool:
    # Fermat's test to base 2 throws nearly all composites out, at the price of one power.
    return bool(gmp().powmod(2, number - 1, number) == 1 and gmp().is_prime(number, _ROUNDS))


def _small_primes() -> NDArray[np.int64]:
    """Return the odd primes below _SIEVE."""
    prime = np.ones(_SIEVE, np.bool_)
    prime[:2] = False
    for factor in range(2, math.isqrt(_SIEVE) + 1):
        if prime[factor]:
            prime[factor * factor :: factor] = False
    return np.flatnonzero(prime)[1:]
