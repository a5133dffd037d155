import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.cli import choose
from cofactor.cli.choose import chosen_recipe, with_usual_delta
from cofactor.cli.settings import BudgetWish, RecipeWish, Wish
from cofactor.cli.task import _with_declared
from cofactor.cli.text import ProgressLine
from cofactor.config import as_table, from_table
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Scale
from cofactor.data.split import by_fraction
from cofactor.errors import ConfigError
from cofactor.federation.folder import read_facts
from cofactor.federation.halves import Facts
from cofactor.federation.run import Run
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.progress import Progress
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.vertical import VerticalMF
from tests.cli import worlds

Command = Any
SHOPS = ("north.csv", "south.csv", "west.csv", "--split", "horizontal", "--epsilon", "2")
SERVICES = ("books.csv", "films.csv", "music.csv", "--split", "vertical", "--epsilon", "2")
SMALL = ("--factors", "2", "--rounds", "3", "--local-steps", "1", "-q")
STEPS = ("--recipe", "vertical-mf", *SMALL)
"""A recipe of a few rounds, of which none takes long."""
SCORES = {"global_mean", "user_mean", "item_mean", "bias", "alone", "private", "pooled"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return worlds.write(tmp_path)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("words", [SHOPS, SERVICES], ids=["horizontal", "vertical"])
def test_files_are_parties_and_one_object_tells_all_about_them(
    words: tuple[str, ...], folder: Path, cofactor: Command
) -> None:
    done = cofactor("train", *words, "--test-fraction", 0.1, "--out", "run", "--json")
    assert done.code == 0, done.err
    told = done.json
    assert {"run", "guarantee", "scores", "parties", "seconds", "bytes", "data"} <= set(told)
    assert set(told["scores"]) >= SCORES
    for score in told["scores"].values():
        assert {"mse", "rmse", "mae", "intervals"} <= set(score)
        assert score["intervals"]["mse"][0] <= score["mse"] <= score["intervals"]["mse"][1]
    files = [word for word in words if word.endswith(".csv")]
    assert set(told["parties"]) == {name.removesuffix(".csv") for name in files}
    for party in told["parties"].values():
        assert party["sentence"].startswith("joining ")
        assert set(party["scores"]) >= SCORES
        assert party["bytes_sent"] > 0
    promised = told["guarantee"]
    assert (promised["holds"], promised["delta"], promised["adjacency"]) == (True, 1e-6, "empty")
    assert promised["unit"] == ("user" if words is SHOPS else "rating")
    assert 1.9 < promised["epsilon"] <= 2
    assert told["bytes"] == Run.load("run").facts()["together"]["bytes"] > 0
    ledgers = [f"{name}.ledger{more}" for name in files for more in ("", ".key")]
    assert names(folder) == sorted([*worlds.FILES, "run", *ledgers])
    spent = Ledger.open(f"{files[0]}.ledger").spent().epsilon
    assert spent == pytest.approx(promised["epsilon"], rel=1e-6)


def test_people_get_tables_sentences_and_the_guarantee(folder: Path, cofactor: Command) -> None:
    done = cofactor("train", *SERVICES, *STEPS[:-1], "--test-fraction", 0.1, "--out", "run")
    assert done.code == 0, done.err
    assert "3 parties (vertical)" in done.out
    assert re.search(r"films .*joining (lowered|raised|did not)", done.out)
    assert "All together: joining" in done.out
    assert "differentially private for each rating" in done.out
    assert "If the coordinator and all other parties collude: epsilon" in done.out
    assert "Saved in run." in done.out
    assert "Next: cofactor verify run" in done.out
    last = done.err.splitlines()[-1]
    assert re.fullmatch(r"round (\d+)/\1  epsilon 1\.\d\d of 2\.00  3/3 parties  \S+ MB", last), last


def test_one_file_is_dealt_out_after_the_test_ratings_were_held_back(folder: Path, cofactor: Command) -> None:
    words = ("all.csv", "--parties", 4, "--split", "vertical", "--epsilon", 2, "--seed", 3)
    done = cofactor("train", *words, *STEPS, "--test-fraction", 0.2, "--out", "run")
    assert done.code == 0, done.err
    facts = read_facts("run")["together"]
    assert facts["simulated"] is True
    assert list(facts["parties"]) == ["party-1", "party-2", "party-3", "party-4"]
    train, test = by_fraction(worlds.RATINGS, 0.2, seed=3)
    assert sum(party["ratings"] for party in facts["parties"].values()) == len(train)
    assert read_facts("run")["scores"]["private"]["ratings"] == len(test)
    assert not list(folder.glob("*.ledger")), "a simulation spends nobody's budget"


def test_run_without_noise_says_so(folder: Path, cofactor: Command) -> None:
    words = ("all.csv", "--parties", 3, "--split", "vertical", "--not-private")
    done = cofactor("train", *words, *STEPS, "--test-fraction", 0.1, "--out", "run")
    assert done.code == 0, done.err
    assert "Not private" in done.out
    assert "together" in read_facts("run")["scores"]
    assert read_facts("run")["guarantee"]["holds"] is False
    assert "Next: cofactor recommend run --user" in done.out


@pytest.mark.parametrize(("recipe", "kind"), [("alone", "Alone"), ("pooled", "Pooled")])
def test_yardsticks_are_recipes_too(recipe: str, kind: str, folder: Path, cofactor: Command) -> None:
    done = cofactor("train", *SHOPS[:5], "--recipe", recipe, "-q", "--test-fraction", 0.1, "--out", "run")
    assert done.code == 0, done.err
    facts = read_facts("run")
    assert facts["recipe"]["kind"] == kind
    assert {"bias", recipe} <= set(facts["scores"])
    assert not list(folder.glob("*.ledger"))


def test_setting_of_the_paper_can_be_had() -> None:
    about = RecipeWish(published=True, numbers={"rounds": 2})
    chosen = chosen_recipe(about, "vertical", None, 18)
    assert chosen == replace(VerticalMF.as_published(18), rounds=2)
    assert chosen_recipe(about, "horizontal", None, 3) == replace(HorizontalMF.as_published(), rounds=2)


def test_parties_get_public_features(folder: Path, cofactor: Command) -> None:
    words = ("train", *SERVICES, "--public-items", "auto", "--items", "table.csv", "--out", "run")
    done = cofactor(*words)
    assert done.code == 0, done.err
    line = r"Item features from table.csv \(4 columns: sequel, genre \(3\); sha256 [0-9a-f]{12}\): public"
    assert re.search(line, done.err)
    assert re.search(line, done.out.replace("\n", " ")), "the guarantee lists them, too"
    assert read_facts("run")["recipe"]["directions"] > 2, "without features there are two at most"
    one = cofactor("recommend", "run", "--user", "u1", "--party", "books", "-n", 1, "--json").json
    assert one["recommendations"][0]["items"][0]["title"].startswith("Film ")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("item,genre\n" + "".join(f"x{k},g{k % 2}\n" for k in range(12)), "none of the items of books"),
        ("what,genre\n1,a\n2,b\n", "no column looks like the ids of the items: what, genre"),
        ("item,average_rating\n1,2.5\n2,3\n", "may be reckoned from the ratings"),
    ],
)
def test_public_items_that_cannot_be_used_are_refused_before_anything_is_released(
    table: str, message: str, folder: Path, cofactor: Command
) -> None:
    (folder / "odd.csv").write_text(table)
    done = cofactor("train", *SERVICES, "--public-items", "odd.csv", "--out", "run")
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert not list(folder.glob("*.ledger"))


