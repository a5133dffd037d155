from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.errors import DataError
from cofactor.papers.thesis22_cluster_data import (
    ADULT,
    CLUSTER_NAMES,
    FILES,
    GAUSSIAN,
    LETTER,
    TAXI,
    gaussian,
    mixture,
    read_crowds,
    scaled,
)

WEEK = 60 * 60 * 24 * 7


def trips(count: int = 40, **changed: Any) -> dict[str, Any]:
    one = np.ones(count)
    return {
        "pickup": one * (3 * WEEK + WEEK / 4),
        "dropoff": one * (WEEK / 2),
        "pickup_location_id": np.linspace(1, 265, count),
        "dropoff_location_id": one,
        "passenger_count": np.arange(count) % 3,
        "trip_distance": np.arange(count) - 1.0,
        "fare_amount": np.arange(count) + 1.0,
        "tip_amount": np.arange(count) + 0.0,
    } | changed


def write(folder: Path, **changed: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    letters = np.random.default_rng(1).integers(0, 16, (60, 16))
    census = np.stack([np.arange(100.0), np.zeros(100), np.r_[np.zeros(99), 7.0]], axis=1)
    np.savez(folder / FILES[LETTER], X=letters)
    np.savez(folder / FILES[ADULT], X=census)
    np.savez(folder / FILES[TAXI], **trips(**changed))
    return folder


def test_the_mixture_has_the_size_of_the_thesis_and_centres_of_its_own_in_every_repeat() -> None:
    crowd = mixture()
    first, second = crowd.drawn(1), crowd.drawn(2)
    assert first.values.shape == (crowd.users, crowd.columns) == (20_000, 8)
    assert np.abs(first.values).max() <= 1
    assert first.labels is not None
    assert second.labels is not None
    means = [
        np.array([one.values[one.labels == k].mean(axis=0) for k in range(5)]) for one in (first, second)
    ]
    assert np.abs(means[0] - means[1]).max() > 0.2
    assert np.array_equal(first.values, crowd.drawn(1).values)


def test_users_lie_about_their_centre_with_the_stated_spread() -> None:
    points = gaussian(40_000, seed=3)
    own = points.values[points.labels == 0]
    inner = np.abs(np.median(own, axis=0)) < 0.3  # far from the ends, where users are clipped
    assert inner.any()
    # The standard error of a deviation of 8,000 numbers is 0.8% of it: six of them.
    assert own[:, inner].std(axis=0) == pytest.approx(0.25, rel=0.05)


def test_columns_are_mapped_from_their_range_to_the_unit_one() -> None:
    assert scaled(np.array([-5.0, 0.0, 5.0, 10.0, 99.0]), 0, 10).tolist() == [-1, -1, 0, 1, 1]


def test_all_sets_are_read_from_a_folder(tmp_path: Path) -> None:
    found = {one.name: one for one in read_crowds(write(tmp_path), CLUSTER_NAMES)}
    assert tuple(found) == CLUSTER_NAMES
    assert {name: one.columns for name, one in found.items()} == {GAUSSIAN: 8, TAXI: 8, ADULT: 1, LETTER: 16}
    for name in (TAXI, ADULT, LETTER):
        points = found[name].drawn(1)
        assert np.abs(points.values).max() <= 1
        assert points.labels is None
        assert found[name].drawn(2) is points
        assert len(points.values) == found[name].users


def test_taxi_times_are_those_of_a_week_and_amounts_end_at_their_quantile(tmp_path: Path) -> None:
    [taxi] = read_crowds(write(tmp_path), [TAXI])
    values = taxi.drawn(1).values
    assert np.allclose(values[:, 0], -0.5)
    assert np.allclose(values[:, 4], 0.0)
    assert (values[0, 1], values[-1, 1]) == (-1, 1)
    assert values[0, 3] == values[1, 3] == -1  # below 0, and 0
    assert np.sum(values[:, 3] == 1) == 2  # of 40, those above 95%


def test_trips_with_unknown_numbers_are_left_out(tmp_path: Path) -> None:
    unknown = np.where(np.arange(40) < 5, np.nan, 1.0)
    [taxi] = read_crowds(write(tmp_path, passenger_count=unknown), [TAXI])
    assert taxi.users == 35


def test_a_column_of_the_census_that_is_the_same_for_nearly_all_is_left_out(tmp_path: Path) -> None:
    [adult] = read_crowds(write(tmp_path), [ADULT])
    values = adult.drawn(1).values
    assert values.shape == (100, 1)
    assert values[0, 0] == -1
    assert np.sum(values == 1) == 5


def test_few_users_where_few_must_do(tmp_path: Path) -> None:
    np.savez(tmp_path / FILES[LETTER], X=np.zeros((50_000, 16)))
    sizes = [read_crowds(tmp_path, [LETTER], quick=quick)[0].users for quick in (False, True)]
    assert sizes == [50_000, 16_667]


def test_without_a_folder_there_is_the_mixture_only(tmp_path: Path) -> None:
    assert [one.name for one in read_crowds(None, CLUSTER_NAMES)] == [GAUSSIAN]
    assert [one.name for one in read_crowds(tmp_path, CLUSTER_NAMES)] == [GAUSSIAN]


def test_a_folder_that_is_not_there_and_files_without_arrays_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        read_crowds(tmp_path / "nowhere", CLUSTER_NAMES)
    np.savez(tmp_path / FILES[LETTER], Y=np.zeros((3, 16)))
    with pytest.raises(DataError, match="does not hold arrays of numbers X"):
        read_crowds(tmp_path, [LETTER])
    (tmp_path / FILES[LETTER]).write_text("no arrays")
    with pytest.raises(DataError, match="does not hold"):
        read_crowds(tmp_path, [LETTER])
    np.savez(tmp_path / FILES[LETTER], X=np.zeros((0, 16)))
    with pytest.raises(DataError, match="holds nobody"):
        read_crowds(tmp_path, [LETTER])
    with pytest.raises(DataError, match="holds nobody"):
        read_crowds(write(tmp_path, passenger_count=np.full(40, np.nan)), [TAXI])
