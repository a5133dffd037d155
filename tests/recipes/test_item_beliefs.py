"""What the coordinator makes of sums, against the same inference written with whole covariance matrices."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.data.grouping import offsets
from cofactor.recipes.home_ridge import fitted, taste_root
from cofactor.recipes.item_beliefs import GENEROSITY, RATING_VARIANCE, Beliefs
from cofactor.recipes.item_factors import FACTOR_SPREAD, Told, told_of, with_factors_begun
from cofactor.recipes.item_updates import with_counts, with_items, with_spread, with_users

Reals = NDArray[np.float64]
ITEMS, FEATURES = 12, 3
WIDTH = FEATURES + 3
BIAS_SPREAD = 0.35
NOBODY = Told(np.zeros((0, 0)))


def some_features(seed: int = 0) -> Reals:
    numbers = np.random.default_rng(seed).normal(size=(ITEMS, FEATURES))
    return np.asarray(numbers - numbers.mean(axis=0))


def begun(users: float = 400.0) -> Beliefs:
    return replace(Beliefs.beginning(some_features(), 1), users=users)


def some_counts(seed: int = 1) -> Reals:
    return np.random.default_rng(seed).uniform(5, 60, ITEMS)


def once(noise: float = 0.5, *, seed: int = 2) -> Beliefs:
    """Return beliefs after one round."""
    counts, chance = some_counts(), np.random.default_rng(seed)
    sums = np.column_stack([counts, counts * chance.normal(size=ITEMS) * 0.4])
    return with_items(begun(), sums, np.full(2, noise), 1.0, NOBODY)


def conditioned(prior: Reals, design: Reals, noise: Reals, seen: Reals, mean: Any = 0.0) -> tuple[Any, Any]:
    """Return mean and covariance of x, a priori N(mean, prior), given that design x + noise is `seen`."""
    gain = prior @ design.T @ np.linalg.inv(design @ prior @ design.T + np.diag(noise))
    return mean + gain @ (seen - design @ np.broadcast_to(mean, len(prior))), prior - gain @ design @ prior


# Users.


@pytest.mark.parametrize(("users", "mean", "noise"), [(500.0, 0.9, 3.0), (40.0, -0.5, 10.0), (1e6, 1.2, 0.0)])
def test_the_mean_is_what_the_usual_one_and_a_noisy_sum_tell_together(
    users: float, mean: float, noise: float
) -> None:
    found = with_users(begun(1.0), np.array([users, users * mean / 2]), noise, most=2 * users)
    # Usually 0.6 above the middle, give or take 0.3; a sum over users whose means are 0.5 apart, and noise.
    spread = np.array([[4 * noise**2 / users**2 + 0.25 / users]])
    expected, left = conditioned(np.array([[0.09]]), np.eye(1), spread[0], np.array([mean]), 0.6)
    assert found.users == users
    assert found.mean == pytest.approx(expected[0])
    assert found.covariance[0, 0] == pytest.approx(GENEROSITY + left[0, 0])


def test_noise_without_end_leaves_the_usual_mean_and_no_fewer_users_than_can_be_told() -> None:
    found = with_users(begun(1.0), np.array([-1e6, 3e6]), 1e6, most=500)
    assert found.users == 1e6
    assert found.mean == pytest.approx(0.6, abs=0.15)
    assert with_users(begun(1.0), np.array([9e9, 0.0]), 1.0, most=500).users == 500
    assert with_users(begun(1.0), np.array([-9.0, 0.0]), 0.0, most=500).users == 1


# Biases.


def test_without_noise_counts_are_right_and_biases_are_what_residuals_say() -> None:
    counts, biases = 1e6 * some_counts(), np.random.default_rng(4).normal(size=ITEMS) * 0.5
    # One rating a user: then every rating counts for all that it is.
    sums = np.column_stack([0.8 * counts, counts * biases])
    found = with_items(begun(counts.sum()), sums, np.zeros(2), 0.8, NOBODY)
    np.testing.assert_allclose(found.counts, counts, rtol=1e-12)
    np.testing.assert_allclose(found.bias, biases, atol=1e-4)
    assert found.variance.max() < 1e-5
    # Told twice, they stay; what is told now is how far ratings are from what is expected.
    weights = found.importance
    again = np.column_stack([0.4 * counts * weights, np.zeros(ITEMS)])
    later = with_items(found, again, np.zeros(2), 0.4, NOBODY)
    np.testing.assert_allclose(later.counts, counts, rtol=1e-6)
    np.testing.assert_allclose(later.bias, biases, atol=1e-4)


def test_first_biases_are_those_of_one_large_normal_law() -> None:
    # Biases are a regression on public columns and popularity, and something of their own.
    chance, counts = np.random.default_rng(5), some_counts()
    told, noise, users = counts * chance.normal(size=ITEMS) * 0.4, 3.0, 200.0
    sums = np.column_stack([counts, told])
    found = with_items(begun(users), sums, np.array([1e-7, noise]), 1.0, NOBODY)
    popularity = found.popularity
    known = np.column_stack([np.ones(ITEMS), some_features(), popularity, popularity**2 - 1])
    slopes = np.diag([0.05, *[0.1] * FEATURES, 0.1, 0.02])
    prior = known @ slopes @ known.T + BIAS_SPREAD**2 * np.eye(ITEMS)
    variance = noise**2 + RATING_VARIANCE * counts / (counts.sum() / users)
    mean, covariance = conditioned(prior, np.diag(counts), variance, told)
    np.testing.assert_allclose(found.bias, mean, atol=1e-6)
    np.testing.assert_allclose(found.variance, np.diag(covariance), rtol=1e-5)


def test_later_biases_are_those_of_one_item_at_a_time() -> None:
    chance, before, users = np.random.default_rng(6), once(1e-7), 200.0
    before = replace(before, users=users, variance=chance.uniform(0.01, 0.1, ITEMS))
    seen = before.counts * before.importance
    told, noise = seen * chance.normal(size=ITEMS) * 0.3, 2.0
    found = with_items(before, np.column_stack([seen, told]), np.array([1e-7, noise]), 1.0, NOBODY)
    usual = found.counts.sum() / users
    for item in range(ITEMS):
        variance = noise**2 + RATING_VARIANCE * seen[item] / usual
        mean, left = conditioned(
            before.variance[item, None, None], seen[item, None, None], np.array([variance]), told[item, None]
        )
        assert found.bias[item] == pytest.approx(before.bias[item] + mean[0], abs=1e-6)
        assert found.variance[item] == pytest.approx(left[0, 0], rel=1e-5)


def test_counts_of_two_rounds_are_weighed_by_how_noisy_they_are() -> None:
    before = replace(once(), counts=some_counts(), count_variance=np.full(ITEMS, 4.0))
    weights, noise = before.importance, 0.5
    new = some_counts() * weights
    found = with_items(before, np.column_stack([new, 0 * new]), np.array([noise, 1.0]), 1.0, NOBODY)
    for item in range(ITEMS):
        mean, left = conditioned(
            np.array([[4.0]]),
            np.eye(1),
            np.array([(noise / weights[item]) ** 2]),
            np.array([new[item] / weights[item]]),
            before.counts[item],
        )
        assert found.counts[item] == pytest.approx(mean[0], rel=1e-9)
        assert found.count_variance[item] == pytest.approx(left[0, 0], rel=1e-6)


def test_noise_without_end_leaves_everything_as_it_was_thought() -> None:
    chance, noise = np.random.default_rng(7), np.full(2, 1e8)
    sums = chance.normal(size=(ITEMS, 2)) * 1e8
    first = with_items(begun(), sums, noise, 1.0, NOBODY)
    # Nothing is known but that something is noise: popularity is believed in no more than that.
    assert np.abs(first.bias).max() < 0.5 * BIAS_SPREAD
    assert first.variance.min() > 0.5 * BIAS_SPREAD**2
    before = once()
    later = with_items(before, sums, noise, 1.0, NOBODY)
    np.testing.assert_allclose(later.bias, before.bias, atol=1e-3)
    np.testing.assert_allclose(later.variance, before.variance, rtol=1e-3)
    np.testing.assert_allclose(later.counts, before.counts, rtol=1e-3)


numbers = st.floats(-1e6, 1e6)


@settings(max_examples=40)
@example(
    [(0.25, 455303.0, 2.0), (893443.0, 0.0, 0.0), (655566.0, 0.0, 0.0), *[(0.0, 0.0, 0.0)] * (ITEMS - 3)],
    0.0,
    0.5,
    1.0,
)
@given(
    st.lists(st.tuples(numbers, numbers, numbers), min_size=ITEMS, max_size=ITEMS),
    st.sampled_from([0.0, 1e-9, 1.0, 1e6]),
    st.floats(0.05, 3.0),
    st.floats(1.0, 1e6),
)
def test_whatever_sums_are_beliefs_are_finite_and_variances_positive(
    sums: list[Any], noise: float, weight: float, users: float
) -> None:
    found = begun(users)
    for _ in range(2):
        found = with_items(found, np.array(sums)[:, :2], np.full(2, noise), weight, NOBODY)
    found = with_factors_begun(found, 1, np.random.default_rng(0))
    for _ in range(2):
        told = told_of(found, 1)
        found = with_items(found, np.array(sums), np.full(3, max(noise, 1e-9)), weight, told)
    for name, array in found.arrays().items():
        assert np.isfinite(array).all(), name
    for variance in (found.variance, found.count_variance, found.factor_variance, found.uncertainty):
        assert (variance >= 0).all()
    assert (found.variance > 0).all()
    assert np.isfinite(found.columns).all()
    assert (found.importance > 0).all()
    assert 0 <= found.certainty <= 1 + 1e-12
    assert found.shares.sum() == pytest.approx(1)


def test_what_an_item_has_too_few_ratings_for_follows_from_its_public_columns() -> None:
    chance, features = np.random.default_rng(8), np.random.default_rng(9).normal(size=(400, 2))
    features -= features.mean(axis=0)
    truth = features @ [0.3, -0.2] + 0.1 * chance.normal(size=400)
    counts = np.where(np.arange(400) < 200, 0.0, 50.0)
    sums = np.column_stack([counts, counts * truth]) + chance.normal(size=(400, 2))
    begin = Beliefs.beginning(features, 400)
    found = with_items(begin, sums, np.ones(2), 1.0, NOBODY)
    unseen = slice(0, 200)
    assert np.corrcoef(found.bias[unseen], truth[unseen])[0, 1] > 0.9
    assert found.variance[unseen].min() > 10 * found.variance[300:].max() / 4


# Importance and columns.


def test_items_rated_often_count_less_and_all_count_the_same_before_anything_is_known() -> None:
    assert begun().importance.tolist() == [1.0] * ITEMS
    found = replace(once(), counts=np.linspace(1, 100, ITEMS), count_variance=np.full(ITEMS, 4.0))
    importance = found.importance
    assert (np.diff(importance) <= 0).all()
    assert importance[-1] == pytest.approx(100**-0.35)
    assert importance[0] == pytest.approx(2**-0.35), "what noise hides is no reason to count more"


def test_columns_are_public_before_anything_is_known() -> None:
    columns = begun().columns
    np.testing.assert_array_equal(columns[:, 0], 1.0)
    np.testing.assert_array_equal(columns[:, 1 : 1 + FEATURES], some_features())
    assert not columns[:, -2:].any()
    later = once(0.01)
    # Centred over ratings, so that a user's constant is a user's mean.
    np.testing.assert_allclose(later.shares @ later.columns[:, -2:], 0, atol=1e-9)
    assert later.shares @ later.columns[:, -2] ** 2 == pytest.approx(later.certainty)


def test_without_noise_items_that_nobody_rated_are_unpopular_and_not_absurdly_so() -> None:
    counts = np.geomspace(0.2, 400, ITEMS)
    counts[0] = 0.0
    found = with_items(begun(), np.column_stack([counts, 0 * counts]), np.zeros(2), 1.0, NOBODY)
    # Slopes on popularity have a deviation of 0.14: what is rated hardly ever must stay on the scale.
    assert -10 < found.popularity[0] < found.popularity[1:].min()


@pytest.mark.parametrize("noise", [0.0, 1.0, 100.0])
def test_where_one_item_has_all_of_the_ratings_popularity_stays_within_ten_units(noise: float) -> None:
    counts = np.zeros(ITEMS)
    counts[3] = 1e4
    found = with_items(begun(), np.column_stack([counts, 0 * counts]), np.full(2, noise), 1.0, NOBODY)
    assert found.shares[3] == 1
    assert np.abs(found.popularity).max() <= 10
    assert found.popularity.argmax() == 3
    assert np.isfinite(found.bias).all()


def test_counts_alone_are_taken_in_where_nothing_else_is_told() -> None:
    counts = some_counts()
    found = with_counts(begun(), counts, 2.0)
    np.testing.assert_array_equal(found.counts, counts)
    np.testing.assert_allclose(found.count_variance, 4.0)
    assert not found.bias.any()
    assert found.seen == 1


def test_beliefs_can_be_kept_and_taken_up_again() -> None:
    found = once()
    again = Beliefs.from_arrays(found.arrays())
    assert again.seen == 1
    assert isinstance(again.users, float)
    for name, array in found.arrays().items():
        np.testing.assert_array_equal(array, again.arrays()[name])


# Factors.


def with_some_factors(factors: int = 2, noise: float = 0.5) -> Beliefs:
    half = np.random.default_rng(11).normal(size=(WIDTH, WIDTH)) * 0.2
    known = replace(once(noise), covariance=half @ half.T + 0.02 * np.eye(WIDTH))
    return with_factors_begun(known, factors, np.random.default_rng(12))


def test_factors_begin_where_ratings_differ_most_between_users() -> None:
    beliefs = with_some_factors(2)
    known, shares = beliefs.columns[:, 1:WIDTH], beliefs.shares
    np.testing.assert_allclose(shares @ beliefs.factors, 0, atol=1e-12)
    np.testing.assert_allclose(np.sqrt(shares @ beliefs.factors**2), FACTOR_SPREAD)
    # No other direction of tastes, as likely, moves predictions more than the first one.
    covariance = beliefs.covariance[1:WIDTH, 1:WIDTH]
    moved = known - shares @ known
    moments = (moved * shares[:, None]).T @ moved
    slope = np.linalg.lstsq(moved, beliefs.factors[:, 0], rcond=None)[0]
    slope /= np.sqrt(slope @ np.linalg.solve(covariance, slope))
    chance = np.random.default_rng(13).normal(size=(WIDTH - 1, 200))
    others = np.linalg.cholesky(covariance) @ (chance / np.linalg.norm(chance, axis=0))
    sizes = np.einsum("ij,ik,kj->j", others, moments, others)
    assert sizes.max() <= slope @ moments @ slope * (1 + 1e-9)
    # Tastes for them have unit variance, whatever else a user likes.
    np.testing.assert_array_equal(beliefs.covariance[WIDTH:, WIDTH:], np.eye(2))
    assert not beliefs.covariance[WIDTH:, :WIDTH].any()


def test_there_may_be_more_factors_than_columns() -> None:
    beliefs = with_some_factors(WIDTH + 3)
    assert beliefs.factors.shape == (ITEMS, WIDTH + 3)
    assert np.linalg.matrix_rank(beliefs.factors) == min(ITEMS - 1, WIDTH + 3)


def test_tastes_are_told_so_that_those_of_all_users_vary_alike() -> None:
    beliefs = with_some_factors(2)
    told = told_of(beliefs, 2)
    # Users whose ratings are of all items in proportion to shares: what they tell of their tastes.
    weights = beliefs.shares * beliefs.usual**2 / RATING_VARIANCE
    columns = beliefs.columns
    _, left = conditioned(beliefs.covariance, columns, 1 / weights, np.zeros(ITEMS))
    known = (beliefs.covariance - left)[-2:, -2:]
    np.testing.assert_allclose(told.whitening.T @ known @ told.whitening, np.eye(2), atol=1e-8)
    assert told_of(beliefs, 0).factors == 0


def test_without_noise_items_move_to_where_residuals_vanish() -> None:
    beliefs = with_some_factors(2, noise=1e-9)
    beliefs = replace(beliefs, counts=1e8 * beliefs.counts, users=1e8 * beliefs.users)
    told, truth = told_of(beliefs, 2), 0.1 * np.random.default_rng(14).normal(size=(ITEMS, 2))
    truth -= beliefs.shares @ truth
    seen = np.maximum(beliefs.counts, 0) * beliefs.importance
    missing = (truth - beliefs.factors) @ np.linalg.inv(told.whitening).T
    sums = np.column_stack([seen, 0 * seen, told.weight * seen[:, None] * missing])
    found = with_items(beliefs, sums, np.full(4, 1e-9), 1.0, told)
    np.testing.assert_allclose(found.factors, truth, atol=1e-4)
    assert found.factor_variance.max() < 1e-4


def test_factors_that_noise_would_drown_come_to_nothing() -> None:
    beliefs = with_some_factors(2)
    told, noise = told_of(beliefs, 2), np.array([0.5, 1.0, 1e7, 1e7])
    seen = beliefs.counts * beliefs.importance
    sums = np.column_stack([seen, 0 * seen, np.random.default_rng(15).normal(size=(ITEMS, 2)) * 1e7])
    found = with_items(beliefs, sums, noise, 1.0, told)
    inward = found.factors @ np.linalg.inv(told.whitening).T
    assert np.abs(inward).max() < 1e-3 * FACTOR_SPREAD
    np.testing.assert_allclose(found.factor_variance, 2 * FACTOR_SPREAD**2, rtol=1e-3)


def test_factors_are_shrunk_as_far_as_they_are_uncertain() -> None:
    beliefs, noise = with_some_factors(1, noise=1e-9), 2.0
    told = told_of(beliefs, 1)
    seen = np.maximum(beliefs.counts, 0) * beliefs.importance
    sums = np.column_stack([seen, 0 * seen, np.random.default_rng(16).normal(size=ITEMS)])
    found = with_items(beliefs, sums, np.array([1e-9, 1.0, noise]), 1.0, told)
    old = beliefs.factors @ np.linalg.inv(told.whitening).T
    own = 1.5 * seen
    doubt = (noise / own) ** 2 + RATING_VARIANCE / beliefs.usual / seen
    expected = FACTOR_SPREAD**2 / (FACTOR_SPREAD**2 + doubt) * (old[:, 0] + sums[:, 2] / own)
    expected = expected * told.whitening[0, 0]
    np.testing.assert_allclose(found.factors[:, 0], expected - found.shares @ expected, atol=1e-6)


@pytest.mark.parametrize("factors", [1, 4])
def test_factors_that_differ_nowhere_move_nothing_even_without_noise(factors: int) -> None:
    nothing = Beliefs.beginning(np.zeros((ITEMS, FEATURES)), 100)
    found = with_factors_begun(nothing, factors, np.random.default_rng(0))
    found = replace(found, factors=np.zeros((ITEMS, factors)))
    sums = np.column_stack([np.full(ITEMS, 5.0), np.zeros((ITEMS, 1 + factors))])
    found = with_items(found, sums, np.zeros(2 + factors), 1.0, told_of(found, factors))
    assert np.isfinite(found.factors).all()


# How tastes spread.


def spread_sums(covariance: Reals, users: int, *, believed: Reals, seed: int) -> Reals:
    """Return the sum of what users tell whose tastes have this covariance."""
    chance, root = np.random.default_rng(seed), taste_root(believed)
    items, each = chance.normal(size=(200, WIDTH)), 60
    index = np.concatenate([chance.permutation(200)[:each] for _ in range(users)]).astype(np.int32)
    tastes = chance.multivariate_normal(np.zeros(WIDTH), covariance, users)
    targets = np.einsum("ij,ij->i", items[index], np.repeat(tastes, each, axis=0))
    targets += chance.normal(size=len(targets))
    ptr = offsets(np.full(users, each))
    fit = fitted(ptr, index, targets, items @ root, np.ones(200), spreads=True)
    return np.asarray(fit.spreads.sum(axis=0))


def test_steps_of_em_come_to_the_covariance_that_tastes_have() -> None:
    half = np.random.default_rng(14).normal(size=(WIDTH, WIDTH)) * 0.3
    truth, users = half @ half.T + 0.05 * np.eye(WIDTH), 2000
    beliefs = replace(begun(float(users)), covariance=np.eye(WIDTH) * 0.5)
    errors = []
    for _ in range(4):
        errors.append(np.linalg.norm(beliefs.covariance - truth))
        beliefs = with_spread(beliefs, spread_sums(truth, users, believed=beliefs.covariance, seed=15))
    assert errors[1] < 0.2 * errors[0]
    # What is left is that of a sample of so many users.
    assert np.linalg.norm(beliefs.covariance - truth) < 0.12 * np.linalg.norm(truth)


def test_tastes_that_spread_as_was_thought_change_nothing() -> None:
    beliefs = replace(begun(), covariance=np.diag(np.linspace(0.02, 0.5, WIDTH)))
    found = with_spread(beliefs, np.zeros(WIDTH * (WIDTH + 1) // 2))
    np.testing.assert_allclose(found.covariance, beliefs.covariance, atol=1e-12)


@given(st.lists(st.floats(-1e9, 1e9), min_size=WIDTH * (WIDTH + 1) // 2, max_size=WIDTH * (WIDTH + 1) // 2))
def test_whatever_is_told_of_spreads_a_covariance_comes_out(sums: list[float]) -> None:
    found = with_spread(begun(10.0), np.array(sums)).covariance
    np.testing.assert_array_equal(found, found.T)
    # It need not be positive to the last digit; the root that everybody takes of it is.
    sizes = np.linalg.eigvalsh(found)
    assert sizes.min() > -1e-9 * sizes.max()
    assert np.isfinite(taste_root(found)).all()


def test_new_units_of_factors_change_no_prediction() -> None:
    beliefs = with_some_factors(2)
    width = WIDTH + 2
    spread = np.random.default_rng(17).normal(size=width * (width + 1) // 2) * 50
    plain = with_spread(replace(beliefs, factors=np.zeros((ITEMS, 0))), spread).covariance
    found = with_spread(beliefs, spread)
    np.testing.assert_allclose(found.covariance[-2:, -2:], np.eye(2), atol=1e-9)
    before = beliefs.columns @ plain @ beliefs.columns.T
    np.testing.assert_allclose(found.columns @ found.covariance @ found.columns.T, before, atol=1e-9)
