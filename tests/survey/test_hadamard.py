"""Hadamard's matrix, entry by entry and all at once."""

import numpy as np
import pytest
from scipy.linalg import hadamard

from cofactor.errors import ConfigError
from cofactor.survey.hadamard import hadamard_signs, order_for, walsh_hadamard

ORDERS = [1, 2, 8, 64]


@pytest.mark.parametrize("order", ORDERS)
def test_signs_are_the_entries_of_the_matrix(order: int) -> None:
    each = np.arange(order)
    assert np.array_equal(hadamard_signs(each[:, None], each), hadamard(order))


@pytest.mark.parametrize("order", ORDERS)
def test_the_transform_is_the_matrix_times_each_row_exactly(order: int) -> None:
    values = np.random.default_rng(0).integers(-(2**40), 2**40, (2, 3, order))
    before = values.copy()
    found = walsh_hadamard(values)
    assert found.dtype == np.int64
    assert np.array_equal(found, values @ hadamard(order))
    assert np.array_equal(walsh_hadamard(found), order * values)
    found += 1
    assert np.array_equal(values, before)


@pytest.mark.parametrize("values", [np.zeros(0), np.zeros(6), np.zeros((4, 3)), np.array(1.0)])
def test_lengths_that_are_no_power_of_two_are_refused(values: np.ndarray) -> None:
    with pytest.raises(ConfigError, match="power of two"):
        walsh_hadamard(values)


def test_the_order_is_the_least_power_of_two_with_room_for_all_columns() -> None:
    assert [order_for(columns) for columns in (1, 2, 3, 4, 5, 1024, 1025, 2**16)] == [
        *(1, 2, 4, 4, 8),
        *(1024, 2048, 2**16),
    ]
