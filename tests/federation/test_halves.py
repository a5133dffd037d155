"""What all halves may use."""

from typing import Any

import numpy as np
import pytest

from cofactor.errors import RunError
from cofactor.federation.halves import array_of, weighted_mean
from cofactor.federation.splits import shared_units
from tests.federation.making import Off


def test_mean_is_weighted_by_those_who_answered() -> None:
    replies: dict[str, Any] = {"a": np.array([0.0, 4.0], np.float32), "c": np.array([4.0, 0.0], np.float32)}
    mean = weighted_mean(replies, {"a": 3.0, "b": 100.0, "c": 1.0})
    assert mean.tolist() == [1.0, 3.0]
    assert mean.dtype == np.float32


def test_mean_of_nobody_is_refused() -> None:
    with pytest.raises(RunError, match="nobody answered"):
        weighted_mean({}, {"a": 1.0})


def test_array_of_a_message_is_checked_before_it_is_used() -> None:
    assert array_of(Off(sums=np.zeros((2, 3))), "sums", (2, 3), "north").shape == (2, 3)
    assert array_of(Off(sums=np.array(3.0)), "sums", (), "north").shape == ()
    for sums in (np.zeros((3, 2)), np.zeros(6), np.full((2, 3), np.nan), np.full((2, 3), -np.inf)):
        with pytest.raises(RunError, match="north sent sums"):
            array_of(Off(sums=sums), "sums", (2, 3), "north")
    # The least whole number of 64 bits is its own absolute value.
    for least in (np.int8, np.int16, np.int32):
        assert array_of(Off(sums=np.full(3, np.iinfo(least).min)), "sums", (3,), "north").dtype == np.int64
    for far in (-(2**63), 2**63 - 1, -(10**16)):
        with pytest.raises(RunError, match="north sent sums"):
            array_of(Off(sums=np.array([0, far], np.int64)), "sums", (2,), "north")
    with pytest.raises(RunError, match="north sent colours"):
        array_of(Off(sums=np.zeros(3)), "colours", (3,), "north")


def test_only_users_of_vertical_federations_are_shared() -> None:
    assert shared_units("vertical", "user")
    assert not shared_units("vertical", "rating")
    assert not shared_units("horizontal", "user")
    assert not shared_units("on-device", "user")
