"""`cofactor plan --open`: a plan folder, in which there is a page to choose on. Reads no private data."""

import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cofactor.cli.plan_folder import content, free_folder, write_plan
from cofactor.cli.plan_recipe import budget_of, needs_of, recipe_of
from cofactor.cli.plan_words import USUAL_RECIPE
from cofactor.cli.settings import BudgetWish, RecipeWish
from cofactor.cli.text import GREEN, RED, YELLOW, ProgressLine, print_json, print_line
from cofactor.config import positive, whole
from cofactor.errors import ConfigError
from cofactor.figures import number_of

if TYPE_CHECKING:
    from cofactor.evaluate.planning import Asked, Cell, Grid
    from cofactor.evaluate.planning_trainings import Tried

REPEATS = 3
"""How often each choice is trained, at most."""
USUAL: dict[str, Any] = {"recipe": USUAL_RECIPE, "users": 3000, "items": 500, "epsilon": 2.0}
"""What is planned if nobody says."""
USUAL_RATINGS_EACH = 30
_LARGEST_DELTA = 1e-6
_FOR_PLANS = 0.5
"""Part of the time that plans may take; the rest is for trainings."""


@dataclass(frozen=True, kw_only=True)
class PageWish:
    """What was asked for; what was left out is chosen."""

    recipe: RecipeWish
    users: int | None
    items: int | None
    ratings: int | None
    parties: int
    rounds: int | None
    budget: BudgetWish
    minutes: float
    out: Path | None
    force: bool


def make_page(wish: PageWish, *, opened: bool, quiet: bool, as_json: bool) -> None:
    """Plan all that a page offers, try it out, write the folder; exit with 1 if the plan does not hold."""
    positive(minutes=wish.minutes)
    start = time.monotonic()
    asked, chosen = _asked(wish)
    # What cannot be planned at all, or be written anywhere, is told at once.
    made = asked.plan()
    folder = free_folder(wish.out, force=wish.force)
    found = _tried_out(asked, start + 60 * wish.minutes, ProgressLine(quiet=quiet or as_json))
    stated = content(*found, wish=wish.recipe, chosen=chosen, minutes=wish.minutes)
    write_plan(folder, stated)
    if as_json:
        needs = needs_of(asked.recipe, asked.users, asked.parties)
        own = {"sum": None if needs is None else asdict(needs), "groups": None}
        where = {"folder": str(folder), "page": str(folder / "plan.html")}
        print_json(made.as_json() | own | where | {"grid": stated})
    else:
        _tell(folder, stated)
    if opened:
        from cofactor.cli.report import show

        show(folder / "plan.html")
    if not made.holds:
        raise typer.Exit(1)


def _asked(wish: PageWish) -> "tuple[Asked, list[str]]":
    """Return what is to be planned, and the names of all that was left out and chosen here."""
    from cofactor.evaluate.planning import Asked

    said = {
        "recipe": wish.recipe.recipe,
        "users": wish.users,
        "items": wish.items,
        "ratings": wish.ratings,
        "epsilon": wish.budget.epsilon,
        "delta": wish.budget.delta,
    }
    whole(users=wish.users, items=wish.items, ratings=wish.ratings, parties=wish.parties, rounds=wish.rounds)
    full: dict[str, Any] = {name: USUAL.get(name) if value is None else value for name, value in said.items()}
    if full["ratings"] is None:
        full["ratings"] = full["users"] * min(USUAL_RATINGS_EACH, max(1, full["items"] // 4))
    recipe = _with_rounds(recipe_of(replace(wish.recipe, recipe=full["recipe"])), wish.rounds)
    unit = wish.budget.unit or recipe.units[0]
    if full["delta"] is None:
        full["delta"] = _usual_delta(full["users" if unit == "user" else "ratings"])
    budget = budget_of(recipe, full["epsilon"], full["delta"], wish.budget.unit, wish.budget.adjacency)
    asked = Asked(
        recipe=recipe,
        budget=budget,
        users=full["users"],
        items=full["items"],
        ratings=full["ratings"],
        parties=wish.parties,
    )
    return asked, [name for name, value in said.items() if value is None]


def _with_rounds(recipe: Any, rounds: int | None) -> Any:
    if rounds is None:
        return recipe
    if not hasattr(recipe, "rounds") or "rounds" not in recipe.__dataclass_fields__:
        raise ConfigError(f"{type(recipe).__name__} chooses its rounds itself. Leave out --rounds.")
    return replace(recipe, rounds=rounds)


def _usual_delta(units: int) -> float:
    """Return 1e-6, or the power of ten that is at most a tenth of 1 / units, if that is less."""
    return float(min(_LARGEST_DELTA, float(f"1e{-math.ceil(math.log10(units)) - 1}")))


def _tried_out(asked: "Asked", deadline: float, progress: ProgressLine) -> "tuple[Grid, list[Cell], Tried]":
    """Plan and train around what was asked for, until the time is up."""
    from cofactor.evaluate.planning import Grid, planned
    from cofactor.evaluate.planning_trainings import tried

    def left() -> float:
        return max(deadline - time.monotonic(), 1.0)

    grid = Grid.around(asked)
    cells = planned(grid, seconds=_FOR_PLANS * left(), progress=progress)
    return grid, cells, tried(grid, cells, repeats=REPEATS, seconds=left(), progress=progress)


def _tell(folder: Path, stated: dict[str, Any]) -> None:
    """Say in a few lines what the page begins with."""
    from cofactor.report.planner_folder import PlanFolder
    from cofactor.report.planner_words import told

    read = PlanFolder.read(folder)
    for line, tone in told(read):
        print_line(line, {"good": GREEN, "doubt": YELLOW, "bad": RED}.get(tone, ""))
    done = sum(each["repeats"] for each in stated["trainings"])
    several = number_of(done, "training")
    print_line(f"{several} on made-up ratings in {stated['minutes']:g} min; --minutes tries out more.")
    print_line(f"Written to {folder / 'plan.html'}, {(folder / 'plan.html').stat().st_size / 1000:,.0f} kB.")
