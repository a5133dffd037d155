"""How many coins `ProjectedMF` tosses, how far they are bent, for how many rows: from public numbers only."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from cofactor.errors import ConfigError
from cofactor.federation.halves import Facts
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.mechanisms import PoissonBinomial
from cofactor.recipes.projected_paper import LARGEST_BEND, MOST_TRIALS, optimal_rows
from cofactor.recipes.usual_steps import one_release

if TYPE_CHECKING:
    from cofactor.recipes.projected import ProjectedMF

T = TypeVar("T", bound="ProjectedMF")

_CALIBRATIONS = 5
"""How often coins are calibrated at most: the first time nearly always does."""


def with_coins(recipe: T, facts: Facts, budget: Budget) -> T:
    """Choose as few coins as spend the budget, and how far they are bent (section 4.3.1)."""
    enough = _enough(recipe, facts, budget)
    trials = recipe.trials or min(max(1, math.floor(enough)), MOST_TRIALS)
    guess = LARGEST_BEND * min(1.0, math.sqrt(enough / trials))
    found = _bent(recipe, facts, budget, trials, recipe.theta or guess)
    while recipe.trials is None and found.theta == LARGEST_BEND and trials < MOST_TRIALS:
        trials = min(trials + math.ceil(trials / 8), MOST_TRIALS)
        found = _bent(recipe, facts, budget, trials, LARGEST_BEND)
    return found


def optimal_reduction(recipe: "ProjectedMF", facts: Facts, budget: Budget | None) -> float:
    """Return m/p by eq. 40."""
    if budget is None:
        raise ConfigError('rows "optimal" weigh noise against projection: they need a budget.')
    rows = optimal_rows(
        # Noise of deviation z has a Renyi divergence of 2 / (2 z^2) at order 2.
        epsilon=one_release(budget, facts) ** -2,
        items=facts.item_count,
        factors=recipe.factors,
        participants=recipe.participants(facts),
        rounds=recipe.rounds,
    )
    return facts.item_count / rows


def _bent(recipe: T, facts: Facts, budget: Budget, trials: int, theta: float) -> T:
    """Bend coins as far as the budget allows. Calibrated once more, they stay as they are."""
    found = replace(recipe, trials=trials, theta=theta)
    for _ in range(_CALIBRATIONS):
        mechanism = calibrated(found.schedule(facts, "user", ""), budget).releases[0].mechanism
        assert isinstance(mechanism, PoissonBinomial)
        if mechanism.theta == found.theta:
            break
        found = replace(found, theta=mechanism.theta)
    return found


def _enough(recipe: "ProjectedMF", facts: Facts, budget: Budget) -> float:
    """Return about how many coins, bent as far as can be, spend the budget; below 1 if one is too many.

    Each number costs 8 alpha theta^2 q / (n (1 - 4 theta^2)) where that is little, as a Gaussian's does.
    """
    numbers = math.prod(recipe.answer_shape(facts)) * recipe.rounds
    one = 16 * LARGEST_BEND**2 / (1 - 4 * LARGEST_BEND**2) * numbers / recipe.participants(facts)
    return one_release(budget, facts) ** -2 / one
