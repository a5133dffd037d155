import numpy as np
import pytest

from cofactor.config import as_table, from_table
from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import Shape, make
from cofactor.errors import ConfigError
from cofactor.factors.bayes import Bayes
from cofactor.factors.sgd import SGD
from cofactor.progress import Progress
from cofactor.recipes.pooled import Pooled
from cofactor.recipes.train import train


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(Shape(users=60, items=50, ratings=1_500, minimum=10), seed=3).ratings


def test_same_seed_gives_the_same_model_and_another_seed_another(ratings: Ratings) -> None:
    recipe = Pooled(model=SGD(epochs=2))
    one, two, other = (train(recipe, ratings, seed=seed).model for seed in (1, 1, 2))
    assert np.array_equal(one.user_vectors, two.user_vectors)
    assert not np.array_equal(one.user_vectors, other.user_vectors)


def test_run_remembers_recipe_data_and_progress(ratings: Ratings) -> None:
    heard: list[Progress] = []
    recipe = Pooled(model=SGD(epochs=3))
    run = train(recipe, ratings, seed=9, progress=heard.append)
    assert from_table(Pooled, run.recipe, "recipe") == recipe
    assert (run.data.ratings, run.seed) == (1_500, 9)
    assert [event.step for event in run.events] == [1, 2, 3]
    assert tuple(heard) == run.events


def test_data_without_values_gets_an_implicit_model(ratings: Ratings) -> None:
    clicks = Ratings.from_arrays(ratings.users, ratings.items)
    assert train(Pooled(), clicks).model.scale is None
    assert train(Pooled(), ratings).model.scale is not None


def test_run_says_which_model_was_chosen(ratings: Ratings) -> None:
    run = train(Pooled(), ratings)
    assert run.recipe["model"]["kind"] == "SGD"
    assert np.array_equal(train(Pooled(model=SGD()), ratings).model.item_bias, run.model.item_bias)


def test_features_reach_the_model_that_can_use_them(ratings: Ratings) -> None:
    features = np.eye(ratings.item_count, 2, dtype=np.float32)
    recipe = Pooled(model=Bayes())
    plain, informed = train(recipe, ratings).model, train(recipe, ratings, features=features).model
    assert informed.item_vectors.shape[1] == plain.item_vectors.shape[1] + 2


def test_features_for_a_model_that_cannot_use_them_are_refused(ratings: Ratings) -> None:
    with pytest.raises(ConfigError, match=r"model=Bayes\(\)"):
        train(Pooled(model=SGD()), ratings, features=np.ones((50, 2), np.float32))


def test_recipe_without_a_model_survives_its_table() -> None:
    assert from_table(Pooled, as_table(Pooled()), "recipe") == Pooled()
