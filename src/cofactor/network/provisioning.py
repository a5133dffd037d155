"""Runs a command of `nvflare` in a process of its own: what it writes into a home goes to a folder of ours.

python -m cofactor.network.provisioning    (reads the command's arguments as JSON from its standard input)
"""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cofactor.errors import RunError

INSTALL = "pip install 'nvflare>=2.9,<2.10' (or, in a clone, pip install '.[net]')"
"""What to type where nvflare is missing."""


def run_command(command: Sequence[str], *, at: Path, home: Path) -> dict[str, Any]:
    """Run an `nvflare` command in the folder `at`; return what it says, or raise what went wrong."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = subprocess.run(
        [sys.executable, "-m", "cofactor.network.provisioning"],
        input=json.dumps(list(command)),
        capture_output=True,
        text=True,
        cwd=at,
        env={**os.environ, "HOME": str(home.resolve())},
    )
    try:
        result: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        missing = f" Install it: {INSTALL}" if "No module named 'nvflare'" in found.stderr else ""
        raise RunError(f"nvflare could not be run.{missing or ' ' + found.stderr.strip()[-300:]}") from None
    if result.get("status") != "ok":
        words = " ".join(str(result[name]) for name in ("message", "hint") if result.get(name))
        raise RunError(f"nvflare {command[0]} did not succeed: {words or 'it said nothing.'}")
    return dict(result["data"])


def main() -> None:
    """Run what is read, and print one line with what came of it."""
    from nvflare import cli

    said = io.StringIO()
    sys.argv = ["nvflare", "--format", "json", *json.load(sys.stdin)]
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        cli.run("nvflare")
    print(json.dumps(_envelope(said.getvalue())))


def _envelope(said: str) -> dict[str, Any]:
    for line in reversed(said.splitlines()):
        with contextlib.suppress(ValueError):
            found: dict[str, Any] = json.loads(line)
            return found
    return {}


if __name__ == "__main__":
    main()
