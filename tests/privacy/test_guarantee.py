import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.errors import ConfigError
from cofactor.figures import percent, rounded_up
from cofactor.privacy import accountant
from cofactor.privacy.answers import RandomizedResponse
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.budget import Adjacency, Budget, Unit, odds
from cofactor.privacy.events import Event
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.mechanisms import DiscreteLaplace, Gaussian, Laplace, PoissonBinomial, SampledGaussian
from tests.privacy.making import bound_for

BUDGET = Budget(epsilon=2.0, delta=1e-6, unit="user")
EXACT = Budget(epsilon=2.0, delta=0.0, unit="user")


def event(mechanism: Any, *, count: int = 1, secure: bool = True, by: str = "north") -> Event:
    bound = bound_for(mechanism, size=1.0)
    return Event(
        what="item sums",
        by=by,
        to="coordinator",
        mechanism=mechanism,
        bound=bound,
        count=count,
        secure=secure,
    )


WHOLE = event(DiscreteLaplace(noise_multiplier=4.0), count=4)


def test_numbers_are_those_of_the_accountant() -> None:
    events = [event(Gaussian(noise_multiplier=5.0), count=2), event(Laplace(noise_multiplier=9.0))]
    found = Guarantee.of(events, BUDGET)
    spent = accountant.spent(events, 1e-6, unit="user")
    assert (found.epsilon, found.renyi, found.delta) == (spent.epsilon, spent.renyi, 1e-6)
    assert found.accountant is not None
    assert re.fullmatch(rf"{spent.method}, dp-accounting \d+\.\d+.*", found.accountant)
    assert found.odds == odds(spent.epsilon, 1e-6)
    assert (found.holds, found.releases, found.secure_noise) == (True, 3, True)


def test_guesser_is_right_as_often_as_the_formula_says() -> None:
    [whole] = [Guarantee.of([WHOLE], EXACT)]
    assert whole.epsilon == pytest.approx(1.0)
    assert whole.odds == pytest.approx(math.e / (1 + math.e))
    assert "at most 73.2% of the time" in str(whole)


def test_insecure_noise_breaks_the_guarantee_and_says_why() -> None:
    found = Guarantee.of([WHOLE, event(Laplace(noise_multiplier=4.0), secure=False)], EXACT)
    assert (found.holds, found.secure_noise) == (False, False)
    assert str(found).startswith("This guarantee does not hold. The noise of item sums by north came from")
    assert "InsecureRandom" in found.markdown()
    assert "cryptographic generator" not in str(found)


def test_more_than_the_budget_breaks_the_guarantee() -> None:
    found = Guarantee.of([WHOLE.times(3)], EXACT)
    assert not found.holds
    assert "above the 2 that the budget allows" in str(found)


def test_budget_spent_to_the_last_bit_holds_and_is_not_rounded_beyond() -> None:
    found = Guarantee.of([event(Laplace(noise_multiplier=10.0), count=20)], EXACT)
    assert found.holds
    assert "with epsilon 2 (the budget allows 2)" in str(found)


def test_infinite_epsilon_promises_nothing() -> None:
    found = Guarantee.of([event(Gaussian(noise_multiplier=5.0))], EXACT)
    assert (found.holds, found.epsilon, found.odds) == (False, None, None)
    assert "No finite epsilon" in str(found)
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["epsilon"] is None


def assumed(mechanism: Any) -> str:
    found = Guarantee.of([event(mechanism)], Budget(epsilon=9.0, delta=1e-6, unit="user"))
    return " ".join(f"{each.what}: {each.met}" for each in found.assumptions)


def test_real_numbers_are_assumed_harmless_and_whole_numbers_hardly_need_that() -> None:
    assert "Mironov 2012" in assumed(Gaussian(noise_multiplier=5.0))
    assert "1/16 to 1/32" in assumed(Laplace(noise_multiplier=5.0))
    for exact in (DiscreteLaplace(noise_multiplier=5.0), RandomizedResponse(choices=3, epsilon=1.0)):
        assert "Mironov" not in assumed(exact)
        assert "below 2^-60" in assumed(exact)


