"""`SecureALS`: what items have of their own beyond biases, from noisy sums, where these can tell it."""

from dataclasses import dataclass

from cofactor.config import not_negative, whole
from cofactor.federation.halves import Facts
from cofactor.recipes.item_rounds import ItemRound, usual_rounds
from cofactor.recipes.shared_biases import SharedBiases


@dataclass(frozen=True, kw_only=True)
class SecureALS(SharedBiases):
    """`SharedBiases`, and item factors: alternating least squares in which only sums over users are seen.

    Users fit their tastes at home and tell residuals times tastes; items move by their sums. Where noise
    would drown the factors, fewer or none are asked for, before any budget is spent.
    """

    factors: int | None = None
    """The most factors that are asked for, where `item_rounds` are left open."""

    def __post_init__(self) -> None:
        super().__post_init__()
        not_negative(factors=self.factors or 0)
        whole(factors=self.factors or None)

    def _usual(self, noise: float, facts: Facts) -> tuple[ItemRound, ...]:
        return usual_rounds(noise, facts, features=facts.features, most_factors=self.factors)
