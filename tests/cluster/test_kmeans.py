import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import homogeneity_completeness_v_measure

from cofactor.cluster.kmeans import clustered, labels, loss, v_measure
from cofactor.errors import ConfigError

Floats = NDArray[np.float64]


def best_loss(points: Floats, weights: Floats, clusters: int) -> float:
    """Try every way to divide the points."""
    losses = []
    for groups in product(range(clusters), repeat=len(points)):
        total = 0.0
        for group in set(groups):
            inside = np.array(groups) == group
            mean = np.average(points[inside], axis=0, weights=weights[inside])
            total += float(weights[inside] @ np.square(points[inside] - mean).sum(axis=1))
        losses.append(total)
    return min(losses)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("clusters", [1, 2, 3])
def test_few_points_are_clustered_as_well_as_can_be(seed: int, clusters: int) -> None:
    chance = np.random.default_rng(seed)
    points, weights = chance.normal(size=(6, 2)), chance.uniform(0.1, 5, 6)
    found = loss(points, clustered(points, weights, clusters, seed=1), weights)
    assert found == pytest.approx(best_loss(points, weights, clusters), rel=1e-6)


def test_a_weight_is_as_good_as_so_many_points() -> None:
    chance = np.random.default_rng(3)
    points, weights = chance.normal(size=(30, 3)), chance.integers(0, 5, 30)
    one = clustered(points, weights, 4, seed=2)
    many = clustered(np.repeat(points, weights, axis=0), None, 4, seed=2)
    assert loss(points, one, weights) == pytest.approx(loss(points, many, weights))


def test_with_few_distinct_points_each_is_a_centre_and_the_heaviest_comes_first() -> None:
    points = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [5.0, 5.0]])
    found = clustered(points, [1.0, 3.0, 1.0, 0.0], 5, seed=0)
    np.testing.assert_array_equal(found, [[1, 1], [0, 0], [5, 5], [1, 1], [0, 0]])


def test_points_without_weight_do_not_pull() -> None:
    points = np.array([[0.0], [0.1], [1.0], [1.1], [100.0]])
    found = clustered(points, [1, 1, 1, 1, 0], 2, seed=0)
    np.testing.assert_allclose(np.sort(found[:, 0]), [0.05, 1.05])


def test_without_any_weight_all_pull_alike() -> None:
    points = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_array_equal(
        clustered(points, np.zeros(50), 3, seed=4), clustered(points, None, 3, seed=4)
    )


def test_the_same_seed_finds_the_same_centres() -> None:
    points = np.random.default_rng(0).normal(size=(200, 3))
    np.testing.assert_array_equal(clustered(points, None, 9, seed=4), clustered(points, None, 9, seed=4))


@given(st.integers(0, 2**31), st.integers(1, 9), st.integers(1, 9))
def test_labels_are_those_of_the_closest_centre(seed: int, width: int, count: int) -> None:
    chance = np.random.default_rng(seed)
    points, centres = chance.normal(size=(20, width)), chance.normal(size=(count, width))
    distances = np.square(points[:, None] - centres).sum(axis=2)
    np.testing.assert_array_equal(labels(points, centres), distances.argmin(axis=1))
    assert loss(points, centres) == pytest.approx(distances.min(axis=1).sum())


@given(st.integers(0, 2**31), st.integers(1, 9))
def test_a_label_does_not_depend_on_the_points_around_it(seed: int, width: int) -> None:
    chance = np.random.default_rng(seed)
    centre, other = chance.normal(size=(2, width))
    # All but equally close to both: the last digit decides.
    points = (centre + other) / 2 * chance.choice([1.0, 1 + 2**-52], (17, 1))
    together = labels(points, np.stack([centre, other]))
    alone = [labels(points[k : k + 1], np.stack([centre, other]))[0] for k in range(17)]
    np.testing.assert_array_equal(together, alone)


def test_the_first_of_equally_close_centres_counts() -> None:
    assert labels([[0.0]], [[1.0], [-1.0], [1.0]])[0] == 0


def test_v_measure_is_the_harmonic_mean_of_homogeneity_and_completeness() -> None:
    one, other = [0, 0, 1, 1, 2, 2], [0, 0, 1, 2, 2, 2]
    homogeneity, completeness, _ = homogeneity_completeness_v_measure(one, other)
    assert v_measure(one, other) == pytest.approx(2 / (1 / homogeneity + 1 / completeness))
    assert v_measure(one, [5, 5, 3, 3, 4, 4]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("points", "weights"),
    [
        (np.empty((0, 2)), []),
        (np.zeros((2, 2)), [1.0]),
        (np.zeros((2, 2)), [1.0, -1.0]),
        (np.array([[np.nan]]), [1.0]),
        (np.zeros(3), [1.0, 1.0, 1.0]),
    ],
)
def test_what_cannot_be_clustered_is_refused(points: Floats, weights: list[float]) -> None:
    with pytest.raises(ConfigError):
        clustered(points, weights, 2, seed=0)


def test_points_and_centres_must_have_the_same_columns() -> None:
    with pytest.raises(ConfigError, match="2 columns, centres 3"):
        labels(np.zeros((1, 2)), np.zeros((1, 3)))


def test_without_scikit_learn_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(ConfigError, match=r"pip install 'cofactor\[cluster\]'"):
        clustered(np.eye(4), None, 2, seed=0)
