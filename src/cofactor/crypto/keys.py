"""Keys: who somebody is, what two agree on, what is sealed, and secrets of which one tells the next.

All primitives are those of the `cryptography` package: Ed25519, X25519, HKDF-SHA256, AES-256-GCM.
"""

import os
import stat
from pathlib import Path
from secrets import token_bytes

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from cofactor.errors import ConfigError, ProtocolError, Refused

SECRET_BYTES = 32
PUBLIC_BYTES = 32
SIGNATURE_BYTES = 64
SEAL_BYTES = 12 + 16
"""By how much a sealed message is longer: its nonce and its tag."""

_NONCE_BYTES = 12


class Identity:
    """The long-lived Ed25519 key by which the others know a party; they pin its public half."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def generate(cls) -> "Identity":
        """Draw a new one from the operating system."""
        return cls(Ed25519PrivateKey.generate())

    @property
    def public(self) -> bytes:
        """The half that everybody may know."""
        return self._key.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """Return a signature that `verified` accepts for this data and no other."""
        return self._key.sign(data)

    def save(self, path: str | Path) -> None:
        """Write the private key to a new file that its owner alone may read; never over an old one."""
        pem = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise Refused(f"{path} exists and is not overwritten. Name another file.") from None
        except OSError as error:
            raise ConfigError(f"{path}: cannot write the identity ({error.strerror}).") from None
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def load(cls, path: str | Path) -> "Identity":
        """Read what `save` wrote, unless others than its owner may read or change it."""
        pem = _read_private(path)
        try:
            key = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise ConfigError(f"{path} holds no Ed25519 private key in PEM without a password.")
        return cls(key)


def _read_private(path: str | Path) -> bytes:
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_IMODE(mode) & 0o077:
                raise Refused(
                    f"{path} may be read or changed by others than its owner (mode {stat.S_IMODE(mode):o}). "
                    f"If nobody did, run: chmod 600 {path}"
                )
            return file.read()
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the identity ({error.strerror}).") from None


def verified(public: bytes, data: bytes, signature: bytes) -> bool:
    """Whether the owner of a public identity key signed just this data."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


class KeyPair:
    """An X25519 key pair that serves one secure sum."""

    def __init__(self, key: X25519PrivateKey) -> None:
        self._key = key
        self.public = key.public_key().public_bytes_raw()

    @classmethod
    def fresh(cls) -> "KeyPair":
        """Draw a new one from the operating system."""
        return cls(X25519PrivateKey.generate())

    @classmethod
    def of(cls, private: bytes) -> "KeyPair":
        """Return the pair of a private key of 32 bytes."""
        return cls(X25519PrivateKey.from_private_bytes(private))

    @property
    def private(self) -> bytes:
        """The 32 secret bytes, to be shared among others and never sent."""
        return self._key.private_bytes_raw()

    def agreed(self, peer: bytes, context: bytes) -> bytes:
        """Return 32 bytes that only the two owners know, bound to the context and both public keys.

        Raises ProtocolError for a peer's key with which everybody would agree on the same.
        """
        try:
            common = self._key.exchange(X25519PublicKey.from_public_bytes(peer))
        except ValueError:
            raise ProtocolError("A public key is not one that two can agree with.") from None
        return _derived(common, context + min(self.public, peer) + max(self.public, peer))


def sealed(key: bytes, data: bytes, associated: bytes) -> bytes:
    """Hide data from all who do not know the key; it opens only beside the same associated data."""
    nonce = token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, data, associated)


def opened(key: bytes, data: bytes, associated: bytes) -> bytes:
    """Return what was sealed; ProtocolError if anything about it was changed."""
    try:
        return AESGCM(key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], associated)
    except (InvalidTag, ValueError):
        raise ProtocolError("A sealed message does not open: it was changed, or is for another.") from None


def chain(seed: bytes, length: int) -> list[bytes]:
    """Return `length` secrets of which the first is the seed and each is the one-way image of the one before.

    Whoever knows one knows all later ones, and none earlier: `chain(secrets[j], length - j) == secrets[j:]`.
    """
    secrets = [seed][:length]
    while len(secrets) < length:
        secrets.append(_derived(secrets[-1], b"cofactor: next secret of a chain"))
    return secrets


def _derived(secret: bytes, context: bytes) -> bytes:
    return HKDF(SHA256(), SECRET_BYTES, salt=None, info=context).derive(secret)
