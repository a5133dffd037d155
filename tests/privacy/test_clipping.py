from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from cofactor.errors import CofactorError, ConfigError, DataError
from cofactor.privacy.clipping import (
    Length,
    clipped,
    clipped_embeddings,
    clipped_sum,
    clipped_whole,
)
from cofactor.privacy.events import Norm

Table = NDArray[np.float64]

SECRET = 12345.678
HUGE, TINY = 3e38, 1e-45
NORMS: dict[Length, Callable[[NDArray[Any]], float]] = {
    "l1": lambda values: float(np.abs(values).sum()),
    "l2": lambda values: float(np.sqrt(np.square(values).sum())),
}

any_float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
embeddings = arrays(np.float32, st.tuples(st.integers(0, 4), st.integers(1, 7)), elements=any_float32)
largest_ratings = st.floats(1e-3, 1e3)


@given(embeddings, largest_ratings)
@example(np.full((1, 50), HUGE, np.float32), 5.0)
@example(np.full((1, 50), TINY, np.float32), 5.0)
@example(np.array([[np.sqrt(5), 0]], np.float32), 5.0)
@example(np.array([[1, 2]], np.float32), 5.0)
def test_embeddings_are_not_negative_and_strictly_shorter_than_the_root(
    rows: NDArray[np.float32], largest_rating: float
) -> None:
    found = clipped_embeddings(rows, largest_rating)
    assert found.dtype == np.float32
    assert found.shape == rows.shape
    assert np.all(found >= 0)
    assert np.all(np.square(found.astype(np.float64)).sum(axis=1) < largest_rating)


@given(arrays(np.float64, (2, 3), elements=st.floats(-1e140, 1e140)), largest_ratings)
def test_embeddings_in_double_precision_may_be_of_any_size(rows: Table, largest_rating: float) -> None:
    found = clipped_embeddings(rows, largest_rating).astype(np.float64)
    assert np.all(np.square(found).sum(axis=1) < largest_rating)


def projected_by_dykstra(row: Table, radius: float) -> Table:
    """The nearest point of an intersection of convex sets (Boyle and Dykstra 1986), for orthant and ball."""
    point, orthant, ball = row.copy(), np.zeros_like(row), np.zeros_like(row)
    for _ in range(2000):
        inside = np.maximum(point + orthant, 0)
        orthant = point + orthant - inside
        outside = inside + ball
        point = outside / max(1.0, float(np.linalg.norm(outside)) / radius)
        ball = outside - point
    return point


@pytest.mark.parametrize("seed", range(5))
def test_embedding_clipping_is_the_projection_of_lemma_3(seed: int) -> None:
    rows = np.random.default_rng(seed).normal(0, 3, (4, 5))
    expected = np.array([projected_by_dykstra(row, np.sqrt(5)) for row in rows])
    assert np.allclose(clipped_embeddings(rows, 5.0), expected, rtol=3e-6, atol=1e-6)


def test_the_largest_float32_numbers_are_shortened_and_not_lost() -> None:
    found = clipped_embeddings(np.array([[HUGE, HUGE, -HUGE]], np.float32), 5.0)
    assert np.allclose(found, [[2.5**0.5, 2.5**0.5, 0]], rtol=3e-6)


def test_embeddings_within_the_limit_stay_as_they_are() -> None:
    rows = np.random.default_rng(1).uniform(0, 0.9, (20, 5)).astype(np.float32)
    assert np.array_equal(clipped_embeddings(rows, 5.0), rows)


@given(
    arrays(np.float32, array_shapes(min_dims=0, max_dims=3), elements=any_float32),
    st.floats(1e-6, 1e6),
    st.sampled_from(["l1", "l2"]),
)
@example(np.full(1000, HUGE, np.float32), 1.0, "l2")
def test_a_clipped_vector_keeps_its_direction_and_the_limit(
    values: NDArray[np.float32], limit: float, norm: Length
) -> None:
    found = clipped(values, limit, norm)
    assert NORMS[norm](found) <= limit
    assert found.shape == values.shape
    if NORMS[norm](values.astype(np.float64)) <= limit * (1 - 2e-6):
        assert np.array_equal(found, values)
    else:
        scale = NORMS[norm](found) / NORMS[norm](values.astype(np.float64))
        assert np.allclose(found, values.astype(np.float64) * scale, rtol=1e-9)
        assert NORMS[norm](found) >= limit * (1 - 3e-6)


