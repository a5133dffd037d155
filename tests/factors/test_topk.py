import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.data.grouping import Index, Values
from cofactor.errors import ConfigError
from cofactor.factors.topk import top_items


def twin(scores: Values, seen: list[list[int]], n: int) -> tuple[Index, Values]:
    masked = scores.copy()
    for user, known in enumerate(seen):
        masked[user, known] = -np.inf
    order = np.argsort(-masked, axis=1, kind="stable")[:, :n]
    best = np.take_along_axis(masked, order, axis=1)
    items = np.where(np.isfinite(best), order, -1)
    missing = ((0, 0), (0, n - order.shape[1]))
    return np.pad(items, missing, constant_values=-1), np.pad(best, missing, constant_values=-np.inf)


def ptr_and_index(seen: list[list[int]]) -> tuple[NDArray[np.int64], Index]:
    sizes = [len(items) for items in seen]
    flat = [item for items in seen for item in items]
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.array(flat, np.int32)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**31),
    users=st.integers(1, 140),
    items=st.integers(1, 200),
    factors=st.integers(0, 5),
    n=st.integers(1, 30),
)
def test_equals_a_stable_sort_of_all_unseen_scores(
    seed: int, users: int, items: int, factors: int, n: int
) -> None:
    # Small whole numbers: products are exact and ties are many.
    random = np.random.default_rng(seed)
    user_vectors = random.integers(-2, 3, (users, factors)).astype(np.float32)
    item_vectors = random.integers(-2, 3, (items, factors)).astype(np.float32)
    bias = random.integers(-2, 3, items).astype(np.float32)
    seen = [random.choice(items, random.integers(0, items + 1), replace=False).tolist() for _ in range(users)]
    found = top_items(user_vectors, item_vectors, bias, *ptr_and_index(seen), n)
    expected = twin(user_vectors @ item_vectors.T + bias, seen, n)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])
    assert found[0].dtype == np.int32
    assert found[1].dtype == np.float32


def test_boundaries_may_point_into_the_middle_of_a_longer_index() -> None:
    index = np.array([0, 1, 2, 3], np.int32)
    items, _ = top_items(
        np.zeros((2, 0), np.float32), np.zeros((4, 0), np.float32), np.arange(4, dtype=np.float32),
        np.array([1, 2, 4]), index, 2,
    )  # fmt: skip
    assert items.tolist() == [[3, 2], [1, 0]]


def test_no_users_give_no_rows() -> None:
    items, scores = top_items(
        np.zeros((0, 3), np.float32), np.zeros((5, 3), np.float32), np.zeros(5, np.float32),
        np.zeros(1, np.int64), np.zeros(0, np.int32), 4,
    )  # fmt: skip
    assert items.shape == scores.shape == (0, 4)


def test_a_score_that_is_not_a_number_is_never_recommended() -> None:
    bias = np.array([1.0, np.nan, 2.0], np.float32)
    items, _ = top_items(
        np.zeros((1, 0), np.float32), np.zeros((3, 0), np.float32), bias,
        np.zeros(2, np.int64), np.zeros(0, np.int32), 3,
    )  # fmt: skip
    assert items.tolist() == [[2, 0, -1]]


def test_asking_for_no_items_is_refused() -> None:
    with pytest.raises(ConfigError, match="n must be at least 1, got 0"):
        top_items(
            np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32), np.zeros(1, np.float32),
            np.zeros(2, np.int64), np.zeros(0, np.int32), 0,
        )  # fmt: skip
