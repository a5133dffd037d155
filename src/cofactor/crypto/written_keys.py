"""Keys of sums in bytes: what a dealer publishes, and the secret of each decrypter. Nothing is pickled.

Numbers are little-endian. Under Paillier's encryption the public part is N and h, a share of the key is one
number as long as N^2, and a whole key is its two primes. Lattice keys are written as TenSEAL does. Reading
raises ProtocolError, whatever the bytes are, and never says what they were.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cofactor.crypto import primes
from cofactor.crypto.ciphers import Cipher, Holder, Part
from cofactor.crypto.gmp import Number, gmp
from cofactor.crypto.lattice import PRIMES, Lattice, LatticeCipher, LatticeHolder, _fresh_context, _tenseal
from cofactor.crypto.paillier import PrivateKey, PublicKey, exponent_bits
from cofactor.crypto.paillier_sums import PaillierSums
from cofactor.crypto.shared_key import SharedKey, SharedKeyHolder, _Told
from cofactor.crypto.threshold import Root, Textbook, ThresholdHolder, ThresholdPaillier, polynomial
from cofactor.errors import CofactorError, ProtocolError

Keyed = ThresholdPaillier | SharedKey | Lattice
"""Settings of encryption whose keys somebody makes."""
_TRIED = np.array([3, -7, 0], np.int64)


def made(scheme: Keyed, decrypters: int) -> tuple[bytes, tuple[bytes, ...]]:
    """Make keys: what everybody may have, and by place each decrypter's secret. Whoever calls this deals."""
    scheme.quorum_of(decrypters)
    if isinstance(scheme, Lattice):
        context = _fresh_context(scheme.variant)
        secret = context.serialize(True, True, False, False)
        return context.serialize(True, False, False, False), (secret,) * decrypters
    pair = primes.safe_prime_pair(scheme.bits)
    return _public(scheme, pair[0] * pair[1]), _secrets(scheme, decrypters, pair)


def cipher_of(scheme: Keyed, decrypters: int, public: bytes) -> Cipher:
    """Read what everybody may have."""
    if isinstance(scheme, Lattice):
        return _lattice(scheme, public)
    return PaillierSums(
        _public_key(scheme, public),
        _way(scheme, decrypters, _modulus(scheme, public)),
        packed=getattr(scheme, "packed", True),
    )


def holder_of(
    scheme: Keyed, decrypters: int, public: bytes, place: int, secret: bytes
) -> tuple[Cipher, Holder]:
    """Read a decrypter's secret; one that opens sums alone is tried."""
    cipher = cipher_of(scheme, decrypters, public)
    if isinstance(scheme, ThresholdPaillier):
        assert isinstance(cipher, PaillierSums)
        way = _way(scheme, decrypters, _modulus(scheme, public))
        assert isinstance(way, Textbook | Root)
        return cipher, ThresholdHolder(cipher, way, place, _share(scheme, public, secret))
    return cipher, _whole_key(scheme, cipher, public, place, secret)


def _whole_key(scheme: Keyed, cipher: Cipher, public: bytes, place: int, secret: bytes) -> Holder:
    holder: Holder
    if isinstance(cipher, LatticeCipher):
        holder = LatticeHolder(cipher, place, _loaded(secret, private=True))
    else:
        assert isinstance(cipher, PaillierSums)
        assert isinstance(scheme, SharedKey)
        holder = SharedKeyHolder(cipher, _private_key(scheme, public, secret), place)
    _check_opens(cipher, holder)
    return holder


def _check_opens(cipher: Cipher, holder: Holder) -> None:
    """Refuse a key that does not open what was encrypted with its public part."""
    length, bits = len(_TRIED), 8
    pieces = range(cipher.pieces(length, bits))
    try:
        total = cipher.added([cipher.encrypted(_TRIED, bits)], length, bits)
        part = Part(holder.place, pieces, holder.part(total, length, bits, pieces))
        opens = np.array_equal(cipher.combined(total, length, bits, [part]), _TRIED)
    except (CofactorError, RuntimeError, ValueError):
        opens = False
    if not opens:
        raise ProtocolError("A secret key does not belong to the public key that was published with it.")


# Paillier's encryption


