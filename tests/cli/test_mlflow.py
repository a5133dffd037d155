"""`--mlflow`: what a real MLflow, with a folder as its store, is told of a run, and what it is never told."""

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cofactor.cli.report_beside import beside_of
from cofactor.federation.gauge import STAGE
from cofactor.report.folder import Folder
from cofactor.report.page import page
from tests.cli import worlds
from tests.cli.tracked import FIXED, ROUNDS, TRAIN, logged, store, told
from tests.conftest import Command
from tests.report import making

ARTIFACTS = ["guarantee.txt", "privacy-card.json", "privacy-card.md", "report.html"]


def test_settings_budget_and_who_took_part_are_params(to_log: Path, cofactor: Command) -> None:
    run, params = making.facts_of(to_log / "run"), logged(cofactor).params
    assert params["recipe.kind"] == "HorizontalMF"
    for name in ("rounds", "factors", "learning_rate"):
        assert json.loads(params[f"recipe.{name}"]) == run["recipe"][name]
    assert json.loads(params["recipe.clipping.limit"]) == run["recipe"]["clipping"]["limit"]
    others = [params[name] for name in ("split", "simulated", "parties", "seed", "data.users", "data.items")]
    assert others == ["horizontal", "true", "2", "0", "60", "40"]
    budget = [params[f"budget.{name}"] for name in ("epsilon", "delta", "unit", "adjacency")]
    assert budget == ["2.0", "1e-06", "user", "empty"]


def test_promise_costs_and_errors_are_metrics(to_log: Path, cofactor: Command) -> None:
    run, metrics = making.facts_of(to_log / "run"), logged(cofactor).metrics
    promised, together = run["guarantee"], run["together"]
    expected = {
        "epsilon_proved": promised["epsilon"],
        **{name: promised[name] for name in ("delta", "odds")},
        **{name: together[name] for name in ("rounds", "bytes")},
        "seconds": run["seconds"],
        "own_rmse": run["scores"]["private"]["rmse"],
        "own_rmse_high": run["scores"]["private"]["intervals"]["rmse"][1],
        "user_mean_mae": run["scores"]["user_mean"]["mae"],
    }
    for name, value in expected.items():
        assert metrics[name] == [(0, value)], name


def test_every_round_is_told_by_its_number(to_log: Path, cofactor: Command) -> None:
    metrics = logged(cofactor).metrics
    rounds = Folder.read(to_log / "run").rounds()
    assert len(rounds) > ROUNDS
    of_rounds = {"epsilon", "answered", "bytes", "seconds"}
    assert {name for name in metrics if "round_" in name} == {f"round_{name}" for name in of_rounds}
    for name in of_rounds:
        assert metrics[f"round_{name}"] == [(each["step"], each["numbers"][name]) for each in rounds], name


def test_guarantee_card_and_report_are_those_of_the_run(to_log: Path, cofactor: Command) -> None:
    found = logged(cofactor)
    assert list(found.files) == ARTIFACTS
    for ending in ("md", "json"):
        assert cofactor("report", "run", "--out", "run.html", "--card", f"run.{ending}").code == 0
        assert found.files[f"privacy-card.{ending}"] == Path(f"run.{ending}").read_text()
    whole = Folder.read(to_log / "run")
    told_of = replace(whole, events=tuple(each for each in whole.events if each["stage"] != STAGE))
    assert found.files["report.html"] == page(told_of, beside_of(told_of, verified=True, policy=None))
    assert found.files["report.html"] != Path("run.html").read_text()
    assert found.files["guarantee.txt"] == f"{whole.guarantee['statement']}\n"


def test_run_stands_under_its_name_with_its_seal_and_promise(to_log: Path, cofactor: Command) -> None:
    found, run = logged(cofactor), making.facts_of(to_log / "run")
    assert (found.name, found.status) == ("run", "3")
    tags = {name.removeprefix("cofactor."): text for name, text in found.tags.items() if "cofactor." in name}
    assert (tags["seal"], tags["holds"], tags["recipe"]) == (run["seal"], "true", "HorizontalMF")
    assert (tags["unit"], tags["adjacency"]) == ("user", "empty")
    assert "no noise was added" in tags["measured"]


def test_no_user_no_model_no_ledger_and_no_gauge_is_told(to_log: Path, cofactor: Command) -> None:
    gauged = {name for each in Folder.read(to_log / "run").rounds(STAGE) for name in each["numbers"]}
    assert gauged == {"signal_to_noise", "clipped"}
    found = logged(cofactor)
    text = found.everything
    assert not {f"u{number}" for number in worlds.RATINGS.user_ids} & set(re.findall(r"\w+", text))
    assert not re.search("signal_to_noise|Signal divided by noise", text)
    names = {path.name for path in found.place.rglob("*") if path.is_file()}
    assert names == {*ARTIFACTS, *found.params, *found.tags, *found.metrics, "meta.yaml"}
    assert str(to_log) not in text.partition("meta.yaml")[0]


