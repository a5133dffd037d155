"""`RecipeTarget`: canaries in the training of any recipe, and what one role sees of them.

The training is the real one, with its noise and doors, and with ledgers in memory. Scores are made from the
`View` of the role, and from what is public: the recipe's code, its settings, and the canaries' two states.
"""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.canary_planting import Planted, planted
from cofactor.attacks.canary_scores import Scoring
from cofactor.attacks.charged import charged
from cofactor.attacks.replay import Setting
from cofactor.attacks.target import Played
from cofactor.config import whole
from cofactor.errors import ConfigError, PrivacyWarning
from cofactor.factors.bayes import Bayes
from cofactor.federation.door import COORDINATOR
from cofactor.federation.federation import Federation
from cofactor.federation.run import Run
from cofactor.federation.splits import shared_units
from cofactor.federation.view import PARTY
from cofactor.privacy.budget import Budget
from cofactor.privacy.one_run import Curve
from cofactor.privacy.personal import PersonalBudget
from cofactor.randomness import Random
from cofactor.recipes.hdpmf import HDPMF
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.objective import ObjectivePerturbation
from cofactor.recipes.train import train

_RATINGS, _MANY = 8, 32
"""Ratings of a canary that is a user: so many, and so extreme, that they reach most bounds; more where
vectors begin near zero."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RecipeTarget:
    """A training with canaries in it."""

    recipe: Any
    """Settled or not. What is left open is chosen for the federation as it is without canaries."""
    federation: Federation
    budget: Budget | None = None
    canaries: int = 1000
    """How many there are, present or not."""
    seen_by: str = COORDINATOR
    """Whose view scores are made from: "coordinator", "party:NAME" or "public"; those who collude, joined by
    "+"."""
    ratings: int | None = None
    """Ratings of each canary that is a user; chosen from the recipe if left out."""
    seed: int = 0

    def __post_init__(self) -> None:
        whole(canaries=self.canaries, ratings=self.ratings)
        if not hasattr(self.recipe, "participant"):
            raise ConfigError(
                f"{type(self.recipe).__name__} sends nothing in which a canary could show. Audit a recipe by "
                "which parties train together."
            )

    @property
    def name(self) -> str:
        """What is audited."""
        return type(self.recipe).__name__

    def play(self, present: NDArray[np.bool_], random: Random) -> Played:
        """Train once with the canaries that are present, and score each from what the role saw alone."""
        federation, budget = self.planted.federation(present), self._ground[1]
        roles = self.seen_by.split("+")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            run = train(
                self._settled, federation, budget=budget, seed=self.seed, random=random, capture=roles
            )
        assert run.captured is not None
        return Played(
            scores=self.scoring.scores(run.captured.view(*roles)),
            promised=None if budget is None else _promised(run, budget),
            guarantee=run.guarantee,
        )

    @cached_property
    def planted(self) -> Planted:
        """The federation with room for canaries."""
        federation, budget = self._ground
        # Where nothing is promised, nothing says what a canary must be.
        return planted(
            federation,
            self.canaries,
            unit="user" if budget is None else budget.unit,
            adjacency="empty" if budget is None else budget.adjacency,
            ratings=self.ratings or usual_ratings(self._settled),
            not_at=[role.removeprefix(PARTY) for role in self.seen_by.split("+")],
        )

    @cached_property
    def scoring(self) -> Scoring:
        """How canaries are scored."""
        facts, budget = self.planted.ground.facts, self._ground[1]
        setting = Setting(
            recipe=self._settled.settled(facts, budget),
            facts=facts,
            unit=None if budget is None else budget.unit,
            seed=self.seed,
        )
        return Scoring(planted=self.planted, setting=setting)

    @cached_property
    def _ground(self) -> tuple[Federation, Budget | None]:
        """The federation and the budget as a training takes them: weights and public numbers dealt out."""
        federation, budget, public = self.federation, self.budget, getattr(self.recipe, "public_items", None)
        if isinstance(budget, PersonalBudget):
            federation = federation.with_weights(budget.users, budget.items, budget=budget)
            budget = budget.public
        return (federation if public is None else federation.with_public_items(public)), budget

    @cached_property
    def _settled(self) -> Any:
        """The recipe as it is for the federation without canaries; parties fit at home what takes no time."""
        federation, budget = self._ground
        settled = self.recipe.settled(federation.facts, budget)
        if not hasattr(settled, "home"):
            return settled
        try:
            return replace(settled, home=UsersOnly())
        except ConfigError:
            return replace(settled, home=Bayes(factors=1, epochs=1))


def usual_ratings(recipe: Any) -> int:
    """Return how many ratings a user must have to reach the bounds of a recipe, and not be trimmed.

    An l1 norm is reached best by one number alone.
    """
    if isinstance(recipe, HDPMF):
        return 1
    most: int | None = getattr(recipe, "most_ratings", None)
    return most or (_MANY if isinstance(recipe, MultiViewMF | ObjectivePerturbation) else _RATINGS)


def _promised(run: Run, budget: Budget) -> Curve:
    """Return what the ledgers of a training were charged for, as a promise to one unit."""
    assert run.together is not None
    apart = not shared_units(run.together.split, budget.unit)
    return Curve.of(charged(run.together), unit=budget.unit, adjacency=budget.adjacency, apart=apart)
