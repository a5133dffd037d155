"""`cofactor plan` as people and programs call it."""

from pathlib import Path
from typing import Any

import pytest

Command = Any
BASE = ["plan", "--delta", "1e-6", "--rounds", "10"]
SIZES = {"--users": 3000, "--items": 400, "--ratings": 90_000}


def of_recipe(name: str = "horizontal-mf", *, without: str = "") -> list[object]:
    words = [word for option, size in SIZES.items() if option != without for word in (option, size)]
    return ["plan", "--recipe", name, "--epsilon", 2, "--delta", "1e-6", *words]


def test_plan_finds_noise_for_a_budget(cofactor: Command) -> None:
    done = cofactor(*BASE, "--epsilon", 2, "--sampling", 0.1, "--users", 30_000, "--numbers", 1000, "--json")
    assert done.code == 0
    assert 1.98 <= done.json["epsilon"] <= 2
    mechanism = done.json["releases"][0]["mechanism"]
    assert mechanism["kind"] == "SampledGaussian"
    assert mechanism["noise_multiplier"] > 0.5
    assert done.json["by_round"][-1] == {"round": 10, "epsilon": done.json["epsilon"]}


def test_plan_finds_epsilon_for_a_noise(cofactor: Command) -> None:
    done = cofactor(*BASE, "--noise-multiplier", 10, "--json")
    assert (done.code, done.json["holds"]) == (0, True)
    assert 1.3 < done.json["epsilon"] < 1.5


def test_plan_refuses_noise_that_is_too_little_for_the_budget(cofactor: Command) -> None:
    done = cofactor(*BASE, "--noise-multiplier", 1, "--epsilon", 2)
    assert done.code == 1
    assert "ABOVE the budget" in done.out


def test_plan_says_in_words_what_it_means(cofactor: Command) -> None:
    done = cofactor(*BASE, "--epsilon", 20, "--parties", 2, "--users", 100)
    assert done.code == 0
    for words in ("right at most", "epsilon by round", "traffic", "of two parties", "next to nothing"):
        assert words in done.out
    assert done.err == ""


def test_plan_bends_the_coins_of_the_poisson_binomial_mechanism(cofactor: Command) -> None:
    words = [
        "--epsilon",
        "1",
        "--mechanism",
        "poisson-binomial",
        "--users",
        "600",
        "--numbers",
        "1000",
        "--json",
    ]
    done = cofactor(*BASE, *words)
    assert 0.99 <= done.json["epsilon"] <= 1
    assert 0 < done.json["releases"][0]["mechanism"]["theta"] < 0.25


def test_every_mechanism_can_be_planned(cofactor: Command) -> None:
    from cofactor.cli.plan import MECHANISMS

    for name in MECHANISMS:
        crowd = ("--users", 1000, "--numbers", 1, "--bound", 5)
        done = cofactor(*BASE, "--epsilon", 1, "--mechanism", name, *crowd, "--json")
        assert 0.99 <= done.json["epsilon"] <= 1, name


def test_each_partys_users_hide_each_other_only(cofactor: Command) -> None:
    crowd = (
        "--mechanism",
        "poisson-binomial",
        "--users",
        900,
        "--numbers",
        9,
        "--parties",
        3,
        "--epsilon",
        1,
    )
    apart = cofactor(*BASE, *crowd, "--json").json["releases"][0]["mechanism"]
    together = cofactor(*BASE, *crowd, "--shared-users", "--json").json["releases"][0]["mechanism"]
    assert (apart["participants"], together["participants"]) == (300, 900)


def test_a_rating_is_at_one_party_even_if_its_user_is_at_several(cofactor: Command) -> None:
    words = ("--noise-multiplier", 10, "--parties", 4, "--shared-users", "--json")
    alone = cofactor(*BASE, "--noise-multiplier", 10, "--json").json["epsilon"]
    assert cofactor(*BASE, *words, "--unit", "rating").json["epsilon"] == alone
    assert cofactor(*BASE, *words, "--unit", "user").json["epsilon"] > 1.5 * alone


def test_noise_that_proves_nothing_is_null_for_programs(cofactor: Command) -> None:
    done = cofactor(*BASE, "--noise-multiplier", 0.01, "--epsilon", 2, "--json")
    assert (done.code, done.json["epsilon"], done.json["by_round"][0]["epsilon"]) == (1, None, None)
    assert "epsilon inf" in cofactor(*BASE, "--noise-multiplier", 0.01, "--epsilon", 2).out


def test_recipe_is_planned_at_its_defaults(cofactor: Command) -> None:
    done = cofactor(*of_recipe(), "--parties", 3, "--json")
    assert (done.code, done.err) == (0, "")
    assert (done.json["holds"], done.json["budget"]["unit"]) == (True, "user")
    assert 1.9 < done.json["epsilon"] <= 2
    told = cofactor(*of_recipe(), "--parties", 3)
    assert (told.code, told.err) == (0, "")
    for words in ("right at most", "epsilon by round", "traffic"):
        assert words in told.out
    assert told.out.count("epsilon by round") == 1


def test_baseline_of_the_literature_can_be_planned(cofactor: Command) -> None:
    done = cofactor(*of_recipe("dp-sgld"), "--json")
    assert (done.code, done.json["holds"], done.json["budget"]["unit"]) == (0, True, "rating")


def test_recipe_whose_claim_cannot_be_proved_is_not_planned(cofactor: Command) -> None:
    done = cofactor(*of_recipe("objective-perturbation"))
    assert (done.code, "recipe must be one of secure-als" in done.err) == (2, True)


BY_HAND = {
    "--rounds": 10,
    "--noise-multiplier": 3,
    "--mechanism": "laplace",
    "--bound": 2,
    "--sampling": 0.1,
    "--steps": 2,
    "--numbers": 7,
    "--trials": 8,
    "--theta": 0.1,
    "--shared-users": None,
}


@pytest.mark.parametrize("option", BY_HAND)
def test_recipe_refuses_what_would_make_a_schedule_by_hand(option: str, cofactor: Command) -> None:
    value = BY_HAND[option]
    done = cofactor(*of_recipe(), option, *([] if value is None else [value]))
    assert (done.code, done.out) == (2, "")
    assert f"Leave out {option}, or --recipe." in done.err


def test_all_refused_options_are_named_at_once(cofactor: Command) -> None:
    done = cofactor(*of_recipe(), "--steps", 2, "--rounds", 9)
    assert "Leave out --rounds, --steps, or --recipe." in done.err


def test_public_items_are_part_of_a_recipes_plan(cofactor: Command, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("item,colour\n" + "".join(f"{k},c{k % 8}\n" for k in range(80)))
    plain, public = (
        cofactor(*of_recipe("vertical-taste"), "--json", *more).json["total_bytes"]
        for more in ((), ("--public-items", table))
    )
    assert public > plain, "tastes are told in more directions"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*of_recipe(), "--public-items", "auto"], "a plan reads no ratings"),
        ([*of_recipe(), "--public-items", "nosuch.csv"], "no such file"),
        ([*BASE, "--epsilon", 2, "--public-items", "table.csv"], "only a recipe can use them"),
    ],
)
def test_public_items_that_a_plan_cannot_use_are_refused(
    words: list[object], message: str, cofactor: Command
) -> None:
    done = cofactor(*words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize("missing", SIZES)
def test_plan_of_a_recipe_needs_all_sizes(missing: str, cofactor: Command) -> None:
    done = cofactor(*of_recipe(without=missing))
    assert (done.code, done.out) == (2, "")
    assert "needs users, items and ratings" in done.err
