import numpy as np
import pytest

from cofactor.config import as_table, from_table
from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import Shape, make
from cofactor.errors import ConfigError
from cofactor.factors.bayes import Bayes
from cofactor.factors.model import Factors
from cofactor.factors.sgd import SGD
from cofactor.federation.run import Run
from cofactor.progress import Progress
from cofactor.recipes.pooled import Pooled
from cofactor.recipes.train import train


def model_of(run: Run) -> Factors:
    assert run.model is not None
    return run.model


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(Shape(users=60, items=50, ratings=1_500, minimum=10), seed=3).ratings


def test_same_seed_gives_the_same_model_and_another_seed_another(ratings: Ratings) -> None:
    recipe = Pooled(model=SGD(epochs=2))
    one, two, other = (model_of(train(recipe, ratings, seed=seed)) for seed in (1, 1, 2))
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
    assert model_of(train(Pooled(), clicks)).scale is None
    assert model_of(train(Pooled(), ratings)).scale is not None


def test_run_says_which_model_was_chosen(ratings: Ratings) -> None:
    run = train(Pooled(), ratings)
    assert run.recipe["model"]["kind"] == "SGD"
    assert np.array_equal(model_of(train(Pooled(model=SGD()), ratings)).item_bias, model_of(run).item_bias)


def test_features_reach_the_model_that_can_use_them(ratings: Ratings) -> None:
    features = np.eye(ratings.item_count, 2, dtype=np.float32)
    recipe = Pooled(model=Bayes())
    plain, informed = (model_of(train(recipe, ratings, features=x)) for x in (None, features))
    assert informed.item_vectors.shape[1] == plain.item_vectors.shape[1] + 2


def test_features_for_a_model_that_cannot_use_them_are_refused(ratings: Ratings) -> None:
    with pytest.raises(ConfigError, match=r"model=Bayes\(\)"):
        train(Pooled(model=SGD()), ratings, features=np.ones((50, 2), np.float32))


def test_recipe_without_a_model_survives_its_table() -> None:
    assert from_table(Pooled, as_table(Pooled()), "recipe") == Pooled()
