"""The plan folder: plan.json, from which all else can be made again, and its page. See docs/planning.md."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli.places import written_whole
from cofactor.cli.plan_recipe import needs_of
from cofactor.cli.plan_words import USUAL_RECIPE, commands
from cofactor.cli.settings import RecipeWish
from cofactor.config import as_table
from cofactor.errors import CofactorError, RunError

if TYPE_CHECKING:
    from cofactor.evaluate.planning import Cell, Grid
    from cofactor.evaluate.planning_trainings import Tried

FORMAT = 1
"""Version of plan.json; docs/planning.md describes it."""


def content(
    grid: "Grid",
    cells: "Sequence[Cell]",
    found: "Tried",
    *,
    wish: RecipeWish,
    chosen: Sequence[str],
    minutes: float,
) -> dict[str, Any]:
    """Return the content of plan.json; `chosen` names what was left out of the wish."""
    from cofactor import __version__

    asked = grid.asked
    return {
        "format": FORMAT,
        "created": datetime.now().astimezone().isoformat(timespec="seconds"),
        "cofactor": __version__,
        "name": wish.recipe or USUAL_RECIPE,
        "recipe": as_table(asked.recipe),
        "split": asked.split,
        "items": asked.items,
        "parties": asked.parties,
        "budget": as_table(asked.budget),
        "chosen": list(chosen),
        "minutes": minutes,
        "axes": {
            "users": grid.users,
            "ratings_each": grid.ratings_each,
            "rounds": grid.rounds,
            "epsilon": grid.epsilon,
        },
        "asked": [cell.place for cell in cells].index(grid.middle),
        "cells": [_cell(cell, found.of_cell[at], found.why_not[at], wish) for at, cell in enumerate(cells)],
        "trainings": [each.as_dict() for each in found.trainings],
    }


def free_folder(out: Path | None, *, force: bool) -> Path:
    """Make the plan's folder; refuse one that holds anything else, or a plan that would be lost."""
    folder = out or Path("plans") / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file. Name another folder with --out.")
    if folder.is_dir() and any(folder.iterdir()):
        if not (folder / "plan.json").exists():
            raise RunError(f"{folder} exists and is not a plan folder. Name another folder with --out.")
        if not force:
            raise RunError(f"{folder} already holds a plan. Name another folder with --out, or add --force.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot be made ({error.strerror}). Name another with --out.") from None
    return folder


def write_plan(folder: Path, stated: Mapping[str, Any]) -> None:
    """Write plan.json, sealed, and the page that is made of it."""
    from cofactor.federation.folder import seal
    from cofactor.report.planner import page
    from cofactor.report.planner_folder import PlanFolder

    with written_whole(folder / "plan.json") as draft:
        draft.write_text(json.dumps(seal(stated), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    with written_whole(folder / "plan.html") as draft:
        draft.write_text(page(PlanFolder.read(folder)), encoding="utf-8")


def _cell(cell: "Cell", training: int | None, why_not: str, wish: RecipeWish) -> dict[str, Any]:
    return {
        "place": cell.place,
        "users": cell.asked.users,
        "ratings": cell.asked.ratings,
        "rounds": cell.asked.rounds,
        "epsilon": cell.asked.budget.epsilon,
        "plan": None if cell.plan is None else cell.plan.as_json(),
        "why_no_plan": cell.why_not,
        "sum": _sum(cell),
        "training": training,
        "why_no_training": why_not,
        "commands": commands(cell.asked, wish),
    }


def _sum(cell: "Cell") -> list[str]:
    """Say what its sum needs."""
    try:
        needs = needs_of(cell.asked.recipe, cell.asked.users, cell.asked.parties)
    except CofactorError as error:
        return [str(error)]
    return [] if needs is None else needs.lines()
