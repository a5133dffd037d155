"""The planner's page, made of a plan folder: every number that of plan.json."""

import html
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from cofactor.figures import percent, rounded_up
from cofactor.report.planner import page
from cofactor.report.planner_folder import PlanFolder
from tests.report import plans
from tests.report.making import EVIL
from tests.report.test_page import scripts

PARTS = ("choose", "accuracy", "noise", "copy", "unknown")
ENDS = {
    "users": ("fewer people", "more people"),
    "ratings_each": ("fewer ratings", "more ratings"),
    "rounds": ("fewer rounds", "more rounds"),
    "epsilon": ("more private", "more accurate"),
}


@pytest.fixture(scope="session")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plans.plan_folder("shops", tmp_path_factory)


@pytest.fixture(scope="session")
def devices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plans.plan_folder("devices", tmp_path_factory)


def shown(folder: Path) -> str:
    return page(PlanFolder.read(folder))


def slot(text: str, name: str) -> str:
    """Return what stands at a place of the page."""
    found = re.search(rf'<(\w+)[^>]*data-slot="{name}"[^>]*>(.*?)</\1>', text, re.DOTALL)
    assert found is not None, name
    return html.unescape(found[2])


def copies(text: str, name: str) -> str:
    """Return a text to copy."""
    found = re.search(rf'<pre id="copy-{name}"[^>]*><code>(.*?)</code>', text, re.DOTALL)
    assert found is not None, name
    return html.unescape(found[1])


def attribute(text: str, name: str) -> Any:
    """Return what an attribute holds for the script."""
    found = re.search(rf' {name}="([^"]*)"', text)
    assert found is not None, name
    return json.loads(html.unescape(found[1]))


def rows(text: str, caption: str) -> list[list[str]]:
    """Return the cells of a table."""
    table = next(each for each in text.split("<table>") if each.startswith(f"<caption>{caption}</caption>"))
    lines = re.findall(r"<tr>(.*?)</tr>", table.split("<tbody>")[1].split("</tbody>")[0], re.DOTALL)
    return [
        [html.unescape(each) for each in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line)] for line in lines
    ]


def test_all_parts_are_there_in_order(shops: Path) -> None:
    text = shown(shops)
    assert tuple(re.findall(r'<section id="(\w+)"', text)) == PARTS
    assert re.findall(r'data-card="(\w+)"', text) == ["privacy", "accuracy", "traffic"]
    for part in PARTS:
        assert f'id="{part}-title"' in text
    assert "reads no private data" in text
    assert scripts(text) == 1


def test_the_cards_have_the_numbers_of_the_plan(shops: Path) -> None:
    text, facts = shown(shops), plans.facts_of(shops)
    cell = facts["cells"][facts["asked"]]
    plan, training = cell["plan"], facts["trainings"][cell["training"]]
    assert slot(text, "privacy-verdict") == f"A guesser is right at most {percent(plan['odds'])} of the time"
    assert slot(text, "privacy-2") == (
        f"Epsilon {rounded_up(plan['epsilon'])} at delta 1e-06 for each user, by {plan['accountant']}: "
        "within the budget of 4."
    )
    own = training["rmse"]["private"]["mean"]
    assert f"right at most {percent(plan['odds'])} of the time; error about {own:.3f}" in slot(
        text, "summary"
    )
    assert slot(text, "accuracy-verdict") == f"Error {own:.3f}"
    for name, words in (
        ("user_mean", "Sends nothing"),
        ("alone", "alone"),
        ("pooled", "pooled, not private"),
    ):
        assert f"{words} {training['rmse'][name]['mean']:.3f}" in slot(text, "accuracy-2")
    each = plan["total_bytes"] / plan["parties"]
    assert slot(text, "traffic-verdict") == f"{each / 1000:.3g} kB for each party"
    assert slot(text, "traffic-1") == (
        f"Up and down together, in 5 rounds; {plan['bytes_per_round']} bytes up in the largest."
    )
    assert slot(text, "traffic-3") == ""
    assert "all 3 together" in slot(text, "traffic-2")


def test_the_choice_can_be_made_between_labelled_ends(shops: Path) -> None:
    text, facts = shown(shops), plans.facts_of(shops)
    for at, (name, (low, high)) in enumerate(ENDS.items()):
        slider = text.split(f'data-axis="{at}"')[1].split("</div></div>")[0]
        assert re.findall(r"<span>([^<]*)</span>", f"{slider}</span>") == [low, high]
        told = attribute(slider, "data-values")
        numbers = [float(each.split()[0].replace(",", "")) for each in told]
        assert numbers == facts["axes"][name] == sorted(numbers)
    assert text.count('type="range"') == text.count(" disabled ") == len(ENDS)


