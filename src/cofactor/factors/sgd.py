"""Matrix factorization by stochastic gradient descent."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cofactor.config import positive, whole
from cofactor.data.ratings import Ratings
from cofactor.errors import DataError
from cofactor.factors.descent import ITEM_BIAS, ITEM_ONE, USER_BIAS, USER_ONE, Rows, epoch
from cofactor.factors.model import Factors
from cofactor.factors.schedule import GRID, Schedule, Seats, schedule, seats
from cofactor.factors.simd import cells, new_table
from cofactor.factors.team import Team, team_size
from cofactor.factors.units import Side, Units, check_finite, penalties
from cofactor.progress import Listener, Progress, nobody
from cofactor.randomness import Seeds

_INITIAL_SPREAD = 0.1


@dataclass(frozen=True, kw_only=True)
class Nonnegative:
    """Embedding clipping (PVLDB 2022, section 4.1.1): predictions are user vector . item vector, no more.

    After each step negative entries become 0 and rows are scaled down to length sqrt(highest), so that
    predictions lie between 0 and highest. There are no biases, and ratings are used as they are.
    """

    highest: float | None = None
    """The highest rating, R; None takes the top of the ratings' scale."""

    def __post_init__(self) -> None:
        positive(highest=self.highest)


@dataclass(frozen=True, kw_only=True)
class SGD:
    """Fits mean + user bias + item bias + user vector . item vector, one rating at a time.

    Ratings are brought to mean 0 and spread 1 first, so the settings carry over between rating scales.
    """

    factors: int = 30
    """Length of each user's and item's vector."""
    epochs: int = 30
    """Passes over the ratings."""
    learning_rate: float = 0.03
    """Size of the steps in the first epoch; it falls in a straight line towards 0 at the end."""
    regularization: float = 1.1
    """Penalty of a row with one rating; it grows with the root of the number of ratings."""
    biases: bool = True
    """Whether users and items have a bias beside their vector."""
    nonnegative: Nonnegative | None = None
    """Keep vectors non-negative and short, without biases and mean."""
    threads: int | None = None
    """Threads to use, at most 8; None takes what the machine has and the ratings keep busy."""

    def __post_init__(self) -> None:
        whole(factors=self.factors, epochs=self.epochs, threads=self.threads)
        positive(learning_rate=self.learning_rate, regularization=self.regularization)

    def fit(self, ratings: Ratings, *, seed: int = 0, progress: Listener = nobody) -> Factors:
        """Return the model after all epochs; a seed gives the same model on any number of threads."""
        training = start(self, ratings, seed)
        too_large = (
            f"learning_rate={self.learning_rate:g} is too large for these ratings. "
            f"Use {self.learning_rate / 4:g} or less."
        )
        with Team(team_size(self.threads, ratings=len(ratings), most=GRID)) as team:
            for step in range(self.epochs):
                rate = self.learning_rate * (1 - step / self.epochs)
                training.run_epoch(rate, team)
                check_finite(step + 1, too_large, training.users.table, training.items.table)
                progress(Progress("sgd", step + 1, self.epochs, f"learning rate {rate:.4f}"))
        return training.finished(self)

    @property
    def has_biases(self) -> bool:
        """Whether the model will have biases."""
        return self.biases and self.nonnegative is None


class Training(NamedTuple):
    """What changes during a fit, and what it takes to make a model of it."""

    ratings: Ratings
    units: Units
    highest: float | None
    user_seats: Seats
    item_seats: Seats
    users: Rows
    items: Rows
    order: Schedule

    def run_epoch(self, rate: float, team: Team) -> None:
        """Visit every rating once."""
        epoch(self.users, self.items, self.order, team, rate=rate, highest=self.highest)

    def finished(self, settings: SGD) -> Factors:
        """Return the model."""
        users = cells(self.users.table)[self.user_seats.rows]
        items = cells(self.items.table)[self.item_seats.rows]
        return self.units.factors(
            self.ratings,
            Side(users[:, : settings.factors], users[:, USER_BIAS]),
            Side(items[:, : settings.factors], items[:, ITEM_BIAS]),
            regularization=settings.regularization,
            biases=settings.has_biases,
        )


def start(settings: SGD, ratings: Ratings, seed: int) -> Training:
    """Choose the initial vectors and the order of the ratings."""
    units, highest = Units.of(ratings), None
    if settings.nonnegative is not None:
        units, highest = Units(0.0, 1.0), _highest(settings.nonnegative, ratings)
    seeds = Seeds(seed)
    user_sizes, item_sizes = ratings.by_user.sizes, np.bincount(ratings.items, minlength=ratings.item_count)
    user_seats, item_seats = seats(user_sizes), seats(item_sizes)
    user_vectors = _initial(settings, user_sizes, ratings.mean, seeds.generator("sgd users"))
    item_vectors = _initial(settings, item_sizes, ratings.mean, seeds.generator("sgd items"))
    return Training(
        ratings, units, highest, user_seats, item_seats,
        _rows(settings, user_vectors, user_sizes, user_seats, one_at=USER_ONE),
        _rows(settings, item_vectors, item_sizes, item_seats, one_at=ITEM_ONE),
        schedule(ratings, units, user_seats, item_seats, seeds.generator("sgd order")),
    )  # fmt: skip


def _rows(
    settings: SGD, vectors: NDArray[np.float64], sizes: NDArray[np.int64], places: Seats, *, one_at: int
) -> Rows:
    table = new_table(len(vectors), settings.factors + 2)
    cells(table)[places.rows, : settings.factors] = vectors
    cells(table)[:, one_at] = settings.has_biases
    pull = np.empty(len(sizes), np.float32)
    pull[places.rows] = penalties(settings.regularization, sizes) / np.maximum(sizes, 1)
    return Rows(table, pull)


def _initial(
    settings: SGD, sizes: NDArray[np.int64], mean: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return small vectors, or positive ones that predict about the mean; 0 where there are no ratings."""
    shape = len(sizes), settings.factors
    if settings.nonnegative is None:
        vectors = generator.normal(0, _INITIAL_SPREAD, shape)
    else:
        vectors = generator.uniform(0.5, 1.5, shape) * np.sqrt(mean / settings.factors)
    return vectors * (sizes > 0)[:, None]


def _highest(nonnegative: Nonnegative, ratings: Ratings) -> float:
    assert ratings.scale is not None
    lowest, top = float(ratings.values.min()), float(ratings.values.max())
    if lowest < 0:
        raise DataError(f"nonnegative vectors cannot predict a rating of {lowest:g}. Leave nonnegative out.")
    highest = ratings.scale.high if nonnegative.highest is None else nonnegative.highest
    if top > highest:
        raise DataError(f"there are ratings of {top:g}, above nonnegative.highest={highest:g}. Raise it.")
    return highest
