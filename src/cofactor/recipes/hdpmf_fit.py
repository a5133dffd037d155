"""`PerRating`: the descent that the experiments of HDPMF (Hu and Fang 2023) and its baselines run.

A simulation of devices in one place. Its noise follows the paper's laws and repeats with the seed, so nothing
that comes of it is private, whatever epsilon it is given: it is for reproducing the paper.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cofactor.config import not_negative, one_of, plain_numbers, positive, whole
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, DataError
from cofactor.factors.model import Factors, seen_in
from cofactor.privacy.weights import taking_part
from cofactor.randomness import Seeds
from cofactor.recipes.hdpmf_kernels import pass_over
from cofactor.recipes.models import without_biases

Reals = NDArray[np.float64]
Method = Literal["hdpmf", "pdpmf", "dpmf", "mf"]
Noise = Literal["fresh", "fixed", "none"]

_INITIAL_SPREAD = 0.01
"""Deviation of the coordinates at which vectors begin, which the paper does not tell. From 0.1 on, users
begin so differently that noise keeps some of them on the wrong side of 0."""


@dataclass(frozen=True, kw_only=True)
class PerRating:
    """Matrix factorization one rating at a time, with noise on the items that depends on users' weights."""

    method: Method
    """hdpmf stretches ratings by their weight W (Algorithm 1). pdpmf leaves ratings out by chance (equation
    5) and has the noise of the mean budget; dpmf has that of the strictest budget; mf has none, whatever
    `noise` says."""
    factors: int = 10
    """Length of each user's and item's vector, K."""
    rate: float = 0.01
    """Size of the steps in the first quarter of the epochs; a fifth of it until three quarters are over, then
    a fifth of that."""
    penalty: float = 0.01
    """Weight of the squared length of vectors beside each squared error, lambda."""
    epochs: int = 100
    """Passes over the ratings, T."""
    epsilon: float = 1.0
    """The budget of a rating of weight 1, for one draw of the noise."""
    noise: Noise = "fresh"
    """Drawn anew in each epoch, or once for all of them, as Theorem 2 has it; or not at all."""
    rescaled: bool = True
    """Whether hdpmf's predictions are divided by the weight again; False is the paper's HDPMF-R."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        one_of(("hdpmf", "pdpmf", "dpmf", "mf"), method=self.method)
        one_of(("fresh", "fixed", "none"), noise=self.noise)
        whole(factors=self.factors, epochs=self.epochs)
        positive(rate=self.rate, epsilon=self.epsilon)
        not_negative(penalty=self.penalty)

    def fit(self, ratings: Ratings, users: Reals, items: Reals, *, seed: int) -> Factors:
        """Return the model after all epochs; weights are those of the ratings' users and items, by row."""
        descent = Descent(self, ratings, users, items, seed)
        for epoch in range(self.epochs):
            descent.run(epoch)
        return descent.finished()

    @property
    def noisy(self) -> bool:
        """Whether noise is added to anything."""
        return self.method != "mf" and self.noise != "none"

    @property
    def divides(self) -> bool:
        """Whether predictions are divided by weights, as ratings were multiplied by them."""
        return self.method == "hdpmf" and self.rescaled

    def rate_in(self, epoch: int) -> float:
        """Return the size of the steps in an epoch, counted from 0."""
        falls = sum(4 * epoch >= quarters * self.epochs for quarters in (1, 3))
        return float(self.rate / 5**falls)


