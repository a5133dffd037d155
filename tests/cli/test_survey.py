"""`cofactor survey`: what it tells, what it promises, and what stays at home."""

import json
import re
import signal
from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.cli.survey_methods import MEANS, METHODS, chosen_method
from cofactor.errors import ConfigError
from cofactor.federation.folder import seal
from cofactor.privacy.ledger import Ledger
from cofactor.survey.question import Question
from cofactor.survey.result import Survey
from tests.cli import worlds

Command = Any
PEOPLE = 3_000
AGES = np.clip(np.rint(np.random.default_rng(3).normal(42, 12, PEOPLE)), 18, 90)
OUTSIDE = 7
"""Of these people, so many are older than anybody is expected to be."""
AGES[:OUTSIDE] = 471.125
SMALL = """[recipe]
kind = "HorizontalMF"
rounds = 2
factors = 2
home = {kind = "UsersOnly"}
"""
ASK = ("survey", "people.csv", "--column", "age", "--range", "0:120", "--whole", "--epsilon", 4)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    worlds.write(tmp_path)
    rows = "".join(f"p{at},{age:g},{'' if at % 3 else 5},word\n" for at, age in enumerate(AGES))
    (tmp_path / "people.csv").write_text("person_id,age,gap,town\n" + rows)
    (tmp_path / "one.csv").write_text("age\n31\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("user,age\n")
    (tmp_path / "small.toml").write_text(SMALL)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.txt").write_text("precious")
    monkeypatch.chdir(tmp_path)
    # Intervals are drawn, not judged, here: of as few repeats as there may be.
    monkeypatch.setattr(Survey, "band", partialmethod(Survey.band, repeats=20))
    return tmp_path


def texts(place: Path) -> str:
    """Return all text in the files of a folder."""
    files = [file for file in place.rglob("*") if file.suffix in (".json", ".jsonl", ".ledger")]
    assert files
    return "".join(file.read_text() for file in files)


def test_a_survey_tells_how_numbers_are_spread_and_saves_what_was_released(
    folder: Path, cofactor: Command
) -> None:
    done = cofactor(*ASK, "--out", "run", "--json")
    assert done.code == 0, done.err
    found = done.json
    truth = np.clip(AGES, 0, 120)
    assert found["answered"] == PEOPLE
    # Whatever method is usual, both are off by at most 3, with a standard deviation of about 1.
    assert found["mean"]["value"] == pytest.approx(truth.mean(), abs=12)
    assert found["quantiles"]["0.5"]["value"] == pytest.approx(np.median(truth), abs=12)
    for name in ("mean", "deviation"):
        low, high = found[name]["interval"]
        assert low < found[name]["value"] < high
    assert sum(found["estimate"]) == pytest.approx(1)
    assert len(found["edges"]) == len(found["estimate"]) + 1 == len(found["intervals"]["low"]) + 1
    assert (found["guarantee"]["epsilon"], found["guarantee"]["delta"]) == (pytest.approx(4), 0)
    assert found["guarantee"]["holds"]
    assert found["local"] == {"outside": OUTSIDE, "missing": 0}
    saved = Survey.load("run")
    assert saved.mean == pytest.approx(found["mean"]["value"])
    assert Ledger.open("people.csv.ledger").spent().epsilon == pytest.approx(4)
    assert cofactor("verify", "run").code == 0
    assert cofactor("verify", "run", "--ledger", "people.csv").code == 0
    assert "471.125" not in texts(folder / "run")
    assert "outside" not in texts(folder / "run")


@pytest.mark.usefixtures("folder")
def test_people_are_told_what_was_asked_what_it_tells_and_what_is_promised(cofactor: Command) -> None:
    done = cofactor(*ASK, "--out", "run", "--shuffled", "1e-6")
    assert done.code == 0, done.err
    assert "age, whole numbers 0 to 120, asked of 3,000 people in people.csv." in done.out
    assert "Everybody answered once: " in done.out
    assert re.search(r"mean +\d", done.out)
    assert re.search(r"half is at most \(median\) +\d.* to \d", done.out)
    assert "95% interval" in done.out
    assert "7 of 3,000 numbers lay outside 0 to 120" in done.out
    assert "LOCAL: this count is private, and in no file" in done.out
    assert "epsilon 4 (the budget allows 4) and delta 0" in done.out
    assert "Had somebody whom all trust shuffled" in done.out
    assert "Charged to people.csv.ledger: epsilon 0 of 4 is left." in done.out
    assert "--budget-epsilon" in done.out
    assert "Saved in run." in done.out
    assert "Next: cofactor verify run" in done.out
    shown = cofactor("show", "run")
    assert shown.code == 0, shown.err
    assert "asked of 3,000 people" in shown.out
    assert "lay outside" not in shown.out
    assert re.search(r"mean +\d.*", done.out)[0] == re.search(r"mean +\d.*", shown.out)[0]  # type: ignore[index]
    assert cofactor("show", "run", "--json").json["survey"]["answered"] == PEOPLE


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("method", METHODS)
def test_every_method_asks_saves_and_is_shown_again(method: str, cofactor: Command) -> None:
    buckets = () if method in MEANS else ("--buckets", 16)
    done = cofactor(*ASK, "--method", method, *buckets, "--out", "run", "--json")
    assert done.code == 0, done.err
    # The worst is hadamard, with a standard deviation of about 120 * sqrt(16 / 3 / 3000), which is 5.
    assert done.json["mean"]["value"] == pytest.approx(np.clip(AGES, 0, 120).mean(), abs=30)
    assert done.json["method"]["epsilon"] == 4
    shown = cofactor("show", "run")
    assert shown.code == 0, shown.err
    assert cofactor("verify", "run").code == 0
    if done.json["gives"] != "distribution":
        assert "quantiles" in done.json
        assert not done.json["quantiles"]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("levels", [3, 40, 1_000, None])
def test_every_method_has_buckets_that_suit_it(name: str, levels: int | None) -> None:
    question = Question(name="x", low=1, high=levels or 100, whole=levels is not None)
    for people in (1, 50, 3_000, 10**6):
        method = chosen_method(name, question, 0.5, None, people)
        assert method.epsilon == 0.5
        assert 1 <= method.buckets <= 2**11


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("method", "buckets"), [("square-wave", 50), ("olh", 10)])
def test_buckets_may_be_named(method: str, buckets: int, cofactor: Command) -> None:
    done = cofactor(*ASK, "--method", method, "--buckets", buckets, "--out", "run", "--json")
    assert done.code == 0, done.err
    assert len(done.json["estimate"]) == buckets


