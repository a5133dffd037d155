"""Keys: identities, agreements, seals, chains."""

import hashlib
import hmac
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from cofactor.crypto.keys import SEAL_BYTES, Identity, KeyPair, chain, opened, sealed, verified
from cofactor.errors import ConfigError, ProtocolError, Refused


def test_a_signature_holds_for_its_data_and_its_signer_alone() -> None:
    one, other = Identity.generate(), Identity.generate()
    signature = one.sign(b"sum")
    assert verified(one.public, b"sum", signature)
    assert not verified(one.public, b"sun", signature)
    assert not verified(other.public, b"sum", signature)
    assert not verified(one.public, b"sum", signature[:-1])
    assert not verified(b"short", b"sum", signature)


def test_an_identity_is_saved_for_its_owner_alone_and_loaded_again(tmp_path: Path) -> None:
    identity, path = Identity.generate(), tmp_path / "north.pem"
    old = os.umask(0)
    try:
        identity.save(path)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().startswith("-----BEGIN PRIVATE KEY-----")
    assert Identity.load(path).public == identity.public


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_an_identity_that_others_may_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "north.pem"
    Identity.generate().save(path)
    path.chmod(mode)
    with pytest.raises(Refused, match="chmod 600"):
        Identity.load(path)


def test_an_identity_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "north.pem"
    identity = Identity.generate()
    identity.save(path)
    with pytest.raises(Refused, match="not overwritten"):
        Identity.generate().save(path)
    assert Identity.load(path).public == identity.public


def test_what_is_no_identity_is_refused_in_one_line(tmp_path: Path) -> None:
    locked = BestAvailableEncryption(b"word")
    files = {
        "text": b"hello",
        "other kind": X25519PrivateKey.generate().private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ),
        "password": Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked),
    }
    for name, content in files.items():
        path = tmp_path / name
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(ConfigError, match="no Ed25519 private key"):
            Identity.load(path)
    with pytest.raises(ConfigError, match="cannot read"):
        Identity.load(tmp_path / "missing")
    with pytest.raises(ConfigError, match="cannot write"):
        Identity.generate().save(tmp_path / "no folder" / "north.pem")


def test_two_agree_on_a_secret_for_each_context_and_a_third_does_not() -> None:
    one, other, third = KeyPair.fresh(), KeyPair.fresh(), KeyPair.fresh()
    secret = one.agreed(other.public, b"pair")
    assert secret == other.agreed(one.public, b"pair")
    assert len({secret, one.agreed(other.public, b"seal"), third.agreed(other.public, b"pair")}) == 3


def test_an_agreement_is_x25519_and_rfc_5869() -> None:
    one, other = KeyPair.fresh(), KeyPair.fresh()
    common = X25519PrivateKey.from_private_bytes(one.private).exchange(
        X25519PublicKey.from_public_bytes(other.public)
    )
    extracted = hmac.digest(bytes(32), common, hashlib.sha256)
    keys = b"".join(sorted([one.public, other.public]))
    assert one.agreed(other.public, b"pair") == hmac.digest(extracted, b"pair" + keys + b"\1", hashlib.sha256)


@pytest.mark.parametrize("peer", [bytes(32), b"\1" + bytes(31), b"short"], ids=["zero", "one", "short"])
def test_a_key_with_which_everybody_would_agree_is_refused(peer: bytes) -> None:
    with pytest.raises(ProtocolError, match="public key"):
        KeyPair.fresh().agreed(peer, b"pair")


def test_a_key_pair_can_be_made_again_from_its_private_half() -> None:
    pair = KeyPair.fresh()
    assert KeyPair.of(pair.private).public == pair.public


def test_what_is_sealed_opens_with_its_key_beside_its_companion_alone() -> None:
    key, other = os.urandom(32), os.urandom(32)
    box = sealed(key, b"shares", b"from 1 to 2")
    assert len(box) == len(b"shares") + SEAL_BYTES
    assert opened(key, box, b"from 1 to 2") == b"shares"
    assert box != sealed(key, b"shares", b"from 1 to 2")
    for wrong in ((other, box, b"from 1 to 2"), (key, box, b"from 2 to 1")):
        with pytest.raises(ProtocolError, match="does not open"):
            opened(*wrong)


def test_a_sealed_message_with_any_bit_changed_or_cut_off_does_not_open() -> None:
    key = os.urandom(32)
    box = sealed(key, b"ab", b"")
    number = int.from_bytes(box, "big")
    changed = [(number ^ 1 << bit).to_bytes(len(box), "big") for bit in range(8 * len(box))]
    for wrong in [*changed, *(box[:length] for length in range(len(box)))]:
        with pytest.raises(ProtocolError, match="does not open"):
            opened(key, wrong, b"")


def test_each_secret_of_a_chain_tells_all_later_ones() -> None:
    secrets = chain(os.urandom(32), 5)
    assert len({*secrets}) == 5
    assert all(len(secret) == 32 for secret in secrets)
    for j in range(5):
        assert chain(secrets[j], 5 - j) == secrets[j:]
    assert chain(secrets[0], 0) == []


def test_private_keys_are_not_printed() -> None:
    pair, identity = KeyPair.fresh(), Identity.generate()
    for text in (repr(pair), repr(identity)):
        assert "object at" in text
