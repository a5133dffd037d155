"""What a training may promise: its recipe's words, and the numbers of what was released."""

from dataclasses import replace

from cofactor.federation.federation import Federation
from cofactor.federation.halves import Recipe, shared_units
from cofactor.federation.weights import SIMULATED_WEIGHTS, weights_lines
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.guarantee import Guarantee
from cofactor.recipes.hosts import aggregate_of
from cofactor.recipes.sums import without_noise
from cofactor.recipes.weighing import personal_promise

_READ_SCALE = (
    "The scale of the ratings was read off the parties' data. Name it, so that nobody's extreme rating shows "
    "in it."
)
_READ_CATALOGUE = (
    "The catalogue was read off the devices' ratings: an item that only one of them has rated shows that "
    "somebody did. Give all devices the same catalogue, with items that nobody has rated, too."
)


def guarantee_of(
    recipe: Recipe, federation: Federation, budget: Budget | None, events: list[Event]
) -> Guarantee:
    """Return the guarantee of a training that released these events."""
    facts = federation.facts
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
        does_not_cover=(*promise.does_not_cover, *weights_lines(facts.weights, budget.unit)),
        assumptions=promise.assumptions,
        shared_units=shared_units(facts.split, budget.unit),
        units=units,
    )
    made = replace(
        found,
        why_not=(*found.why_not, *promise.why_not),
        warnings=(*found.warnings, *promise.warnings, *_doubts(federation)),
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


def _doubts(federation: Federation) -> list[str]:
    """Say what in the data may contradict what the guarantee takes for granted."""
    found, twice = [], federation.at_two_parties()
    if federation.weights is not None and federation.weights.simulated:
        found.append(SIMULATED_WEIGHTS)
    if not (federation.scale_stated or federation.simulated):
        found.append(_READ_SCALE)
    if federation.kind == "on-device" and not federation.simulated:
        found.append(_READ_CATALOGUE)
    if twice:
        found.append(
            f"{twice:,} user ids occur at more than one party. They are taken to be different people; if "
            "they are not, those users lose what all their parties release; and a sum whose noise parties "
            "share changes by as many bounds as a user has parties."
        )
    return found
