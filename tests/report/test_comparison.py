import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cofactor.errors import RunError
from cofactor.report import comparison as side_by_side
from cofactor.report.beside import Beside, Checked
from cofactor.report.comparison import compared
from cofactor.report.folder import Folder
from tests.report.making import EVIL, told


def run(name: str, epsilon: float = 2.0, error: float = 0.9, **more: Any) -> Folder:
    """Return a run with a promise and an error."""
    score = {"rmse": error, "intervals": {"rmse": [error - 0.05, error + 0.05]}}
    scores = {"user_mean": {"rmse": 1.0}, "private": score, "pooled": {"rmse": 0.7}}
    guarantee = {"epsilon": epsilon, "budget_epsilon": epsilon, **more.pop("guarantee", {})}
    return told(guarantee, name=name, scores=scores, **more)


def comparison(folders: Sequence[Folder], besides: Sequence[Beside] = ()) -> str:
    """Return the page that compares runs."""
    return side_by_side.comparison(compared(folders, besides))


def incomparable(folders: Sequence[Folder], besides: Sequence[Beside] = ()) -> list[str]:
    """Return the warnings of such a page."""
    return list(side_by_side.incomparable(compared(folders, besides)))


@pytest.mark.parametrize(
    ("other", "warning"),
    [
        ({"guarantee": {"unit": "rating"}}, "The unit of the guarantees differs: user, rating. One"),
        ({"guarantee": {"adjacency": "value"}}, "The adjacency of the guarantees differs: empty, value."),
        ({"guarantee": {"delta": 1e-5}}, "The delta of the guarantees differs: 1e-06, 1e-05."),
        ({"data": {"users": 3}}, "The runs were trained on different data: their errors"),
        ({"seed": 1}, "The runs have different seeds, and so different test ratings"),
        (
            {"together": {**told().facts["together"], "split": "vertical"}},
            "Parties relate differently: horizontal, vertical.",
        ),
        ({"guarantee": {"holds": False}}, "Not private: b."),
        (
            {"together": {**told().facts["together"], "parties": {}}},
            "The number of parties differs: 2, 0. What each has alone",
        ),
        (
            {"together": {**told().facts["together"], "planned_rounds": 9}},
            "Ended early, and drawn at what they cost: b.",
        ),
    ],
)  # fmt: skip
def test_what_must_not_be_put_side_by_side_is_said(other: dict[str, Any], warning: str) -> None:
    (found,) = incomparable([run("a"), run("b", **other)])
    assert found.startswith(warning)


def test_runs_that_differ_in_epsilon_alone_are_compared_without_a_warning() -> None:
    folders = [run("a", 1.0), run("b", 2.0)]
    assert incomparable(folders) == []
    assert 'class="notice"' not in comparison(folders)


def test_a_pooled_run_has_no_unit_to_differ_in() -> None:
    pooled = told({"holds": False, "epsilon": None, "unit": None}, name="pooled", together=None)
    assert incomparable([run("a"), pooled]) == [
        "Parties relate differently: horizontal, pooled.",
        "Not private: pooled.",
    ]


def titles(page: str) -> list[str]:
    """Return what can be pointed at in pictures."""
    return re.findall(r"<circle[^>]*><title>([^<]*)</title>", page)


def test_error_by_epsilon_is_one_line_for_each_recipe() -> None:
    other = run("c", 4.0, 0.6, recipe={"kind": "SecureALS"})
    found = titles(comparison([run("b", 2.0, 0.8), run("a", 1.0, 0.9), other]))
    assert found[:3] == [
        "HorizontalMF: 0.9 (0.85 to 0.95) at 1",
        "HorizontalMF: 0.8 (0.75 to 0.85) at 2",
        "SecureALS: 0.6 (0.55 to 0.65) at 4",
    ]
    assert found[3:] == [
        "sends nothing: 1 at 1",
        "sends nothing: 1 at 4",
        "pooled, not private: 0.7 at 1",
        "pooled, not private: 0.7 at 4",
    ]


