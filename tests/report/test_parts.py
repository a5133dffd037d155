"""What single parts of a page say of folders that are made by hand."""

import re
from dataclasses import replace
from typing import Any

import pytest

from cofactor.report import clusters_part, cost_part, names, privacy_part, survey_part, useful_part
from cofactor.report.beside import Beside, Checked, Groups, Spread
from cofactor.report.exchange import Exchange
from cofactor.report.folder import Release
from cofactor.report.states import state
from tests.report.making import EVIL, QUOTED, told

RELEASE = Release(
    what="item vectors",
    round=1,
    by="north",
    mechanism={"kind": "Gaussian", "noise_multiplier": 2.5},
    bound={"size": 5.0, "norm": "l2"},
    dimension=80,
    count=1,
    secure=True,
    joint=False,
)
ASKED: dict[str, Any] = {"name": f"age {QUOTED}", "low": 0, "high": 100}
SURVEY = {"question": ASKED, "answered": 50, "unanswered": {}, "mean": 41.5, "estimate": [0.5, 0.5]}
SEGMENTS = {
    "parties": ["bank", EVIL],
    "columns": [["age"], [QUOTED]],
    "ranges": [[[0, 100]], [[0, 10]]],
    "centres": [[20.0, 1.0], [60.0, 9.0]],
    "sizes": [30.0, 10.0],
    "concerns": [],
}


def words(markup: object) -> str:
    """Return the text of markup."""
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", str(markup))).strip()


def test_the_promise_is_told_in_short_and_in_whole() -> None:
    part = str(privacy_part.promise(told({"against": ["the coordinator"]}), Beside()))
    assert (
        "<p>Promised. Somebody guesses right at most 88.1% of the time; 50% would be pure chance.</p>" in part
    )
    assert "The whole statement, to sign" in part
    assert "<li>the coordinator</li>" in part


def test_nothing_is_said_twice_where_nothing_is_promised() -> None:
    bare = {"holds": False, "epsilon": None, "statement": "Not private: x.", "why_not": ["Not private: x."]}
    assert words(privacy_part.promise(told(bare), Beside())) == "What is promised Not private: x."


def test_promises_to_groups_are_listed() -> None:
    part = privacy_part.promise(told(), Beside(promised=("careful users: epsilon 0.5",)))
    assert "What groups of users are promised careful users: epsilon 0.5" in words(part)


@pytest.mark.parametrize(
    ("met", "lead"),
    [
        (["it is"], "1 assumption."),
        (["on trust"], "1 assumption; 1 rests on trust."),
        (["on trust", "on trust", "it is"], "3 assumptions; 2 rest on trust."),
    ],
)
def test_what_rests_on_trust_is_counted(met: list[str], lead: str) -> None:
    part = privacy_part.assumptions(told({"assumptions": [{"what": "a", "met": each} for each in met]}))
    assert f'<p class="lead">{lead}</p>' in part


def test_releases_that_are_alike_are_one_row_and_rounds_are_stretches() -> None:
    rounds = [replace(RELEASE, round=at, by=who) for at in (1, 2, 3, 7) for who in ("north", "south")]
    part = words(privacy_part.ledger(replace(told(), releases=tuple(rounds))))
    assert "item vectors 1 to 3, 7 2 Gaussian noise, 2.5 times the bound 5 (l2) 80 8" in part


def test_a_release_that_stands_for_several_is_counted_as_often() -> None:
    part = words(privacy_part.ledger(replace(told(), releases=(replace(RELEASE, count=3),))))
    assert "item vectors 1 1 Gaussian noise, 2.5 times the bound 5 (l2) 80 3 The ledger" in part
    assert part.endswith("epsilon so far, at most 1 item vectors 1 3")


def test_of_many_kinds_of_releases_the_first_are_shown_and_the_others_counted() -> None:
    many = tuple(replace(RELEASE, what=f"release {at}") for at in range(1_000))
    part = str(privacy_part.ledger(replace(told(), releases=many)))
    assert "700 more kinds are in the ledgers." in part
    assert len(part) < 150_000


def test_a_failed_check_comes_first_and_is_marked() -> None:
    held = [Checked(name=f"check {at}", holds=True, detail="") for at in range(3)]
    broken = Checked(name="seal", holds=False, detail=EVIL)
    part = privacy_part.checks(told(), Beside(checks=(*held, broken)))
    assert words(part).startswith("Does the folder bear it out? 1 of 4 checks fail.")
    assert re.search(r"<tbody><tr><th[^>]*>seal</th><td><span class=\"badge bad\">NO</span>", str(part))
    assert "<script" not in part


def test_what_was_not_checked_says_how_to() -> None:
    assert "cofactor verify told" in words(privacy_part.checks(told(), Beside()))


def test_an_attack_that_proves_more_than_was_promised_is_red() -> None:
    audit = {
        "attack": "canaries",
        "seen_by": "coordinator+party:north",
        "verdict": "alarm",
        "headline": "Broken.",
        "figures": {"epsilon proved at least": 6.5, "epsilon promised": 2.0},
        "confidence": 0.95,
        "notes": ["chance"],
    }
    part = str(privacy_part.bounds(replace(told(), audits={"canaries-1": audit})))
    assert 'class="dot bad"' in part
    assert "6.5 of 2" in part
    assert "coordinator and party:north" in words(part)
    assert "95%" in words(part)


