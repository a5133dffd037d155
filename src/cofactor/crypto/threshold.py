"""Paillier's encryption with a key that nobody holds: any `quorum` decrypters open a sum, fewer cannot.

The dealer draws safe primes p = 2p' + 1 and q = 2q' + 1, N = pq and m = p'q'. Decrypter i, counted from 1,
gets the value at i of a random polynomial of degree quorum - 1. With D = decrypters!, S the places that take
part and L_i = D * prod over the other j in S of j / (j - i), a whole number:

  textbook (Damgard and Jurik 2001): f(0) = d, which is 0 modulo m and 1 modulo N; f is taken modulo Nm.
      A part is c_i = c^(2 D f(i)) mod N^2, and prod c_i^(2 L_i) = c^(4 D^2 d) = 1 + 4 D^2 M N.
  root: f(0) = 1/N modulo m; f is taken modulo m. With c = (1 + MN) r^N a part is (c mod N)^(2 D f(i)) mod N,
      and w = prod of its (2 L_i)-th powers = r^(4 D^2) mod N opens c: c^(4 D^2) / w^N = 1 + 4 D^2 M N.

What is checked. root: (M, r) -> c is one to one, so that no false parts lead to a false M. textbook: parts
that were multiplied by powers of 1 + N pass, and change M. Where more than `quorum` open, all sets of
neighbours of that size must agree, which shows up to as many false parts as there are more than `quorum`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from secrets import randbelow
from typing import ClassVar, Literal, NoReturn

from cofactor.config import one_of, plain_numbers, whole
from cofactor.crypto import primes
from cofactor.crypto.ciphers import OWN_NUMBERS, Dealt
from cofactor.crypto.gmp import Number, gmp
from cofactor.crypto.paillier import PublicKey, exponent_bits, security
from cofactor.crypto.paillier_sums import PaillierSums
from cofactor.errors import ConfigError, ProtocolError, Refused

_BITS = range(2048, 8193, 64)
_MOST_DECRYPTERS = 64
"""Powers that combine parts have exponents of the size of decrypters!."""


@dataclass(frozen=True, kw_only=True)
class ThresholdPaillier:
    """Sums that so many decrypters must open together; a dealer makes their keys."""

    bits: int = 2048
    """Size of the modulus N: a multiple of 64 from 2048 to 8192."""
    quorum: int = 2
    """How many decrypters must take part, at least 2; all of them where there are fewer."""
    shares: Literal["textbook", "root"] = "textbook"
    """How the key is shared. "root" is several times faster to open, and no one has reviewed it."""
    randomness: Literal["short", "full"] = "short"
    """Exponents that hide plaintexts: of four times the bits of security, or half as long as N."""

    unsafe: ClassVar[str] = ""
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(bits=self.bits, quorum=self.quorum)
        one_of(("textbook", "root"), shares=self.shares)
        one_of(("short", "full"), randomness=self.randomness)
        if self.bits not in _BITS:
            raise ConfigError(
                f"bits must be a multiple of {_BITS.step} from {_BITS[0]} to {_BITS[-1]}, got {self.bits}: "
                "shorter keys can be broken today or soon, longer ones take too long to make and to use."
            )
        if self.quorum < 2:
            raise ConfigError(
                "quorum must be at least 2: a decrypter that opens sums alone holds the whole key."
            )

    def quorum_of(self, decrypters: int) -> int:
        """Return how many of so many decrypters must open: `quorum`, or all where there are fewer."""
        whole(decrypters=decrypters)
        if not 2 <= decrypters <= _MOST_DECRYPTERS:
            raise ConfigError(
                f"ThresholdPaillier needs 2 to {_MOST_DECRYPTERS} decrypters, got {decrypters}: "
                "a single one would hold the whole key."
            )
        return min(self.quorum, decrypters)

    def assumptions(self, decrypters: int) -> tuple[str, ...]:
        """Return what hiding rests on with so many decrypters, one clause each."""
        self.quorum_of(decrypters)
        secure = security(self.bits)
        length = exponent_bits(self.bits, self.randomness)
        return (
            "the dealer who makes the keys is honest and forgets them",
            f"parties and decrypters keep to the protocol: {OWN_NUMBERS}; {_CHECKED[self.shares]}",
            f"composite residues modulo {self.bits} bits are hard to tell from others: about {secure} bits "
            "of security, and none against a quantum computer",
            f"powers of one public number with exponents of {length} bits look like any others"
            + _POWERS[self.randomness],
            *_UNREVIEWED[self.shares],
            "nobody can time the machines of parties and decrypters, nor read their memory",
        )

    def dealt(self, decrypters: int) -> Dealt:
        """Make fresh keys for so many decrypters."""
        self.quorum_of(decrypters)
        return dealt_from(self, decrypters, primes.safe_prime_pair(self.bits))


_CHECKED = {
    "textbook": "a false part of a decrypter changes the sum unseen, unless more than the quorum open it",
    "root": "a false part of a decrypter is always seen",
}
_POWERS = {
    "short": " (short exponents, of the length of Ma, Han and Wang 2021, on top of Damgard, Jurik and "
    "Nielsen 2010)",
    "full": " (Damgard, Jurik and Nielsen 2010)",
}
_UNREVIEWED: dict[str, tuple[str, ...]] = {
    "textbook": (),
    "root": (
        "opening a sum by roots, which also tells the product of the numbers that hid its terms, tells "
        "nothing more about single terms: that has no published proof and was not reviewed",
    ),
}


def dealt_from(scheme: ThresholdPaillier, decrypters: int, pair: tuple[Number, Number]) -> Dealt:
    """Share the key of two given safe primes. The dealer's work: it must forget all that is in here."""
    quorum, modulus = scheme.quorum_of(decrypters), pair[0] * pair[1]
    opening: Textbook | Root
    if scheme.shares == "textbook":
        opening = Textbook(quorum, decrypters, modulus)
    else:
        opening = Root(quorum, decrypters, modulus)
    key = PublicKey.fresh(modulus, exponent_bits(scheme.bits, scheme.randomness))
    sums = PaillierSums(key, opening)
    values = polynomial(opening.secret(*pair), quorum, decrypters)
    return Dealt(sums, tuple(ThresholdHolder(sums, opening, at, value) for at, value in enumerate(values)))


