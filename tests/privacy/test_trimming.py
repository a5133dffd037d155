from collections import Counter
from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import stats

from cofactor.chacha import fill
from cofactor.errors import ConfigError, DataError
from cofactor.privacy.trimming import trimmed, weights
from cofactor.randomness import InsecureRandom, SecureRandom

sizes_of_users = st.lists(st.integers(0, 12), max_size=8)


def offsets(sizes: list[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def by_user(values: NDArray[Any], ptr: NDArray[np.int64]) -> list[NDArray[Any]]:
    return [values[first:end] for first, end in pairwise(ptr)]


@given(sizes_of_users, st.integers(1, 13), st.integers(0, 10**6))
def test_each_user_keeps_exactly_as_many_as_allowed(sizes: list[int], most: int, seed: int) -> None:
    ptr = offsets(sizes)
    kept = trimmed(ptr, most, InsecureRandom(seed))
    assert [int(part.sum()) for part in by_user(kept, ptr)] == [min(size, most) for size in sizes]


def trimmed_twin(ptr: NDArray[np.int64], most: int, key: NDArray[np.uint32]) -> NDArray[np.bool_]:
    kept = []
    for user, size in enumerate(np.diff(ptr)):
        words = np.empty(2 * size, np.uint32)
        fill(words, key, np.uint64(user), np.uint64(0), 12)
        chances = (words[::2] * 2.0**21 + (words[1::2] >> 11)) / 2.0**53
        wanted = most
        for at, chance in enumerate(chances):
            keep = size <= most or bool(chance * (size - at) < wanted)
            wanted -= keep
            kept.append(keep)
    return np.array(kept, np.bool_)


@given(st.lists(st.integers(0, 700), max_size=4), st.integers(1, 40), st.integers(0, 10**6))
def test_trimming_equals_its_plain_twin(sizes: list[int], most: int, seed: int) -> None:
    ptr = offsets(sizes)
    expected = trimmed_twin(ptr, most, InsecureRandom(seed).new_key())
    assert np.array_equal(trimmed(ptr, most, InsecureRandom(seed)), expected)


def test_all_sets_are_equally_likely() -> None:
    # chi-squared over the 20 sets; a right sampler fails with probability 1e-8
    users = 40_000
    kept = trimmed(np.arange(users + 1) * 6, 3, SecureRandom()).reshape(users, 6)
    counts = Counter(tuple(np.flatnonzero(row).tolist()) for row in kept)
    assert set(counts) == set(combinations(range(6), 3))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-8


def test_users_are_trimmed_independently_of_each_other() -> None:
    # chi-squared over the 36 pairs of sets of users side by side; fails by chance with probability 1e-8
    users = 40_000
    kept = trimmed(np.arange(users + 1) * 4, 2, SecureRandom()).reshape(users, 4)
    sets = kept @ np.array([1, 2, 4, 8])
    counts = Counter(zip(sets[::2].tolist(), sets[1::2].tolist(), strict=True))
    assert len(counts) == 36
    assert stats.chisquare(list(counts.values())).pvalue > 1e-8


@given(st.lists(st.integers(0, 12), min_size=2, max_size=6), st.data())
def test_what_a_user_keeps_depends_on_that_user_alone(sizes: list[int], data: st.DataObject) -> None:
    which = data.draw(st.integers(0, len(sizes) - 1))
    others = [*sizes[:which], data.draw(st.integers(0, 12)), *sizes[which + 1 :]]
    ptr, neighbour = offsets(sizes), offsets(others)
    before = by_user(trimmed(ptr, 4, InsecureRandom(9)), ptr)
    after = by_user(trimmed(neighbour, 4, InsecureRandom(9)), neighbour)
    assert all(np.array_equal(before[k], after[k]) for k in range(len(sizes)) if k != which)


def test_another_release_is_trimmed_afresh() -> None:
    random = InsecureRandom(3)
    ptr = offsets([100])
    assert not np.array_equal(trimmed(ptr, 50, random), trimmed(ptr, 50, random))


def weights_twin(ptr: NDArray[np.int64], importance: NDArray[np.float64], least: float) -> list[float]:
    found: list[float] = []
    for own in by_user(importance, ptr):
        found += (own / np.sqrt(max(np.square(own).sum(), least))).tolist()
    return found


@given(sizes_of_users, st.floats(0.1, 20), st.data())
def test_squares_of_a_users_weights_sum_to_less_than_one(
    sizes: list[int], least: float, data: st.DataObject
) -> None:
    ptr = offsets(sizes)
    importance = data.draw(arrays(np.float64, int(ptr[-1]), elements=st.floats(-1e6, 1e6)))
    found = weights(ptr, least=least, importance=importance)
    assert np.allclose(found, weights_twin(ptr, importance, least), rtol=2e-6)
    for precision in (np.float64, np.float32):
        squares = np.square(found.astype(precision).astype(np.float64))
        assert all(own.sum() < 1 for own in by_user(squares, ptr))


def test_equal_weights_are_one_over_the_root_of_the_count() -> None:
    found = weights([0, 4, 5], least=2)
    assert np.allclose(found, [0.5, 0.5, 0.5, 0.5, 2**-0.5], rtol=2e-6)
    assert weights([0]).shape == (0,)
    assert weights([0, 0]).shape == (0,)


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "none": (lambda: trimmed([0, 3], 0, InsecureRandom(1)), "most must be at least 1"),
    "half": (lambda: trimmed([0, 3], 1.5, InsecureRandom(1)), "most must be a whole number"),  # type: ignore[arg-type]
    "falling": (lambda: trimmed([0, 3, 2], 1, InsecureRandom(1)), "ptr must start at 0, never fall"),
    "late": (lambda: trimmed([1, 3], 1, InsecureRandom(1)), "ptr must start at 0"),
    "nothing": (lambda: trimmed([], 1, InsecureRandom(1)), "ptr must start at 0"),
    "table": (lambda: trimmed([[0, 3]], 1, InsecureRandom(1)), "ptr must have 1 dimension"),
    "no least": (lambda: weights([0, 3], least=0.0), "least must be greater than 0"),
    "too few": (lambda: weights([0, 3], importance=[1.0]), "importance must have one number for each entry"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(mistake: str) -> None:
    make, words = MISTAKES[mistake]
    with pytest.raises(ConfigError, match=words):
        make()


def test_importance_that_is_not_finite_is_refused_without_being_shown() -> None:
    with pytest.raises(DataError, match="importance hold a number that is not finite") as error:
        weights([0, 2], importance=[12345.678, np.nan])
    assert "12345" not in str(error.value)
