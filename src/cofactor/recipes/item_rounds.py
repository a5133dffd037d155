"""How a recipe that releases sums about items spends its budget: rounds, and what each is for."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cofactor.config import not_negative, plain_numbers, positive, whole
from cofactor.errors import ConfigError
from cofactor.federation.halves import Facts

_ENOUGH = 0.12
"""Signal of an average item's count, relative to its noise, from which sums about items tell something."""
_WITHOUT_FEATURES = ((0.3, 1.2), (0.2, 0.5), (0.2, 0.35), (0.2, 0.35), (0.2, 0.35))
_PLANS = (
    (4.0, ((0.4, 1.2), (0.2, 0.5), (0.2, 0.35), (0.2, 0.35))),
    (2.0, ((0.5, 1.2), (0.25, 0.5), (0.25, 0.5))),
    (0.0, ((0.8, 1.2), (0.2, 0.35))),
)
"""From which signal on, each round's share and how much counts weigh in it; most rounds without features."""
_BEFORE_FACTORS = ((0.3, 1.2), (0.15, 0.5))
_FACTORS = (
    (60.0, 8, (0.08, 0.1, 0.12, 0.15, 0.2, 0.3)),
    (25.0, 4, (0.08, 0.1, 0.15, 0.3)),
    (10.0, 2, (0.1, 0.2, 0.3)),
)
"""From which signal on, how many factors, and the shares of the rounds that learn them."""
_WITH_FEATURES = 0.7
"""With public features, tastes are known better, and factors pay from so much of that signal on."""
_RATINGS_FOR_TASTE = 37.0
"""Ratings of a user from which half of the user's taste for a factor is known."""
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


def check_rounds(rounds: Sequence[ItemRound]) -> None:
    """Refuse rounds that cannot follow each other."""
    if not isinstance(rounds, tuple) or not all(isinstance(each, ItemRound) for each in rounds):
        raise ConfigError(
            "item_rounds are ItemRound(share=..., count_weight=...), one behind the other in a tuple."
        )
    told = [each.factors for each in rounds]
    begun = next((at for at, factors in enumerate(told) if factors), len(told))
    if (begun == 0 and told) or len(set(told[begun:])) > 1:
        raise ConfigError(
            "factors come after a first round without any, and all rounds from there on have the same number "
            f"of them; item_rounds have {', '.join(map(str, told))}."
        )


def usual_rounds(
    noise: float, facts: Facts, *, features: int, most_factors: int | None
) -> tuple[ItemRound, ...]:
    """Choose rounds from public numbers, before any budget is spent.

    `noise` is that of a sum to which each user adds a message of length 1. What decides is the ratio of an
    average item's count to it: with more signal there are more rounds, which aim better, and in the end
    factors, `most_factors` at most; with hardly any, only the mean of all users is asked for. How tastes
    spread is asked for where there are many users for the noise.
    """
    users, each = facts.user_count, facts.rating_count / max(facts.user_count, 1)
    signal = users * math.sqrt(each) / (max(facts.item_count, 1) * max(noise, 1e-9))
    if signal < _ENOUGH:
        return ()
    if facts.implicit:
        return (ItemRound(share=1.0, count_weight=1.0),)
    per_user = _SPREADING if features else _SPREADING / 2
    spread = 0.03 if noise / max(users, 1) <= per_user else 0.0
    known = signal * math.sqrt(each / (each + _RATINGS_FOR_TASTE)) / (_WITH_FEATURES if features else 1.0)
    factors, shares = next(((count, told) for least, count, told in _FACTORS if known >= least), (0, ()))
    factors = factors if most_factors is None else min(factors, most_factors)
    if factors:
        told = [
            ItemRound(share=share, count_weight=0.2, factors=factors, spread_share=0.02) for share in shares
        ]
        return (*_without_factors(_BEFORE_FACTORS, spread), *told)
    if signal >= _PLANS[0][0] and features == 0:
        return _without_factors(_WITHOUT_FEATURES, min(spread, 0.01))
    return _without_factors(next(rounds for least, rounds in _PLANS if signal >= least), spread)


def _without_factors(plan: Sequence[tuple[float, float]], spread: float) -> tuple[ItemRound, ...]:
    """Return rounds with these shares and weights of counts; how tastes spread is not asked in the first."""
    return tuple(
        ItemRound(share=share, count_weight=weight, spread_share=spread if at else 0.0)
        for at, (share, weight) in enumerate(plan)
    )
