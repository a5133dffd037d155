"""CentralMF of dpmf-rp: weighted least squares (equation 4) on all ratings in one place, without privacy.

A rated pair asks for its rating and counts 1 + kappa, every other pair asks for 0 and counts 1. What comes
out ranks; it is no rating, since pairs without one pull it towards 0.
"""

from dataclasses import dataclass

import numpy as np

from cofactor.config import positive, whole
from cofactor.data.ratings import Ratings
from cofactor.factors.least_squares import Weighing, new_rows, solve_side
from cofactor.factors.model import Factors, seen_in
from cofactor.factors.simd import Cells, cells
from cofactor.factors.team import Team, team_size
from cofactor.randomness import Seeds

_INITIAL_SPREAD = 0.1


@dataclass(frozen=True, kw_only=True)
class CentralMF:
    """Fits all pairs, rated or not, by alternating least squares."""

    factors: int = 14
    """Length of each user's and item's vector: k."""
    kappa: float = 15.0
    """How much more a rated pair counts than another."""
    user_penalty: float = 0.25
    """Lambda."""
    item_penalty: float = 0.9
    """Mu."""
    epochs: int = 20
    """Times that all items and all users are solved for."""

    def __post_init__(self) -> None:
        whole(factors=self.factors, epochs=self.epochs)
        positive(kappa=self.kappa, user_penalty=self.user_penalty, item_penalty=self.item_penalty)

    def fit(self, ratings: Ratings, *, seed: int = 0) -> Factors:
        """Return the model after all epochs."""
        start = (
            Seeds(seed)
            .generator("central users")
            .normal(0, _INITIAL_SPREAD, (ratings.user_count, self.factors))
        )
        users = new_rows(start, biases=False)
        items = new_rows(np.zeros((ratings.item_count, self.factors)), biases=False)
        sides = (
            (ratings.by_item, users, items, self.item_penalty),
            (ratings.by_user, items, users, self.user_penalty),
        )
        # All equations are divided by kappa, so that a rated pair counts once on top of what all pairs count.
        weighing = Weighing(spread=self.kappa / (1 + self.kappa))
        with Team(team_size(None, ratings=len(ratings))) as team:
            for _ in range(self.epochs):
                for grouped, others, rows, penalty in sides:
                    ridge = np.full(len(rows), penalty / self.kappa, np.float32)
                    solve_side(grouped, others, rows, ridge, self._all_pairs(cells(others)), weighing, team)
        return self._finished(ratings, cells(users), cells(items))

    def _all_pairs(self, others: Cells) -> Cells:
        exact = others.astype(np.float64)
        return (exact.T @ exact / self.kappa).astype(np.float32)

    def _finished(self, ratings: Ratings, users: Cells, items: Cells) -> Factors:
        return Factors(
            user_ids=ratings.user_ids,
            item_ids=ratings.item_ids,
            mean=0.0,
            user_bias=np.zeros(len(users), np.float32),
            item_bias=np.zeros(len(items), np.float32),
            user_vectors=users[:, : self.factors].copy(),
            item_vectors=items[:, : self.factors].copy(),
            scale=ratings.scale,
            seen=seen_in(ratings),
        )
