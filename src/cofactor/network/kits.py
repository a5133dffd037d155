"""Keys, certificates and kits. Every private key is made where it is used, and never leaves that machine.

The coordinator signs what parties request. Its own certificate is the root of trust for the connection, so
people compare its fingerprint out of band. Who a party is to the others does not hang on it: that, identity
keys say, which parties pin themselves.
"""

import datetime
import json
import re
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cofactor.errors import ConfigError, Refused, RunError
from cofactor.network.kit_policies import OUR_CLASSES, write_party_policy, write_server_policy
from cofactor.network.provisioning import run_command

SUBMITTER: Final = "lead@cofactor.local"
"""The name under which the coordinator submits."""
KIT: Final = "kit"
"""The folder of a party's kit, inside the party's own."""
DAYS: Final = 365
"""For how long a certificate is valid."""

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{1,38}[a-z0-9]")
_ORGANISATION: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,39}")
_TAKEN: Final = ("server", "true", "false", "yes", "off", "lead")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a party asks the coordinator to sign: shown to people before they do."""

    name: str
    organisation: str
    project: str
    key: str
    """The fingerprint of its public key, to be compared out of band."""


def new_host(
    folder: Path,
    *,
    address: str,
    port: int,
    project: str = "cofactor",
    classes: Sequence[str] = OUR_CLASSES,
    days: int = DAYS,
) -> str:
    """Make the coordinator's certificate authority, server and submitter; return the fingerprint to pass on.

    Parties reach the server under `address`, by one TCP port. `ca/rootCA.key` is the crown jewel: whoever has
    it can admit anybody. Keep a copy offline.
    """
    _check_name(project, "project")
    if (folder / "ca" / "rootCA.key").exists():
        raise Refused(f"{folder} has a certificate authority already. Use another folder, or keep this one.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    server = {"host": address, "fed_learn_port": port, "admin_port": port}
    profile = {"name": project, "scheme": "grpc", "connection_security": "mtls", "server": server}
    _write(folder / "profile.yaml", profile)
    _run(folder, ["cert", "init", "--profile", "profile.yaml", "-o", "ca"])
    organisation = project.replace("-", "_")
    ports = {"fed_learn_port": port, "admin_port": port}
    asked: dict[str, dict[str, Any]] = {
        "server": {"name": address, "org": organisation, "type": "server", **ports},
        "submitter": {"name": SUBMITTER, "org": organisation, "type": "admin", "role": "lead"},
    }
    for kind, participant in asked.items():
        _own_kit(folder, kind, project, participant, days)
    write_server_policy(folder / "server", site=folder / "run", classes=classes)
    return fingerprint(folder)


def fingerprint(host: Path) -> str:
    """Return the fingerprint of the coordinator's certificate authority."""
    return str(json.loads((host / "ca" / "ca.json").read_text())["rootCA_fingerprint"])


