"""All that three organisations type, with the engine's real processes, certificates and connections."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.real_parties import free_port
from cofactor.federation.folder import read_facts
from cofactor.privacy.ledger import Ledger
from tests.cli import worlds
from tests.cli.test_network import JOB, LIMITS, NAMES, SCALE

pytestmark = pytest.mark.net


class Shell:
    """Somebody at a shell in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def told(self, *words: object) -> Any:
        """Run a command to its end, and return the object that it prints."""
        done = subprocess.run(
            self._command(*words, "--json"), cwd=self.folder, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def start(self, log: str, *words: object) -> subprocess.Popen[bytes]:
        """Start a command that stays."""
        with (self.folder / log).open("ab") as file:
            process = subprocess.Popen(
                self._command(*words), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )
        self.started.append(process)
        return process

    def wait_for(self, log: str, words: str, seconds: float = 90) -> None:
        """Wait until something stands in a log."""
        until = time.monotonic() + seconds
        while words not in (self.folder / log).read_text():
            assert time.monotonic() < until, (self.folder / log).read_text()
            time.sleep(0.2)

    @staticmethod
    def _command(*words: object) -> list[str]:
        return [sys.executable, "-m", "cofactor", *map(str, words)]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    worlds.write(tmp_path)
    (tmp_path / "items.txt").write_text("".join(f"i{item}\n" for item in worlds.RATINGS.item_ids))
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "limits.toml").write_text(LIMITS)
    found = Shell(tmp_path)
    yield found
    for process in found.started:
        if process.poll() is None:
            process.terminate()
    for process in found.started:
        process.wait(timeout=30)
    assert running_in(tmp_path) == []


def running_in(folder: Path) -> list[str]:
    """Return the processes that were started for a folder and still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(folder) in command:
                found.append(command)
    return found


def enrolled(shell: Shell) -> None:
    """Make keys, have them signed, and pin them."""
    host = shell.told("host", "new", "coop", "--address", "localhost", "--port", free_port())
    marks = {}
    for name in NAMES:
        party = shell.told("join", "new", name)
        marks[name] = party["fingerprint"]
        shell.told("host", "admit", "coop", party["request"], "--fingerprint", party["fingerprint"])
        shell.told("join", "install", name, f"{name}.signed.zip", "--fingerprint", host["fingerprint"])
    for name in NAMES:
        others = [f"--fingerprint={other}={mark}" for other, mark in marks.items() if other != name]
        shell.told("join", "pin", name, "--roster", "coop/parties.toml", *others)


def test_three_organisations_train_through_a_question_and_a_stopped_coordinator(shell: Shell) -> None:
    enrolled(shell)
    shell.told("host", "propose", "coop", "--config", "job.toml")
    planned = shell.told(
        "join", "run", "north", "north.csv", "--scale", "1:5", "--dry-run", "--plan", "plan.json"
    )
    shell.start("north.txt", "join", "run", "north", "north.csv", "--scale", "1:5")
    for name in NAMES[1:]:
        shell.start(f"{name}.txt", "join", "run", name, f"{name}.csv", *SCALE, "--policy", "limits.toml")

    host = shell.start("host.txt", "host", "run", "coop", "--plan", "plan.json", "--out", "runs/first")
    shell.wait_for("north.txt", "A plan waits for an answer")
    host.send_signal(signal.SIGINT)
    assert host.wait(timeout=30) == 130
    assert not (shell.folder / "runs" / "first").exists()

    answers = shell.told("join", "answer", "north", "--yes", "--as", "Ada")["answers"]
    assert answers[0]["proposal"] == planned["proposal"]
    killed = shell.start("killed.txt", "host", "run", "coop", "--resume", "--out", "runs/first")
    shell.wait_for("killed.txt", "job 1 begins")
    killed.kill()
    killed.wait(timeout=30)
    done = shell.start("host.txt", "host", "run", "coop", "--resume", "--out", "runs/first")
    shell.wait_for("host.txt", "parties are there")
    for again in ("join run north", "host run coop --resume"):
        second = subprocess.run(
            shell._command(*again.split()), cwd=shell.folder, capture_output=True, text=True
        )
        assert (second.returncode, "is at work in" in second.stderr) == (1, True), second.stderr
    shell.wait_for("host.txt", "Saved in")
    assert done.wait(timeout=30) == 0
    shell.wait_for("north.txt", "finished 4/4")

    facts = read_facts(shell.folder / "runs" / "first")
    assert set(facts["together"]["parties"]) == set(NAMES)
    assert shell.told("host", "show", "coop")["sessions"] == {planned["session"]: "finished"}
    for name in NAMES:
        ledger = Ledger.open(shell.folder / f"{name}.csv.ledger")
        assert 0 < ledger.spent().epsilon <= 2.0 + 1e-9
        told = shell.told("join", "show", name)
        assert [each["finished"] for each in told["sessions"]] == [True]
        assert [each["who"] for each in told["answers"]] == ["Ada" if name == "north" else "policy.toml"]
