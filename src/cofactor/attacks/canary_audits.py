"""From a run, a survey or a clustering to something in which canaries are planted."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cofactor.attacks.canaries import RecipeTarget
from cofactor.attacks.cluster_canaries import ClusterTarget, nobody
from cofactor.attacks.replay import Setting
from cofactor.attacks.survey_canaries import SurveyTarget
from cofactor.attacks.target import Target
from cofactor.cluster.lloyd import PrivateLloyd
from cofactor.cluster.local import LSHForest
from cofactor.cluster.result import Clustering
from cofactor.cluster.simple import IndependentCounts, LocalMemberships
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.tables import SecureTable
from cofactor.config import from_table
from cofactor.errors import ConfigError, Refused
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.view import Truth
from cofactor.privacy.budget import Budget
from cofactor.recipes.named import recipe_from
from cofactor.survey.result import Survey

_NEEDS_DATA = (
    "canaries are planted among the parties' ratings, and this run has none of them. Give the federation: "
    "audit(run, data=federation), or name the parties' files: cofactor audit RUN north.csv south.csv."
)
_MEMBERSHIPS = SecureTable | Sketches | IndependentCounts | LocalMemberships
CANARIES = 500
"""How many are planted in a training, if nobody says."""


def target_of(what: Run | Survey | Clustering, *, data: Any, canaries: int | None, seen_by: str) -> Target:
    """Return what is audited, as it was settled, with as many canaries."""
    if isinstance(what, Survey):
        survey = SurveyTarget(method=what.method, question=what.question, seen_by=seen_by)
        return survey if canaries is None else replace(survey, canaries=canaries)
    if isinstance(what, Clustering):
        found = _cluster_target(what, seen_by)
        return found if canaries is None else replace(found, canaries=canaries)
    return RecipeTarget(
        recipe=recipe_from(_without_items(what.recipe), "the run's recipe"),
        federation=_federation(what, data),
        budget=_budget(what),
        canaries=canaries or CANARIES,
        seen_by=seen_by,
        seed=what.seed,
    )


def setting_of(run: Run) -> Setting:
    """Return what everybody knows of the training that a simulation was."""
    recipe, budget = recipe_from(_without_items(run.recipe), "the run's recipe"), _budget(run)
    return Setting(
        recipe=recipe,
        facts=_federation(run, None).facts,
        unit=None if budget is None else budget.unit,
        seed=run.seed,
    )


def _cluster_target(what: Clustering, seen_by: str) -> ClusterTarget:
    settings, facts = what.settings, what.facts
    return ClusterTarget(
        records=nobody(widths=[len(columns) for columns in facts.columns]),
        budget=from_table(Budget, what.together.budget or {}, "budget"),
        method=from_table(_MEMBERSHIPS, settings["method"], "method"),
        local=from_table(LSHForest | PrivateLloyd, settings["local"], "local"),
        clusters=facts.clusters,
        local_clusters=facts.local_clusters,
        seed=what.seed,
        seen_by=seen_by,
    )


def _without_items(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe's table without public items: a run keeps their names, and not their numbers."""
    return {name: value for name, value in table.items() if name != "public_items"}


def _budget(run: Run) -> Budget | None:
    table = None if run.together is None else run.together.budget
    if table is None:
        return None
    budget = from_table(Budget, table, "budget")
    if budget.personal is not None:
        raise Refused(
            "users of this run have budgets of their own, which no run keeps. Audit the recipe itself, with "
            "a PersonalBudget: RecipeTarget(recipe=..., federation=..., budget=...)."
        )
    return budget


def _federation(run: Run, data: Any) -> Federation:
    if isinstance(data, Federation):
        if run.together is not None and data.kind != run.together.split:
            raise ConfigError(f"the run's parties were {run.together.split}, and these are {data.kind}.")
        return data
    if data is not None:
        raise ConfigError("canaries are planted in a Federation: data=Federation.horizontal(parties).")
    if run.captured is None:
        raise ConfigError(_NEEDS_DATA)
    return _as_captured(run.captured.truth, run.captured.whole.split, run)


def _as_captured(truth: Truth, split: str, run: Run) -> Federation:
    """Return the federation that a simulation was made of."""
    assert run.captured is not None
    parties = [
        Party(name=name, ratings=ratings, attributes=truth.attributes.get(name))
        for name, ratings in truth.ratings.items()
    ]
    scale = run.captured.whole.scale
    if split == "horizontal":
        return Federation.horizontal(parties, scale=scale, simulated=True)
    if split == "vertical":
        return Federation.vertical(parties, scale=scale, simulated=True)
    if len(parties) == 1 and parties[0].ratings.user_count > 1:
        return Federation.on_device(parties[0].ratings, scale=scale, name=parties[0].name)
    assert run.together is not None
    told = next(iter(run.together.parties.values())).ratings
    return Federation.on_device(parties, scale=scale, ratings_each=told)
