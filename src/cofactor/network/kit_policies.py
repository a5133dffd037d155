"""What each kit's owner allows: files in the kit's own `local` folder, which no job can change.

No job brings code, and none names a class but ours: a list of classes alone would not do, since a job that
brings code is not held against it. Nobody reads a party's log, files or machine from afar. The submitter may
submit, watch and stop its own jobs.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cofactor.errors import RunError

OUR_CLASSES: Final = (
    "cofactor.network.apps.CoordinatorApp",
    "cofactor.network.apps.PartyApp",
    "nvflare.collab.runtime.controller.CollabController",
    "nvflare.collab.runtime.executor.CollabExecutor",
)
"""All that a job may name."""
SITE_FILE: Final = "cofactor.json"
"""Where a site says, in its own words, which folder is its own."""
HEART_BEAT: Final = 2
"""Seconds between two signs of life of a party's kit."""

_RIGHTS: Final = (
    "submit_job",
    "clone_job",
    "manage_job",
    "download_job",
    "view",
    "operate",
    "shell_commands",
    "byoc",
    "server-predeployed-flwr",
)
_ROLES: Final = ("project_admin", "org_admin", "lead", "member")
_SUBMITTER: Final = {"submit_job": "any", "manage_job": "n:submitter"}
_LOG_BYTES: Final = 5_000_000


def write_party_policy(kit: Path, *, site: Path, classes: Sequence[str] = OUR_CLASSES) -> None:
    """Write what a party allows, and where its own folder is; `classes` is all that a job may name there."""
    resources = _defaults(kit)
    resources |= {**_classes(classes), "allow_log_streaming": False}
    resources["client"] |= {"client_register_interval": 0.5}
    resources["components"] = [part for part in resources["components"] if part["id"] != "site_log_streamer"]
    _write_common(kit, resources, _permissions(_SUBMITTER), site)


def write_server_policy(kit: Path, *, site: Path, classes: Sequence[str] = OUR_CLASSES) -> None:
    """Write what the coordinator's server allows; its own folder is that of the run it may conduct."""
    resources = _defaults(kit) | _classes(classes)
    own = kit.resolve() / "storage"
    resources["servers"][0] |= {"heart_beat_timeout": 15 * HEART_BEAT, "max_num_clients": 1000}
    resources["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"] = str(own / "snapshots")
    resources["components"] = [
        _server_part(part, own) for part in resources["components"] if part["id"] != "log_receiver"
    ]
    _write_common(kit, resources, _permissions({**_SUBMITTER, "view": "any", "operate": "any"}), site)


def read_site(kit: Path) -> Path:
    """Return the folder that this kit's owner named."""
    path = kit / "local" / SITE_FILE
    try:
        return Path(json.loads(path.read_text())["site"])
    except (OSError, ValueError, KeyError, TypeError):
        raise RunError(f'{path} does not name a folder under "site". Install the kit again.') from None


def write_site(kit: Path, site: Path) -> None:
    """Name the folder that this kit's owner uses."""
    path = kit / "local" / SITE_FILE
    part = path.with_suffix(".part")
    _write(part, {"site": str(site.resolve())})
    part.replace(path)


def _write_common(kit: Path, resources: Mapping[str, Any], rights: Mapping[str, Any], site: Path) -> None:
    local = kit / "local"
    _write(local / "resources.json", resources)
    _write(local / "authorization.json", rights)
    _write(local / "log_config.json", _logging(json.loads((local / "log_config.json.default").read_text())))
    write_site(kit, site)


def _classes(classes: Sequence[str]) -> dict[str, Any]:
    return {"class_list_enforcement_mode": "enforce", "class_allow_list": list(classes)}


def _permissions(submitter: Mapping[str, str]) -> dict[str, Any]:
    """Return who may do what: the role `lead` submits; all else is none for all."""
    nothing = dict.fromkeys(_RIGHTS, "none")
    permissions = {role: {**nothing, **(submitter if role == "lead" else {})} for role in _ROLES}
    return {"format_version": "1.0", "permissions": permissions}


def _server_part(part: dict[str, Any], own: Path) -> dict[str, Any]:
    """Keep jobs in the kit's own folder, not in one that all users of the machine share; do not wait long."""
    args = dict(part.get("args", {}))
    if part["id"] == "job_manager":
        args["uri_root"] = str(own / "jobs")
    if part["id"] == "job_scheduler":
        # A job's processes take 6 seconds to end after its last word: the next need not wait for them.
        args |= {
            "max_jobs": 4,
            "min_schedule_interval": 1.0,
            "max_schedule_interval": 2.0,
            "max_schedule_count": 100,
        }
    return {**part, "args": args}


def _logging(config: dict[str, Any]) -> dict[str, Any]:
    """Return one log that is rotated, and one of errors. No message in them holds what was sent."""
    kept = ("consoleHandler", "logFileHandler", "errorFileHandler")
    handlers = {name: config["handlers"][name] for name in kept}
    for handler in handlers.values():
        if "maxBytes" in handler:
            handler |= {"maxBytes": _LOG_BYTES, "backupCount": 4}
        handler["level"] = "INFO" if handler["level"] == "DEBUG" else handler["level"]
    # The console is not rotated by the engine: only what matters goes there.
    handlers["consoleHandler"] |= {"formatter": "baseFormatter", "level": "WARNING"}
    loggers = {
        "root": {"level": "INFO", "handlers": list(kept)},
        # One line for each call, otherwise.
        "nvflare.collab": {"level": "WARNING"},
    }
    formatters = {"baseFormatter": config["formatters"]["baseFormatter"]}
    return {**config, "formatters": formatters, "filters": {}, "handlers": handlers, "loggers": loggers}


def _defaults(kit: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((kit / "local" / "resources.json.default").read_text())
    return found


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")