@pytest.mark.parametrize(
    ("verdict", "tone"), [("resisted", "good"), ("succeeded", "doubt"), ("perhaps", "bad")]
)
def test_a_verdict_that_nobody_knows_is_red(verdict: str, tone: str) -> None:
    audit = {"seen_by": "c", "verdict": verdict, "headline": "h", "figures": {}}
    part = str(privacy_part.bounds(replace(told(), audits={"a-1": audit})))
    assert f'<span class="badge {tone}">{verdict}</span>' in part


@pytest.mark.parametrize("value", [None, "x", float("nan"), float("inf")])
def test_a_bound_that_is_no_number_is_not_drawn(value: Any) -> None:
    figures = {} if value is None else {"epsilon proved at least": value}
    audit = {"attack": "a", "seen_by": "c", "verdict": "resisted", "headline": "h", "figures": figures}
    part = str(privacy_part.bounds(replace(told(), audits={"a": audit})))
    assert part.count("<circle") == 1


@pytest.mark.parametrize(
    ("kind", "command"),
    [("training", "cofactor audit told FILE ..."), ("survey", "cofactor audit told")],
)
def test_where_nobody_has_tried_to_break_it_the_page_says_how(kind: str, command: str) -> None:
    more: dict[str, Any] = {} if kind == "training" else {"survey": SURVEY}
    assert words(privacy_part.bounds(told(**more))).endswith(command)
    assert "nothing to break" in words(privacy_part.bounds(told(together=None)))


@pytest.mark.parametrize(
    ("facts", "events", "word"),
    [
        ({}, (), "finished"),
        ({"together": {**told().facts["together"], "planned_rounds": 9}}, (), "stopped after round 4 of 9"),
        ({}, ({"stage": "resumed"},), "finished, after it was resumed"),
        ({"guarantee": {"holds": False}}, (), "NOT PRIVATE"),
        ({"survey": SURVEY}, (), "asked"),
        ({"survey": SURVEY, "guarantee": {"holds": False}}, (), "NOT PRIVATE"),
    ],
)
def test_every_state_has_its_word(facts: dict[str, Any], events: tuple[Any, ...], word: str) -> None:
    assert state(replace(told(**facts), events=events), Beside())[0] == word


def test_a_broken_promise_has_a_red_word_and_a_folder_that_was_changed_another() -> None:
    audit = {"a-1": {"seen_by": "c", "verdict": "alarm", "headline": "Broken.", "figures": {}}}
    alarmed = replace(told(), audits=audit)
    assert state(alarmed, Beside()) == ("NOT PRIVATE", "bad")
    for name, word in (("audits", "NOT PRIVATE"), ("files", "DO NOT RELY ON THIS")):
        broken = Beside(checks=(Checked(name=name, holds=False, detail="x"),))
        assert state(told(), broken) == (word, "bad")
    explained = Beside(checks=(Checked(name="audits", holds=True, detail="chance explains it"),))
    assert state(alarmed, explained) == ("finished", "plain")


def test_lists_are_measured_beside_popularity() -> None:
    measures = dict.fromkeys(names.MEASURES, 0.25)
    own = {"rmse": 0.9, "rankings": {"popularity": measures, "private": {**measures, "map": 0.5}}}
    part = words(useful_part.accuracy(told(scores={"private": own}), Beside()))
    assert "lists by NDCG precision recall mean average precision" in part
    assert "private, together 0.2500 0.2500 0.2500 0.5000" in part


def test_errors_of_groups_are_told_even_where_nothing_else_was_measured() -> None:
    few = {"value": 0.5, "low": None, "high": None}
    rows = ({"name": "careful", "users": 3, "mse": few, "own_mean": few, "gain": few},)
    part = words(useful_part.accuracy(told(), Beside(groups=Groups(source="c.json", rows=rows))))
    assert "No errors are in the run folder." in part
    assert "careful 3 0.5000 0.5000 0.5000" in part
    assert "From c.json: no run folder holds who asked for how much privacy." in part


def test_parties_for_whom_nothing_changed_need_no_picture() -> None:
    def party(gain: float) -> dict[str, Any]:
        return {"rmse": 1.0, "joining": {"gain": gain, "interval": [gain, gain], "sentence": "so it is"}}

    def part(gain: float) -> str:
        own = {"rmse": 1.0, "parties": {"north": party(gain)}}
        return str(useful_part.accuracy(told(scores={"private": own}), Beside()))

    assert "By how much joining" not in part(0.0)
    assert "By how much joining" in part(0.1)