def test_bounds_are_an_assumption_of_every_release() -> None:
    assert "more than the bound in its record" in assumed(DiscreteLaplace(noise_multiplier=5.0))
    assert Guarantee.of([], BUDGET).assumptions == ()


def test_loss_distributions_assume_noise_that_was_fixed_beforehand() -> None:
    assert "looking at earlier results" in assumed(Gaussian(noise_multiplier=5.0))
    pure = Guarantee.of([event(DiscreteLaplace(noise_multiplier=5.0))], EXACT)
    assert not any("earlier results" in each.what for each in pure.assumptions)


def test_failures_paid_in_delta_are_named() -> None:
    paid = replace(event(Gaussian(noise_multiplier=5.0)), slack=1e-8)
    assert any("paid for in delta" in each.what for each in Guarantee.of([paid], BUDGET).assumptions)


def test_parties_without_common_users_are_named_as_an_assumption() -> None:
    events = [event(Gaussian(noise_multiplier=5.0), by=name) for name in ("north", "south")]
    apart = Guarantee.of(events, BUDGET, shared_units=False)
    assert "no user is at two of the 2 parties (north, south)" in [each.what for each in apart.assumptions]
    assert "no user is at two" not in str(Guarantee.of(events, BUDGET))


def test_odds_between_two_sets_of_ratings_are_said_beside_those_of_being_there() -> None:
    events = [event(Gaussian(noise_multiplier=4.0))]
    found = Guarantee.of(events, BUDGET)
    other = Budget(epsilon=9.0, delta=1e-6, unit="user", adjacency="replace")
    assert found.replaced_odds == Guarantee.of(events, other).odds
    assert "Between any two sets of ratings of one user they guess right at most 90.6%" in str(found)
    assert Guarantee.of(events, other).replaced_odds is None


@pytest.mark.parametrize("name", ["against", "covers", "does_not_cover"])
def test_a_text_in_place_of_a_list_is_refused(name: str) -> None:
    words: Any = {name: "the coordinator"}
    with pytest.raises(ConfigError, match=f"{name} must be a list of texts"):
        Guarantee.of([WHOLE], BUDGET, **words)


def test_a_guarantee_against_nobody_is_refused() -> None:
    with pytest.raises(ConfigError, match="against must be a list"):
        Guarantee.of([WHOLE], BUDGET, against=())


def test_sampling_must_stay_secret() -> None:
    assert "nobody learns who was" in assumed(SampledGaussian(noise_multiplier=2.0, sampling=0.01))
    assert "nobody learns who was" not in assumed(Gaussian(noise_multiplier=5.0))


def test_sum_over_participants_needs_the_largest_number_of_honest_ones() -> None:
    events = [event(PoissonBinomial(trials=2, theta=0.01, participants=n)) for n in (1_000, 5_000)]
    found = Guarantee.of(events, BUDGET)
    words = "only sums over at least 5,000 honest participants are seen, and no single message"
    assert words in [each.what for each in found.assumptions]


def test_parties_that_share_no_user_are_not_added_up() -> None:
    events = [event(DiscreteLaplace(noise_multiplier=2.0), by=name) for name in ("north", "south")]
    assert Guarantee.of(events, EXACT).epsilon == pytest.approx(1.0)
    assert Guarantee.of(events, EXACT, shared_units=False).epsilon == pytest.approx(0.5)


def full() -> Guarantee:
    return Guarantee.of(
        [event(SampledGaussian(noise_multiplier=2.0, sampling=0.01), count=100)],
        BUDGET,
        against=("the coordinator", "other parties", "everyone who sees the model"),
        covers=("The item vectors of all rounds.",),
        does_not_cover=("That a party takes part.", "What a user tells others."),
        assumptions=(Assumption(what="parties do not collude", met="each signed a contract"),),
        units=1_000_000,
        per="month",
    )


def test_paragraph_says_everything() -> None:
    said = str(full())
    for words in (
        "Against the coordinator, other parties and everyone who sees the model:",
        'for each user (adjacency "empty")',
        "delta 1e-06",
        "all 100 releases together by north are",
        "the user rated nothing at all",
        "It covers the following. The item vectors of all rounds.",
        "It does not cover the following. That a party takes part. What a user tells others.",
        "It assumes that each unit was sampled independently",
        "Several users who are one person",
        "It assumes that parties do not collude; each signed a contract.",
        "keys from the operating system",
        "by Renyi divergences alone",
        "renewed every month: over a year twelve times as much may be learned",
        "Warning: delta 1e-06 is not below 1/1,000,000",
    ):
        assert words in said, words
    assert "\n" not in said


