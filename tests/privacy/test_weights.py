import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.errors import ConfigError, DataError
from cofactor.privacy.weights import (
    HDPMF_ITEMS,
    HDPMF_USERS,
    LEAST_WEIGHT,
    Group,
    Weights,
    groups_of,
    taking_part,
)


def test_table_2_is_as_published() -> None:
    assert [(group.name, group.share, group.low, group.high) for group in HDPMF_USERS] == [
        ("conservative", 0.54, 0.1, 0.5),
        ("moderate", 0.37, 0.5, 1.0),
        ("liberal", 0.09, 1.0, 1.0),
    ]
    assert [(group.low, group.high) for group in HDPMF_ITEMS] == [(0.1, 0.5), (0.5, 1.0), (1.0, 1.0)]
    assert sum(group.share for group in HDPMF_ITEMS) == pytest.approx(1.0)


def test_drawn_weights_follow_from_seed_and_id_alone() -> None:
    ids = np.arange(1000)
    drawn = Weights.drawn(HDPMF_USERS, seed=3).of(ids)
    assert np.array_equal(drawn[::7], Weights.drawn(HDPMF_USERS, seed=3).of(ids[::7]))
    assert np.array_equal(drawn, Weights.drawn(HDPMF_USERS, seed=3).of([str(one) for one in ids]))
    assert not np.array_equal(drawn, Weights.drawn(HDPMF_USERS, seed=4).of(ids))


def test_drawn_weights_have_the_shares_and_ranges_of_their_groups() -> None:
    weights = Weights.drawn(HDPMF_USERS, seed=0)
    drawn, count = weights.of(range(20_000)), 20_000
    places = weights.groups_of(range(20_000))
    for at, group in enumerate(HDPMF_USERS):
        own = drawn[places == at]
        # Six standard errors: a false alarm in less than one of 10^8 runs.
        assert abs(len(own) / count - group.share) < 6 * math.sqrt(group.share / count)
        assert own.min() >= group.low
        assert own.max() <= group.high
        width = group.high - group.low
        assert abs(own.mean() - (group.low + group.high) / 2) <= 6 * width / math.sqrt(12 * len(own))
    assert weights.expected == pytest.approx(0.54 * 0.3 + 0.37 * 0.75 + 0.09)


def test_weights_come_from_a_mapping_a_function_or_names_of_groups() -> None:
    assert Weights.by({1: 0.2, 2: 1.0}).of([2, 1]).tolist() == [1.0, 0.2]
    assert Weights.by({1: 0.2}, otherwise=0.5).of(["1", "7"]).tolist() == [0.2, 0.5]
    assert Weights.by(lambda one: 0.1 if one == 9 else 1.0).of([9, 8]).tolist() == [0.1, 1.0]
    named = Weights.by({1: "liberal", 2: "conservative"}, groups=HDPMF_USERS)
    assert named.of([1, 2]).tolist() == [1.0, 0.1]
    assert named.groups_of([1, 2]).tolist() == [2, 0]
    assert named.expected == pytest.approx(0.5295)
    assert Weights.by({1: 0.2}).expected == 0.5
    assert Weights.by({1: 0.2}, expected=0.3).expected == 0.3
    assert Weights.equal(0.4).of([5]).tolist() == [0.4]


def test_a_weight_where_two_groups_meet_is_in_the_larger_one_and_one_in_a_gap_in_none() -> None:
    assert groups_of(HDPMF_USERS, np.array([0.1, 0.499, 0.5, 0.999, 1.0, 0.05])).tolist() == [
        0,
        0,
        1,
        1,
        2,
        -1,
    ]
    gap = (Group(name="a", share=0.5, low=0.1, high=0.2), Group(name="b", share=0.5, low=0.6, high=0.7))
    assert groups_of(gap, np.array([0.15, 0.4, 0.65, 0.9])).tolist() == [0, -1, 1, -1]
    assert groups_of((), np.array([0.3])).tolist() == [-1]


@pytest.mark.parametrize("wrong", [0.0, -1.0, 1.5, math.nan, LEAST_WEIGHT / 2, True, None, [1], "bold"])
def test_wrong_weights_are_refused_without_saying_whose_they_are(wrong: Any) -> None:
    with pytest.raises(DataError) as caught:
        Weights.by({4711: wrong}, groups=HDPMF_USERS).of([4711])
    assert "4711" not in str(caught.value)


def test_missing_weights_are_counted_and_nobody_is_named() -> None:
    with pytest.raises(DataError, match=r"2 of 3 have no weight.*otherwise=") as caught:
        Weights.by({1: 0.5}).of([1, 815, 816])
    assert "815" not in str(caught.value)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([Group(name="a", share=0.5, low=0.1, high=0.5)], "add up to 1"),
        (
            [Group(name="a", share=0.5, low=0.1, high=0.5), Group(name="b", share=0.5, low=0.4, high=1.0)],
            "overlap",
        ),
        (
            [Group(name="a", share=0.5, low=0.1, high=0.2), Group(name="a", share=0.5, low=0.4, high=1.0)],
            "same name",
        ),
        (["conservative"], "Group"),
    ],
)
def test_groups_that_make_no_policy_are_refused(groups: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Weights.by({}, groups=groups)


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "", "share": 1.0, "low": 0.1, "high": 0.2},
        {"name": "a", "share": 1.5, "low": 0.1, "high": 0.2},
        {"name": "a", "share": 1.0, "low": 0.3, "high": 0.2},
        {"name": "a", "share": 1.0, "low": 0.3, "high": 1.2},
        {"name": "a", "share": 1.0, "low": 0.0, "high": 1.0},
    ],
)
def test_a_group_checks_itself(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Group(**settings)


@given(
    weight=st.floats(LEAST_WEIGHT, 1.0),
    epsilon=st.floats(0.01, 20.0),
    part=st.floats(0.01, 1.0),
)
def test_whoever_takes_part_by_chance_loses_what_was_promised_at_most(
    weight: float, epsilon: float, part: float
) -> None:
    threshold = part * epsilon
    chance = float(taking_part(np.array([weight]), epsilon, threshold)[0])
    assert 0 < chance <= 1
    lost = math.log1p(chance * math.expm1(threshold))
    assert lost <= min(weight * epsilon, threshold) * (1 + 1e-12)
    assert lost >= min(weight * epsilon, threshold) * (1 - 1e-9)
