"""The engine itself, with messages that are only echoed: real processes, certificates and crashes."""

import datetime
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat
from cryptography.x509.oid import NameOID

from benchmarks.real_parties import ROOT, RealParties, in_background
from cofactor.errors import RunError
from cofactor.federation.flare import Patience
from cofactor.network import kits, watching
from cofactor.network.jobs import Apps, Submitter, write_job
from cofactor.network.patience import write_patience
from cofactor.network.supervising import Waiting, supervise
from tests.network.flare_apps import PARTIES, WAIT
from tests.network.waiting import wait_for

pytestmark = pytest.mark.net
ECHO = Apps(
    coordinator="tests.network.flare_apps.EchoCoordinator", party="tests.network.flare_apps.EchoParty"
)


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealParties]:
    """Three parties, and a server that allows everything: whatever is refused, the parties refuse."""
    folder = tmp_path_factory.mktemp("federation")
    nothing = dict.fromkeys(PARTIES, ())
    warm = RealParties(folder, nothing, party_classes=("tests.network.flare_apps.",))
    local = warm.host / "server" / "local"
    change(local / "resources.json", lambda table: table.update(class_allow_list=["*"]))
    change(local / "authorization.json", lambda table: table["permissions"]["lead"].update(byoc="any"))
    with warm:
        yield warm


def change(path: Path, how: Callable[[dict[str, Any]], None]) -> None:
    table = json.loads(path.read_text())
    how(table)
    path.write_text(json.dumps(table))


def echo_run(folder: Path, asks: Sequence[str]) -> Path:
    """Write down what the coordinator of a test asks."""
    folder.mkdir(parents=True)
    (folder / "asks.json").write_text(json.dumps(list(asks)))
    return folder


def echoed(
    federation: RealParties, run: Path, *, fewest: int = len(PARTIES), patience: Patience | None = None
) -> Mapping[str, Any]:
    """See a run through in which parties answer with what they were sent."""
    write_patience(run, patience or Patience())
    return supervise(
        federation.host,
        run,
        parties=PARTIES,
        fewest=fewest,
        server=federation.server,
        waiting=Waiting(come=120.0, again=10),
        apps=ECHO,
    )


def told(run: Path) -> list[dict[str, Any]]:
    """Return what the coordinator of a test was told."""
    path = run / "answers.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_messages_go_round_and_what_goes_wrong_at_a_party_stays_there(
    federation: RealParties, tmp_path: Path
) -> None:
    run = echo_run(tmp_path / "run", ["hello", "fail now", "call a neighbour", "hello again"])
    assert echoed(federation, run) == {"outcome": "finished"}
    first, failed, called, last = told(run)
    assert first["answers"] == {party: f"{party}:hello" for party in PARTIES}
    assert failed["answers"] == {}
    assert set(failed["missing"]) == set(PARTIES)
    assert "rating" not in str(failed)
    assert all('"code":"failed"' in answer for answer in called["answers"].values())
    assert set(called["answers"]) == set(PARTIES)
    assert last["missing"] == {}
    consoles = [federation.folder / party / "kit" / "console.txt" for party in PARTIES]
    assert all(b"ValueError at" in console.read_bytes() for console in consoles)
    assert not any(b"rating 4.5" in console.read_bytes() for console in consoles)


def test_dead_party_is_missing_after_the_patience_and_joins_again_once_it_is_back(
    federation: RealParties, tmp_path: Path
) -> None:
    run = echo_run(tmp_path / "run", ["hello", "sleep 3", "hello", WAIT])
    quick = Patience(ping_every=0.5, ping_patience=2.0)
    thread, found = in_background(lambda: echoed(federation, run, fewest=2, patience=quick))
    wait_for(lambda: (run / "asking-1").exists())
    federation.clients["east"].stop()
    wait_for(lambda: (run / "asking-3").exists())
    federation.clients["east"].start()
    thread.join(90)
    assert found == {"outcome": "finished"}
    _, dead, after, back = told(run)
    assert dead["missing"] == {"east": "showed no sign of life for 2 s"}
    assert set(dead["answers"]) == {"north", "south"}
    assert after["missing"] == {"east": "was not reached"}
    assert after["seconds"] < 1.5
    assert back["missing"] == {}
    assert back["process"] != after["process"]


