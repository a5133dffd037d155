"""Vectors as models."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ids import Ids
from cofactor.factors.model import Factors

Floats = NDArray[np.float32]


def without_biases(
    user_ids: Ids, item_ids: Ids, mean: float, users: Floats, items: Floats, **more: Any
) -> Factors:
    """Return a model whose predictions are mean + user vector . item vector."""
    return Factors(
        user_ids=user_ids,
        item_ids=item_ids,
        mean=mean,
        user_bias=np.zeros(len(user_ids), np.float32),
        item_bias=np.zeros(len(item_ids), np.float32),
        user_vectors=users,
        item_vectors=items,
        **more,
    )