def test_markdown_lists_what_the_paragraph_says() -> None:
    said = full().markdown()
    for words in (
        "- The item vectors",
        "- That a party",
        "- that parties do not collude",
        "- delta 1e-06 is",
    ):
        assert words in said, words


@pytest.mark.parametrize("unit", get_args(Unit))
@pytest.mark.parametrize("adjacency", get_args(Adjacency))
def test_every_unit_and_adjacency_has_words(unit: Unit, adjacency: Adjacency) -> None:
    found = Guarantee(epsilon=1.0, delta=0.0, unit=unit, adjacency=adjacency)
    assert f"a {unit}" in str(found)
    assert ("public" in str(found)) == (adjacency != "replace")


def test_pooled_run_has_one_sentence_and_no_numbers() -> None:
    nothing = Guarantee.nothing("Not private: pooled.")
    assert str(nothing) == "Not private: pooled."
    assert nothing.as_json()["statement"] == "Not private: pooled."
    assert "No privacy guarantee" in nothing.markdown()
    assert (nothing.holds, nothing.epsilon, nothing.delta, nothing.odds) == (False, None, None, None)


ALL: list[Callable[[], Guarantee]] = [
    full,
    lambda: Guarantee.nothing("Not private: pooled."),
    lambda: Guarantee.of([], BUDGET),
    lambda: Guarantee.of([event(Gaussian(noise_multiplier=5.0))], EXACT),
    lambda: Guarantee.of([event(Laplace(noise_multiplier=5.0), secure=False)], EXACT),
]


@pytest.mark.parametrize("made", ALL)
def test_guarantee_comes_back_from_json_as_it_was(made: Callable[[], Guarantee]) -> None:
    guarantee = made()
    table = json.loads(json.dumps(guarantee.as_json(), allow_nan=False))
    again = Guarantee.from_json(table)
    assert again == guarantee
    assert str(again) == table["statement"]
    assert {"epsilon", "delta", "unit", "adjacency", "holds", "statement", "odds"} <= set(table)


def test_older_run_folders_are_read() -> None:
    older = {"holds": False, "epsilon": None, "delta": None, "statement": "Not private: pooled."}
    assert Guarantee.from_json(older) == Guarantee.nothing("Not private: pooled.")


@pytest.mark.parametrize(
    "change",
    [
        {"holds": False},
        {"epsilon": None},
        {"epsilon": -1.0},
        {"epsilon": "small"},
        {"unit": "usr"},
        {"secure_noise": False},
        {"assumptions": [{"what": "x"}]},
        {"assumptions": [3]},
        {"assumptions": 3},
        {"covers": "all"},
        {"covers": [3]},
    ],
    ids=str,
)
def test_changed_guarantee_is_refused(change: dict[str, Any]) -> None:
    table = json.loads(json.dumps(full().as_json())) | change
    with pytest.raises(ConfigError):
        Guarantee.from_json(table)


@given(st.floats(1e-9, 1e6))
def test_printed_epsilon_is_never_below_the_true_one(value: float) -> None:
    written = float(rounded_up(value))
    assert value * (1 - 1e-9) <= written <= value * 1.0101


@given(st.floats(0.5, 1.0))
def test_printed_odds_are_never_below_the_true_ones(share: float) -> None:
    written = float(percent(share).rstrip("%")) / 100
    assert share - 1e-12 <= written <= share + 0.001 + 1e-12


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.731, "73.1%"), (0.7310586, "73.2%"), (0.99995, "99.995%"), (0.9999999999, "100%"), (1.0, "100%")],
)
def test_odds_are_100_percent_only_if_they_are(share: float, words: str) -> None:
    assert percent(share) == words


def test_a_guarantee_above_its_budget_cannot_hold() -> None:
    with pytest.raises(ConfigError, match="above its budget"):
        Guarantee(epsilon=5.0, delta=1e-6, unit="user", adjacency="empty", budget_epsilon=1.0)
