import numpy as np
import pytest

from cofactor.cluster.baselines import exact_table, memberships, vertical
from cofactor.cluster.kmeans import clustered, loss
from cofactor.cluster.method import NOWHERE


def four_groups(users: int = 400) -> np.ndarray:
    """Users about four places that only two columns together tell apart."""
    chance = np.random.default_rng(5)
    places = np.array([[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]])
    return places[np.arange(users) % 4] + 0.05 * chance.standard_normal((users, 2))


def test_a_table_counts_users_in_every_combination() -> None:
    cells = [np.array([0, 0, 1, 1, 1]), np.array([0, 2, 2, 2, 0])]
    assert exact_table(cells, 3).tolist() == [[1, 0, 1], [1, 0, 2], [0, 0, 0]]


def test_whoever_is_nowhere_at_a_party_is_not_counted() -> None:
    cells = [np.array([0, NOWHERE, 1]), np.array([1, 1, NOWHERE]), np.array([0, 0, 0])]
    table = exact_table(cells, 2)
    assert table.shape == (2, 2, 2)
    assert (table.sum(), table[0, 1, 0]) == (1, 1)


def test_memberships_are_the_closest_centres() -> None:
    parts = [np.array([[0.0], [1.0]]), np.array([[0.9], [0.8]])]
    found = memberships(parts, [np.array([[0.1], [0.9]]), np.array([[1.0], [0.0]])])
    assert [own.tolist() for own in found] == [[0, 1], [0, 0]]


def test_parties_together_find_what_none_sees_alone() -> None:
    points = four_groups()
    found = vertical([points[:, :1], points[:, 1:]], clusters=4, local_clusters=2, seed=1)
    central = loss(points, clustered(points, None, 4, seed=1))
    # Every local centre is exact here, but for users whom the other column has nothing to do with.
    assert loss(points, found) == pytest.approx(central, rel=1e-2)
    one_sided = np.column_stack([points[:, 0], np.zeros(len(points))])
    assert loss(points, clustered(one_sided, None, 4, seed=1)) > 10 * central
