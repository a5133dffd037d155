from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cofactor.report.answers import (
    alarms,
    answers,
    breached,
    is_it_private,
    is_it_useful,
    lost,
    what_did_it_cost,
)
from cofactor.report.beside import Beside, Checked, Policy
from cofactor.report.folder import Folder
from tests.report.making import told

POLICY: Mapping[str, Any] = {
    "max_epsilon": None,
    "max_epsilon_per_run": 2.0,
    "max_delta": 1e-5,
    "units": ["user"],
    "adjacencies": ["empty", "replace"],
    "recipes": ["HorizontalMF"],
    "kinds": ["training"],
    "minimum_parties": 2,
    "aggregates": ["SecureSum"],
}
BROKEN = Beside(checks=(Checked(name="ledger of north", holds=False, detail="A seal is broken."),))


def stated(**terms: Any) -> Beside:
    return Beside(checks=(), policy=Policy(source="policy.toml", terms={**POLICY, **terms}))


def heard(*rounds: Mapping[str, float]) -> Folder:
    """Return a run of two parties with the numbers of its rounds."""
    events = tuple({"stage": "round", "step": at, "numbers": each} for at, each in enumerate(rounds, 1))
    return replace(told(), events=events)


def scored(**scores: Any) -> Folder:
    base = {"user_mean": {"rmse": 1.0}, "alone": {"rmse": 0.9}, "pooled": {"rmse": 0.8}}
    return told(scores={**base, **scores})


def test_a_promise_within_its_budget_is_a_yes_with_its_odds_in_words() -> None:
    answer = is_it_private(told(), Beside(checks=()))
    assert (answer.verdict, answer.tone) == ("Yes, as promised", "good")
    assert answer.sentences[0] == "Epsilon 2 at delta 1e-06, for each user."
    assert "right at most 88.1% of the time; 50% is pure chance" in answer.sentences[1]
    assert answer.sentences[2] == "It was allowed epsilon 2, its own budget; no other policy was stated."


def test_numbers_are_rounded_away_from_a_better_promise() -> None:
    answer = is_it_private(told({"epsilon": 1.99001, "odds": 0.88101}), Beside())
    assert answer.sentences[0].startswith("Epsilon 2 at")
    assert "88.2%" in answer.sentences[1]


def test_a_promise_that_nobody_has_checked_is_no_yes() -> None:
    answer = is_it_private(told(), Beside())
    assert (answer.verdict, answer.tone) == ("So the folder says", "doubt")
    assert "Nobody has checked whether the folder bears it out." in answer.sentences


def test_the_smaller_promise_of_a_run_that_was_ended_early_says_what_it_rests_on() -> None:
    early = {**told().facts["together"], "planned_rounds": 9}
    answer = is_it_private(told({"epsilon": 0.5}, together=early), Beside(checks=()))
    assert answer.sentences[1].startswith("That is so if nobody ended it because of what had been released")
    assert answer.sentences[1].endswith("epsilon 2 holds.")


@pytest.mark.parametrize("odds", [0.91, 0.9997])
def test_a_weak_promise_is_never_a_plain_yes(odds: float) -> None:
    answer = is_it_private(told({"epsilon": 8.0, "odds": odds, "budget_epsilon": 8.0}), Beside(checks=()))
    assert (answer.verdict, answer.tone) == ("As promised, but the promise is weak", "doubt")


def test_a_run_that_keeps_a_policy_says_which() -> None:
    answer = is_it_private(told(), stated())
    assert (answer.verdict, answer.tone) == ("Yes, as promised", "good")
    assert answer.sentences[-1] == "It keeps the limits of policy.toml that a run folder can be judged by."


