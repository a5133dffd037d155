"""What a party makes at home of item vectors that all parties released together. All of this stays there."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.errors import DataError
from cofactor.factors.bayes import Bayes
from cofactor.factors.bayes_kernels import pack, sum_moments, unpack
from cofactor.factors.model import Factors
from cofactor.federation.party import Party

Floats = NDArray[np.float32]

_RIDGE, _BIAS_RIDGE, _TASTE_RIDGE = 2.0, 3.0, 1.0
"""Penalties on squares, counted in ratings where vectors have length 1."""
_HELD_OUT = 0.1
_FEWEST = 50
"""With fewer held-out ratings than this there is no telling, and the party stays alone."""
_SURE = 2.0
"""By how many standard errors the released vectors must have helped on the held-out ratings."""


@dataclass(frozen=True, kw_only=True)
class UsersOnly:
    """Fit nothing at home but users' vectors, to items as they were released: no fine-tuning."""


class Users(NamedTuple):
    """What a party knows about its users."""

    bias: Floats
    """What is taken off all ratings of a user."""
    vectors: Floats


def fitted_users(ratings: Grouped, items: Floats, level: float) -> Users:
    """Fit each user's vector to the user's own ratings of given items: near `level` in all coordinates."""
    expected = np.full(items.shape[1], level, np.float32)
    residuals = ratings.values - (items @ expected)[ratings.index]
    moved = _ridge(ratings, residuals, items, np.full(items.shape[1], _RIDGE))
    return Users(np.zeros(len(moved), np.float32), (expected + moved).astype(np.float32))


def fitted_tastes(ratings: Grouped, items: Floats) -> Users:
    """Fit each user's bias and tastes, where the first coordinate of an item is its bias.

    The first coordinate of every user is 1.
    """
    ones = np.ones(len(items), np.float32)
    known = np.column_stack([ones, items[:, 1:]])
    penalties = np.full(items.shape[1], _TASTE_RIDGE)
    penalties[0] = _BIAS_RIDGE
    found = _ridge(ratings, ratings.values - items[ratings.index, 0], known, penalties)
    return Users(found[:, 0].copy(), np.column_stack([np.ones(len(found), np.float32), found[:, 1:]]))


def _ridge(ratings: Grouped, targets: Floats, items: Floats, penalties: NDArray[np.float64]) -> Floats:
    """Regress each user's targets on the vectors of the items that the user rated."""
    width = items.shape[1]
    products = pack(items.astype(np.float64)[:, :, None] * items[:, None, :])
    moments = np.hstack([np.ones((len(items), 1)), items, products]).astype(np.float32)
    plain, by_target = sum_moments(ratings.ptr, ratings.index, targets, moments, width + 1)
    squares = unpack(plain[:, width + 1 :], width) + np.diag(penalties)
    return np.linalg.solve(squares, by_target[:, 1:, None])[:, :, 0].astype(np.float32)


def fit_with_released(home: Bayes, party: Party, released: Floats, seed: int) -> Factors:
    """Fit the home model; released vectors are features of the items if that helped on ratings held out."""
    together = _columns(party.features, released)
    pair = (_fitting(home, party.features, seed), _fitting(home, together, seed))
    gains = _gains(party.ratings, pair, seed)
    return pair[int(_surely(gains))](party.ratings)


def fit_or_keep(
    home: Bayes, party: Party, released: Floats, seed: int, shared: Callable[[Ratings], Factors]
) -> Factors:
    """Return a party's own model, of which released columns are features, or the shared one with its users.

    The shared one is kept unless the own one has surely predicted ratings held out better.
    """
    own = _fitting(home, _columns(party.features, released), seed)
    gains = _gains(party.ratings, (shared, own), seed)
    return own(party.ratings) if _surely(gains) else shared(party.ratings)


def _fitting(home: Bayes, features: Floats | None, seed: int) -> Callable[[Ratings], Factors]:
    return lambda ratings: home.fit(ratings, features=features, seed=seed)


def _gains(
    ratings: Ratings, pair: tuple[Callable[[Ratings], Factors], Callable[[Ratings], Factors]], seed: int
) -> NDArray[np.float64]:
    """Return by how much the second of two models errs less on ratings held out; nothing if they are few."""
    try:
        learn, test = by_fraction(ratings, _HELD_OUT, seed=seed)
    except DataError:
        return np.zeros(0)
    if len(test) < _FEWEST:
        return np.zeros(0)
    first, second = (_squares(fit(learn), test) for fit in pair)
    return np.asarray(first - second)


def _surely(gains: NDArray[np.float64]) -> bool:
    return len(gains) > 0 and bool(gains.mean() > _SURE * gains.std() / np.sqrt(len(gains)))


def _squares(model: Factors, test: Ratings) -> NDArray[np.float64]:
    missed = model.predict_rows(test.users, test.items).astype(np.float64) - test.values
    return missed**2


def _columns(features: Floats | None, released: Floats) -> Floats:
    return released if features is None else np.hstack([features, released])