def test_a_distribution_is_drawn(folder: Path, cofactor: Command) -> None:
    done = cofactor(*ASK, "--out", "run", "--plot", "ages.svg")
    assert done.code == 0, done.err
    assert "Drawn in ages.svg." in done.out
    assert (folder / "ages.svg").read_text().startswith("<svg")
    assert "471.125" not in (folder / "ages.svg").read_text()


@pytest.mark.usefixtures("folder")
def test_people_without_a_number_are_left_out_or_answer_by_chance(cofactor: Command) -> None:
    ask = (
        "survey",
        "people.csv",
        "--column",
        "gap",
        "--range",
        "0:10",
        "--epsilon",
        1,
        "--budget-epsilon",
        9,
    )
    refused = cofactor(*ask)
    assert refused.code == 2
    assert "rows 3, 4, 6, 7, 9 and 1,995 more are empty" in refused.err
    assert not Path("people.csv.ledger").exists()
    skipped = cofactor(*ask, "--missing", "skip", "--out", "skip", "--json").json
    assert (skipped["answered"], skipped["local"]["missing"]) == (1_000, 2_000)
    drawn = cofactor(*ask, "--missing", "random", "--out", "drawn", "--json").json
    assert (drawn["answered"], drawn["local"]["missing"]) == (3_000, 2_000)
    assert "missing" not in texts(Path("drawn"))
    assert not re.search(r"(?<![\d.])2,?000(?![\d.])", texts(Path("drawn")))
    assert "2,000 people have no number. LOCAL" in cofactor(*ask, "--missing", "skip", "--out", "x").out


