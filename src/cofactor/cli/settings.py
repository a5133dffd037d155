"""What a training is asked to be: by options, a TOML file or an earlier run, but never by two of them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.config import from_table
from cofactor.errors import ConfigError, RunError, did_you_mean

if TYPE_CHECKING:
    from cofactor.data.ratings import Scale


@dataclass(frozen=True, kw_only=True)
class RecipeWish:
    """How to train."""

    recipe: str | None = None
    """Its name, such as vertical-taste."""
    model: str | None = None
    """What a pooled recipe fits."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Settings by name: factors, rounds, local_steps, epochs."""
    published: bool = False
    """Whether the setting of the paper is wanted."""
    sum: str | None = None
    """How the parties' answers are added up: plain, secure, encrypted, shared or ideal."""
    dropout: float | None = None
    """The largest part of the parties that may drop out of a secure sum."""
    colluding: float | None = None
    """The part of the parties that may collude in a secure sum."""
    decrypters: int | None = None
    """How many parties open an encrypted or shared sum."""
    scheme: str | None = None
    """How numbers of an encrypted sum are encrypted."""
    table: Mapping[str, Any] | None = None
    """All of it as a table, as TOML files and run folders hold it."""
    where: str = ""
    """Where the table stands."""


@dataclass(frozen=True, kw_only=True)
class BudgetWish:
    """How much may be learned; what is left out is chosen."""

    epsilon: float | None = None
    delta: float | None = None
    unit: str | None = None
    adjacency: str | None = None


@dataclass(frozen=True, kw_only=True)
class FederationWish:
    """How the parties' ratings relate."""

    split: str | None = None
    parties: int | None = None
    """How many make-believe parties one file is dealt out to."""
    drop: float | None = None
    """Part of simulated devices whose answers are lost in each round."""
    ratings_each: int | None = None
    """About how many ratings a device with a file of its own has: a public guess."""
    align: str | None = None
    """Which users of a vertical federation: union or psi."""
    among: str | None = None
    """Who compares with whom, to find the users in common: leader or chain."""
    id_rule: str | None = None
    """How user ids are written before they are compared: exact or folded."""
    scale: str | None = None
    """Lowest and highest rating, as 1:5."""


@dataclass(frozen=True, kw_only=True)
class WeightsWish:
    """Who asks for more privacy than others."""

    users: str | tuple[str, ...] | None = field(default=None, metadata={"option": "user-weights"})
    """A file with a weight, or a group, of each user; a file for each party; or hdpmf, to draw them."""
    items: str | None = field(default=None, metadata={"option": "item-weights"})
    """The same of items, for all parties."""
    personal: str | None = None
    """How they get it: stretching or sampling."""
    threshold: float | None = None
    """With sampling, what is lost by whoever takes part."""
    otherwise: float | str | None = field(default=None, metadata={"option": "other-weights"})
    """A weight, or a group, of all whom a file leaves out."""
    expected: float | None = None
    """About what users' weights are on average: public."""
    groups: tuple[Mapping[str, Any], ...] | None = None
    """The groups that users may choose between, a table each: public."""


