"""`cofactor report`: where a page goes, what is told beside it, and what is refused."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cofactor.cli.again import again
from cofactor.report.beside import Beside
from cofactor.report.folder import Folder
from cofactor.report.page import page
from tests.cli import worlds
from tests.conftest import Command, Outcome
from tests.report import making
from tests.report.watching import AtCoordinator

TRAIN = ("train", "all.csv", "--split", "horizontal", "--test-fraction", 0.2, "-q")
STEPS = ("--recipe", "horizontal-mf", "--rounds", 2, "--factors", 2)
RUNS: dict[str, tuple[object, ...]] = {
    "run": (*TRAIN, "--parties", 3, *STEPS, "--epsilon", 2),
    "other": (*TRAIN, "--parties", 3, *STEPS, "--epsilon", 4),
    "wide": (*TRAIN, "--parties", 3, "--recipe", "shared-biases", "--epsilon", 2, "--adjacency", "replace"),
}
PRECIOUS = "<p>my thesis</p>"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs; nobody may change them."""
    folder = worlds.write(tmp_path_factory.mktemp("made"))
    for name, words in RUNS.items():
        making.asked(folder, *words, "--out", name)
        assert (folder / name / "run.json").exists(), name
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copies of them, to be worked with."""
    for name in RUNS:
        shutil.copytree(made / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fine(done: Outcome) -> Outcome:
    assert (done.code, done.err) == (0, "")
    return done


def names() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*"))


def test_page_goes_beside_the_run_and_its_answers_are_printed(folder: Path, cofactor: Command) -> None:
    sealed = sorted(path.name for path in Path("run").iterdir())
    done = fine(cofactor("report", "run", "--no-verify"))
    read = Folder.read(folder / "run")
    assert Path("run.html").read_text() == page(read, Beside(again=again(read)))
    for question in ("Is it private? ", "Is it useful? ", "What did it cost? "):
        assert sum(line.startswith(question) for line in done.out.splitlines()) == 1
    size = Path("run.html").stat().st_size
    assert f"Written to {folder / 'run.html'}, {size / 1000:,.0f} kB." in done.out
    assert sorted(path.name for path in Path("run").iterdir()) == sealed


def test_run_folder_in_which_one_stands_has_its_page_beside_it(
    folder: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "run")
    fine(cofactor("report", "."))
    assert (folder / "run.html").is_file()


def test_page_and_card_go_where_they_are_wanted(folder: Path, cofactor: Command) -> None:
    done = fine(cofactor("report", "run", "--out", "page.html", "--card", "card.md"))
    assert not Path("run.html").exists()
    assert Path("card.md").read_text().startswith("# Privacy card: run\n")
    assert re.findall(r"^Written to (\S+),", done.out, re.MULTILINE) == ["page.html", "card.md"]


def test_one_object_has_the_card_and_is_all_that_is_printed(folder: Path, cofactor: Command) -> None:
    done = fine(cofactor("report", "run", "--out", "page.html", "--card", "card.json", "--json"))
    assert done.json == {"report": "page.html", "card": json.loads(Path("card.json").read_text())}
    promised, card = making.facts_of(folder / "run")["guarantee"], done.json["card"]
    assert (card["run"], card["holds"], card["verified"], card["policy"]) == ("run", True, True, None)
    assert card["guarantee"]["epsilon"] == promised["epsilon"]


@pytest.mark.parametrize(
    ("terms", "met", "told"),
    [
        ("max_epsilon_per_run = 2.0\nminimum_parties = 3", True, "It keeps the limits of policy.toml"),
        ("max_epsilon_per_run = 1.0", False, "Epsilon is 2, and max_epsilon_per_run is 1."),
        ("minimum_parties = 4", False, "minimum_parties is 4"),
        ('recipes = ["SecureALS"]', False, "HorizontalMF"),
    ],
)
def test_promise_is_judged_by_a_policy(
    terms: str, met: bool, told: str, folder: Path, cofactor: Command
) -> None:
    Path("policy.toml").write_text(terms + "\n")
    done = fine(cofactor("report", "run", "--policy", "policy.toml"))
    assert told in done.out
    assert ("Is it private? Not as the policy wants it." in done.out) is not met
    assert ("Not as the policy wants it" in Path("run.html").read_text()) is not met
    card = fine(cofactor("report", "run", "--policy", "policy.toml", "--json")).json["card"]
    assert (card["policy"], card["verdict"] == "Not as the policy wants it") == ("policy.toml", not met)


def test_folder_is_verified_unless_that_is_left_out(folder: Path, cofactor: Command) -> None:
    with Path("run/model.npz").open("ab") as file:
        file.write(b"more")
    done = fine(cofactor("report", "run"))
    assert "Is it private? It cannot be relied on." in done.out
    assert "The folder does not bear it out (files): model.npz was changed" in done.out
    cards = [
        fine(cofactor("report", "run", "--json", *words)).json["card"] for words in ((), ("--no-verify",))
    ]
    assert [(card["verified"], card["holds"]) for card in cards] == [(False, False), (None, True)]


@pytest.mark.parametrize("there", ["page.html", "card.md"])
def test_a_file_that_is_no_report_is_kept_and_nothing_is_written_beside_it(
    there: str, folder: Path, cofactor: Command
) -> None:
    Path(there).write_text(PRECIOUS)
    before, words = names(), ("report", "run", "--out", "page.html", "--card", "card.md")
    done = cofactor(*words)
    option = "--out" if there == "page.html" else "--card"
    assert (done.code, done.out) == (2, "")
    assert f"{option}: {there} is there already. Name another file, or add --force" in done.err
    assert (names(), Path(there).read_text()) == (before, PRECIOUS)
    fine(cofactor(*words, "--force"))
    assert PRECIOUS not in Path(there).read_text()


def test_an_earlier_report_is_replaced_without_being_asked(folder: Path, cofactor: Command) -> None:
    words = ("report", "--out", "page.html", "--card", "card.md")
    fine(cofactor(*words, "run"))
    fine(cofactor(*words, "other"))
    assert Path("card.md").read_text().startswith("# Privacy card: other\n")
    assert "<title>other" in Path("page.html").read_text()
    fine(cofactor("report", "run", "other", "--out", "page.html"))
    for name in ("run", "other"):
        fine(cofactor("report", name, "--out", "page.html", "--card", "card.json"))
        assert json.loads(Path("card.json").read_text())["run"] == name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("all.csv",), r"all.csv is not a run folder: it has no run.json. Make one with 'cofactor train'"),
        (("nowhere",), r"nowhere is not a run folder"),
        (("empty",), r"empty is not a run folder"),
        (("run", "nowhere"), r"nowhere is not a run folder"),
        (("run", "--out", "run/page.html"), r"--out: run/page.html would lie in a run folder.*sealed"),
        (("run", "--card", "run/card.md"), r"--card: run/card.md would lie in a run folder"),
        (("run", "--out", "nowhere/page.html"), r"--out: there is no folder nowhere"),
        (("run", "--out", "empty"), r"--out: empty is a folder. Name a file"),
        (("run", "--card", "card.pdf"), r"--card: card.pdf must end in .md or .json"),
        (("run", "--out", "same.md", "--card", "./same.md"), r"--out and --card both name same.md"),
        (("run", "--policy", "nowhere.toml"), r"--policy: there is no file nowhere.toml"),
        (("run", "--policy", "odd.toml"), r'odd.toml has "max_epsilom".*[Dd]id you mean "max_epsilon"'),
        (
            ("run", "other", "--policy", "odd.toml"),
            r"--card, --policy and --groups are about one run. Name a single RUN",
        ),
        (("run", "other", "--card", "card.md"), r"--card, --policy and --groups are about one run"),
        (("run", "./run"), r"a run is named twice. Name each once"),
        (("run", "--port", 8000), r"--port says where a page is served. Add --live"),
        (("run", "--live", "--out", "page.html"), r"--live serves a page and writes none"),
        (("run", "other", "--live"), r"--live watches one training"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(
    words: tuple[object, ...], message: str, folder: Path, cofactor: Command
) -> None:
    Path("all.csv").write_text("user,item,rating\n")
    Path("empty").mkdir()
    Path("odd.toml").write_text("max_epsilom = 1.0\n")
    before = names()
    done = cofactor("report", *words)
    assert (done.code, done.out) == (2, "")
    assert re.search(message, done.err), done.err
    assert names() == before


def cut(path: Path) -> None:
    """Keep half of a file, and end it as a line."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2].rstrip(b"\n") + b"\n")


