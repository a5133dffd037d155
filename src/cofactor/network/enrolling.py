"""How a party's two public keys reach the coordinator in one file: for the connection, and for who it is."""

import json
import tempfile
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from cofactor.crypto.keys import verified
from cofactor.errors import CofactorError, Refused, RunError
from cofactor.network import kits
from cofactor.network.pins import Pins, public_key
from cofactor.network.site import Site

PARTIES: Final = "parties.toml"
"""Where a coordinator keeps the public keys of the parties it has admitted; it may be given to anybody."""
_REQUEST, _IDENTITY = "request.zip", "identity.json"
_LARGEST = 1_000_000
_CONTEXT = b"cofactor: a request\n"


@dataclass(frozen=True, kw_only=True)
class Enrolment:
    """What a party asks for, and by which key all will know it."""

    name: str
    organisation: str
    key: bytes
    certificate_key: str
    """The fingerprint of the key of its connection."""
    request: bytes


def new_party(folder: Path, *, name: str | None = None, organisation: str | None = None) -> tuple[Site, Path]:
    """Make a party's folder with its keys; return it, and the file that goes to the coordinator."""
    named = name or folder.resolve().name
    if (folder / "site.toml").exists():
        raise Refused(f"{folder} already is a party's folder. Use it, or name another.")
    half_made = (folder / "request").exists()
    signed_by = organisation or named.replace("-", "_")
    made = kits.request(folder, named, signed_by, again=half_made)
    site = Site.create(folder, name=named)
    return site, _enclosed(site, made)


def renewed(site: Site) -> Path:
    """Make a new key for the connection, with the same identity; return the file for the coordinator."""
    return _enclosed(site, kits.renew(site.folder))


def read_enrolment(path: Path) -> Enrolment:
    """Read a party's request; refuse one whose parts do not belong together."""
    try:
        with zipfile.ZipFile(path) as file:
            if any(each.file_size > _LARGEST for each in file.infolist()):
                raise ValueError
            inner, identity = file.read(_REQUEST), json.loads(file.read(_IDENTITY))
        key, signature = public_key(identity["key"]), bytes.fromhex(identity["signature"])
        name = str(identity["name"])
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, CofactorError):
        raise RunError(f"{path} is no party's request. Ask for it again: cofactor join new") from None
    if not verified(key, _signed_text(name, inner), signature):
        raise Refused(f"{path}: the identity did not sign this request. Ask the party for it again.")
    with tempfile.TemporaryDirectory() as folder:
        asked = kits.read_request(_written(Path(folder), inner))
    if asked.name != name:
        raise Refused(f"{path}: the certificate is for {asked.name!r}, and the identity for {name!r}.")
    return Enrolment(
        name=name, organisation=asked.organisation, key=key, certificate_key=asked.key, request=inner
    )


def admitted(host: Path) -> Pins:
    """Return the keys of the parties that a coordinator has admitted."""
    return Pins.read(host / PARTIES)


def admit(host: Path, asked: Enrolment, *, again: bool = False, replace: bool = False) -> Path:
    """Sign a party's request, and keep its key; return the file that goes back.

    `again` renews a certificate; `replace` takes a party that has a new identity, too.
    """
    known = admitted(host)
    known.check_free(asked.name, asked.key, replace=replace)
    with tempfile.TemporaryDirectory() as folder:
        signed = kits.admit(host, _written(Path(folder), asked.request), again=again)
    known.pin(asked.name, asked.key, replace=replace)
    return signed


def _enclosed(site: Site, request: Path) -> Path:
    inner = request.read_bytes()
    identity = {
        "name": site.name,
        "key": site.identity.public.hex(),
        "signature": site.identity.sign(_signed_text(site.name, inner)).hex(),
    }
    path = site.folder / f"{site.name}.request.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(_REQUEST, inner)
        file.writestr(_IDENTITY, json.dumps(identity))
    path.chmod(0o600)
    return path


def _signed_text(name: str, request: bytes) -> bytes:
    return _CONTEXT + name.encode() + b"\n" + sha256(request).digest()


def _written(folder: Path, request: bytes) -> Path:
    path = folder / _REQUEST
    path.write_bytes(request)
    return path
