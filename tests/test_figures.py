"""Numbers as they are printed."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.figures import at_least, at_most, readable


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_bounds_are_rounded_away_from_a_better_one_and_hardly_at_all(value: float) -> None:
    close = 1e-9 * value
    assert value - close <= at_most(value) <= value * 1.001 + close
    assert value * 0.999 - close <= at_least(value) <= value + close
    for bound in (at_most(value), at_least(value)):
        assert float(f"{bound:.4g}") == bound


def test_no_bound_at_all_stays_so() -> None:
    assert at_most(math.inf) == math.inf
    assert at_most(1.23401) == 1.235
    assert at_least(1.23499) == 1.234


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (2, "2 bytes"),
        (999, "999 bytes"),
        (999.7, "1 kB"),
        (1_234_567, "1.23 MB"),
    ],
)
def test_sizes_have_their_unit(count: float, words: str) -> None:
    assert readable(count) == words