def garbled(path: Path) -> None:
    path.write_bytes(b"\xff\xfe{]\n\x00{{\n" * 3)


def listed(path: Path) -> None:
    path.write_text("[1, 2]\n[3]\n")


@pytest.mark.parametrize("damage", [cut, garbled, listed])
@pytest.mark.parametrize("file", ["run.json", "events.jsonl", "transcript.jsonl", "ledgers/party-1.ledger"])
def test_damaged_file_is_named(
    file: str, damage: Callable[[Path], None], folder: Path, cofactor: Command
) -> None:
    damage(Path("run") / file)
    for words in (("run",), ("other", "run")):
        done = cofactor("report", *words)
        assert (done.code, done.out) == (2, "")
        assert re.search(rf"^RunError: run: the run folder is damaged \({file}: \w+: ", done.err), done.err
        assert "Restore it from a copy" in done.err
    assert not Path("run.html").exists()


def test_run_without_its_events_has_a_page_and_does_not_verify(folder: Path, cofactor: Command) -> None:
    Path("run/events.jsonl").unlink()
    done = fine(cofactor("report", "run"))
    assert "events.jsonl was changed, added or lost" in done.out


@pytest.mark.parametrize("words", [(), ("--json",), ("--no-verify", "--card", "card.md")])
def test_half_a_letter_in_a_folder_is_no_bug(words: tuple[str, ...], folder: Path, cofactor: Command) -> None:
    file = Path("run/run.json")
    text, name = file.read_text(), making.facts_of(folder / "run")["phases"][0]["name"]
    file.write_text(text.replace(json.dumps(name), r'"\ud800"'))
    assert making.facts_of(folder / "run")["phases"][0]["name"] == "\ud800"
    fine(cofactor("report", "run", *words))
    assert "<td" in Path("run.html").read_text()


