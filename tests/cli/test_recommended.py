"""What somebody gets on the command line who names no recipe, and the other recipes that win."""

import re
from pathlib import Path
from typing import Any

import pytest

from cofactor.cli import choose
from cofactor.cli.settings import RecipeWish
from cofactor.federation.folder import read_facts
from cofactor.federation.run import Run
from cofactor.recipes.central import CentralDPSGD
from cofactor.recipes.projected import ProjectedMF
from cofactor.recipes.secure_als import SecureALS
from tests.cli import worlds

Command = Any
SHOPS = ("north.csv", "south.csv", "west.csv", "--split", "horizontal")
DEVICES = ("all.csv", "--split", "on-device")
PRIVATE = ("--epsilon", 4, "-q", "--out", "run")
PUBLIC = ("--public-items", "auto", "--items", "table.csv")
ONE_PARTY = ("all.csv", "--split", "horizontal", "--parties", 1)
SIZES = ("--users", 3000, "--items", 400, "--ratings", 90_000)
PLAN = ("plan", "--epsilon", 2, "--delta", "1e-6", *SIZES)
FEATURES = r"Item features from table.csv \(4 columns: sequel, genre \(3\); sha256 [0-9a-f]{12}\): public"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return worlds.write(tmp_path)


# Without a name.


@pytest.mark.parametrize("split", ["on-device", "horizontal"])
def test_without_a_name_devices_and_parties_train_secure_als(split: Any) -> None:
    assert choose.chosen_recipe(RecipeWish(), split, None, 3) == SecureALS()
    assert choose.chosen_recipe(RecipeWish(numbers={"factors": 2}), split, None, 3) == SecureALS(factors=2)


def test_devices_are_trained_with_what_is_public_about_items(folder: Path, cofactor: Command) -> None:
    done = cofactor("train", *DEVICES, *PUBLIC, "--test-fraction", 0.2, *PRIVATE)
    assert done.code == 0, done.err
    facts = read_facts("run")
    assert facts["recipe"]["kind"] == "SecureALS"
    assert facts["recipe"]["public_items"]["source"] == "table.csv"
    assert "60 devices (on-device, make-believe)" in done.out
    assert re.search(FEATURES, done.out), "the guarantee lists them"
    assert list(facts["scores"]) == ["user_mean", "personal_ridge", "private", "pooled"]
    assert 3.9 < facts["guarantee"]["epsilon"] <= 4
    assert not list(folder.glob("*.ledger")), "a simulation spends nobody's budget"
    one = cofactor("recommend", "run", "--user", "u3", "-n", 2, "--json").json["recommendations"][0]
    assert [each["item"] for each in one["items"]] == [
        best.item for best in Run.load("run").recommend("u3", 2)
    ]
    assert all(1 <= each["rating"] <= 5 for each in one["items"])


def test_parties_share_noise_and_everything_is_verified(folder: Path, cofactor: Command) -> None:
    done = cofactor("train", *SHOPS, *PUBLIC, "--scale", "1:5", "--test-fraction", 0.1, *PRIVATE)
    assert done.code == 0, done.err
    facts = read_facts("run")
    assert facts["recipe"]["kind"] == "SecureALS"
    assert facts["recipe"]["aggregate"] == {"kind": "SecureSum", "dropout": 0.3, "colluding": 0.1}
    assert (facts["guarantee"]["holds"], facts["guarantee"]["unit"]) == (True, "user")
    assert {"alone", "personal_ridge", "private"} <= set(facts["scores"])
    assert "exactly how many users and ratings each party has" in done.out
    assert re.search(r"other parties collude: epsilon \d", done.out)
    assert re.search(FEATURES, done.out)
    assert cofactor("verify", "run", "--ledger", "north.csv").code == 0
    again = cofactor("train", *SHOPS[:3], "--from", "run", "-q", "--out", "second")
    assert (again.code, "--public-items table.csv" in again.err) == (2, True)


@pytest.mark.slow
def test_devices_with_a_file_each_do_not_tell_how_many_ratings_they_have(
    folder: Path, cofactor: Command
) -> None:
    phones = [f"phone{number}.csv" for number in range(5)]
    for number, name in enumerate(phones):
        (folder / name).write_text(worlds.text(worlds.RATINGS.where(worlds.RATINGS.users == number)))
    done = cofactor("train", *phones, "--split", "on-device", "--scale", "1:5", *PRIVATE)
    assert done.code == 0, done.err
    assert "about how many ratings a device has" in done.out
    assert "exactly how many" not in done.out
    facts = read_facts("run")
    assert facts["recipe"]["kind"] == "SecureALS"
    assert {own["ratings"] for own in facts["together"]["parties"].values()} == {50}
    assert cofactor("verify", "run", "--ledger", phones[0]).code == 0


