"""Matrix factorization by alternating least squares, for ratings with values."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cofactor.config import positive, whole
from cofactor.data.grouping import Values
from cofactor.data.ratings import Ratings
from cofactor.factors.least_squares import BIAS, Weighing, new_rows, solve_side
from cofactor.factors.model import Factors
from cofactor.factors.simd import Cells, Table, cells
from cofactor.factors.team import Team, team_size
from cofactor.factors.units import TOO_SMALL, Side, Units, check_finite, penalties
from cofactor.progress import Listener, Progress, nobody
from cofactor.randomness import Seeds

_INITIAL_SPREAD = 0.1


@dataclass(frozen=True, kw_only=True)
class ALS:
    """Fits mean + user bias + item bias + user vector . item vector: all items exactly, then all users.

    Ratings are brought to mean 0 and spread 1 first, so the settings carry over between rating scales.
    """

    factors: int = 30
    """Length of each user's and item's vector."""
    epochs: int = 12
    """Times that all items and all users are solved for."""
    regularization: float = 1.1
    """Penalty of a row with one rating; it grows with the root of the number of ratings."""
    biases: bool = True
    """Whether users and items have a bias beside their vector."""
    threads: int | None = None
    """Threads to use; None takes what the machine has and the ratings keep busy."""

    def __post_init__(self) -> None:
        whole(factors=self.factors, epochs=self.epochs, threads=self.threads)
        positive(regularization=self.regularization)

    def fit(self, ratings: Ratings, *, seed: int = 0, progress: Listener = nobody) -> Factors:
        """Return the model after all epochs; a seed gives the same model on any number of threads."""
        training = start(self, ratings, seed)
        with Team(team_size(self.threads, ratings=len(ratings))) as team:
            for epoch in range(self.epochs):
                training.run_epoch(team)
                check_finite(epoch + 1, TOO_SMALL, training.users, training.items)
                progress(Progress("als", epoch + 1, self.epochs))
        return training.finished(self)


class Training(NamedTuple):
    """What changes during a fit, and what stays."""

    ratings: Ratings
    units: Units
    users: Table
    items: Table
    user_ridge: Values
    item_ridge: Values
    prior: Cells

    def run_epoch(self, team: Team) -> None:
        """Solve for all items, then for all users."""
        weighing = Weighing(self.units.mean, self.units.spread)
        by_user, by_item = self.ratings.by_user, self.ratings.by_item
        solve_side(by_item, self.users, self.items, self.item_ridge, self.prior, weighing, team)
        solve_side(by_user, self.items, self.users, self.user_ridge, self.prior, weighing, team)

    def finished(self, settings: ALS) -> Factors:
        """Return the model."""
        sides = [
            Side(cells(table)[:, : settings.factors], cells(table)[:, BIAS])
            for table in (self.users, self.items)
        ]
        return self.units.factors(
            self.ratings, *sides, regularization=settings.regularization, biases=settings.biases
        )


def start(settings: ALS, ratings: Ratings, seed: int) -> Training:
    """Choose the initial user vectors; the items follow from them."""
    units = Units.of(ratings)
    generator = Seeds(seed).generator("als users")
    vectors = generator.normal(0, _INITIAL_SPREAD, (ratings.user_count, settings.factors))
    users = new_rows(vectors, biases=settings.biases)
    items = new_rows(np.zeros((ratings.item_count, settings.factors)), biases=settings.biases)
    user_ridge = penalties(settings.regularization, ratings.by_user.sizes).astype(np.float32)
    item_ridge = penalties(settings.regularization, ratings.by_item.sizes).astype(np.float32)
    no_prior = np.zeros((cells(users).shape[1],) * 2, np.float32)
    return Training(ratings, units, users, items, user_ridge, item_ridge, no_prior)
