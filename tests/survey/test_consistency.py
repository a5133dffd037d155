"""Weighted averages up and down a tree are weighted least squares."""

import numpy as np
import pytest

from cofactor.survey.consistency import layer_sizes, layers_of, nearest_consistent
from cofactor.survey.method import Floats

TREES = ((16, 4), (16, 2), (27, 3), (5, 5))


def constraints(sizes: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the rows that say that each node is the sum of its children, and the root is 1."""
    starts, branching = np.cumsum([0, *sizes]), sizes[0]
    rows, right = [np.r_[np.ones(branching), np.zeros(sum(sizes) - branching)]], [1.0]
    for layer, size in enumerate(sizes[:-1]):
        for node in range(size):
            row = np.zeros(sum(sizes))
            row[starts[layer] + node] = -1
            first = starts[layer + 1] + node * branching
            row[first : first + branching] = 1
            rows.append(row)
            right.append(0.0)
    return np.array(rows), np.array(right)


def solved_densely(tree: Floats, sizes: tuple[int, ...], weights: Floats) -> Floats:
    rows, right = constraints(sizes)
    weight = np.diag(np.repeat(weights, sizes))
    system = np.block([[weight, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    return np.asarray(np.linalg.solve(system, np.r_[weight @ tree, right])[: len(tree)])


@pytest.mark.parametrize(("leaves", "branching"), TREES)
def test_two_passes_solve_weighted_least_squares(leaves: int, branching: int) -> None:
    chance, sizes = np.random.default_rng(leaves + branching), layer_sizes(leaves, branching)
    for _ in range(5):
        tree, weights = chance.normal(0, 1, sum(sizes)), chance.uniform(0.01, 10, len(sizes))
        found = nearest_consistent(tree, sizes, weights.tolist())
        np.testing.assert_allclose(found, solved_densely(tree, sizes, weights), rtol=0, atol=1e-12)


def test_a_consistent_tree_stays_as_it_is() -> None:
    leaves = np.random.default_rng(3).dirichlet(np.ones(64))
    tree = np.concatenate([leaves.reshape(size, -1).sum(axis=1) for size in (4, 16, 64)])
    np.testing.assert_allclose(nearest_consistent(tree, (4, 16, 64), [1, 2, 3]), tree, rtol=0, atol=1e-15)


def test_weights_of_equal_layers_are_those_of_hay_and_others() -> None:
    # Their weight of a node at height i, leaves being at 1, against children: (k^i - k^(i-1)) / (k^i - 1).
    tree = np.random.default_rng(4).normal(0, 1, 2 + 4 + 8)
    top, middle, leaves = layers_of(tree, (2, 4, 8))
    middle = 2 / 3 * middle + 1 / 3 * leaves.reshape(4, 2).sum(axis=1)
    top = 4 / 7 * top + 3 / 7 * middle.reshape(2, 2).sum(axis=1)
    found = layers_of(nearest_consistent(tree, (2, 4, 8), [1, 1, 1]), (2, 4, 8))[0]
    np.testing.assert_allclose(found, top + (1 - top.sum()) / 2, atol=1e-14)


def test_layers_without_weight_have_no_say() -> None:
    chance = np.random.default_rng(5)
    tree, other = chance.normal(0, 1, (2, 20))
    other[4:] = tree[4:]
    np.testing.assert_array_equal(
        nearest_consistent(tree, (4, 16), [0, 1]), nearest_consistent(other, (4, 16), [0, 1])
    )
    blind = nearest_consistent(np.r_[tree[:4], np.zeros(16)], (4, 16), [1, 0])
    np.testing.assert_allclose(blind[4:], np.repeat(blind[:4], 4) / 4, atol=1e-15)


def test_layers_have_the_sizes_of_a_tree() -> None:
    assert layer_sizes(256, 4) == (4, 16, 64, 256)
    assert layer_sizes(4, 4) == (4,)
    assert [layer.size for layer in layers_of(np.zeros(84), (4, 16, 64))] == [4, 16, 64]
