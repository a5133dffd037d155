"""What a coordinator and parties type before and beside the work itself; the engine's processes stay off."""

import json
import os
import pty
import re
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cofactor.cli.network_text import LogTail, alone
from cofactor.data.ratings import Scale
from cofactor.errors import RunError
from cofactor.federation.declining import Declining
from cofactor.figures import fingerprint
from cofactor.network.approval import Approval, approve, decisions, pending
from cofactor.network.pins import Pins
from cofactor.network.processes import check_port
from cofactor.network.proposal import Proposal
from cofactor.network.site import Site
from tests.cli import worlds
from tests.network.test_policy import PLANNED

Command = Any
NAMES = ("north", "south", "west")
JOB = """[federation]
split = "horizontal"
parties = ["north", "south", "west"]
scale = "1:5"
catalogue = "items.txt"
[recipe]
kind = "HorizontalMF"
factors = 2
rounds = 3
[budget]
epsilon = 2
"""
SCALE = ("--scale", "1:5")
LIMITS = """accept = "within limits"
max_epsilon = 4
max_epsilon_per_run = 2
recipes = ["HorizontalMF"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three parties that know each other, and a coordinator that knows them; no certificates."""
    monkeypatch.chdir(tmp_path)
    worlds.write(tmp_path)
    sites = [Site.create(tmp_path / name) for name in NAMES]
    (tmp_path / "coop" / "ca").mkdir(parents=True)
    known = Pins.read(tmp_path / "coop" / "parties.toml")
    for site in sites:
        known.pin(site.name, site.identity.public)
    for site in sites:
        for other in sites:
            if other.name != site.name:
                site.pins.pin(other.name, other.identity.public)
    (tmp_path / "items.txt").write_text("".join(f"i{item}\n" for item in worlds.RATINGS.item_ids))
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "limits.toml").write_text(LIMITS)
    return tmp_path


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_dry_run_shows_plan_bytes_and_epsilon_and_changes_nothing(folder: Path, cofactor: Command) -> None:
    assert cofactor("host", "propose", "coop", "--config", "job.toml").code == 0
    before = tree(folder)
    done = cofactor("join", "run", "north", "north.csv", *SCALE, "--dry-run", "--plan", "plan.json")
    assert done.code == 0, done.err
    for words in (
        "HorizontalMF",
        "epsilon 2",
        r"about [\d,]+ bytes",
        "south, west",
        "a person would be asked",
    ):
        assert re.search(words, done.out), words
    assert "nothing was sent" in done.out
    assert tree(folder) == before


def test_a_dry_run_as_json_tells_what_the_policy_would_say(folder: Path, cofactor: Command) -> None:
    cofactor("host", "propose", "coop", "--config", "job.toml")
    words = ("join", "run", "north", "north.csv", *SCALE, "--dry-run", "--plan", "plan.json", "--json")
    told = cofactor(*words, "--policy", "limits.toml").json
    assert told["proposal"] == Proposal.from_json((folder / "plan.json").read_text()).digest
    assert (told["plan"]["epsilon"], told["asks"], told["refused"], told["sent"]) == (2.0, False, [], 0)
    assert told["plan"]["traffic"] > 0


def test_a_dry_run_of_what_a_limit_refuses_exits_with_1_and_says_why(folder: Path, cofactor: Command) -> None:
    cofactor("host", "propose", "coop", "--config", "job.toml")
    (folder / "strict.toml").write_text("max_epsilon_per_run = 1\n")
    done = cofactor(
        *(
            "join",
            "run",
            "north",
            "north.csv",
            *SCALE,
            "--dry-run",
            "--plan",
            "plan.json",
            "--policy",
            "strict.toml",
        )
    )
    assert done.code == 1
    assert re.search(r"would be refused: .*max_epsilon_per_run = 1", done.out)


def test_a_plan_among_parties_that_are_not_pinned_would_be_refused(folder: Path, cofactor: Command) -> None:
    cofactor("host", "propose", "coop", "--config", "job.toml")
    (folder / "north" / "peers.toml").unlink()
    done = cofactor("join", "run", "north", "north.csv", *SCALE, "--dry-run", "--plan", "plan.json")
    assert done.code == 1
    assert "cofactor join pin" in done.out


