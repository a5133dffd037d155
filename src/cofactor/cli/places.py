"""Before anything is released: where a command may write, and with what new ledgers begin."""

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cofactor.errors import ConfigError, RunError

if TYPE_CHECKING:
    from cofactor.privacy.budget import Budget


def free_folder(out: Path | None, plot: Path | None, *, force: bool) -> Path:
    """Return the run folder; refuse places that cannot be written to, before anything is released."""
    from cofactor.federation.folder import check_free

    folder = out or Path("runs") / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    check_free(folder, overwrite=force)
    if plot is not None:
        _check_plot(plot, force=force)
    return folder


def check_file(path: Path, *, force: bool, endings: Sequence[str] = (), option: str = "--out") -> None:
    """Refuse a file that cannot be written, or that would be lost, before any work is done."""
    if endings and path.suffix.lower() not in endings:
        raise ConfigError(f"{option}: {path.name} must end in {one_of_these(endings)}.")
    if not path.parent.is_dir():
        raise ConfigError(
            f"{option}: there is no folder {path.parent} to write {path.name} to. Make it first."
        )
    if (path.parent / "run.json").exists():
        raise ConfigError(
            f"{option}: {path} would lie in a run folder, whose files are sealed. Name a place beside it."
        )
    if path.is_dir():
        raise ConfigError(f"{option}: {path} is a folder. Name a file.")
    if path.exists() and not force:
        raise ConfigError(f"{option}: {path} is there already. Name another file, or add --force.")
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"{option}: no writing to the folder {path.parent}. Name another place.")


def one_of_these(words: Sequence[str]) -> str:
    """Write words as a choice: a, b or c."""
    return " or ".join([*([", ".join(words[:-1])] if words[1:] else []), words[-1]])


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """Yield a file beside the target to write to; it takes the target's place when it is complete."""
    # A name that nobody else has: what is cleared away below is always our own.
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield draft
        draft.replace(target)
    except OSError as error:
        raise RunError(f"{target}: cannot be written ({error.strerror}). Name another with --out.") from None
    finally:
        draft.unlink(missing_ok=True)


def _check_plot(plot: Path, *, force: bool) -> None:
    if plot.suffix.lower() != ".svg":
        raise ConfigError(f"--plot draws SVG. Name {plot.with_suffix('.svg').name} instead of {plot.name}.")
    check_file(plot, force=force, option="--plot")


def ledger_budget(epsilon: float | None, delta: float | None) -> "Budget | None":
    """Return with what new ledgers are begun: the terms that training has, too."""
    from cofactor.privacy.budget import Budget

    if epsilon is None:
        if delta is not None:
            raise ConfigError("--budget-delta goes with --budget-epsilon. Name both, or neither.")
        return None
    return Budget(epsilon=epsilon, delta=1e-6 if delta is None else delta, unit="user")