def test_recipe_of_an_earlier_run_wants_its_public_items_declared_again() -> None:
    public = PublicItems.of_numbers([1, 2], [[0.0], [1.0]], source="films.csv")
    recipe = SharedBiases(public_items=public)
    named = from_table(SharedBiases, as_table(recipe), "recipe")
    assert named.public_items is not None
    assert not named.public_items.has_numbers
    with pytest.raises(ConfigError, match=r"what films\.csv says.*--public-items films\.csv"):
        _with_declared(named, None)
    again = _with_declared(named, public)
    assert again.public_items is public
    assert _with_declared(VerticalMF(), None) == VerticalMF()


def test_recipe_without_use_for_public_items_says_so(folder: Path, cofactor: Command) -> None:
    words = ("all.csv", "--split", "on-device", "--recipe", "local-reports", "--epsilon", "4")
    done = cofactor("train", *words, "--public-items", "table.csv", "--test-fraction", 0.2, "--out", "run")
    assert done.code == 0, done.err
    assert "LocalReports makes no use of public items" in done.err
    assert "personal_ridge" in read_facts("run")["scores"]
    assert "by own ridge on public features" in done.out


def test_pooled_yardstick_gets_the_features_too(folder: Path, cofactor: Command) -> None:
    words = ("train", *SERVICES[:5], "--recipe", "pooled", "--public-items", "table.csv", "-q")
    done = cofactor(*words, "--model", "bayes", "--out", "run")
    assert done.code == 0, done.err
    plain = cofactor(*words[:-3], "-q", "--model", "bayes", "--out", "plain")
    assert plain.code == 0, plain.err
    one, other = Run.load("run").model, Run.load("plain").model
    assert one is not None
    assert other is not None
    assert one.item_vectors.shape[1] > other.item_vectors.shape[1]
    assert (cofactor(*words, "--out", "third").code, (folder / "third").exists()) == (2, False)


