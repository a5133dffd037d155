"""What a training may promise: its recipe's words, and the numbers of what was released."""

from collections.abc import Sequence
from dataclasses import replace

from cofactor.federation.finding import Alignment
from cofactor.federation.halves import Facts, Recipe
from cofactor.federation.splits import shared_units
from cofactor.federation.weights import weights_lines
from cofactor.privacy.assumptions import ended_blindly
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.guarantee import Guarantee
from cofactor.recipes.hosts import aggregate_of
from cofactor.recipes.sums import without_noise
from cofactor.recipes.weighing import personal_promise


def guarantee_of(
    recipe: Recipe,
    facts: Facts,
    budget: Budget | None,
    events: list[Event],
    *,
    alignment: Alignment | None = None,
    doubts: Sequence[str] = (),
    beside: Sequence[str] = (),
    ended: tuple[int, int] | None = None,
) -> Guarantee:
    """Return the guarantee of a training that released these events.

    `alignment` says how users in common were found, `doubts` what its reader should know of the data,
    `beside` what else it does not cover, and `ended` after how many rounds of how many it was ended early.
    """
    if budget is None:
        without = without_noise(aggregate_of(recipe), facts.summed)
        return Guarantee.nothing(getattr(recipe, "not_private", without))
    promise = recipe.promise(facts, budget)
    units = facts.user_count if budget.unit == "user" else facts.rating_count
    found = Guarantee.of(
        events,
        budget,
        against=promise.against,
        covers=promise.covers,
        does_not_cover=(
            *promise.does_not_cover,
            *weights_lines(facts.weights, budget.unit),
            *(() if alignment is None else alignment.sentences()),
            *beside,
        ),
        assumptions=(
            *promise.assumptions,
            *(() if ended is None else (ended_blindly(*ended, budget.epsilon),)),
        ),
        shared_units=shared_units(facts.split, budget.unit),
        units=units,
    )
    made = replace(
        found,
        why_not=(*found.why_not, *promise.why_not),
        warnings=(*found.warnings, *promise.warnings, *doubts),
        personal=personal_promise(facts.weights, events, budget),
    )
    return replace(made, why_not=(*made.why_not, *_broken_promises(made)))


def _broken_promises(guarantee: Guarantee) -> list[str]:
    """Say where users who asked for more privacy would not have it: where a release forgot their weights."""
    told = guarantee.personal
    if told is None or not guarantee.holds:
        return []
    highs = dict.fromkeys([*(group.high for group in told.groups), told.expected])
    return [
        f"Users of weight {high:g} have lost more than they were promised."
        for high in highs
        if not guarantee.for_weight(high).holds
    ]
