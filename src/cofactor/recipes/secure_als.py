"""`SecureALS`: what items have of their own beyond biases, from noisy sums, where these can tell it."""

from dataclasses import dataclass

from cofactor.config import not_negative, whole
from cofactor.federation.halves import Facts
from cofactor.recipes.item_rounds import ItemRound, usual_rounds
from cofactor.recipes.shared_biases import SharedBiases

_FACTORS = 8


@dataclass(frozen=True, kw_only=True)
class SecureALS(SharedBiases):
    """`SharedBiases`, and item factors along the directions in which tastes differ most.

    Where noise would drown the factors, fewer or none are asked for, before any budget is spent.
    """

    factors: int = _FACTORS
    """The most factors that are asked for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative(factors=self.factors)
        whole(factors=self.factors or None)

    def _usual(self, noise: float, facts: Facts) -> tuple[ItemRound, ...]:
        return usual_rounds(noise, facts, features=facts.features, factors=self.factors)