def test_where_there_is_no_choice_there_is_nothing_to_slide(devices: Path) -> None:
    text = shown(devices)
    assert re.findall(r'data-axis="(\d)"', text) == ["3"]
    rounds = plans.facts_of(devices)["cells"][0]["plan"]["rounds"]
    assert slot(text, "rounds") == f"{rounds}, as the recipe chooses"
    assert "for each device" in slot(text, "traffic-verdict")
    assert "What the sum needs" in text


def test_how_uncertain_the_error_is_is_said_beside_it(shops: Path) -> None:
    text, facts = shown(shops), plans.facts_of(shops)
    training = facts["trainings"][facts["cells"][facts["asked"]]["training"]]
    own, gain = training["rmse"]["private"], training["gain"]
    for each in (own, gain):
        margin = stats.t.ppf(0.975, 1) * each["spread"] / math.sqrt(2)
        assert (each["low"], each["high"]) == pytest.approx((each["mean"] - margin, each["mean"] + margin))
    assert slot(text, "accuracy-1") == (
        f"Root mean squared; {own['low']:.3f} to {own['high']:.3f} with 95% confidence, from 2 trainings "
        f"that spread by {own['spread']:.3f}."
    )
    assert "Student's t, 95%" in html.unescape(text)
    assert "The ratings are made up" in text


@pytest.mark.parametrize(
    ("low", "mean", "high", "words", "tone"),
    [
        (0.1, 0.2, 0.3, "0.200 lower than of parties that stay alone (0.100 to 0.300).", "good"),
        (
            -0.1,
            0.2,
            0.5,
            "0.200 lower than of parties that stay alone (-0.100 to 0.500): may be chance.",
            "plain",
        ),
        (-0.3, -0.2, -0.1, "0.200 HIGHER than of parties that stay alone (-0.300 to -0.100).", "doubt"),
        (None, 0.2, None, "0.200 lower than of parties that stay alone.", "plain"),
        (0.0, 0.0, 0.0, "the same as of parties that stay alone.", "plain"),
    ],
)
def test_what_joining_gains_is_told_with_how_sure_it_is(
    low: float | None, mean: float, high: float | None, words: str, tone: str, shops: Path, tmp_path: Path
) -> None:
    def gain(facts: plans.Facts) -> None:
        training = facts["trainings"][facts["cells"][facts["asked"]]["training"]]
        spread = None if low is None else (mean - low) / 9
        training["gain"] |= {"low": low, "mean": mean, "high": high, "spread": spread}

    text = shown(plans.changed(shops, tmp_path / "copy", gain))
    assert slot(text, "accuracy-3") == f"That is {words}"
    assert f'<section class="answer {tone}" data-card="accuracy">' in text


def test_of_a_single_training_no_certainty_is_claimed(devices: Path) -> None:
    text = shown(devices)
    assert "how far another would be from it is not known" in slot(text, "accuracy-1")
    assert {row[6] for row in rows(text, "Root mean squared errors on made-up ratings")} == {"not known"}
    assert "95% confidence" not in text


def test_all_that_was_tried_is_in_a_table(shops: Path) -> None:
    found = rows(shown(shops), "Root mean squared errors on made-up ratings")
    trainings = plans.facts_of(shops)["trainings"]
    assert len(found) == len(trainings) == 12
    for row, each in zip(found, trainings, strict=True):
        own = each["rmse"]["private"]
        assert row[:5] == [
            str(each["users"]),
            f"{each['ratings']:,}",
            str(each["rounds"]),
            f"{each['epsilon']:g}",
            "2",
        ]
        assert row[5:8] == [
            f"{own['mean']:.4f}",
            f"{own['low']:.4f} to {own['high']:.4f}",
            f"{own['spread']:.4f}",
        ]
        assert row[8:] == [f"{each['rmse'][name]['mean']:.4f}" for name in ("user_mean", "alone", "pooled")]


def test_releases_are_told_with_their_noise(shops: Path) -> None:
    facts = plans.facts_of(shops)
    releases = facts["cells"][facts["asked"]]["plan"]["releases"]
    found = rows(shown(shops), "Releases")
    assert len(found) == len(releases) == 2
    for row, each in zip(found, releases, strict=True):
        assert row[0].lower() == each["what"]
        assert row[1] == f"Gaussian noise, {each['mechanism']['noise_multiplier']:.4g} times the bound"
        assert row[2] == f"{each['signal_to_noise']:.3g}"