@pytest.mark.usefixtures("folder")
def test_users_are_asked_how_many_ratings_they_have(cofactor: Command) -> None:
    ask = ("survey", "all.csv", "--activity", "--epsilon", 8, "--budget-epsilon", 20, "--range")
    done = cofactor(*ask, "1:40", "--out", "run", "--json")
    assert done.code == 0, done.err
    assert done.json["question"] | {"kind": ""} == {
        "kind": "", "name": "ratings of a user", "low": 1, "high": 40, "whole": True, "log": True,
    }  # fmt: skip
    assert (done.json["answered"], done.json["local"]["outside"]) == (60, 0)
    # Of sixty users each answers right but for a few percent.
    assert done.json["mean"]["value"] == pytest.approx(20, abs=12)
    narrow = cofactor(*ask, "1:9", "--out", "other", "--json").json
    assert narrow["local"]["outside"] > 20


@pytest.mark.usefixtures("folder")
def test_users_are_asked_for_one_rating_each(cofactor: Command) -> None:
    ask = ("survey", "all.csv", "--rating", "--whole", "--range", "1:5", "--epsilon", 8)
    done = cofactor(*ask, "--out", "run", "--json")
    assert done.code == 0, done.err
    assert done.json["answered"] == 60
    assert done.json["mean"]["value"] == pytest.approx(worlds.RATINGS.values.mean(), abs=1.5)
    assert (
        "several rows"
        in cofactor("survey", "all.csv", "--column", "rating", "--range", "1:5", "--epsilon", 1).err
    )


@pytest.mark.usefixtures("folder")
def test_a_second_survey_beyond_the_budget_is_refused_before_anybody_answers(cofactor: Command) -> None:
    assert cofactor(*ASK, "--out", "first").code == 0
    before = Path("people.csv.ledger").read_bytes()
    done = cofactor(*ASK, "--out", "second")
    assert done.code == 1
    assert "BudgetExceeded: " in done.err
    assert "Left: epsilon 0 of 4" in done.err
    assert "cofactor budget people.csv --epsilon" in done.err
    assert Path("people.csv.ledger").read_bytes() == before
    assert not Path("second").exists()


@pytest.mark.usefixtures("folder")
def test_a_budget_for_more_is_opened_beforehand_or_by_the_first_survey(cofactor: Command) -> None:
    opened = cofactor("budget", "people.csv", "--epsilon", 8, "--delta", "1e-6", "--unit", "user")
    assert opened.code == 0, opened.err
    assert cofactor(*ASK, "--out", "first").code == 0
    second = cofactor(*ASK, "--out", "second")
    assert second.code == 0, second.err
    assert "epsilon 0 of 8 is left" in second.out
    one = ("survey", "one.csv", "--column", "age", "--range", "0:120", "--epsilon", 1)
    assert cofactor(*one, "--budget-epsilon", 3, "--budget-delta", "1e-7", "--out", "third").code == 0
    shown = cofactor("budget", "one.csv", "--json").json
    assert (shown["budget"]["epsilon"], shown["budget"]["delta"]) == (3, 1e-7)
    assert shown["left"] == pytest.approx(2, rel=1e-3)
    assert [run["epsilon"] for run in shown["runs"]] == pytest.approx([1.0], rel=1e-4)
    assert "one.csv.ledger" in cofactor("budget", "one.csv").out


@pytest.mark.usefixtures("folder")
def test_one_person_is_asked_and_the_reader_is_warned(cofactor: Command) -> None:
    one = ("survey", "one.csv", "--column", "age", "--range", "0:120", "--epsilon", 1, "--budget-epsilon", 4)
    done = cofactor(*one, "--out", "run")
    assert done.code == 0, done.err
    assert "asked of 1 person in one.csv" in done.out
    assert "tell next to nothing" in done.out
    assert "interval" not in done.out
    found = cofactor(*one, "--out", "other", "--json").json
    assert found["mean"]["interval"] is None
    assert (found["intervals"], len(found["warnings"])) == (None, 1)
    ranges = cofactor(*one, "--method", "olh", "--out", "third")
    assert ranges.code == 0, ranges.err
    assert "interval" not in ranges.out
    drawn = cofactor(*one, "--plot", "one.svg", "--out", "fourth")
    assert drawn.code == 0, drawn.err


@pytest.mark.usefixtures("folder")
def test_a_folder_is_replaced_only_when_asked_for(cofactor: Command) -> None:
    ask = (*ASK[:-1], 1, "--budget-epsilon", 4, "--out", "run")
    assert cofactor(*ask).code == 0
    before = Path("people.csv.ledger").read_bytes()
    again = cofactor(*ask)
    assert (again.code, "already holds a run" in again.err) == (2, True)
    assert Path("people.csv.ledger").read_bytes() == before
    assert cofactor(*ask, "--force").code == 0


