"""The descent of HDPMF's experiments: its arithmetic, its noise, and what weights do to it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError, DataError
from cofactor.recipes.hdpmf_fit import Descent, PerRating, initial
from cofactor.recipes.hdpmf_kernels import pass_over
from tests.recipes.parties import small_ratings

Reals = NDArray[np.float64]
QUICK = PerRating(method="hdpmf", factors=3, epochs=4)


def weights_of(ratings: Ratings, seed: int = 0) -> tuple[Reals, Reals]:
    chance = np.random.default_rng(seed)
    return chance.uniform(0.1, 1.0, ratings.user_count), chance.uniform(0.1, 1.0, ratings.item_count)


def ones_of(ratings: Ratings) -> tuple[Reals, Reals]:
    return np.ones(ratings.user_count), np.ones(ratings.item_count)


def plain_pass(
    order: Any, owners: Any, index: Any, targets: Any, users: Reals, items: Reals, spreads: Reals,
    draws: Any, rate: float, penalty: float,
) -> None:  # fmt: skip
    """Do what the kernel does, equation (4) rating by rating."""
    for position in order:
        i, j = owners[position], index[position]
        u, v = users[i].copy(), items[j].copy()
        x = spreads[j] * draws[position] if len(draws) else 0.0
        users[i] = u - rate * (2 * (u @ v - targets[position]) * v + 2 * penalty * u)
        items[j] = v - rate * (2 * (u @ v - targets[position]) * u + x + 2 * penalty * v)
        users[i] /= max(1.0, np.linalg.norm(users[i]))


@pytest.mark.parametrize("noisy", [True, False])
def test_the_kernel_is_equation_4_rating_by_rating(noisy: bool) -> None:
    chance, count = np.random.default_rng(3), 200
    owners, index = chance.integers(0, 6, count, np.int32), chance.integers(0, 9, count, np.int32)
    targets, order = chance.uniform(0.1, 5.0, count), chance.permutation(count)
    spreads = chance.uniform(0.1, 2.0, (9, 4))
    draws = chance.standard_normal((count if noisy else 0, 4), np.float32)
    users, items = chance.normal(0, 0.5, (6, 4)), chance.normal(0, 0.5, (9, 4))
    plain_users, plain_items = users.copy(), items.copy()
    pass_over(order, owners, index, targets, users, items, spreads, draws, 0.05, 0.01)
    plain_pass(order, owners, index, targets, plain_users, plain_items, spreads, draws, 0.05, 0.01)
    np.testing.assert_allclose(users, plain_users, rtol=1e-9)
    np.testing.assert_allclose(items, plain_items, rtol=1e-9)
    assert np.linalg.norm(users, axis=1).max() == pytest.approx(1.0), "some user reaches length 1"


@pytest.mark.parametrize("method", ["hdpmf", "pdpmf", "dpmf", "mf"])
def test_no_user_vector_is_longer_than_1_before_it_is_divided_by_a_weight(method: Any) -> None:
    ratings = small_ratings()
    descent = Descent(replace(QUICK, method=method, rate=0.05), ratings, *weights_of(ratings), seed=1)
    for epoch in range(3):
        descent.run(epoch)
        assert np.linalg.norm(descent.users, axis=1).max() <= 1 + 1e-12


def test_steps_are_a_fifth_after_a_quarter_and_a_fifth_of_that_after_three() -> None:
    rates = [PerRating(method="mf", rate=0.05, epochs=100).rate_in(epoch) for epoch in range(100)]
    assert rates == pytest.approx([0.05] * 25 + [0.01] * 50 + [0.002] * 25)


def one_item(raters: int) -> Ratings:
    everyone = np.arange(raters)
    return Ratings.from_rows(
        everyone,
        np.zeros(raters, np.int64),
        np.full(raters, 3.0, np.float32),
        user_ids=everyone,
        item_ids=np.arange(1),
        scale=Scale(1, 5),
    )


def noise_of_item(settings: PerRating, ratings: Ratings, users: Reals, epochs: range) -> Reals:
    """Return what all raters together add to the item's gradient by way of noise, epoch by epoch."""
    descent = Descent(settings, ratings, users, np.ones(1), seed=5)
    found = []
    for epoch in epochs:
        spreads, draws = descent._noise(epoch)
        found.append(spreads[0] * draws.sum(axis=0, dtype=np.float64))
    return np.array(found)


