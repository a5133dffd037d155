from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.config import as_table, from_table
from cofactor.errors import ConfigError
from cofactor.survey.question import Question


def test_values_outside_the_range_are_moved_to_its_ends_and_counted() -> None:
    positions, outside = Question(name="age", low=0, high=100).positions(np.array([-5.0, 0, 25, 100, 1e30]))
    np.testing.assert_allclose(positions, [0, 0, 0.25, 1, 1])
    assert outside == 2


def test_whole_numbers_lie_in_the_middle_of_their_buckets() -> None:
    question = Question(name="stars", low=1, high=5, whole=True)
    positions, outside = question.positions(np.arange(1.0, 6.0))
    np.testing.assert_allclose(positions, [0.1, 0.3, 0.5, 0.7, 0.9])
    np.testing.assert_allclose(question.edges(5), [0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
    assert (question.levels, outside) == (5, 0)


def test_buckets_of_a_logarithmic_question_grow_with_their_numbers() -> None:
    question = Question(name="ratings", low=1, high=1000, log=True)
    np.testing.assert_allclose(question.edges(3), [1, 10, 100, 1000])
    np.testing.assert_allclose(question.positions(np.array([1.0, 10.0, 1000.0]))[0], [0, 1 / 3, 1])
    assert question.levels is None


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-2, 1e6),
    st.booleans(),
    st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20),
)
def test_positions_lie_between_0_and_1_and_in_the_bucket_that_edges_say(
    low: float, width: float, log: bool, values: list[float]
) -> None:
    low = abs(low) + 1e-3 if log else low
    question = Question(name="x", low=low, high=low + width, log=log)
    given_values = np.array(values)
    positions, outside = question.positions(given_values)
    assert np.all((positions >= 0) & (positions <= 1))
    assert outside == np.sum((given_values < question.low) | (given_values > question.high))
    edges = question.edges(16)
    place = np.minimum((positions * 16).astype(int), 15)
    clipped = np.clip(given_values, question.low, question.high)
    slack = 1e-9 * (abs(low) + width)
    assert np.all((edges[place] <= clipped + slack) & (clipped <= edges[place + 1] + slack))


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"low": 5, "high": 5}, "below high"),
        ({"low": 9, "high": 5}, "below high"),
        ({"low": float("nan"), "high": 5}, "low must be a number"),
        ({"low": 0, "high": float("inf")}, "high must be a number"),
        ({"low": 0, "high": "9"}, "high must be a number"),
        ({"low": True, "high": 5}, "low must be a number"),
        ({"low": 0.5, "high": 5, "whole": True}, "are whole"),
        ({"low": 0, "high": 5, "log": True}, "above 0"),
        ({"low": 0, "high": 5, "name": ""}, "name must be"),
        ({"low": 0, "high": 5, "name": "two\nlines"}, "name must be"),
    ],
)
def test_questions_that_make_no_sense_are_refused(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        Question(**({"name": "x"} | settings))


def test_a_question_is_written_and_read() -> None:
    question = Question(name="ratings of a user", low=1, high=1682, whole=True, log=True)
    assert from_table(Question, as_table(question), "question") == question


def test_ends_too_close_to_tell_anything_apart_are_refused() -> None:
    with pytest.raises(ConfigError, match="too close"):
        Question(name="x", low=1e10, high=float(np.nextafter(1e10, 2e10)), log=True)
