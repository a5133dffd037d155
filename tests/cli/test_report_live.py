"""`cofactor report RUN --live`, as somebody types it who does so for the first time."""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

from tests.cli import worlds
from tests.conftest import Command

SECONDS = 30.0


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of somebody's files, in which they work."""
    monkeypatch.chdir(tmp_path)
    return worlds.write(tmp_path)


@pytest.fixture(autouse=True)
def _serves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever should have been refused, and is served, ends at once."""

    def sleep(_: float) -> None:
        raise AssertionError("it is served")

    monkeypatch.setattr("cofactor.cli.report_live.time", SimpleNamespace(sleep=sleep))


@contextmanager
def watching(*words: object) -> Iterator["subprocess.Popen[str]"]:
    """Type the command in a process of its own, as a shell starts it that lets it ignore Ctrl-C."""
    command = [sys.executable, "-m", "cofactor", "report", *map(str, words), "--live"]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        try:
            yield process
        finally:
            process.kill()


def printed(process: "subprocess.Popen[str]", last: str) -> str:
    """Return what it prints up to a line that begins so."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line.startswith(last):
            return text
    raise AssertionError(f"{text}{process.communicate()[1]}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("private", "--live", "--out", "page.html"), "--live serves a page and writes none"),
        (("private", "--live", "--card", "card.md"), "Leave out --out and --card"),
        (("private", "other", "--live"), "--live watches one training. Name a single RUN"),
        (("private", "private", "--live"), "named twice"),
        (("private", "--port", 8123), "--port says where a page is served. Add --live"),
        (("no/where/private", "--live"), "there is no folder no/where in which private could be"),
        (("private", "--live", "--policy", "polcy.toml"), "there is no file polcy.toml"),
        (("private", "--live", "--policy", "all.csv"), "all.csv"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(
    words: tuple[object, ...], message: str, cofactor: Command, folder: Path
) -> None:
    before = sorted(folder.iterdir())
    done = cofactor("report", *words)
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("port", ["65536", "-1", "many"])
def test_a_port_that_is_none_is_refused(port: str, cofactor: Command) -> None:
    done = cofactor("report", "private", "--live", "--port", port)
    assert (done.code, "--port" in done.err) == (2, True)


def test_a_port_that_is_taken_is_said_to_be(cofactor: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = cofactor("report", "private", "--live", "--port", port, "--json")
    assert done.code == 2
    assert f"--port {port}: 127.0.0.1 cannot be listened on there" in done.json["error"]["message"]


def ended(process: "subprocess.Popen[str]") -> tuple[str, str, int]:
    """Press Ctrl-C; return what else it says, and its exit code."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    return out, err, process.returncode


def page_at(address: str) -> str:
    with urlopen(address, timeout=SECONDS) as answer:
        text: str = answer.read().decode()
        return text


def test_it_says_where_the_page_is_and_ends_with_ctrl_c(folder: Path) -> None:
    before = sorted(folder.iterdir())
    with watching("private") as process:
        said = printed(process, "Ctrl-C ends this page, and not the training.")
        found = re.search(r"private is watched at (http://127\.0\.0\.1:\d+/[\w-]{43}/)$", said, re.MULTILINE)
        assert found is not None, said
        assert "<h1>private</h1>" in page_at(found[1])
        assert ended(process) == ("", "", 130)
    assert sorted(folder.iterdir()) == before


def test_it_listens_where_it_is_told_and_serves_a_finished_run(cofactor: Command, folder: Path) -> None:
    assert cofactor("train", "all.csv", "--epochs", 1, "--quiet", "--out", "pooled").code == 0
    sealed = {path: path.read_bytes() for path in (folder / "pooled").rglob("*") if path.is_file()}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with watching("pooled", "--json", "--port", port) as process:
        told = json.loads(printed(process, "}"))
        assert told["run"] == "pooled"
        assert told["address"].startswith(f"http://127.0.0.1:{port}/")
        page = page_at(told["address"])
        assert ended(process) == ("", "", 130)
    for words in ("Is it private?", "Is it useful?", "What did it cost?", "NOT PRIVATE", "new EventSource"):
        assert words in page
    assert "Stop after this round</button>" not in page
    assert {path: path.read_bytes() for path in sealed} == sealed
    assert cofactor("verify", "pooled").code == 0


def test_no_browser_to_open_it_with_is_said_and_the_page_is_served(
    cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[str, int]] = []

    def show(address: str) -> bool:
        place = Path(address.removeprefix("file://"))
        shown.append((place.read_text(), place.stat().st_mode & 0o777))
        return False

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("webbrowser.open", show)
    monkeypatch.setattr("cofactor.cli.report_live.time", SimpleNamespace(sleep=stop))
    done = cofactor("report", "private", "--live", "--open", "--json")
    assert done.code == 130
    assert "There is no browser to open it with" in done.err
    ((text, mode),) = shown
    assert f"url={done.json['address']}" in text
    assert mode == 0o600  # the address is in it, and with that anybody could stop the training
