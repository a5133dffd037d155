"""How well items predict somebody's ratings, each from all her others: what a fold-in leaves over."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.errors import DataError
from cofactor.factors.model import Factors, HomeFit

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
_LEAST = 1e-6


def errors(model: Factors, candidates: Ratings) -> tuple[Floats, Rows]:
    """Return each user's mean squared error, every rating predicted from her others, and their number.

    Ratings of items that the model does not have are left out; NaN for who has none besides.
    """
    home = model.home
    if home is None:
        raise DataError("this model was saved without what fold_in needs. Fit it again with cofactor.")
    return _by_user(model, candidates, lambda items, values: _folded(model, home, items, values))


def usual_errors(model: Factors, candidates: Ratings) -> Floats:
    """Return the same where ratings are predicted by the means of items and of her other ratings.

    Where there are no values to predict, that is 1.
    """
    if model.home is not None and model.home.confidence is not None:
        return np.ones(candidates.user_count)

    def left_over(items: Rows, values: Floats) -> Floats:
        above = values - model.mean - model.item_bias[items]
        return np.asarray((above - above.mean()) * (len(above) / max(len(above) - 1, 1)))

    return _by_user(model, candidates, left_over)[0]


def _by_user(
    model: Factors, candidates: Ratings, left_over: Callable[[Rows, Floats], Floats]
) -> tuple[Floats, Rows]:
    at = {str(item): row for row, item in enumerate(model.item_ids.tolist())}
    place = np.array([at.get(str(item), -1) for item in candidates.item_ids.tolist()], np.int64)
    grouped = candidates.by_user
    found, known = np.full(candidates.user_count, np.nan), np.zeros(candidates.user_count, np.int64)
    for user in range(candidates.user_count):
        own = slice(grouped.ptr[user], grouped.ptr[user + 1])
        items, values = place[grouped.index[own]], grouped.values[own].astype(np.float64)
        items, values = items[items >= 0], values[items >= 0]
        known[user] = len(items)
        if len(items):
            found[user] = np.mean(np.square(left_over(items, values)))
    return found, known


def _folded(model: Factors, home: HomeFit, items: Rows, values: Floats) -> Floats:
    """Return what is left of each rating when her row is fitted to all others.

    With H the weighted hat matrix of her ridge regression, leaving rating i out divides what is left of it by
    1 - H_ii. An implicit model asks for 1, which it cannot reach.
    """
    vectors = model.item_vectors[items].astype(np.float64)
    x = np.column_stack([np.ones(len(items)), vectors]) if len(home.precision) > vectors.shape[1] else vectors
    weights, asked = home.weights[items], values - model.mean - model.item_bias[items]
    beyond: Floats | float = 0.0
    if home.confidence is not None:
        weights = home.confidence * values
        beyond = 1 / weights
        asked = 1 + beyond
    weighted = x * weights[:, None]
    inverse = np.linalg.inv(weighted.T @ x + home.precision * len(items) ** home.growth)
    fitted = x @ (inverse @ (weighted.T @ asked))
    own = np.einsum("ij,jk,ik->i", weighted, inverse, x)
    return np.asarray((asked - fitted) / np.maximum(1 - own, _LEAST) - beyond)
