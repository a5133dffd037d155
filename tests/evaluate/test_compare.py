from dataclasses import replace

import numpy as np
import pytest

from cofactor.config import as_table
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.data.synthetic import Shape, make
from cofactor.errors import DataError
from cofactor.evaluate.compare import compare
from cofactor.factors.baselines import PersonalRidge, UserMean
from cofactor.factors.implicit import ImplicitALS
from cofactor.factors.sgd import SGD
from cofactor.recipes.pooled import Pooled
from cofactor.recipes.train import train


@pytest.fixture(scope="module")
def parts() -> tuple[Ratings, Ratings]:
    return by_fraction(
        make(Shape(users=80, items=60, ratings=2_400, minimum=10), seed=2).ratings, test=0.2, seed=1
    )


def clicks(part: Ratings) -> Ratings:
    return Ratings.from_rows(part.users, part.items, user_ids=part.user_ids, item_ids=part.item_ids)


def test_comparison_measures_baselines_on_the_same_test_ratings(parts: tuple[Ratings, Ratings]) -> None:
    training, test = parts
    scores = compare(train(Pooled(model=SGD(epochs=5)), training), training, test).as_dict()
    assert list(scores) == ["global_mean", "user_mean", "item_mean", "bias", "pooled"]
    wrong = test.values - UserMean().fit(training).predict_rows(test.users, test.items)
    assert scores["user_mean"]["mse"] == pytest.approx(float(np.mean(wrong**2)), rel=1e-5)
    assert scores["global_mean"]["mse"] > scores["bias"]["mse"]


def test_public_items_bring_what_users_have_by_themselves(parts: tuple[Ratings, Ratings]) -> None:
    training, test = parts
    features = np.random.default_rng(1).normal(size=(training.item_count, 2)).astype(np.float32)
    public = PublicItems.of_numbers(training.item_ids, features, source="a test")
    run = train(Pooled(model=SGD(epochs=2)), training)
    scores = compare(run, training, test, public_items=public).as_dict()
    assert list(scores) == ["global_mean", "user_mean", "item_mean", "bias", "personal_ridge", "pooled"]
    wrong = test.values - PersonalRidge().fit(training, features=features).predict_rows(
        test.users, test.items
    )
    assert scores["personal_ridge"]["mse"] == pytest.approx(float(np.mean(wrong**2)), rel=1e-5)


def test_run_that_used_public_items_is_compared_with_what_knows_the_same(
    parts: tuple[Ratings, Ratings],
) -> None:
    training, test = parts
    public, other = (
        PublicItems.of_numbers(training.item_ids, np.eye(training.item_count, 2, k), source="a test")
        for k in (0, 1)
    )
    run = train(Pooled(model=SGD(epochs=1)), training)
    run = replace(run, recipe={**run.recipe, "public_items": as_table(public)})
    for known in (None, other):
        with pytest.raises(DataError, match=r"used public items from a test.*--public-items FILE"):
            compare(run, training, test, public_items=known)
    assert "personal_ridge" in compare(run, training, test, public_items=public).scores


def test_printed_comparison_has_a_line_for_each_model(parts: tuple[Ratings, Ratings]) -> None:
    training, test = parts
    comparison = compare(train(Pooled(model=SGD(epochs=2)), training), training, test)
    lines = str(comparison).splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(comparison.scores)
    assert f"{comparison.scores['bias'].as_dict()['rmse']:.4f}" in lines[4]


def test_implicit_runs_are_compared_by_ranking(parts: tuple[Ratings, Ratings]) -> None:
    training, test = (clicks(part) for part in parts)
    scores = compare(train(Pooled(), training), training, test).as_dict()
    assert list(scores) == ["popularity", "pooled"]
    assert 0 < scores["pooled"]["recall"] <= 1


def test_implicit_model_of_ratings_with_values_is_compared_by_ranking(parts: tuple[Ratings, Ratings]) -> None:
    training, test = parts
    assert not test.implicit
    run = train(Pooled(model=ImplicitALS(factors=4, epochs=2)), training)
    scores = compare(run, training, test).as_dict()
    assert list(scores) == ["popularity", "pooled"]
    assert 0 < scores["pooled"]["recall"] <= 1