@pytest.mark.parametrize(
    ("term", "sentence"),
    [
        ({"max_epsilon_per_run": 1.5}, "Epsilon is 2, and max_epsilon_per_run is 1.5."),
        ({"max_epsilon": 1.0}, "Epsilon is 2, and max_epsilon is 1."),
        ({"max_delta": 1e-7}, "Delta is 1e-06, and max_delta is 1e-07."),
        ({"units": ["rating"]}, 'It is "user", and units allows "rating".'),
        ({"adjacencies": ["replace"]}, 'It is "empty", and adjacencies allows "replace".'),
        ({"recipes": []}, "The recipe is HorizontalMF, and recipes allows none."),
        ({"kinds": ["survey"]}, 'It is a training, and kinds allows "survey".'),
        ({"aggregates": []}, "Answers are added up by SecureSum, and aggregates allows none."),
        ({"minimum_parties": 3}, "There were 2 parties, and minimum_parties is 3."),
    ],
)
def test_what_a_policy_forbids_is_named(term: dict[str, Any], sentence: str) -> None:
    answer = is_it_private(told(), stated(**term))
    assert (answer.verdict, answer.tone) == ("Not as the policy wants it", "bad")
    assert answer.sentences[0] == sentence
    assert list(breached(told(), stated(**term).policy)) == [sentence]
    assert not any("keeps" in each for each in answer.sentences)


@pytest.mark.parametrize(
    ("recipes", "sentences"),
    [
        (["IndependentCounts"], []),
        (["Clustering"], ['The recipe is IndependentCounts, and recipes allows "Clustering".']),
    ],
)
def test_a_policy_knows_a_clustering_by_its_method(recipes: list[str], sentences: list[str]) -> None:
    recipe = {"kind": "Clustering", "method": {"kind": "IndependentCounts"}}
    policy = stated(kinds=["clustering"], recipes=recipes).policy
    assert list(breached(told(recipe=recipe, clustering={}), policy)) == sentences


@pytest.mark.parametrize(
    ("how", "telling", "sentences"),
    [
        ("psi", [], ['Common users were found by "psi", and telling allows none.']),
        ("psi", ["ids"], ['Common users were found by "psi", and telling allows "ids".']),
        ("psi", ["psi"], []),
        ("ids", [], []),
    ],
)
def test_common_users_are_found_by_psi_only_where_a_policy_allows_to_tell_so(
    how: str, telling: list[str], sentences: list[str]
) -> None:
    together = {**told().facts["together"], "alignment": {"how": how}}
    assert list(breached(told(together=together), stated(telling=telling).policy)) == sentences


def test_devices_that_one_process_plays_are_not_counted_as_parties() -> None:
    together = told().facts["together"] | {"split": "on-device", "simulated": True}
    assert not list(breached(told(together=together), stated(minimum_parties=5).policy))


def test_a_promise_that_does_not_hold_is_a_no_with_its_reasons() -> None:
    folder = told({"holds": False, "why_not": ["The noise can be repeated."]})
    answer = is_it_private(folder, stated())
    assert (answer.verdict, answer.tone) == ("No", "bad")
    assert answer.sentences == (
        "The noise can be repeated.",
        "Otherwise it would be epsilon 2 at delta 1e-06, for each user.",
    )


def test_a_no_without_a_reason_still_says_something() -> None:
    assert alarms(told({"holds": False, "statement": ""}), Beside()) == [
        "Nothing is promised, and nothing says why."
    ]


def test_a_promise_that_the_folder_does_not_bear_out_cannot_be_relied_on() -> None:
    answer = is_it_private(told(), BROKEN)
    assert (answer.verdict, answer.tone) == ("It cannot be relied on", "bad")
    assert answer.sentences == ("The folder does not bear it out (ledger of north): A seal is broken.",)


def test_an_alarm_of_an_audit_counts_unless_verify_was_asked_which_of_them_chance_explains() -> None:
    folder = Folder(
        path=told().path,
        facts=told().facts,
        audits={"canaries-1": {"verdict": "alarm", "headline": "Broken."}},
    )
    assert alarms(folder, Beside()) == ["An audit says that the promise was not kept. canaries-1: Broken."]
    assert alarms(folder, Beside(checks=())) == []


