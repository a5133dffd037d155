"""Trees whose layers were estimated apart, made to agree: every node the sum of its children, the root 1.

A tree is one row of numbers, layer after layer from the children of the root to the leaves; the root itself
is known and left out.
"""

from collections.abc import Sequence

import numpy as np

from cofactor.survey.method import Floats


def layer_sizes(leaves: int, branching: int) -> tuple[int, ...]:
    """Return how many nodes each layer below the root has, if all but leaves have `branching` children."""
    sizes = [leaves]
    while sizes[0] > branching:
        sizes.insert(0, sizes[0] // branching)
    return tuple(sizes)


def layers_of(tree: Floats, sizes: Sequence[int]) -> list[Floats]:
    """Return views of a tree's layers."""
    return np.split(tree, np.cumsum(sizes)[:-1])


def nearest_consistent(tree: Floats, sizes: Sequence[int], weights: Sequence[float]) -> Floats:
    """Return the consistent tree whose squared distance is least, with a weight for each layer.

    With one over the variance as weights it is the best linear unbiased estimate (Hay et al. 2010, Theorem 3,
    whose layers all have the same variance and whose root is not known). Two passes: upwards each node is
    combined with what its children say together; downwards children share evenly what they are off.
    """
    layers, branching = layers_of(tree, sizes), sizes[0]
    combined = layers[-1:]
    for layer, share in zip(layers[-2::-1], _shares(weights, branching), strict=True):
        told = combined[-1].reshape(-1, branching).sum(axis=1)
        combined.append(share * layer + (1 - share) * told)
    found, parents = [], np.ones(1)
    for layer in reversed(combined):
        children = layer.reshape(-1, branching)
        off = (parents - children.sum(axis=1)) / branching
        parents = (children + off[:, None]).reshape(-1)
        found.append(parents)
    return np.concatenate(found)


def _shares(weights: Sequence[float], branching: int) -> list[float]:
    """Return how much a node's own number counts against its children's, from the second-lowest layer up."""
    shares, known = [], weights[-1]
    for weight in weights[-2::-1]:
        # The sum of children varies as much as all of them together.
        told = known / branching
        known = weight + told
        shares.append(weight / known if known > 0 else 0.0)
    return shares
