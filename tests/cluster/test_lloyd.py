from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.cluster.kmeans import clustered, labels, loss
from cofactor.cluster.lloyd import PrivateLloyd, spread
from cofactor.errors import ConfigError
from cofactor.privacy.coverage import assert_noise_covers
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

WIDTH, USERS = 3, 400
METHOD = PrivateLloyd(iterations=3, reach=0.25)
UNITS = ((1.0, 1.0, 1.0), (-1.0, 1.0, -1.0), (0.0, 0.0, 0.0), None)
DATASETS = Datasets(draw=lambda chance: draw(chance, WIDTH), count=len(UNITS), empty=None)


@pytest.mark.parametrize("step", range(3))
def test_a_user_who_vanishes_changes_each_step_by_no_more_than_the_bound(step: int) -> None:
    plan = schedule_of(METHOD, width=WIDTH, users=USERS)
    before = Letting(plan)
    centres_of(METHOD, np.repeat(points_of(UNITS, WIDTH), 100, axis=0), before, users=USERS)

    def noise_free(units: tuple[Unit, ...]) -> NDArray[Any]:
        let = Letting(plan, again=before)
        centres_of(METHOD, points_of(units, WIDTH), let, users=USERS)
        return let.values["sums around centres of bank"][step]

    worst = Neighbours(units=UNITS, which=1, other=None)
    assert_bounded(noise_free, plan.releases[0].bound, DATASETS, worst_case=worst, pairs=50, climbs=50)


def test_noise_covers_all_clusters_whoever_is_there() -> None:
    plan, random = schedule_of(METHOD, width=WIDTH, users=USERS), InsecureRandom(3)

    def released(units: tuple[Unit, ...]) -> NDArray[Any]:
        let = Letting(plan, random)
        centres_of(METHOD, points_of(units, WIDTH), let, users=USERS)
        return np.stack(let.answers)

    assert_noise_covers(released, "empty", DATASETS, runs=8)


def test_centres_are_made_of_nothing_but_noisy_numbers() -> None:
    plan, (points, _) = schedule_of(METHOD, width=WIDTH, users=USERS), blobs(0, USERS)
    first = Letting(plan)
    found = centres_of(METHOD, points, first, users=USERS)
    again = centres_of(METHOD, -points[:7], Letting(plan, again=first), users=USERS)
    np.testing.assert_array_equal(again, found)
    assert not np.array_equal(found, centres_of(METHOD, -points, Letting(plan), users=USERS))


def test_clear_clusters_are_found() -> None:
    points, true = blobs(1)
    found = found_in(PrivateLloyd(), points)
    assert farthest(found, true) < 0.1
    assert loss(points, found) < 1.1 * loss(points, clustered(points, None, CLUSTERS, seed=0))


def test_with_hardly_any_noise_a_step_is_that_of_plain_k_means() -> None:
    points, _ = blobs(3)
    method = PrivateLloyd(iterations=1, reach=2.0)
    plan = schedule_of(method, width=WIDTH, users=len(points), epsilon=1000.0)
    found = centres_of(method, points, Letting(plan), users=len(points))
    start = spread(CLUSTERS, WIDTH, 5)
    inside = np.clip(points, -1, 1)
    groups = labels(inside, start)
    means = [inside[groups == k].mean(axis=0) if (groups == k).any() else start[k] for k in range(CLUSTERS)]
    np.testing.assert_allclose(found, means, atol=0.01)


def test_a_centre_without_clear_means_stays() -> None:
    plan = schedule_of(METHOD, width=WIDTH, users=USERS)
    silent, found = Letting(plan), spread(CLUSTERS, WIDTH, 5)
    loud = np.full((CLUSTERS, 1 + WIDTH), 20)
    silent.answers = [np.zeros_like(loud), loud, -loud]
    points = points_of(UNITS, WIDTH)
    np.testing.assert_array_equal(centres_of(METHOD, points, Letting(plan, again=silent), users=USERS), found)


def test_first_centres_are_public_and_apart() -> None:
    first = spread(6, 4, 1)
    np.testing.assert_array_equal(first, spread(6, 4, 1))
    apart = np.sqrt(np.square(first[:, None] - first).sum(axis=2)) + 9 * np.eye(6)
    assert apart.min() > 0.4
    assert np.abs(first).max() <= 0.5


@pytest.mark.parametrize("points", [np.zeros((0, 2)), np.zeros((1, 1)), np.full((9, 4), -77.0)])
@pytest.mark.parametrize("epsilon", [0.01, 10.0])
def test_extreme_cases_have_centres_too(points: NDArray[np.float64], epsilon: float) -> None:
    found = found_in(PrivateLloyd(), points, epsilon=epsilon, clusters=7)
    assert found.shape == (7, points.shape[1])
    assert np.abs(found).max() <= 1


@pytest.mark.parametrize("settings", [{"iterations": 0}, {"reach": 0.0}, {"reach": 3.0}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        PrivateLloyd(**settings)
