"""Paillier's cryptosystem (1999): the product of ciphertexts encrypts the sum of plaintexts modulo N.

A ciphertext is (1 + N)^M h^a modulo N^2. All encryptions use powers of one public number h = (-y^2)^N, as
Damgard, Jurik and Nielsen (2010) have it, so that a table of its powers serves them all.
"""

from collections.abc import Iterable, Sequence
from secrets import randbelow, token_bytes
from threading import Lock
from typing import NoReturn

from cofactor.crypto.gmp import Number, gmp
from cofactor.errors import ConfigError, ProtocolError, Refused

SECURITY = {1024: 80, 2048: 112, 3072: 128, 7680: 192, 15360: 256}
"""Bits of security by size of N (NIST SP 800-57, part 1)."""
_WINDOW_BITS = 8
"""Bits of the exponent for which one factor is looked up: a byte."""


def security(bits: int) -> int:
    """Return the bits of security of N: those of the largest size with a figure that is no longer."""
    return SECURITY[max(size for size in SECURITY if size <= bits)]


def exponent_bits(bits: int, randomness: str) -> int:
    """Return the length of the exponents that hide plaintexts under an N of so many bits.

    "full" is half the length of N, as published with h. "short" is four times the bits of security, rounded
    up to the next size of N that has a figure: the length that Ma, Han and Wang (2021) work with. It is less
    work, and one more assumption.
    """
    sizes = [size for size in SECURITY if size >= bits]
    return bits // 2 if randomness == "full" else 4 * SECURITY[min(sizes, default=max(SECURITY))]


class PublicKey:
    """What everybody needs in order to encrypt and to add."""

    def __init__(self, modulus: Number, base: Number, exponent_bits: int) -> None:
        if exponent_bits % _WINDOW_BITS:
            raise ConfigError(f"Exponents have a multiple of {_WINDOW_BITS} bits, got {exponent_bits}.")
        self.modulus = gmp().mpz(modulus)
        self.square = self.modulus**2
        self.base = gmp().mpz(base)
        self.exponent_bits = exponent_bits
        self.width = -(-self.square.bit_length() // 8)
        """Bytes of a ciphertext."""
        self._powers: list[list[Number]] = []
        self._making = Lock()

    @classmethod
    def fresh(cls, modulus: Number, exponent_bits: int) -> "PublicKey":
        """Draw the public number whose powers hide plaintexts."""
        y = gmp().mpz(1 + randbelow(int(modulus) - 1))
        return cls(modulus, gmp().powmod(-y * y % modulus, modulus, modulus**2), exponent_bits)

    def __reduce__(self) -> NoReturn:
        raise Refused("A key with its tables is not pickled: tell N, h and the length of exponents instead.")

    def encrypted(self, plaintexts: Sequence[int]) -> list[Number]:
        """Encrypt numbers of [0, N), each under fresh randomness."""
        powers, square = self._table(), self.square
        chance = token_bytes(len(powers) * len(plaintexts))
        ciphertexts = []
        for start, plaintext in enumerate(plaintexts):
            if not 0 <= plaintext < self.modulus:
                raise ConfigError("A plaintext lies outside [0, N). Nothing was encrypted.")
            ciphertext = 1 + gmp().mpz(plaintext) * self.modulus
            digits = chance[start * len(powers) : (start + 1) * len(powers)]
            for row, digit in zip(powers, digits, strict=True):
                ciphertext = ciphertext * row[digit] % square
            ciphertexts.append(ciphertext)
        return ciphertexts

    def check_units(self, numbers: Iterable[Number]) -> None:
        """Refuse numbers that share a factor with N: no ciphertext does, and nobody can open one."""
        product = gmp().mpz(1)
        for number in numbers:
            product = product * number % self.modulus
        if gmp().gcd(product, self.modulus) != 1:
            raise ProtocolError("A ciphertext shares a factor with the key: nobody encrypted anything to it.")

    def _table(self) -> list[list[Number]]:
        """Return h^(digit * 256^place), by place and digit. Made once: parties are threads that share it."""
        with self._making:
            if not self._powers:
                self._powers = self._made_table()
            return self._powers

    def _made_table(self) -> list[list[Number]]:
        step, table = self.base, []
        for _ in range(self.exponent_bits // _WINDOW_BITS):
            row = [gmp().mpz(1)]
            while len(row) < 1 << _WINDOW_BITS:
                row.append(row[-1] * step % self.square)
            table.append(row)
            step = row[-1] * step % self.square
        return table


class PrivateKey:
    """The two primes: whoever has them opens everything."""

    def __init__(self, first: Number, second: Number) -> None:
        self._primes = (gmp().mpz(first), gmp().mpz(second))
        p, q = self._primes
        # With g = 1 + N: L(g^(p-1) mod p^2) is (p-1) q, which is -q modulo p.
        self._scales = (gmp().invert(-q, p), gmp().invert(-p, q))
        self._lift = gmp().invert(p, q)

    def __repr__(self) -> str:
        return "PrivateKey(...)"

    def __reduce__(self) -> NoReturn:
        raise Refused("A private key is neither copied nor pickled.")

    def decrypted(self, ciphertext: Number) -> Number:
        """Return the plaintext, in [0, N)."""
        p, q = self._primes
        # By the Chinese remainder theorem, from M modulo p and M modulo q.
        low, high = (self._rest(ciphertext, *pair) for pair in zip(self._primes, self._scales, strict=True))
        return low + (high - low) * self._lift % q * p

    def _rest(self, ciphertext: Number, prime: Number, scale: Number) -> Number:
        square = prime * prime
        # Not the slower power that takes the same time for all exponents: who holds a whole key is not safe
        # anyway, and says so.
        power = gmp().powmod(ciphertext % square, prime - 1, square)
        return (power - 1) // prime * scale % prime
