from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings, Scale
from cofactor.data.split import by_fraction, cold_items
from cofactor.errors import ConfigError, DataError
from cofactor.factors.baselines import GlobalMean, UserItemBias
from cofactor.factors.bayes import Bayes, Beliefs, _Data
from cofactor.factors.bayes_known import LATENT_VARIANCE, Known
from cofactor.factors.bayes_steps import Items
from cofactor.factors.model import Factors
from cofactor.factors.posterior import Posterior
from cofactor.factors.team import Team
from cofactor.progress import Progress

NOISE = 0.1


@dataclass(frozen=True)
class World:
    ratings: Ratings
    features: NDArray[np.float64]
    slopes: NDArray[np.float64]
    """Each user's slope on the first feature."""


def make_world(seed: int, *, users: int = 300, items: int = 120, each: int = 30) -> World:
    """Draw ratings from the model itself: biases and slopes on two features, two hidden ones, noise."""
    random = np.random.default_rng(seed)
    features: NDArray[np.float64] = random.choice([-0.5, 0.5], (items, 2))
    hidden = random.normal(0, 0.5, (items, 2))
    slopes, tastes = random.normal(0, 0.5, (users, 2)), random.normal(0, 0.3, (users, 2))
    bias = 0.3 * features[:, 0] + random.normal(0, 0.2, items)
    mean = 3 + random.normal(0, 0.2, (users, 1)) + bias + slopes @ features.T + tastes @ hidden.T
    values = np.clip(mean + random.normal(0, np.sqrt(NOISE), mean.shape), 1, 5)
    user = np.repeat(np.arange(users), each)
    item = np.concatenate([random.choice(items, each, replace=False) for _ in range(users)])
    ratings = Ratings.from_rows(
        user, item, values[user, item], user_ids=np.arange(users), item_ids=np.arange(items),
        scale=Scale(1, 5),
    )  # fmt: skip
    return World(ratings, features, slopes[:, 0])


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(1)


@pytest.fixture(scope="module")
def settings() -> Bayes:
    return Bayes(factors=3, noise=NOISE, bias_spread=0.2)


def rmse(model: Factors, ratings: Ratings) -> float:
    wrong = ratings.values - model.predict_rows(ratings.users, ratings.items)
    return float(np.sqrt(np.mean(wrong.astype(np.float64) ** 2)))


def epoch_by_numpy(settings: Bayes, ratings: Ratings, known: Known, old: Beliefs) -> Beliefs:
    """One epoch of EM with dense matrices in float64; who has no ratings does not count."""
    wanted, width = np.full((ratings.user_count, ratings.item_count), np.nan), len(old.covariance)
    wanted[ratings.users, ratings.items] = ratings.values - ratings.mean
    moments, total = np.zeros((len(wanted), 1 + width, 1 + width)), np.zeros((width, width))
    for user, row in enumerate(wanted):
        rated = np.isfinite(row)
        x = old.items.vectors[rated]
        weighted = x.T / (settings.noise + old.items.variance[rated])
        posterior = np.linalg.inv(weighted @ x + np.linalg.inv(old.covariance))
        taste = np.append(1.0, posterior @ weighted @ (row - old.items.bias)[rated])
        moments[user] = np.outer(taste, taste)
        moments[user, 1:, 1:] += posterior
        total += moments[user, 1:, 1:] * rated.any()
    users, items = (np.isfinite(wanted).any(axis=axis).sum() for axis in (1, 0))
    covariance = (total + settings.imagined * old.covariance) / (users + settings.imagined)
    half = np.linalg.cholesky(covariance)
    precision = np.zeros((1 + width, 1 + width))
    precision[0, 0] = settings.bias_spread**-2
    precision[1:, 1:] = half @ np.linalg.inv(old.spread) @ half.T
    before, total = known.vectors(old.items.bias), np.zeros((width, width))
    expected = np.column_stack([known.expected_bias(old.items.bias), before])
    found, variance = np.zeros_like(expected), np.zeros(len(expected))
    for item, column in enumerate(wanted.T):
        rated = np.isfinite(column)
        posterior = np.linalg.inv(moments[rated].sum(axis=0) / settings.noise + precision)
        told = moments[rated, 0].T @ column[rated] / settings.noise
        found[item] = posterior @ (told + precision @ expected[item])
        variance[item] = posterior[0, 0] + np.trace(posterior[1:, 1:] @ covariance)
        moved = found[item, 1:] - before[item]
        total += (posterior[1:, 1:] + np.outer(moved, moved)) * rated.any()
    spread = half.T @ total @ half + settings.imagined * settings.vector_spread**2 / width * np.eye(width)
    vectors = known.vectors(found[:, 0]) + found[:, 1:] - before
    return Beliefs(Items(found[:, 0], vectors, variance), covariance, spread / (items + settings.imagined))