@pytest.mark.parametrize("raters", [1, 2, 37])
def test_the_shares_of_all_raters_add_up_to_laplace_noise_of_theorem_2(raters: int) -> None:
    settings = PerRating(method="hdpmf", factors=8, epsilon=0.5)
    found = noise_of_item(settings, one_item(raters), np.ones(raters), range(1000)).ravel()
    scale = 2 * np.sqrt(8) * 4 / 0.5
    # The seed is fixed: a false alarm would be one of 10^6 seeds.
    assert stats.kstest(found, stats.laplace(scale=scale).cdf).pvalue > 1e-6
    # As the paper prints it, h stands outside of the root: that is another law.
    chance = np.random.default_rng(0)
    printed = scale * np.sqrt(2) * chance.standard_exponential(8000) * chance.standard_normal(8000)
    assert stats.kstest(printed, stats.laplace(scale=scale).cdf).pvalue < 1e-6


def test_noise_is_for_the_largest_the_mean_or_the_strictest_budget() -> None:
    ratings, users = one_item(4), np.array([0.1, 0.2, 0.4, 0.9])
    spread = {}
    for method in ("hdpmf", "pdpmf", "dpmf"):
        settings = PerRating(method=method, factors=1, epsilon=2.0)
        spread[method] = Descent(settings, ratings, users, np.ones(1), seed=0)._scale
    assert spread["hdpmf"] == pytest.approx(2 * 4 / 2.0)
    assert spread["pdpmf"] == pytest.approx(2 * 4 / (2.0 * 0.4))
    assert spread["dpmf"] == pytest.approx(2 * 4 / (2.0 * 0.1))


def test_fixed_noise_is_the_same_in_all_epochs_and_fresh_noise_in_none() -> None:
    users = np.ones(5)
    fixed = noise_of_item(replace(QUICK, noise="fixed"), one_item(5), users, range(3))
    np.testing.assert_array_equal(fixed[0], fixed[1])
    np.testing.assert_array_equal(fixed[0], fixed[2])
    fresh = noise_of_item(QUICK, one_item(5), users, range(3))
    assert len(np.unique(fresh)) == fresh.size


def test_who_takes_part_in_pdpmf_follows_equation_5() -> None:
    raters = 40_000
    users = np.where(np.arange(raters) % 2, 0.2, 0.8)
    descent = Descent(PerRating(method="pdpmf", factors=1), one_item(raters), users, np.ones(1), seed=2)
    strict = np.isin(np.arange(1, raters, 2), descent._owners).mean()
    assert np.isin(np.arange(0, raters, 2), descent._owners).all(), (
        "a budget above the mean always takes part"
    )
    chance = np.expm1(0.2) / np.expm1(0.5)
    assert abs(strict - chance) < 5 * np.sqrt(chance * (1 - chance) / (raters / 2))


def vectors(settings: PerRating, ratings: Ratings, weights: tuple[Reals, Reals], seed: int = 1) -> Reals:
    model = settings.fit(ratings, *weights, seed=seed)
    return np.concatenate([model.user_vectors, model.item_vectors])


def test_weights_of_1_make_all_three_the_same() -> None:
    ratings = small_ratings()
    found = {
        method: vectors(replace(QUICK, method=method), ratings, ones_of(ratings))
        for method in ("hdpmf", "pdpmf", "dpmf")
    }
    np.testing.assert_array_equal(found["hdpmf"], found["dpmf"])
    np.testing.assert_array_equal(found["hdpmf"], found["pdpmf"])
    assert not np.array_equal(found["hdpmf"], vectors(replace(QUICK, method="mf"), ratings, ones_of(ratings)))


