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
Fit = Callable[[Ratings], Factors]
"""What makes a model of a party's ratings."""

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
    alone, together = _fitting(home, party.features, seed), _fitting(home, _columns(party, released), seed)
    held = _held_out(party.ratings, seed)
    if held is None:
        return alone(party.ratings)
    gain = _squares(alone, *held) - _squares(together, *held)
    surely = gain.mean() > _SURE * gain.std() / np.sqrt(len(gain))
    return together(party.ratings) if surely else alone(party.ratings)


def fit_best(home: Bayes, party: Party, released: Floats, seed: int, shared: Fit) -> Factors:
    """Return what predicts ratings held out best: the shared model, or a party's own with or without it.

    A party with too few ratings to tell takes the shared one.
    """
    held = _held_out(party.ratings, seed)
    if held is None:
        return shared(party.ratings)
    own = (_fitting(home, party.features, seed), _fitting(home, _columns(party, released), seed))
    best = min((shared, *own), key=lambda fit: float(_squares(fit, *held).mean()))
    return best(party.ratings)


def _fitting(home: Bayes, features: Floats | None, seed: int) -> Fit:
    return lambda ratings: home.fit(ratings, features=features, seed=seed)


def _held_out(ratings: Ratings, seed: int) -> tuple[Ratings, Ratings] | None:
    """Hold out some of a party's ratings, if that leaves enough to tell models apart."""
    try:
        learn, test = by_fraction(ratings, _HELD_OUT, seed=seed)
    except DataError:
        return None
    return (learn, test) if len(test) >= _FEWEST else None


def _squares(fit: Fit, learn: Ratings, test: Ratings) -> NDArray[np.float64]:
    missed = fit(learn).predict_rows(test.users, test.items).astype(np.float64) - test.values
    return missed**2


def _columns(party: Party, released: Floats) -> Floats:
    return released if party.features is None else np.hstack([party.features, released])
