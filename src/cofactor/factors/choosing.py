"""Which items a user will choose, apart from how she will rate them.

Whoever rates an item has first picked it among all of them. With log counts of the items and a few public
columns about each, a user picks item j with probability softmax_j(log count_j + column_j . taste), and her
taste is what makes the items that she has rated likely: "which kinds do I pick, and how popular ones". It is
fitted where her ratings are, when it is asked for, and is stored nowhere.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.config import not_negative, positive, whole
from cofactor.data.grouping import Index, Offsets, Values
from cofactor.errors import ConfigError
from cofactor.factors.topk import best_items

TOLERANCE = 1e-4
"""How far a fitted taste may be, in Euclidean norm, from the best one."""

_MOST_STEPS = 200
"""Ten are usual; for columns of absurd size rounding may allow no number of steps to be enough."""
_LARGEST = 1e6
"""Log counts and columns up to here cannot overflow, whoever states them."""
_CELLS = 500_000
"""Numbers in the largest array of a block of users: few enough to stay in cache."""

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Choice:
    """How likely each item is to be picked: by everybody, and by one user given those that she has rated."""

    log_counts: NDArray[Any]
    """Logarithm of how many users have rated each item, as far as that may be known; kept as float32."""
    columns: NDArray[Any]
    """What else is known about each item, one row an item; columns of variance about 1 or below."""
    variance: float = 0.1
    """Prior variance of each number of a taste, around 0."""
    rating_weight: float = 0.5
    """What one step of a predicted rating counts in a score, on the scale from 1 to 5."""

    def __post_init__(self) -> None:
        positive(variance=self.variance)
        not_negative(rating_weight=self.rating_weight)
        log_counts, columns = np.asarray(self.log_counts), np.asarray(self.columns)
        if log_counts.ndim != 1 or columns.ndim != 2 or len(columns) != len(log_counts):
            raise ConfigError(
                "a choice needs one log count and one row of columns for each item, got shapes "
                f"{log_counts.shape} and {columns.shape}."
            )
        if len(log_counts) == 0:
            raise ConfigError("a choice needs at least one item.")
        for name, array in (("log_counts", log_counts), ("columns", columns)):
            if not (np.abs(array) <= _LARGEST).all():
                raise ConfigError(f"{name} of a choice must be numbers between -1e6 and 1e6.")
            object.__setattr__(self, name, array.astype(np.float32))

    @classmethod
    def from_counts(
        cls, counts: NDArray[Any], floor: float | NDArray[Any], features: NDArray[Any] | None = None
    ) -> "Choice":
        """Build a choice from counts, which may be noisy, and public features of the items.

        Counts below 0 are 0, and `floor` is added to them: about a third of their noise's standard deviation,
        or 0.5 where there is none. The log count is a column, too, for some prefer what few others know.
        """
        if not (np.asarray(floor) > 0).all():
            raise ConfigError("floor must be greater than 0 for every item.")
        log_counts = np.log(np.maximum(counts, 0.0) + floor)
        public = np.zeros((len(log_counts), 0)) if features is None else np.asarray(features)
        if public.ndim != 2 or len(public) != len(log_counts):
            raise ConfigError(
                f"{len(log_counts):,} counts need as many rows of features, got {public.shape}."
            )
        return cls(log_counts, np.column_stack([public, log_counts]))

    def blocks(self, users: int) -> Iterator[slice]:
        """Cut so many users into blocks whose scores of all items need little memory."""
        largest = max(self.columns.shape[0], self.columns.shape[1] ** 2)
        size = min(max(_CELLS // largest, 1), 512)
        return (slice(start, min(start + size, users)) for start in range(0, users, size))

    def tastes(self, ptr: Offsets, index: Index) -> Values:
        """Fit the tastes of users of whom user u has rated index[ptr[u]:ptr[u + 1]].

        A taste maximises the sum of log probabilities of these items less |taste|^2 / (2 variance), and is
        found to within TOLERANCE. Who has rated nothing has a taste of zeros: everybody's choice.
        """
        found = np.zeros((len(ptr) - 1, self.columns.shape[1]), np.float32)
        for users in self.blocks(len(found)):
            own = ptr[users.start : users.stop + 1]
            found[users] = _fitted(self, np.diff(own).astype(np.float64), _sums(self._centred, own, index))
        return found

    def scores(self, tastes: Values, ratings: Values | None = None) -> Values:
        """Return every item's score for each taste: log count + column . taste [+ weight * rating].

        Columns are centred, which changes no order. Ratings are those predicted for each user and item, in
        quarters of their scale.
        """
        scores: Values = tastes @ self._centred.T.astype(np.float32) + self.log_counts
        return scores if ratings is None else scores + np.float32(self.rating_weight) * ratings

    def top_items(
        self,
        ptr: Offsets,
        index: Index,
        n: int,
        *,
        ratings: Callable[[slice], Values] | None = None,
        include_rated: bool = False,
    ) -> tuple[Index, Values]:
        """Return each user's n best items and their scores; -1 and -inf where items run out.

        User u has rated index[ptr[u]:ptr[u + 1]], which tells her taste and is left out of her list. For a
        slice of users, `ratings` says what to give `scores`.
        """
        whole(n=n)
        items = np.full((len(ptr) - 1, n), -1, np.int32)
        scores = np.full(items.shape, -np.inf, np.float32)
        for users in self.blocks(len(items)):
            own = ptr[users.start : users.stop + 1]
            every = self.scores(self.tastes(own, index), None if ratings is None else ratings(users))
            left_out = np.zeros_like(own) if include_rated else own
            items[users], scores[users] = best_items(every, left_out, index, n)
        return items, scores

    @cached_property
    def _centred(self) -> Array:
        columns: Array = self.columns.astype(np.float64)
        columns -= columns.mean(axis=0)
        return columns

    @cached_property
    def _spread(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of the columns' covariance under everybody's choice."""
        chances = np.exp(self.log_counts.astype(np.float64) - self.log_counts.max())
        chances /= chances.sum()
        away = self._centred - chances @ self._centred
        values, vectors = np.linalg.eigh((away * chances[:, None]).T @ away)
        return np.maximum(values, 0.0), vectors


