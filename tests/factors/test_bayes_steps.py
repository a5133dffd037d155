import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings, Scale
from cofactor.factors.bayes_kernels import invert, pack, sum_moments, unpack
from cofactor.factors.bayes_steps import ItemPrior, Items, Tastes, item_step, user_step
from cofactor.factors.team import Team


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    """More users and items than are solved for at a time; the last of each have no ratings."""
    random = np.random.default_rng(1)
    users, items = np.nonzero(random.random((299, 279)) < 0.05)
    return Ratings.from_rows(
        users, items, random.uniform(1, 5, len(users)), user_ids=np.arange(300), item_ids=np.arange(280),
        scale=Scale(1, 5),
    )  # fmt: skip


def positive_definite(random: np.random.Generator, count: int, size: int) -> NDArray[np.float64]:
    roots = random.normal(size=(count, size, size + 2))
    products: NDArray[np.float64] = roots @ roots.transpose(0, 2, 1)
    return products


def test_triangles_are_packed_row_by_row_and_unpacked_again() -> None:
    matrices = positive_definite(np.random.default_rng(0), 3, 4)
    packed = pack(matrices)
    np.testing.assert_array_equal(packed[:, :4], matrices[:, 0])
    np.testing.assert_array_equal(unpack(packed, 4), matrices)


def test_inverses_equal_those_of_numpy() -> None:
    matrices = positive_definite(np.random.default_rng(1), 20, 7)
    expected = np.linalg.inv(matrices)
    invert(matrices)
    np.testing.assert_allclose(matrices, expected, rtol=1e-8, atol=1e-10)


def test_moments_are_summed_over_each_groups_ratings() -> None:
    random = np.random.default_rng(2)
    table = random.normal(size=(8, 10)).astype(np.float32)
    ptr = np.array([0, 0, 1, 7, 18, 20])
    index, targets = random.integers(0, 8, 20).astype(np.int32), random.normal(size=20).astype(np.float32)
    plain, by_target = sum_moments(ptr, index, targets, table, 4)
    for group in range(5):
        part = slice(ptr[group], ptr[group + 1])
        rows = table[index[part]].astype(np.float64)
        np.testing.assert_allclose(plain[group], rows.sum(axis=0), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(by_target[group], targets[part] @ rows[:, :4], rtol=1e-5, atol=1e-6)


def some_beliefs(ratings: Ratings) -> tuple[Items, NDArray[np.float64]]:
    random = np.random.default_rng(3)
    count = ratings.item_count
    items = Items(random.normal(0, 0.2, count), random.normal(size=(count, 3)), random.uniform(0.1, 1, count))
    return items, positive_definite(random, 1, 3)[0]


def test_user_step_is_each_users_bayesian_regression(ratings: Ratings) -> None:
    items, covariance = some_beliefs(ratings)
    by_user = ratings.by_user
    with Team(2) as team:
        tastes, total = user_step(by_user, by_user.values, items, covariance, 0.7, team)
    expected_total = np.zeros((3, 3))
    for user in range(ratings.user_count):
        part = slice(by_user.ptr[user], by_user.ptr[user + 1])
        x = items.vectors[by_user.index[part]]
        weighted = x / (0.7 + items.variance[by_user.index[part], None])
        posterior = np.linalg.inv(weighted.T @ x + np.linalg.inv(covariance))
        mean = posterior @ weighted.T @ (by_user.values[part] - items.bias[by_user.index[part]])
        if part.stop > part.start:
            expected_total += posterior + np.outer(mean, mean)
        np.testing.assert_allclose(tastes.means[user], mean, rtol=1e-4, atol=1e-5)
        products = pack((posterior + np.outer(mean, mean))[None])[0]
        moments = np.concatenate([[1.0], mean, products])
        np.testing.assert_allclose(tastes.moments[user], moments, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(total, expected_total, rtol=1e-4)


def test_item_step_is_each_items_bayesian_regression(ratings: Ratings) -> None:
    items, covariance = some_beliefs(ratings)
    random = np.random.default_rng(4)
    by_item, users = ratings.by_item, ratings.user_count
    means, spread = random.normal(size=(users, 3)), positive_definite(random, users, 3) / 10
    second = spread + means[:, :, None] * means[:, None, :]
    moments = np.column_stack([np.ones(users), means, pack(second)]).astype(np.float32)
    prior = ItemPrior(items.bias, items.vectors, 4.0, positive_definite(random, 1, 3)[0])
    with Team(1) as team:
        found, total = item_step(
            by_item, by_item.values, Tastes(means.astype(np.float32), moments), covariance, prior, 0.7, team
        )
    expected_total = np.zeros((3, 3))
    for item in range(ratings.item_count):
        part = slice(by_item.ptr[item], by_item.ptr[item + 1])
        raters, values = by_item.index[part], by_item.values[part].astype(np.float64)
        precision = np.zeros((4, 4))
        precision[0, 0], precision[1:, 1:] = 4.0, prior.vector_precision
        right = precision @ np.concatenate([[items.bias[item]], items.vectors[item]])
        right += np.concatenate([[values.sum()], values @ means[raters]]) / 0.7
        precision[0, 0] += len(raters) / 0.7
        precision[0, 1:] += means[raters].sum(axis=0) / 0.7
        precision[1:, 0] += means[raters].sum(axis=0) / 0.7
        precision[1:, 1:] += second[raters].sum(axis=0) / 0.7
        posterior = np.linalg.inv(precision)
        solution = posterior @ right
        assert found.bias[item] == pytest.approx(solution[0], rel=1e-4, abs=1e-5)
        np.testing.assert_allclose(found.vectors[item], solution[1:], rtol=1e-4, atol=1e-5)
        variance = posterior[0, 0] + np.trace(posterior[1:, 1:] @ covariance)
        assert found.variance[item] == pytest.approx(variance, rel=1e-4)
        moved = solution[1:] - items.vectors[item]
        if len(raters):
            expected_total += posterior[1:, 1:] + np.outer(moved, moved)
    np.testing.assert_allclose(total, expected_total, rtol=1e-4)
