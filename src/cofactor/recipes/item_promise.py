"""What the guarantees of `SharedBiases` and `SecureALS` say besides their numbers."""

from typing import TYPE_CHECKING

from cofactor.data.public_items import public_items_lines
from cofactor.federation.halves import Facts, Promise
from cofactor.privacy.budget import Budget
from cofactor.recipes.item_weights import SAMPLED, SECRET, STRETCHED, samples, stretches
from cofactor.recipes.summing_mode import ONE_USER, two_parties
from cofactor.recipes.sums import own_share

if TYPE_CHECKING:
    from cofactor.recipes.shared_biases import SharedBiases

_PUBLIC_OF_DEVICES = (
    "Which items there are, about how many ratings a device has, who takes part, and who answers in which "
    "round: public."
)
_PUBLIC_OF_PARTIES = (
    "Which items there are, exactly how many users and ratings each party has, from which rounds and noise "
    "follow, and who answers in which round: public."
)


def promise_of(recipe: "SharedBiases", facts: Facts, budget: Budget) -> Promise:
    """Return the words, once the recipe is settled."""
    own, weights = own_share(recipe.aggregate, facts.summed), facts.weights
    names = [each.what for each in recipe.schedule(facts, budget.unit, facts.parties[0]).releases]
    sampled = samples(weights)
    return Promise(
        against=("the coordinator", "the other parties", "everyone who sees what is known of items"),
        covers=(
            "What is known of items, in every round and at the end: how often and how high they are "
            "rated, and what their popularity and features mean to users.",
            "How many users have ratings, their mean, and whether it helped: released with noise, too.",
            *((STRETCHED,) if stretches(weights) else ()),
            *((SAMPLED,) if sampled else ()),
        ),
        does_not_cover=(
            _PUBLIC_OF_DEVICES if facts.split == "on-device" and not facts.cohort else _PUBLIC_OF_PARTIES,
            *public_items_lines(facts.public_items),
            "What a device or a party shows to its own users: made from raw ratings, it stays there.",
            ONE_USER,
        ),
        warnings=two_parties(facts),
        assumptions=(*recipe.aggregate.assumptions(facts.summed), *((SECRET,) if sampled else ())),
        why_not=recipe.aggregate.why_not(facts.summed),
        shared={} if facts.cohort else dict.fromkeys(names, own),
    )
