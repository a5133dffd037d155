import numpy as np
import pytest

from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.data.synthetic import Shape, make
from cofactor.evaluate.compare import compare
from cofactor.factors.baselines import UserMean
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
