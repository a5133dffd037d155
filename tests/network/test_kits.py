"""Keys stay where they are made, the coordinator signs parties only, and our policies are in every kit."""

import datetime
import json
import stat
import zipfile
from pathlib import Path

import pytest

from cofactor.errors import ConfigError, Refused, RunError
from cofactor.network import kits
from cofactor.network.kit_policies import OUR_CLASSES, read_site


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("host")
    kits.new_host(folder, address="localhost", port=8002)
    return folder


@pytest.fixture(scope="module")
def party(host: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("north")
    signed = kits.admit(host, kits.request(folder, "north", "north_shops"))
    kits.install(folder, signed, fingerprint=kits.fingerprint(host))
    return folder


def contents(path: Path) -> bytes:
    with zipfile.ZipFile(path) as file:
        return b"".join(file.read(name) for name in file.namelist())


def test_no_private_key_travels(host: Path, party: Path) -> None:
    for path in (party / "request" / "north.request.zip", host / "admitted" / "north.signed.zip"):
        assert b"PRIVATE" not in contents(path)
        assert b"BEGIN CERTIFICATE" in contents(path)
    key = (party / "request" / "north.key").read_bytes()
    assert b"PRIVATE" in key
    assert not any(file.is_file() and key in file.read_bytes() for file in host.rglob("*"))
    assert stat.S_IMODE((party / "kit" / "startup" / "client.key").stat().st_mode) == 0o600


def test_request_shows_who_asks_and_with_which_key(party: Path) -> None:
    asked = kits.read_request(party / "request" / "north.request.zip")
    assert (asked.name, asked.organisation, asked.project) == ("north", "north_shops", "cofactor")
    assert len(asked.key) == 64


def test_party_allows_our_classes_no_code_and_no_looking_in(party: Path) -> None:
    local = party / "kit" / "local"
    resources = json.loads((local / "resources.json").read_text())
    assert resources["class_allow_list"] == list(OUR_CLASSES)
    assert resources["class_list_enforcement_mode"] == "enforce"
    assert resources["allow_log_streaming"] is False
    assert "site_log_streamer" not in {part["id"] for part in resources["components"]}
    roles = json.loads((local / "authorization.json").read_text())["permissions"]
    assert set(roles) == {"project_admin", "org_admin", "lead", "member"}
    for rights in roles.values():
        for right in ("byoc", "shell_commands", "view", "operate", "download_job"):
            assert rights[right] == "none"
    assert {right for right, who in roles["lead"].items() if who != "none"} == {"submit_job", "manage_job"}
    assert read_site(party / "kit") == party.resolve()


def test_logs_are_rotated(party: Path) -> None:
    config = json.loads((party / "kit" / "local" / "log_config.json").read_text())
    files = [handler for handler in config["handlers"].values() if "filename" in handler]
    assert files
    assert all(handler["backupCount"] and handler["maxBytes"] <= 5_000_000 for handler in files)


def test_server_keeps_its_jobs_in_its_own_folder(host: Path) -> None:
    text = (host / "server" / "local" / "resources.json").read_text()
    assert "/tmp/nvflare" not in text
    assert str(host / "server" / "storage" / "jobs") in text


def test_request_for_more_than_a_party_is_not_signed(host: Path, tmp_path: Path) -> None:
    """A request that names a role, made as the coordinator's own was made."""
    (tmp_path / "server").mkdir()
    lead = kits._request(
        tmp_path,
        {"name": "eve@shops.org", "org": "shops", "type": "admin", "role": "lead"},
        "cofactor",
        again=False,
    )
    with pytest.raises(Refused, match="asks for more than a party"):
        kits.admit(host, lead)
    server = kits._request(
        tmp_path / "server", {"name": "localhost", "org": "shops", "type": "server"}, "cofactor", again=False
    )
    with pytest.raises(Refused, match="asks for more than a party"):
        kits.admit(host, server)


def test_request_whose_cover_was_changed_is_not_signed(host: Path, tmp_path: Path) -> None:
    """The cover says that it is a party; what is to be signed says that it is a lead."""
    path = kits._request(
        tmp_path,
        {"name": "eve@shops.org", "org": "shops", "type": "admin", "role": "lead"},
        "cofactor",
        again=False,
    )
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    cover = json.loads(parts["request.json"])
    cover |= {"kind": "site", "cert_type": "client", "cert_role": None, "name": "eve"}
    with zipfile.ZipFile(path, "w") as file:
        for name, content in {**parts, "request.json": json.dumps(cover).encode()}.items():
            file.writestr(name.replace("eve@shops.org", "eve"), content)
    with pytest.raises(RunError):
        kits.admit(host, path)


def test_name_is_admitted_once_unless_people_say_so(host: Path, party: Path, tmp_path: Path) -> None:
    assert (party / "kit").exists()
    stranger = kits.request(tmp_path, "north", "north_shops")
    with pytest.raises(Refused, match="was admitted before"):
        kits.admit(host, stranger)


def test_other_fingerprint_is_refused(host: Path, party: Path, tmp_path: Path) -> None:
    assert (party / "kit").exists()
    wrong = "SHA256:" + ":".join(["00"] * 32)
    with pytest.raises(RunError, match="ingerprint"):
        kits.install(party, host / "admitted" / "north.signed.zip", fingerprint=wrong)


@pytest.mark.slow
def test_certificate_is_renewed_with_a_new_key(host: Path, tmp_path: Path) -> None:
    signed = kits.admit(host, kits.request(tmp_path, "south", "south_shops"), days=10)
    kit = kits.install(tmp_path, signed, fingerprint=kits.fingerprint(host))
    soon, key = kits.expires(kit), (kit / "startup" / "client.key").read_bytes()
    assert soon < datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=11)
    kits.install(
        tmp_path,
        kits.admit(host, kits.renew(tmp_path), again=True),
        fingerprint=kits.fingerprint(host),
    )
    assert kits.expires(kit) > soon
    assert (kit / "startup" / "client.key").read_bytes() != key
    assert read_site(kit) == tmp_path.resolve()


def test_revoked_name_is_never_given_again(host: Path, tmp_path: Path) -> None:
    kits.revoke(host, "west")
    assert kits.revoked(host) == ("west",)
    with pytest.raises(Refused, match="was revoked"):
        kits.admit(host, kits.request(tmp_path, "west", "west_shops"))


@pytest.mark.parametrize("name", ["1", "42", "true", "server", "../north", "North", "a b", ""])
def test_name_that_the_engine_would_misread_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a party's name must be"):
        kits.request(tmp_path, name, "north_shops")