def test_a_party_that_joining_hurt_is_drawn_as_a_doubt() -> None:
    ends = {"north": [0.1, 0.3], "south": [-0.1, 0.1], "west": [-0.3, -0.1]}
    parties = {
        name: {"rmse": 1.0, "joining": {"gain": sum(each) / 2, "interval": each, "sentence": "so it is"}}
        for name, each in ends.items()
    }
    part = str(useful_part.accuracy(told(scores={"private": {"rmse": 1.0, "parties": parties}}), Beside()))
    assert re.findall(r'class="dot (\w+)"><title>(\w+): [+-]', part) == [
        ("good", "north"),
        ("plain", "south"),
        ("doubt", "west"),
    ]


def test_errors_of_a_pooled_run_belong_to_whoever_holds_the_ratings() -> None:
    group = {"name": "1 to 9 ratings", "users": 4, "mse": 0.819}
    own = {"rmse": 0.9, "rankings": {"pooled": dict.fromkeys(names.MEASURES, 0.25)}, "by_activity": [group]}
    scores = {"user_mean": {"rmse": 1.0}, "pooled": own}
    part = str(useful_part.accuracy(told(together=None, scores=scores), Beside()))
    assert re.findall('badge doubt">([A-Z]+)<', part) == ["LOCAL"] * 3
    assert "These numbers belong to whoever holds the ratings" in part


def test_errors_of_groups_are_drawn_with_four_decimals() -> None:
    own = {"rmse": 0.9, "by_activity": [{"name": "1 to 9 ratings", "users": 4, "mse": 0.819}]}
    part = str(useful_part.accuracy(told(scores={"private": own}), Beside()))
    assert re.findall(r'<text[^>]*class="tick">(0\.8190?)</text>', part) == ["0.8190"]
    assert "<title>1 to 9 ratings: 0.8190</title>" in part


def test_steps_of_a_sum_are_called_by_what_hides_them() -> None:
    assert names.message("SumStep", "masked") == "Sum step: masked"
    assert names.message("Vectors", "noise") == "Vectors"


def test_what_took_most_bytes_comes_first() -> None:
    sizes = {"Small": 1_000, "Large": 3_000, "Middling": 2_000}
    exchanges = tuple(
        Exchange(
            kind=kind,
            sender="parties",
            receiver="coordinator",
            protection="noise",
            messages=1,
            bytes=size,
            rounds=(1, 1),
        )
        for kind, size in sizes.items()
    )
    part = str(cost_part.costs(replace(told(), exchanges=exchanges)))
    assert re.findall(r'<th scope="row">(\w+)</th>', part) == ["Large", "Middling", "Small"]


def test_bytes_are_drawn_in_a_unit_that_can_be_read() -> None:
    def part(size: float) -> str:
        event = {"stage": "round", "step": 1, "numbers": {"bytes": size}}
        return str(useful_part.curves(replace(told(), events=(event,))))

    assert "kB: 2.5 at 1" in part(2_500)
    assert "MB: 2.5 at 1" in part(2_500_000)


def test_rounds_are_whole_on_their_axis() -> None:
    events = tuple({"stage": "round", "step": at, "numbers": {"bytes": 1e3}} for at in (1, 2, 3))
    part = str(useful_part.curves(replace(told(), events=events)))
    assert ">1.5<" not in part
    assert [each for each in "123" if f'class="tick">{each}<' in part] == ["1", "2", "3"]


def test_a_survey_is_drawn_as_density_so_that_wide_buckets_are_not_higher() -> None:
    spread = Spread(
        edges=(0.0, 1.0, 3.0, 4.0),
        shares=(0.25, 0.5, 0.25),
        bands=((0.0, 0.5), (0.25, 0.75), (0.0, 0.5)),
        figures={"mean": (2.0, (1.5, 2.5)), "50% lie below": (2.0, None)},
        warnings=("few people",),
    )
    part = str(survey_part.survey(told(survey=SURVEY), spread))
    assert re.findall(r"density: ([^ ]+ \([^)]*\)) at ([\d.]+)", part) == [
        ("0.25 (0 to 0.5)", "0.5"),
        ("0.25 (0.125 to 0.375)", "2"),
        ("0.25 (0 to 0.5)", "3.5"),
    ]
    assert "mean 2 1.5 to 2.5 50% lie below 2 not known" in words(part)
    assert "few people" in part
    assert "<b>" not in part


def test_a_survey_of_a_mean_alone_says_so() -> None:
    part = words(survey_part.survey(told(survey={**SURVEY, "unanswered": {"a": 1}}), None))
    assert "The mean is about 41.5. This method tells no more." in part


def test_segments_are_told_with_share_and_difference() -> None:
    part = str(clusters_part.clusters(told(clustering=SEGMENTS)))
    assert "30 (75%)" in part
    assert "age, segment 1: -10.0% of the range" in part
    assert "age, segment 2: +30.0% of the range" in part
    assert "<script" not in part
    assert "<b>" not in part


def test_a_crowd_of_parties_is_cut_with_a_count() -> None:
    own = told().facts["together"]["parties"]["north"]
    together = {**told().facts["together"], "parties": {f"shop {at}": own for at in range(10_000)}}
    part = str(cost_part.parties(told(together=together)))
    assert "10,000 parties" in part
    assert "9,800 more parties are in run.json." in part
    assert part.count("<tr>") == 201
