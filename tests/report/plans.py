"""Plan folders to make pages of: small ones, planned and tried out for as long as it takes."""

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cofactor as cf
from cofactor.cli.plan_folder import content, write_plan
from cofactor.cli.settings import RecipeWish
from cofactor.evaluate.planning import Asked, Grid, planned
from cofactor.evaluate.planning_trainings import tried
from cofactor.federation.folder import seal

Facts = dict[str, Any]
DELTA = 1e-6
EPSILON = (1.0, 4.0, 16.0)
FOREVER = 3600.0
"""Seconds: what is made here never depends on how fast a machine is."""


def shops() -> Grid:
    """Three parties, with a recipe whose rounds can be chosen; two people would be too few for them."""
    return Grid(
        asked=_asked(cf.HorizontalMF(rounds=4), epsilon=4.0, parties=3),
        users=(2, 90),
        ratings_each=(5.0, 20.0),
        rounds=(2, 4),
        epsilon=EPSILON,
    )


def devices() -> Grid:
    """One user each, with a recipe that chooses its rounds itself."""
    return Grid(
        asked=_asked(cf.SecureALS(), epsilon=1.0),
        users=(60,),
        ratings_each=(20.0,),
        rounds=(None,),
        epsilon=EPSILON,
    )


KINDS: dict[str, tuple[str, Callable[[], Grid], int]] = {
    "shops": ("horizontal-mf", shops, 2),
    "devices": ("secure-als", devices, 1),
}
"""The recipe's name, the grid, and how often each is trained."""


def plan_folder(kind: str, factory: pytest.TempPathFactory) -> Path:
    """Make a folder when it is first asked for; nobody may change it."""
    base = factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "plans"
    shared.mkdir(exist_ok=True)
    with (shared / f"{kind}.lock").open("w") as lock:  # of all workers, one makes it
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / kind / "plan.html").exists():
            _make(shared / kind, *KINDS[kind])
        return shared / kind


def changed(source: Path, target: Path, change: Callable[[Facts], object], *, sealed: bool = True) -> Path:
    """Copy a plan folder, and let `change` change its facts; the seal is made anew, if it is to be."""
    facts = facts_of(source)
    change(facts)
    target.mkdir()
    made = seal({name: value for name, value in facts.items() if name != "seal"}) if sealed else facts
    (target / "plan.json").write_text(json.dumps(made))
    return target


def facts_of(folder: Path) -> Facts:
    """Return what plan.json holds."""
    facts: Facts = json.loads((folder / "plan.json").read_text())
    return facts


def cell_at(facts: Facts, **values: Any) -> Facts:
    """Return the cell with these values of its axes; the rest is as it was asked for."""
    place = list(facts["cells"][facts["asked"]]["place"])
    for at, name in enumerate(facts["axes"]):
        if name in values:
            place[at] = facts["axes"][name].index(values[name])
    found: Facts = next(cell for cell in facts["cells"] if cell["place"] == place)
    return found


def _asked(recipe: Any, *, epsilon: float, parties: int = 1) -> Asked:
    budget = cf.Budget(epsilon=epsilon, delta=DELTA, unit="user")
    users = 90 if parties > 1 else 60
    return Asked(recipe=recipe, budget=budget, users=users, items=40, ratings=20 * users, parties=parties)


def _make(folder: Path, name: str, grid: Callable[[], Grid], repeats: int) -> None:
    around = grid()
    cells = planned(around, seconds=FOREVER)
    found = tried(around, cells, repeats=repeats, seconds=FOREVER)
    wish = RecipeWish(recipe=name)
    folder.mkdir(exist_ok=True)
    write_plan(folder, content(around, cells, found, wish=wish, chosen=["delta"], minutes=1.0))
