"""`cofactor sweep`: one file, many trainings, one table."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from cofactor.cli.task import Task
from cofactor.cli.text import ProgressLine
from cofactor.evaluate.sweep import row_of
from cofactor.progress import Progress
from tests.cli import worlds
from tests.conftest import Command
from tests.report import making

FIXED = ("all.csv", "--parties", 2, "--split", "horizontal", "--recipe", "horizontal-mf")
STEPS = ("--rounds", 2, "--factors", 2)
ALIKE = ("sweep", *FIXED, *STEPS, "--out", "sw")
NAMES = ("epsilon-0.5-seed-0", "epsilon-2-seed-0", "epsilon-none-seed-0")
KINDS = {"epsilon": pl.Float64, "seed": pl.Int64, "holds": pl.Boolean, "odds": pl.Float64, "unit": pl.String}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep over three budgets; nobody may change it."""
    folder = worlds.write(tmp_path_factory.mktemp("swept"))
    making.asked(folder, *ALIKE, "--epsilons", "2, none, 0.5", "-q")
    assert (folder / "sw" / "sweep.parquet").exists()
    return folder


@pytest.fixture
def copied(swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, to be gone on with."""
    there = shutil.copytree(swept, tmp_path / "there")
    monkeypatch.chdir(there)
    return there


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return worlds.write(tmp_path)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The run folders that are trained from now on, and whether each training is gone on with."""
    found: list[str] = []
    train = Task.train_parties

    def counted(self: Task, *, resume: bool) -> Any:
        found.append(self.folder.name + (" resumed" if resume else ""))
        return train(self, resume=resume)

    monkeypatch.setattr(Task, "train_parties", counted)
    return found


def table(folder: Path) -> pl.DataFrame:
    return pl.read_parquet(folder / "sw" / "sweep.parquet")


def facts(folder: Path, name: str) -> dict[str, Any]:
    return making.facts_of(folder / "sw" / name)


def names(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def test_each_training_has_a_run_folder_and_a_row_and_charges_no_ledger(swept: Path) -> None:
    assert names(swept / "sw") == [*NAMES, "sweep.csv", "sweep.json", "sweep.parquet"]
    assert not [*swept.glob("*.ledger*")]
    found = table(swept)
    assert found["run"].to_list() == list(NAMES)
    assert found["epsilon"].to_list() == [0.5, 2.0, None]
    assert {name: found.schema[name] for name in KINDS} == KINDS


def test_csv_holds_what_parquet_holds(swept: Path) -> None:
    wanted = table(swept)
    assert pl.read_csv(swept / "sw" / "sweep.csv", schema_overrides=wanted.schema).equals(wanted)


def test_a_row_tells_what_its_run_promised_and_cost(swept: Path) -> None:
    for row in table(swept).to_dicts():
        run = facts(swept, row["run"])
        promised, together = run["guarantee"], run["together"]
        assert row["epsilon_proved"] == promised["epsilon"]
        assert all(row[name] == promised[name] for name in ("holds", "delta", "odds", "unit", "adjacency"))
        assert row["epsilon_proved"] is None or row["epsilon"] * 0.9 < row["epsilon_proved"] <= row["epsilon"]
        assert (row["recipe"], row["parties"]) == (run["recipe"]["kind"], len(together["parties"]))
        assert all(row[name] == run[name] for name in ("seed", "seconds"))
        assert all(row[name] == together[name] for name in ("rounds", "bytes"))
        assert all(row[name] == run["data"][name] for name in ("users", "items", "ratings"))


def test_a_row_has_every_error_that_was_measured_with_its_interval(swept: Path) -> None:
    for row in table(swept).to_dicts():
        scores = facts(swept, row["run"])["scores"]
        own = scores.pop("together" if row["epsilon"] is None else "private")
        for name, score in {"own": own, **scores}.items():
            for measure, ends in score["intervals"].items():
                column = f"{name.replace(' ', '_')}_{measure}"
                found = (row[column], row[f"{column}_low"], row[f"{column}_high"])
                assert found == (score[measure], *ends), column
        assert row["joining_gain"] == own["joining"]["gain"]


def test_runs_of_a_seed_have_the_same_test_ratings(folder: Path, cofactor: Command) -> None:
    assert cofactor(*ALIKE, "--epsilons", "1,9", "--seeds", "3,0", "-q").code == 0
    found = table(folder)
    cells = [(epsilon, seed) for epsilon in (1.0, 9.0) for seed in (0, 3)]
    assert list(found.select("epsilon", "seed").rows()) == cells
    assert found.group_by("seed").agg(pl.col("user_mean_rmse").n_unique())["user_mean_rmse"].to_list() == [
        1,
        1,
    ]
    assert found["user_mean_rmse"].n_unique() == 2


def test_only_whoever_sweeps_without_noise_gets_no_promise(swept: Path) -> None:
    last = table(swept).row(-1, named=True)
    assert (last["holds"], last["epsilon_proved"], last["odds"], last["unit"]) == (False, None, None, None)
    assert table(swept)["holds"].to_list() == [True, True, False]
    with_noise, without = (facts(swept, name)["recipe"] for name in NAMES[1:])
    assert with_noise.keys() == without.keys()
    assert (without["kind"], without["rounds"]) == (with_noise["kind"], with_noise["rounds"])


def test_one_object_tells_all_and_nothing_else_is_printed(copied: Path, cofactor: Command) -> None:
    done = cofactor(*ALIKE, "--epsilons", "none,2", "--resume", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json.keys() == {"sweep", "tables", "runs", "warnings"}
    assert done.json["runs"] == table(copied).to_dicts()
    assert done.json["tables"] == ["sw/sweep.csv", "sw/sweep.parquet"]
    assert "no guarantee covers" in done.json["warnings"][0]


def test_what_is_printed_warns_of_choosing_a_run_by_its_errors(copied: Path, cofactor: Command) -> None:
    done = cofactor(*ALIKE, "--epsilons", "2", "--resume")
    assert (done.code, done.err) == (0, "")
    assert re.findall(r"^ +(\S+) +0 ", done.out, re.MULTILINE) == ["0.5", "2", "none"]
    assert "NOT PRIVATE" in done.out
    assert "Whoever chooses a run by them makes a choice from private data" in done.out
    assert "Next: cofactor report sw" in done.out


def test_what_is_done_is_not_done_again_and_lists_may_grow(
    copied: Path, cofactor: Command, trained: list[str]
) -> None:
    before = {name: (copied / "sw" / name / "run.json").read_bytes() for name in NAMES}
    refused = cofactor(*ALIKE, "--epsilons", "1")
    assert (refused.code, "sw holds a sweep already. Add --resume" in refused.err) == (2, True)
    done = cofactor(*ALIKE, "--epsilons", "1", "--resume")
    assert done.code == 0, done.err
    assert trained == ["epsilon-1-seed-0"]
    assert "epsilon 1, seed 0 (1 of 1)" in done.err
    assert table(copied)["epsilon"].to_list() == [0.5, 1.0, 2.0, None]
    assert {name: (copied / "sw" / name / "run.json").read_bytes() for name in NAMES} == before


def test_a_training_that_was_stopped_goes_on_where_it_was(
    folder: Path, cofactor: Command, trained: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, listen = (*ALIKE, "--epsilons", "1,2,3"), ProgressLine.__call__

    def stop(self: ProgressLine, event: Progress) -> None:
        listen(self, event)
        if len(trained) == 2 and event.stage == "round":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ProgressLine, "__call__", stop)
        assert cofactor(*words).code == 130
    assert names(folder / "sw")[:2] == ["epsilon-1-seed-0", "epsilon-2-seed-0.unfinished"]
    assert table(folder)["epsilon"].to_list() == [1.0]
    trained.clear()
    done = cofactor(*words, "--resume")
    assert done.code == 0, done.err
    assert trained == ["epsilon-2-seed-0 resumed", "epsilon-3-seed-0"]
    assert table(folder)["epsilon"].to_list() == [1.0, 2.0, 3.0]
    assert table(folder)["holds"].all()


def test_a_run_whose_errors_were_never_measured_is_trained_again(
    copied: Path, cofactor: Command, trained: list[str]
) -> None:
    place = copied / "sw" / NAMES[1]
    shutil.copytree(place, copied / "other")
    shutil.rmtree(place)
    making.changed(copied / "other", place, lambda run: run["scores"].clear())
    done = cofactor(*ALIKE, "--epsilons", "0.5,2,none", "--resume", "-q")
    assert done.code == 0, done.err
    assert trained == [NAMES[1]]
    assert table(copied)["own_rmse"].is_not_null().all()


def test_a_sweep_that_stops_before_anything_is_done_leaves_no_folder(
    folder: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Task, "train_parties", stop)
    assert cofactor(*ALIKE, "--epsilons", "1").code == 130
    assert not (folder / "sw").exists()


@pytest.mark.parametrize(
    ("words", "differing"),
    [
        ((*FIXED, "--rounds", 3, "--factors", 2), "recipe"),
        ((*FIXED, *STEPS, "--delta", 1e-5), "budget"),
        ((*FIXED[:2], 3, *FIXED[3:], *STEPS), "federation"),
        ((*FIXED, *STEPS, "--test-fraction", 0.2), "test-fraction"),
        (("north.csv", *FIXED[1:], *STEPS), "file"),
    ],
)
def test_another_sweep_into_the_same_folder_is_refused(
    words: tuple[object, ...], differing: str, copied: Path, cofactor: Command, trained: list[str]
) -> None:
    before = (copied / "sw" / "sweep.json").read_bytes()
    done = cofactor("sweep", *words, "--out", "sw", "--epsilons", "1", "--resume")
    assert (done.code, done.out, trained) == (2, "", [])
    assert f"sw holds a sweep that differs in {differing}. Go on with the same files" in done.err
    assert (copied / "sw" / "sweep.json").read_bytes() == before


@pytest.mark.parametrize("what", ["size", "time"])
def test_a_file_that_was_changed_is_not_gone_on_with(
    what: str, copied: Path, cofactor: Command, trained: list[str]
) -> None:
    file = copied / "all.csv"
    before = file.stat()
    if what == "size":
        file.write_text(file.read_text() + "\n")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    else:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000_000))
    assert (file.stat().st_size == before.st_size) != (file.stat().st_mtime_ns == before.st_mtime_ns)
    done = cofactor(*ALIKE, "--epsilons", "1", "--resume")
    assert (done.code, done.out, trained) == (2, "", [])
    assert "sw holds a sweep that differs in file. Go on with the same files" in done.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--epsilons", ""), 2, r"--epsilons must be a list with commas, such as 0.5,1,2 or 1,none"),
        (("--epsilons", "1;2"), 2, r"--epsilons: cannot read '1;2' as a number. Name numbers, or none"),
        (("--epsilons", "0"), 2, r"epsilons must be"),
        (("--epsilons", "nan"), 2, r"epsilons must be"),
        (("--epsilons", "1,1.0"), 2, r"ask for epsilon 1, seed 0 twice. Name each number once"),
        (("--epsilons", "none,none"), 2, r"ask for epsilon none, seed 0 twice"),
        (("--epsilons", "1", "--seeds", "4,4"), 2, r"ask for epsilon 1, seed 4 twice"),
        (("--epsilons", "1", "--seeds", "-1"), 2, r"--seeds: '-1' is not a whole number from 0 on"),
        (("--epsilons", "1", "--seeds", "0,1.5"), 2, r"--seeds: '1.5' is not a whole number"),
        (("--epsilons", "1", "--seeds", "²"), 2, r"--seeds: '²' is not a whole number"),
        (("--epsilons", "1", "--seeds", ","), 2, r"--seeds must be a list with commas, such as 0,1,2"),
        (("--epsilons", "1", "--test-fraction", 0), 2, r"test_fraction must lie between 0 and 1"),
        (("--epsilons", "1", "--config", "own.toml"), 2, r"what --epsilons says. Leave it out"),
        (("--epsilons", "1", "--resume"), 2, r"no sweep to resume: no sw/sweep.json"),
        (("--epsilons", "1", "--out", "mine"), 2, r"mine is there already and holds no sweep"),
        (("north.csv", "--epsilons", "1"), 1, r"a sweep is a simulation on one file, and this names 2"),
    ],
)
def test_mistakes_are_named_before_anything_is_trained(
    words: tuple[object, ...], code: int, message: str, folder: Path, cofactor: Command
) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("precious")
    (folder / "own.toml").write_text("[budget]\nepsilon = 2.0\n")
    before = sorted(folder.rglob("*"))
    done = cofactor(*ALIKE, *words)
    assert (done.code, done.out) == (code, "")
    assert re.search(message, done.err), done.err
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "The runs beside it are whole"), ('{"format": 9, "asked": 1, "cells": []}', "newer")],
)
def test_a_sweep_that_cannot_be_read_is_left_alone(
    content: str, message: str, copied: Path, cofactor: Command, trained: list[str]
) -> None:
    (copied / "sw" / "sweep.json").write_text(content)
    done = cofactor(*ALIKE, "--epsilons", "1", "--resume")
    assert (done.code, message in done.err, trained) == (2, True, [])
    assert (copied / "sw" / "sweep.json").read_text() == content


