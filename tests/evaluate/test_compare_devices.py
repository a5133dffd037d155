"""What joining was worth to devices, each of which has one user's ratings and nothing else."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.config import as_table
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings, Scale
from cofactor.data.synthetic import Shape, make
from cofactor.errors import ConfigError
from cofactor.evaluate.compare import Comparison, compare
from cofactor.evaluate.joining import own_means
from cofactor.evaluate.rating_errors import errors
from cofactor.factors.baselines import UserItemBias
from cofactor.factors.bayes import Bayes
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.recipes.alone import Alone
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.train import train

RATINGS = make(Shape(users=50, items=40, ratings=1_200, minimum=8), seed=5).ratings
RECIPE = OnDeviceMF(factors=2, rounds=2)
Parts = tuple[Federation, Federation]


@pytest.fixture(scope="module")
def parts() -> Parts:
    return Federation.on_device(RATINGS).split(0.3, seed=1)


@pytest.fixture(scope="module")
def run(parts: Parts) -> Run:
    return train(RECIPE, parts[0], seed=4)


def under_budget(run: Run, **changes: Any) -> Run:
    assert run.together is not None
    together = replace(run.together, budget={"kind": "Budget", "epsilon": 1.0})
    return replace(run, together=together, **changes)


@pytest.fixture(scope="module")
def found(parts: Parts, run: Run) -> Comparison:
    return compare(under_budget(run), *parts)


def test_nothing_is_shown_that_a_device_could_not_have_but_the_pooled_model(found: Comparison) -> None:
    assert list(found.scores) == ["user_mean", "stage_1", "private", "pooled"]
    assert found.parties == {}
    assert "parties" not in found.as_dict()["user_mean"]


def test_with_public_items_devices_are_measured_against_their_own_ridge(parts: Parts, run: Run) -> None:
    random = np.random.default_rng(2)
    ids = parts[0].item_ids
    public = PublicItems.of_numbers(ids, random.normal(size=(len(ids), 3)), source="a test")
    found = compare(under_budget(run), *parts, public_items=public)
    assert list(found.scores) == ["user_mean", "personal_ridge", "stage_1", "private", "pooled"]
    assert found.joining is not None
    assert found.joining.alone == pytest.approx(found.scores["personal_ridge"].as_dict()["mse"])
    assert "by own ridge on public features" in found.sentences()[-1]


def test_own_mean_is_that_of_the_users_ratings_and_of_nobody_elses(parts: Parts, found: Comparison) -> None:
    learn, test = parts[0].parties[0].ratings, parts[1].parties[0].ratings
    means = np.array([learn.values[learn.users == user].mean() for user in range(learn.user_count)])
    wrong = test.values - means[test.users]
    assert found.as_dict()["user_mean"]["mse"] == pytest.approx(np.mean(wrong**2), rel=1e-5)


def test_user_without_ratings_has_the_middle_of_the_scale() -> None:
    ratings = Ratings.from_rows(
        np.array([0, 0], np.int32),
        np.array([0, 1], np.int32),
        np.array([5, 4], np.float32),
        user_ids=np.arange(2),
        item_ids=np.arange(2),
        scale=Scale(1, 5),
    )
    model = own_means(ratings, Scale(1, 5))
    assert model.predict_rows(np.array([0, 1], np.int32), np.array([0, 0], np.int32)).tolist() == [4.5, 3.0]


def test_stage_1_fits_users_to_the_items_that_the_run_began_with(parts: Parts, found: Comparison) -> None:
    model = RECIPE.alone(parts[0], seed=4)["devices"]
    wanted = errors(model, parts[1].parties[0].ratings).mse.value
    assert found.as_dict()["stage_1"]["mse"] == pytest.approx(wanted, rel=1e-6)
    other = RECIPE.alone(parts[0], seed=5)["devices"]
    assert errors(other, parts[1].parties[0].ratings).mse.value != pytest.approx(wanted, rel=1e-6)


def test_joining_is_held_against_the_users_own_mean(found: Comparison) -> None:
    table = found.as_dict()
    assert found.joining is not None
    assert found.joining.alone == pytest.approx(table["user_mean"]["mse"], rel=1e-9)
    assert found.joining.together == pytest.approx(table["private"]["mse"], rel=1e-9)
    assert " by own mean, " in table["private"]["joining"]["sentence"]


def test_sentence_says_plainly_whether_joining_helped(parts: Parts, run: Run) -> None:
    learn = parts[0].parties[0].ratings
    good = under_budget(run, homes={"devices": UserItemBias().fit(learn)})
    assert str(compare(good, *parts)).splitlines()[-1].startswith("all: joining lowered the users' error by")
    means = own_means(learn, parts[0].scale)
    same = under_budget(run, homes={"devices": means})
    assert "joining did not help the users: nothing changed" in str(compare(same, *parts))
    worse = under_budget(run, homes={"devices": replace(means, mean=means.mean - 1)})
    assert "joining raised the users' error by" in str(compare(worse, *parts))


def test_run_without_a_budget_is_called_together(parts: Parts, run: Run) -> None:
    assert list(compare(run, *parts).scores) == ["user_mean", "stage_1", "together", "pooled"]


def test_pooled_is_our_strongest_model_on_all_ratings(parts: Parts, found: Comparison) -> None:
    model = Bayes().fit(parts[0].pooled(), seed=4)
    wanted = errors(model, parts[1].pooled()).mse.value
    assert found.as_dict()["pooled"]["mse"] == pytest.approx(wanted, rel=1e-6)


def test_devices_of_their_own_are_shown_one_by_one_and_judged_together(run: Run) -> None:
    phones = [
        Party(name=f"p{user}", ratings=RATINGS.where(RATINGS.users == user).compact()) for user in range(4)
    ]
    parts = Federation.on_device(phones, scale=Scale(1, 5)).split(0.3, seed=1)
    homes = {party.name: own_means(party.ratings, Scale(1, 5)) for party in parts[0].parties}
    found = compare(under_budget(run, homes=homes, recipe=as_table(RECIPE)), *parts)
    assert list(found.parties) == ["p0", "p1", "p2", "p3"]
    assert all(own.joining is None for own in found.parties.values())
    assert list(found.parties["p0"].scores) == ["user_mean", "stage_1", "private", "pooled"]
    assert found.joining is not None


def test_recipe_without_a_first_stage_is_not_compared_with_one(parts: Parts, run: Run) -> None:
    found = compare(under_budget(run, recipe={"kind": "LocalReports"}), *parts)
    assert list(found.scores) == ["user_mean", "private", "pooled"]


def test_simulated_devices_are_not_fitted_as_one_party_alone(parts: Parts) -> None:
    with pytest.raises(ConfigError, match="alone it has their mean"):
        train(Alone(), parts[0])