@pytest.mark.parametrize(
    ("interval", "verdict", "tone"),
    [
        ([0.01, 0.03], "Yes, joining helped", "good"),
        ([-0.01, 0.03], "It makes no difference", "plain"),
        ([-0.03, -0.01], "No, joining made it worse", "doubt"),
    ],
)
def test_joining_is_judged_by_its_whole_interval(interval: list[float], verdict: str, tone: str) -> None:
    joining = {"interval": interval, "gain": sum(interval) / 2, "sentence": "joining changed the error"}
    answer = is_it_useful(scored(private={"rmse": 0.85, "joining": joining}))
    assert (answer.verdict, answer.tone) == (verdict, tone)
    assert answer.sentences == (
        "Joining changed the error.",
        "RMSE: sends nothing 1.0000; alone 0.9000; private, together 0.8500; pooled, not private 0.8000.",
    )


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ({"user_mean": {"rmse": 1.0}, "private": {"rmse": 0.9}}, "Better than sending nothing"),
        ({"user_mean": {"rmse": 1.0}, "private": {"rmse": 1.1}}, "No better than sending nothing"),
        (
            {"popularity": {"ndcg_over_unseen": 0.1}, "private": {"ndcg_over_unseen": 0.2}},
            "Better than sending nothing",
        ),
        ({"private": {"rmse": 0.9}}, "Measured"),
        ({}, "Not measured"),
    ],
)
def test_without_others_to_join_it_is_compared_with_sending_nothing(
    scores: dict[str, Any], verdict: str
) -> None:
    assert is_it_useful(told(scores=scores)).verdict == verdict


def test_where_nobody_trained_together_what_each_has_alone_is_judged() -> None:
    folder = scored(pooled={"rmse": 1.1})
    assert is_it_useful(folder).verdict == "Better than sending nothing"
    assert is_it_useful(scored(alone={"rmse": 1.1})).verdict == "No better than sending nothing"


def test_costs_are_rounds_time_and_bytes() -> None:
    assert what_did_it_cost(told()).verdict == "4 rounds, 3 s, 6 kB"
    together = told().facts["together"] | {"rounds": 1}
    assert what_did_it_cost(told(together=together)).verdict.startswith("1 round,")


def test_a_run_that_stopped_early_says_how_much_was_planned() -> None:
    together = told().facts["together"] | {"planned_rounds": 9}
    assert "9 rounds were planned" in what_did_it_cost(told(together=together)).sentences[0]


def test_lost_parties_are_counted_by_round() -> None:
    folder = heard(*({"answered": there} for there in (2, 1, 0, 2)))
    sentence = what_did_it_cost(folder).sentences[1]
    assert sentence.startswith("In 2 of 4 rounds somebody did not answer, 2 at most")


def test_a_round_that_says_how_many_it_asked_is_believed() -> None:
    sentence = lost(heard({"parties": 5, "answered": 2}, {"parties": 1, "answered": 1}))
    assert sentence.startswith("In 1 of 2 rounds somebody did not answer, 3 at most")


def test_a_run_without_its_rounds_does_not_say_that_nobody_was_lost() -> None:
    assert lost(heard()) == "Who answered in which round is not told."
    assert lost(heard({"answered": 2})) == "No party was lost in any round."


@pytest.mark.parametrize(
    ("silent", "sentence"),
    [
        ({}, "Everybody answered."),
        ({"north": "late"}, "1 answer did not come."),
        ({"north": "late", "south": "late"}, "2 answers did not come."),
    ],
)
def test_a_survey_counts_answers_that_did_not_come(silent: dict[str, str], sentence: str) -> None:
    assert lost(told(survey={"unanswered": silent})) == sentence


def test_a_pooled_run_costs_time_and_all_ratings() -> None:
    answer = what_did_it_cost(told(together=None))
    assert (answer.verdict, answer.sentences) == ("3 s", ("40 ratings in one place.",))


def test_there_are_always_three_answers() -> None:
    questions = [each.question for each in answers(told(), Beside())]
    assert questions == ["Is it private?", "Is it useful?", "What did it cost?"]