@pytest.fixture
def asking(folder: Path) -> Iterator[list[Approval | Declining]]:
    """The party's process, which asks about a plan and waits."""
    site = Site.open(folder / "north")
    keys = {name: key.hex() for name, key in Pins.read(folder / "coop" / "parties.toml").known.items()}
    proposal = Proposal(kind="training", session="ab" * 8, version="1", parties=keys, work={})
    found: list[Approval | Declining] = []

    def ask() -> None:
        try:
            found.append(approve(site, proposal, PLANNED))
        except Declining as refused:
            found.append(refused)

    thread = threading.Thread(target=ask)
    thread.start()
    until = time.monotonic() + 20
    while not pending(site) and time.monotonic() < until:
        time.sleep(0.02)
    yield found
    for each in (folder / "north" / "approvals").glob("*.pending.json"):
        each.unlink()
    thread.join(timeout=20)
    assert not thread.is_alive()


def wait_for(found: list[Any]) -> Any:
    until = time.monotonic() + 20
    while not found and time.monotonic() < until:
        time.sleep(0.02)
    return found[0]


def test_a_yes_from_another_terminal_reaches_the_process_that_waits(
    folder: Path, cofactor: Command, asking: list[Any]
) -> None:
    done = cofactor("join", "answer", "north", "--yes", "--as", "Ada")
    assert done.code == 0, done.err
    assert "HorizontalMF" in done.out
    assert wait_for(asking).who == "Ada"
    told = cofactor("join", "show", "north", "--json").json
    assert [each["who"] for each in told["answers"]] == ["Ada"]
    assert "Ada" in cofactor("join", "show", "north").out
    assert cofactor("join", "answer", "north", "--yes").code == 2


def test_a_no_reaches_it_as_well(folder: Path, cofactor: Command, asking: list[Any]) -> None:
    told = cofactor("join", "answer", "north", "--no", "--json").json
    assert told["answers"][0]["approved"] is False
    assert wait_for(asking).code == "not approved"


def test_without_a_terminal_nothing_counts_as_a_yes(
    folder: Path, cofactor: Command, asking: list[Any]
) -> None:
    done = cofactor("join", "answer", "north")
    assert done.code == 2
    assert "--yes or --no" in done.err
    assert decisions(Site.open(folder / "north")) == []


def at_terminal(folder: Path, typed: bytes, *words: str) -> str:
    """Run a command at a real terminal, where somebody types; return what stood there."""
    ours, theirs = pty.openpty()
    code = "from cofactor.cli import main; main()"
    command = [sys.executable, "-c", code, *words]
    process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, typed)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    process.wait(timeout=20)
    os.close(ours)
    return shown.decode()


def test_at_a_terminal_only_the_word_yes_is_a_yes(folder: Path, asking: list[Any]) -> None:
    shown = at_terminal(folder, b"y\nok\nyes\n", "join", "answer", "north", "--as", "Ada")
    assert shown.count("Type yes or no.") == 2
    assert wait_for(asking).who == "Ada"


def test_a_key_is_pinned_only_with_its_fingerprint_compared(folder: Path, cofactor: Command) -> None:
    (folder / "north" / "peers.toml").unlink()
    key = Site.open(folder / "south").identity.public
    words = ("join", "pin", "north", f"south={key.hex()}")
    assert cofactor(*words).code == 2
    wrong = cofactor(*words, "--fingerprint", "south=" + fingerprint(b"\0" * 32))
    assert (wrong.code, "Do not go on" in wrong.err) == (1, True)
    assert Site.open(folder / "north").pins.known == {}
    done = cofactor(*words, "--fingerprint", f"south={fingerprint(key)}", "--json")
    assert done.json == {"pinned": {"south": key.hex()}}


def test_a_roster_of_the_coordinator_is_confirmed_key_by_key(folder: Path) -> None:
    (folder / "north" / "peers.toml").unlink()
    at_terminal(folder, b"yes\nno\n", "join", "pin", "north", "--roster", "coop/parties.toml")
    assert list(Site.open(folder / "north").pins.known) == ["south"]


def test_what_a_party_brings_is_written_down_before_it_starts(folder: Path, cofactor: Command) -> None:
    (folder / "people.csv").write_text("id,age\na,30\nb,40\n")
    done = cofactor(
        *("join", "run", "north", "north.csv", *SCALE, "--duplicates", "last", "--policy", "limits.toml"),
        *("--people", "people.csv", "--column", "age", "--missing", "skip"),
        *("--records", "people.csv", "--range", "age=0:120", "--id", "id"),
    )
    assert done.code == 2
    assert "cofactor join install" in done.err
    site = Site.open(folder / "north")
    assert site.ratings is not None
    assert site.ratings.duplicates == "last"
    assert site.party(Scale(1, 5)).ratings.user_count > 0
    assert len(site.people().values) == 2
    assert site.records().columns == ("age",)
    assert site.policy.accept == "within limits"