@pytest.mark.parametrize("who", [DEVICES, SHOPS], ids=["devices", "parties"])
def test_rows_that_only_tell_that_something_happened_are_ranked(
    who: tuple[str, ...], cofactor: Command
) -> None:
    done = cofactor("train", *who, "--implicit", "--test-fraction", 0.2, *PRIVATE)
    assert done.code == 0, done.err
    facts = read_facts("run")
    assert (facts["recipe"]["kind"], facts["data"]["scale"]) == ("SecureALS", "implicit")
    assert len(facts["recipe"]["item_rounds"]) == 1
    assert {"popularity", "released counts", "private"} <= set(facts["scores"])
    one = cofactor("recommend", "run", "--user", "u3", "-n", 2, "--json").json["recommendations"][0]
    assert [each["rating"] for each in one["items"]] == [None, None]


@pytest.mark.parametrize("recipe", [(), ("--recipe", "shared-biases")])
def test_rounds_are_chosen_by_the_recipe_and_said_in_a_file(
    recipe: tuple[str, ...], folder: Path, cofactor: Command
) -> None:
    refused = cofactor("train", *DEVICES, *recipe, "--rounds", 3, *PRIVATE)
    assert refused.code == 2
    assert 'has no rounds. Did you mean "item_rounds"?' in refused.err
    assert "Leave out --rounds; what has no option is said in a file (train --config)." in refused.err
    kind = "SharedBiases" if recipe else "SecureALS"
    rounds = "[[recipe.item_rounds]]\nshare = 0.6\ncount_weight = 1\n" * 2
    (folder / "train.toml").write_text(f'[recipe]\nkind = "{kind}"\n{rounds}')
    done = cofactor("train", *DEVICES, "--config", "train.toml", *PRIVATE)
    assert done.code == 0, done.err
    found = read_facts("run")["recipe"]
    assert (found["kind"], [each["share"] for each in found["item_rounds"]]) == (kind, [0.6, 0.6])


def test_single_ratings_are_protected_by_the_recipe_for_them(folder: Path, cofactor: Command) -> None:
    refused = cofactor("train", *SHOPS, "--recipe", "secure-als", "--unit", "rating", *PRIVATE)
    assert (refused.code, "SecureALS cannot protect single ratings" in refused.err) == (1, True)
    assert not list(folder.glob("*.ledger"))
    done = cofactor("train", *SHOPS, "--unit", "rating", *PRIVATE)
    assert done.code == 0, done.err
    assert read_facts("run")["recipe"]["kind"] == "PersonalBiases"


# With one.


@pytest.mark.slow
def test_shared_biases_are_secure_als_without_factors(cofactor: Command) -> None:
    done = cofactor("train", *SHOPS, "--recipe", "shared-biases", "--scale", "1:5", *PRIVATE)
    assert done.code == 0, done.err
    facts = read_facts("run")
    assert (facts["recipe"]["kind"], facts["guarantee"]["holds"]) == ("SharedBiases", True)
    assert {each["factors"] for each in facts["recipe"]["item_rounds"]} == {0}
    refused = cofactor("train", *DEVICES, "--recipe", "shared-biases", "--factors", 2, "--epsilon", 1)
    assert (refused.code, "SharedBiases has no factors" in refused.err) == (2, True)


def test_projected_gradients_are_for_devices(cofactor: Command) -> None:
    words = ("--recipe", "projected-mf", "--factors", 2, "--rounds", 2)
    done = cofactor("train", *DEVICES, *words, "--test-fraction", 0.2, *PRIVATE)
    assert done.code == 0, done.err
    facts = read_facts("run")
    assert (facts["recipe"]["kind"], facts["together"]["rounds"]) == ("ProjectedMF", 2)
    assert facts["guarantee"]["epsilon"] <= 4
    refused = cofactor("train", *SHOPS, *words, *PRIVATE)
    assert (refused.code, "ProjectedMF is for on-device federations" in refused.err) == (2, True)


def test_a_party_that_is_trusted_trains_alone(cofactor: Command) -> None:
    words = ("--recipe", "central-dpsgd", "--factors", 2, "--rounds", 3)
    done = cofactor("train", *ONE_PARTY, *words, "--test-fraction", 0.1, *PRIVATE)
    assert done.code == 0, done.err
    facts = read_facts("run")
    assert (facts["recipe"]["kind"], facts["guarantee"]["holds"]) == ("CentralDPSGD", True)
    assert "which trains and sees all of their ratings" in done.out
    refused = cofactor("train", *SHOPS, *words, "--epsilon", 4, "--out", "second")
    assert (refused.code, "for one party that holds all ratings" in refused.err) == (1, True)