@pytest.mark.usefixtures("folder")
def test_a_survey_is_no_model(cofactor: Command) -> None:
    assert cofactor(*ASK, "--out", "run").code == 0
    for words in (
        ("recommend", "run", "--user", "u1"),
        ("compare", "run", "all.csv", "--test-fraction", 0.2),
        ("train", "all.csv", "--from", "run"),
    ):
        done = cofactor(*words)
        assert (done.code, "holds a survey" in done.err) == (2, True), done.err


AGE = "survey people.csv --column age"
NINE = f"{AGE} --range 0:9 --epsilon 1"
SHOPS = "train north.csv south.csv --split horizontal --epsilon 1"
DEVICES = "train all.csv --split on-device --recipe on-device-mf"
MISTAKES = [
    (f"{AGE} --epsilon 1", 2, r"name a range: --range 0:120.*somebody's"),
    ("survey all.csv --rating --epsilon 1", 2, r"name a range: --range 1:5"),
    (f"{AGE} --range 120:0 --epsilon 1", 2, r"--range must begin below its end"),
    (f"{AGE} --range 0-120 --epsilon 1", 2, r"--range must look like 0:120"),
    (f"{AGE} --range nan:5 --epsilon 1", 2, r"--range must begin below its end"),
    (f"{AGE} --range 0:inf --epsilon 1", 2, r"high must be a number below"),
    (f"{AGE} --range 0:5.5 --whole --epsilon 1", 2, r"whole numbers are whole"),
    (f"{NINE} --log", 2, r"log needs numbers above 0"),
    (f"{AGE} --range 0:120", 1, r"--epsilon 1 .*73\.2%.*Nothing was asked"),
    (f"{AGE} --range 0:120 --epsilon 0", 2, r"epsilon must be greater than 0"),
    (f"{AGE} --range 0:120 --epsilon -1", 2, r"epsilon must be greater than 0"),
    (f"{AGE} --range 0:120 --epsilon nan", 2, r"epsilon must be greater than 0"),
    (f"{AGE} --range 0:120 --epsilon 100", 2, r"epsilon must lie between.*64"),
    (f"{AGE} --range 0:120 --epsilon much", 2, r"--epsilon"),
    ("survey people.csv --column agee --range 0:1 --epsilon 1", 2, r'"agee".*Did you mean "age"'),
    ("survey people.csv --column town --range 0:1 --epsilon 1", 2, r"rows 2, .* 2,995 more are no numbers"),
    ("survey people.csv --range 0:1 --epsilon 1", 2, r"say what is asked for: --column age"),
    (f"{AGE} --activity --epsilon 1", 2, r"leave out --column, or --activity"),
    ("survey all.csv --rating --activity --epsilon 1", 2, r"two questions"),
    ("survey all.csv --activity --epsilon 1", 2, r"name a range: --range 1:5000"),
    ("survey all.csv --activity --missing skip --epsilon 1", 2, r"--missing is for tables"),
    (f"{NINE} --item town", 2, r"--item is for files of ratings"),
    (f"{NINE} --missing zero", 2, r"missing must be one of"),
    (f"{NINE} --method sqare-wave", 2, r'mean "square-wave"'),
    ("survey all.csv --activity --method sqare-wave --epsilon 1", 2, r'mean "square-wave"'),
    (f"{NINE} --method hierarchy --buckets 50", 2, r"buckets.*4"),
    (f"{NINE} --buckets 1", 2, r"buckets must"),
    (f"{NINE} --method piecewise --buckets 8", 2, r"has no buckets"),
    (f"{AGE} --range 1:9 --method piecewise --log --epsilon 1", 2, r"without log"),
    (f"{NINE} --method olh --plot x.svg", 2, r"Leave out --plot"),
    (f"{NINE} --plot x.png", 2, r"--plot draws SVG"),
    (f"{NINE} --plot no/x.svg", 2, r"no folder no"),
    (f"{NINE} --shuffled 2", 2, r"shuffled must lie between"),
    (f"{NINE} --budget-delta 1e-6", 2, r"--budget-epsilon"),
    (f"{NINE} --budget-epsilon .5", 1, r"the budget is 0\.5"),
    (f"{NINE} --out notes", 2, r"notes exists and is not a run"),
    ("survey poeple.csv --column age --range 0:9 --epsilon 1", 2, r'Did you mean "people.csv"'),
    ("survey notes --column age --range 0:9 --epsilon 1", 2, r"notes is a folder"),
    ("survey empty.csv --column age --range 0:9 --epsilon 1", 2, r"empty\.csv is empty"),
    ("survey header.csv --column age --range 0:9 --epsilon 1", 2, r"no rows below"),
    ("survey north.csv --activity --range 1:40 --user person --epsilon 1", 2, r'no column "person"'),
    ("train all.csv --choose-cap 0.1", 2, r"names one file"),
    (
        f"{SHOPS} --choose-cap 0.1",
        2,
        r"SecureALS has no most_ratings.*--recipe horizontal-mf or on-device-mf\.",
    ),
    ("train books.csv films.csv --split vertical --epsilon 1 --choose-cap .1", 2, r"asks each user once"),
    (f"{DEVICES} --epsilon 1 --choose-cap 1", 1, r"nothing is left for training"),
    (f"{DEVICES} --epsilon 1 --choose-cap 0", 2, r"--choose-cap must be greater than 0"),
    (f"{DEVICES} --not-private --choose-cap 1", 2, r"without a budget"),
    (f"{DEVICES} --published --epsilon 1 --choose-cap .1", 2, r"most_ratings is 1 already\. Leave out --cho"),
    ("train all.csv --split on-device --epsilon 1 --survey-mean .1", 2, r"no centre"),
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("line", "code", "message"), MISTAKES)
def test_mistakes_say_what_to_do_and_nobody_is_asked(
    line: str, code: int, message: str, cofactor: Command
) -> None:
    done = cofactor(*line.split())
    assert done.code == code, done.err
    assert re.search(message, " ".join(done.err.split())), done.err
    assert "471.125" not in done.err
    assert not list(Path().glob("*.ledger"))
    assert not Path("runs").exists()