def _public(scheme: ThresholdPaillier | SharedKey, modulus: Number) -> bytes:
    key = PublicKey.fresh(modulus, _exponent_bits(scheme))
    return _bytes(modulus, scheme.bits // 8) + _bytes(key.base, scheme.bits // 4)


def _public_key(scheme: ThresholdPaillier | SharedKey, public: bytes) -> PublicKey:
    modulus, base = _modulus(scheme, public), _number(public[scheme.bits // 8 :])
    if not 1 < base < modulus**2 or gmp().gcd(base, modulus) != 1:
        raise ProtocolError("The number whose powers hide plaintexts does not belong to the public key.")
    return PublicKey(modulus, base, _exponent_bits(scheme))


def _modulus(scheme: ThresholdPaillier | SharedKey, public: bytes) -> Number:
    modulus = _number(public[: scheme.bits // 8])
    right = len(public) == scheme.bits // 8 + scheme.bits // 4
    if not right or modulus.bit_length() != scheme.bits or modulus % 2 == 0 or gmp().is_prime(modulus):
        raise ProtocolError(f"What was published is no key of {scheme.bits} bits, as was agreed on.")
    return modulus


def _exponent_bits(scheme: ThresholdPaillier | SharedKey) -> int:
    return exponent_bits(scheme.bits, getattr(scheme, "randomness", "short"))


def _way(scheme: ThresholdPaillier | SharedKey, decrypters: int, modulus: Number) -> Textbook | Root | _Told:
    if isinstance(scheme, SharedKey):
        return _Told(decrypters, modulus)
    kind = Textbook if scheme.shares == "textbook" else Root
    return kind(scheme.quorum_of(decrypters), decrypters, modulus)


def _secrets(
    scheme: ThresholdPaillier | SharedKey, decrypters: int, pair: tuple[Number, Number]
) -> tuple[bytes, ...]:
    if isinstance(scheme, SharedKey):
        return (b"".join(_bytes(prime, scheme.bits // 16) for prime in pair),) * decrypters
    way = _way(scheme, decrypters, pair[0] * pair[1])
    assert isinstance(way, Textbook | Root)
    shares: Sequence[Number] = polynomial(way.secret(*pair), way.quorum, decrypters)
    return tuple(_bytes(share, scheme.bits // 4) for share in shares)


def _share(scheme: ThresholdPaillier, public: bytes, secret: bytes) -> Number:
    share = _number(secret)
    if len(secret) != scheme.bits // 4 or not 0 < share < _modulus(scheme, public) ** 2:
        raise ProtocolError("What was sealed for a decrypter is no share of a key of the size agreed on.")
    return share


def _private_key(scheme: SharedKey, public: bytes, secret: bytes) -> PrivateKey:
    half = scheme.bits // 16
    pair = _number(secret[:half]), _number(secret[half:])
    product = pair[0] * pair[1]
    if len(secret) != 2 * half or product != _modulus(scheme, public) or gmp().gcd(*pair) != 1:
        raise ProtocolError("A secret key does not belong to the public key that was published with it.")
    return PrivateKey(*pair)


def _bytes(number: Number, width: int) -> bytes:
    return int(number).to_bytes(width, "little")


def _number(data: bytes) -> Number:
    return gmp().mpz(int.from_bytes(data, "little"))


# Lattice encryption


def _lattice(scheme: Lattice, public: bytes) -> LatticeCipher:
    context = _loaded(public, private=False)
    if context.seal_context().data.key_context_data().total_coeff_modulus_bit_count() != sum(PRIMES):
        raise ProtocolError("A lattice key has other parameters than were agreed on.")
    cipher = LatticeCipher(scheme.variant, public)
    try:
        # SEAL refuses what is of another variant or degree, and so does reading.
        cipher.added([cipher.encrypted(_TRIED, 8)], len(_TRIED), 8)
    except (CofactorError, RuntimeError, ValueError):
        raise ProtocolError("A lattice key has other parameters than were agreed on.") from None
    return cipher


def _loaded(data: bytes, *, private: bool) -> Any:
    """Read a lattice key. One that is to be public must not hold the secret."""
    try:
        context = _tenseal().Context.load(data, 1)
    except (RuntimeError, ValueError):
        raise ProtocolError("A lattice key cannot be read: it is damaged, or none.") from None
    if context.has_secret_key() is not private or not context.has_public_key():
        raise ProtocolError("A lattice key has a secret where it must not have one, or none where it must.")
    return context