MISTAKES = [
    ("join new north", 1, "already is a party's folder"),
    ("join show nowhere", 2, "cofactor join new"),
    ("join run north", 2, "name the data"),
    ("join run north nowhere.csv --scale 1:5", 2, "nowhere.csv is not there"),
    ("join run north --dry-run", 2, "name the data"),
    ("join run north north.csv --scale 1:5 --dry-run", 2, "go together"),
    ("join run north north.csv --scale 1:5 --dry-run --plan north.csv", 2, "no proposal"),
    ("join run north north.csv --scale 1-5", 2, "must look like 1:5"),
    ("join run north north.csv", 2, "ratings need their scale"),
    ("join run north north.csv --scale 1:5 --implicit", 2, "rows without values need --implicit instead"),
    ("join run north --user u", 2, "--user: say that together with the file"),
    ("join run north --people north.csv", 2, "needs --column"),
    ("join run north --column age", 2, "go with --people"),
    ("join run north --records north.csv", 2, "--range age=0:120"),
    ("join run north --records north.csv --range age", 2, "must look like age=0:120"),
    ("join run north north.csv --scale 1:5 --policy job.toml", 2, 'has "federation"'),
    ("join pin north", 2, "south=KEY"),
    ("join pin north south", 2, "must look like south="),
    ("join pin north south=abc", 2, "64 hexadecimal digits"),
    ("join pin north --roster nowhere.toml", 2, "parties.toml"),
    ("join answer north --yes", 2, "no plan waits"),
    ("join install north nowhere.zip --fingerprint SHA256:00", 2, "nowhere.zip is not there"),
    ("host propose nowhere --config job.toml", 2, "cofactor host new nowhere"),
    ("host propose coop", 2, "--config job.toml"),
    ("host propose coop --config nowhere.toml", 2, "cannot be read"),
    ("host propose coop --config limits.toml", 2, 'has "accept"'),
    ("host run coop", 2, "name one: --config"),
    ("host run coop --config job.toml --resume", 2, "name one: --config"),
    ("host run coop --resume", 2, "no session to go on with"),
    ("host run coop --config job.toml --session ab", 2, "--session goes with --resume"),
    ("host run coop --config job.toml --out coop", 2, "is not a run folder"),
    ("host run coop --config job.toml --fewest 9", 2, "--fewest must lie between 1 and 3"),
    ("join pin north --roster coop/parties.toml --fingerprint soth=12", 2, 'Did you mean "south"'),
    ("host admit coop nowhere.zip", 2, "nowhere.zip is not there"),
    ("host admit coop north.csv", 2, "no party's request"),
    ("host revoke coop nord", 2, 'Did you mean "north"'),
]


@pytest.mark.parametrize(("words", "code", "told"), MISTAKES, ids=[each[0] for each in MISTAKES])
def test_a_mistake_is_told_with_what_to_do(
    folder: Path, cofactor: Command, words: str, code: int, told: str
) -> None:
    done = cofactor(*words.split())
    assert re.search(told, done.err), done.err
    assert done.code == code


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("host run coop --config job.toml", "coop"),
        ("join run north north.csv --scale 1:5", "north"),
    ],
)
def test_a_second_command_in_one_folder_is_refused(
    folder: Path, cofactor: Command, words: str, place: str
) -> None:
    (folder / "north" / "kit" / "startup").mkdir(parents=True)
    with alone(folder / place, "the first one"):
        done = cofactor(*words.split())
    assert (done.code, f"is at work in {place}" in done.err.replace(f"{folder}/", "")) == (1, True), done.err
    assert not (folder / "coop" / "sessions").exists()


def test_a_port_that_somebody_else_has_is_named(folder: Path) -> None:
    startup = folder / "coop" / "server" / "startup"
    startup.mkdir(parents=True)
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        service = {"servers": [{"service": {"target": f"localhost:{port}"}}]}
        (startup / "fed_server.json").write_text(json.dumps(service))
        with pytest.raises(RunError, match=f"port {port} cannot be used"):
            check_port(folder / "coop", patience=0.3)
    check_port(folder / "coop")


