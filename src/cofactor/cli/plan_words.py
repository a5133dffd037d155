"""What to type, to copy or to put in a file, so that a planned training is done."""

import shlex
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from cofactor.cli.settings import RecipeWish
from cofactor.cli.typed import command_lines
from cofactor.config import as_table

if TYPE_CHECKING:
    from cofactor.evaluate.planning import Asked

USUAL_RECIPE = "secure-als"
"""What is planned if nobody names a recipe."""
RATINGS = "ratings.csv"
"""What the reader's file is called where all ratings are in one."""
_SCALE = (1, 5)
"""Between what ratings lie: what `plan` takes them to be."""


def commands(asked: "Asked", wish: RecipeWish) -> dict[str, str]:
    """Return the command line, the TOML and the Python of a training, and the command line of its plan."""
    return {
        "command": _command(asked, wish),
        "toml": _toml(asked),
        "with_toml": f"{shlex.join(['cofactor', 'train', *_files(asked), '--config', 'train.toml'])}",
        "python": _python(asked),
        "plan": _again(asked, wish),
    }


def _files(asked: "Asked") -> list[str]:
    if asked.split == "on-device" or asked.parties == 1:
        return [RATINGS]
    return [f"party-{number}.csv" for number in range(1, asked.parties + 1)]


def _one_party(asked: "Asked") -> bool:
    """Say whether a single file is a single party's: `train` wants to be told."""
    return asked.parties == 1 and asked.split != "on-device"


def _command(asked: "Asked", wish: RecipeWish) -> str:
    words: list[object] = [
        "cofactor",
        "train",
        *_files(asked),
        *(("--parties", 1) if _one_party(asked) else ()),
        "--split",
        asked.split,
        "--scale",
        f"{_SCALE[0]}:{_SCALE[1]}",
    ]
    return command_lines([*words, *_recipe_words(asked, wish), *_budget_words(asked.budget)])


def _again(asked: "Asked", wish: RecipeWish) -> str:
    sizes = ["--users", asked.users, "--items", asked.items, "--ratings", asked.ratings]
    parties = [] if asked.split == "on-device" else ["--parties", asked.parties]
    words = ["cofactor", "plan", *_recipe_words(asked, wish), *_budget_words(asked.budget)]
    return command_lines([*words, *sizes, *parties, "--open"])


def _recipe_words(asked: "Asked", wish: RecipeWish) -> list[object]:
    said: list[object] = ["--recipe", wish.recipe or USUAL_RECIPE]
    for name in ("sum", "dropout", "colluding", "decrypters", "scheme"):
        value = getattr(wish, name)
        said += [] if value is None else [f"--{name}", value]
    for name, value in wish.numbers.items():
        said += [f"--{name.replace('_', '-')}", value]
    return said if asked.rounds is None else [*said, "--rounds", asked.rounds]


def _budget_words(budget: Any) -> list[object]:
    return [
        *("--epsilon", _number(budget.epsilon), "--delta", _number(budget.delta)),
        *("--unit", budget.unit, "--adjacency", budget.adjacency),
    ]


def _toml(asked: "Asked") -> str:
    from cofactor.network.toml import toml

    usual = _usual(asked.recipe)
    recipe = {
        name: value
        for name, value in as_table(asked.recipe).items()
        if name == "kind" or usual.get(name) != value
    }
    about = as_table(asked.budget)
    budget = {name: about[name] for name in ("epsilon", "delta", "unit", "adjacency")}
    federation: dict[str, object] = {"split": asked.split, "scale": f"{_SCALE[0]}:{_SCALE[1]}"}
    federation |= {"parties": 1} if _one_party(asked) else {}
    return toml({"recipe": recipe, "budget": budget, "federation": federation})


def _usual(recipe: Any) -> dict[str, Any]:
    return as_table(type(recipe)())


def _python(asked: "Asked") -> str:
    budget = asked.budget
    sizes = f"users={asked.users}, items={asked.items}, ratings={asked.ratings}"
    sizes += "" if asked.split == "on-device" else f", parties={asked.parties}"
    terms = f"epsilon={_number(budget.epsilon)}, delta={_number(budget.delta)}"
    return "\n".join(
        [
            "import cofactor as cf",
            "",
            f"recipe = {_made(asked.recipe)}",
            f'budget = cf.Budget({terms}, unit="{budget.unit}", adjacency="{budget.adjacency}")',
            f"print(cf.plan(recipe, budget, {sizes}))  # reads no data",
            "",
            *_federation(asked),
            "run = cf.train(recipe, federation, budget=budget)",
            "print(run.guarantee)",
            "",
        ]
    )


def _federation(asked: "Asked") -> list[str]:
    scale = f"scale=cf.Scale({_SCALE[0]}, {_SCALE[1]})"
    if asked.split == "on-device":
        return [
            f'ratings = cf.read_ratings("{RATINGS}")',
            f"federation = cf.Federation.on_device(ratings, {scale})",
        ]
    names = ", ".join(f'"{name}"' for name in _files(asked))
    return [
        f"parties = [cf.Party.from_csv(name) for name in [{names}]]",
        f"federation = cf.Federation.{asked.split}(parties, {scale})",
    ]


def _made(settings: Any) -> str:
    """Write how settings are made: what is as usual is left out."""
    said = [
        f"{each.name}={_made(value) if is_dataclass(value) else repr(value)}"
        for each in fields(settings)
        if (value := getattr(settings, each.name)) != _default(each)
    ]
    return f"cf.{type(settings).__name__}({', '.join(said)})"


def _default(field: Any) -> object:
    if field.default is not MISSING:
        return field.default
    return MISSING if field.default_factory is MISSING else field.default_factory()


def _number(value: float) -> str:
    return f"{value:.15g}"
