"""`--capture`: whose messages of a simulation are kept for audits, and the warning that goes with them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli.text import YELLOW, print_line
from cofactor.errors import ConfigError, Refused

if TYPE_CHECKING:
    from cofactor.federation.federation import Federation


def captured_roles(words: Sequence[str] | None) -> tuple[str, ...]:
    """Read roles, one or several to a word; refuse what is none."""
    from cofactor.federation.view import Capture

    if not words:
        return ()
    named = (role.strip() for word in words for role in word.split(","))
    return Capture(tuple(dict.fromkeys(role for role in named if role))).roles


def check_capture(roles: Sequence[str], files: Sequence[Path], *, federated: bool, resume: bool) -> None:
    """Refuse to capture where there are no messages, or parties have files; before anything is read."""
    if not roles:
        return
    if not federated:
        raise ConfigError(
            "--capture keeps messages, and a training in one place sends none. Deal the file out to "
            "make-believe parties: --parties 5 --split horizontal (or vertical), or --split on-device."
        )
    if len(files) > 1:
        raise Refused(
            "captured messages lie open in the run's folder, with all ratings beside them, and these parties "
            "have files of their own. Capture simulations only: one file, dealt out with --parties 3 or "
            "--split on-device. Nothing was released."
        )
    if resume:
        raise ConfigError(
            "a training that is captured keeps nothing to go on with: its first messages would be missing. "
            "Leave out --resume, and start it again."
        )


def with_steps(federation: "Federation") -> "Federation":
    """Let a simulation's scale say in which steps ratings go: all who rate know it, and attackers do."""
    import numpy as np

    from cofactor.data.scale import Scale

    scale, given = federation.scale, [party.ratings.values for party in federation.parties]
    if federation.implicit or scale.step is not None:
        return federation
    found = Scale.of(np.concatenate(given))
    return replace(federation, scale=replace(scale, step=None if found is None else found.step))


def audit_of(kind: str, folder: Path) -> tuple[object, ...]:
    """Return the command that audits a captured run: by reading ratings off its messages, if that can be."""
    from cofactor.attacks.uploads import UNDERSTOOD

    return ("audit", folder, *(("--attack", "reconstruction") if kind in UNDERSTOOD else ()))


def print_captured(facts: Mapping[str, Any], folder: Path) -> None:
    """Warn of what lies in a run's folder, if anything was captured."""
    from cofactor.federation.folder import CAPTURED

    roles = facts.get("captured") or ()
    if roles and (folder / CAPTURED).exists():
        print_line(
            f"{folder / CAPTURED} holds what {' and '.join(roles)} saw, and the ratings themselves: do not "
            "share it.",
            YELLOW,
        )