@dataclass(frozen=True, kw_only=True)
class SurveyWish:
    """What users are asked before training, and what each answer may cost of the budget."""

    cap: float | None = field(default=None, metadata={"option": "choose-cap"})
    """How many ratings they have, to choose how many of each are used."""
    mean: float | None = field(default=None, metadata={"option": "survey-mean"})
    """One rating each, to centre ratings on their mean."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """All of it."""

    recipe: RecipeWish = field(default_factory=RecipeWish)
    budget: BudgetWish = field(default_factory=BudgetWish)
    federation: FederationWish = field(default_factory=FederationWish)
    weights: WeightsWish = field(default_factory=WeightsWish)
    survey: SurveyWish = field(default_factory=SurveyWish)
    not_private: bool = False
    seed: int = 0
    coding: Mapping[str, Any] | None = None
    """How user attributes are coded, a table for each column; it is read off their table if left out."""


_TABLES: dict[str, Any] = {
    "recipe": RecipeWish,
    "budget": BudgetWish,
    "federation": FederationWish,
    "weights": WeightsWish,
    "survey": SurveyWish,
}
_CODING = "attributes"
"""The table of a TOML file that says how user attributes are coded."""


def with_file(path: Path, wish: Wish) -> Wish:
    """Add what a TOML file says; an option that says something about the same table is a contradiction."""
    tables = _toml(path)
    coding = tables.pop(_CODING, None)
    if coding is not None and not isinstance(coding, dict):
        raise ConfigError(f"{path.name} [{_CODING}] must be a table with an entry for each column.")
    wish = replace(wish, coding=coding)
    for name, table in tables.items():
        if name not in _TABLES:
            known = (*_TABLES, _CODING)
            raise ConfigError(
                f'{path.name} has "{name}".{did_you_mean(name, known)} Known: {", ".join(known)}.'
            )
        where, said = f"{path.name} [{name}]", options_of(getattr(wish, name))
        if name == "weights":
            wish = replace(wish, weights=with_policy(path, wish.weights))
            continue
        if said:
            words = "how to train" if name == "recipe" else f"what the {name} is"
            raise ConfigError(f"{where} already says {words}. Leave out {', '.join(said)}.")
        if not isinstance(table, dict):
            raise ConfigError(f"{where} must be a table of settings, got {table!r}.")
        if name == "recipe":
            wish = replace(wish, recipe=RecipeWish(table=table, where=where))
        else:
            wish = replace(wish, **{name: from_table(_TABLES[name], table, where)})
    return wish


def with_policy(path: Path, said: WeightsWish) -> WeightsWish:
    """Add what a TOML file says of weights, such as a policy for all; options say the rest.

    What both say is a contradiction.
    """
    where = f"{path.name} [weights]"
    stated: WeightsWish = from_table(WeightsWish, _toml(path).get("weights", {}), where)
    own = {name: value for name, value in vars(said).items() if value is not None}
    twice = {name: value for name, value in own.items() if getattr(stated, name) is not None}
    if twice:
        options = options_of(WeightsWish(**twice))
        raise ConfigError(f"{where} already says that. Leave out {', '.join(options)}.")
    return replace(stated, **own)


def with_run(run: Path, wish: Wish, seed: int | None) -> Wish:
    """Add what an earlier run says; only epsilon, delta, scale, drop and seed may be said anew.

    Weights must be: no run folder holds any.
    """
    from cofactor.federation.folder import read_facts

    anew = (
        replace(wish.budget, epsilon=None, delta=None),
        replace(wish.federation, scale=None, drop=None),
        replace(wish.weights, users=None, items=None, otherwise=None),
    )
    said = [option for part in (wish.recipe, wish.survey, *anew) for option in options_of(part)]
    if said or wish.not_private:
        words = ", ".join([*said, *(["--not-private"] if wish.not_private else [])])
        raise ConfigError(f"--from {run} already says how to train. Leave out {words}.")
    facts = read_facts(run)
    kind = next((each for each in ("survey", "clustering") if each in facts), None)
    if kind is not None:
        raise RunError(f"{run} holds a {kind}, and --from takes a training. Name the folder of one.")
    together = facts.get("together") or {}
    told = facts["guarantee"].get("personal")
    return Wish(
        recipe=RecipeWish(table=facts["recipe"], where=f"{run} [recipe]"),
        budget=_budget_of(together, told, wish.budget),
        federation=federation_of(together, facts["data"]["scale"], wish.federation),
        weights=_weights_of(run, told, wish),
        not_private=bool(together) and not together["budget"] and wish.budget.epsilon is None,
        seed=facts["seed"] if seed is None else seed,
    )


def _budget_of(together: Mapping[str, Any], told: Mapping[str, Any] | None, anew: BudgetWish) -> BudgetWish:
    known = {each.name for each in fields(BudgetWish)}
    table = {name: value for name, value in (together.get("budget") or {}).items() if name in known}
    # Where users are sampled, the budget is the threshold that noise was made for.
    table |= {} if told is None else {"epsilon": told["epsilon"]}
    table |= {name: value for name, value in vars(anew).items() if value is not None}
    return BudgetWish(**table)


def _weights_of(run: Path, told: Mapping[str, Any] | None, wish: Wish) -> WeightsWish:
    """Take the policy from a run, and weights as they are said anew."""
    said = options_of(wish.weights)
    if told is None:
        if said:
            raise ConfigError(f"{run} promised the same to all users. Leave out {', '.join(said)}.")
        return wish.weights
    if wish.weights.users is None and (told["groups"] or told["expected"] != 1):
        raise ConfigError(
            f"in {run} users had weights, which no run folder holds. Name them again: --user-weights FILE."
        )
    if wish.weights.items is None and told["weighs_items"]:
        raise ConfigError(f"in {run} items had weights. Name them again: --item-weights FILE.")
    return replace(
        wish.weights,
        expected=told["expected"],
        personal=told["mechanism"],
        threshold=told.get("threshold") if wish.budget.epsilon is None else None,
        groups=tuple(told["groups"]) or None,
    )


def federation_of(together: Mapping[str, Any], scale: str, anew: FederationWish) -> FederationWish:
    """Return how the parties of a run relate; only scale and drop may be said anew."""
    if not together:
        return anew
    dealt = together["simulated"] and together["split"] != "on-device"
    found = together.get("alignment") or {}
    return FederationWish(
        split=together["split"],
        parties=len(together["parties"]) if dealt else None,
        drop=anew.drop,
        ratings_each=_guess(together),
        align="psi" if found else None,
        among=found.get("among"),
        id_rule=found.get("rule"),
        scale=anew.scale or _range(scale),
    )


def _range(scale: str) -> str | None:
    """Return the scale of a run as an option says it; None where nothing was rated."""
    low, _, high = scale.partition(" to ")
    return f"{low}:{high.split()[0]}" if high else None


def _guess(together: Mapping[str, Any]) -> int | None:
    """Return what was guessed of devices that have a file each: all are said to have as many ratings."""
    if together["simulated"] or together["split"] != "on-device":
        return None
    return int(next(iter(together["parties"].values()))["ratings"])


def options_of(part: Any) -> list[str]:
    """Name the options that say something."""
    named = {
        each.metadata.get("option", each.name): getattr(part, each.name)
        for each in fields(part)
        if each.name != "numbers"
    }
    said = {**named, **getattr(part, "numbers", {})}
    given = [name for name, value in said.items() if value is not None and value is not False and value != ""]
    return [f"--{name.replace('_', '-')}" for name in given]


def scale_of(text: str | None) -> "Scale | None":
    """Read 1:5."""
    from cofactor.data.ratings import Scale

    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise ConfigError(f"--scale must look like 1:5 (lowest, colon, highest), got {text!r}.") from None
    return Scale(low, high)


def number_or_word(text: str) -> float | str:
    """Read a weight, or the name of a group."""
    try:
        return float(text)
    except ValueError:
        return text


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}.") from None
