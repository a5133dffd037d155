"""From what was asked for to a recipe and a budget; mistakes are told before any data are read."""

import shlex
from collections.abc import Mapping
from dataclasses import fields, replace
from decimal import ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any, cast

from cofactor.cli.sums import ABOUT_SUMS, check_sum, with_sum
from cofactor.cli.typed import typed
from cofactor.config import one_of
from cofactor.errors import ConfigError, Refused, did_you_mean
from cofactor.recipes.named import RECIPES as RECIPES
from cofactor.recipes.named import classes as classes
from cofactor.recipes.named import recipe_from

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cofactor.cli.settings import BudgetWish, RecipeWish, Wish
    from cofactor.federation.halves import Facts
    from cofactor.federation.splits import Split
    from cofactor.privacy.budget import Adjacency, Budget, Unit

PLANNED = tuple(each for each in RECIPES if each not in ("objective-perturbation", "alone", "pooled"))
"""Those that release something with noise for which an epsilon can be proved."""
PROPOSED = (1.0, 2.0, 4.0, 8.0)
_MASKED = 1e-9
"""The delta of noise that needs none, where a sum hides something, and may fail to."""
_PUBLISHED = "vertical-mf, horizontal-mf, on-device-mf, projected-mf, multi-view or central-dpsgd"


def able_to_sum() -> list[str]:
    """Return the names of recipes that add up what parties answer."""
    return [
        name for name, kind in classes().items() if any(each.name == "aggregate" for each in fields(kind))
    ]


def is_federated(files: "Sequence[Path]", wish: "Wish") -> bool:
    """Say whether parties are to train together; one file by itself is trained in one place."""
    asked, about = wish.federation, wish.recipe
    if about.recipe is not None:
        one_of(RECIPES, recipe=about.recipe)
    named = about.recipe or _dashed(about.table)
    return (
        len(files) > 1
        or asked.split is not None
        or asked.parties is not None
        or asked.drop is not None
        or asked.ratings_each is not None
        or any(getattr(about, name) is not None for name in ABOUT_SUMS)
        or named not in (None, "pooled")
        or any(value is not None for value in vars(wish.budget).values())
        or any(value is not None for value in vars(wish.weights).values())
        or any(value is not None for value in vars(wish.survey).values())
        or wish.not_private
    )


def chosen_recipe(about: "RecipeWish", split: "Split", unit: str | None, parties: int) -> Any:
    """Return the recipe that was asked for, or the recommended one."""
    from cofactor.federation.halves import splits_of
    from cofactor.recipes.recommended import recommended

    if about.table is not None:
        recipe = from_recipe_table(about, recommended(split, _unit(unit, split)))
    else:
        recipe = _named(about, split, unit, parties)
    own = splits_of(recipe) if hasattr(recipe, "split") else (split,)
    if split not in own:
        raise ConfigError(
            f"{type(recipe).__name__} is for {' and '.join(own)} federations. Leave out --recipe, or --split."
        )
    check_sum(recipe, parties)
    return recipe


def from_recipe_table(about: "RecipeWish", usual: Any) -> Any:
    """Build the recipe of a table; without a kind it is the usual one, or a pooled one with a model."""
    from cofactor.recipes.pooled import Pooled

    assert about.table is not None
    kind = Pooled if "model" in about.table else type(usual)
    table = {"kind": kind.__name__} | dict(about.table)
    return recipe_from(table, about.where)


def pooled_recipe(about: "RecipeWish", *, implicit: bool) -> Any:
    """Return a recipe that trains in one place."""
    from cofactor.recipes.pooled import Pooled

    if about.table is not None:
        return from_recipe_table(about, Pooled())
    if about.published:
        raise ConfigError(f"--published goes with {_PUBLISHED}.")
    return Pooled(model=_model(about, implicit=implicit))


def checked_budget(wish: "Wish", recipe: Any) -> "Budget | None":
    """Return the budget, delta apart, which may follow from the data; without an epsilon propose one."""
    from cofactor.recipes.alone import Alone
    from cofactor.recipes.pooled import Pooled

    said = any(value is not None for value in vars(wish.budget).values())
    if isinstance(recipe, Pooled | Alone):
        if said:
            raise ConfigError(f"{type(recipe).__name__} takes no budget: no noise is added. Leave it out.")
        return None
    if hasattr(recipe, "not_private") and (said or not wish.not_private):
        raise ConfigError(
            f"{type(recipe).__name__} takes no budget: what it claims cannot be proved. Train it without one "
            "and with --not-private."
        )
    if wish.not_private:
        if said:
            raise ConfigError("--not-private adds no noise, so there is no budget. Leave out one of them.")
        return None
    unit = cast("Unit", wish.budget.unit or recipe.units[0])
    if wish.budget.epsilon is None:
        raise Refused(_proposal(unit))
    return _budget(wish.budget, unit, usual_adjacency(recipe, unit))


def usual_adjacency(recipe: Any, unit: str) -> "Adjacency":
    """Return with what data are compared if nobody says: single ratings with weights, by their values."""
    return "value" if unit == "rating" and "rating" in getattr(recipe, "takes_weights", ()) else "empty"


