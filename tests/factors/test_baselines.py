from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cofactor.data.ratings import Ratings, Scale
from cofactor.data.split import by_fraction
from cofactor.errors import ConfigError, DataError
from cofactor.factors.baselines import (
    GlobalMean,
    ItemMean,
    PersonalRidge,
    Popularity,
    UserItemBias,
    UserMean,
)
from cofactor.factors.model import Factors
from cofactor.progress import Progress

Baseline = GlobalMean | UserMean | ItemMean | UserItemBias | Popularity
ALL: list[Baseline] = [GlobalMean(), UserMean(), ItemMean(), UserItemBias(), Popularity()]


@pytest.fixture
def ratings() -> Ratings:
    return Ratings.from_arrays(
        ["ann", "ann", "ann", "bob", "bob", "cyd"], [10, 20, 30, 10, 20, 10], [5, 3, 4, 4, 2, 3]
    )


def test_global_mean_predicts_the_mean_everywhere(ratings: Ratings) -> None:
    model = GlobalMean().fit(ratings)
    np.testing.assert_allclose(model.predict("cyd", [10, 20, 30]), 3.5)


def test_user_mean_predicts_each_users_own_mean(ratings: Ratings) -> None:
    model = UserMean(damping=0.0).fit(ratings)
    assert [model.predict(user, [30])[0] for user in ("ann", "bob", "cyd")] == [4.0, 3.0, 3.0]


def test_item_mean_predicts_each_items_own_mean(ratings: Ratings) -> None:
    model = ItemMean(damping=0.0).fit(ratings)
    assert model.predict("bob", [10, 20, 30]).tolist() == [4.0, 2.5, 4.0]


def test_damping_adds_ratings_at_the_mean_of_all(ratings: Ratings) -> None:
    model = UserMean(damping=2.0).fit(ratings)
    assert model.predict("ann", [10])[0] == pytest.approx((5 + 3 + 4 + 2 * 3.5) / 5)


def test_biases_solve_the_ridge_regression() -> None:
    random = np.random.default_rng(5)
    filled = random.random((12, 9)) < 0.5
    users, items = np.nonzero(filled)
    ratings = Ratings.from_rows(
        users, items, random.integers(1, 6, len(users)), user_ids=np.arange(12), item_ids=np.arange(9)
    )
    model = UserItemBias(user_damping=4.0, item_damping=2.0, iterations=500).fit(ratings)
    design = np.hstack([np.eye(12)[ratings.users], np.eye(9)[ratings.items]])
    penalty = np.diag([4.0] * 12 + [2.0] * 9)
    exact = np.linalg.solve(design.T @ design + penalty, design.T @ (ratings.values - ratings.mean))
    np.testing.assert_allclose(np.concatenate([model.user_bias, model.item_bias]), exact, atol=1e-5)


FEATURES = np.array([[1, 0], [0, 1], [1, 3]], np.float32)


def test_personal_ridge_solves_each_users_own_regression(ratings: Ratings) -> None:
    model = PersonalRidge().fit(ratings, features=FEATURES, scale=Scale(1, 5))
    centred = FEATURES - FEATURES.mean(axis=0)
    # All columns together are made to vary by 2.
    x = np.column_stack([np.ones(3), centred * np.sqrt(2 / np.var(FEATURES, axis=0).sum())])
    penalty = np.diag([1.5, 15, 15])
    for user, items, values in (("ann", [0, 1, 2], [5, 3, 4]), ("bob", [0, 1], [4, 2]), ("cyd", [0], [3])):
        own, y = x[items], np.array(values) - 3.0
        row = np.linalg.solve(own.T @ own + penalty, own.T @ y)
        expected = np.clip(3 + x @ row, 1, 5)
        np.testing.assert_allclose(model.predict(user, [10, 20, 30]), expected, atol=1e-6)


def test_nobody_elses_ratings_change_a_personal_ridge(ratings: Ratings) -> None:
    changed = Ratings.from_rows(
        ratings.users,
        ratings.items,
        np.where(ratings.users == 0, ratings.values, 1.0),
        user_ids=ratings.user_ids,
        item_ids=ratings.item_ids,
    )
    first, second = (
        PersonalRidge().fit(each, features=FEATURES, scale=Scale(1, 5)) for each in (ratings, changed)
    )
    np.testing.assert_array_equal(first.predict("ann", [10, 20, 30]), second.predict("ann", [10, 20, 30]))


