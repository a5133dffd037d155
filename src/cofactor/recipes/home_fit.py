"""What a party makes at home of item vectors that all parties released together. All of this stays there."""

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

_HELD_OUT = 0.1
_FEWEST = 50
"""With fewer held-out ratings than this there is no telling, and the party stays alone."""
_SURE = 1.0
"""By how many standard errors the released vectors must have helped on the held-out ratings."""


def fitted_users(ratings: Grouped, items: Floats, expected: Floats, ridge: float) -> Floats:
    """Fit each user's vector to the user's own ratings of items that are given.

    A ridge regression: vectors are pulled towards `expected` as `ridge` ratings would.
    """
    width = items.shape[1]
    vectors = items.astype(np.float32)
    products = pack(vectors.astype(np.float64)[:, :, None] * vectors[:, None, :])
    moments = np.hstack([np.ones((len(vectors), 1)), vectors, products]).astype(np.float32)
    residuals = ratings.values - (vectors @ expected)[ratings.index]
    plain, by_target = sum_moments(ratings.ptr, ratings.index, residuals, moments, width + 1)
    squares = unpack(plain[:, width + 1 :], width) + ridge * np.eye(width)
    moved = np.linalg.solve(squares, by_target[:, 1:, None])[:, :, 0]
    return (expected + moved).astype(np.float32)


def fit_with_released(home: Bayes, party: Party, released: Floats, seed: int) -> Factors:
    """Fit the home model; released vectors are features of the items if that helped on ratings held out."""
    together = _columns(party.features, released)
    chosen = together if _helps(home, party, together, seed) else party.features
    return home.fit(party.ratings, features=chosen, seed=seed)


def _helps(home: Bayes, party: Party, together: Floats, seed: int) -> bool:
    """Say whether the party predicts its own held-out ratings better with the released vectors."""
    try:
        learn, test = by_fraction(party.ratings, _HELD_OUT, seed=seed)
    except DataError:
        return False
    if len(test) < _FEWEST:
        return False
    errors = [_squares(home.fit(learn, features=x, seed=seed), test) for x in (party.features, together)]
    gain = errors[0] - errors[1]
    return bool(gain.mean() > _SURE * gain.std() / np.sqrt(len(gain)))


def _squares(model: Factors, test: Ratings) -> NDArray[np.float64]:
    missed = model.predict_rows(test.users, test.items).astype(np.float64) - test.values
    return missed**2


def _columns(features: Floats | None, released: Floats) -> Floats:
    spread = np.maximum(released.std(axis=0), 1e-6)
    columns = (released / spread).astype(np.float32)
    return columns if features is None else np.hstack([features, columns])
