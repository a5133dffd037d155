"""ADMM finds the nearest tree of probabilities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from cofactor.survey.admm import nearest_probabilities
from cofactor.survey.consistency import layer_sizes, layers_of
from cofactor.survey.method import Floats
from tests.survey.test_consistency import TREES, constraints


def solved_as_a_program(tree: Floats, sizes: tuple[int, ...], weights: Floats) -> Floats:
    rows, right = constraints(sizes)
    weight = np.repeat(weights, sizes)
    found = minimize(
        lambda x: 0.5 * np.sum(weight * (x - tree) ** 2),
        np.full(len(tree), 0.1),
        jac=lambda x: weight * (x - tree),
        bounds=[(0, None)] * len(tree),
        constraints={"type": "eq", "fun": lambda x: rows @ x - right, "jac": lambda _: rows},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    assert found.success
    return np.asarray(found.x)


def gap(found: Floats, tree: Floats, sizes: tuple[int, ...], weights: Floats) -> float:
    """Return how much better, at most, any other tree of probabilities could be.

    All such trees are mixtures of those with one leaf, so the gradient tells; and half the weighted squared
    distance from the best tree is no more than this.
    """
    slope = layers_of(np.repeat(weights, sizes) * (found - tree), sizes)
    leaves = sum(np.repeat(layer, sizes[-1] // layer.size) for layer in slope)
    assert isinstance(leaves, np.ndarray)
    return float(layers_of(found, sizes)[-1] @ leaves - leaves.min())


@pytest.mark.parametrize(("leaves", "branching"), TREES)
def test_the_result_is_the_optimum_of_the_quadratic_program(leaves: int, branching: int) -> None:
    chance, sizes = np.random.default_rng(leaves * branching), layer_sizes(leaves, branching)
    for weights in (np.ones(len(sizes)), chance.uniform(0.2, 1, len(sizes))):
        tree = chance.normal(1 / leaves, 0.2, sum(sizes))
        found = nearest_probabilities(tree, sizes, weights.tolist())
        np.testing.assert_allclose(found, solved_as_a_program(tree, sizes, weights), rtol=0, atol=1e-6)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.sampled_from([(1024, 4), (64, 2), (81, 9), (7, 7)]),
    size=st.sampled_from([1e-3, 0.03, 1.0]),
)
def test_no_tree_of_probabilities_is_nearer(seed: int, shape: tuple[int, int], size: float) -> None:
    chance, sizes = np.random.default_rng(seed), layer_sizes(*shape)
    truth = chance.dirichlet(np.full(shape[0], 0.1))
    tree = np.concatenate([truth.reshape(each, -1).sum(axis=1) for each in sizes])
    tree = tree + chance.normal(0, size, tree.size)
    weights = chance.uniform(0.2, 1, len(sizes))
    found = nearest_probabilities(tree, sizes, weights.tolist())
    assert np.all(found >= 0)
    for layer in layers_of(found, sizes):
        assert abs(layer.sum() - 1) < 1e-6
    assert gap(found, tree, sizes, weights) < 1e-7


def test_probabilities_stay_as_they_are() -> None:
    leaves = np.random.default_rng(2).dirichlet(np.ones(64))
    tree = np.concatenate([leaves.reshape(size, -1).sum(axis=1) for size in (4, 16, 64)])
    np.testing.assert_allclose(nearest_probabilities(tree, (4, 16, 64), [1, 1, 1]), tree, rtol=0, atol=1e-8)


def test_a_layer_without_weight_has_no_say() -> None:
    chance = np.random.default_rng(6)
    tree = np.r_[chance.normal(0.25, 0.1, 4), chance.normal(0.06, 0.1, 16)]
    other = np.r_[tree[:4], chance.normal(0, 1, 16)]
    found, same = (nearest_probabilities(each, (4, 16), [1, 0]) for each in (tree, other))
    np.testing.assert_allclose(found[:4], same[:4], atol=1e-6)
