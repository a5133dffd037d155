import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix

from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import DataError, UnknownId

USERS, ITEMS = [30, 10, 30, 20, 10], ["b", "a", "a", "c", "b"]
VALUES, TIMES = [1.0, 2.0, 3.0, 4.0, 5.0], [5, 4, 3, 2, 1]


@pytest.fixture
def ratings() -> Ratings:
    return Ratings.from_arrays(USERS, ITEMS, VALUES, times=TIMES)


def cells(ratings: Ratings) -> set[tuple[Any, ...]]:
    """What a user sees: original ids, values and times."""
    users, items = ratings.user_ids[ratings.users].tolist(), ratings.item_ids[ratings.items].tolist()
    times = [None] * len(ratings) if ratings.times is None else ratings.times.tolist()
    return set(zip(users, items, ratings.values.tolist(), times, strict=True))


def test_ratings_come_back_under_their_original_ids(ratings: Ratings) -> None:
    assert cells(ratings) == set(zip(USERS, ITEMS, VALUES, TIMES, strict=True))
    assert ratings.user_ids.tolist() == [10, 20, 30]
    assert ratings.item_ids.tolist() == ["a", "b", "c"]
    assert (len(ratings), ratings.user_count, ratings.item_count) == (5, 3, 3)
    assert ratings.mean == 3
    assert ratings.density == 5 / 9
    assert "5 ratings by 3 users of 3 items, 1 to 5 in steps of 1" in repr(ratings)


matrices = st.sets(st.tuples(st.integers(0, 7), st.integers(0, 6)), min_size=1).flatmap(
    lambda pairs: st.permutations(sorted(pairs))
)


@given(matrices)
def test_both_layouts_agree_with_scipy(pairs: list[tuple[int, int]]) -> None:
    users, items = (np.array([pair[k] for pair in pairs]) for k in (0, 1))
    values = np.arange(1, len(pairs) + 1, dtype=np.float32)
    ours = Ratings.from_rows(
        users, items, values, user_ids=np.arange(8), item_ids=np.arange(7), scale=Scale(0, 99)
    )
    matrix = coo_matrix((values, (users, items)), shape=(8, 7))
    for layout, oracle in ((ours.by_user, matrix.tocsr()), (ours.by_item, matrix.tocsc())):
        assert layout.ptr.tolist() == oracle.indptr.tolist()
        for g in range(len(layout.ptr) - 1):
            mine, theirs = slice(*layout.ptr[g : g + 2]), slice(*oracle.indptr[g : g + 2])
            assert dict(zip(layout.index[mine], layout.values[mine], strict=True)) == dict(
                zip(oracle.indices[theirs], oracle.data[theirs], strict=True)
            )


@given(matrices, st.integers(0, 8), st.integers(0, 8), st.integers(0, 7), st.integers(0, 7))
def test_select_agrees_with_dense_slicing(
    pairs: list[tuple[int, int]], u1: int, u2: int, i1: int, i2: int
) -> None:
    users, items = (np.array([pair[k] for pair in pairs]) for k in (0, 1))
    values = np.arange(1, len(pairs) + 1, dtype=np.float32)
    ours = Ratings.from_rows(
        users, items, values, user_ids=np.arange(8), item_ids=np.arange(7), scale=Scale(0, 99)
    )
    chosen_users, chosen_items = slice(u1, u2), slice(i1, i2)
    part = ours.select(users=chosen_users, items=chosen_items)
    assert np.array_equal(dense(part), dense(ours)[chosen_users, chosen_items])
    listed = ours.select(users=np.arange(8)[chosen_users], items=np.arange(7)[chosen_items])
    assert np.array_equal(dense(listed), dense(part))


def dense(ratings: Ratings) -> Any:
    full = np.zeros((ratings.user_count, ratings.item_count), np.float32)
    full[ratings.users, ratings.items] = ratings.values
    return full


def test_slices_share_memory_by_users_and_by_items(ratings: Ratings) -> None:
    by_users = ratings.select(users=slice(0, 2))
    assert np.shares_memory(by_users.by_user.values, ratings.by_user.values)
    assert np.shares_memory(by_users.by_user.index, ratings.by_user.index)
    assert np.shares_memory(by_users.user_ids, ratings.user_ids)
    by_items = ratings.select(items=slice(1, 3))
    assert np.shares_memory(by_items.by_item.values, ratings.by_item.values)
    assert np.shares_memory(by_items.by_item.index, ratings.by_item.index)
    assert not np.shares_memory(ratings.select(users=[0, 1]).values, ratings.values)


