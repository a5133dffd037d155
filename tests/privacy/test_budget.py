import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.config import as_table, from_table
from cofactor.errors import ConfigError, PrivacyWarning
from cofactor.privacy.budget import Budget, odds


def budget(**changes: Any) -> Budget:
    usual: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6, "unit": "user"}
    return Budget(**usual | changes)


def test_neighbours_are_emptied_units_unless_told_otherwise() -> None:
    assert budget().adjacency == "empty"


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"epsilon": 0.0}, "epsilon must lie between 1e-6"),
    ({"epsilon": -1.0}, "epsilon must be 0 or more, got -1.0"),
    ({"epsilon": math.nan}, "epsilon must be a finite number, got nan"),
    ({"epsilon": math.inf}, "epsilon must be a finite number, got inf"),
    ({"epsilon": 2000.0}, "1000, which promises nothing at all; got 2000"),
    ({"epsilon": "2"}, "epsilon must be a number, got '2'"),
    ({"delta": -1e-9}, "delta must be 0 or more"),
    ({"delta": math.nan}, "delta must be a finite number, got nan"),
    ({"delta": 0.01}, "delta must be below 0.01, got 0.01"),
    ({"delta": 1.0}, "the probability that the promise fails outright"),
    ({"unit": "person"}, "unit must be one of user, rating, got 'person'"),
    ({"unit": "ratings"}, 'Did you mean "rating"?'),
    ({"adjacency": "remove"}, "adjacency must be one of empty, replace, value"),
]


@pytest.mark.parametrize(("changes", "message"), MISTAKES, ids=[str(change) for change, _ in MISTAKES])
def test_budget_that_promises_nothing_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        budget(**changes)
    assert message in str(caught.value)


def test_delta_of_zero_is_allowed() -> None:
    assert budget(delta=0.0).delta == 0


def test_large_epsilon_warns_where_the_budget_is_made() -> None:
    with pytest.warns(PrivacyWarning, match="promises next to nothing") as caught:
        budget(epsilon=10.1)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        budget(epsilon=10.0)


def test_delta_is_compared_with_the_number_of_units() -> None:
    one_in_thousand = budget(delta=1e-3)
    assert one_in_thousand.concerns() == []
    assert one_in_thousand.concerns(units=999) == []
    assert "delta 0.001 is not below 1/1,000" in one_in_thousand.concerns(units=1000)[0]


def test_guesser_is_right_as_often_as_the_formula_says() -> None:
    assert odds(0.0, 0.0) == 0.5
    assert odds(1.0, 0.0) == pytest.approx(math.e / (1 + math.e))
    assert odds(2.0, 0.005) == pytest.approx((math.exp(2) + 0.005) / (1 + math.exp(2)))
    assert odds(1e4, 0.0) == 1.0
    assert odds(0.0, 1.0) == 1.0


@given(st.floats(0, 1e3), st.floats(0, 1))
def test_guesser_is_never_worse_than_a_coin_nor_better_than_right(epsilon: float, delta: float) -> None:
    assert 0.5 <= odds(epsilon, delta) <= 1.0


def test_budget_survives_the_way_through_a_table() -> None:
    made = budget(unit="rating", adjacency="value")
    assert from_table(Budget, as_table(made), "budget") == made


def test_unknown_word_in_a_table_is_named_with_its_place() -> None:
    table = as_table(budget()) | {"adjacency": "replaced"}
    with pytest.raises(ConfigError, match=r'^\[budget\]: adjacency must be one of .* Did you mean "replace"'):
        from_table(Budget, table, "[budget]")


def test_budget_reads_as_one_line_with_all_that_it_promises() -> None:
    line = str(budget(adjacency="replace"))
    assert all(word in line for word in ("epsilon 2", "delta 1e-06", "user", "replace"))
    assert "\n" not in line


def test_numpy_numbers_become_plain_ones() -> None:
    found = budget(epsilon=np.float32(2), delta=np.float64(1e-6))
    assert (type(found.epsilon), type(found.delta)) == (float, float)
