"""Jobs of the engine: three JSON files without code, submitted with the coordinator's own kit."""

import contextlib
import hashlib
import io
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from cofactor.errors import RunError
from cofactor.network.kit_policies import HEART_BEAT
from cofactor.network.kits import SUBMITTER
from cofactor.network.provisioning import INSTALL

CONTROLLER: Final = "nvflare.collab.runtime.controller.CollabController"
EXECUTOR: Final = "nvflare.collab.runtime.executor.CollabExecutor"
JOB: Final = "cofactor"
_SILENT: Final = 5 * HEART_BEAT
"""Seconds without a sign of life after which a party does not count as there."""


@dataclass(frozen=True, kw_only=True)
class Apps:
    """Which classes a job names; a site runs only those that its own kit allows."""

    coordinator: str = "cofactor.network.apps.CoordinatorApp"
    party: str = "cofactor.network.apps.PartyApp"


OUR_APPS: Final = Apps()


def write_job(folder: Path, parties: Sequence[str], *, apps: Apps = OUR_APPS) -> None:
    """Write a job for these parties."""
    sites = ["server", *parties]
    config = folder / "app" / "config"
    config.mkdir(parents=True)
    meta = {"name": JOB, "resource_spec": {}, "min_clients": len(parties), "deploy_map": {"app": sites}}
    (folder / "meta.json").write_text(json.dumps(meta))
    (config / "config_fed_server.json").write_text(json.dumps(_server(apps)))
    (config / "config_fed_client.json").write_text(json.dumps(_client(apps)))


def _server(apps: Apps) -> dict[str, Any]:
    controller = {"server_obj_id": "coordinator", "sync_task_timeout": 60}
    return {
        "format_version": 2,
        # How often parties look for the two tasks that begin a job: by default every 2 seconds.
        "server": {"task_request_interval": 0.5},
        "task_data_filters": [],
        "task_result_filters": [],
        "components": [{"id": "coordinator", "path": apps.coordinator, "args": {}}],
        "workflows": [{"id": "controller", "path": CONTROLLER, "args": controller}],
    }


def _client(apps: Apps) -> dict[str, Any]:
    executor = {"path": EXECUTOR, "args": {"client_obj_id": "party"}}
    return {
        "format_version": 2,
        "default_task_fetch_interval": 0.5,
        "task_data_filters": [],
        "task_result_filters": [],
        "executors": [{"tasks": ["*"], "executor": executor}],
        "components": [{"id": "party", "path": apps.party, "args": {}}],
    }


class Submitter:
    """A session with the server, under the coordinator's own name; errors of the engine become ours."""

    def __init__(self, host: Path, *, seconds: float = 20.0) -> None:
        """Connect, or raise that the server does not answer."""
        try:
            from nvflare.fuel.flare_api.flare_api import new_secure_session
        except ImportError:
            raise RunError(f"nvflare is missing. Install it: {INSTALL}") from None
        kit = str((host / "submitter").resolve())
        self._session = self._tell(lambda: new_secure_session(SUBMITTER, kit, timeout=seconds))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session."""
        try:
            self._session.close()
        except Exception:
            return

    def registered(self) -> dict[str, str]:
        """Return who is there, each with a mark that changes when it is restarted."""
        told = self._tell(lambda: self._session.do_command("check_status server"))
        if "meta" not in told or "data" not in told:
            raise RunError("the server did not say who is there.")
        heard = {row["client_name"]: row["client_last_conn_time"] for row in told["meta"].get("clients", [])}
        tokens = {row[0]: row[4] for row in _rows(told["data"]) if row[4:5] and row[0] in heard}
        now = time.time()
        return {name: _mark(tokens[name]) for name in heard if now - heard[name] < _SILENT and name in tokens}

    def submit(self, parties: Sequence[str], *, apps: Apps = OUR_APPS) -> str:
        """Submit a job for these parties; return its number."""
        with tempfile.TemporaryDirectory() as folder:
            job = Path(folder) / JOB
            write_job(job, parties, apps=apps)
            return str(self._tell(lambda: self._session.submit_job(str(job))))

    def status(self, job: str) -> str:
        """Return what the engine says of a job; that it has finished does not say that we have."""
        return str(self._tell(lambda: self._session.get_job_status(job)))

    def shut_out(self, name: str) -> None:
        """Let a party in no more, at once and from now on; if the server is down, `kits.revoke` does so."""
        self._tell(lambda: self._session.disable_client(name))

    @staticmethod
    def _tell(action: Callable[[], Any]) -> Any:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                return action()
        except Exception as error:
            raise RunError(f"the server did not answer ({type(error).__name__}).") from None


def _rows(data: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    return [row for part in data if part.get("type") == "table" for row in part["rows"]]


def _mark(token: str) -> str:
    """Return a mark of a token, which itself must not get into any log."""
    return hashlib.sha256(token.encode()).hexdigest()[:16]