def test_personal_ridge_does_not_depend_on_units_of_the_scale(ratings: Ratings) -> None:
    wide = Ratings.from_rows(
        ratings.users,
        ratings.items,
        20 * (ratings.values - 1),
        user_ids=ratings.user_ids,
        item_ids=ratings.item_ids,
    )
    narrow = PersonalRidge().fit(ratings, features=FEATURES, scale=Scale(1, 5))
    broad = PersonalRidge().fit(wide, features=FEATURES, scale=Scale(0, 80))
    for user in ("ann", "bob", "cyd"):
        np.testing.assert_allclose(
            1 + broad.predict(user, [10, 20, 30]) / 20, narrow.predict(user, [10, 20, 30]), atol=1e-5
        )


def test_personal_ridge_folds_new_users_in_as_it_fitted_the_others(ratings: Ratings) -> None:
    model = PersonalRidge().fit(ratings, features=FEATURES)
    again = model.fold_in({10: 5, 20: 3, 30: 4}, user="new")
    np.testing.assert_allclose(again.predict("new", [10, 30]), model.predict("ann", [10, 30]), atol=1e-5)


def test_features_of_other_items_are_refused(ratings: Ratings) -> None:
    with pytest.raises(DataError, match=r"shape \(2, 2\) for 3 items"):
        PersonalRidge().fit(ratings, features=FEATURES[:2])


def test_popularity_ranks_by_count_and_leaves_out_what_was_rated(ratings: Ratings) -> None:
    found = Popularity().fit(ratings).recommend("cyd")
    assert [(item.item, item.score) for item in found] == [(20, 2.0), (30, 1.0)]


def test_popularity_serves_ratings_without_values() -> None:
    ratings = Ratings.from_arrays([1, 1, 2], [7, 8, 8])
    assert Popularity().fit(ratings).recommend(2)[0].item == 7


@pytest.mark.parametrize("model", ALL[:4], ids=lambda model: type(model).__name__)
def test_ratings_without_values_have_no_mean(model: Baseline) -> None:
    with pytest.raises(DataError, match=r"no values.*Popularity"):
        model.fit(Ratings.from_arrays([1, 1, 2], [7, 8, 8]))


@pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
def test_unrated_users_and_items_are_predicted_too(model: Baseline) -> None:
    ratings = Ratings.from_rows(
        [0, 0], [0, 1], [2, 4], user_ids=np.arange(2), item_ids=np.arange(3), scale=Scale(1, 5)
    )
    fitted = model.fit(ratings)
    assert np.isfinite(fitted.predict(1, [0, 1, 2])).all()
    if not isinstance(model, Popularity):
        assert fitted.predict(1, [2])[0] == pytest.approx(3.0)


@pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
def test_a_baseline_is_saved_and_loaded_like_any_model(
    model: Baseline, ratings: Ratings, tmp_path: Path
) -> None:
    fitted = model.fit(ratings)
    fitted.save(tmp_path / "model.npz")
    again = Factors.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict("bob", [10, 20, 30]), fitted.predict("bob", [10, 20, 30]))
    assert again.recommend("bob") == fitted.recommend("bob")


@pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
def test_folding_in_a_users_own_ratings_gives_her_own_row(model: Baseline, ratings: Ratings) -> None:
    fitted = model.fit(ratings)
    new = fitted.fold_in({10: 5.0, 20: 3.0, 30: 4.0})
    np.testing.assert_allclose(
        new.predict("new user", [10, 20, 30]), fitted.predict("ann", [10, 20, 30]), rtol=1e-6
    )


def test_items_cannot_be_compared_without_factors(ratings: Ratings) -> None:
    with pytest.raises(DataError, match="no factors"):
        ItemMean().fit(ratings).similar_items(10)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="damping must be 0 or more, got -1"):
        UserMean(damping=-1)
    with pytest.raises(ConfigError, match="iterations must be at least 1"):
        UserItemBias(iterations=0)


@pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
def test_progress_ends_at_the_last_step(model: Baseline, ratings: Ratings) -> None:
    events: list[Progress] = []
    model.fit(ratings, progress=events.append)
    assert events[-1].step == events[-1].steps == len(events)


@pytest.mark.slow
def test_errors_on_movielens_1m_are_those_known(real_data: Callable[[str], Path]) -> None:
    from cofactor.data.files import read_ratings

    train, test = by_fraction(read_ratings(real_data("ml-1m.zip")), 0.1, seed=1)
    models: list[Baseline] = [GlobalMean(), UserMean(), ItemMean(), UserItemBias()]
    known = [1.25, 1.075, 0.957, 0.823]
    for model, expected in zip(models, known, strict=True):
        wrong = test.values - model.fit(train).predict_rows(test.users, test.items)
        assert float(np.mean(wrong**2)) == pytest.approx(expected, rel=0.02)
