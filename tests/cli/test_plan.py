"""`cofactor plan` as people and programs call it."""

from typing import Any

Command = Any
BASE = ["plan", "--delta", "1e-6", "--rounds", "10"]


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