def test_without_noise_all_but_hdpmf_are_plain_factorization() -> None:
    ratings = small_ratings()
    weights = weights_of(ratings)
    plain = vectors(replace(QUICK, method="mf"), ratings, weights)
    silent = replace(QUICK, method="dpmf", noise="none")
    np.testing.assert_array_equal(vectors(silent, ratings, weights), plain)


def test_predictions_are_divided_by_both_weights_unless_that_is_left_out() -> None:
    ratings = small_ratings()
    users, items = weights_of(ratings)
    whole = QUICK.fit(ratings, users, items, seed=1)
    stretched = replace(QUICK, rescaled=False).fit(ratings, users, items, seed=1)
    np.testing.assert_allclose(whole.user_vectors * users[:, None], stretched.user_vectors, rtol=1e-6)
    np.testing.assert_allclose(whole.item_vectors * items[:, None], stretched.item_vectors, rtol=1e-6)
    dots = np.einsum("rk,rk->r", stretched.user_vectors[ratings.users], stretched.item_vectors[ratings.items])
    divided = dots / (users[ratings.users] * items[ratings.items])
    assert divided.min() < 1
    found = whole.predict_rows(ratings.users, ratings.items)
    np.testing.assert_allclose(found, np.clip(divided, 1, 5), rtol=1e-4)


def test_a_seed_repeats_everything_and_another_one_nothing() -> None:
    ratings = small_ratings()
    weights = weights_of(ratings)
    first = vectors(QUICK, ratings, weights)
    np.testing.assert_array_equal(first, vectors(QUICK, ratings, weights))
    assert not np.isclose(first, vectors(QUICK, ratings, weights, seed=2)).any()


def test_without_noise_it_learns() -> None:
    ratings = small_ratings()
    model = PerRating(method="mf", rate=0.05, epochs=30).fit(ratings, *ones_of(ratings), seed=0)
    missed = model.predict_rows(ratings.users, ratings.items) - ratings.values
    assert np.mean(missed**2) < 0.8 * np.var(ratings.values)


def test_users_and_items_without_ratings_stay_where_they_begin() -> None:
    ratings = Ratings.from_rows(
        np.array([0]), np.array([0]), np.array([4.0], np.float32),
        user_ids=np.arange(2), item_ids=np.arange(2), scale=Scale(1, 5),
    )  # fmt: skip
    model = replace(QUICK, rescaled=False).fit(ratings, np.ones(2), np.ones(2), seed=7)
    np.testing.assert_allclose(model.item_vectors[1], initial("items", (2, 3), 7)[1], rtol=1e-6)
    assert not np.allclose(model.item_vectors[0], initial("items", (2, 3), 7)[0])


def too_few(ratings: Ratings) -> None:
    QUICK.fit(ratings, np.ones(3), np.ones(ratings.item_count), seed=0)


def zero_weight(ratings: Ratings) -> None:
    users, items = ones_of(ratings)
    items[0] = 0.0
    QUICK.fit(ratings, users, items, seed=0)


def implicit(ratings: Ratings) -> None:
    QUICK.fit(ratings.without_values(), *ones_of(ratings), seed=0)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (too_few, "150 weights are needed, one for each user, above 0 and at most 1"),
        (zero_weight, "80 weights are needed, one for each item, above 0 and at most 1"),
        (implicit, "have no values"),
    ],
)
def test_data_that_do_not_fit_are_refused(mistake: Callable[[Ratings], None], message: str) -> None:
    with pytest.raises(DataError, match=message):
        mistake(small_ratings())


def test_steps_that_are_too_large_are_told() -> None:
    ratings = small_ratings()
    with pytest.raises(ConfigError, match="broke down in epoch 1: rate=1e\\+200 is too large"):
        replace(QUICK, rate=1e200, penalty=1e200).fit(ratings, *ones_of(ratings), seed=0)


@pytest.mark.parametrize(
    "wrong", [{"method": "hdmf"}, {"noise": "often"}, {"rate": 0.0}, {"penalty": -1.0}, {"epochs": 0}]
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        replace(QUICK, **wrong)
