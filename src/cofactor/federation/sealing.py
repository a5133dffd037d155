"""Which data a ledger belongs to, told to nobody.

A ledger's copy lies in every run folder, and folders are shown around. A plain hash of a small file gives the
file away: whoever knows all of it but one person's number tries them all. So a ledger holds the hash under a
key, which lies beside the ledger, belongs to whoever holds the data, and is copied nowhere.
"""

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from cofactor.errors import LedgerError

KEY_SUFFIX = ".key"
"""The key lies beside the ledger, under the same name and this."""
_PLAIN = "sha256:"
"""How a hash begins that has no key: those of ledgers that were begun before there were keys."""


def key_path(ledger: Path) -> Path:
    """Return where the key of a ledger lies."""
    return ledger.with_name(ledger.name + KEY_SUFFIX)


def sealed(fingerprint: str, ledger: Path) -> str:
    """Return what a ledger may say of its data; the key is made when there is none."""
    return _under(_key(key_path(ledger)), fingerprint)


def belongs(stored: str, fingerprint: str, ledger: Path) -> bool:
    """Say whether what a ledger says of its data is said of these."""
    if not is_keyed(stored):
        return stored == fingerprint
    path = key_path(ledger)
    return path.exists() and hmac.compare_digest(_under(_read(path), fingerprint), stored)


def is_keyed(stored: str) -> bool:
    """Say whether what a ledger says of its data takes a key."""
    return not stored.startswith(_PLAIN)


def _under(key: bytes, fingerprint: str) -> str:
    return "hmac-sha256:" + hmac.new(key, fingerprint.encode(), hashlib.sha256).hexdigest()


def _key(path: Path) -> bytes:
    """Return the key, made once: whole or not at all, for its owner's eyes, and the same for everybody."""
    if not path.exists():
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as opened:
                opened.write(secrets.token_hex(32) + "\n")
                opened.flush()
                os.fsync(opened.fileno())
            os.link(draft, path)
        except FileExistsError:
            pass  # somebody else was faster: theirs is the key
        except OSError as error:
            raise LedgerError(
                f"{path} cannot be written ({error.strerror}). A ledger needs its key beside it: make the "
                "folder writable, or move the data to one that is."
            ) from None
        finally:
            draft.unlink(missing_ok=True)
    return _read(path)


def _read(path: Path) -> bytes:
    try:
        key = bytes.fromhex(path.read_text().strip())
    except (OSError, ValueError):
        key = b""
    if len(key) != 32:
        raise LedgerError(
            f"{path}: is no key. Restore it from a backup; or remove it and go on with 'cofactor budget FILE "
            "--newer-data'."
        )
    return key