@pytest.mark.usefixtures("folder")
def test_settings_of_a_training_come_from_surveys_that_its_budget_pays_for(cofactor: Command) -> None:
    train = ("train", "north.csv", "south.csv", "west.csv", "--split", "horizontal", "--scale", "1:5")
    done = cofactor(
        *train,
        "--config",
        "small.toml",
        "--epsilon",
        4,
        "--choose-cap",
        1,
        "--survey-mean",
        0.75,
        "--out",
        "run",
        "--json",
    )
    assert done.code == 0, done.err
    cap, mean = done.json["surveys"]
    assert (cap["setting"], cap["epsilon"], mean["setting"], mean["epsilon"]) == (
        "most_ratings", 1, "centre", 0.75,
    )  # fmt: skip
    shown = cofactor("show", "run", "--json").json
    assert shown["recipe"]["most_ratings"] == cap["value"]
    assert shown["recipe"]["centre"] == mean["value"]
    assert 1 <= mean["value"] <= 5
    assert len(shown["together"]["surveys"]) == 2
    assert 0.75 < shown["guarantee"]["epsilon"] <= 4
    for name in worlds.SHOPS:
        runs = cofactor("budget", f"{name}.csv", "--json").json["runs"]
        assert [run["epsilon"] for run in runs[:2]] == pytest.approx([1, 0.75], rel=1e-4)
        assert len(runs) == 3
    verified = cofactor("verify", "run")
    assert verified.code == 0, verified.out
    assert "surveys" in cofactor("show", "run").out
    assert not list(Path().glob("*.unfinished"))


@pytest.mark.usefixtures("folder")
def test_devices_are_asked_too_and_the_text_says_what_was_chosen(cofactor: Command) -> None:
    train = ("train", "all.csv", "--split", "on-device", "--recipe", "on-device-mf", "--sum", "ideal")
    done = cofactor(*train, "--epsilon", 2, "--rounds", 2, "--choose-cap", 0.6, "--out", "run")
    assert done.code == 0, done.err
    assert re.search(r"Used: at most \d+ ratings of each user.*a survey at epsilon 0\.6", done.out)
    assert cofactor("verify", "run").code == 0
    file = Path("wish.toml")
    file.write_text('[survey]\nmean = 0.6\n[recipe]\nkind = "OnDeviceMF"\nrounds = 2\n')
    said = cofactor(
        "train", "all.csv", "--split", "on-device", "--config", file, "--epsilon", 2, "--out", "x"
    )
    assert said.code == 0, said.err
    assert "Used: a mean rating of" in said.out


