"""Weights in a training: who may have them, and what each is promised."""

from collections.abc import Iterable

from cofactor.errors import ConfigError
from cofactor.federation.weights import PublicWeights
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.personal import PersonalPromise, worst_of


def check_weights(recipe: object, weights: PublicWeights | None, budget: Budget | None) -> None:
    """Refuse weights that a recipe would not regard, or that no budget is for."""
    if weights is None:
        if budget is not None and budget.personal is not None:
            raise ConfigError("the budget is personal, and nobody has weights. Use a PersonalBudget.")
        return
    name, units = type(recipe).__name__, getattr(recipe, "takes_weights", ())
    if not units:
        raise ConfigError(
            f"{name} gives all users the same privacy. Recipes that regard weights: PersonalBiases, "
            "SharedBiases, SecureALS, HDPMF."
        )
    if budget is not None and budget.personal is None:
        raise ConfigError("users have weights, and the budget is the same for all. Use a PersonalBudget.")
    if budget is not None and budget.unit not in units:
        raise ConfigError(
            f"{name} regards weights where each {' or '.join(units)} is protected, and the budget is for "
            f"each {budget.unit}."
        )


def personal_promise(
    weights: PublicWeights | None, events: Iterable[Event], budget: Budget
) -> PersonalPromise | None:
    """Return what units of smaller weights are promised: at the party where they lose most."""
    if weights is None or budget.personal is None:
        return None
    return PersonalPromise(
        mechanism=weights.mechanism,
        epsilon=weights.epsilon,
        groups=weights.groups,
        expected=weights.expected,
        weighs_items=bool((weights.items != 1).any()),
        largest_item=float(weights.items.max(initial=0.0)) if budget.unit == "rating" else 1.0,
        threshold=weights.threshold,
        events=worst_of(events, budget),
    )
