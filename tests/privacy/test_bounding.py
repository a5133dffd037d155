from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from cofactor.errors import CofactorError, ConfigError, DataError
from cofactor.privacy import bounding
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Adjacency
from cofactor.privacy.clipping import Length
from cofactor.privacy.events import Bound, Norm
from cofactor.privacy.neighbours import Chance, Datasets, Neighbours, Units
from cofactor.privacy.sensitivity import Release, assert_bounded, check, difference

Rows = NDArray[np.float64]

LIMIT = 7.0
FAR = 1e6
ADJACENCIES: tuple[Adjacency, ...] = ("empty", "replace", "value")
LENGTHS: tuple[Length, ...] = ("l1", "l2")


def draw_row(chance: Chance) -> Rows:
    """Rows far inside, near and far outside the limit, some with all their weight in one place."""
    row = chance.normal(0, chance.choice([0.1, 3.0, FAR]), 3)
    return row * (chance.random(3) < 0.5) if chance.random() < 0.5 else row


def draw_whole_row(chance: Chance) -> NDArray[np.int64]:
    return np.rint(draw_row(chance)).astype(np.int64)


def mutate_row(row: NDArray[Any], chance: Chance) -> NDArray[Any]:
    factors: Rows = chance.choice([-1.0, 0.5, 0.9, 1.0, 1.1, 2.0], row.shape)
    return (row * factors).astype(row.dtype)


def filled(units: Units) -> list[Any]:
    """An empty unit keeps its place and contributes zeros."""
    return [np.zeros(3, np.int64) if unit is None else unit for unit in units]


ROWS = Datasets(draw=draw_row, count=3, redraw=lambda _, chance: draw_row(chance), mutate=mutate_row)
WHOLE = Datasets(
    draw=draw_whole_row, count=3, redraw=lambda _, chance: draw_whole_row(chance), mutate=mutate_row
)

Bounding = Callable[[Units, Length, Adjacency], Bounded]
BY_UNIT: dict[str, tuple[Bounding, Datasets]] = {
    "vector": (
        lambda units, norm, adjacency: bounding.vector(
            filled(units)[0], limit=LIMIT, unit="user", norm=norm, adjacency=adjacency
        ),
        Datasets(draw=draw_row, count=1, redraw=ROWS.redraw, mutate=mutate_row),
    ),
    "sum_of_records": (
        lambda units, norm, adjacency: bounding.sum_of_records(
            np.array(filled(units)), limit=LIMIT, unit="user", norm=norm, adjacency=adjacency
        ),
        ROWS,
    ),
    "whole_vector": (
        lambda units, norm, adjacency: bounding.whole_vector(
            filled(units)[0], limit=LIMIT, unit="user", norm=norm, adjacency=adjacency
        ),
        Datasets(draw=draw_whole_row, count=1, redraw=WHOLE.redraw, mutate=mutate_row),
    ),
    "whole_sum": (
        lambda units, norm, adjacency: bounding.whole_sum(
            np.array(filled(units)), limit=LIMIT, unit="user", norm=norm, adjacency=adjacency
        ),
        WHOLE,
    ),
}


def worst(datasets: Datasets, unit: Any, opposite: Any, adjacency: Adjacency) -> Neighbours:
    bystanders = tuple(unit for _ in range(datasets.count - 1))
    return Neighbours(units=(unit, *bystanders), which=0, other=None if adjacency == "empty" else opposite)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("norm", LENGTHS)
@pytest.mark.parametrize("name", BY_UNIT)
def test_a_unit_changes_its_sum_by_no_more_than_the_bound(
    name: str, norm: Length, adjacency: Adjacency
) -> None:
    bounded, datasets = BY_UNIT[name]
    size = LIMIT if adjacency == "empty" else 2 * LIMIT
    bound = Bound(size=size, norm=norm, unit="user", adjacency=adjacency)
    row = np.array([7, 0, 0])
    report = assert_bounded(
        lambda units: bounded(units, norm, adjacency),
        bound,
        datasets,
        worst_case=worst(datasets, row, -row, adjacency),
        pairs=60,
        climbs=60,
    )
    assert report.largest <= size  # strictly: no rounding beyond the bound


Rated = tuple[NDArray[np.int64], Rows]


def draw_user(chance: Chance) -> Rated:
    """A user's rows and where they go; the same place may come twice."""
    count = int(chance.integers(0, 4))
    return chance.integers(0, 4, count), np.array([draw_row(chance) for _ in range(count)]).reshape(count, 3)


def redraw_user(user: Rated, chance: Chance) -> Rated:
    return user[0], np.array([draw_row(chance) for _ in user[0]]).reshape(-1, 3)


def mutate_user(user: Rated, chance: Chance) -> Rated:
    return user[0], mutate_row(user[1], chance)


def gathered(units: Units) -> tuple[Rows, NDArray[np.int64], NDArray[np.int64]]:
    users = [(np.empty(0, np.int64), np.empty((0, 3))) if unit is None else unit for unit in units]
    ptr = np.concatenate([[0], np.cumsum([len(places) for places, _ in users])])
    return np.concatenate([rows for _, rows in users]), ptr, np.concatenate([places for places, _ in users])


