"""`--choose-cap` and `--survey-mean`: settings of a training that private surveys are asked for first."""

import json
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli import choose
from cofactor.config import positive
from cofactor.errors import BudgetExceeded, ConfigError, RunError

if TYPE_CHECKING:
    from cofactor.cli.settings import SurveyWish
    from cofactor.federation.federation import Federation
    from cofactor.federation.halves import Split
    from cofactor.privacy.budget import Budget
    from cofactor.survey.result import Survey

SETTINGS = {"cap": "most_ratings", "mean": "centre"}
"""Which setting of a recipe each survey is for."""
OPTIONS = {"cap": "--choose-cap", "mean": "--survey-mean"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A survey before a training, and what was made of it."""

    survey: "Survey"
    setting: str
    """What it was asked for."""
    value: float | int
    """What it says."""
    told: str
    """All of it in one line."""

    def as_object(self) -> dict[str, Any]:
        """Return what programs are told."""
        question, epsilon = self.survey.question.name, self.survey.method.epsilon
        return {"asked": question, "epsilon": epsilon, "setting": self.setting, "value": self.value}


def check_surveys(recipe: Any, wish: "SurveyWish", split: "Split", budget: "Budget | None") -> None:
    """Refuse surveys that the training has no use for, or no budget; before anything is read."""
    asked = {name: epsilon for name, epsilon in vars(wish).items() if epsilon is not None}
    for name in asked:
        _check_setting(recipe, OPTIONS[name], SETTINGS[name], split)
    if not asked:
        return
    options = " and ".join(OPTIONS[name] for name in asked)
    for name, epsilon in asked.items():
        positive(**{OPTIONS[name]: epsilon})
    if budget is None:
        raise ConfigError(f"{options} asks privately, and without a budget nothing is kept. Leave it out.")
    if budget.personal is not None:
        raise ConfigError(f"{options} asks all users alike, and weights promise some more. Leave one out.")
    if budget.unit != "user":
        raise ConfigError(
            f"{options} protects users, and this budget is for each {budget.unit}. Leave it out."
        )
    if sum(asked.values()) >= budget.epsilon:
        costs = " and ".join(f"{epsilon:g}" for epsilon in asked.values())
        raise BudgetExceeded(
            f"{options} would spend epsilon {costs}, and the budget for all is {budget.epsilon:g}: nothing "
            "is left for training. Nothing was asked. A twentieth of it is enough for many users: "
            f"{OPTIONS[next(iter(asked))]} {budget.epsilon / 20:g}."
        )


def _check_setting(recipe: Any, option: str, setting: str, split: "Split") -> None:
    kind = type(recipe).__name__
    if split == "vertical":
        raise ConfigError(
            f"{option} asks each user once, and here every user is at all parties. Leave it out."
        )
    if setting not in {each.name for each in fields(recipe)}:
        able = [name for name, each in choose.classes().items() if _is_able(each, setting)]
        raise ConfigError(
            f"{kind} has no {setting} that {option} could choose. Leave it out, or name a recipe that has: "
            f"--recipe {' or '.join(able)}."
        )
    if getattr(recipe, setting) is not None:
        raise ConfigError(
            f"{setting} is {getattr(recipe, setting):g} already. Leave out {option}, or {setting}."
        )


def _is_able(kind: Any, setting: str) -> bool:
    return setting in {each.name for each in fields(kind)} and getattr(kind, "split", None) != "vertical"


def surveyed(
    wish: "SurveyWish", federation: "Federation", budget: "Budget | None", place: Path, *, newer_data: bool
) -> list[Asked]:
    """Ask what is wanted, and keep it in a folder; what is there already is not asked again."""
    made: dict[str, Callable[..., Asked]] = {"cap": _cap, "mean": _mean}
    found = []
    for name, epsilon in vars(wish).items():
        if epsilon is None:
            continue
        asked = _kept(place, name, epsilon)
        if asked is None:
            asked = made[name](federation, epsilon, budget=budget, newer_data=newer_data)
            _keep(place, name, asked)
        found.append(asked)
    return found


def with_answers(recipe: Any, asked: list[Asked]) -> Any:
    """Return a recipe with the settings that were asked for."""
    return replace(recipe, **{each.setting: each.value for each in asked}) if asked else recipe


def _cap(federation: "Federation", epsilon: float, **terms: Any) -> Asked:
    from cofactor.survey.before_training import choose_cap

    chosen = choose_cap(federation, epsilon, **terms)
    return Asked(
        survey=chosen.survey, setting=SETTINGS["cap"], value=chosen.most_ratings, told=f"Used: {chosen}."
    )


def _mean(federation: "Federation", epsilon: float, **terms: Any) -> Asked:
    from cofactor.survey.before_training import rating_histogram

    survey = rating_histogram(federation, epsilon, **terms)
    interval = survey.band().mean
    told = (
        f"Used: a mean rating of {survey.mean:.4g} ({interval.low:.4g} to {interval.high:.4g}), by one "
        f"rating of each user (a survey at epsilon {epsilon:g})."
    )
    return Asked(survey=survey, setting=SETTINGS["mean"], value=survey.mean, told=told)


def _keep(place: Path, name: str, asked: Asked) -> None:
    asked.survey.save(place / name, overwrite=True)
    words = {"setting": asked.setting, "value": asked.value, "told": asked.told}
    (place / f"{name}.json").write_text(json.dumps(words))


def _kept(place: Path, name: str, epsilon: float) -> Asked | None:
    """Return what was asked before the training was stopped."""
    from cofactor.survey.result import Survey

    if not (place / f"{name}.json").exists():
        return None
    try:
        asked = Asked(survey=Survey.load(place / name), **json.loads((place / f"{name}.json").read_text()))
    except (ValueError, TypeError, OSError):
        raise RunError(f"{place / name}.json: cannot be read. Train anew under another name.") from None
    if asked.survey.method.epsilon != epsilon:
        raise RunError(
            f"{place} holds a survey at epsilon {asked.survey.method.epsilon:g}, which was asked already. Go "
            f"on with {OPTIONS[name]} {asked.survey.method.epsilon:g}."
        )
    return asked