def sum_twin(rows: Table, ptr: list[int], places: list[int], count: int, limit: float, norm: Length) -> Table:
    total = np.zeros((count, rows.shape[1]))
    for first, end in pairwise(ptr):
        own = np.zeros_like(total)
        np.add.at(own, places[first:end], rows[first:end])
        length = NORMS[norm](own)
        total += own * min(1.0, limit * (1 - 1e-6) / length if length else 1.0)
    return total


@given(st.data(), st.sampled_from(["l1", "l2"]), st.sampled_from([np.float32, np.float64]))
def test_the_clipped_sum_equals_its_plain_twin(data: st.DataObject, norm: Length, kind: type) -> None:
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    ptr = [0, *np.cumsum(sizes).tolist()]
    rows: Table = data.draw(arrays(kind, (ptr[-1], 2), elements=st.floats(-3, 3, width=16)))
    places = data.draw(st.lists(st.integers(0, 2), min_size=ptr[-1], max_size=ptr[-1]))
    found = clipped_sum(rows, ptr, places, 3, 1.5, norm).total
    assert np.allclose(found, sum_twin(rows.astype(np.float64), ptr, places, 3, 1.5, norm), atol=1e-9)


def test_rows_of_a_user_that_land_in_the_same_place_are_clipped_as_their_sum() -> None:
    rows = np.array([[3.0], [3.0]])
    assert clipped_sum(rows, [0, 2], [0, 0], 1, 4.0, "l2").total[0, 0] == pytest.approx(4.0, rel=2e-6)
    assert NORMS["l2"](clipped_sum(rows, [0, 2], [0, 1], 2, 4.0, "l2").total) == pytest.approx(4.0, rel=2e-6)


def test_rows_of_a_user_that_cancel_are_not_clipped_one_by_one() -> None:
    found = clipped_sum(np.array([[100.0], [-99.0]]), [0, 2], [0, 0], 1, 4.0, "l2").total
    assert found[0, 0] == pytest.approx(1.0)


def test_one_user_changes_the_sum_of_many_by_exactly_their_own_contribution() -> None:
    rows = np.random.default_rng(2).normal(0, 1, (60_000, 2)) + 3
    ptr, places = np.arange(len(rows) + 1), np.zeros(len(rows), np.int64)
    with_user = clipped_sum(rows, ptr, places, 1, 0.7, "l2").total
    without = clipped_sum(rows[1:], ptr[:-1], places[1:], 1, 0.7, "l2").total
    assert np.array_equal(with_user - without, clipped_sum(rows[:1], [0, 1], [0], 1, 0.7, "l2").total)
    assert np.array_equal(with_user, clipped_sum(rows[::-1], ptr, places, 1, 0.7, "l2").total)


whole_rows = arrays(np.int64, st.tuples(st.integers(0, 3), st.integers(1, 5)), elements=st.integers(-20, 20))


@given(whole_rows, st.floats(0.5, 60), st.sampled_from(["l1", "l2", "max"]))
def test_whole_numbers_stay_whole_and_within_the_limit(
    rows: NDArray[np.int64], limit: float, norm: Literal["l1", "l2", "max"]
) -> None:
    found = clipped_whole(rows, limit, norm)
    assert found.dtype == np.int64
    for row, kept in zip(rows.tolist(), found.tolist(), strict=True):
        assert whole_length(kept, norm) <= limit
        assert whole_length(row, norm) > limit or kept == row
        assert all(abs(k) <= abs(r) and k * r >= 0 for r, k in zip(row, kept, strict=True))


def whole_length(row: list[int], norm: Norm) -> float:
    if norm == "max":
        return max(map(abs, row))
    return sum(map(abs, row)) if norm == "l1" else sum(k * k for k in row) ** 0.5


@pytest.mark.parametrize("extreme", [2**63 - 1, -(2**63), 2**53 + 1])
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("limit", [7, 2**53])
def test_whole_numbers_at_the_ends_of_their_type_are_bounded_too(
    extreme: int, norm: Any, limit: float
) -> None:
    kept = clipped_whole(np.array([[extreme, extreme, extreme]]), limit, norm)[0].tolist()
    squares = sum(k * k for k in kept)
    assert squares <= limit**2 if norm == "l2" else whole_length(kept, norm) <= limit