def sum_of_users(units: Units, norm: Length, adjacency: Adjacency) -> Bounded:
    rows, ptr, _ = gathered(units)
    return bounding.sum_of_users(rows, ptr, limit=LIMIT, norm=norm, adjacency=adjacency)


def table_of_users(units: Units, norm: Length, adjacency: Adjacency) -> Bounded:
    rows, ptr, places = gathered(units)
    return bounding.table_of_users(
        rows, ptr, places, place_count=4, limit=LIMIT, norm=norm, adjacency=adjacency
    )


USERS = Datasets(draw=draw_user, count=3, redraw=redraw_user, mutate=mutate_user)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("norm", LENGTHS)
@pytest.mark.parametrize("bounded", [sum_of_users, table_of_users])
def test_all_rows_of_a_user_together_change_the_sum_by_no_more_than_the_bound(
    bounded: Bounding, norm: Length, adjacency: Adjacency
) -> None:
    size = LIMIT if adjacency == "empty" else 2 * LIMIT
    bound = Bound(size=size, norm=norm, unit="user", adjacency=adjacency)
    user = (np.array([0, 1, 1]), np.full((3, 3), FAR))
    report = assert_bounded(
        lambda units: bounded(units, norm, adjacency),
        bound,
        USERS,
        worst_case=worst(USERS, user, (user[0], -user[1]), adjacency),
        pairs=60,
        climbs=60,
    )
    assert report.largest <= size


def test_clipping_each_row_of_a_user_by_itself_is_noticed() -> None:
    def row_by_row(units: Units) -> NDArray[Any]:
        rows, _, _ = gathered(units)
        return bounding.sum_of_records(rows, limit=LIMIT, unit="user").value

    report = check(row_by_row, Bound(size=LIMIT, norm="l2", unit="user"), USERS)
    assert not report.bounded
    assert report.largest > 1.5 * LIMIT


def test_an_empty_bound_told_for_replaced_units_is_noticed() -> None:
    bound = Bound(size=LIMIT, norm="l2", unit="user", adjacency="replace")
    report = check(lambda units: sum_of_users(units, "l2", "empty").value, bound, USERS)
    assert not report.bounded


any_number = st.floats(-1e140, 1e140)


@given(arrays(np.float64, 3, elements=any_number), arrays(np.float64, 3, elements=any_number))
def test_no_number_that_hypothesis_finds_breaks_the_bound_of_a_vector(first: Rows, second: Rows) -> None:
    for norm in LENGTHS:
        for adjacency in ADJACENCIES:
            bound = Bound(
                size=LIMIT if adjacency == "empty" else 2 * LIMIT, norm=norm, unit="user", adjacency=adjacency
            )
            pair = Neighbours(units=(first,), which=0, other=None if adjacency == "empty" else second)
            found = difference(lambda units: BY_UNIT["vector"][0](units, norm, adjacency), bound, pair)  # noqa: B023
            assert found <= bound.size


@given(
    arrays(
        np.float32, st.integers(0, 5), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)
    ),
    st.floats(1e-6, 1e6),
)
def test_coordinates_stay_within_their_limit_in_double_precision(
    values: NDArray[np.float32], limit: float
) -> None:
    bounded = bounding.coordinates(values, limit=limit)
    assert bounded.bound == Bound(size=limit, norm="max", unit="user", adjacency="replace")
    assert np.all(np.abs(bounded.value.astype(np.float64) / limit) <= 1)
    inside = np.abs(values.astype(np.float64)) <= limit
    assert np.array_equal(bounded.value[inside], values[inside])


def test_a_limit_between_two_float32_numbers_is_not_exceeded() -> None:
    assert float(np.float32(0.1)) > 0.1
    assert float(bounding.coordinates(np.array([1], np.float32), limit=0.1).value[0]) == 0.1


def max_cases() -> dict[str, tuple[Release, float, Datasets, Any]]:
    answers = Datasets(draw=lambda chance: int(chance.integers(0, 5)), count=3)
    return {
        "coordinates": (
            lambda units: bounding.coordinates(units[0], limit=LIMIT),
            LIMIT,
            ROWS,
            np.full(3, FAR),
        ),
        "whole_vector": (
            lambda units: bounding.whole_vector(
                units[0], limit=LIMIT, norm="max", unit="user", adjacency="replace"
            ),
            LIMIT,
            WHOLE,
            np.full(3, -900),
        ),
        "categories": (lambda units: bounding.categories(np.array(units), choices=5), 4, answers, 4),
    }


@pytest.mark.parametrize("name", max_cases())
def test_every_coordinate_of_a_contribution_stays_within_its_bound(name: str) -> None:
    release, size, datasets, extreme = max_cases()[name]
    norm: Norm = "choice" if name == "categories" else "max"
    bound = Bound(size=size, norm=norm, unit="user", adjacency="replace")
    pair = worst(datasets, extreme, extreme, "replace")
    assert assert_bounded(release, bound, datasets, worst_case=pair).largest <= size


