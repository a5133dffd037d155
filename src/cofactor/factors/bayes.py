"""`Bayes`: variational matrix factorization in which every user has slopes on what is known about items.

It is what a party uses on its own data: accurate without tuning, fast, and it knows how sure it is.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import not_negative, positive, whole
from cofactor.data.grouping import Grouped, Values
from cofactor.data.ratings import Ratings
from cofactor.errors import DataError
from cofactor.factors.baselines import UserItemBias
from cofactor.factors.bayes_kernels import Matrices
from cofactor.factors.bayes_known import LATENT_VARIANCE, Known
from cofactor.factors.bayes_steps import ItemPrior, Items, Tastes, item_step, user_step
from cofactor.factors.bayes_told import Told
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.factors.team import Team, team_size
from cofactor.progress import Listener, Progress, nobody
from cofactor.randomness import Seeds


@dataclass(frozen=True, kw_only=True)
class Bayes:
    """A rating is mean + item bias + item vector . user's taste + noise; the priors are learned by EM.

    An item's vector is what is known about it (a constant, its public features, its popularity, its bias)
    plus a deviation of its own; latent factors are all deviation. The settings are meant for ratings
    from 1 to 5 and are scaled to the ratings at hand.
    """

    factors: int = 16
    """Coordinates of the item vectors that stand for nothing known; too many do little harm."""
    epochs: int = 12
    """How often tastes and items are learned from each other; more than this changes little."""
    noise: float = 0.7
    """Variance of a rating around its prediction if user and item were known perfectly."""
    bias_spread: float = 0.35
    """How far item biases lie from what features and popularity tell (standard deviation)."""
    vector_spread: float = 0.27
    """How far an item's deviation moves a typical user's rating, to begin with (standard deviation)."""
    imagined: float = 50.0
    """Imagined users and items that hold the learned priors back where there are few real ones."""
    threads: int | None = None
    """Threads to use; None takes what the machine has and the ratings keep busy. The result is the same."""

    def __post_init__(self) -> None:
        not_negative(factors=self.factors)
        whole(factors=self.factors or None, epochs=self.epochs, threads=self.threads)
        positive(noise=self.noise, bias_spread=self.bias_spread, vector_spread=self.vector_spread)
        positive(imagined=self.imagined)

    def fit(
        self,
        ratings: Ratings,
        *,
        features: NDArray[Any] | None = None,
        seed: int = 0,
        progress: Listener = nobody,
    ) -> Factors:
        """Fit the model; `features` are public numbers, one row an item in the order of `item_ids`.

        The user vectors are tastes, in coordinates in which they have unit prior covariance.
        """
        return self.learn(ratings, features=features, seed=seed, progress=progress).model

    def learn(
        self,
        ratings: Ratings,
        *,
        features: NDArray[Any] | None = None,
        told: Told | None = None,
        start: "Beliefs | None" = None,
        seed: int = 0,
        progress: Listener = nobody,
    ) -> "Learned":
        """Fit the model and keep what it believes.

        `told` is evidence about the users beside their ratings; `fold_in` and `Posterior`, which look at a
        user's ratings only, know nothing of it. `start` is what an earlier fit believed about the same
        items: it is improved for `epochs` epochs more, and the seed plays no part.
        """
        data = _Data.of(ratings)
        known = Known.of(ratings, features, self.factors)
        beliefs = self._start(ratings, known, data.unit, seed) if start is None else start
        _check_start(beliefs, ratings.item_count, len(known.taste_variances()))
        if told is not None:
            told.check(ratings.user_count, len(known.taste_variances()) - self.factors)
        with Team(team_size(self.threads, ratings=len(ratings))) as team:
            for epoch in range(self.epochs):
                before = beliefs.items.bias
                beliefs = self._improved(data, known, beliefs, team, told)
                moved = data.unit * float(np.sqrt(np.mean((beliefs.items.bias - before) ** 2)))
                progress(Progress("bayes", epoch + 1, self.epochs, f"item biases moved by {moved:.4f}"))
            tastes, _ = self._tastes(data, beliefs, team, told)
        return Learned(self._model(ratings, beliefs, tastes, data.unit), beliefs)

    def _start(self, ratings: Ratings, known: Known, unit: float, seed: int) -> "Beliefs":
        bias = UserItemBias(iterations=3).fit(ratings).item_bias.astype(np.float64) / unit
        vectors = known.vectors(bias)
        width = vectors.shape[1]
        spread = self.vector_spread**2 / width
        random = Seeds(seed).generator("bayes: latent coordinates")
        size = np.sqrt(spread / LATENT_VARIANCE)
        vectors[:, width - self.factors :] = random.normal(0.0, size, (len(bias), self.factors))
        items = Items(bias, vectors, np.full(len(bias), self.vector_spread**2))
        return Beliefs(items, np.diag(known.taste_variances()), spread * np.eye(width))

    def _improved(
        self, data: "_Data", known: Known, beliefs: "Beliefs", team: Team, told: Told | None = None
    ) -> "Beliefs":
        """One epoch of EM: tastes, their covariance, items, the covariance of their deviations."""
        tastes, total = self._tastes(data, beliefs, team, told)
        covariance = self._pooled(total, data.by_user, beliefs.covariance)
        half = np.linalg.cholesky(covariance)
        prior = ItemPrior(
            bias=known.expected_bias(beliefs.items.bias),
            vectors=known.vectors(beliefs.items.bias),
            bias_precision=self.bias_spread**-2,
            vector_precision=half @ np.linalg.inv(beliefs.spread) @ half.T,
        )
        items, total = item_step(data.by_item, data.item_targets, tastes, covariance, prior, self.noise, team)
        start = self.vector_spread**2 / len(half) * np.eye(len(half))
        spread = self._pooled(half.T @ total @ half, data.by_item, start)
        # The known part of a vector holds the item's bias, which has just moved; its deviation stays.
        vectors = known.vectors(items.bias) + items.vectors - prior.vectors
        return self._in_usual_units(Beliefs(Items(items.bias, vectors, items.variance), covariance, spread))

    def _in_usual_units(self, beliefs: "Beliefs") -> "Beliefs":
        """Rescale and turn the latent factors so that tastes vary along them as they did at the start.

        Predictions stay the same. Left to themselves the units of tastes would grow and those of vectors
        shrink from epoch to epoch until float32 cannot hold both. The turn is lower triangular, so that
        `spread`, which lives in coordinates made by Cholesky, stays as it is.
        """
        if self.factors == 0:
            return beliefs
        turn, latent = np.eye(len(beliefs.covariance)), slice(-self.factors, None)
        half = np.linalg.cholesky(beliefs.covariance[latent, latent])
        turn[latent, latent] = np.sqrt(LATENT_VARIANCE) * np.linalg.inv(half)
        vectors = beliefs.items.vectors @ np.linalg.inv(turn)
        return replace(
            beliefs,
            items=replace(beliefs.items, vectors=vectors),
            covariance=turn @ beliefs.covariance @ turn.T,
        )

    def _tastes(
        self, data: "_Data", beliefs: "Beliefs", team: Team, told: Told | None
    ) -> tuple[Tastes, Matrices]:
        items, covariance = beliefs.items, beliefs.covariance
        return user_step(data.by_user, data.user_targets, items, covariance, self.noise, team, told)

    def _pooled(self, total: Matrices, real: Grouped, imagined: Matrices) -> Matrices:
        """Return the covariance over the real users or items that have ratings, and the imagined ones."""
        count = int((real.sizes > 0).sum())
        covariance: Matrices = (total + self.imagined * imagined) / (count + self.imagined)
        return (covariance + covariance.T) / 2

    def _model(self, ratings: Ratings, beliefs: "Beliefs", tastes: Tastes, unit: float) -> Factors:
        half = np.linalg.cholesky(beliefs.covariance)
        items = beliefs.items
        return Factors(
            user_ids=ratings.user_ids,
            item_ids=ratings.item_ids,
            mean=ratings.mean,
            user_bias=np.zeros(ratings.user_count, np.float32),
            item_bias=(unit * items.bias).astype(np.float32),
            user_vectors=np.linalg.solve(half, tastes.means.T.astype(np.float64)).T.astype(np.float32),
            item_vectors=(unit * items.vectors @ half).astype(np.float32),
            scale=ratings.scale,
            seen=seen_in(ratings),
            home=HomeFit(np.eye(len(half)), 1.0 / (self.noise + items.variance) / unit**2, calibrated=True),
        )


@dataclass(frozen=True)
class Beliefs:
    """Everything that EM passes from one epoch to the next, in units of a scale from 1 to 5."""

    items: Items
    covariance: Matrices
    """Prior covariance of tastes."""
    spread: Matrices
    """Covariance of the item vectors' deviations, in coordinates in which tastes have unit covariance."""


@dataclass(frozen=True)
class Learned:
    """A fitted model, and what it rests on."""

    model: Factors
    beliefs: Beliefs


def _check_start(beliefs: Beliefs, items: int, width: int) -> None:
    if beliefs.items.vectors.shape != (items, width):
        raise DataError(
            f"the earlier beliefs are about {beliefs.items.vectors.shape[0]:,} items with "
            f"{beliefs.items.vectors.shape[1]} coordinates; there are {items:,} with {width}. "
            "Start from a fit with the same items, features and factors."
        )


@dataclass(frozen=True)
class _Data:
    """The ratings less their mean, brought to the units of a scale from 1 to 5."""

    by_user: Grouped
    by_item: Grouped
    user_targets: Values
    item_targets: Values
    unit: float

    @classmethod
    def of(cls, ratings: Ratings) -> "_Data":
        if ratings.scale is None:
            raise DataError("Bayes needs ratings with values, and these have none. Use ImplicitALS().")
        unit = (ratings.scale.high - ratings.scale.low) / 4.0
        by_user, by_item = ratings.by_user, ratings.by_item
        mean, size = np.float32(ratings.mean), np.float32(unit)
        return cls(by_user, by_item, (by_user.values - mean) / size, (by_item.values - mean) / size, unit)