def test_report_of_a_sweep_s_folder_compares_its_runs(copied: Path, cofactor: Command) -> None:
    done = cofactor("report", "sw", "--json")
    assert done.code == 0, done.err
    assert done.json["runs"] == [f"sw/{name}" for name in NAMES]
    assert "Not private: epsilon-none-seed-0." in done.json["warnings"]
    page = Path(done.json["report"]).read_text()
    assert all(name in page for name in NAMES)
    (copied / "sw" / "epsilon-9-seed-0.unfinished").mkdir()
    globbed = cofactor("report", *sorted(Path("sw").iterdir()), "--json")
    assert globbed.json["runs"] == done.json["runs"]


def test_a_run_that_nobody_joined_is_a_row_as_well() -> None:
    ranked = {"released counts": {"map": 0.5, "intervals": {"map": [0.25, 1.0]}}}
    scores = {"pooled": {"rmse": 0.5, "intervals": {"rmse": [0.25, 0.75]}, "rankings": ranked}}
    row = row_of(making.told({"epsilon": None}, together=None, scores=scores).facts)
    assert (row["parties"], row["rounds"], row["bytes"], row["epsilon_proved"]) == (0, 0, 0, None)
    assert [row["own_rmse"], row["own_rmse_low"], row["own_rmse_high"]] == [0.5, 0.25, 0.75]
    assert [row["released_counts_map"], row["released_counts_map_high"]] == [0.5, 1.0]