def test_promises_of_different_kinds_have_no_axis_in_common() -> None:
    other = {"unit": "rating", "adjacency": "value"}
    page = comparison([run("a", 1.0, 0.9), run("b", 2.0, 0.8), run("c", 8.0, 0.5, guarantee=other)])
    found = re.findall("<figcaption>Trained with a budget, and what needs none(.*?) <", page)
    assert found == [
        ", for each user, adjacency &#34;empty&#34;",
        ", for each rating, adjacency &#34;value&#34;",
    ]
    drawn = [title for title in titles(page) if title.startswith("HorizontalMF")]
    assert [title.partition(": ")[2].partition(" (")[0] for title in drawn] == ["0.9", "0.8", "0.5"]
    assert "pooled, not private: 0.7 at 2" in titles(page)  # where the first picture ends


def test_errors_of_different_kinds_have_no_axis_in_common() -> None:
    lists = {"user_mean": {"ndcg_over_unseen": 0.1}, "private": {"ndcg_over_unseen": 0.3}}
    found = titles(comparison([run("a", 1.0, 0.9), told({"epsilon": 1.0}, name="b", scores=lists)]))
    assert [title for title in found if title.startswith("HorizontalMF")] == [
        "HorizontalMF: 0.9 (0.85 to 0.95) at 1",
        "HorizontalMF: 0.3 (0.3 to 0.3) at 2",
    ]


def test_runs_on_other_data_or_with_other_parties_have_no_line_and_no_levels_in_common() -> None:
    small = {"users": 3, "items": 2, "ratings": 5}
    few = {"user_mean": {"rmse": 2.0}, "private": {"rmse": 1.5}, "pooled": {"rmse": 1.4}}
    other = told({"epsilon": 4.0, "budget_epsilon": 4.0}, name="b", scores=few, data=small)
    page = comparison([run("a", 1.0, 0.9), other])
    named = re.findall("<figcaption>Trained with a budget, and what needs none(.*?) <", page)
    assert named == [", 40 ratings, 10 users, 7 items", ", 5 ratings, 3 users, 2 items"]
    assert titles(page) == [
        "HorizontalMF: 0.9 (0.85 to 0.95) at 1",
        "sends nothing: 1 at 1",
        "sends nothing: 1 at 1",
        "pooled, not private: 0.7 at 1",
        "pooled, not private: 0.7 at 1",
        "HorizontalMF: 1.5 (1.5 to 1.5) at 4",
        "sends nothing: 2 at 4",
        "sends nothing: 2 at 4",
        "pooled, not private: 1.4 at 4",
        "pooled, not private: 1.4 at 4",
    ]


def test_a_run_that_was_ended_early_stands_at_what_it_cost() -> None:
    early = {**told().facts["together"], "planned_rounds": 9}
    ended = run("a", 2, together=early, guarantee={"epsilon": 0.5})
    assert titles(comparison([ended, run("b", 2)]))[0].endswith("at 0.5")


def test_a_run_without_noise_is_among_what_needs_no_budget() -> None:
    plain = told(
        {"holds": False, "epsilon": None}, name="plain", scores={"together": {"rmse": 0.6}, "alone": {}}
    )
    assert "together, not private: 0.6 at 2" in titles(comparison([run("a"), plain]))


def test_runs_that_are_not_to_be_relied_on_are_marked_and_named() -> None:
    audit = {"a-1": {"seen_by": "c", "verdict": "alarm", "headline": "Broken.", "figures": {}}}
    alarmed, changed = replace(run("b"), audits=audit), run("c")
    besides = [Beside(), Beside(), Beside(checks=(Checked(name="files", holds=False, detail="changed"),))]
    runs = [run("a"), alarmed, changed]
    assert incomparable(runs, besides) == ["Not private: b.", "Not to be relied on: c."]
    page = comparison(runs, besides)
    assert re.findall('badge bad">([A-Z ]+)<', page) == ["NOT PRIVATE", "DO NOT RELY ON THIS"]
    assert "HorizontalMF, NOT TO BE RELIED ON: 0.9" in page