@dataclass(slots=True)
class _Search:
    """Users whose tastes are still being improved, and what is known about each one's loss there."""

    users: NDArray[np.int64]
    tastes: Array
    losses: Array
    gradients: Array
    inverses: Array
    """Inverse Hessians, as the steps so far have shown them (BFGS)."""
    lengths: Array
    """Share of the full step to be tried next."""

    def only(self, kept: NDArray[np.bool_]) -> "_Search":
        """Return the users that are kept."""
        return self if kept.all() else _Search(*(getattr(self, name)[kept] for name in self.__slots__))


def _fitted(choice: Choice, counts: Array, sums: Array) -> Array:
    """Minimise, for each user, count * log sum_j exp(score_j) - sum . taste + |taste|^2 / (2 variance).

    Quasi-Newton steps for all users of a block at once. They start at the common choice, where all users'
    Hessians are multiples of one matrix plus the prior's. Half the squared norm over the variance makes the
    loss strongly convex: variance * |gradient| bounds the distance from the minimum, wherever one is.
    """
    found, search = np.zeros_like(sums), _start(choice, counts, sums)
    for _ in range(_MOST_STEPS):
        far = choice.variance * np.linalg.norm(search.gradients, axis=1) > TOLERANCE
        search = search.only(far)
        if len(search.users) == 0:
            break
        _improve(search, choice, counts, sums)
        found[search.users] = search.tastes
    return found


def _start(choice: Choice, counts: Array, sums: Array) -> _Search:
    values, vectors = choice._spread
    scales = 1.0 / (counts[:, None] * values + 1.0 / choice.variance)
    tastes = np.zeros_like(sums)
    losses, gradients = _loss(choice, tastes, counts, sums)
    inverses = (vectors * scales[:, None, :]) @ vectors.T
    return _Search(np.arange(len(counts)), tastes, losses, gradients, inverses, np.ones(len(counts)))


def _improve(search: _Search, choice: Choice, counts: Array, sums: Array) -> None:
    """Try one step for every user; who does not descend as she should tries a quarter of it next time."""
    full = np.einsum("ufg,ug->uf", search.inverses, search.gradients)
    steps = -search.lengths[:, None] * full
    users = search.users
    losses, gradients = _loss(choice, search.tastes + steps, counts[users], sums[users])
    wanted = 1e-4 * np.einsum("uf,uf->u", steps, search.gradients)
    better = losses <= search.losses + wanted
    changes = gradients - search.gradients
    search.inverses[better] = _updated(search.inverses[better], steps[better], changes[better], choice)
    search.tastes[better] += steps[better]
    search.losses[better], search.gradients[better] = losses[better], gradients[better]
    search.lengths = np.where(better, 1.0, search.lengths / 4)


def _updated(inverses: Array, steps: Array, changes: Array, choice: Choice) -> Array:
    """Return the inverse Hessians that explain how the gradients changed along the steps (BFGS)."""
    curved = np.einsum("uf,uf->u", steps, changes)
    # The prior alone bends the loss so much; rounding must not undo it.
    curved = np.maximum(curved, np.einsum("uf,uf->u", steps, steps) / choice.variance)[:, None]
    turned = np.einsum("ufg,ug->uf", inverses, changes)
    along = (1 + np.einsum("uf,uf->u", changes, turned)[:, None] / curved) / (2 * curved)
    half: Array = steps[:, :, None] * (along * steps - turned / curved)[:, None, :]
    return inverses + half + half.transpose(0, 2, 1)


def _loss(choice: Choice, tastes: Array, counts: Array, sums: Array) -> tuple[Array, Array]:
    """Return each user's loss and its gradient."""
    chances = tastes @ choice._centred.T
    chances += choice.log_counts
    highest = chances.max(axis=1, keepdims=True)
    chances -= highest
    np.exp(chances, out=chances)
    totals = chances.sum(axis=1, keepdims=True)
    logs = (np.log(totals) + highest)[:, 0]
    prior = np.einsum("uf,uf->u", tastes, tastes) / (2 * choice.variance)
    losses = counts * logs - np.einsum("uf,uf->u", sums, tastes) + prior
    expected = (chances @ choice._centred) / totals
    return losses, counts[:, None] * expected - sums + tastes / choice.variance


@kernel
def _sums(columns: Array, ptr: Offsets, index: Index) -> Array:
    """Add up, for each user, the columns of the items that she has rated."""
    sums = np.zeros((ptr.size - 1, columns.shape[1]))
    for user in range(sums.shape[0]):
        for position in range(ptr[user], ptr[user + 1]):
            for column in range(columns.shape[1]):
                sums[user, column] += columns[index[position], column]
    return sums