def test_files_of_the_same_name_are_told_apart_by_their_folders(folder: Path, cofactor: Command) -> None:
    for shop in ("north", "south"):
        (folder / shop).mkdir()
        (folder / f"{shop}.csv").rename(folder / shop / "ratings.csv")
    files = ("north/ratings.csv", "south/ratings.csv")
    done = cofactor("train", *files, "--split", "horizontal", "--recipe", "alone", "-q", "--out", "run")
    assert done.code == 0, done.err
    assert list(read_facts("run")["together"]["parties"]) == ["north-ratings", "south-ratings"]


TOML = """
[recipe]
kind = "VerticalMF"
factors = 2
rounds = 3
local_steps = 1

[budget]
epsilon = 2

[federation]
split = "vertical"
parties = 3
scale = "0:6"
"""


def test_file_of_settings_says_the_same_as_options(folder: Path, cofactor: Command) -> None:
    (folder / "train.toml").write_text(TOML)
    done = cofactor("train", "all.csv", "--config", "train.toml", "-q", "--out", "run")
    assert done.code == 0, done.err
    words = ("--split", "vertical", "--parties", 3, "--epsilon", 2, "--scale", "0:6")
    assert cofactor("train", "all.csv", *words, *STEPS, "--out", "other").code == 0
    one, other = read_facts("run"), read_facts("other")
    assert one["recipe"] == other["recipe"]
    assert one["data"] == other["data"]
    assert one["data"]["scale"] == "0 to 6"
    assert one["together"]["budget"] == other["together"]["budget"]


def test_settings_without_a_kind_are_those_of_the_recommended_recipe(folder: Path, cofactor: Command) -> None:
    (folder / "train.toml").write_text("[recipe]\npublish = true\n")
    done = cofactor(
        "train", *SERVICES, "--config", "train.toml", "-q", "--test-fraction", 0.1, "--out", "run"
    )
    assert done.code == 0, done.err
    assert read_facts("run")["recipe"]["kind"] == "VerticalTaste"
    assert "published" in read_facts("run")["scores"]


@pytest.mark.slow
def test_langevin_dynamics_can_be_had_by_option_by_file_and_from_a_run(
    folder: Path, cofactor: Command
) -> None:
    deal = ("all.csv", "--split", "vertical", "--parties", 3, "--epsilon", 2)
    done = cofactor("train", *deal, "--recipe", "dp-sgld", *SMALL, "--out", "run")
    assert done.code == 0, done.err
    (folder / "train.toml").write_text(TOML.replace("VerticalMF", "DPSGLD").replace("0:6", "1:5"))
    done = cofactor("train", "all.csv", "--config", "train.toml", "-q", "--out", "second")
    assert done.code == 0, done.err
    done = cofactor("train", "all.csv", "--from", "run", "-q", "--out", "third")
    assert done.code == 0, done.err
    first, second, third = (read_facts(name)["recipe"] for name in ("run", "second", "third"))
    assert first["kind"] == "DPSGLD"
    assert first == second == third


def test_claim_that_cannot_be_proved_goes_without_a_budget(folder: Path, cofactor: Command) -> None:
    (folder / "train.toml").write_text('[recipe]\nkind = "ObjectivePerturbation"\nfactors = 2\n')
    deal = ("all.csv", "--split", "vertical", "--parties", 3, "--not-private", "-q")
    done = cofactor("train", *deal, "--config", "train.toml", "--test-fraction", 0.1, "--out", "run")
    assert done.code == 0, done.err
    assert "epsilon 1 is claimed" in done.out
    words = ("--recipe", "objective-perturbation", "--factors", 2)
    assert cofactor("train", *deal, *words, "--out", "second").code == 0
    assert cofactor("train", "all.csv", "--from", "run", "-q", "--out", "third").code == 0
    facts = [read_facts(name) for name in ("run", "second", "third")]
    assert {each["guarantee"]["holds"] for each in facts} == {False}
    assert facts[0]["recipe"] == facts[1]["recipe"] == facts[2]["recipe"]
    refused = cofactor("train", "all.csv", "--from", "run", "--epsilon", 1, "-q", "--out", "fourth")
    assert (refused.code, "takes no budget" in refused.err) == (2, True)


