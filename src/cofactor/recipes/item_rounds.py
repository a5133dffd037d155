"""How a recipe that releases sums about items spends its budget: rounds, and what each is for."""

from dataclasses import dataclass

from cofactor.config import not_negative, plain_numbers, positive, whole
from cofactor.federation.halves import Facts


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


def usual_rounds(noise: float, facts: Facts, *, features: int, most_factors: int) -> tuple[ItemRound, ...]:
    """Choose rounds from public numbers: how noisy a release of one user's length is, for each user."""
    relative = noise / facts.user_count
    if relative > 3e-3:
        return (ItemRound(share=0.7, count_weight=0.8), ItemRound(share=0.3, count_weight=0.2))
    if features == 0:
        later = ItemRound(share=0.25, count_weight=0.35, spread_share=0.03)
        return (ItemRound(share=0.5, count_weight=0.8), later, later)
    if relative > 2.5e-4 or most_factors == 0:
        third = ItemRound(share=0.2, count_weight=0.2, spread_share=0.03)
        second = ItemRound(share=0.2, count_weight=0.35, spread_share=0.03)
        return (ItemRound(share=0.4, count_weight=0.8), second, third, third)
    return (
        ItemRound(share=0.35, count_weight=0.8),
        ItemRound(share=0.15, count_weight=0.35, spread_share=0.03),
        ItemRound(share=0.1, count_weight=0.2, spread_share=0.03),
        ItemRound(share=0.4, count_weight=0.2, factors=most_factors),
    )
