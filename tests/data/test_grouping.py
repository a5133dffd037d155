from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped, first_duplicate, group, offsets, read_only
from cofactor.data.numbering import number

Pairs = list[tuple[int, int]]
pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=40)


def grouped_by_first(chosen: Pairs) -> Grouped:
    keys, others = (np.array([pair[k] for pair in chosen], np.int32) for k in (0, 1))
    places = np.arange(len(chosen))
    return group(keys, others, places.astype(np.float32), places, 6)


@given(pairs)
def test_grouping_is_a_stable_sort_by_key(chosen: Pairs) -> None:
    grouped = grouped_by_first(chosen)
    order = np.argsort([key for key, _ in chosen], kind="stable")
    assert grouped.values.tolist() == order.tolist()
    assert grouped.index.tolist() == [chosen[place][1] for place in order]
    assert grouped.members().tolist() == [chosen[place][0] for place in order]
    assert grouped.times is not None
    assert grouped.times.tolist() == order.tolist()


@given(pairs)
def test_turning_twice_sorts_each_group(chosen: Pairs) -> None:
    twice = grouped_by_first(chosen).turned(5).turned(6)
    found = list(zip(twice.members().tolist(), twice.index.tolist(), strict=True))
    assert found == sorted(chosen)


@given(pairs, st.integers(0, 6), st.integers(0, 6))
def test_window_has_the_same_groups_and_shares_their_memory(chosen: Pairs, one: int, two: int) -> None:
    grouped, start, stop = grouped_by_first(chosen), min(one, two), max(one, two)
    window, copy = grouped.window(start, stop), grouped.take(np.arange(start, stop))
    assert_same(window, copy)
    if len(window.index):
        assert np.shares_memory(window.index, grouped.index)
        assert np.shares_memory(window.values, grouped.values)
        assert not np.shares_memory(copy.values, grouped.values)


@given(pairs, st.lists(st.integers(0, 5), max_size=8))
def test_take_returns_the_named_groups_in_that_order(chosen: Pairs, groups: list[int]) -> None:
    taken = grouped_by_first(chosen).take(np.array(groups, np.int64))
    expected = [place for g in groups for place, (key, _) in enumerate(chosen) if key == g]
    assert taken.values.tolist() == expected
    assert taken.sizes.tolist() == [sum(key == g for key, _ in chosen) for g in groups]


@given(pairs, st.data())
def test_keep_drops_ratings_and_no_groups(chosen: Pairs, data: st.DataObject) -> None:
    grouped = grouped_by_first(chosen)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(chosen), max_size=len(chosen))), bool)
    kept = grouped.keep(mask)
    assert kept.values.tolist() == grouped.values[mask].tolist()
    assert kept.members().tolist() == grouped.members()[mask].tolist()
    assert len(kept.ptr) == len(grouped.ptr)


@given(pairs)
def test_first_duplicate_is_the_first_repeated_pair_in_grouped_order(chosen: Pairs) -> None:
    grouped = grouped_by_first(chosen)
    seen: set[tuple[int, int]] = set()
    expected = -1
    for place, pair in enumerate(zip(grouped.members().tolist(), grouped.index.tolist(), strict=True)):
        if pair in seen:
            expected = place
            break
        seen.add(pair)
    assert first_duplicate(grouped, 5) == expected


def test_already_grouped_arrays_are_not_copied() -> None:
    others = np.array([3, 1, 2], np.int32)
    grouped = group(np.array([0, 0, 2], np.int32), others, others.astype(np.float32), None, 3)
    assert np.shares_memory(grouped.index, others)
    assert grouped.ptr.tolist() == [0, 2, 2, 3]


def test_read_only_view_leaves_the_original_writable() -> None:
    array = np.arange(3)
    view = read_only(array)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    array[0] = 9
    assert view[0] == 9


def test_offsets_are_running_sums() -> None:
    assert offsets(np.array([2, 0, 3])).tolist() == [0, 2, 2, 5]


whole = st.lists(st.one_of(st.integers(-5, 50), st.integers(-(2**62), 2**62)), max_size=30)


@settings(max_examples=200)
@given(st.lists(whole.map(lambda ids: np.array(ids, np.int64)), min_size=1, max_size=4))
def test_numbering_agrees_with_numpy_unique(parts: list[NDArray[Any]]) -> None:
    distinct, rows = number(*parts)
    expected, inverse = np.unique(np.concatenate(parts), return_inverse=True)
    assert distinct.tolist() == expected.tolist()
    assert rows.tolist() == inverse.tolist()
    assert rows.dtype == np.int32


@given(
    st.lists(st.integers(-3, 40), min_size=1, max_size=30), st.sampled_from([np.int32, np.uint16, np.int64])
)
def test_numbering_small_ranges_through_the_table(ids: list[int], kind: type[Any]) -> None:
    array = np.abs(np.array(ids)).astype(kind)
    distinct, rows = number(array)
    assert distinct[rows].tolist() == array.tolist()
    assert distinct.tolist() == sorted(set(array.tolist()))


def test_numbering_text_is_alphabetical() -> None:
    distinct, rows = number(np.array(["b", "a", "b"]))
    assert (distinct.tolist(), rows.tolist()) == (["a", "b"], [1, 0, 1])


def assert_same(one: Grouped, two: Grouped) -> None:
    for name in ("ptr", "index", "values", "times"):
        assert getattr(one, name).tolist() == getattr(two, name).tolist()