@pytest.mark.parametrize(("name", "kind"), choose.classes().items())
def test_table_names_every_recipe_by_its_class(name: str, kind: type) -> None:
    wish = Wish(recipe=RecipeWish(table={"kind": kind.__name__}, where="train.toml [recipe]"))
    assert choose.is_federated([Path("one.csv")], wish) is (name != "pooled")


def test_delta_is_far_below_one_in_so_many_units() -> None:
    def delta(ratings: int, stated: float | None = None) -> float:
        facts = Facts(
            split="vertical",
            parties=("a",),
            users=(100,),
            items=(9,),
            ratings=(ratings,),
            scale=Scale(1, 5),
            shared_ids=np.arange(100),
            catalogue=np.arange(9),
        )
        budget = Budget(epsilon=1, delta=stated or 1e-6, unit="rating")
        return with_usual_delta(budget, facts, BudgetWish(epsilon=1, delta=stated)).delta

    assert delta(5_000) == 1e-6
    assert delta(1_000_000) == 1e-7
    assert delta(25_000_000) == 4e-9
    assert delta(1_050_000) == 9e-8, "rounded down"
    assert delta(1_000_000, stated=1e-5) == 1e-5


def test_all_runs_on_a_file_share_one_budget(folder: Path, cofactor: Command) -> None:
    assert cofactor("train", *SERVICES, *STEPS, "--out", "first").code == 0
    before = {path.name: path.read_bytes() for path in folder.glob("*.ledger")}
    again = cofactor("train", *SERVICES, *STEPS, "--out", "second")
    assert again.code == 1
    assert "Nothing was released" in again.err
    assert re.search(r"Left: books\.csv has epsilon 0(\.0\d*)? of 2, films\.csv", again.err)
    assert "cofactor budget FILE --epsilon 8 --delta 1e-06 --unit rating" in again.err
    assert {path.name: path.read_bytes() for path in folder.glob("*.ledger")} == before
    assert not (folder / "second").exists()
    assert not (folder / "second.unfinished").exists()


def test_larger_budget_opened_beforehand_serves_two_runs(folder: Path, cofactor: Command) -> None:
    for file in SERVICES[:3]:
        assert cofactor("budget", file, "--epsilon", 5, "--delta", "1e-6", "--unit", "rating").code == 0
    assert cofactor("train", *SERVICES, *STEPS, "--out", "first").code == 0
    with (folder / "films.csv").open("a") as grown:
        grown.write("u1,i-new,4\nu2,i-new,3\n")
    changed = cofactor("train", *SERVICES, *STEPS, "--out", "second")
    assert (changed.code, "--newer-data" in changed.err) == (2, True)
    done = cofactor("train", *SERVICES[:3], "--from", "first", "-q", "--out", "second")
    assert done.code == 0, done.err
    first, second = read_facts("first"), read_facts("second")
    assert first["recipe"] == second["recipe"]
    assert second["data"]["ratings"] == first["data"]["ratings"] + 2
    assert Ledger.open("films.csv.ledger", fingerprint=None).count > Ledger.open("books.csv.ledger").count
    assert 2 < Ledger.open("books.csv.ledger").spent().epsilon < 4
    shown = cofactor("budget", "films.csv", "--json").json
    assert (shown["data_unchanged"], len(shown["runs"])) == (True, 2)
    third = cofactor("train", *SERVICES[:3], "--from", "second", "--epsilon", 0.5, "-q", "--out", "third")
    assert third.code == 0, third.err
    assert read_facts("third")["together"]["budget"]["epsilon"] == 0.5


def test_training_again_from_a_simulation_takes_one_file(folder: Path, cofactor: Command) -> None:
    words = ("all.csv", "--split", "vertical", "--parties", 3, "--epsilon", 2, "--scale", "0:6")
    assert cofactor("train", *words, *STEPS, "--seed", 8, "--out", "first").code == 0
    done = cofactor("train", "all.csv", "--from", "first", "-q", "--out", "second")
    assert done.code == 0, done.err
    first, second = read_facts("first"), read_facts("second")
    for key in ("recipe", "seed", "data"):
        assert first[key] == second[key]
    assert second["together"]["simulated"] is True