def test_newer_folder_asks_for_a_newer_cofactor(folder: Path, cofactor: Command) -> None:
    making.changed(folder / "run", folder / "newer", lambda facts: facts.update(format=99))
    done = cofactor("report", "newer")
    assert (done.code, "newer cofactor (format 99). Upgrade cofactor" in done.err) == (2, True)


def test_training_that_is_not_finished_has_a_page_too(folder: Path, cofactor: Command) -> None:
    making.unfinished(folder / "run", folder / "going", rounds=2)
    done = fine(cofactor("report", "going"))
    assert re.search(r"^going is not finished: .*, round 2 of 3\.$", done.out, re.MULTILINE)
    assert "To watch it: cofactor report going --live" in done.out
    written = Path("going.html").read_text()
    assert 'content="cofactor"' in written
    assert "signal" not in written.lower()
    told = fine(cofactor("report", "going", "--json", "--out", "going.html")).json
    assert (told["report"], told["rounds"], told["planned_rounds"]) == ("going.html", 2, 3)
    Path("other.html").write_text(PRECIOUS)
    assert cofactor("report", "going", "--out", "other.html").code == 2
    assert Path("other.html").read_text() == PRECIOUS


@pytest.mark.parametrize("words", [("--card", "card.md"), ("--policy", "p.toml"), ("--groups", "g.json")])
def test_training_that_is_not_finished_has_neither_card_nor_judgement(
    words: tuple[str, ...], folder: Path, cofactor: Command
) -> None:
    making.unfinished(folder / "run", folder / "going", rounds=2)
    Path("p.toml").write_text("max_epsilon = 1.0\n")
    Path("g.json").write_text("{}")
    before = names()
    done = cofactor("report", "going", *words)
    assert (done.code, done.out) == (2, "")
    assert "going is not finished. Leave out --card, --policy and --groups." in done.err
    assert names() == before


def test_session_of_a_coordinator_that_is_done_is_reported_by_its_run(
    folder: Path, cofactor: Command
) -> None:
    AtCoordinator(folder / "session").begin()
    shutil.copytree("run", "session/run")
    sealed = sorted(Path("session/run").rglob("*"))
    done = fine(cofactor("report", "session", "--no-verify"))
    read = Folder.read(folder / "session" / "run")
    assert Path("session/run.html").read_text() == page(read, Beside(again=again(read)))
    assert f"Written to {folder / 'session' / 'run.html'}, " in done.out
    assert sorted(Path("session/run").rglob("*")) == sealed
    both = fine(cofactor("report", "session", "other", "--out", "both.html", "--json"))
    assert both.json["runs"] == [str(folder / "session" / "run"), "other"]


