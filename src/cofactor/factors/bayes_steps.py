"""The two halves of the home model's EM: users given items, items given users.

User i rates item j with bias_j + x_j . u_i + noise, tastes u_i ~ N(0, S). Each half is a Bayesian linear
regression for every user or item, in which the other side enters by its mean and its uncertainty.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cofactor.data.grouping import Grouped, Values
from cofactor.factors.bayes_kernels import Matrices, Vector, invert, pack, sum_moments, unpack
from cofactor.factors.bayes_told import Told
from cofactor.factors.team import Team

_BLOCK = 256
"""Users or items whose full matrices are in memory at a time; all others are upper triangles in float32."""


@dataclass(frozen=True)
class Items:
    """What is believed about the items."""

    bias: Vector
    vectors: Matrices
    variance: Vector
    """How far off a typical user's predicted rating is because the item is not known better, squared."""


@dataclass(frozen=True)
class ItemPrior:
    """What is believed about the items before their ratings are seen: normal around these."""

    bias: Vector
    vectors: Matrices
    bias_precision: float
    vector_precision: Matrices
    """Inverse covariance of the vectors' deviations from their expectation, the same for all items."""


@dataclass(frozen=True)
class Tastes:
    """What is believed about the users."""

    means: Values
    moments: Values
    """Expected 1, u, and upper triangle of u u': see bayes_kernels."""


def user_step(
    by_user: Grouped,
    targets: Values,
    items: Items,
    covariance: Matrices,
    noise: float,
    team: Team,
    told: Told | None = None,
) -> tuple[Tastes, Matrices]:
    """Return the users' posterior tastes, and the expected u u' summed over users with ratings.

    A rating of an item counts by 1 / (noise + that item's variance). What others have `told` about a user
    counts beside her ratings.
    """
    width = items.vectors.shape[1] + 1
    moments = _item_moments(items, 1.0 / (noise + items.variance))
    residuals = targets - items.bias.astype(np.float32)[by_user.index]
    precision = np.linalg.inv(covariance)
    means = np.empty((len(by_user.ptr) - 1, width - 1), np.float32)
    packed = np.empty((len(means), moments.shape[1]), np.float32)

    def solve(users: slice) -> Matrices:
        part, of_part = _part(by_user, users)
        plain, by_target = sum_moments(part.ptr, part.index, residuals[of_part], moments, width)
        products, information = unpack(plain[:, width:], width - 1) + precision, by_target[:, 1:]
        if told is not None:
            told.add(users, products, information)
        invert(products)
        mean = np.einsum("ufg,ug->uf", products, information)
        products += mean[:, :, None] * mean[:, None, :]
        means[users] = mean
        packed[users] = np.column_stack([np.ones(len(mean)), mean, pack(products)])
        total: Matrices = products[part.sizes > 0].sum(axis=0)
        return total

    total = _summed_over_blocks(solve, len(means), team)
    return Tastes(means, packed), total


def item_step(
    by_item: Grouped,
    targets: Values,
    tastes: Tastes,
    covariance: Matrices,
    prior: ItemPrior,
    noise: float,
    team: Team,
) -> tuple[Items, Matrices]:
    """Return the items' posterior, and the expected d d' summed over items with ratings.

    Here d is how far an item's vector deviates from its prior expectation.
    """
    width = prior.vectors.shape[1] + 1
    precision = np.zeros((width, width))
    precision[0, 0], precision[1:, 1:] = prior.bias_precision, prior.vector_precision
    expected = np.column_stack([prior.bias, prior.vectors])
    found, variance = np.empty_like(expected), np.empty(len(expected))

    def solve(items: slice) -> Matrices:
        part, of_part = _part(by_item, items)
        plain, by_target = sum_moments(part.ptr, part.index, targets[of_part], tastes.moments, width)
        uncertain = unpack(plain / noise, width) + precision
        invert(uncertain)
        found[items] = np.einsum("ifg,ig->if", uncertain, by_target / noise + expected[items] @ precision)
        variance[items] = uncertain[:, 0, 0] + np.einsum("ifg,fg->i", uncertain[:, 1:, 1:], covariance)
        rated = part.sizes > 0
        deviations = (found[items] - expected[items])[rated, 1:]
        total: Matrices = uncertain[rated, 1:, 1:].sum(axis=0) + deviations.T @ deviations
        return total

    total = _summed_over_blocks(solve, len(expected), team)
    return Items(found[:, 0], found[:, 1:], variance), total


def _item_moments(items: Items, weights: Vector) -> Values:
    """Return each item's moments times its weight; its uncertainty is already in the weight."""
    rows, columns = np.triu_indices(items.vectors.shape[1])
    vectors = items.vectors.astype(np.float32)
    products = np.take(vectors, rows, axis=1)
    products *= np.take(vectors, columns, axis=1)
    moments = np.hstack([np.ones((len(vectors), 1), np.float32), vectors, products])
    moments *= weights.astype(np.float32)[:, None]
    return moments


def _part(grouped: Grouped, groups: slice) -> tuple[Grouped, slice]:
    """Return a range of groups, and where their ratings lie among all."""
    ratings = slice(int(grouped.ptr[groups.start]), int(grouped.ptr[groups.stop]))
    return grouped.window(groups.start, groups.stop), ratings


def _summed_over_blocks(solve: Callable[[slice], Matrices], count: int, team: Team) -> Matrices:
    """Solve block after block, the team's members in turn; the sum does not depend on the team's size."""
    blocks = [slice(start, min(start + _BLOCK, count)) for start in range(0, count, _BLOCK)]
    totals: dict[int, Matrices] = {}

    def share(member: int) -> None:
        for at in range(member, len(blocks), team.size):
            totals[at] = solve(blocks[at])

    team.together(share)
    total: Matrices = np.sum([totals[at] for at in range(len(blocks))], axis=0)
    return total
