"""`cofactor plan --open` and `--out` as a newcomer calls them, mistakes included."""

import io
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cofactor.evaluate.planning_trainings import Tried
from cofactor.figures import percent
from tests.conftest import Command

DOCS = (Path(__file__).parents[2] / "docs" / "planning.md").read_text()
SIZES = ("--users", 60, "--items", 40, "--ratings", 1200)
Opens = list[str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offer two budgets and nothing else, each tried once: how much is done depends on no clock."""
    monkeypatch.setattr("cofactor.evaluate.planning._AROUND", (1.0,))
    monkeypatch.setattr("cofactor.evaluate.planning._AROUND_EPSILON", (1.0, 2.0))
    monkeypatch.setattr("cofactor.cli.plan_page.REPEATS", 1)


@pytest.fixture
def untried(little: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train nothing on made-up ratings: for tests of everything else."""

    def nothing(_: object, cells: Sequence[object], **__: object) -> Tried:
        return Tried(trainings=(), of_cell=(None,) * len(cells), why_not=("Not here.",) * len(cells))

    monkeypatch.setattr("cofactor.evaluate.planning_trainings.tried", nothing)


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Opens:
    """Stand in for the browser that a page is shown in."""
    seen: Opens = []

    def show(address: str) -> bool:
        seen.append(address)
        return True

    monkeypatch.setattr("webbrowser.open", show)
    return seen


def facts_of(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / "plan.json").read_text())
    return facts


@pytest.mark.usefixtures("untried")
def test_a_newcomer_gets_a_page_for_nothing_but_open(home: Path, browser: Opens, cofactor: Command) -> None:
    done = cofactor("plan", "--open", "--quiet")
    assert (done.code, done.err) == (0, "")
    (folder,) = (home / "plans").iterdir()
    assert browser == [(folder / "plan.html").as_uri()]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-\d{6}", folder.name)
    facts = facts_of(folder)
    assert facts["chosen"] == ["recipe", "users", "items", "ratings", "epsilon", "delta"]
    cell = facts["cells"][facts["asked"]]
    assert (facts["name"], cell["users"], cell["ratings"], cell["epsilon"]) == ("secure-als", 3000, 90_000, 2)
    assert (facts["budget"]["delta"], cell["plan"]["holds"]) == (1e-6, True)
    first, *_, last = done.out.splitlines()
    assert first == "secure-als, 3,000 people with 30 ratings each, epsilon 2"
    assert last.startswith(f"Written to plans/{folder.name}/plan.html")
    assert f"A guesser is right at most {percent(cell['plan']['odds'])} of the time." in done.out


@pytest.mark.usefixtures("little")
def test_accuracy_is_really_tried_on_made_up_ratings(home: Path, cofactor: Command) -> None:
    shape = ("--recipe", "horizontal-mf", "--rounds", 1, "--parties", 2, "--epsilon", 8, *SIZES)
    done = cofactor("plan", "--out", "p", *shape, "--minutes", 10, "--quiet")
    assert done.code == 0
    facts = facts_of(home / "p")
    found = [(each["users"], each["ratings"], each["rounds"], each["epsilon"]) for each in facts["trainings"]]
    assert sorted(found, key=str) == sorted(
        [(60, 1200, rounds, epsilon) for rounds in (1, 2) for epsilon in (8, 16)], key=str
    )
    asked = facts["trainings"][facts["cells"][facts["asked"]]["training"]]
    assert (asked["rounds"], asked["epsilon"], asked["repeats"]) == (1, 8, 1)
    error = asked["rmse"]["private"]["mean"]
    assert 0.3 < error < 2
    assert f"Error {error:.3f}." in done.out
    assert "4 trainings on made-up ratings in 10 min" in done.out


