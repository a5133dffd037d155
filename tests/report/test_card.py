import json
from dataclasses import replace
from pathlib import Path

import pytest

from cofactor.report.beside import Beside, Checked, Policy
from cofactor.report.card import card, card_json, card_markdown
from cofactor.report.folder import Folder
from tests.report import making
from tests.report.conftest import Made
from tests.report.making import EVIL, told

KEYS = {
    "card",
    "format",
    "run",
    "created",
    "recipe",
    "holds",
    "verdict",
    "guarantee",
    "why_not",
    "policy",
    "audits",
    "verified",
    "useful",
    "cost",
    "versions",
    "seal",
    "sha256",
}
PROMISED = {
    "epsilon",
    "delta",
    "unit",
    "adjacency",
    "odds",
    "budget_epsilon",
    "releases",
    "secure_noise",
    "against",
    "covers",
    "does_not_cover",
    "warnings",
    "assumptions",
    "accountant",
}
HELD = Checked(name="files", holds=True, detail="As they were saved.")
BROKEN = Checked(name="files", holds=False, detail="One was changed.")


@pytest.mark.parametrize("kind", ["private", "pooled", "survey", "clustering"])
def test_the_card_has_the_same_keys_whatever_it_is_about(kind: str, made: Made) -> None:
    found = card(Folder.read(made(kind)), Beside())
    assert set(found) == KEYS
    assert set(found["guarantee"]) == PROMISED
    assert (found["card"], found["format"]) == ("cofactor", 1)


def test_the_card_says_what_the_guarantee_says(small_run: Path) -> None:
    facts = making.facts_of(small_run)
    found = json.loads(card_json(Folder.read(small_run), Beside()))
    assert found["guarantee"] == {name: facts["guarantee"][name] for name in PROMISED}
    assert (found["holds"], found["why_not"]) == (True, [])
    assert found["seal"] == facts["seal"]
    assert found["recipe"] == "HorizontalMF"


def test_a_card_of_what_does_not_hold_says_so_first() -> None:
    folder = told({"holds": False, "why_not": ["The noise can be repeated."]})
    found, text = card(folder, Beside()), card_markdown(folder, Beside())
    assert (found["holds"], found["verdict"]) == (False, "No")
    assert found["why_not"] == ["The noise can be repeated."]
    assert text.index("**No.**") < text.index("The noise can be repeated.") < text.index("## Is it useful?")


@pytest.mark.parametrize(
    ("checks", "verified", "said"),
    [
        (None, None, "cofactor verify: not asked"),
        ((HELD,), True, "cofactor verify: all checks hold"),
        ((HELD, BROKEN), False, "cofactor verify: SOME CHECKS FAIL"),
    ],
)
def test_a_card_says_whether_the_folder_was_checked(
    checks: tuple[Checked, ...] | None, verified: bool | None, said: str
) -> None:
    beside = Beside(checks=checks)
    assert card(told(), beside)["verified"] is verified
    assert said in card_markdown(told(), beside)
    assert card(told(), beside)["holds"] is (verified is not False)


def test_a_card_names_the_policy_it_was_judged_by() -> None:
    beside = Beside(policy=Policy(source="policy.toml", terms={"max_epsilon_per_run": 1.0}))
    assert card(told(), beside)["policy"] == "policy.toml"
    assert card(told(), beside)["verdict"] == "Not as the policy wants it"


def test_a_card_lists_what_attacks_found() -> None:
    audit = {
        "attack": "canaries",
        "seen_by": "coordinator",
        "verdict": "consistent",
        "headline": "Nothing speaks against it.",
        "figures": {},
        "confidence": 0.95,
    }
    folder = replace(told(), audits={"canaries-coordinator-1": audit})
    assert card(folder, Beside())["audits"] == [
        {name: audit[name] for name in ("attack", "seen_by", "verdict", "headline", "confidence")}
    ]
    assert "- canaries as coordinator: consistent. Nothing speaks against it." in card_markdown(
        folder, Beside()
    )
    assert "- None yet." in card_markdown(told(), Beside())


def test_a_card_does_not_hold_after_an_alarm_that_nobody_has_checked() -> None:
    audit = {"attack": "a", "seen_by": "c", "verdict": "alarm", "headline": "Broken.", "figures": {}}
    folder = replace(told(), audits={"canaries-1": audit})
    unchecked, explained = card(folder, Beside()), card(folder, Beside(checks=(HELD,)))
    assert (unchecked["holds"], explained["holds"]) == (False, True)
    assert unchecked["why_not"] == ["An audit says that the promise was not kept. canaries-1: Broken."]


def test_what_a_folder_says_never_becomes_markup_of_the_card() -> None:
    folder = told(
        {"against": [f"{EVIL} *all* [x](http://a) `b`\n# Title | c"], "covers": ["- a\n\n## b"]}, name="a*b_c"
    )
    text = card_markdown(folder, Beside())
    assert "# Privacy card: a\\*b\\_c" in text
    assert "- \\<script\\>alert(1)\\</script\\> \\*all\\* \\[x\\](http://a) \\`b\\` \\# Title \\| c" in text
    assert "\n# Title" not in text
    assert text.count("\n## ") == 8


def test_a_card_ends_its_lines() -> None:
    assert card_markdown(told(), Beside()).endswith("\n")
    assert card_json(told(), Beside()).endswith("}\n")
