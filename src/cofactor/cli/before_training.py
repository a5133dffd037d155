"""`--choose-cap` and `--survey-mean`: settings of a training that private surveys are asked for first."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli import choose
from cofactor.config import positive
from cofactor.errors import BudgetExceeded, ConfigError, RunError

if TYPE_CHECKING:
    from cofactor.cli.settings import SurveyWish
    from cofactor.federation.federation import Federation
    from cofactor.federation.splits import Split
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
            "is left for training. Nothing was asked. Give them a small part of it."
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
    from cofactor.survey.before_training import choose_cap, rating_histogram

    found = []
    for name, epsilon in vars(wish).items():
        if epsilon is None:
            continue
        survey = _kept(place / name, epsilon, OPTIONS[name])
        if survey is None and name == "cap":
            survey = choose_cap(federation, epsilon, budget=budget, newer_data=newer_data).survey
        elif survey is None:
            survey = rating_histogram(federation, epsilon, budget=budget, newer_data=newer_data)
        survey.save(place / name, overwrite=True)
        found.append(_read(name, survey))
    return found


def with_answers(recipe: Any, asked: list[Asked]) -> Any:
    """Return a recipe with the settings that were asked for."""
    return replace(recipe, **{each.setting: each.value for each in asked}) if asked else recipe


def _read(name: str, survey: "Survey") -> Asked:
    """Return what a survey says about the setting it is for."""
    from cofactor.survey.before_training import ChosenCap

    if name == "cap":
        chosen = ChosenCap.of(survey)
        value: float | int = chosen.most_ratings
        told = f"Used: {chosen}."
    else:
        value, interval = survey.mean, survey.band().mean
        told = (
            f"Used: a mean rating of {value:.4g} ({interval.low:.4g} to {interval.high:.4g}), by one rating "
            f"of each user: a survey at epsilon {survey.method.epsilon:g}."
        )
    return Asked(survey=survey, setting=SETTINGS[name], value=value, told=told)


def _kept(folder: Path, epsilon: float, option: str) -> "Survey | None":
    """Return what was asked before the training was stopped."""
    from cofactor.survey.result import Survey

    if not folder.exists():
        return None
    survey = Survey.load(folder)
    if survey.method.epsilon != epsilon:
        raise RunError(
            f"{folder} holds a survey at epsilon {survey.method.epsilon:g}, which was asked already. Go on "
            f"with {option} {survey.method.epsilon:g}."
        )
    return survey
