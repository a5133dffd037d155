"""One key that all decrypters hold: what is published for encrypted recommenders, kept to compare with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NoReturn

from cofactor.config import plain_numbers, whole
from cofactor.crypto import primes
from cofactor.crypto.ciphers import OWN_NUMBERS, Dealt
from cofactor.crypto.gmp import Number
from cofactor.crypto.paillier import PrivateKey, PublicKey, exponent_bits, security
from cofactor.crypto.paillier_sums import PaillierSums
from cofactor.errors import ConfigError, ProtocolError, Refused

_BITS = range(1024, 8193, 64)


@dataclass(frozen=True, kw_only=True)
class SharedKey:
    """Paillier's encryption with one key, whole in the hands of every decrypter. Unsafe: see `unsafe`."""

    bits: int = 1024
    """Size of the modulus N: a multiple of 64 from 1024 to 8192. 1024 is the size of the published tables."""
    packed: bool = True
    """Whether many numbers share a ciphertext; False is one number each, as published."""

    unsafe: ClassVar[str] = (
        "Every decrypter holds the whole key: a single one that talks to the coordinator opens every party's "
        "upload. Use ThresholdPaillier instead."
    )
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(bits=self.bits)
        if self.bits not in _BITS:
            raise ConfigError(
                f"bits must be a multiple of {_BITS.step} from {_BITS[0]} to {_BITS[-1]}, got {self.bits}."
            )

    def quorum_of(self, decrypters: int) -> int:
        """Return 1: each of the decrypters opens what it is given alone."""
        whole(decrypters=decrypters)
        return 1

    def assumptions(self, decrypters: int) -> tuple[str, ...]:  # noqa: ARG002 (any one of them opens all)
        """Return what hiding rests on, one clause each."""
        return (
            "no decrypter talks to the coordinator or is broken into: whoever is one holds the whole key",
            "whoever makes the key is honest and forgets it, and nobody can time a decrypter",
            "parties and decrypters keep to the protocol: " + OWN_NUMBERS,
            f"composite residues modulo {self.bits} bits are hard to tell from others: about "
            f"{security(self.bits)} bits of security, and none against a quantum computer; and powers with "
            f"exponents of {exponent_bits(self.bits, 'short')} bits look like any others",
        )

    def dealt(self, decrypters: int) -> Dealt:
        """Make a fresh key and give it to every decrypter."""
        self.quorum_of(decrypters)
        return dealt_from(self, decrypters, primes.safe_prime_pair(self.bits))


def dealt_from(scheme: SharedKey, decrypters: int, pair: tuple[Number, Number]) -> Dealt:
    """Give the key of two given primes to every decrypter."""
    modulus = pair[0] * pair[1]
    public = PublicKey.fresh(modulus, exponent_bits(scheme.bits, "short"))
    sums = PaillierSums(public, _Told(decrypters, modulus), packed=scheme.packed)
    key = PrivateKey(*pair)
    return Dealt(sums, tuple(SharedKeyHolder(sums, key, place) for place in range(decrypters)))


@dataclass(frozen=True)
class _Told:
    """A holder tells the plaintext itself; several who opened the same must agree."""

    decrypters: int
    modulus: Number
    name: ClassVar[str] = "shared key"
    quorum: ClassVar[int] = 1

    def opened(self, ciphertext: Number, told: Mapping[int, Number]) -> Number:
        """Return what all tell."""
        del ciphertext
        plaintexts = set(told.values())
        if len(plaintexts) != 1:
            raise ProtocolError("Decrypters opened the same piece to different numbers. Nothing was opened.")
        return plaintexts.pop()


class SharedKeyHolder:
    """One of the decrypters that hold the whole key."""

    def __init__(self, sums: PaillierSums, key: PrivateKey, place: int) -> None:
        self._sums = sums
        self._key = key
        self._place = place

    def __repr__(self) -> str:
        return f"SharedKeyHolder(place={self._place})"

    def __reduce__(self) -> NoReturn:
        raise Refused("A decrypter's key is neither copied nor pickled.")

    @property
    def place(self) -> int:
        """Its place among the decrypters, counted from 0."""
        return self._place

    def part(self, total: bytes, length: int, bits: int, pieces: range) -> bytes:
        """Open some pieces of a sum; ProtocolError, and nothing told, if one holds no packed numbers."""
        ciphertexts, packing = self._sums.ciphertexts(total, length, bits, pieces), self._sums.packing(bits)
        plaintexts = [self._key.decrypted(ciphertext) for ciphertext in ciphertexts]
        for piece, plaintext in zip(pieces, plaintexts, strict=True):
            packing.opened(plaintext, packing.count(piece, length))
        return self._sums.part(total, self._place, pieces, plaintexts)
