"""The trainings of a sweep: which budgets, which seeds, and what else is asked of all of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cofactor.cli import choose
from cofactor.cli.parties import checked_split
from cofactor.cli.settings import BudgetWish, RecipeWish, Wish, options_of
from cofactor.config import as_table, positive
from cofactor.errors import ConfigError, Refused

NOT_PRIVATE = "none"
"""In place of an epsilon: no noise."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One training of a sweep."""

    epsilon: float | None
    """None without noise."""
    seed: int

    @property
    def name(self) -> str:
        """What its run folder is called."""
        return f"epsilon-{self._epsilon}-seed-{self.seed}"

    def __str__(self) -> str:
        return f"epsilon {self._epsilon}, seed {self.seed}"

    @property
    def _epsilon(self) -> str:
        return NOT_PRIVATE if self.epsilon is None else repr(self.epsilon).removesuffix(".0")


def cells_of(epsilons: str, seeds: str) -> list[Cell]:
    """Return a training for each epsilon and each seed; all epsilons of a seed come before the next."""
    asked = [_epsilon(word) for word in _words("--epsilons", epsilons, "0.5,1,2 or 1,none")]
    with_seeds = [_seed(word) for word in _words("--seeds", seeds, "0,1,2")]
    cells = [Cell(epsilon=epsilon, seed=seed) for seed in with_seeds for epsilon in asked]
    twice = next((cell for cell, count in Counter(cells).items() if count > 1), None)
    if twice is not None:
        raise ConfigError(f"--epsilons and --seeds ask for {twice} twice. Name each number once.")
    return cells


def _words(option: str, text: str, example: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise ConfigError(f"{option} must be a list with commas, such as {example}; got {text!r}.")
    return words


def _epsilon(word: str) -> float | None:
    if word == NOT_PRIVATE:
        return None
    try:
        value = float(word)
    except ValueError:
        raise ConfigError(
            f"--epsilons: cannot read {word!r} as a number. Name numbers, or none for no noise: 0.5,1,2,none."
        ) from None
    positive(epsilons=value)
    return value


def _seed(word: str) -> int:
    if not word.isascii() or not word.isdigit():
        raise ConfigError(f"--seeds: {word!r} is not a whole number from 0 on. Name such numbers: 0,1,2.")
    return int(word)


def check_simulated(files: Sequence[Path]) -> None:
    """Refuse parties that have files of their own: their budgets would pay for every training."""
    if len(files) > 1:
        raise Refused(
            f"a sweep is a simulation on one file, and this names {len(files)}. Parties with files of their "
            "own have ledgers, which would be charged for each training of the sweep: what all of them "
            "release adds up. And which run is best would be found out by errors on private ratings, which "
            "no guarantee covers. Nothing was read. Sweep on one file that is public or made up, with "
            "--parties or --split on-device; then train the parties once, with the settings that you chose: "
            "cofactor train FILE FILE ... --epsilon 2."
        )


def check_wish(files: Sequence[Path], wish: Wish, cells: Sequence[Cell]) -> None:
    """Refuse what some training of the sweep would be refused for, before any of them begins."""
    if wish.budget.epsilon is not None:
        raise ConfigError("the epsilon of the budget is what --epsilons says. Leave it out of --config.")
    if any(cell.epsilon is None for cell in cells):
        said = options_of(wish.weights) + options_of(wish.survey)
        if said:
            raise ConfigError(
                f"{', '.join(said)}: a part of a budget, and without noise there is none. Leave none out of "
                "--epsilons."
            )
    for cell in {cell.epsilon: cell for cell in cells}.values():
        asked = wish_of(files, wish, cell)
        if choose.is_federated(files, asked):
            choose.checked_budget(asked, _recipe(files, asked))


def wish_of(files: Sequence[Path], wish: Wish, cell: Cell) -> Wish:
    """Return what one training is asked to be; without noise it has the recipe of the others."""
    if cell.epsilon is not None:
        return replace(wish, budget=replace(wish.budget, epsilon=cell.epsilon), seed=cell.seed)
    if not choose.is_federated(files, wish):
        return replace(wish, seed=cell.seed)
    same = RecipeWish(table=as_table(_recipe(files, wish)), where="the sweep's recipe")
    return replace(wish, recipe=same, budget=BudgetWish(), not_private=True, seed=cell.seed)


def _recipe(files: Sequence[Path], wish: Wish) -> Any:
    split = checked_split(files, wish.federation)
    count = wish.federation.parties or len(files)
    return choose.chosen_recipe(wish.recipe, split, wish.budget.unit, count)
