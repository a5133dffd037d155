"""The arithmetic of `HDPMF` as published: one pass over the ratings, one after the other."""

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.grouping import Index

Reals = NDArray[np.float64]


@kernel
def pass_over(
    order: NDArray[np.int64],
    owners: Index,
    index: Index,
    targets: Reals,
    users: Reals,
    items: Reals,
    spreads: Reals,
    draws: NDArray[np.float32],
    rate: float,
    penalty: float,
) -> None:
    """Move user and item vectors against the gradient of each rating, equation (4), in the given order.

    A rating's share of its item's noise is spreads[item] * draws[rating]; without draws there is no noise.
    User vectors are scaled down to length 1 after each step.
    """
    for position in order:
        user, item = users[owners[position]], items[index[position]]
        error = -targets[position]
        for factor in range(user.size):
            error += user[factor] * item[factor]
        length = 0.0
        for factor in range(user.size):
            toward_user = 2 * (error * item[factor] + penalty * user[factor])
            toward_item = 2 * (error * user[factor] + penalty * item[factor])
            if draws.size:
                toward_item += spreads[index[position], factor] * draws[position, factor]
            user[factor] -= rate * toward_user
            item[factor] -= rate * toward_item
            length += user[factor] ** 2
        if length > 1:
            user /= np.sqrt(length)