def test_run_goes_on_after_a_worker_crashed_and_after_the_server_was_killed(
    federation: RealParties, tmp_path: Path
) -> None:
    run = echo_run(tmp_path / "run", ["sleep 2", "hello", "sleep 2", "hello"])
    thread, found = in_background(lambda: echoed(federation, run))
    wait_for(lambda: (run / "asking-0").exists())
    for worker in federation.clients["south"].workers:
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: (run / "asking-2").exists())
    federation.server.crash()
    thread.join(120)
    assert found == {"outcome": "finished"}
    assert [set(line["answers"]) for line in told(run)[1:]] == [set(PARTIES)] * 3


def test_coordinator_that_fails_again_and_again_is_not_begun_for_ever(
    federation: RealParties, tmp_path: Path
) -> None:
    run = echo_run(tmp_path / "run", ["break"])
    with pytest.raises(RunError, match=r"the coordinator failed: the coordinator broke\. See log\.txt"):
        echoed(federation, run)


def test_party_runs_no_code_that_a_job_brings_and_no_class_that_it_did_not_allow(
    federation: RealParties, tmp_path: Path
) -> None:
    mark = tmp_path / "was here"
    (tmp_path / "named").mkdir()
    (tmp_path / "brought").mkdir()
    named = intruder_job(tmp_path / "named" / "job", "tests.network.flare_intruder.Intruder", mark)
    brought = intruder_job(tmp_path / "brought" / "job", "flare_intruder.Intruder", mark)
    custom = brought / "app" / "custom"
    custom.mkdir()
    shutil.copy(ROOT / "tests" / "network" / "flare_intruder.py", custom)
    with Submitter(federation.host) as session:
        wait_for(lambda: set(session.registered()) == set(PARTIES))
        jobs = [session._session.submit_job(str(job)) for job in (named, brought)]
        wait_for(lambda: all(session.status(job).startswith("FINISHED") for job in jobs))
        assert all(session.status(job) != "FINISHED:COMPLETED" for job in jobs)
    assert not mark.exists()


def intruder_job(folder: Path, name: str, mark: Path) -> Path:
    write_job(folder, PARTIES, apps=Apps(coordinator=ECHO.coordinator, party=name))

    def aim(table: dict[str, Any]) -> None:
        table["components"][0]["args"] = {"mark": str(mark)}

    change(folder / "app" / "config" / "config_fed_client.json", aim)
    return folder


def test_server_speaks_only_to_certificates_of_its_own_authority(
    federation: RealParties, tmp_path: Path
) -> None:
    startup = federation.folder / "north" / "kit" / "startup"
    own = (startup / "client.crt", startup / "client.key")
    assert spoken_to(federation, own)
    assert not spoken_to(federation, None)
    assert not spoken_to(federation, foreign_certificate(tmp_path, "north"))


def spoken_to(federation: RealParties, certificate: tuple[Path, Path] | None) -> bool:
    """Say whether the server answers the first bytes of a client."""
    context = ssl.create_default_context(cafile=federation.host / "ca" / "rootCA.pem")

    context.set_alpn_protocols(["h2"])
    if certificate is not None:
        context.load_cert_chain(*certificate)
    hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    host, port = federation.server.address
    try:
        with (
            socket.create_connection((host, port), timeout=5) as raw,
            context.wrap_socket(raw, server_hostname=host) as connection,
        ):
            connection.sendall(hello)
            return bool(connection.recv(1))
    except (ssl.SSLError, ConnectionError):
        return False


def foreign_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a certificate that nobody signed but its holder."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (folder / "it.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "it.key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "it.crt", folder / "it.key"


def test_revoked_party_is_shut_out_at_once_and_does_not_come_back(federation: RealParties) -> None:
    with Submitter(federation.host) as session:
        wait_for(lambda: "east" in session.registered())
        session.shut_out("east")
        assert "east" not in session.registered()
    assert kits.revoked(federation.host) == ("east",)
    federation.clients["east"].stop()
    federation.clients["east"].start()
    console = federation.folder / "east" / "kit" / "console.txt"
    tried = console.read_bytes().count(b"is disabled")
    wait_for(lambda: console.read_bytes().count(b"is disabled") > tried)
    with Submitter(federation.host) as session:
        assert set(session.registered()) == {"north", "south"}


def test_nothing_is_left_running_when_whoever_started_it_is_killed(tmp_path: Path) -> None:
    kits.new_host(tmp_path, address="localhost", port=1)
    code = (
        "import sys, time; from pathlib import Path; from cofactor.network.processes import Server\n"
        "server = Server(Path(sys.argv[1])); server.start(); print(server._mark, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        mark = parent.stdout.readline().strip()
        wait_for(lambda: watching.marked(mark))
        parent.kill()
        wait_for(lambda: not watching.marked(mark), seconds=10)