@pytest.mark.usefixtures("little")
def test_no_ratings_are_read_even_if_they_lie_there(
    home: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ratings.csv", "party-1.csv", "party-2.csv"):
        (home / name).write_text("user,item,rating\nann,heat,5\n")
    opened, really = [], io.open

    def watched(file: Any, *given: Any, **more: Any) -> Any:
        opened.append(str(file))
        return really(file, *given, **more)

    monkeypatch.setattr("io.open", watched)
    monkeypatch.setattr("builtins.open", watched)
    shape = ("--recipe", "horizontal-mf", "--rounds", 1, "--parties", 2, *SIZES)
    assert cofactor("plan", "--out", "p", *shape, "--quiet").code == 0
    assert "p/plan.json" in opened
    assert not [name for name in opened if name.endswith(".csv")]
    assert "heat" not in (home / "p" / "plan.html").read_text()


@pytest.mark.usefixtures("untried")
def test_without_a_browser_the_page_is_named(
    home: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    done = cofactor("plan", "--open", "--out", "p", *SIZES, "--json")
    assert (done.code, done.json["page"]) == (0, "p/plan.html")
    assert done.err == "There is no browser to open it with. Open p/plan.html in one.\n"


@pytest.mark.usefixtures("untried")
def test_programs_get_all_that_is_in_the_folder(home: Path, browser: Opens, cofactor: Command) -> None:
    done = cofactor("plan", "--out", "p", *SIZES, "--epsilon", 4, "--json")
    facts = facts_of(home / "p")
    seal = facts.pop("seal")
    assert (done.code, done.err, len(seal), browser) == (0, "", 64, [])
    assert done.json["grid"] == facts
    assert done.json["epsilon"] == facts["cells"][facts["asked"]]["plan"]["epsilon"]
    assert (done.json["holds"], done.json["folder"], done.json["page"]) == (True, "p", "p/plan.html")


@pytest.mark.usefixtures("untried")
def test_a_plan_is_replaced_only_by_force(home: Path, cofactor: Command) -> None:
    out = ("plan", "--out", "p", *SIZES, "--quiet")
    assert cofactor(*out).code == 0
    before = (home / "p" / "plan.json").read_bytes()
    again = cofactor(*out, "--epsilon", 3)
    assert (again.code, again.out) == (2, "")
    assert "p already holds a plan. Name another folder with --out, or add --force." in again.err
    assert (home / "p" / "plan.json").read_bytes() == before
    assert cofactor(*out, "--epsilon", 3, "--force").code == 0
    assert facts_of(home / "p")["budget"]["epsilon"] == 3


@pytest.mark.parametrize("more", [(), ("--force",)])
def test_what_is_no_plan_is_never_overwritten(more: Sequence[str], home: Path, cofactor: Command) -> None:
    (home / "thesis").mkdir()
    (home / "thesis" / "thesis.tex").write_text("years")
    (home / "notes").write_text("more years")
    folder, file, inside = (
        cofactor("plan", "--out", name, *SIZES, *more) for name in ("thesis", "notes", "notes/p")
    )
    assert {folder.code, file.code, inside.code} == {2}
    assert "thesis exists and is not a plan folder. Name another folder with --out." in folder.err
    assert "notes is a file. Name another folder with --out." in file.err
    assert "notes/p: cannot be made" in inside.err
    assert [each.name for each in (home / "thesis").iterdir()] == ["thesis.tex"]
    assert (home / "notes").read_text() == "more years"


@pytest.mark.usefixtures("untried")
def test_the_documentation_shows_what_the_command_prints(home: Path, cofactor: Command) -> None:
    text = re.search(r"\$ (cofactor plan .*?)```", DOCS, re.DOTALL)
    assert text is not None
    command, *lines = text[1].replace("\\\n", "").splitlines()
    done = cofactor(*shlex.split(command)[1:], "--quiet")
    assert (done.code, done.err) == (0, "")
    exact = lines[:4] + [line for line in lines if "for each party" in line or "for all" in line]
    assert len(exact) == 6
    assert [line for line in exact if line not in done.out.splitlines()] == []


@pytest.mark.usefixtures("little")
def test_the_documentation_names_every_key_of_a_plan(home: Path, cofactor: Command) -> None:
    shape = ("--recipe", "horizontal-mf", "--rounds", 1, "--parties", 2, *SIZES)
    assert cofactor("plan", "--out", "p", *shape, "--quiet").code == 0
    facts = facts_of(home / "p")
    cell, training = facts["cells"][facts["asked"]], facts["trainings"][0]
    tables = (facts, facts["axes"], cell, cell["commands"], training, training["rmse"]["private"])
    named = set(re.findall(r"`(\w+)`", DOCS.split("## The plan folder")[1]))
    assert [key for table in tables for key in table if key not in named] == []
    assert f"in format {facts['format']}:" in DOCS


MISTAKES = {
    "--users 60 --items 40 --ratings 2401": "60 users cannot rate 40 items 2,401 times: once each would be",
    "--users 60 --items 40 --ratings 59": "--ratings counts those of all users together",
    "--users 0": "users must be at least 1",
    "--parties 61 --recipe horizontal-mf --users 60": "Ask for fewer parties",
    "--parties 3 --recipe on-device-mf": "every user is a device of its own. Leave out parties",
    "--minutes 0": "minutes must be greater than 0",
    "--epsilon 0": "epsilon must lie between",
    "--rounds 3": "SecureALS chooses its rounds itself. Leave out --rounds.",
    "--recipe horizontal-mf --rounds 0": "rounds must be at least 1",
    "--steps 3 --bound 2": "Leave out --bound, --steps, or --open and --out.",
    "--public-items films.csv": "its ratings are made up. Leave out --public-items",
    "--user-weights hdpmf": "a page knows neither weights nor public items",
    "--recipe secure-asl": "recipe must be one of secure-als",
    "--sum secret": "sum must be one of",
}


@pytest.mark.parametrize("said", MISTAKES)
def test_mistakes_are_told_before_anything_is_done(said: str, home: Path, cofactor: Command) -> None:
    done = cofactor("plan", "--out", "p", *said.split())
    assert (done.code, done.out) == (2, "")
    assert MISTAKES[said] in done.err
    assert list(home.iterdir()) == []


def test_what_only_a_page_has_is_refused_without_one(home: Path, cofactor: Command) -> None:
    done = cofactor("plan", "--delta", "1e-6", "--minutes", 2, "--force")
    assert done.code == 2
    assert "only a page has --minutes, --force. Add --open or --out, or leave it out." in done.err
    assert "Missing option '--delta'" in cofactor("plan", "--rounds", 3).err


@pytest.mark.usefixtures("untried")
@pytest.mark.parametrize(
    ("users", "delta"), [(60, 1e-6), (100_000, 1e-6), (200_000, 1e-7), (5_000_000, 1e-8)]
)
def test_delta_is_at_most_a_tenth_of_one_in_all_users(
    users: int, delta: float, home: Path, cofactor: Command
) -> None:
    assert cofactor("plan", "--out", "p", "--users", users, "--ratings", 20 * users, "--quiet").code == 0
    assert facts_of(home / "p")["budget"]["delta"] == delta
    assert delta <= 0.1 / users
