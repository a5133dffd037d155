"""A sweep's folder: a run folder for each training, what was asked for, and one table of all that is done."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli.places import written_whole
from cofactor.cli.unfinished import SUFFIX
from cofactor.errors import RunError

if TYPE_CHECKING:
    import polars as pl

    from cofactor.cli.sweep_grid import Cell

ASKED, TABLES = "sweep.json", ("sweep.csv", "sweep.parquet")
FORMAT = 1
"""Version of sweep.json's layout."""
_NUMBERS, _WORDS = ("epsilon", "epsilon_proved", "delta", "odds"), ("unit", "adjacency")
"""Columns that have nothing to say of a run without noise."""


@dataclass(frozen=True, kw_only=True)
class SweepFolder:
    """Where the runs of a sweep lie."""

    path: Path

    def begin(self, asked: dict[str, Any], cells: Sequence["Cell"], *, resume: bool) -> None:
        """Make the folder, or go on with it; refuse what is something else or differs."""
        file, known = self.path / ASKED, []
        if file.exists():
            if not resume:
                raise RunError(
                    f"{self.path} holds a sweep already. Add --resume to go on with it, or name another "
                    "folder with --out."
                )
            stored = self._read()
            _check_same(self.path, stored["asked"], asked)
            known = stored["cells"]
        elif resume:
            raise RunError(f"there is no sweep to resume: no {file}. Name its folder with --out.")
        elif self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise RunError(f"{self.path} is there already and holds no sweep. Name another with --out.")
        self.path.mkdir(parents=True, exist_ok=True)
        named = [{"name": cell.name, "epsilon": cell.epsilon, "seed": cell.seed} for cell in cells]
        stated = [*known, *(each for each in named if each not in known)]
        with written_whole(file) as draft:
            draft.write_text(json.dumps({"format": FORMAT, "asked": asked, "cells": stated}, indent=2) + "\n")

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the folder if trainings stop, unless there is nothing in it to go on with."""
        try:
            yield
        except BaseException:
            if [each.name for each in self.path.iterdir()] == [ASKED]:
                (self.path / ASKED).unlink()
                self.path.rmdir()
            raise

    def place(self, cell: "Cell") -> Path:
        """Return where a training's run folder lies."""
        return self.path / cell.name

    def done(self, cell: "Cell") -> bool:
        """Say whether a training is done, and its errors measured."""
        return _measured(self.place(cell))

    def write_table(self) -> "pl.DataFrame":
        """Write the table of all that is done, by epsilon and seed; return it."""
        import polars as pl

        from cofactor.evaluate.sweep import row_of
        from cofactor.federation.folder import read_facts

        rows = [
            {"run": cell["name"], "epsilon": cell["epsilon"], **row_of(read_facts(self.path / cell["name"]))}
            for cell in self._cells()
            if _measured(self.path / cell["name"])
        ]
        columns = dict.fromkeys(name for row in rows for name in row)
        # Said, since without any private run these columns are empty, and of no kind.
        kinds = dict.fromkeys(_NUMBERS, pl.Float64) | dict.fromkeys(_WORDS, pl.String)
        table = pl.DataFrame(
            {name: [row.get(name) for row in rows] for name in columns}, schema_overrides=kinds
        )
        for name in TABLES:
            with written_whole(self.path / name) as draft:
                (table.write_csv if name.endswith(".csv") else table.write_parquet)(draft)
        return table

    def runs(self) -> list[Path]:
        """Return the run folders of all trainings that have one, in the order of the table."""
        places = (self.path / cell["name"] for cell in self._cells())
        return [place for place in places if (place / "run.json").is_file()]

    def _cells(self) -> list[dict[str, Any]]:
        """Return what was asked for so far, by epsilon and seed; what has no noise comes last."""
        none = float("inf")
        cells: list[dict[str, Any]] = self._read()["cells"]
        return sorted(cells, key=lambda cell: (cell["epsilon"] or none, cell["seed"]))

    def _read(self) -> dict[str, Any]:
        try:
            stored: dict[str, Any] = json.loads((self.path / ASKED).read_text())
            newer = stored["format"] > FORMAT
            stored["asked"], stored["cells"]
        except (OSError, ValueError, KeyError, TypeError):
            raise RunError(
                f"{self.path / ASKED}: cannot be read. The runs beside it are whole: look at each with "
                "'cofactor show', and sweep into another folder."
            ) from None
        if newer:
            raise RunError(f"{self.path} was written by a newer cofactor. Upgrade cofactor.")
        return stored


def runs_of(paths: Sequence[Path]) -> list[Path]:
    """Return run folders: the runs of a sweep in place of its folder; what else lies in one is left out."""
    found: list[Path] = []
    for path in paths:
        if (path / ASKED).is_file():
            found += SweepFolder(path=path).runs()
        elif len(paths) == 1 or not _beside_runs(path):
            found.append(path)
    return found or list(paths)


def _beside_runs(path: Path) -> bool:
    """Say whether something is in a sweep's folder and is no run."""
    return (path.parent / ASKED).is_file() and (path.is_file() or path.suffix == SUFFIX)


def _measured(folder: Path) -> bool:
    from cofactor.federation.folder import read_facts

    return (folder / "run.json").is_file() and bool(read_facts(folder)["scores"])


def _check_same(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse to go on with other settings: the table would compare what cannot be compared."""
    differing = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if differing:
        raise RunError(
            f"{folder} holds a sweep that differs in {', '.join(differing)}. Go on with the same files and "
            "options (epsilons and seeds may be more), or name another folder with --out."
        )