def test_runs_with_the_same_epsilon_are_averaged() -> None:
    assert "HorizontalMF: 0.8 (0.75 to 0.85) at 2" in titles(comparison([run("a", 2, 0.9), run("b", 2, 0.7)]))


def test_a_run_stands_where_its_budget_was_and_not_a_hair_below() -> None:
    assert titles(comparison([run("a", 2, guarantee={"epsilon": 1.98}), run("b", 2)]))[0].endswith("at 2")


def test_a_run_without_a_budget_stands_at_what_it_cost() -> None:
    free = run("a", guarantee={"epsilon": 0.5, "budget_epsilon": None})
    older = run("b", 3)
    given = {name: value for name, value in older.guarantee.items() if name != "budget_epsilon"}
    found = titles(comparison([free, replace(older, facts={**older.facts, "guarantee": given})]))
    assert [each.rpartition(" at ")[2] for each in found[:2]] == ["0.5", "3"]


def test_runs_without_errors_are_not_drawn() -> None:
    assert "No run has both a promise and a measured error." in comparison([told(name="a"), told(name="b")])


def settings(page: str) -> dict[str, list[str]]:
    """Return the table of settings that differ."""
    body = (
        page.partition("Settings that differ</caption>")[2].partition("</table>")[0].partition("<tbody>")[2]
    )
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", body)]
    return {name: values for name, *values in found}


def test_settings_that_differ_are_listed_and_no_others() -> None:
    deep = {"kind": "HorizontalMF", "aggregate": {"kind": "PlainSum"}, "rounds": 9}
    page = comparison([run("a", 1.0), run("b", 2.0, recipe=deep)])
    assert settings(page) == {
        "recipe.aggregate.kind": ["SecureSum", "PlainSum"],
        "recipe.rounds": ["-", "9"],
    }
    assert "2 of " in page


def test_runs_that_are_set_alike_say_so() -> None:
    assert "All settings are the same." in comparison([run("a"), run("b")])


def test_a_row_has_the_numbers_of_its_run() -> None:
    page = comparison([run("a", 1.0, 0.9), run("b", 2.0, 0.8)])
    row = page.partition(">a</th>")[2].partition("</tr>")[0]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
    assert cells[1:] == ["HorizontalMF", "1", "88.1%", "0.9000", "0.8500 to 0.9500", "4", "3 s", "6 kB"]


def test_surveys_can_be_compared_and_names_are_text() -> None:
    survey = {"question": {"name": EVIL, "low": 0, "high": 9}, "answered": 5, "mean": 3.0, "estimate": [0.5]}
    page = comparison([told(name=EVIL, survey=survey), told(name="b", survey=survey)])
    assert "<script>alert" not in page


def test_a_damaged_run_among_others_is_named() -> None:
    broken = replace(run("b"), facts={**run("b").facts, "recipe": {"kind": "x"}, "seconds": "long"})
    with pytest.raises(RunError, match=r"b: the run folder is damaged"):
        comparison([run("a"), broken])


@pytest.mark.parametrize("score", [{"rmse": "x"}, {}, {"rmse": 0.9, "intervals": {"rmse": [1]}}, 3])
def test_a_damaged_score_is_refused_too(score: Any) -> None:
    broken = replace(run("b"), facts={**run("b").facts, "scores": {"private": score}})
    with pytest.raises(RunError, match=r"the run folder is damaged"):
        comparison([run("a"), broken])


def test_runs_of_the_same_name_are_told_apart_by_where_they_lie() -> None:
    folders = [run(f"{place}/run", guarantee={"holds": place == "a"}) for place in "ab"]
    assert incomparable(folders) == ["Not private: runs/b/run."]
    page = comparison(folders)
    assert re.findall(r">([\w/]+/run)</th><td>", page) == ["runs/a/run", "runs/b/run"]
    assert "a/run" not in comparison([folders[0], run("other")])
