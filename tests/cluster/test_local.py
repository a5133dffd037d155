from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.cluster.kmeans import clustered, loss
from cofactor.cluster.lloyd import PrivateLloyd
from cofactor.cluster.local import LSHForest
from cofactor.cluster.local_sums import Sums, clipped
from cofactor.cluster.local_tree import Halves, Hyperplanes, divided, everything, kept_only, largest
from cofactor.config import as_table, from_table
from cofactor.errors import ConfigError
from cofactor.privacy.clipping import clipped_whole
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.mechanisms import DiscreteLaplace
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.randomness import InsecureRandom
from tests.cluster.letting import (
    CLUSTERS,
    Letting,
    Unit,
    blobs,
    centres_of,
    draw,
    farthest,
    found_in,
    points_of,
    schedule_of,
)

WIDTH, USERS = 3, 4000
SMALL = LSHForest(levels=3, halvings=2)
PLANES = replace(SMALL, splits=Hyperplanes())
LONELY = (-1.0, -1.0, -1.0)
"""In a corner, and far from all others."""
UNITS = ((1.0, 1.0, 1.0), (-1.0, 1.0, -1.0), (0.0, 0.0, 0.0), (0.5, -0.5, 9.0), None)
NAMES = ("counts of level 1", "counts of level 2", "sums of leaves", "sums around centres")


def datasets(width: int = WIDTH) -> Datasets:
    return Datasets(draw=lambda chance: draw(chance, width), count=len(UNITS), empty=None)


def crowd() -> NDArray[np.float64]:
    """Return many points at a few places, so that boxes are divided whatever the noise."""
    return np.repeat(points_of(UNITS, WIDTH), 800, axis=0)


@pytest.mark.parametrize("method", [SMALL, PLANES], ids=["halves", "planes"])
@pytest.mark.parametrize("name", NAMES)
def test_a_user_who_vanishes_changes_each_release_by_no_more_than_its_bound(
    method: LSHForest, name: str
) -> None:
    plan = schedule_of(method, width=WIDTH, users=USERS)
    before = Letting(plan)
    centres_of(method, crowd(), before, users=USERS)
    release = next(each for each in plan.releases if each.what == f"{name} of bank")
    worst = LONELY if name.startswith("sums") else UNITS[0]  # boxes with hardly anybody are not divided

    def noise_free(units: tuple[Unit, ...]) -> NDArray[Any]:
        let = Letting(plan, again=before)
        centres_of(method, points_of(units, WIDTH), let, users=USERS)
        return let.values[release.what][-1]

    assert_bounded(
        noise_free,
        release.bound,
        datasets(),
        worst_case=Neighbours(units=(worst, *UNITS), which=0, other=None),
        pairs=10,
        climbs=10,
    )


@pytest.mark.parametrize("method", [SMALL, PLANES], ids=["halves", "planes"])
def test_noise_covers_all_places_of_all_levels_whoever_is_there(method: LSHForest) -> None:
    plan, random = schedule_of(method, width=WIDTH, users=USERS), InsecureRandom(3)

    def released(units: tuple[Unit, ...]) -> NDArray[Any]:
        let = Letting(plan, random)
        centres_of(method, points_of(units, WIDTH), let, users=USERS)
        return np.concatenate([answer.reshape(-1) for answer in let.answers])

    # The least noise has a scale of 20: a number stays for 7 runs with a chance below 1e-12.
    scales = [release.mechanism.noise_multiplier for release in plan.releases]  # type: ignore[attr-defined]
    assert min(scale * release.bound.size for scale, release in zip(scales, plan.releases, strict=True)) >= 20
    assert_noise_covers(released, "empty", replace(datasets(), count=2), runs=8)


@pytest.mark.parametrize("method", [LSHForest(), PLANES], ids=["halves", "planes"])
def test_centres_are_made_of_nothing_but_noisy_numbers(method: LSHForest) -> None:
    plan = schedule_of(method, width=WIDTH, users=USERS)
    first = Letting(plan)
    found = centres_of(method, crowd(), first, users=USERS)
    for other in (np.zeros((0, WIDTH)), np.random.default_rng(1).normal(size=(500, WIDTH))):
        again = centres_of(method, other, Letting(plan, again=first), users=USERS)
        np.testing.assert_array_equal(again, found)