@pytest.mark.usefixtures("folder")
def test_surveys_are_not_asked_again_when_the_training_did_not_fit(cofactor: Command) -> None:
    for name in ("north", "south"):
        cofactor("budget", f"{name}.csv", "--epsilon", 3, "--delta", "1e-6", "--unit", "user")
    train = (
        *SHOPS.split()[:-2],
        "--scale",
        "1:5",
        "--config",
        "small.toml",
        "--choose-cap",
        0.7,
        "--out",
        "run",
    )
    refused = cofactor(*train, "--epsilon", 6)
    assert refused.code == 1, refused.err
    assert "Surveys need not be asked again. Go on with: cofactor train" in refused.err
    assert len(cofactor("budget", "north.csv", "--json").json["runs"]) == 1
    again = cofactor(*train, "--epsilon", 3)
    assert (again.code, "not finished" in again.err) == (2, True)
    other = cofactor(*train[:-4], "--choose-cap", 0.9, "--out", "run", "--epsilon", 3, "--resume")
    assert (other.code, "asked already" in other.err) == (2, True), other.err
    done = cofactor(*train, "--epsilon", 3, "--resume", "--json")
    assert done.code == 0, done.err
    runs = cofactor("budget", "north.csv", "--json").json["runs"]
    assert [run["epsilon"] for run in runs][:1] == pytest.approx([0.7], rel=1e-4)
    assert len(runs) == 2
    assert cofactor("verify", "run").code == 0


def test_weights_and_surveys_do_not_go_together() -> None:
    from cofactor.cli.before_training import check_surveys
    from cofactor.cli.settings import SurveyWish
    from cofactor.privacy.budget import Budget
    from cofactor.recipes.on_device import OnDeviceMF

    personal = Budget(epsilon=1, delta=1e-6, unit="user", personal="stretching")
    rating = Budget(epsilon=1, delta=1e-6, unit="rating")
    for budget, message in ((personal, "all users alike"), (rating, "for each rating")):
        with pytest.raises(ConfigError, match=message):
            check_surveys(OnDeviceMF(), SurveyWish(cap=0.1), "on-device", budget)


@pytest.mark.usefixtures("folder")
def test_next_to_nothing_is_called_so_and_has_no_intervals(cofactor: Command) -> None:
    little = cofactor(*ASK[:-1], 0.01, "--out", "run")
    assert little.code == 0, little.err
    assert "tell next to nothing" in little.out
    assert "interval" not in little.out


@pytest.mark.usefixtures("folder")
def test_a_survey_whose_numbers_were_changed_is_found_out(cofactor: Command) -> None:
    cofactor(*ASK, "--out", "run")
    whole = cofactor("verify", "run")
    assert (whole.code, "follows from the answers" in whole.out) == (0, True)
    facts = json.loads(Path("run/run.json").read_text())
    facts["survey"]["mean"] += 1
    Path("run/run.json").write_text(json.dumps(seal(facts)))
    forged = cofactor("verify", "run", "--json")
    assert forged.code == 1
    assert [check["name"] for check in forged.json["checks"] if not check["holds"]] == ["survey"]


@pytest.mark.usefixtures("folder")
def test_ctrl_c_while_people_answer_loses_nothing(cofactor: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    save = Survey.save

    def interrupted(self: Survey, *place: Any, **settings: Any) -> Path:
        signal.raise_signal(signal.SIGINT)
        return save(self, *place, **settings)

    with monkeypatch.context() as patched:
        patched.setattr(Survey, "save", interrupted)
        stopped = cofactor(*ASK, "--out", "run")
    assert stopped.code == 130
    assert "the answers are saved: cofactor show run" in stopped.out
    assert cofactor("verify", "run").code == 0


@pytest.mark.usefixtures("folder")
def test_a_budget_beside_one_that_is_there_is_left_aside_and_said_to_be(cofactor: Command) -> None:
    cofactor(*ASK, "--out", "run", "--budget-epsilon", 9)
    again = cofactor(*ASK, "--out", "other", "--budget-epsilon", 50)
    assert again.code == 0, again.err
    assert "--budget-epsilon was left aside" in again.out