def test_several_runs_are_compared_on_one_page(folder: Path, cofactor: Command) -> None:
    done = fine(cofactor("report", "run", "other", "--json"))
    where = str(folder / "compared.html")
    assert done.json == {"report": where, "runs": ["run", "other"], "warnings": []}
    assert {">run<", ">other<"} <= set(re.findall(r">(?:run|other)<", Path(where).read_text()))
    plain = fine(cofactor("report", "run", "other", "--out", "two.html"))
    assert plain.out == "Written to two.html.\n"
    assert Path("two.html").read_text() == Path(where).read_text()


def test_what_must_not_be_compared_is_said_on_the_page_too(folder: Path, cofactor: Command) -> None:
    making.changed(folder / "run", folder / "single", lambda facts: facts["guarantee"].update(unit="rating"))
    done = fine(cofactor("report", "run", "wide", "single"))
    adjacency = "The adjacency of the guarantees differs: empty, replace."
    for warning in (adjacency, "The unit of the guarantees differs: user, rating."):
        assert f"Warning: {warning}" in done.out
        assert warning in Path("compared.html").read_text()
    told = fine(cofactor("report", "run", "wide", "--json")).json
    assert [each for each in told["warnings"] if each.startswith(adjacency)]


@pytest.mark.parametrize("changed", ["run", "other"])
def test_runs_that_are_compared_are_verified_unless_that_is_left_out(
    changed: str, folder: Path, cofactor: Command
) -> None:
    file = Path(changed) / "run.json"
    before, guarantee, after = file.read_text().partition('"guarantee": {')
    file.write_text(before + guarantee + re.sub(r'(?<="epsilon": )\d\.', "0.", after, count=1))
    assert making.facts_of(folder / changed)["guarantee"]["epsilon"] < 1
    warning = f"Not to be relied on: {changed}."
    done = fine(cofactor("report", "run", "other"))
    assert f"Warning: {warning}\n" in done.out
    assert warning in Path("compared.html").read_text()
    done = fine(cofactor("report", "run", "other", "--no-verify"))
    assert "relied" not in done.out
    assert "relied" not in Path("compared.html").read_text().lower()


@pytest.mark.parametrize("found", [True, False])
@pytest.mark.parametrize("words", [("run",), ("run", "other"), ("going",)])
def test_page_is_opened_or_it_is_said_where_it_is(
    words: tuple[str, ...], found: bool, folder: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    making.unfinished(folder / "run", folder / "going", rounds=2)
    seen: list[str] = []

    def opened(address: str) -> bool:
        seen.append(address)
        return found

    monkeypatch.setattr("webbrowser.open", opened)
    done = cofactor("report", *words, "--out", "page.html", "--open", "--json")
    assert (done.code, done.json["report"]) == (0, "page.html")
    assert seen == [(folder / "page.html").as_uri()]
    assert done.err == ("" if found else "There is no browser to open it with. Open page.html in one.\n")


def told_of(data: object, groups: object, session: object = "this") -> str:
    return json.dumps({"session": session, "data": data, "groups": groups})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "groups.json cannot be read"),
        ("age,weight", "is not what 'cofactor compare --json' prints"),
        ("[1]", "is not what 'cofactor compare --json' prints"),
        (told_of(None, {"groups": []}), "is about another run than run"),
        (told_of("same", {"groups": []}, session="another"), "is about another run than run"),
        (told_of("same", None), "holds no errors by group of users"),
        (told_of("same", {"groups": []}), "holds no errors by group of users"),
        (told_of("same", {"groups": [{"name": "shy"}]}), "is not what 'cofactor compare --json' prints"),
    ],
)
def test_what_is_no_comparison_is_refused_with_the_command_that_makes_one(
    content: str | None, words: str, folder: Path, cofactor: Command
) -> None:
    if content is not None:
        facts = json.loads(Path("run/run.json").read_text())
        content = content.replace('"same"', json.dumps(facts["data"]))
        Path("groups.json").write_text(content.replace('"this"', json.dumps(facts["together"]["session"])))
    done = cofactor("report", "run", "--groups", "groups.json")
    assert done.code == 2
    assert words in done.err
    assert "cofactor compare run FILE ... --user-weights FILE --json > groups.json" in done.err
    assert not Path("run.html").exists()


def test_groups_are_of_one_run_that_is_finished(folder: Path, cofactor: Command) -> None:
    assert "are about one run" in cofactor("report", "run", "other", "--groups", "x.json").err
    assert "about a finished run" in cofactor("report", "run", "--live", "--groups", "x.json").err
