"""Sums of which nobody sees the parts, as people ask for them: options, files of settings, and plans."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cofactor.cli import choose
from cofactor.cli.settings import RecipeWish
from cofactor.cli.sums import SumNeeds
from cofactor.data.ratings import Scale
from cofactor.errors import ConfigError
from cofactor.federation.federation import Federation
from cofactor.federation.folder import read_facts
from cofactor.federation.party import Party
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.sums import AnySum, IdealSum, PlainSum, SecureSum
from cofactor.recipes.train import train
from tests.cli import worlds

Command = Any
SHOPS = ("north.csv", "south.csv", "west.csv", "--split", "horizontal", "--epsilon", "2")
SMALL = ("--recipe", "horizontal-mf", "--factors", "2", "--rounds", "2", "-q")
SIZES = ("--users", 3000, "--items", 400, "--ratings", 90_000)
PLAN = ("plan", "--epsilon", 2, "--delta", "1e-6", *SIZES)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return worlds.write(tmp_path)


def asked(recipe: str | None = None, split: str = "horizontal", parties: int = 10, **said: Any) -> AnySum:
    about = RecipeWish(recipe=recipe, **said)
    found: AnySum = choose.chosen_recipe(about, split, None, parties).aggregate  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({}, PlainSum()),
        ({"sum": "plain"}, PlainSum()),
        ({"sum": "secure"}, SecureSum(dropout=0.2, colluding=0.1)),
        ({"sum": "secure", "dropout": 0.4}, SecureSum(dropout=0.4, colluding=0.1)),
        ({"sum": "secure", "dropout": 0.0, "colluding": 0.3}, SecureSum(dropout=0.0, colluding=0.3)),
        ({"sum": "ideal"}, IdealSum()),
        ({"sum": "ideal", "colluding": 0.2}, IdealSum(colluding=0.2)),
    ],
)
def test_options_say_how_answers_are_added_up(said: dict[str, Any], wanted: AnySum) -> None:
    assert asked("horizontal-mf", **said) == wanted


@pytest.mark.parametrize(
    ("recipe", "split"),
    [
        (None, "on-device"),
        (None, "horizontal"),
        ("shared-biases", "horizontal"),
        ("on-device-mf", "on-device"),
        ("projected-mf", "on-device"),
    ],
)
def test_what_is_not_said_about_a_sum_stays_as_the_recipe_has_it(recipe: str | None, split: str) -> None:
    def found(**said: Any) -> AnySum:
        return asked(recipe, split, **said)

    assert found() == found(sum="secure") == SecureSum(dropout=0.3, colluding=0.1)
    assert found(dropout=0.5) == SecureSum(dropout=0.5, colluding=0.1)
    assert found(colluding=0.2) == SecureSum(dropout=0.3, colluding=0.2)
    assert found(sum="ideal") == IdealSum(dropout=0.3, colluding=0.1)
    assert found(sum="plain") == PlainSum()


def test_published_setting_takes_a_sum_too() -> None:
    recipe = choose.chosen_recipe(RecipeWish(published=True, sum="secure"), "horizontal", None, 9)
    assert (recipe.aggregate, recipe.local_steps) == (SecureSum(), 10)


def test_sum_that_so_many_parties_cannot_make_is_told_by_their_number() -> None:
    with pytest.raises(ConfigError, match="Of 3 parties only 3 may be left, and 2 may collude"):
        asked(parties=3, dropout=0.2, colluding=0.7)
    asked(parties=30, dropout=0.2, colluding=0.7)


def test_all_recipes_that_add_up_are_named() -> None:
    assert choose.able_to_sum() == [
        "secure-als",
        "shared-biases",
        "vertical-taste",
        "personal-biases",
        "vertical-mf",
        "horizontal-mf",
        "on-device-mf",
        "projected-mf",
        "multi-view",
        "hdpmf",
    ]


def test_secure_sum_is_trained_and_its_assumptions_are_in_the_guarantee(
    folder: Path, cofactor: Command
) -> None:
    done = cofactor("train", *SHOPS, "--sum", "secure", *SMALL, "--test-fraction", 0.1, "--out", "run")
    assert done.code == 0, done.err
    facts = read_facts("run")
    assert facts["recipe"]["aggregate"] == {"kind": "SecureSum", "dropout": 0.2, "colluding": 0.1}
    assert facts["guarantee"]["holds"] is True
    assert "masks hide each party's part" in done.out
    assert re.search(r"other parties collude: epsilon \d", done.out)
    assert cofactor("verify", "run", "--ledger", "north.csv").code == 0


def test_simulated_sum_makes_no_promise(folder: Path, cofactor: Command) -> None:
    deal = ("all.csv", "--split", "horizontal", "--parties", 4, "--epsilon", 2)
    done = cofactor("train", *deal, "--sum", "ideal", *SMALL, "--out", "run")
    assert done.code == 0, done.err
    assert read_facts("run")["guarantee"]["holds"] is False
    assert "IdealSum simulates a secure sum" in done.out


def test_simulated_sum_is_not_for_files_with_ledgers(folder: Path, cofactor: Command) -> None:
    before = sorted(folder.rglob("*"))
    done = cofactor("train", *SHOPS, "--sum", "ideal", *SMALL, "--out", "runs/run")
    assert (done.code, "IdealSum simulates a secure sum" in done.err) == (1, True)
    assert sorted(folder.rglob("*")) == before


TOML = """
[recipe]
kind = "HorizontalMF"
factors = 2
rounds = 2

