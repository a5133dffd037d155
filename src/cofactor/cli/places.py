"""Before anything is released: where a command may write, and with what new ledgers begin."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cofactor.errors import ConfigError

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


def _check_plot(plot: Path, *, force: bool) -> None:
    if not plot.parent.is_dir():
        raise ConfigError(f"--plot: there is no folder {plot.parent} to write {plot.name} to.")
    if plot.suffix.lower() != ".svg":
        raise ConfigError(f"--plot draws SVG. Name {plot.with_suffix('.svg').name} instead of {plot.name}.")
    if plot.exists() and not force:
        raise ConfigError(f"--plot: {plot} is there already. Name another file, or add --force.")


def ledger_budget(epsilon: float | None, delta: float | None) -> "Budget | None":
    """Return with what new ledgers are begun: the terms that training has, too."""
    from cofactor.privacy.budget import Budget

    if epsilon is None:
        if delta is not None:
            raise ConfigError("--budget-delta goes with --budget-epsilon. Name both, or neither.")
        return None
    return Budget(epsilon=epsilon, delta=1e-6 if delta is None else delta, unit="user")
