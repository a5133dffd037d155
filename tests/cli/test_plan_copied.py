"""What is copied from a planner's page works, and costs what the page says."""

import html
import io
import json
import re
import shlex
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from cofactor.cli.choose import PLANNED
from cofactor.data import partition
from cofactor.evaluate.planning_trainings import Tried
from cofactor.figures import rounded_up
from tests.cli import worlds
from tests.conftest import Command

PARTIES = 3
EPSILON = 4.0
SIMULATED = "This guarantee does not hold. Messages had only a share of the noise"
SIZES = ("--users", 60, "--items", 40, "--ratings", 1200, "--epsilon", EPSILON)
"""Those of the files in `worlds`."""
MORE: dict[str, str] = {
    **dict.fromkeys((each for each in PLANNED if each != "dp-sgld"), ""),  # slow, and a baseline
    "three with shared-biases": f"--recipe shared-biases --parties {PARTIES} --unit user",
    "three with vertical-taste": f"--recipe vertical-taste --parties {PARTIES}",
    "three with horizontal-mf": f"--recipe horizontal-mf --parties {PARTIES} --rounds 3 --local-steps 2",
    "three that open sums": f"--recipe shared-biases --parties {PARTIES} --sum shared --decrypters 3",
    "single ratings": "--recipe vertical-mf --unit rating --delta 1e-7",
    "replaced ratings": "--recipe shared-biases --unit user --adjacency replace --epsilon 7",
    "devices that may drop out": "--recipe shared-biases --sum secure --dropout 0.2 --colluding 0.05",
}
"""What is asked for, by its name; of a recipe nothing but its name."""


@pytest.fixture(autouse=True)
def untried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in an empty folder, offer two budgets and nothing else, and train nothing on made-up ratings."""

    def nothing(_: object, cells: Sequence[object], **__: object) -> Tried:
        return Tried(trainings=(), of_cell=(None,) * len(cells), why_not=("Not here.",) * len(cells))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cofactor.evaluate.planning._AROUND", (1.0,))
    monkeypatch.setattr("cofactor.evaluate.planning._AROUND_EPSILON", (1.0, 2.0))
    monkeypatch.setattr("cofactor.evaluate.planning_trainings.tried", nothing)


def copied(folder: Path) -> dict[str, str]:
    """Return what can be copied from a page, as it stands there."""
    page = (folder / "plan.html").read_text()
    found = re.findall(r'<pre id="copy-(\w+)"[^>]*><code>(.*?)</code>', page, re.DOTALL)
    texts = {name: html.unescape(text) for name, text in found}
    with_toml = re.search(r"The same as train.toml, for: ([^<]*)<", page)
    assert with_toml is not None
    return texts | {"with_toml": html.unescape(with_toml[1])}


def shown_epsilon(folder: Path) -> str:
    page = (folder / "plan.html").read_text()
    found = re.search(r'data-slot="privacy-2">Epsilon (\S+) at delta', page)
    assert found is not None
    return found[1]


def words(line: str) -> list[str]:
    """Return what a shell makes of a line, which must begin with the command."""
    first, *rest = shlex.split(line.replace("\\\n", " "))
    assert first == "cofactor"
    return rest


def asked_cell(folder: Path) -> dict[str, Any]:
    """Return what was asked for, of plan.json."""
    facts = json.loads((folder / "plan.json").read_text())
    found: dict[str, Any] = facts["cells"][facts["asked"]]
    return found


def write_files(where: Path, line: str) -> Path:
    """Write the files that a line names into a folder of their own: nothing was ever learned of them."""
    where.mkdir()
    (where / "ratings.csv").write_text(worlds.text(worlds.RATINGS))
    deal = partition.vertical if "vertical" in line else partition.horizontal
    for number, part in enumerate(deal(worlds.RATINGS, PARTIES), 1):
        (where / f"party-{number}.csv").write_text(worlds.text(part))
    return where


def run_python(text: str) -> tuple[Any, str]:
    """Run a copied text; return its run, and what it printed."""
    names: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()) as printed:
        exec(text, names)
    return names["run"], printed.getvalue()


@pytest.mark.parametrize("name", MORE)
def test_what_is_copied_trains_with_the_epsilon_of_the_page(
    name: str, tmp_path: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = MORE[name].split() or ["--recipe", name]
    page = tmp_path / "page"
    assert cofactor("plan", "--out", page, *SIZES, *said, "--quiet").code == 0
    texts, planned = copied(page), asked_cell(page)["plan"]

    def same(guarantee: dict[str, Any]) -> None:
        # One process that plays all devices sees their shares of noise, and says so; the page does, too.
        simulated = SIMULATED in guarantee["statement"] and "on-device" in texts["command"]
        assert guarantee["holds"] or simulated
        assert not simulated or "is a simulation" in (page / "plan.html").read_text()
        assert guarantee["epsilon"] == pytest.approx(planned["epsilon"], rel=1e-6)
        assert rounded_up(guarantee["epsilon"]) == shown_epsilon(page)
        assert {each: guarantee[each] for each in ("delta", "unit", "adjacency")} == {
            each: planned["budget"][each] for each in ("delta", "unit", "adjacency")
        }

    monkeypatch.chdir(write_files(tmp_path / "command", texts["command"]))
    done = cofactor(*words(texts["command"]), "--out", "run", "--json", "--quiet")
    assert done.code == 0, done.err
    same(done.json["guarantee"])

    monkeypatch.chdir(write_files(tmp_path / "toml", texts["command"]))
    Path("train.toml").write_text(texts["toml"])
    done = cofactor(*words(texts["with_toml"]), "--out", "run", "--json", "--quiet")
    assert done.code == 0, done.err
    same(done.json["guarantee"])

    monkeypatch.chdir(write_files(tmp_path / "python", texts["command"]))
    run, printed = run_python(texts["python"])
    given = run.guarantee
    shown = {each: getattr(given, each) for each in ("holds", "epsilon", "delta", "unit", "adjacency")}
    same(shown | {"statement": str(given)})
    assert "epsilon by round" in printed
    assert str(run.guarantee) in printed


@pytest.mark.parametrize("name", ["three with horizontal-mf", "three that open sums", "replaced ratings"])
def test_the_copied_plan_plans_the_same_again(
    name: str, tmp_path: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def show(address: str) -> bool:
        seen.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", show)
    assert cofactor("plan", "--out", tmp_path / "page", *SIZES, *MORE[name].split(), "--quiet").code == 0
    again = copied(tmp_path / "page")["plan"]
    assert cofactor(*words(again), "--quiet").code == 0
    (folder,) = (tmp_path / "plans").iterdir()
    assert seen == [(folder / "plan.html").as_uri()]
    assert asked_cell(folder) == asked_cell(tmp_path / "page")