def test_the_script_can_show_every_choice_of_the_plan(shops: Path) -> None:
    text, facts = shown(shops), plans.facts_of(shops)
    found = attribute(text, "data-cells")
    assert attribute(text, "data-lengths") == [len(each) for each in facts["axes"].values()]
    assert attribute(text, "data-place") == facts["cells"][facts["asked"]]["place"]
    assert len(found) == len(facts["cells"]) == 24
    for each, cell in zip(found, facts["cells"], strict=True):
        for name in ("command", "toml", "python", "plan"):
            assert each["slots"][name] == cell["commands"][name]
        if cell["plan"] is None:
            assert each["slots"]["privacy-verdict"] == "Not planned"
        else:
            assert f"at most {percent(cell['plan']['odds'])}" in each["slots"]["privacy-verdict"]
            error = facts["trainings"][cell["training"]]["rmse"]["private"]["mean"]
            assert each["slots"]["accuracy-verdict"] == f"Error {error:.3f}"


def test_texts_to_copy_are_those_of_the_plan(shops: Path) -> None:
    text, facts = shown(shops), plans.facts_of(shops)
    told = facts["cells"][facts["asked"]]["commands"]
    assert {name: copies(text, name) for name in ("command", "toml", "python", "plan")} == {
        name: told[name] for name in ("command", "toml", "python", "plan")
    }
    assert f"The same as train.toml, for: {told['with_toml']}" in text


def asked_cell(change: Callable[[plans.Facts], object]) -> Callable[[plans.Facts], object]:
    """Change the cell that is shown first."""
    return lambda facts: change(facts["cells"][facts["asked"]])


def test_what_cannot_be_planned_says_why(shops: Path, tmp_path: Path) -> None:
    text = shown(plans.changed(shops, tmp_path / "copy", lambda facts: facts.update(asked=0)))
    for card in ("privacy", "accuracy", "traffic"):
        assert slot(text, f"{card}-verdict") == "Not planned"
    assert slot(text, "privacy-1") == "2 cannot be divided among 3 parties. Ask for fewer parties."
    assert rows(text, "Releases") == []
    assert "For this population nothing was tried." in text


def test_what_was_not_tried_is_left_empty_and_says_why(shops: Path, tmp_path: Path) -> None:
    nothing = {"training": None, "why_no_training": "no time was left."}
    text = shown(plans.changed(shops, tmp_path / "copy", asked_cell(lambda cell: cell.update(nothing))))
    assert (slot(text, "accuracy-verdict"), slot(text, "accuracy-1")) == ("Not tried", "No time was left.")
    assert slot(text, "summary").endswith("accuracy not tried.")


def test_fewer_users_than_asked_for_are_told(shops: Path, tmp_path: Path) -> None:
    text = shown(plans.changed(shops, tmp_path / "copy", asked_cell(lambda cell: cell.update(users=9000))))
    assert slot(text, "accuracy-verdict").endswith(", with 90 users only")


def test_a_plan_above_its_budget_is_bad_and_noise_that_drowns_is_told(shops: Path, tmp_path: Path) -> None:
    def worsen(cell: plans.Facts) -> None:
        cell["plan"] |= {"holds": False, "epsilon": None, "warnings": [f"delta is large {EVIL}"]}
        cell["plan"]["releases"][0]["signal_to_noise"] = 0.25

    text = shown(plans.changed(shops, tmp_path / "copy", asked_cell(worsen)))
    assert '<section class="answer bad" data-card="privacy">' in text
    assert slot(text, "privacy-2").startswith("No epsilon can be proved")
    assert "ABOVE the budget of 4" in slot(text, "privacy-2")
    assert rows(text, "Releases")[0][2] == "0.25 (drowned)"
    assert "<li>Delta is large &lt;script&gt;" in text


def test_what_nobody_asked_for_is_told(shops: Path, tmp_path: Path) -> None:
    text = shown(shops)
    assert "You did not say everything, so this was chosen: delta 1e-06." in text
    assert "<code>cofactor plan --open --delta …</code>" in text
    said = plans.changed(shops, tmp_path / "copy", lambda facts: facts.update(chosen=[]))
    assert "You did not say" not in shown(said)
