"""How a recipe that releases sums about items spends its budget: rounds, and what each is for."""

import math
from dataclasses import dataclass, replace

from cofactor.config import not_negative, plain_numbers, positive, whole
from cofactor.federation.halves import Facts

_ENOUGH, _ENOUGH_FOR_FACTORS = 0.12, 12.0
"""Signal of an average item's count, relative to its noise, from which sums about items tell something."""
_PLANS = (
    (4.0, ((0.4, 1.2), (0.2, 0.5), (0.2, 0.35), (0.2, 0.35))),
    (2.0, ((0.5, 1.2), (0.25, 0.5), (0.25, 0.5))),
    (0.0, ((0.8, 1.2), (0.2, 0.35))),
)
"""From which signal on, each round's share and how much counts weigh in it."""
_WITH_FACTORS = ((0.35, 1.2), (0.15, 0.35), (0.1, 0.2), (0.4, 0.2))
_SPREADING = 3e-3
"""Noise for each user up to which it pays to ask how tastes spread."""


@dataclass(frozen=True, kw_only=True)
class ItemRound:
    """One round of sums about items."""

    share: float
    """Its part of the budget, beside those of the other releases: shares need not add up to 1."""
    count_weight: float
    """How much counts weigh in a user's message, beside residuals: alpha."""
    factors: int = 0
    """In how many directions tastes are told."""
    spread_share: float = 0.0
    """Part of the budget for how tastes spread; 0 if that is not asked."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        positive(share=self.share, count_weight=self.count_weight)
        not_negative(factors=self.factors, spread_share=self.spread_share)
        whole(factors=self.factors or None)


def item_columns(round: ItemRound, facts: Facts) -> int:
    """Return how many numbers are summed for each item: counts, residuals, and tastes times those."""
    return 1 if facts.implicit else 2 + round.factors


def usual_rounds(noise: float, facts: Facts, *, features: int, factors: int) -> tuple[ItemRound, ...]:
    """Choose rounds from public numbers, before any budget is spent.

    `noise` is that of a sum to which each user adds a message of length 1. What decides is the ratio of an
    average item's count to it: with more signal there are more rounds, which aim better, and in the end
    factors; with hardly any, only the mean of all users is asked for. How tastes spread is asked for where
    there are many users for the noise.
    """
    users, each = facts.user_count, facts.rating_count / max(facts.user_count, 1)
    signal = users * math.sqrt(each) / (facts.item_count * max(noise, 1e-9))
    if signal < _ENOUGH:
        return ()
    if facts.implicit:
        return (ItemRound(share=1.0, count_weight=1.0),)
    per_user = _SPREADING if features else _SPREADING / 2
    spread = 0.03 if noise / max(users, 1) <= per_user else 0.0
    plan = next(rounds for least, rounds in _PLANS if signal >= least)
    told = min(factors, features // 2) if signal >= _ENOUGH_FOR_FACTORS else 0
    if told:
        plan = _WITH_FACTORS
    made = [ItemRound(share=share, count_weight=weight, spread_share=spread) for share, weight in plan]
    first, last = replace(made[0], spread_share=0.0), made[-1]
    if told:
        last = replace(last, factors=told, spread_share=0.0)
    return (first, *made[1:-1], last)