class Descent:
    """What changes during a fit: the vectors, which are `users` and `items`."""

    def __init__(self, settings: PerRating, ratings: Ratings, users: Reals, items: Reals, seed: int) -> None:
        """Take ratings and weights; choose initial vectors and, for pdpmf, which ratings take part."""
        if ratings.scale is None:
            raise DataError("these ratings have no values. HDPMF predicts ratings: use some that have.")
        _check_weights(users, ratings.user_count, "user")
        _check_weights(items, ratings.item_count, "item")
        self._settings, self._ratings, self._seeds = settings, ratings, Seeds(seed)
        self._user_weights, self._item_weights = users, items
        self._width = ratings.scale.high - ratings.scale.low
        weights = users[ratings.users] * items[ratings.items]
        kept = self._taking_part(settings.epsilon * weights)
        self._owners, self._index = ratings.users[kept], ratings.items[kept]
        self._targets = ratings.values[kept].astype(np.float64)
        if settings.method == "hdpmf":
            self._targets *= weights[kept]
        self._scale = self._noise_scale(settings.epsilon * weights)
        self.users = initial("users", (ratings.user_count, settings.factors), seed)
        self.items = initial("items", (ratings.item_count, settings.factors), seed)

    def run(self, epoch: int) -> None:
        """Visit every rating that takes part once, in a new order."""
        settings = self._settings
        order = self._seeds.generator(f"order {epoch}").permutation(len(self._targets))
        spreads, draws = self._noise(epoch)
        pass_over(
            order, self._owners, self._index, self._targets, self.users, self.items, spreads, draws,
            settings.rate_in(epoch), settings.penalty,
        )  # fmt: skip
        if not (np.isfinite(self.users).all() and np.isfinite(self.items).all()):
            raise ConfigError(
                f"training broke down in epoch {epoch + 1}: rate={settings.rate:g} is too large for these "
                f"ratings. Use {settings.rate / 5:g} or less."
            )

    def finished(self) -> Factors:
        """Return the model; hdpmf's vectors divided by their weights, if they are to be."""
        users, items = self.users, self.items
        if self._settings.divides:
            users, items = users / self._user_weights[:, None], items / self._item_weights[:, None]
        ratings = self._ratings
        return without_biases(
            ratings.user_ids,
            ratings.item_ids,
            0.0,
            users.astype(np.float32),
            items.astype(np.float32),
            scale=ratings.scale,
            seen=seen_in(ratings),
        )

    def _noise(self, epoch: int) -> tuple[Reals, NDArray[np.float32]]:
        """Return what x = 2 Delta sqrt(2 K h) c / epsilon takes: its factor for each item, and each c.

        The c of a rating is normal with variance 1 / |R_j|, so that an item's noise is Laplace (Theorem 3,
        the root over h).
        """
        shape = self.items.shape
        if self._scale == 0:
            return np.zeros(shape), np.empty((0, shape[1]), np.float32)
        chance = self._seeds.generator("noise" if self._settings.noise == "fixed" else f"noise {epoch}")
        raters = np.maximum(np.bincount(self._index, minlength=shape[0]), 1)
        spreads = self._scale * np.sqrt(2 * chance.standard_exponential(shape) / raters[:, None])
        return spreads, chance.standard_normal((len(self._targets), shape[1]), np.float32)

    def _noise_scale(self, budgets: Reals) -> float:
        """Return the scale of each coordinate's Laplace noise: 2 sqrt(K) Delta / epsilon, Theorem 2."""
        settings = self._settings
        if not settings.noisy or not len(budgets):
            return 0.0
        promised = {"hdpmf": settings.epsilon, "pdpmf": budgets.mean(), "dpmf": budgets.min()}
        return float(2 * np.sqrt(settings.factors) * self._width / promised[settings.method])

    def _taking_part(self, budgets: Reals) -> NDArray[np.bool_]:
        """Say which ratings take part: for pdpmf by chance, equation (5), with t for their mean budget."""
        if self._settings.method != "pdpmf" or not len(budgets):
            return np.ones(len(budgets), np.bool_)
        chances = self._seeds.generator("taking part").random(len(budgets))
        return np.asarray(chances < taking_part(budgets, 1.0, float(budgets.mean())))


def initial(side: str, shape: tuple[int, int], seed: int) -> Reals:
    """Return the vectors at which users, or items, begin."""
    return Seeds(seed).generator(f"initial {side}").normal(0.0, _INITIAL_SPREAD, shape)


def _check_weights(weights: Reals, count: int, side: str) -> None:
    if weights.shape != (count,) or not ((weights > 0) & (weights <= 1)).all():
        raise DataError(f"{count:,} weights are needed, one for each {side}, above 0 and at most 1.")