def test_slices_keep_ids_scale_and_times(ratings: Ratings) -> None:
    part = ratings.select(users=slice(1, 3), items=slice(0, 2))
    assert part.user_ids.tolist() == [20, 30]
    assert part.item_ids.tolist() == ["a", "b"]
    assert part.scale == Scale(1, 5, 1)
    assert cells(part) == {(30, "b", 1.0, 5), (30, "a", 3.0, 3)}


def test_a_mask_and_a_stepped_slice_select_too(ratings: Ratings) -> None:
    assert ratings.select(users=np.array([True, False, True])).user_ids.tolist() == [10, 30]
    assert ratings.select(users=slice(0, 3, 2)).user_ids.tolist() == [10, 30]
    assert ratings.select(users=slice(2, 1)).user_count == 0


def test_where_keeps_numbering_and_compact_drops_the_empty(ratings: Ratings) -> None:
    kept = ratings.where(ratings.values >= 3)
    assert (kept.user_count, kept.item_count, len(kept)) == (3, 3, 3)
    only = ratings.where(ratings.values == 4).compact()
    assert (only.user_ids.tolist(), only.item_ids.tolist()) == ([20], ["c"])
    with pytest.raises(DataError, match=r"5 true or false values.*shape \(2,\)"):
        ratings.where(np.array([True, False]))


def test_nothing_can_be_changed(ratings: Ratings) -> None:
    for array in (ratings.values, ratings.items, ratings.times, ratings.user_ids, ratings.by_item.values):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError, match="Ratings cannot be changed, scale included"):
        ratings.scale = None


def test_writing_to_the_callers_arrays_changes_nothing() -> None:
    users, items = np.array([0, 0, 1], np.int32), np.array([0, 1, 0], np.int32)
    values, times = np.array([1, 2, 3], np.float32), np.array([1, 2, 3])
    ids = np.array([7, 8])
    ratings = Ratings.from_rows(users, items, values, times=times, user_ids=ids, item_ids=ids)
    before = cells(ratings)
    for array in (users, items, values, times):
        array[:] = 0
    assert cells(ratings) == before


def test_read_only_arrays_are_shared() -> None:
    values = np.array([1, 2, 3], np.float32)
    values.flags.writeable = False
    assert np.shares_memory(Ratings.from_arrays([1, 2, 3], [1, 1, 1], values).values, values)


def test_copies_and_pickles_are_equal(ratings: Ratings) -> None:
    for twin in (copy.copy(ratings), copy.deepcopy(ratings), pickle.loads(pickle.dumps(ratings))):
        assert cells(twin) == cells(ratings)
        assert twin.scale == ratings.scale


def test_duplicates_are_an_error_that_says_what_to_do() -> None:
    with pytest.raises(DataError, match=r'user x rated item 2 more than once.*duplicates="last"'):
        Ratings.from_arrays(["x", "y", "x"], [2, 2, 2], [1, 2, 3])
    with pytest.raises(DataError, match='must be "error", "last" or "mean", got \'first\''):
        Ratings.from_arrays([1], [1], [1], duplicates="first")  # type: ignore[arg-type]


@pytest.mark.parametrize(("rule", "kept"), [("last", 5.0), ("mean", 4.0)])
def test_duplicates_are_merged_on_request(rule: Any, kept: float) -> None:
    ratings = Ratings.from_arrays([1, 2, 1, 1], [1, 1, 1, 1], [2, 1, 5, 5], duplicates=rule)
    assert ratings.values.tolist() == [kept, 1]
    assert ratings.scale == Scale(1, 5, 1)


def test_last_is_by_time_where_there_are_times() -> None:
    ratings = Ratings.from_arrays([1, 1, 1], [1, 1, 2], [2, 5, 3], times=[9, 4, 1], duplicates="last")
    assert ratings.values.tolist() == [2, 3]
    assert ratings.times is not None
    assert ratings.times.tolist() == [9, 1]


rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=30)


@given(rows)
def test_merging_agrees_with_a_dictionary(rated: list[tuple[int, int, int]]) -> None:
    users, items, values = (list(column) for column in zip(*rated, strict=True))
    last = {(u, i): v for u, i, v in rated}
    every: dict[tuple[int, int], list[int]] = {}
    for u, i, v in rated:
        every.setdefault((u, i), []).append(v)
    for rule, expected in (("last", last), ("mean", {pair: np.mean(all_) for pair, all_ in every.items()})):
        merged = Ratings.from_arrays(users, items, values, scale=Scale(1, 5), duplicates=rule)  # type: ignore[arg-type]
        found = {(u, i): v for u, i, v, _ in cells(merged)}
        assert found == pytest.approx(expected)