def test_a_partys_log_is_shown_as_it_grows_and_when_it_is_begun_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cofactor.log"
    path.write_text("before\n")
    tail = LogTail(path)
    with path.open("a") as file:
        file.write("refused\nhalf")
    tail.show()
    assert capsys.readouterr().err == "refused\n"
    path.write_text("anew\n")
    tail.show()
    assert capsys.readouterr().err == "anew\n"


@pytest.mark.parametrize(
    "words",
    ["host new other --address localhost", "join new other", "join run north north.csv --scale 1:5"],
)
def test_a_missing_engine_is_told_with_the_line_that_installs_it(
    folder: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setitem(sys.modules, "nvflare", None)
    done = cofactor(*words.split())
    assert done.code == 2
    assert re.search(r"pip install 'nvflare.*pip install '\.\[net\]'", done.err)
    assert not (folder / "other").exists()


@pytest.mark.slow
def test_keys_are_made_at_the_site_and_signed_by_the_coordinator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cofactor: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    host = cofactor("host", "new", "coop", "--address", "localhost", "--port", 8002, "--json").json
    party = cofactor("join", "new", "north", "--json").json
    secrets = {
        path.read_bytes() for path in (tmp_path / "north").rglob("*") if path.suffix in (".pem", ".key")
    }
    with zipfile.ZipFile(party["request"]) as request:
        sent = b"".join(request.read(name) for name in request.namelist())
    assert secrets
    assert b"PRIVATE" not in sent
    assert cofactor("host", "admit", "coop", party["request"]).code == 2
    other = cofactor("host", "admit", "coop", party["request"], "--fingerprint", "0000")
    assert other.code == 1
    mark = ("--fingerprint", party["fingerprint"])
    signed = cofactor("host", "admit", "coop", party["request"], *mark, "--json").json
    assert signed["coordinator"] == host["fingerprint"]
    foreign = cofactor(
        "join", "install", "north", "north.signed.zip", "--fingerprint", "SHA256:" + "00:" * 31 + "00"
    )
    assert foreign.code != 0
    assert not (tmp_path / "north" / "kit").exists()
    coordinator = ("--fingerprint", host["fingerprint"])
    installed = cofactor("join", "install", "north", "north.signed.zip", *coordinator, "--json").json
    shown = cofactor("host", "show", "coop", "--json").json
    assert shown["certificates"]["north"] == installed["expires"]
    assert shown["parties"] == {"north": {"fingerprint": party["fingerprint"], "revoked": False}}
    renewed = cofactor("join", "renew", "north", "--json").json["request"]
    assert cofactor("host", "admit", "coop", renewed, *mark).code == 1
    assert cofactor("host", "admit", "coop", renewed, *mark, "--again").code == 0
    assert cofactor("join", "install", "north", "north.signed.zip", *coordinator).code == 0
    lost = cofactor("join", "new", "north-again", "--name", "north", "--json").json
    anew = ("host", "admit", "coop", lost["request"], "--fingerprint", lost["fingerprint"], "--again")
    assert cofactor(*anew).code == 1
    assert (
        cofactor("host", "show", "coop", "--json").json["parties"]["north"]["fingerprint"]
        == party["fingerprint"]
    )
    assert cofactor(*anew, "--replace").code == 0
    assert (
        cofactor("host", "show", "coop", "--json").json["parties"]["north"]["fingerprint"]
        == lost["fingerprint"]
    )
    assert cofactor("host", "revoke", "coop", "north").code == 0
    assert cofactor("host", "show", "coop", "--json").json["parties"]["north"]["revoked"]
    assert cofactor(*anew).code == 1


def test_a_request_whose_identity_was_exchanged_is_refused(
    folder: Path, cofactor: Command, tmp_path: Path
) -> None:
    thief = Site.open(folder / "south").identity
    identity = {"name": "north", "key": thief.public.hex(), "signature": thief.sign(b"something").hex()}
    with zipfile.ZipFile(tmp_path / "north.request.zip", "w") as file:
        file.writestr("request.zip", b"not looked at before the signature")
        file.writestr("identity.json", json.dumps(identity))
    done = cofactor("host", "admit", "coop", tmp_path / "north.request.zip", "--fingerprint", "0000")
    assert (done.code, "did not sign" in done.err) == (1, True)