@pytest.mark.parametrize(
    ("name", "split", "parties", "wanted"),
    [
        ("projected-mf", "on-device", 1, ProjectedMF.as_published()),
        ("central-dpsgd", "horizontal", 1, CentralDPSGD.as_published()),
    ],
)
def test_settings_of_the_papers_can_be_had(name: str, split: Any, parties: int, wanted: Any) -> None:
    assert choose.chosen_recipe(RecipeWish(recipe=name, published=True), split, None, parties) == wanted


def test_the_setting_of_a_paper_is_trained(cofactor: Command) -> None:
    done = cofactor("train", *ONE_PARTY, "--recipe", "central-dpsgd", "--published", *PRIVATE)
    assert done.code == 0, done.err
    assert read_facts("run")["recipe"]["factors"] == CentralDPSGD.as_published().factors


def test_all_recipes_with_a_published_setting_are_named(cofactor: Command) -> None:
    done = cofactor("train", *DEVICES, "--recipe", "secure-als", "--published", *PRIVATE)
    assert done.code == 2
    assert "SecureALS has no published setting" in done.err
    named = done.err.partition("goes with ")[2].rstrip(".\n").replace(" or ", ", ").split(", ")
    # HDPMF's is a simulation of per-rating steps: for `reproduce` only.
    able = [name for name, kind in choose.classes().items() if hasattr(kind, "as_published")]
    assert named == [name for name in able if name != "hdpmf"]


# Planned.


def test_plan_names_all_recipes_of_which_an_epsilon_can_be_proved(cofactor: Command) -> None:
    able = [
        name
        for name, kind in choose.classes().items()
        if hasattr(kind, "participant") and not hasattr(kind, "not_private")
    ]
    assert list(choose.PLANNED) == able
    told = re.sub(r"[^a-z-]+", " ", cofactor("plan", "--help").out)
    assert "secure-als shared-biases vertical-taste" in told
    assert all(f" {name} " in told for name in able)


@pytest.mark.parametrize("name", ["secure-als", "shared-biases"])
def test_one_recipe_is_planned_for_devices_or_for_parties(name: str, cofactor: Command) -> None:
    devices, parties = (
        cofactor(*PLAN, "--recipe", name, *more, "--json").json for more in ((), ("--parties", 40))
    )
    for told in (devices, parties):
        assert told["holds"]
        assert 1.98 < told["epsilon"] <= 2
        assert told["budget"]["unit"] == "user"
    assert (devices["sum"]["who"], devices["sum"]["parties"]) == ("devices", 3000)
    assert (parties["sum"]["who"], parties["sum"]["parties"]) == ("parties", 40)
    assert devices["total_bytes"] == pytest.approx(75 * parties["total_bytes"], rel=0.01)


def test_what_is_public_about_items_changes_the_plan(cofactor: Command) -> None:
    plain, public = (
        cofactor(*PLAN, "--recipe", "secure-als", *more, "--json").json["bytes_per_round"]
        for more in ((), ("--public-items", "table.csv"))
    )
    assert public > plain, "tastes spread in more directions"


def test_other_recipes_are_planned_for_whom_they_serve(cofactor: Command) -> None:
    projected = cofactor(*PLAN, "--recipe", "projected-mf", "--json").json
    assert projected["releases"][0]["mechanism"]["kind"] == "PoissonBinomial"
    refused = cofactor(*PLAN, "--recipe", "projected-mf", "--parties", 40)
    assert (refused.code, "every user is a device of its own" in refused.err) == (2, True)
    central = cofactor(*PLAN, "--recipe", "central-dpsgd", "--json").json
    assert (central["holds"], central["sum"]) == (True, None)
    refused = cofactor(*PLAN, "--recipe", "central-dpsgd", "--parties", 40)
    assert (refused.code, "for one party that holds all ratings" in refused.err) == (1, True)


def test_plan_without_rounds_proposes_the_recommended_recipe(cofactor: Command) -> None:
    done = cofactor("plan", "--epsilon", 2, "--delta", "1e-6")
    assert (done.code, "--recipe secure-als" in done.err) == (2, True)
    done = cofactor(*PLAN, "--recipe", "secure-als", "--rounds", 3)
    assert (done.code, "Leave out --rounds, or --recipe." in done.err) == (2, True)
