"""Small files in a run's folder, between the coordinator's process and whoever supervises it."""

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

FEWEST: Final = "fewest"
"""With how many parties the run goes on, and ends, if others do not come back."""

WAITING: Final = "waiting"
"""Whose decision is waited for, before the first round."""


def write_waiting(run: Path, parties: tuple[str, ...]) -> None:
    """Say whose decision is waited for: nobody's, maybe."""
    write_bytes(run / WAITING, ", ".join(parties).encode())


def read_waiting(run: Path) -> str:
    """Return whose decision is waited for, in words."""
    with contextlib.suppress(OSError, ValueError):
        return (run / WAITING).read_text()
    return ""


def write_fewest(run: Path, fewest: int) -> None:
    """Say with how many parties the run goes on."""
    write_bytes(run / FEWEST, str(fewest).encode())


def read_fewest(run: Path, otherwise: int) -> int:
    """Return with how many parties the run goes on."""
    with contextlib.suppress(OSError, ValueError):
        return int((run / FEWEST).read_text())
    return otherwise


def read_outcome(run: Path) -> Mapping[str, Any]:
    """Return what a run's coordinator says of its end; nothing while there is none."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads((run / OUTCOME).read_text())
        return found if isinstance(found, dict) else {}
    return {}


def write_outcome(run: Path, outcome: str, **more: Any) -> None:
    """Say how a run ended, all at once."""
    write_bytes(run / OUTCOME, json.dumps({"outcome": outcome, **more}).encode())