def with_delta(budget: "Budget", recipe: Any, facts: "Facts", asked: "BudgetWish") -> "Budget":
    """Choose delta, if it was left out: next to none where single ratings have weights, and else the usual.

    Noise of such ratings never fails.
    """
    if asked.delta is None and budget.unit == "rating" and "rating" in getattr(recipe, "takes_weights", ()):
        return replace(budget, delta=_least_delta(recipe, facts, budget))
    return with_usual_delta(budget, facts, asked)


def with_usual_delta(budget: "Budget", facts: "Facts", asked: "BudgetWish") -> "Budget":
    """Choose delta, if it was left out: 1e-6, or a tenth of 1 / units, rounded down, if that is less."""
    if asked.delta is not None:
        return budget
    units = facts.user_count if budget.unit == "user" else facts.rating_count
    digit = Context(prec=1, rounding=ROUND_FLOOR)
    return replace(budget, delta=min(1e-6, float(digit.create_decimal(repr(0.1 / units)))))


def _least_delta(recipe: Any, facts: "Facts", budget: "Budget") -> float:
    """Return 0, unless a sum hides something, and may fail to."""
    from cofactor.privacy.personal import PersonalBudget

    terms = budget.public if isinstance(budget, PersonalBudget) else budget
    releases = recipe.settled(facts, terms).schedule(facts, terms.unit, facts.parties[0]).releases
    return _MASKED if any(each.slack for each in releases) else 0.0


def _budget(asked: "BudgetWish", unit: "Unit", adjacency: "Adjacency") -> "Budget":
    from cofactor.privacy.budget import Budget

    assert asked.epsilon is not None
    return Budget(
        epsilon=asked.epsilon,
        delta=1e-6 if asked.delta is None else asked.delta,
        unit=unit,
        adjacency=cast("Adjacency", asked.adjacency or adjacency),
    )


def _proposal(unit: str) -> str:
    from cofactor.figures import percent
    from cofactor.privacy.budget import odds

    first, *others = [(f"{epsilon:g}", percent(odds(epsilon, 0.0))) for epsilon in PROPOSED]
    more = ", ".join(f"{epsilon} ({share})" for epsilon, share in others)
    command = shlex.join([*typed(), "--epsilon", first[0]])
    return (
        f"name a budget for each {unit}: --epsilon {first[0]} (who guesses between two possibilities is "
        f"right at most {first[1]} of the time), {more}; or --not-private to train without noise. Nothing "
        f"was released. For example: {command}"
    )


def _named(about: "RecipeWish", split: "Split", unit: str | None, parties: int) -> Any:
    from cofactor.recipes.recommended import recommended

    if about.recipe == "pooled":
        return with_sum(pooled_recipe(about, implicit=False), about, able_to_sum())
    if about.model is not None:
        raise ConfigError("--model is for the recipe pooled. Leave it out, or add --recipe pooled.")
    if about.recipe is None and about.published:
        recipe: Any = classes()[f"{split}-mf"]()
    elif about.recipe is None:
        recipe = recommended(split, _unit(unit, split))
    else:
        recipe = classes()[about.recipe]()
    recipe = _as_published(recipe, parties) if about.published else recipe
    return with_sum(with_numbers(recipe, about.numbers), about, able_to_sum())


def _unit(unit: str | None, split: "Split") -> "Unit":
    from cofactor.privacy.budget import UNITS
    from cofactor.recipes.recommended import USUAL_UNIT

    if unit is None:
        return USUAL_UNIT[split]
    one_of(UNITS, unit=unit)
    return cast("Unit", unit)


def _as_published(recipe: Any, parties: int) -> Any:
    if not hasattr(recipe, "as_published"):
        raise ConfigError(
            f"{type(recipe).__name__} has no published setting. --published goes with {_PUBLISHED}."
        )
    published = recipe.as_published(parties) if recipe.split == "vertical" else recipe.as_published()
    if type(published) is not type(recipe):
        raise ConfigError(
            f"{type(recipe).__name__} as published is not private, and is only there to be measured: "
            "'cofactor reproduce'. Leave out --published."
        )
    return published


def with_numbers(settings: Any, numbers: Mapping[str, int]) -> Any:
    """Return settings with some of them said anew; refuse names that they do not have."""
    known = [each.name for each in fields(settings)]
    for name in numbers:
        if name not in known:
            raise ConfigError(
                f"{type(settings).__name__} has no {name}.{did_you_mean(name, known)} It has "
                f"{', '.join(known)}. Leave out --{name.replace('_', '-')}; what has no option is said in a "
                "file (train --config)."
            )
    return replace(settings, **numbers)


def _model(about: "RecipeWish", *, implicit: bool) -> Any:
    from cofactor.factors.als import ALS
    from cofactor.factors.bayes import Bayes
    from cofactor.factors.implicit import ImplicitALS
    from cofactor.factors.sgd import SGD

    models: dict[str, Any] = {"sgd": SGD, "als": ALS, "bayes": Bayes, "implicit": ImplicitALS}
    chosen = about.model or ("implicit" if implicit else "sgd")
    one_of(tuple(models), model=chosen)
    return with_numbers(models[chosen](), about.numbers)


def _dashed(table: Mapping[str, Any] | None) -> str | None:
    """Return a recipe's name on the command line from the name of its class in a table."""
    if not isinstance(table, Mapping) or "kind" not in table:
        return None
    return next((name for name, kind in classes().items() if kind.__name__ == table["kind"]), None)
