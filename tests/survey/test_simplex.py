"""Numbers become the nearest probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cofactor.errors import DataError
from cofactor.survey.method import Floats
from cofactor.survey.simplex import norm_sub

rows = arrays(np.float64, st.integers(1, 40), elements=st.floats(-3, 3, width=32))


def subtracted_again_and_again(values: Floats) -> Floats:
    """Do as section 3.4.1 of the thesis says, step by step."""
    found = values.copy()
    while True:
        found[found < 0] = 0
        positive = found > 0
        amount = (found.sum() - 1) / positive.sum()
        found[positive] -= amount
        if np.all(found >= 0):
            return found


@given(rows)
def test_norm_sub_ends_where_subtracting_again_and_again_ends(values: Floats) -> None:
    values[0] = 1 + abs(values[0])  # what is above 0 adds up to 1 or more
    np.testing.assert_allclose(norm_sub(values), subtracted_again_and_again(values), rtol=0, atol=1e-12)


def test_the_example_that_needs_two_rounds_by_hand() -> None:
    # -0.5 becomes 0; the rest adds up to 1.55: 0.55 / 3 less makes 0.05 negative. Then 0.25 less of two.
    np.testing.assert_allclose(norm_sub([1.0, 0.5, 0.05, -0.5]), [0.75, 0.25, 0, 0], atol=1e-15)


@given(rows)
def test_the_result_is_a_distribution_and_the_nearest_one(values: Floats) -> None:
    found = norm_sub(values)
    assert np.all(found >= 0)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    # The nearest point of a convex set: from it, no corner lies in the direction of the values.
    away = values - found
    assert np.all(away - away @ found <= 1e-9)


@given(rows, st.floats(-1e6, 1e6))
def test_adding_the_same_to_all_changes_nothing(values: Floats, amount: float) -> None:
    np.testing.assert_allclose(norm_sub(values + amount), norm_sub(values), rtol=0, atol=1e-9)


@given(rows)
def test_probabilities_stay_as_they_are(values: Floats) -> None:
    probabilities = (np.abs(values) + 1) / np.sum(np.abs(values) + 1)
    np.testing.assert_allclose(norm_sub(probabilities), probabilities, rtol=0, atol=1e-14)


@pytest.mark.parametrize("size", [1e-300, 1e9, 1e300])
def test_estimates_of_any_size_add_up_to_one(size: float) -> None:
    values = size * np.random.default_rng(0).normal(size=1000)
    assert norm_sub(values).sum() == pytest.approx(1, abs=1e-12)


def test_numbers_that_are_all_below_zero_become_probabilities_as_well() -> None:
    np.testing.assert_allclose(norm_sub([-2.0, -2.5, -9.0]), [0.75, 0.25, 0], atol=1e-15)


@pytest.mark.parametrize("values", [[], [0.5, np.nan], [np.inf, 0.0], [[0.5, 0.5]]])
def test_what_is_no_row_of_finite_numbers_is_refused(values: list[float]) -> None:
    with pytest.raises(DataError, match="finite"):
        norm_sub(values)