def test_where_parties_are_people_no_text_that_names_them_is_told(to_log: Path, cofactor: Command) -> None:
    people = ("ottoline", "bartholomew", "philippa")
    for number, name in enumerate(people):
        own = worlds.RATINGS.where(worlds.RATINGS.users == number)
        (to_log / f"{name}.csv").write_text(worlds.text(own))
    words = ("--split", "on-device", "--epsilon", 4, "--ratings-each", 20, "--scale", "1:5", "-q")
    assert cofactor("train", *(f"{name}.csv" for name in people), *words, "--out", "phones").code == 0
    found = logged(cofactor, "phones")
    assert (found.files, found.params["parties"], found.params["simulated"]) == ({}, "3", "false")
    assert "name the parties, who are people here" in found.tags["cofactor.left_out"]
    assert not [name for name in people if name in found.everything.lower()]


def test_promise_that_the_folder_does_not_bear_out_does_not_hold(to_log: Path, cofactor: Command) -> None:
    with (to_log / "run" / "model.npz").open("ab") as file:
        file.write(b"more")
    found = logged(cofactor)
    assert found.tags["cofactor.holds"] == "false"
    assert json.loads(found.files["privacy-card.json"])["verified"] is False


def test_damaged_run_is_refused_before_anything_leaves(to_log: Path, cofactor: Command) -> None:
    (to_log / "run" / "events.jsonl").write_text("[1, 2]\n")
    done = cofactor("export", "run", "--mlflow", store())
    assert (done.code, "run: the run folder is damaged (events.jsonl: Typ" in done.err) == (2, True)
    assert told() == []


@pytest.mark.parametrize("kind", ["survey", "pooled"])
def test_what_has_no_rounds_is_told_as_well(kind: str, to_log: Path, cofactor: Command) -> None:
    assert cofactor(*making.COMMANDS[kind], "--out", kind).code == 0
    found = logged(cofactor, kind)
    assert (list(found.files), found.metrics["rounds"][0][1]) == (ARTIFACTS, 1 if kind == "survey" else 0)
    assert found.tags["cofactor.holds"] == ("true" if kind == "survey" else "false")
    assert "cofactor.measured" not in found.tags
    assert not [name for name in found.metrics if "rmse" in name]


def test_a_run_is_told_once_unless_it_is_asked_for_again(to_log: Path, cofactor: Command) -> None:
    first = logged(cofactor)
    shutil.copytree(to_log / "run", to_log / "copy")
    done = cofactor("export", "copy", "--mlflow", store())
    assert f"MLflow has this run already: {first.place.name} at file:" in done.out
    assert (done.code, "add --force" in done.out, len(told())) == (0, True, 1)
    assert cofactor("export", "run", "--mlflow", store(), "--json").json["mlflow"]["sent"] is False
    again = logged(cofactor, "run", "--force")
    assert (len(told()), again.place != first.place, again.metrics == first.metrics) == (2, True, True)


def test_what_arrived_in_part_is_marked_and_sent_anew(
    to_log: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.tracking import MlflowClient

    def full(*_: object) -> None:
        raise OSError(28, "No space left")

    with monkeypatch.context() as patched:
        patched.setattr(MlflowClient, "log_artifacts", full)
        done = cofactor("export", "run", "--mlflow", store())
    assert (done.code, done.out) == (1, "")
    assert (
        "did not take the run: [Errno 28] No space left. The run is complete, in run. To log it" in done.err
    )
    assert [each.status for each in told()] == ["4"]
    logged(cofactor)
    assert sorted(each.status for each in told()) == ["3", "4"]


def test_training_tells_of_its_run_when_it_is_saved(to_log: Path, cofactor: Command) -> None:
    done = cofactor(*TRAIN, "--epsilon", 2, "--out", "new", "--mlflow", store())
    assert done.code == 0, done.err
    [found] = told()
    assert f"Logged to MLflow at {store()}, experiment cofactor: {found.place.name}." in done.out
    assert "Errors were sent, too. They are measured with private ratings" in done.out
    assert found.tags["cofactor.seal"] == making.facts_of(to_log / "new")["seal"]


def test_sweep_tells_of_every_run_once(to_log: Path, cofactor: Command) -> None:
    words = ("sweep", *FIXED, "--rounds", 1, "--out", "sw", "--mlflow", store(), "-q")
    done = cofactor(*words, "--epsilons", "none,1")
    assert (done.code, "Logged to MLflow: 2 runs; 0 were there already." in done.out) == (0, True), done.err
    more = cofactor(*words, "--epsilons", "1,2", "--resume", "--json")
    assert [each["sent"] for each in more.json["mlflow"]] == [False, True]
    assert sorted(each.name for each in told()) == [f"epsilon-{epsilon}-seed-0" for epsilon in (1, 2, "none")]
    assert {each.name: each.tags["cofactor.holds"] for each in told()}["epsilon-none-seed-0"] == "false"


def test_environment_is_as_it_was_and_mlflow_calls_nobody_else(
    to_log: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.tracking import MlflowClient

    seen: dict[str, str] = {}
    create: Callable[..., Any] = MlflowClient.create_run

    def look(*words: Any, **more: Any) -> Any:
        seen.update(os.environ)
        return create(*words, **more)

    monkeypatch.setattr(MlflowClient, "create_run", look)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "false")
    before = dict(os.environ)
    logged(cofactor)
    assert dict(os.environ) == before
    assert seen["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert (seen["MLFLOW_HTTP_REQUEST_MAX_RETRIES"], seen["MLFLOW_HTTP_REQUEST_TIMEOUT"]) == ("0", "30")