@pytest.mark.slow
def test_training_again_from_a_run_without_ratings_needs_no_scale(folder: Path, cofactor: Command) -> None:
    lines = [line.rpartition(",")[0] for line in worlds.FILES["all.csv"].splitlines()]
    (folder / "clicks.csv").write_text("\n".join(lines) + "\n")
    words = ("clicks.csv", "--parties", 3, "--split", "horizontal", "--recipe", "shared-biases", "-q")
    assert cofactor("train", *words, "--epsilon", 2, "--out", "first").code == 0
    done = cofactor("train", "clicks.csv", "--from", "first", "-q", "--out", "second")
    assert done.code == 0, done.err
    assert read_facts("second")["data"]["scale"] == "implicit"


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Press Ctrl-C after the second round, until told to stop that."""
    with monkeypatch.context() as patched:

        def stop(_: object, event: Progress) -> None:
            if event.step == 2:
                raise KeyboardInterrupt

        patched.setattr(ProgressLine, "__call__", stop)
        yield patched


def test_stopped_training_goes_on_where_it_was(folder: Path, cofactor: Command, stopping: Any) -> None:
    words = ("train", *SERVICES, *STEPS, "--test-fraction", 0.1, "--out", "runs/first")
    stopped = cofactor(*words)
    assert stopped.code == 130
    [line] = stopped.err.splitlines()
    assert line.endswith(f"Go on with: cofactor {' '.join(map(str, words))} --resume")
    assert names(folder / "runs") == ["first.unfinished"]
    stopping.undo()
    spent = Ledger.open("books.csv.ledger").spent().epsilon
    assert 0 < spent < 2
    refused = cofactor(*words)
    assert (refused.code, "--resume" in refused.err, "--force" in refused.err) == (2, True, True)
    done = cofactor(*words, "--resume")
    assert done.code == 0, done.err
    assert names(folder / "runs") == ["first"]
    assert cofactor("verify", "runs/first", "--ledger", "books.csv").code == 0
    assert Ledger.open("books.csv.ledger").spent().epsilon <= 2
    assert len(cofactor("budget", "books.csv", "--json").json["runs"]) == 1


def test_discarded_training_leaves_what_it_has_spent(folder: Path, cofactor: Command, stopping: Any) -> None:
    words = ("train", *SERVICES, *STEPS, "--out", "run")
    assert cofactor(*words).code == 130
    stopping.undo()
    spent = Ledger.open("books.csv.ledger").spent().epsilon
    anew = cofactor(*words, "--force")
    assert (anew.code, "Nothing was released" in anew.err) == (1, True)
    assert Ledger.open("books.csv.ledger").spent().epsilon == spent
    assert not (folder / "run.unfinished").exists()


def test_resuming_with_other_settings_is_refused_and_loses_nothing(
    folder: Path, cofactor: Command, stopping: Any
) -> None:
    words = ("train", *SERVICES, *STEPS, "--out", "run")
    assert cofactor(*words).code == 130
    stopping.undo()
    other = cofactor(*words, "--resume", "--seed", 5)
    assert (other.code, "differs in seed" in other.err) == (2, True)
    assert "Go on with" not in other.err
    assert cofactor(*words, "--resume").code == 0


def test_folder_that_is_no_training_is_never_cleared_away(folder: Path, cofactor: Command) -> None:
    (folder / "run.unfinished").mkdir()
    (folder / "run.unfinished" / "thesis.txt").write_text("precious")
    done = cofactor("train", *SERVICES, *STEPS, "--out", "run", "--force")
    assert (done.code, "in the way" in done.err) == (2, True)
    assert (folder / "run.unfinished" / "thesis.txt").exists()


def test_resumed_progress_is_timed_from_where_it_began(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([1000.0, 1000.0, 1010.0])
    monkeypatch.setattr("time.monotonic", lambda: next(seconds))
    line = ProgressLine()
    line(Progress("round", 50, 100))
    line(Progress("round", 60, 100))
    assert capsys.readouterr().err.splitlines() == ["round 50/100", "round 60/100  ~40 s left"]


def test_json_is_all_that_is_printed(folder: Path, cofactor: Command) -> None:
    done = cofactor("train", *SERVICES, *STEPS[:-1], "--out", "run", "--json")
    assert done.err == ""
    assert json.loads(done.out)["scores"] == {}
    assert set(done.json["parties"]) == {"books", "films", "music"}


def test_delta_that_follows_from_the_data_is_the_run_s(
    folder: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tiny(budget: Budget, facts: Facts, asked: BudgetWish) -> Budget:
        assert (facts.rating_count, asked.delta) == (1_200, None)
        return replace(budget, delta=1e-8)

    monkeypatch.setattr("cofactor.cli.choose.with_usual_delta", tiny)
    assert cofactor("train", *SERVICES, *STEPS, "--out", "run").code == 0
    assert read_facts("run")["guarantee"]["delta"] == 1e-8