def request(
    folder: Path, name: str, organisation: str, *, project: str = "cofactor", again: bool = False
) -> Path:
    """Make a party's key, and the request that goes to the coordinator; the key is not in it."""
    _check_name(name, "a party's name")
    if not _ORGANISATION.fullmatch(organisation) or organisation in _TAKEN:
        raise ConfigError(f"an organisation is letters, digits and _, at most 40; got {organisation!r}.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    participant = {"name": name, "org": organisation, "type": "client"}
    return _request(folder, participant, project, again=again)


def read_request(request_zip: Path) -> Request:
    """Return what is asked for; refuse everything but a party."""
    try:
        with zipfile.ZipFile(request_zip) as file:
            asked = json.loads(file.read("request.json"))
        found = Request(
            name=asked["name"],
            organisation=asked["org"],
            project=asked["project"],
            key=asked["public_key_sha256"],
        )
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        raise RunError(f"{request_zip} is no request. Ask the party to make it again.") from None
    if asked.get("kind") != "site" or asked.get("cert_type") != "client" or asked.get("cert_role"):
        raise Refused(f"{request_zip} asks for more than a party's certificate. Do not sign it.")
    _check_name(found.name, "a party's name")
    return found


def admit(host: Path, request_zip: Path, *, again: bool = False, days: int = DAYS) -> Path:
    """Sign a party's request; return the file that goes back to it. `again` renews a certificate."""
    asked = read_request(request_zip)
    if asked.name in revoked(host):
        raise Refused(f"{asked.name} was revoked, and its old certificate may live on. Take another name.")
    signed = host / "admitted" / f"{asked.name}.signed.zip"
    if signed.exists() and not again:
        raise Refused(
            f"{asked.name} was admitted before. If it asks for a new certificate, sign once more: --again "
            "(and --replace, if its identity is new)."
        )
    return _approve(host, request_zip, signed, days)


def install(
    folder: Path, signed_zip: Path, *, fingerprint: str, classes: Sequence[str] = OUR_CLASSES
) -> Path:
    """Put a party's kit together, with our policies in it; refuse a coordinator of another fingerprint."""
    kit = folder / KIT
    _package(folder, signed_zip, fingerprint, kit)
    write_party_policy(kit, site=folder, classes=classes)
    return kit


def renew(folder: Path) -> Path:
    """Make a new key and request for an installed party; the old kit works until the new one is installed."""
    asked = json.loads((folder / "request" / "request.json").read_text())
    return request(folder, asked["name"], asked["org"], project=asked["project"], again=True)


def expires(kit: Path) -> datetime.datetime:
    """Return when the certificate of a kit ends."""
    from cryptography import x509

    for name in ("client.crt", "server.crt"):
        path = kit / "startup" / name
        if path.exists():
            return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    raise RunError(f"{kit} holds no certificate. Install the kit again.")


def revoked(host: Path) -> tuple[str, ...]:
    """Return whom the server no longer lets in."""
    path = host / "server" / "disabled_clients.json"
    return tuple(json.loads(path.read_text())["disabled_clients"]) if path.exists() else ()


def revoke(host: Path, name: str) -> None:
    """Let a party in no more, from the server's next start on; a running server is told by `jobs.shut_out`.

    NVIDIA FLARE 2.9 has no list of revoked certificates: the connection itself is still accepted, and the
    server refuses the name at registration and at each sign of life. A name once revoked is never given
    again. If the certificate authority's own key has leaked, only a new one helps: a new host folder.
    """
    _check_name(name, "a party's name")
    names = sorted({*revoked(host), name})
    _write(host / "server" / "disabled_clients.json", {"disabled_clients": names})


def _own_kit(host: Path, kind: str, project: str, participant: dict[str, Any], days: int) -> None:
    """Make a kit on the coordinator's own machine, by the same steps as a party's."""
    folder = host / "own" / kind
    signed = folder / "own.signed.zip"
    folder.mkdir(parents=True, exist_ok=True)
    _approve(host, _request(folder, participant, project, again=False), signed, days)
    _package(folder, signed, fingerprint(host), host / kind)


def _request(folder: Path, participant: dict[str, Any], project: str, *, again: bool) -> Path:
    _write(folder / "participant.yaml", {"name": project, "participants": [participant]})
    command = ["cert", "request", "-p", "participant.yaml", "--out", "request"]
    said = _run(folder, [*command, *(["--force"] if again else [])])
    return Path(said["request_zip"])


def _approve(host: Path, request_zip: Path, signed: Path, days: int) -> Path:
    signed.parent.mkdir(parents=True, exist_ok=True)
    out = ["--out", str(signed.resolve()), "--valid-days", str(days), "--force"]
    command = ["cert", "approve", str(request_zip.resolve()), "-c", "ca", "--profile", "profile.yaml", *out]
    _run(host, command)
    return signed


def _package(folder: Path, signed_zip: Path, expected: str, kit: Path) -> None:
    """Build a kit beside the old one, and only then put its certificate and key into place."""
    options = ["--request-dir", "request", "--fingerprint", expected, "-w", "building", "--force"]
    _run(folder, ["package", str(signed_zip.resolve()), *options])
    (built,) = (folder / "building").glob("*/prod_*/*/startup")
    if kit.exists():
        shutil.rmtree(kit / "startup")
        shutil.move(built, kit / "startup")
    else:
        shutil.move(built.parent, kit)
    shutil.rmtree(folder / "building")


def _run(folder: Path, command: Sequence[str]) -> dict[str, Any]:
    """Run one command in a folder; what it notes for itself goes to `.flare` there."""
    return run_command(command, at=folder, home=folder / ".flare")


def _check_name(name: str, what: str) -> None:
    """Refuse what FLARE would read as a number or a switch, and what could leave a folder."""
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise ConfigError(
            f"{what} must be 3 to 40 small letters, digits and hyphens, beginning with a letter, and none of "
            f"{', '.join(_TAKEN)}; got {name!r}."
        )


def _write(path: Path, content: dict[str, Any]) -> None:
    """Write JSON, which is YAML as well."""
    path.write_text(json.dumps(content, indent=2) + "\n")