@pytest.mark.parametrize("splits", [Halves(), Hyperplanes()])
def test_clear_clusters_are_found(splits: Halves | Hyperplanes) -> None:
    points, true = blobs(1)
    found = found_in(LSHForest(splits=splits), points, epsilon=0.5)
    assert farthest(found, true) < 0.05
    assert loss(points, found) < 1.05 * loss(points, clustered(points, None, CLUSTERS, seed=0))


def test_the_tree_alone_finds_clear_clusters_but_steps_find_them_better() -> None:
    points, true = blobs(2)
    alone = found_in(LSHForest(steps=0), points, epsilon=0.5)
    assert farthest(alone, true) < 0.25
    assert loss(points, found_in(LSHForest(), points, epsilon=0.5)) < loss(points, alone)


@pytest.mark.parametrize("method", [SMALL, PLANES], ids=["halves", "planes"])
def test_with_hardly_any_noise_the_tree_finds_places_in_corners_of_their_boxes(method: LSHForest) -> None:
    places = points_of(UNITS[:3], WIDTH)
    found = found_in(replace(method, steps=0), np.repeat(places, 1000, axis=0), epsilon=100.0)
    assert farthest(found, places) < 0.01


def test_values_outside_count_like_those_at_the_edge() -> None:
    points, _ = blobs(4, 500)
    found = found_in(LSHForest(), 3 * points)
    np.testing.assert_array_equal(found, found_in(LSHForest(), np.clip(3 * points, -1, 1)))


def test_boxes_are_divided_where_points_are() -> None:
    plan = schedule_of(SMALL, width=WIDTH, users=USERS, epsilon=8.0)
    let = Letting(plan)
    centres_of(SMALL, crowd(), let, users=USERS)
    first, second = (let.values[f"counts of level {k} of bank"][0] for k in (1, 2))
    assert first.sum() == second.sum() == len(crowd())
    assert np.count_nonzero(second) >= np.count_nonzero(first) > 1


@settings(max_examples=25)
@given(
    st.integers(1, 20),
    st.integers(1, 9),
    st.sampled_from([1, 2, 50, 20_000, 10**9]),
    st.floats(0.002, 20.0),
    st.sampled_from([LSHForest(), PLANES, LSHForest(levels=1, steps=0, halvings=1)]),
)
def test_what_goes_out_is_what_was_planned_and_planned_for_epsilon(
    width: int, clusters: int, users: int, epsilon: float, method: LSHForest
) -> None:
    plan = schedule_of(method, width=width, users=users, epsilon=epsilon, clusters=clusters)
    spent = [each.times / each.mechanism.noise_multiplier for each in plan.releases]  # type: ignore[attr-defined]
    assert sum(spent) == pytest.approx(epsilon)
    for each in plan.releases:
        scale = each.mechanism.noise_multiplier * each.bound.size  # type: ignore[attr-defined]
        assert 2 * scale <= DiscreteLaplace.largest_noise * (1 + 1e-9)
        assert each.count(9) == each.times


@pytest.mark.parametrize("epsilon", [0.0018, 10.0])
@pytest.mark.parametrize(
    "points",
    [
        np.zeros((0, 2)),
        np.zeros((1, 1)),
        np.full((50, 2), 0.3),
        np.array([[0.1, 0.2], [-0.9, 0.4]]),
        np.random.default_rng(0).uniform(-30, 30, (300, 9)),
    ],
    ids=["nobody", "one user, one column", "all equal", "fewer points than clusters", "outside"],
)
def test_extreme_cases_have_centres_too(points: NDArray[np.float64], epsilon: float) -> None:
    found = found_in(LSHForest(), points, epsilon=epsilon, clusters=5)
    assert found.shape == (5, points.shape[1])
    assert np.abs(found).max() <= 1


def test_all_users_at_one_place_are_found_there() -> None:
    found = found_in(LSHForest(), np.full((5000, 2), 0.3), epsilon=2.0, clusters=2)
    assert np.abs(found - 0.3).max(axis=1).min() < 0.02


def test_what_is_no_number_counts_as_nothing_and_never_fails() -> None:
    strange = np.array([[np.nan, np.inf], [-np.inf, 1e300], [-1.5, 0.25]])
    np.testing.assert_array_equal(clipped(strange), [[0, 1], [-1, 1], [-1, 0.25]])
    with pytest.raises(ConfigError, match="a row for each user"):
        clipped(np.zeros(3))