def test_a_whole_row_of_exactly_the_limit_is_kept() -> None:
    assert clipped_whole([[3, 4], [5, 0]], 5, "l2").tolist() == [[3, 4], [5, 0]]
    assert clipped_whole([[3, 5]], 5, "l2").tolist() != [[3, 5]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e150])
@pytest.mark.parametrize(
    "clip",
    [
        lambda rows: clipped_embeddings(rows, 5.0),
        lambda rows: clipped(rows, 1.0, "l2"),
        lambda rows: clipped_sum(rows, [0, 2], [0, 0], 1, 1.0, "l2"),
    ],
)
def test_numbers_that_are_not_finite_never_pass(clip: Callable[[Table], Table], bad: float) -> None:
    rows = np.array([[1.0, SECRET], [bad, 0.0]])
    with pytest.raises(DataError, match="not finite") as error:
        clip(rows)
    assert "12345" not in str(error.value)
    if bad != 1e150:
        with pytest.raises(DataError, match="not finite"):
            clip(rows.astype(np.float32))


def test_nothing_may_be_empty_of_rows() -> None:
    assert clipped_embeddings(np.empty((0, 3)), 5.0).shape == (0, 3)
    assert clipped_embeddings(np.empty((2, 0)), 5.0).shape == (2, 0)
    assert clipped(np.empty(0), 1.0, "l1").shape == (0,)
    assert clipped_sum(np.empty((0, 2)), [0], [], 3, 1.0, "l2").total.tolist() == [[0, 0]] * 3
    assert clipped_sum(np.empty((0, 2)), [0, 0, 0], [], 1, 1.0, "l2").total.tolist() == [[0, 0]]
    assert clipped_whole(np.empty((0, 2), np.int64), 1, "l2").shape == (0, 2)


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "one row": (lambda: clipped_embeddings([1.0, 2.0], 5.0), "rows must have 2 dimension"),
    "no rating scale": (lambda: clipped_embeddings([[1.0]], 0.0), "largest_rating must be greater than 0"),
    "unknown norm": (lambda: clipped([1.0], 1.0, "L2"), "norm must be one of l1, l2"),  # type: ignore[arg-type]
    "text": (lambda: clipped(["a"], 1.0, "l2"), "values must be real numbers"),
    "complex": (lambda: clipped([1j], 1.0, "l2"), "values must be real numbers"),
    "tiny limit": (lambda: clipped([1.0], 1e-40, "l2"), "limit must lie between"),
    "NaN limit": (lambda: clipped([1.0], np.nan, "l2"), "limit must be greater than 0"),
    "short ptr": (lambda: clipped_sum([[1.0]], [0, 0], [0], 1, 1.0, "l2"), "ptr must start at 0"),
    "falling ptr": (lambda: clipped_sum([[1.0]], [0, 2, 1], [0], 1, 1.0, "l2"), "never fall"),
    "empty ptr": (lambda: clipped_sum([[1.0]], [], [0], 1, 1.0, "l2"), "ptr must start at 0"),
    "real ptr": (lambda: clipped_sum([[1.0]], [0.0, 1.0], [0], 1, 1.0, "l2"), "ptr must be whole"),
    "far place": (lambda: clipped_sum([[1.0]], [0, 1], [1], 1, 1.0, "l2"), "between 0 and 0"),
    "negative place": (lambda: clipped_sum([[1.0]], [0, 1], [-1], 1, 1.0, "l2"), "between 0 and 0"),
    "few places": (lambda: clipped_sum([[1.0]], [0, 1], [], 1, 1.0, "l2"), "one row of the table for each"),
    "no places": (lambda: clipped_sum([[1.0]], [0, 1], [0], 0, 1.0, "l2"), "place_count must be at least 1"),
    "real whole": (lambda: clipped_whole([[1.5]], 1, "l2"), "must be whole numbers.*round"),
    "unsigned": (lambda: clipped_whole(np.ones((1, 1), np.uint64), 1, "l2"), "must be whole numbers"),
    "huge whole limit": (lambda: clipped_whole([[1]], 1e17, "l2"), "at most 2\\^53"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(mistake: str) -> None:
    make, words = MISTAKES[mistake]
    with pytest.raises(CofactorError, match=words) as error:
        make()
    assert isinstance(error.value, ConfigError)