def test_ratings_without_values_are_implicit() -> None:
    ratings = Ratings.from_arrays([1, 2], ["a", "a"])
    assert ratings.implicit
    assert ratings.scale is None
    assert ratings.values.tolist() == [1, 1]
    assert "implicit" in repr(ratings)


def test_ones_are_implicit_and_other_equal_ratings_ask_for_the_scale() -> None:
    assert Ratings.from_arrays([1, 2], [1, 1], [1, 1]).implicit
    with pytest.raises(DataError, match="every rating is 5, so the rating scale cannot be seen"):
        Ratings.from_arrays([1, 2], [1, 1], [5, 5])
    assert not Ratings.from_arrays([1, 2], [1, 1], [5, 5], scale=Scale(1, 5)).implicit


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1, 5, 3, 4], Scale(1, 5, 1)),
        ([0.5, 5, 1], Scale(0.5, 5, 0.5)),
        ([0.1, 0.4, 0.2], Scale(0.1, 0.4, 0.1)),
        ([1, 1.5, 2.2], Scale(1, 2.2)),
        ([-10, 9.5, -10.25], Scale(-10.25, 9.5, 0.25)),
        ([3, 3], None),
        ([], None),
    ],
)
def test_scale_is_read_off_the_values(values: list[float], scale: Scale | None) -> None:
    assert Scale.of(np.array(values, np.float32)) == scale


def test_scale_of_many_values_sees_those_that_come_late() -> None:
    assert Scale.of(np.array([1, 2] * 10_000 + [7], np.float32)) == Scale(1, 7, 1)
    assert Scale.of(np.linspace(0, 9, 20_000, dtype=np.float32)) == Scale(0, 9)


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=200))
def test_scale_covers_the_values_it_was_read_off(values: list[float]) -> None:
    array = np.array(values, np.float32)
    scale = Scale.of(array)
    assert scale is None or (scale.covers(array).all() and np.array_equal(scale.clip(array), array))


def test_scale_has_words() -> None:
    assert str(Scale(0.5, 5, 0.5)) == "0.5 to 5 in steps of 0.5"
    assert str(Scale(1, 10)) == "1 to 10"


@pytest.mark.parametrize("scale", [(5, 1), (1, 1), (float("nan"), 5), (1, 5, 0), (1, 5, -1)])
def test_senseless_scales_are_refused(scale: tuple[float, ...]) -> None:
    with pytest.raises(DataError, match="rating scale"):
        Scale(*scale)


@pytest.mark.parametrize("wanted", [20, "20", " 20 ", np.int64(20)])
def test_integer_ids_are_found_as_numbers_and_as_text(wanted: Any, ratings: Ratings) -> None:
    assert ratings.user_row(wanted) == 1


def test_text_ids_are_found_as_text_and_as_numbers() -> None:
    ratings = Ratings.from_arrays(["7", "x"], [1, 1], [1, 2])
    assert ratings.user_row(7) == ratings.user_row("7") == 0


@pytest.mark.parametrize("wanted", ["--5", "²", "", "u7", 7])
def test_unknown_ids_are_told_so(wanted: int | str, ratings: Ratings) -> None:
    with pytest.raises(UnknownId, match=r"there is no user .* There are 3 users, such as 10, 20, 30"):
        ratings.user_row(wanted)


def test_unknown_item_suggests_a_near_one() -> None:
    ratings = Ratings.from_arrays([1, 2], ["matrix", "alien"], [1, 2])
    with pytest.raises(UnknownId, match=r"no item 'matrx'\. Did you mean .matrix."):
        ratings.item_row("matrx")


BAD = [
    (lambda: Ratings.from_arrays([1, 2], [1], [3.0]), "users has 2 entries but items has 1"),
    (lambda: Ratings.from_arrays([1, 2], [1, 2], [3.0]), "users has 2 entries but values has 1"),
    (lambda: Ratings.from_arrays([1.5], [1], [3.0]), "ids must be whole numbers or text, got float64"),
    (lambda: Ratings.from_arrays(np.array([None, "a"]), [1, 2], [3, 4]), "ids must be whole numbers or text"),
    (lambda: Ratings.from_arrays([1, 2], [1, 2], [3, np.inf]), "rating number 2 is inf"),
    (
        lambda: Ratings.from_arrays([1], [1], [7], scale=Scale(1, 5)),
        "outside the scale 1 to 5, the first is 7",
    ),
    (lambda: rows_of([3], [0]), "user row numbers must lie from 0 to 1, got 3 to 3"),
    (lambda: rows_of([0], [-1]), "item row numbers must lie from 0 to 1, got -1 to -1"),
    (lambda: Ratings.from_arrays([], [], []).mean, "no ratings to take the mean of"),
]


