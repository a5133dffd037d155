"""What can be done with a run of parties: show, compare, verify, recommend. And the demo, with its runs."""

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from cofactor.cli import main
from cofactor.data.synthetic import Shape, make
from cofactor.federation.run import Run
from tests.cli import worlds

Command = Any
SHOPS = ("north.csv", "south.csv", "west.csv")
FEW = ("--factors", "2", "--rounds", "2", "--local-steps", "1", "-q")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a private run of three shops, and one of four make-believe services without noise."""
    folder = worlds.write(tmp_path_factory.mktemp("parties"))
    private = (*SHOPS, "--split", "horizontal", "--epsilon", "2", "--test-fraction", "0.1", "--out", "shops")
    vanilla = ("all.csv", "--parties", "4", "--split", "vertical", "--recipe", "vertical-mf", "--not-private")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for words in (
            (*private, "--recipe", "horizontal-mf", *FEW, "--items", "table.csv"),
            (*vanilla, *FEW, "--out", "services"),
        ):
            patched.setattr("sys.argv", ["cofactor", "train", *words])
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                main()
    return folder


@pytest.fixture(autouse=True)
def _here(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)


def test_show_names_parties_rounds_and_what_each_loses(cofactor: Command) -> None:
    done = cofactor("show", "shops")
    assert done.code == 0, done.err
    assert "3 parties (horizontal)" in done.out
    assert re.search(r"rounds  \d+, [\d.]+ kB in all messages", done.out)
    assert re.search(r"north +20 +40 +\d+ +[\d.]+ kB +(1\.\d+|2)\b", done.out)
    assert "HorizontalMF(factors=2, rounds=2" in done.out
    assert "All together: joining" in done.out
    assert "differentially private for each user" in done.out
    facts = cofactor("show", "shops", "--json").json
    assert facts["together"]["parties"]["west"]["users"] == 20


def test_show_says_that_a_run_is_not_private(cofactor: Command) -> None:
    done = cofactor("show", "services")
    assert "make-believe" in done.out
    assert "Not private" in done.out
    assert "collude:" not in done.out


def test_comparison_of_the_training_is_printed_again(cofactor: Command) -> None:
    done = cofactor("compare", "shops")
    assert done.code == 0, done.err
    assert re.search(r"south .*joining (lowered|raised|did not)", done.out)
    told = cofactor("compare", "shops", "--json").json
    assert told["scores"]["private"]["mse"] == Run.load("shops").scores["private"]["mse"]
    assert told["joining"]["sentence"].startswith("joining")
    assert told["parties"]["south"]["sentence"].startswith("joining")


def test_run_measured_again_gives_the_same_numbers(cofactor: Command) -> None:
    done = cofactor("compare", "shops", *SHOPS, "--json")
    assert done.code == 0, done.err
    stored = cofactor("compare", "shops", "--json").json
    assert done.json["scores"].keys() == stored["scores"].keys()
    for name, score in stored["scores"].items():
        assert done.json["scores"][name]["mse"] == pytest.approx(score["mse"], rel=1e-4), name
    assert done.json["parties"].keys() == stored["parties"].keys()


def test_simulation_is_dealt_out_again_as_it_was(cofactor: Command, tmp_path: Path) -> None:
    words = ("all.csv", "--parties", 3, "--split", "vertical", "--recipe", "alone", "--seed", 6)
    run = tmp_path / "run"
    stored = cofactor("train", *words, "--test-fraction", 0.2, "--out", run, "--json").json
    again = cofactor("compare", run, "all.csv", "--test-fraction", 0.2, "--json")
    assert again.code == 0, again.err
    assert again.json["scores"]["alone"]["mse"] == pytest.approx(stored["scores"]["alone"]["mse"], rel=1e-4)


def test_pooled_run_can_be_measured_again(cofactor: Command, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ("all.csv", "--epochs", 2, "--test-fraction", 0.2, "--out", run)
    stored = cofactor("train", *words, "--json").json
    again = cofactor("compare", run, "all.csv", "--test-fraction", 0.2, "--json").json
    assert again["scores"] == stored["scores"]
    public = ("--public-items", "table.csv")
    more = cofactor("compare", run, "all.csv", "--test-fraction", 0.2, *public, "--json").json
    assert set(more["scores"]) == {*stored["scores"], "personal_ridge"}


def test_run_is_not_measured_on_ratings_it_was_trained_on(cofactor: Command) -> None:
    done = cofactor("compare", "shops", *SHOPS, "--test-fraction", 0.3)
    assert (done.code, "--test-fraction" in done.err) == (2, True)
    done = cofactor("compare", "shops", *SHOPS[:2])
    assert (done.code, "training ratings" in done.err) == (2, True)


def test_verified_run_exits_with_0(cofactor: Command) -> None:
    done = cofactor("verify", "shops", "--ledger", "north.csv", "--ledger", "south.csv.ledger")
    assert done.code == 0, done.out
    assert "Everything is as the folder says." in done.out
    told = cofactor("verify", "shops", "--json").json
    assert told["holds"] is True
    assert told["guarantee"]["unit"] == "user"
    assert all(check["holds"] for check in told["checks"])


def test_run_without_a_promise_is_verified_as_such(cofactor: Command) -> None:
    done = cofactor("verify", "services")
    assert (done.code, "promises no privacy" in done.out) == (0, True)


def test_changed_run_exits_with_1(cofactor: Command, tmp_path: Path) -> None:
    folder = Run.load("shops").save(tmp_path / "run")
    facts = json.loads((folder / "run.json").read_text())
    facts["guarantee"]["epsilon"] = 0.1
    (folder / "run.json").write_text(json.dumps(facts))
    done = cofactor("verify", folder)
    assert done.code == 1
    assert re.search(r"NO +guarantee", done.out)
    assert "Do not rely on it" in done.out
    told = cofactor("verify", folder, "--json")
    assert (told.code, told.json["holds"]) == (1, False)


def test_ledger_of_somebody_else_does_not_hold(cofactor: Command, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("user,item,rating\n1,1,5\n")
    assert cofactor("budget", other, "--epsilon", 2, "--delta", "1e-6", "--unit", "user").code == 0
    done = cofactor("verify", "shops", "--ledger", other)
    assert (done.code, "NO" in done.out) == (1, True)


def test_user_is_served_by_her_own_party(cofactor: Command) -> None:
    run = Run.load("shops")
    user = run.homes["west"].user_ids[0]
    done = cofactor("recommend", "shops", "--user", user, "-n", 3, "--json")
    assert done.code == 0, done.err
    [one] = done.json["recommendations"]
    wanted = run.homes["west"].recommend(user, 3)
    assert [best["item"] for best in one["items"]] == [best.item for best in wanted]
    assert one["items"][0]["title"].startswith("Film ")


def test_users_of_all_parties_are_served_by_the_one_that_is_named(cofactor: Command) -> None:
    done = cofactor("recommend", "services", "--user", "u3")
    assert (done.code, "--party: party-1, party-2" in done.err) == (2, True)
    done = cofactor("recommend", "services", "--user", "u3", "--party", "party-2", "--json")
    items = {best["item"] for best in done.json["recommendations"][0]["items"]}
    assert items <= set(Run.load("services").homes["party-2"].item_ids.tolist())


def test_new_users_may_come_to_any_party(cofactor: Command) -> None:
    done = cofactor("recommend", "shops", "--rate", "i1=5", "--party", "north", "--json")
    assert done.code == 0, done.err
    assert len(done.json["recommendations"][0]["items"]) == 10


@pytest.fixture
def small_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    shape = Shape(users=90, items=60, ratings=2_500, minimum=10)
    monkeypatch.setattr("cofactor.cli.demo.made", lambda: make(shape, seed=7))
    monkeypatch.setattr("cofactor.cli.demo_attack.PHONES", 20)
    monkeypatch.setattr("cofactor.cli.demo_attack.RATINGS", 400)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_demo_runs_a_private_federation_of_either_kind(small_demo: Path, cofactor: Command) -> None:
    done = cofactor("demo", "--json")
    assert done.code == 0, done.err
    assert set(done.json) == {"horizontal", "vertical", "phones-plain", "phones-private"}
    for split, unit in (("horizontal", "user"), ("vertical", "rating")):
        told = done.json[split]
        assert (told["guarantee"]["holds"], told["guarantee"]["unit"]) == (True, unit)
        assert told["joining"]["sentence"]
        assert cofactor("verify", small_demo / "runs" / "demo" / split).code == 0
        assert list(Run.load(small_demo / "runs" / "demo" / split).phases)[-1] == "measuring"


def test_demo_ends_with_an_attack_that_a_private_run_resists(small_demo: Path, cofactor: Command) -> None:
    done = cofactor("demo", "--out", "mine", "--quiet")
    assert done.code == 0, done.err
    verdicts = re.findall(
        r"^  (\w+): From .*?([\d.]+)% of what 20 users .*?([\d.]+)%", done.out, re.MULTILINE
    )
    assert [verdict for verdict, *_ in verdicts] == ["succeeded", "resisted"]
    (_, read, guessed), (_, hidden, _) = verdicts
    assert float(read) > 99 > float(guessed) + 40
    assert float(hidden) < float(guessed) + 15
    plain, private = (small_demo / "mine" / f"phones-{name}" for name in ("plain", "private"))
    for run, verdict in ((plain, "succeeded"), (private, "resisted")):
        assert cofactor("verify", run).code == 0
        assert f"audits/reconstruction-coordinator-1: {verdict}. " in cofactor("show", run).out
    kept = cofactor("show", private, "--json").json
    assert (kept["guarantee"]["holds"], kept["guarantee"]["budget_epsilon"]) == (True, 4)
    assert cofactor("audit", plain, "--attack", "reconstruction", "--json").json["verdict"] == "succeeded"


@pytest.mark.slow
def test_demo_prints_guarantees_and_comparisons_for_people(small_demo: Path, cofactor: Command) -> None:
    done = cofactor("demo", "--out", "mine", "--quiet")
    assert done.code == 0
    assert done.err == ""
    assert done.out.count("All together: joining") == 2
    assert done.out.count("differentially private for each") == 2
    again = cofactor("demo", "--out", "mine", "--quiet")
    assert (again.code, "already holds a run" in again.err) == (2, True)