@pytest.mark.parametrize("local", [LSHForest(splits=Hyperplanes(), steps=1), PrivateLloyd(iterations=2)])
def test_settings_survive_a_table(local: LSHForest | PrivateLloyd) -> None:
    assert from_table(LSHForest | PrivateLloyd, as_table(local), "local") == local


def test_a_schedule_of_something_else_is_refused() -> None:
    plan = schedule_of(PrivateLloyd(), width=WIDTH, users=USERS)
    with pytest.raises(ConfigError, match="the schedule has no sums of leaves"):
        centres_of(LSHForest(), crowd(), Letting(plan), users=USERS)


def test_a_budget_too_small_to_learn_from_is_refused() -> None:
    with pytest.raises(ConfigError, match="too little to learn from"):
        schedule_of(LSHForest(), width=4, users=10**6, epsilon=1e-4)


@settings(max_examples=50)
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(2, 4096))
def test_sums_are_those_of_rounded_vectors_within_their_reach(seed: int, width: int, size: int) -> None:
    chance, sums = np.random.default_rng(seed), Sums(width=width, size=size)
    vectors = chance.normal(size=(20, width)) * chance.choice([0.01, 0.3, 1.0, 100.0], (20, 1))
    groups = chance.integers(0, 4, 20)
    bounded = sums.bounded(vectors, groups, 4)
    shortened = vectors / np.maximum(np.abs(vectors).sum(axis=1, keepdims=True), 1)
    rows = clipped_whole(np.rint(shortened * sums.reach).astype(np.int64), sums.reach, "l1")
    expected = np.zeros((4, 1 + width))
    np.add.at(expected, groups, np.column_stack([np.full(20, sums.weight), rows]))
    assert np.abs(bounded.value - expected).max() <= 1  # a half may be rounded either way
    counts, totals = sums.read(bounded.value)
    np.testing.assert_array_equal(counts, np.bincount(groups, minlength=4))
    exact = np.zeros((4, width))
    np.add.at(exact, groups, shortened)
    assert np.abs(totals - exact).max() <= 20 * (width + 1) / sums.reach


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 5), st.booleans())
def test_every_point_lies_in_its_box_and_where_does_not_depend_on_others(
    seed: int, width: int, planes: bool
) -> None:
    chance = np.random.default_rng(seed)
    points = clipped(np.array([draw(chance, width) for _ in range(30)]))

    def fallen(some: NDArray[np.float64]) -> tuple[NDArray[np.int64], Any]:
        places, boxes = np.zeros(len(some), np.int64), everything(width)
        cuts = (Hyperplanes() if planes else Halves()).cuts(width, 3)
        for _ in range(6):
            places, boxes = divided(some, places, boxes, *next(cuts))
        return places, boxes

    places, boxes = fallen(points)
    assert ((boxes.low[places] <= points) & (points <= boxes.high[places])).all()
    assert (np.abs(points - boxes.centres[places]).sum(axis=1) <= boxes.reach[places] * (1 + 1e-12)).all()
    np.testing.assert_array_equal(places, [fallen(points[k : k + 1])[0][0] for k in range(30)])


def test_only_clear_boxes_are_kept_and_not_too_many() -> None:
    boxes = replace(everything(1), low=np.arange(5.0)[:, None], high=np.arange(1.0, 6.0)[:, None])
    boxes = replace(boxes, used=np.array([True, True, False, True, True]))
    counts = np.array([7, 30, 99, 20, 11])
    np.testing.assert_array_equal(largest(counts, boxes, above=10, most=9), [1, 3, 4])
    np.testing.assert_array_equal(largest(counts, boxes, above=10, most=2), [1, 3])
    places, kept = kept_only(np.array([0, 1, 3, 4, -1]), boxes, np.array([1, 3]), 4)
    np.testing.assert_array_equal(places, [-1, 0, 1, -1, -1])
    np.testing.assert_array_equal(kept.used, [True, True, False, False])
    np.testing.assert_array_equal(kept.low[:2, 0], [1, 3])


@pytest.mark.parametrize(
    "settings_", [{"halvings": 9}, {"levels": 0}, {"growing": 1.0}, {"reach": 2.5}, {"steps": -1}]
)
def test_settings_that_make_no_sense_are_refused(settings_: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        LSHForest(**settings_)