def rows_of(users: list[int], items: list[int]) -> Ratings:
    return Ratings.from_rows(users, items, user_ids=np.array([1, 2]), item_ids=np.array([1, 2]))


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_mistakes_are_told(call: Any, message: str) -> None:
    with pytest.raises(DataError) as caught:
        call()
    assert message in str(caught.value)


def test_no_ratings_at_all_are_allowed() -> None:
    empty = Ratings.from_arrays([], [], [])
    assert (len(empty), empty.user_count, empty.density) == (0, 0, 0.0)
    assert len(empty.by_item.values) == 0


def test_selecting_rows_in_any_order_keeps_ids_and_ratings_together() -> None:
    ratings = Ratings.from_arrays([1, 2, 3, 4], [1, 1, 2, 2], [1, 2, 3, 4])
    chosen = ratings.select(users=[3, 0, 2])
    assert chosen.user_ids.tolist() == [4, 1, 3]
    assert chosen.values.tolist() == [4, 1, 3]


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([7], "row numbers must lie from 0 to 1"),
        ([-1], "row numbers must lie from 0 to 1"),
        ([0, 0], "selected twice"),
        ([0.5], "a slice, a list of row numbers or a mask of 2 entries"),
        (1, "a slice, a list of row numbers or a mask of 2 entries"),
        ([True], "a slice, a list of row numbers or a mask of 2 entries"),
    ],
)
def test_selection_that_makes_no_sense_is_refused(chosen: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Ratings.from_arrays([1, 2], [1, 1], [1, 2]).select(users=chosen)


def test_selecting_nobody_gives_nobody() -> None:
    assert len(Ratings.from_arrays([1, 2], [1, 1], [1, 2]).select(users=[])) == 0


def test_mask_of_numbers_is_refused_because_kernels_would_trust_it() -> None:
    ratings = Ratings.from_arrays([1, 1, 2], [1, 2, 1], [1, 2, 5])
    with pytest.raises(DataError, match="true or false"):
        ratings.where(ratings.values.astype(int))


def test_read_only_view_of_memory_that_can_be_written_to_is_copied() -> None:
    values = np.array([1, 2, 3], np.float32)
    view = values.view()
    view.flags.writeable = False
    ids = np.array([7, 8, 9])
    ratings = Ratings.from_rows([0, 1, 2], [0, 0, 0], view, user_ids=ids, item_ids=np.array([5]))
    values[0], ids[0] = 9, 99
    assert ratings.values.tolist() == [1, 2, 3]
    assert ratings.user_ids.tolist() == [7, 8, 9]


def test_copied_ratings_are_as_immutable_as_their_original() -> None:
    ratings = Ratings.from_arrays([1, 2], [1, 1], [1, 2], times=[5, 6])
    again = pickle.loads(pickle.dumps(ratings))
    assert again.times.tolist() == [5, 6]
    for array in (again.values, again.items, again.user_ids, again.by_item.values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3


def test_dates_become_seconds() -> None:
    days = np.array(["1970-01-02", "1970-01-03"], "datetime64[ns]")
    assert Ratings.from_arrays([1, 2], [1, 1], [1, 2], times=days).times.tolist() == [86_400, 172_800]  # type: ignore[union-attr]


@pytest.mark.parametrize("times", [[1.0, np.nan], np.array(["1970-01-02", "NaT"], "datetime64[s]")])
def test_missing_time_is_refused(times: Any) -> None:
    with pytest.raises(DataError, match="time number 2 is missing"):
        Ratings.from_arrays([1, 2], [1, 1], [1, 2], times=times)


def test_id_beyond_64_bits_is_refused_rather_than_wrapped() -> None:
    with pytest.raises(DataError, match="9223372036854775813 is too large"):
        Ratings.from_arrays(np.array([2**63 + 5], np.uint64), [1], [1.0], scale=Scale(1, 5))


def test_row_numbers_must_be_whole() -> None:
    with pytest.raises(DataError, match="must be whole numbers"):
        Ratings.from_rows([0.9], [0], [1], user_ids=np.array([1]), item_ids=np.array([1]))


@pytest.mark.parametrize("wanted", [1.0, True, None, float("inf"), "--1", "²", "1.0"])
def test_what_is_no_id_finds_nobody(wanted: Any) -> None:
    with pytest.raises(UnknownId):
        Ratings.from_arrays([1, 2], [1, 1], [1, 2]).user_row(wanted)


def test_without_values_only_the_pairs_are_left() -> None:
    pairs = Ratings.from_arrays([1, 2], [3, 4], [1, 5]).without_values()
    assert pairs.implicit
    assert pairs.values.tolist() == [1, 1]
    assert pairs.item_ids[pairs.items].tolist() == [3, 4]
