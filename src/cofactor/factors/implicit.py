"""Matrix factorization for what people did rather than said (Hu, Koren and Volinsky, ICDM 2008)."""

from dataclasses import dataclass

import numpy as np

from cofactor.config import positive, whole
from cofactor.data.grouping import Values
from cofactor.data.ratings import Ratings
from cofactor.errors import DataError
from cofactor.factors.least_squares import Weighing, new_rows, solve_side
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.factors.simd import Cells, Table, cells
from cofactor.factors.team import Team, team_size
from cofactor.factors.units import TOO_SMALL, check_finite
from cofactor.progress import Listener, Progress, nobody
from cofactor.randomness import Seeds

_INITIAL_SPREAD = 0.1


@dataclass(frozen=True, kw_only=True)
class ImplicitALS:
    """Fits user vector . item vector to 1 where a user met an item and to 0 everywhere else.

    A pair with value r counts 1 + confidence * r, a pair without counts 1. Scores rank; they are no ratings.
    """

    factors: int = 30
    """Length of each user's and item's vector."""
    epochs: int = 10
    """Times that all items and all users are solved for."""
    regularization: float = 20.0
    """Penalty of every row."""
    confidence: float = 2.0
    """How much more a pair counts for each unit of its value (alpha in the paper)."""
    threads: int | None = None
    """Threads to use; None takes what the machine has and the ratings keep busy. The result is the same."""

    def __post_init__(self) -> None:
        whole(factors=self.factors, epochs=self.epochs, threads=self.threads)
        positive(regularization=self.regularization, confidence=self.confidence)

    def fit(self, ratings: Ratings, *, seed: int = 0, progress: Listener = nobody) -> Factors:
        """Return the model after all epochs."""
        _check(ratings)
        generator = Seeds(seed).generator("implicit als users")
        start = generator.normal(0, _INITIAL_SPREAD, (ratings.user_count, self.factors))
        users = new_rows(start, biases=False)
        items = new_rows(np.zeros((ratings.item_count, self.factors)), biases=False)
        with Team(team_size(self.threads, ratings=len(ratings))) as team:
            for epoch in range(self.epochs):
                self._solve(ratings, users, items, team)
                check_finite(epoch + 1, TOO_SMALL, users, items)
                progress(Progress("implicit als", epoch + 1, self.epochs))
        return self._finished(ratings, cells(users)[:, : self.factors], cells(items)[:, : self.factors])

    def _solve(self, ratings: Ratings, users: Table, items: Table, team: Team) -> None:
        weighing = Weighing(confidence=self.confidence)
        for grouped, others, rows in ((ratings.by_item, users, items), (ratings.by_user, items, users)):
            ridge = np.full(len(rows), self.regularization, np.float32)
            solve_side(grouped, others, rows, ridge, _gram(cells(others)), weighing, team)

    def _finished(self, ratings: Ratings, users: Values, items: Values) -> Factors:
        return Factors(
            user_ids=ratings.user_ids,
            item_ids=ratings.item_ids,
            mean=0.0,
            user_bias=np.zeros(len(users), np.float32),
            item_bias=np.zeros(len(items), np.float32),
            user_vectors=users.copy(),
            item_vectors=items.copy(),
            seen=seen_in(ratings),
            home=self._home(items.astype(np.float64)),
        )

    def _home(self, items: Cells) -> HomeFit:
        everything = items.T @ items + self.regularization * np.eye(self.factors)
        return HomeFit(everything, np.ones(len(items)), confidence=self.confidence)


def _check(ratings: Ratings) -> None:
    if len(ratings) == 0:
        raise DataError("there are no ratings to learn from.")
    lowest = float(ratings.values.min())
    if lowest <= 0:
        raise DataError(
            f"ImplicitALS takes values as how much somebody did, but the lowest is {lowest:g}. "
            "Keep those above 0: ratings.where(ratings.values > 0)."
        )


def _gram(rows: Cells) -> Cells:
    """Return the sum of outer products of all rows: the equations as if nobody had rated anything."""
    exact = rows.astype(np.float64)
    return (exact.T @ exact).astype(np.float32)