[recipe.aggregate]
kind = "SecureSum"
dropout = 0.3

[budget]
epsilon = 2
"""


def test_file_of_settings_and_earlier_run_name_a_sum(folder: Path, cofactor: Command) -> None:
    (folder / "train.toml").write_text(TOML)
    deal = ("all.csv", "--split", "horizontal", "--parties", 4)
    done = cofactor("train", *deal, "--config", "train.toml", "-q", "--out", "run")
    assert done.code == 0, done.err
    sum_of = read_facts("run")["recipe"]["aggregate"]
    assert sum_of == {"kind": "SecureSum", "dropout": 0.3, "colluding": 0.1}
    done = cofactor("train", "all.csv", "--from", "run", "-q", "--out", "second")
    assert done.code == 0, done.err
    assert read_facts("second")["recipe"] == read_facts("run")["recipe"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"SecureSum"', '"SecureSun"', 'Did you mean "SecureSum"'),
        ("dropout", "dropuot", 'Did you mean "dropout"'),
        ("dropout = 0.3", "dropout = 1.3", r"\[recipe\]\.aggregate: dropout must be at least 0 and below 1"),
    ],
)
def test_mistake_about_a_sum_in_a_file_of_settings_is_told(
    old: str, new: str, message: str, folder: Path, cofactor: Command
) -> None:
    (folder / "train.toml").write_text(TOML.replace(old, new))
    done = cofactor("train", *SHOPS[:5], "--config", "train.toml", "-q")
    assert (done.code, bool(re.search(message, done.err))) == (2, True), done.err


def test_option_beside_a_file_that_says_how_to_train_is_a_contradiction(
    folder: Path, cofactor: Command
) -> None:
    (folder / "train.toml").write_text(TOML)
    words = ("--config", "train.toml", "--sum", "secure", "--dropout", 0.1)
    done = cofactor("train", *SHOPS[:5], *words)
    assert (done.code, "Leave out --sum, --dropout." in done.err) == (2, True)


def test_plan_says_what_a_secure_sum_needs_and_costs(cofactor: Command) -> None:
    words = ("--recipe", "horizontal-mf", "--sum", "secure", "--parties", 40)
    done = cofactor(*PLAN, *words)
    assert (done.code, done.err) == (0, "")
    for said in (
        "item vectors: Skellam, noise_multiplier",
        "SecureSum of 40 parties: 32 must answer in every round, or its sum is not opened",
        "4 of them may collude, so that the sum of all has 1.11 times the variance of noise that is needed",
        "each shares keys with 39 others, about 44.6 kB both ways in each round besides the traffic above",
        "also against a coordinator that lies",
        "every party knows beforehand the public keys of the others",
    ):
        assert said in done.out
    assert "warning" not in done.out
    told = cofactor(*PLAN, *words, "--json").json["sum"]
    assert (told["kind"], told["parties"], told["fewest"], told["colluding"]) == ("SecureSum", 40, 32, 4)
    assert (told["neighbours"], told["simulated"]) == (39, False)
    assert told["key_bytes"] == 44_563
    assert told["noise"] == pytest.approx(40 / 36)


def test_plan_warns_of_sums_of_several_steps_and_claims_nothing_about_their_noise(cofactor: Command) -> None:
    words = ("--recipe", "horizontal-mf", "--sum", "secure", "--parties", 40, "--local-steps", 5)
    done = cofactor(*PLAN, *words)
    assert "warning: A round has 5 local steps" in done.out
    assert "32 must answer in every round" in done.out
    assert "may collude, so" not in done.out
    assert "it rests on this" not in done.out


def test_plan_of_a_plain_sum_needs_nothing(cofactor: Command) -> None:
    done = cofactor(*PLAN, "--recipe", "horizontal-mf", "--parties", 40, "--json")
    assert done.json["sum"] is None
    by_hand = cofactor("plan", "--delta", "1e-6", "--rounds", 10, "--noise-multiplier", 9, "--json")
    assert by_hand.json["sum"] is None


def test_plan_of_devices_speaks_of_the_real_sum(cofactor: Command) -> None:
    done = cofactor(*PLAN, "--recipe", "on-device-mf")
    assert (done.code, done.err) == (0, "")
    assert "SecureSum of 3,000 devices: 2,100 must answer" in done.out
    assert "simulated" not in done.out
    assert "local-reports" not in done.out
    tolerant = cofactor(*PLAN, "--recipe", "on-device-mf", "--dropout", 0.6, "--json").json["sum"]
    assert tolerant["fewest"] == 1_200
    assert "one that lies about who is left could see single parts" in tolerant["assumptions"][0]


def test_plan_of_coins_counts_those_of_all_devices(cofactor: Command) -> None:
    told = cofactor(*PLAN, "--recipe", "projected-mf", "--json").json
    # 2,100 must be left, of whom 300 may collude; what the others toss beyond that is not taken off again.
    assert told["releases"][0]["mechanism"]["participants"] == 1_800
    assert told["sum"]["noise"] == pytest.approx(3000 / 1800)


def test_plan_of_a_simulated_sum_says_that_it_promises_nothing(cofactor: Command) -> None:
    done = cofactor(*PLAN, "--recipe", "horizontal-mf", "--sum", "ideal", "--parties", 3)
    assert "the guarantee of a run would not hold" in done.out
    assert "one of them may collude" in done.out


def test_needs_of_one_party_are_none() -> None:
    assert SumNeeds.of(HorizontalMF().aggregate, 5, who="parties", shared=True) is None
    assert SumNeeds.of(SecureSum(), 1, who="parties", shared=True) is None
    two = SumNeeds.of(SecureSum(), 2, who="parties", shared=True)
    assert two is not None
    assert (two.noise, two.fewest, two.colluding) == (2.0, 2, 1)
    assert "each shares keys with 1 other, about 1.13 kB" in two.lines()[0]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_keys_take_about_as_much_as_the_plan_says(dropout: float) -> None:
    ratings, count = worlds.RATINGS, 20
    phones = [
        Party(name=f"p{user}", ratings=ratings.where(ratings.users == user).compact())
        for user in range(count)
    ]
    recipe = OnDeviceMF(factors=2, rounds=1, aggregate=SecureSum(dropout=dropout))
    run = train(recipe, Federation.on_device(phones, scale=Scale(1, 5)))
    assert run.together is not None
    sent = [json.loads(line) for line in run.together.transcript.splitlines()]
    keys = sum(
        each["bytes"]
        for each in sent
        if each.get("kind") in ("SumBegun", "SumStep")
        and "masked" not in each["protection"]
        and "p0" in (each["sender"], each["receiver"])
    )
    needs = SumNeeds.of(recipe.aggregate, count, who="devices", shared=True)
    assert needs is not None
    # Letters have heads of their own, which count where there is little else.
    assert needs.key_bytes == pytest.approx(keys, rel=0.15)