def test_epoch_equals_its_dense_twin_where_some_have_no_ratings() -> None:
    whole = make_world(3, users=20, items=12, each=5)
    ratings = whole.ratings.where((whole.ratings.users < 14) & (whole.ratings.items % 4 != 3))
    settings, data = Bayes(factors=2, imagined=5.0), _Data.of(ratings)
    known = Known.of(ratings, whole.features, 2)
    beliefs = settings._start(ratings, known, data.unit, seed=0)
    for _ in range(2):
        wanted = settings._in_usual_units(epoch_by_numpy(settings, ratings, known, beliefs))
        beliefs = settings._improved(data, known, beliefs, Team(1))
        np.testing.assert_allclose(beliefs.covariance, wanted.covariance, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(beliefs.spread, wanted.spread, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(beliefs.items.bias, wanted.items.bias, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(beliefs.items.vectors, wanted.items.vectors, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(beliefs.items.variance, wanted.items.variance, rtol=1e-4)


def test_units_of_latent_factors_change_nothing_but_numbers() -> None:
    random = np.random.default_rng(0)
    root, vectors = random.normal(size=(5, 5)), random.normal(size=(7, 5))
    before = Beliefs(Items(np.zeros(7), vectors, np.ones(7)), root @ root.T, np.eye(5))
    after = Bayes(factors=3)._in_usual_units(before)
    np.testing.assert_allclose(after.covariance[2:, 2:], LATENT_VARIANCE * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(after.covariance[:2, :2], before.covariance[:2, :2])
    # What tastes make of items, and the coordinates that Cholesky makes, are the same as before.
    left, right = (one.items.vectors @ np.linalg.cholesky(one.covariance) for one in (before, after))
    np.testing.assert_allclose(left, right, atol=1e-9)


def test_many_epochs_do_not_wear_the_numbers_out(world: World, settings: Bayes) -> None:
    model = replace(settings, epochs=1200).fit(world.ratings)
    assert np.isfinite(model.item_vectors).all()
    assert np.isfinite(model.user_vectors).all()
    assert rmse(model, world.ratings) < np.sqrt(NOISE) * 1.1


def test_more_epochs_fit_the_training_ratings_better(world: World, settings: Bayes) -> None:
    errors = [rmse(replace(settings, epochs=k).fit(world.ratings), world.ratings) for k in range(1, 7)]
    assert all(later < earlier for earlier, later in pairwise(errors))


def test_it_comes_close_to_the_noise_and_beats_biases(world: World, settings: Bayes) -> None:
    train, test = by_fraction(world.ratings, 0.1, seed=2)
    error = rmse(settings.fit(train, features=world.features), test)
    assert error < 1.25 * np.sqrt(NOISE)
    assert error < 0.9 * rmse(UserItemBias().fit(train), test)


def test_slopes_of_users_on_a_feature_are_recovered(world: World, settings: Bayes) -> None:
    model = replace(settings, factors=0).fit(world.ratings, features=world.features)
    liked = world.features[:, 0] > 0
    found = model.user_vectors @ (
        model.item_vectors[liked].mean(axis=0) - model.item_vectors[~liked].mean(axis=0)
    )
    assert np.corrcoef(found, world.slopes)[0, 1] > 0.9
    assert 0.8 < np.polyfit(world.slopes, found, 1)[0] < 1.1


def test_slopes_of_users_on_popularity_are_recovered() -> None:
    random = np.random.default_rng(6)
    users, items, each = 200, 60, 25
    chances = 1.0 / np.arange(1, items + 1)
    item = np.concatenate(
        [random.choice(items, each, replace=False, p=chances / chances.sum()) for _ in range(users)]
    )
    user = np.repeat(np.arange(users), each)
    popularity = np.log1p(np.bincount(item, minlength=items))
    popularity = (popularity - popularity.mean()) / popularity.std()
    slopes = random.normal(0, 0.4, users)
    values = 3 + slopes[user] * popularity[item] + random.normal(0, np.sqrt(NOISE), len(user))
    ratings = Ratings.from_rows(
        user, item, np.clip(values, 1, 5), user_ids=np.arange(users), item_ids=np.arange(items),
        scale=Scale(1, 5),
    )  # fmt: skip
    model = Bayes(factors=0, noise=NOISE).fit(ratings)
    found = (model.user_vectors @ model.item_vectors.T) @ popularity / items
    assert np.corrcoef(found, slopes)[0, 1] > 0.9


def test_features_tell_about_items_that_nobody_has_rated(world: World, settings: Bayes) -> None:
    train, test = cold_items(world.ratings, 0.2, seed=1)
    with_features, without = (
        rmse(settings.fit(train, features=world.features), test),
        rmse(settings.fit(train), test),
    )
    assert with_features < 0.85 * without
    assert without < 1.02 * rmse(GlobalMean().fit(train), test)


def test_wide_features_are_brought_to_size(world: World, settings: Bayes) -> None:
    train, test = by_fraction(world.ratings, 0.1, seed=2)
    wide = 1990 + 30 * world.features
    assert rmse(settings.fit(train, features=wide), test) < 1.25 * np.sqrt(NOISE)


def test_uncertainty_is_calibrated_on_data_from_the_model(settings: Bayes) -> None:
    # The mean of 9,000 squared errors, in units of their predicted deviation: over seeds it has mean 0.995
    # and standard deviation 0.015, so that it is a tenth off less than once in a million times.
    train, test = by_fraction(make_world(7, users=900, each=40).ratings, 0.25, seed=1)
    model = settings.fit(train)
    posterior = Posterior(model)
    squares = []
    for user in range(test.user_count):
        part = slice(test.by_user.ptr[user], test.by_user.ptr[user + 1])
        items = test.by_user.index[part].tolist()
        wrong = test.by_user.values[part] - model.predict(user, items)
        squares.append((wrong / posterior.std(user, items)) ** 2)
    assert float(np.mean(np.concatenate(squares))) == pytest.approx(1.0, abs=0.1)


def test_more_ratings_make_a_prediction_surer(world: World, settings: Bayes) -> None:
    model = settings.fit(world.ratings)
    few = Posterior(model.fold_in({1: 4.0})).std("new user", [50])
    many = Posterior(model.fold_in(dict.fromkeys(range(40), 4.0))).std("new user", [50])
    assert np.sqrt(NOISE) < many[0] < few[0]


def test_folding_in_a_users_own_ratings_gives_her_own_row(world: World, settings: Bayes) -> None:
    model = settings.fit(world.ratings, features=world.features)
    own = world.ratings.by_user.window(4, 5)
    new = model.fold_in(dict(zip(own.index.tolist(), own.values.tolist(), strict=True)))
    np.testing.assert_allclose(new.user_vectors[0], model.user_vectors[4], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(new.predict("new user", range(20)), model.predict(4, range(20)), atol=1e-4)


def test_users_and_items_without_ratings_are_predicted(world: World, settings: Bayes) -> None:
    ratings = world.ratings.where((world.ratings.users != 5) & (world.ratings.items != 7))
    model = settings.fit(ratings)
    np.testing.assert_allclose(
        model.predict(5, range(10)), np.clip(model.mean + model.item_bias[:10], 1, 5), atol=1e-5
    )
    assert np.isfinite(model.predict_rows(ratings.users, np.full_like(ratings.items, 7))).all()


def test_the_model_does_not_depend_on_the_rating_scale(world: World, settings: Bayes) -> None:
    plain = world.ratings
    stretched = Ratings.from_rows(
        plain.users, plain.items, 10 * plain.values + 7, user_ids=plain.user_ids, item_ids=plain.item_ids,
        scale=Scale(17, 57),
    )  # fmt: skip
    expected = 10 * settings.fit(plain).predict_rows(plain.users, plain.items) + 7
    found = settings.fit(stretched).predict_rows(plain.users, plain.items)
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_the_same_seed_gives_the_same_model_with_any_number_of_threads(world: World, settings: Bayes) -> None:
    one = replace(settings, threads=1, epochs=3).fit(world.ratings, seed=5)
    three = replace(settings, threads=3, epochs=3).fit(world.ratings, seed=5)
    np.testing.assert_array_equal(one.user_vectors, three.user_vectors)
    np.testing.assert_array_equal(one.item_vectors, three.item_vectors)
    other = replace(settings, epochs=3).fit(world.ratings, seed=6)
    assert not np.array_equal(one.item_vectors, other.item_vectors)


def test_one_user_and_one_item_are_enough() -> None:
    ratings = Ratings.from_arrays([1], [2], [4.0], scale=Scale(1, 5))
    model = Bayes().fit(ratings)
    assert np.isfinite(model.predict(1, [2])[0])
    assert np.isfinite(Posterior(model).std(1, [2])[0])


def test_progress_has_one_event_an_iteration(world: World, settings: Bayes) -> None:
    events: list[Progress] = []
    replace(settings, epochs=2).fit(world.ratings, progress=events.append)
    assert [(event.stage, event.step, event.steps) for event in events] == [("bayes", 1, 2), ("bayes", 2, 2)]
    assert "item biases moved by" in events[0].note


def test_ratings_without_values_are_sent_to_implicit_als() -> None:
    with pytest.raises(DataError, match=r"Use ImplicitALS\(\)"):
        Bayes().fit(Ratings.from_arrays([1, 1, 2], [7, 8, 8]))


def test_no_ratings_at_all_are_refused(world: World) -> None:
    with pytest.raises(DataError, match="there are no ratings"):
        Bayes().fit(world.ratings.where(np.zeros(len(world.ratings), np.bool_)))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.zeros((3, 2)), r"shape \(3, 2\); there are 120 items. Give one row an item"),
        (np.zeros(120), r"shape \(120,\)"),
        (np.full((120, 1), np.nan), "finite numbers"),
        (np.full((120, 1), "Drama"), "Turn words into 0/1 columns"),
    ],
)
def test_features_that_cannot_be_used_are_refused(world: World, features: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Bayes().fit(world.ratings, features=features)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"factors": -1}, "factors must be 0 or more, got -1"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"noise": 0.0}, "noise must be greater than 0"),
        ({"threads": 0}, "threads must be at least 1, got 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Bayes(**wrong)


def test_other_models_do_not_say_how_sure_they_are(world: World) -> None:
    with pytest.raises(DataError, match=r"Fit one with Bayes\(\)"):
        Posterior(GlobalMean().fit(world.ratings)).std(1, [2])
