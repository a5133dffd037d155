"""The model of `VerticalTaste` that everyone may see: made from what was released, and nothing else."""

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ids import Ids
from cofactor.data.ratings import Scale
from cofactor.factors.bayes_told import Told
from cofactor.factors.model import Factors
from cofactor.recipes.taste_items import KnownItems, Matrix, Units
from cofactor.recipes.taste_likelihood import Moments, told_by_others
from cofactor.recipes.taste_message import BIAS, FEATURE, LEVEL, POPULARITY, Directions

_AT_ONCE = 1024
"""Users whose matrices are in memory at a time."""


def public_model(
    total: Matrix,
    noise: float,
    items: KnownItems,
    directions: Directions,
    *,
    user_ids: Ids,
    item_ids: Ids,
    scale: Scale,
) -> Factors:
    """Return tastes as the sum of all messages tells them, and items as the item release does."""
    known = np.column_stack([np.ones(len(items.bias)), items.columns, items.popularity, items.bias])
    moments = Moments.of(directions.rows, items.weights, known)
    tastes = _tastes(told_by_others(total, directions, moments, noise, mismatch=0.0))
    units = Units.of(scale)
    return Factors(
        user_ids=user_ids,
        item_ids=item_ids,
        mean=units.centre + units.unit * items.mean,
        user_bias=np.zeros(len(user_ids), np.float32),
        item_bias=(units.unit * items.bias).astype(np.float32),
        user_vectors=tastes.astype(np.float32),
        item_vectors=(units.unit * known).astype(np.float32),
        scale=scale,
    )


def _tastes(told: Told) -> NDArray[np.float64]:
    """Return the users' expected tastes, (S^-1 + C'PC)^-1 C'h = SC' (1 + P CSC')^-1 h, a range at a time."""
    features = told.combinations.shape[1] - 3
    variances = np.concatenate([[LEVEL], np.full(features, FEATURE), [POPULARITY, BIAS]])
    reach = told.combinations * variances
    tastes = np.empty((told.users, len(variances)))
    for start in range(0, told.users, _AT_ONCE):
        users = slice(start, start + _AT_ONCE)
        precision, information = told.about(users)
        inner = np.eye(len(reach)) + precision @ (reach @ told.combinations.T)
        tastes[users] = np.linalg.solve(inner, information[:, :, None])[:, :, 0] @ reach
    return tastes
