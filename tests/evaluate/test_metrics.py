import json
from dataclasses import replace

import pytest

from cofactor.evaluate.metrics import errors, measure
from cofactor.evaluate.ranking import ranking
from cofactor.evaluate.rating_errors import by_activity
from cofactor.factors.baselines import GlobalMean, Popularity
from tests.evaluate.conftest import World


def test_one_call_gives_what_the_parts_give(world: World) -> None:
    found = measure(world.model, world.train, world.test, k=5, threshold=3, seed=2)
    assert found.errors == errors(world.model, world.test, seed=2)
    assert found.activity == by_activity(world.model, world.train, world.test)
    assert found.ranking == ranking(world.model, world.train, world.test, k=5, threshold=3, seed=2)


def test_truth_beats_the_global_mean_in_every_way(world: World) -> None:
    truth = measure(world.model, world.train, world.test).as_dict()
    mean = measure(GlobalMean().fit(world.train), world.train, world.test).as_dict()
    for name in ("mse", "rmse", "rmse_by_user", "mae"):
        assert truth["intervals"][name][1] < mean["intervals"][name][0], name
    assert truth["intervals"]["ndcg_over_tested"][0] > mean["intervals"]["ndcg_over_tested"][1]


def test_table_is_flat_and_fit_for_json(world: World) -> None:
    table = measure(world.model, world.train, world.test, k=5).as_dict()
    assert json.loads(json.dumps(table, allow_nan=False)) is not None
    measures = {
        "mse", "rmse", "rmse_by_user", "mae", "precision", "recall", "f1", "map", "ndcg_over_unseen",
        "ndcg_over_tested",
    }  # fmt: skip
    assert set(table["intervals"]) == measures
    assert {name for name, value in table.items() if isinstance(value, float)} == measures | {"coverage"}
    assert table["settings"] == {"k": 5, "threshold": 4.0}
    assert len(table["activity"]["groups"]) == 5


def test_model_that_only_ranks_has_no_errors(world: World) -> None:
    found = measure(Popularity().fit(world.train), world.train, world.test)
    assert found.errors is None
    assert found.activity is None
    assert "mse" not in found.as_dict()
    assert found.as_dict()["precision"] > 0


def test_scores_do_not_depend_on_what_the_model_has_seen(world: World) -> None:
    fitted = GlobalMean().fit(world.train)
    assert fitted.seen is not None
    assert measure(replace(fitted, seen=None), world.train, world.test) == measure(
        fitted, world.train, world.test
    )


@pytest.mark.parametrize("k", [1, 10, 200])
def test_any_length_of_list_works(world: World, k: int) -> None:
    found = measure(world.model, world.train, world.test, k=k).ranking
    assert 0 < found.recall.value <= 1
    if k == 200:
        assert found.recall.value == 1.0
        assert found.coverage == 1.0
