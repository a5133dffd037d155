"""Two files in a run's folder, between the coordinator's process and whoever supervises it."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cofactor.federation.host import write_bytes

OUTCOME: Final = "outcome.json"
"""How a run's stretch ended: finished, refused, paused, interrupted or failed; and a few words."""
PAUSE: Final = "pause"
"""If this file is there, the coordinator stops before its next round, and says that it paused."""


def read_outcome(run: Path) -> Mapping[str, Any]:
    """Return what a run's coordinator says of its end; nothing while there is none."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads((run / OUTCOME).read_text())
        return found if isinstance(found, dict) else {}
    return {}


def write_outcome(run: Path, outcome: str, **more: Any) -> None:
    """Say how a run ended, all at once."""
    write_bytes(run / OUTCOME, json.dumps({"outcome": outcome, **more}).encode())
