"""How HDPMF divides ratings (section 5.1.1): whom it leaves out, what it tests, and what it tunes on."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.data.split import leave_out
from cofactor.errors import DataError
from cofactor.papers.hdpmf_numbers import EPSILON
from cofactor.privacy.budget import Adjacency
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import HDPMF_USERS, Group, Weights
from cofactor.randomness import Seeds

Reals = NDArray[np.float64]

LEAST_RATINGS = 20
"""Users with fewer are left out."""
TESTED = 10
"""Ratings of each user that are tested."""
FOLDS = 5
DELTA = 1e-9
"""Masks of secure sums need it: by chance, all who mask a user's numbers could be colluding."""


def enough(ratings: Ratings) -> Ratings:
    """Return the ratings of users with 20 or more; items that nobody has rated then are gone."""
    kept = ratings.by_user.sizes >= LEAST_RATINGS
    if not kept.any():
        raise DataError(
            f"no user has {LEAST_RATINGS} ratings, and this paper leaves out who has fewer. Use other data."
        )
    return ratings.select(users=kept).compact()


def folds(train: Ratings, count: int, *, seed: int) -> Iterator[tuple[Ratings, Ratings]]:
    """Yield the first `count` of 5 ways to train on four fifths of the ratings and to validate on the rest.

    Fifths are of all ratings, not of each user's.
    """
    places = np.arange(len(train)) % FOLDS
    Seeds(seed).generator("folds").shuffle(places)
    for fold in range(count):
        yield train.where(places != fold), train.where(places == fold)


def thinned(train: Ratings, fraction: float, *, seed: int) -> Ratings:
    """Keep a fraction of each user's ratings, to the nearest whole number, and one at least."""
    chances = Seeds(seed).generator("sparsity").random(len(train))
    order = np.lexsort((chances, train.users))
    ranks = np.empty(len(train), np.int64)
    ranks[order] = np.arange(len(train)) - train.by_user.ptr[:-1][train.users]
    wanted = np.maximum(np.floor(train.by_user.sizes * fraction + 0.5), 1)
    return train.where(ranks < wanted[train.users])


def users_with(*, least: float = 0.1, conservative: float = 0.54) -> tuple[Group, ...]:
    """Change in Table 2 the least weight of conservative users, eps_uc, or which part they are, f_uc.

    As many users as before are moderate; all others are liberal.
    """
    first, second, third = HDPMF_USERS
    return (
        replace(first, low=least, share=conservative),
        second,
        replace(third, share=1 - conservative - second.share),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Repeat:
    """One of the paper's repeated evaluations: the seed is of split, weights, beginnings and noise."""

    train: Ratings
    test: Ratings
    seed: int
    groups: tuple[Group, ...] = HDPMF_USERS
    """How users differ; items are always as in Table 2."""

    @classmethod
    def of(
        cls, ratings: Ratings, seed: int, groups: tuple[Group, ...] = HDPMF_USERS, *, tested: int = TESTED
    ) -> "Repeat":
        """Hold back ratings of each user of a set that `enough` returned."""
        train, test = leave_out(ratings, tested, seed=seed)
        return cls(train=train, test=test, seed=seed, groups=groups)

    def budget(self, adjacency: Adjacency = "value") -> PersonalBudget:
        """Return what everybody is promised: epsilon times a rating's weight."""
        return PersonalBudget.as_published(
            seed=self.seed,
            epsilon=EPSILON,
            delta=DELTA,
            adjacency=adjacency,
            users=Weights.drawn(self.groups, seed=self.seed),
        )

    @cached_property
    def user_weights(self) -> Reals:
        """Of the ratings' users, by row."""
        return self.budget().users.of(self.train.user_ids)

    @cached_property
    def item_weights(self) -> Reals:
        """Of the ratings' items, by row."""
        return self.budget().items.of(self.train.item_ids)

    @cached_property
    def weights(self) -> Reals:
        """Of the training ratings."""
        return np.asarray(self.user_weights[self.train.users] * self.item_weights[self.train.items])

    @property
    def least_weight(self) -> float:
        """The strictest of all training ratings, which DPMF's noise is for."""
        return float(self.weights.min())

    @property
    def mean_weight(self) -> float:
        """Of all training ratings: PDPMF's noise is for it."""
        return float(self.weights.mean())
