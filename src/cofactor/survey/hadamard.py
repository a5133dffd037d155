"""Hadamard's matrix in Sylvester's order: its entries one by one, and all of it at once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import ConfigError
from cofactor.survey.method import Integers


def hadamard_signs(rows: Any, columns: Any) -> Integers:
    """Return entries 1 or -1: whether the numbers of row and column share an even count of binary ones."""
    shared = np.bitwise_count(np.bitwise_and(rows, columns))
    return np.asarray(1 - 2 * (shared & 1).astype(np.int64))


def walsh_hadamard(array: NDArray[Any]) -> NDArray[Any]:
    """Return the matrix times each row of an array, along its last axis, whose length is a power of two.

    Whole numbers stay whole. Twice applied, it gives the array times that length: the matrix is symmetric.
    """
    found = np.asarray(array)
    order = found.shape[-1] if found.ndim else 0
    if order < 1 or order & (order - 1):
        raise ConfigError(f"a Hadamard matrix has an order that is a power of two, got {order:,}.")
    half = 1
    while half < order:
        pairs = found.reshape(*found.shape[:-1], order // (2 * half), 2, half)
        first, second = pairs[..., 0, :], pairs[..., 1, :]
        found = np.stack((first + second, first - second), axis=-2).reshape(found.shape)
        half *= 2
    return found.copy() if order == 1 else found


def order_for(columns: int) -> int:
    """Return the least power of two that is no smaller."""
    return 1 << (columns - 1).bit_length()
