"""How long a coordinator waits for answers: its own choice, which lies in a session's folder."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

from cofactor.config import from_table
from cofactor.errors import RunError
from cofactor.federation.flare import Patience
from cofactor.network.toml import write_private

PATIENCE: Final = "patience.json"


def write_patience(folder: Path, patience: Patience) -> None:
    """Keep it for every job of the session."""
    write_private(folder / PATIENCE, json.dumps(asdict(patience)))


def read_patience(folder: Path) -> Patience:
    """Return how long to wait for answers in a session; the usual, if its folder does not say."""
    try:
        return from_table(Patience, json.loads((folder / PATIENCE).read_text()), PATIENCE)
    except OSError:
        return Patience()
    except ValueError:
        raise RunError(f"{folder / PATIENCE} cannot be read. Take it away: then the usual holds.") from None
