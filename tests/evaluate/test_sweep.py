"""A run as a row of a table."""

from typing import Any

import pytest

import cofactor as cf
from cofactor.data.partition import horizontal
from cofactor.evaluate.compare import compare
from cofactor.evaluate.sweep import row_of, score_figures
from tests.evaluate.conftest import World


def score(rmse: float, **more: Any) -> dict[str, Any]:
    return {"rmse": rmse, "users": 9, "intervals": {"rmse": [rmse - 0.25, rmse + 0.5]}, **more}


LISTS = {"precision": 0.5, "coverage": 0.9, "intervals": {"precision": [0.25, 0.75]}}
SCORES: dict[str, Any] = {
    "user_mean": score(1.5),
    "private": score(
        1.0,
        joining={"gain": 0.125, "interval": [-0.5, 0.25], "sentence": "it helped"},
        rankings={"released counts": LISTS, "private": LISTS},
    ),
    "pooled": score(0.75),
}
FACTS: dict[str, Any] = {
    "seed": 3,
    "recipe": {"kind": "SecureALS", "noise": 2.0},
    "guarantee": {
        "holds": True, "epsilon": 1.9, "delta": 1e-6, "unit": "user", "adjacency": "empty", "odds": 0.87
    },
    "together": {"parties": {"a": {}, "b": {}}, "rounds": 5, "bytes": 1000},
    "seconds": 2.5,
    "data": {"users": 9, "items": 8, "ratings": 70, "scale": "1 to 5"},
    "scores": SCORES,
}  # fmt: skip


def test_each_measure_has_a_column_and_one_for_each_end_of_its_interval() -> None:
    assert score_figures({"bias": score(1.5)}) == {
        "bias_rmse": 1.5, "bias_rmse_low": 1.25, "bias_rmse_high": 2.0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "own"),
    [
        (("user_mean", "private", "pooled"), "private"),
        (("pooled", "together"), "together"),
        (("bias", "pooled"), "pooled"),
        (("user_mean", "alone", "private", "pooled"), "private"),
        (("alone", "together", "pooled"), "together"),
        (("user_mean", "alone", "pooled"), "alone"),
        (("bias",), None),
    ],
)
def test_runs_own_models_have_the_same_name_in_every_row_and_come_first(
    names: tuple[str, ...], own: str | None
) -> None:
    found = score_figures({name: score(number) for number, name in enumerate(names, 1)})
    assert found.get("own_rmse") == (None if own is None else names.index(own) + 1)
    assert f"{own}_rmse" not in found
    assert {f"{name}_rmse" for name in names if name != own} <= set(found)
    assert own is None or next(iter(found)) == "own_rmse"


def test_lists_and_what_joining_changed_are_in_the_row() -> None:
    found = score_figures(SCORES)
    assert (found["own_precision"], found["released_counts_precision_low"]) == (0.5, 0.25)
    gain = [found[f"joining_gain{end}"] for end in ("", "_low", "_high")]
    assert gain == [0.125, -0.5, 0.25]
    assert not any("coverage" in name or "users" in name for name in found)


def test_row_says_what_was_promised_what_it_cost_and_how_large_the_data_are() -> None:
    row = row_of(FACTS)
    assert (row["seed"], row["recipe"], row["parties"]) == (3, "SecureALS", 2)
    assert (row["epsilon_proved"], row["delta"], row["holds"], row["odds"]) == (1.9, 1e-6, True, 0.87)
    assert (row["rounds"], row["seconds"], row["bytes"]) == (5, 2.5, 1000)
    assert (row["users"], row["items"], row["ratings"]) == (9, 8, 70)
    assert row["own_rmse"] == 1.0


@pytest.mark.parametrize(
    ("recipe", "own"), [(cf.Alone(), "alone"), (cf.Pooled(model=cf.ALS(epochs=1)), "pooled")]
)
def test_own_errors_of_a_run_are_those_of_the_models_it_made(recipe: Any, own: str, world: World) -> None:
    train, test = (
        cf.Federation.horizontal(
            [cf.Party(name=f"p{at}", ratings=part) for at, part in enumerate(horizontal(ratings, 2, seed=1))]
        )
        for ratings in (world.train, world.test)
    )
    run = cf.train(recipe, train)
    scores = compare(run, train, test).as_dict()
    row = row_of(run.with_scores(scores).facts())
    assert row["recipe"] == type(recipe).__name__
    assert row["own_rmse"] == scores[own]["rmse"]
    assert f"{own}_rmse" not in row


def test_pooled_run_has_no_promise_and_no_parties() -> None:
    promise = {"holds": False, "epsilon": None, "delta": None, "statement": "Not private."}
    row = row_of({**FACTS, "together": None, "guarantee": promise, "scores": {}})
    assert (row["epsilon_proved"], row["unit"], row["odds"], row["holds"]) == (None, None, None, False)
    assert (row["parties"], row["rounds"], row["bytes"]) == (0, 0, 0)
    assert not any(name.startswith("own") for name in row)
