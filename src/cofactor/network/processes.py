"""Starts and stops the engine's processes: the coordinator's server, and a party's client.

    with Server(host_folder) as server, Client(party_folder) as client:
        ...

Nothing is left running: what the engine starts is ended with it, also if this process is killed.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final, Self

from cofactor.errors import RunError
from cofactor.network import watching
from cofactor.network.kit_policies import HEART_BEAT
from cofactor.network.kits import KIT

CONSOLE: Final = "console.txt"
"""Where a process of the engine writes what it would show to people."""
_CONSOLE_BYTES: Final = 5_000_000
_KEPT_JOBS: Final = 20
_JOB: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class EngineProcess:
    """One process of the engine, with all that it starts; its output goes to `console.txt` in the kit."""

    module = ""
    config = ""

    def __init__(self, kit: Path, *, environment: Mapping[str, str] | None = None) -> None:
        """Take a kit; nothing is started yet."""
        self.kit = kit
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None
        self._mark = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Whether it is."""
        return self._process is not None and self._process.poll() is None

    @property
    def process(self) -> int:
        """The number of the process that was started."""
        if self._process is None:
            raise RunError(f"{self.kit} was not started.")
        return self._process.pid

    @property
    def workers(self) -> list[int]:
        """The numbers of the processes that run a job."""
        return [number for number in watching.marked(self._mark) if number not in self._own()]

    @property
    def memory(self) -> int:
        """How many bytes of memory those take."""
        return sum(_memory(number) for number in self.workers)

    def start(self) -> None:
        """Start it. It looks for the server until it finds it."""
        if self.running:
            return
        _tidy(self.kit)
        self._mark = secrets.token_hex(16)
        mark = {watching.NAME: self._mark}
        with (self.kit / CONSOLE).open("ab") as console:
            self._watch = self._started(
                [str(watching.__file__), self._mark], console, {}, stdin=subprocess.PIPE
            )
            self._process = self._started(self._command(), console, mark, stdin=subprocess.DEVNULL)

    def stop(self) -> None:
        """End it, and all that it started, at once."""
        if self._mark and not watching.end_all(self._mark):
            raise RunError(f"{self.kit}: processes could not be ended: {watching.marked(self._mark)}.")
        for process in (self._process, self._watch):
            if process is not None:
                if process.stdin is not None:
                    process.stdin.close()
                process.wait(timeout=20)
        self._process = self._watch = None

    def crash(self) -> None:
        """Lose it and all that it started, as by a power cut: whoever watches it finds out by itself."""
        for number in watching.marked(self._mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def _own(self) -> set[int]:
        return {process.pid for process in (self._process, self._watch) if process is not None}

    def _command(self) -> list[str]:
        settings = ["secure_train=true", "config_folder=", *self._settings()]
        return [
            *["-u", "-m", self.module, "-m", str(self.kit.resolve()), "-s", self.config],
            *["--set", *settings],
        ]

    def _settings(self) -> list[str]:
        return []

    def _started(
        self, arguments: list[str], console: IO[bytes], mark: Mapping[str, str], *, stdin: int
    ) -> "subprocess.Popen[bytes]":
        # No module is looked for in the folder that a process is started in.
        settings = {"MALLOC_ARENA_MAX": "2", "PYTHONSAFEPATH": "1"}
        environment = {**os.environ, **settings, **self._environment, **mark}
        return subprocess.Popen(
            [sys.executable, *arguments],
            stdin=stdin,
            stdout=console,
            stderr=subprocess.STDOUT,
            cwd=self.kit,
            env=environment,
            start_new_session=True,
        )


class Server(EngineProcess):
    """The coordinator's server, from the coordinator's folder."""

    module = "nvflare.private.fed.app.server.server_train"
    config = "fed_server.json"

    def __init__(self, host: Path, *, environment: Mapping[str, str] | None = None) -> None:
        """Take the coordinator's folder."""
        super().__init__(host / "server", environment=environment)

    @property
    def address(self) -> tuple[str, int]:
        """Where parties reach it."""
        return server_address(self.kit / "startup" / self.config)

    def wait(self, seconds: float = 60.0) -> None:
        """Return once it listens."""
        until = time.monotonic() + seconds
        while not _listens(*self.address):
            if not self.running:
                raise RunError(f"the server did not start. See {self.kit / CONSOLE}.")
            if time.monotonic() > until:
                raise RunError(f"the server does not listen after {seconds:g} s. See {self.kit / 'log.txt'}.")
            time.sleep(0.05)

    def _settings(self) -> list[str]:
        return [f"org={_organisation(self.kit)}"]


class Client(EngineProcess):
    """A party's client, from the party's folder."""

    module = "nvflare.private.fed.app.client.client_train"
    config = "fed_client.json"

    def __init__(self, party: Path, *, environment: Mapping[str, str] | None = None) -> None:
        """Take the party's folder."""
        super().__init__(party / KIT, environment=environment)

    def _settings(self) -> list[str]:
        name = json.loads((self.kit / "startup" / self.config).read_text())["client"]["fqsn"]
        return [f"uid={name}", f"org={_organisation(self.kit)}", f"heart_beat_interval={HEART_BEAT}"]


def server_address(config: Path) -> tuple[str, int]:
    """Return host and port that a kit names."""
    host, _, port = json.loads(config.read_text())["servers"][0]["service"]["target"].rpartition(":")
    return host, int(port)


def check_port(host: Path, *, patience: float = 10.0) -> None:
    """Refuse to start a server whose port somebody else has; one that was killed may need a moment to end."""
    _, port = server_address(host / "server" / "startup" / Server.config)
    until = time.monotonic() + patience
    while (why := _taken(port)) is not None:
        if time.monotonic() > until:
            raise RunError(
                f"port {port} cannot be used ({why}): another program, or another 'cofactor host run', has "
                "it. Stop that first."
            )
        time.sleep(0.2)


def _taken(port: int) -> str | None:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", port))
        except OSError as error:
            return error.strerror
    return None


def _tidy(kit: Path) -> None:
    """Keep the logs of the last jobs only, and a console that does not grow without end."""
    jobs = [path for path in kit.iterdir() if _JOB.fullmatch(path.name)]
    jobs.sort(key=lambda path: path.stat().st_mtime)
    for path in jobs[:-_KEPT_JOBS]:
        shutil.rmtree(path, ignore_errors=True)
    console = kit / CONSOLE
    if console.exists() and console.stat().st_size > _CONSOLE_BYTES:
        console.replace(kit / f"{CONSOLE}.1")


def _memory(process: int) -> int:
    """Return how many bytes of memory a process takes; none if it is gone."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


def _organisation(kit: Path) -> str:
    """Return the organisation, as the kit's own start script names it."""
    found = re.search(r"\borg=(\w+)", (kit / "startup" / "sub_start.sh").read_text())
    if found is None:
        raise RunError(f"{kit} names no organisation. Install the kit again.")
    return found.group(1)
