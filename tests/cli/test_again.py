"""The command that a report tells: pasted, with files in place of FILE, it does the same again."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cofactor.cli.again import FILE, again
from cofactor.federation.folder import read_facts
from cofactor.report.folder import Folder
from tests.cli import test_cluster, worlds
from tests.conftest import Command, Outcome

SURVEY = ("survey", "people.csv", "--range", "0:120", "--epsilon", "1.5")
COUNTED = ("cluster", "bank.csv", "shop.csv", "--k", 3, "--epsilon", 9, "--method", "independent")
CLUSTER = (*COUNTED, "--align", "ids")
ONLY = ("--range", "age=0:120", "--range", "visits=0:60.5")
RANGES = ("--ranges", "ranges.toml")
SHOPS = tuple(f"{name}.csv" for name in worlds.SHOPS)
TRAIN = ("train", "all.csv", "--split", "horizontal", "--parties", 3, "-q")
MADE: dict[str, tuple[object, ...]] = {
    "survey": (*SURVEY, "--column", "age"),
    "whole numbers": (*SURVEY, "--column", "age", "--whole", "--method", "em", "--buckets", 30),
    "a mean": (*SURVEY, "--column", "age", "--method", "piecewise"),
    "log": (*SURVEY[:2], "--column", "it's paid", "--range", "1:90000", "--log", "--epsilon", 1),
    "binning": (*SURVEY, "--column", "age", "--method", "binning"),
    "activity": ("survey", "all.csv", "--activity", "--range", "1:40", "--epsilon", 1),
    "ratings": ("survey", "all.csv", "--rating", "--range", "1:5", "--epsilon", 1, "--method", "grr"),
    "clustering": (*CLUSTER, *RANGES),
    "folded ids": (*CLUSTER, *RANGES, "--id-rule", "folded", "--local", "lloyd", "--seed", 4),
    "columns": (*CLUSTER, "--columns", "age,visits", "--local-k", 2, "--delta", 1e-5, *ONLY),
    "horizontal": (*TRAIN, "--recipe", "horizontal-mf", "--rounds", 2, "--epsilon", 4),
    "devices": ("train", "all.csv", "--split", "on-device", "--epsilon", 2, "--seed", 5, "-q"),
    "public items": (*TRAIN, "--epsilon", 3, "--public-items", "table.csv"),
    "shops": ("train", *SHOPS, "--split", "horizontal", "--epsilon", 2, "-q"),
    "pooled": ("train", "all.csv", "--epochs", 2, "-q"),
}
FILES = {
    "public items": ("all.csv", "table.csv"),
    "shops": SHOPS,
}
SAME = ("recipe", "seed", "data", "survey", "clustering")


def write(folder: Path) -> None:
    worlds.write(folder)
    test_cluster.write(folder)
    rows = [f"p{at},{20 + at % 60},{1 + 37 * at}" for at in range(2_000)]
    (folder / "people.csv").write_text("\n".join(["user,age,it's paid", *rows]) + "\n")


def files_of(kind: str) -> tuple[str, ...]:
    return FILES.get(kind) or tuple(str(word) for word in MADE[kind][1:3] if str(word).endswith(".csv"))


def settings(folder: Path) -> dict[str, Any]:
    """Return what was wanted: what came of it is made of noise."""
    facts = read_facts(folder)
    told: dict[str, Any] = {name: facts.get(name) for name in SAME}
    if told["survey"]:
        told["survey"] = {name: told["survey"][name] for name in ("question", "answered", "unanswered")}
    if told["clustering"]:
        wanted = ("parties", "columns", "ranges", "local_clusters")
        told["clustering"] = {name: told["clustering"][name] for name in wanted}
    together = facts["together"] or {}
    told["parties"] = list(together.get("parties", ()))
    wanted = ("split", "simulated", "budget", "alignment")
    return told | {name: _less_traffic(together.get(name)) for name in wanted}


def _less_traffic(found: Any) -> Any:
    return {**found, "traffic": 0} if isinstance(found, dict) else found


@pytest.mark.parametrize("kind", MADE)
def test_the_command_does_the_same_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cofactor: Command
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):  # each with ledgers of its own
        folder.mkdir()
        write(folder)
    monkeypatch.chdir(first)
    done(cofactor(*MADE[kind], "--out", second / "a run"))
    command = again(Folder.read(second / "a run"))
    name, *words = shlex.split(command.replace("\\\n", ""))
    assert name == "cofactor"
    files = iter(files_of(kind))
    monkeypatch.chdir(second)
    done(cofactor(*(next(files) if word == FILE else word for word in words), "--out", "again"))
    assert list(files) == []
    assert settings(second / "again") == settings(second / "a run")


def done(outcome: Outcome) -> None:
    assert outcome.code == 0, outcome.err


def changed(change: Callable[[dict[str, Any]], object], folder: Folder) -> str:
    facts: dict[str, Any] = {**folder.facts, "together": {**(folder.together or {})}}
    change(facts)
    return again(Folder(path=folder.path, facts=facts))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    from cofactor.federation.federation import Federation
    from cofactor.recipes.shared_biases import SharedBiases
    from cofactor.recipes.train import train

    folder = tmp_path_factory.mktemp("trained") / "it's $HOME"
    train(SharedBiases(), Federation.on_device(worlds.RATINGS)).save(folder)
    return Folder.read(folder)


def test_names_are_quoted_as_shells_want_it(trained: Folder) -> None:
    assert shlex.split(again(trained)) == ["cofactor", "train", "FILE", "--from", "it's $HOME", "--seed", "0"]


def test_weights_are_asked_for_where_users_or_items_had_some(trained: Folder) -> None:
    personal = {"groups": [{"name": "careful"}], "expected": 1, "weighs_items": True}
    told = changed(lambda facts: facts["guarantee"].update(personal=personal), trained)
    assert shlex.split(told.replace("\\\n", ""))[-4:] == ["--user-weights", "FILE", "--item-weights", "FILE"]


def test_a_crowd_of_files_is_not_written_out(trained: Folder) -> None:
    parties: dict[str, Any] = {f"shop-{at}": {} for at in range(10_000)}
    told = changed(lambda facts: facts["together"].update(simulated=False, parties=parties), trained)
    assert told.startswith("cofactor train FILE ... --from")


def test_real_parties_are_asked_to_agree_again(trained: Folder) -> None:
    told = changed(lambda facts: facts["together"].update(approvals=[{"party": "north"}]), trained)
    assert [line.split()[:3] for line in told.splitlines()] == [
        ["cofactor", "host", "propose"],
        ["cofactor", "host", "run"],
    ]
