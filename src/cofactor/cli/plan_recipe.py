"""What `cofactor plan` plans with a recipe, and how it tells it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import typer

from cofactor.cli import choose
from cofactor.cli.promises import planned, planned_lines
from cofactor.cli.settings import RecipeWish
from cofactor.cli.sums import SumNeeds, with_sum
from cofactor.cli.text import RED, print_json, print_line
from cofactor.config import one_of
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.privacy.budget import Budget
    from cofactor.privacy.personal import PersonalBudget
    from cofactor.privacy.plan import Plan


def recipe_of(wish: RecipeWish) -> Any:
    """Return the recipe that was asked for, at its defaults but for what was said."""
    assert wish.recipe is not None
    one_of(choose.PLANNED, recipe=wish.recipe)
    recipe = choose.with_numbers(choose.classes()[wish.recipe](), wish.numbers)
    return with_sum(recipe, wish, choose.able_to_sum())


def budget_of(
    recipe: Any, epsilon: float | None, delta: float, unit: str | None, adjacency: str | None
) -> "Budget":
    """Return the budget that was asked for; what is left out is the recipe's usual."""
    from cofactor.privacy.budget import Adjacency, Budget, Unit

    if epsilon is None:
        raise ConfigError("a plan for a recipe needs --epsilon.")
    wanted = cast(Unit, unit or recipe.units[0])
    compared = cast(Adjacency, adjacency or choose.usual_adjacency(recipe, wanted))
    return Budget(epsilon=epsilon, delta=delta, unit=wanted, adjacency=compared)


def needs_of(recipe: Any, users: int | None, parties: int) -> SumNeeds | None:
    """Say what its sums need: those of devices that are played by one here are real ones elsewhere."""
    from cofactor.recipes.plan import split_for

    on_device = split_for(recipe, parties) == "on-device"
    count = users if on_device else parties
    if count is None or not hasattr(recipe, "aggregate"):
        return None
    return SumNeeds.of(
        recipe.aggregate,
        count,
        who="devices" if on_device else "parties",
        shared=(getattr(recipe, "local_steps", None) or 1) == 1,
        coins=hasattr(recipe, "trials"),
    )


def tell(made: "Plan", needs: "SumNeeds | None", shared: "PersonalBudget | None", *, as_json: bool) -> None:
    """Print the plan; exit with 1 if it does not keep the budget."""
    if as_json:
        more = {"sum": None if needs is None else asdict(needs)}
        print_json(made.as_json() | more | {"groups": None if shared is None else planned(shared)})
    else:
        told = [str(made), *(planned_lines(shared) if shared else ()), *(needs.lines() if needs else ())]
        print_line("\n".join(told), "" if made.holds else RED)
    if not made.holds:
        raise typer.Exit(1)