def polynomial(secret: tuple[Number, Number], quorum: int, decrypters: int) -> list[Number]:
    """Return the values at 1, 2, ... of a random polynomial whose value at 0 is (value, modulus)."""
    start, modulus = secret
    coefficients = [start, *(gmp().mpz(randbelow(int(modulus))) for _ in range(quorum - 1))]
    return [
        sum(coefficient * x**power for power, coefficient in enumerate(coefficients)) % modulus
        for x in range(1, decrypters + 1)
    ]


def weights(places: Sequence[int], decrypters: int) -> list[int]:
    """Return 2 L_i for the decrypters at these places, counted from 0."""
    points = [place + 1 for place in places]
    found = []
    for point in points:
        others = [other for other in points if other != point]
        above = 2 * math.factorial(decrypters) * math.prod(others)
        found.append(above // math.prod(other - point for other in others))
    return found


@dataclass(frozen=True)
class Textbook:
    """Damgard and Jurik's shares: their parts open nothing but the sum."""

    quorum: int
    decrypters: int
    key_modulus: Number
    name: ClassVar[str] = "textbook"

    @property
    def modulus(self) -> Number:
        """Parts are numbers modulo N^2."""
        return self.key_modulus**2

    def secret(self, p: Number, q: Number) -> tuple[Number, Number]:
        """Return what is shared, and modulo which number."""
        order = _order(p, q)
        return order * gmp().invert(order, p * q), order * p * q

    def part(self, ciphertext: Number, share: Number) -> Number:
        """Return a decrypter's part in opening a ciphertext."""
        exponent = 2 * math.factorial(self.decrypters) * share
        return gmp().powmod_sec(ciphertext, exponent, self.modulus)

    def opened(self, ciphertext: Number, told: Mapping[int, Number]) -> Number:
        """Return the plaintext that every `quorum` neighbours among the places open."""
        del ciphertext
        places = sorted(told)
        runs = [places[start : start + self.quorum] for start in range(len(places) - self.quorum + 1)]
        # If all runs agree, all parts lie on one polynomial: two runs in a row share all places but one each.
        plaintexts = {self._plaintext(told, run) for run in runs}
        if len(plaintexts) != 1:
            raise ProtocolError(_FALSE_PART)
        return plaintexts.pop()

    def _plaintext(self, told: Mapping[int, Number], places: Sequence[int]) -> Number:
        power = _product(told, places, self.decrypters, self.modulus)
        return _logarithm(power, self.decrypters, self.key_modulus)


@dataclass(frozen=True)
class Root:
    """Shares of the exponent that takes N-th roots: shorter, modulo N, and no false part passes."""

    quorum: int
    decrypters: int
    key_modulus: Number
    name: ClassVar[str] = "root"

    @property
    def modulus(self) -> Number:
        """Parts are numbers modulo N."""
        return self.key_modulus

    def secret(self, p: Number, q: Number) -> tuple[Number, Number]:
        """Return what is shared, and modulo which number."""
        order = _order(p, q)
        return gmp().invert(p * q, order), order

    def part(self, ciphertext: Number, share: Number) -> Number:
        """Return a decrypter's part in opening a ciphertext."""
        exponent = 2 * math.factorial(self.decrypters) * share
        return gmp().powmod_sec(ciphertext % self.modulus, exponent, self.modulus)

    def opened(self, ciphertext: Number, told: Mapping[int, Number]) -> Number:
        """Return the plaintext, which the parts prove."""
        square, places = self.key_modulus**2, sorted(told)[: self.quorum]
        root = _product(told, places, self.decrypters, self.modulus)
        hidden = gmp().powmod(ciphertext, 4 * math.factorial(self.decrypters) ** 2, square)
        mask = gmp().powmod(root, self.key_modulus, square)
        return _logarithm(hidden * _inverse(mask, square) % square, self.decrypters, self.key_modulus)


class ThresholdHolder:
    """A decrypter's share of the key."""

    def __init__(self, sums: PaillierSums, opening: Textbook | Root, place: int, share: Number) -> None:
        self._sums = sums
        self._opening = opening
        self._place = place
        self._share = share

    def __repr__(self) -> str:
        return f"ThresholdHolder(place={self._place})"

    def __reduce__(self) -> NoReturn:
        raise Refused("A decrypter's share of a key is neither copied nor pickled.")

    @property
    def place(self) -> int:
        """Its place among the decrypters, counted from 0."""
        return self._place

    def part(self, total: bytes, length: int, bits: int, pieces: range) -> bytes:
        """Return its part in opening some pieces of a sum, which tells nothing alone."""
        ciphertexts = self._sums.ciphertexts(total, length, bits, pieces)
        numbers = [self._opening.part(ciphertext, self._share) for ciphertext in ciphertexts]
        return self._sums.part(total, self._place, pieces, numbers)


_FALSE_PART = (
    "The parts of the decrypters do not fit together: one of them is false, or of another key. "
    "Nothing was opened."
)


def _order(p: Number, q: Number) -> Number:
    """Return m = p'q', the order of the group in which shares are hidden."""
    order = (p - 1) // 2 * ((q - 1) // 2)
    if gmp().gcd(p - 1, q - 1) != 2 or gmp().gcd(p * q, order) != 1:
        raise ConfigError("A key is shared over two different safe primes of the same size.")
    return order


def _product(told: Mapping[int, Number], places: Sequence[int], decrypters: int, modulus: Number) -> Number:
    """Return the product of the parts, each to the power of its weight."""
    product = gmp().mpz(1)
    for place, weight in zip(places, weights(places, decrypters), strict=True):
        base = told[place] if weight > 0 else _inverse(told[place], modulus)
        product = product * gmp().powmod(base, abs(weight), modulus) % modulus
    return product


def _inverse(number: Number, modulus: Number) -> Number:
    try:
        return gmp().invert(number, modulus)
    except ZeroDivisionError:
        raise ProtocolError(_FALSE_PART) from None


def _logarithm(power: Number, decrypters: int, modulus: Number) -> Number:
    """Return M from 1 + 4 D^2 M N modulo N^2; refuse what does not have that form."""
    if power % modulus != 1:
        raise ProtocolError(_FALSE_PART)
    return (power - 1) // modulus * gmp().invert(4 * math.factorial(decrypters) ** 2, modulus) % modulus