def test_bounds_say_what_was_enforced() -> None:
    row = [[3.0, 4.0]]
    assert bounding.sum_of_records(row, limit=2, unit="rating").bound == Bound(
        size=2.0, norm="l2", unit="rating", adjacency="empty"
    )
    assert bounding.sum_of_users(row, [0, 1], limit=2, norm="l1", adjacency="replace").bound == Bound(
        size=4.0, norm="l1", unit="user", adjacency="replace"
    )
    assert bounding.categories([0, 4], choices=5).bound.size == 4


def test_sums_over_nobody_are_zero() -> None:
    assert bounding.vector([], limit=1, unit="user").value.shape == (0,)
    assert bounding.sum_of_records(np.empty((0, 2)), limit=1, unit="user").value.tolist() == [0, 0]
    assert bounding.sum_of_users(np.empty((0, 2)), [0, 0], limit=1).value.tolist() == [0, 0]
    assert bounding.table_of_users(np.empty((0, 2)), [0], [], place_count=1, limit=1).value.tolist() == [
        [0, 0]
    ]
    assert bounding.whole_sum(np.empty((0, 2), int), limit=1, norm="l1", unit="user").value.tolist() == [0, 0]
    assert bounding.categories([], choices=2).value.shape == (0,)
    assert bounding.coordinates([], limit=1).value.shape == (0,)


MISTAKES: dict[str, tuple[Callable[[], object], type[CofactorError], str]] = {
    "one row": (lambda: bounding.sum_of_records([1.0], limit=1, unit="user"), ConfigError, "2 dimension"),
    "no limit": (
        lambda: bounding.vector([1.0], limit=0, unit="user"),
        ConfigError,
        "limit must be greater than 0",
    ),
    "NaN": (lambda: bounding.vector([np.nan], limit=1, unit="user"), DataError, "not finite"),
    "NaN coordinate": (lambda: bounding.coordinates([np.nan], limit=1), DataError, "not finite"),
    "unit": (
        lambda: bounding.vector([1.0], limit=1, unit="item"),  # type: ignore[arg-type]
        ConfigError,
        "unit must be one of",
    ),
    "adjacency": (
        lambda: bounding.whole_vector([1], limit=1, norm="max", unit="user"),
        ConfigError,
        'its adjacency is "replace"',
    ),
    "reals": (
        lambda: bounding.whole_sum([[1.5]], limit=1, norm="l1", unit="user"),
        ConfigError,
        "whole numbers",
    ),
    "overflow": (
        lambda: bounding.whole_sum(np.zeros((2000, 1), int), limit=2**53, norm="l1", unit="user"),
        ConfigError,
        "does not fit 63 bits",
    ),
    "one choice": (lambda: bounding.categories([0], choices=1), ConfigError, "choices must be at least 2"),
    "an answer too many": (lambda: bounding.categories([0, 777], choices=5), DataError, "between 0 and 4"),
    "an answer just too many": (lambda: bounding.categories([5], choices=5), DataError, "between 0 and 4"),
    "an answer below": (lambda: bounding.categories([-777], choices=5), DataError, "between 0 and 4"),
    "half an answer": (lambda: bounding.categories([0.5], choices=5), ConfigError, "must be whole numbers"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_and_no_value_is_shown(mistake: str) -> None:
    make, kind, words = MISTAKES[mistake]
    with pytest.raises(kind, match=words) as error:
        make()
    assert "777" not in str(error.value)


def test_numpy_limits_do_not_wrap() -> None:
    rows = np.full((1, 1), 500)
    limits: list[Any] = [np.uint8(130), np.int16(130), np.float16(130), 130]
    for limit in limits:
        real = bounding.sum_of_records(rows, limit=limit, unit="user", adjacency="replace").bound
        whole = bounding.whole_sum(rows, limit=limit, norm="l2", unit="user", adjacency="replace").bound
        assert real.size == whole.size == 260.0
        assert type(real.size) is float


def test_masked_numbers_are_refused_and_never_released_bare() -> None:
    masked = np.ma.masked_array([[1.0, 2.0], [100.0, 100.0]], mask=[[False, False], [True, True]])
    with pytest.raises(ConfigError, match="must not be masked"):
        bounding.sum_of_records(masked, limit=1, unit="user")
    by_hand = Bounded(value=masked, bound=Bound(size=1.0, norm="l2", unit="user"))
    assert type(by_hand.value) is np.ndarray


def test_a_bounded_value_is_neither_printed_nor_changed() -> None:
    bounded = bounding.vector([0.123456, 0.2], limit=1, unit="user")
    assert "0.123456" not in repr(bounded)
    with pytest.raises(ValueError, match="read-only"):
        bounded.value[0] = 9.0


@pytest.mark.parametrize("value", [[1.0], np.array(["a"]), np.array([np.nan]), np.array([None])])
def test_a_value_that_is_no_array_of_numbers_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"Bounded value is an array|array of finite numbers"):
        Bounded(value=value, bound=Bound(size=1.0, norm="l2", unit="user"))
