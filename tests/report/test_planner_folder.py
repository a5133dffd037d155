"""Plan folders that are damaged, newer or hostile: a clear refusal, or a page of which all is text."""

import html
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest

from cofactor.errors import RunError
from cofactor.report.planner import page
from cofactor.report.planner_folder import PlanFolder
from tests.report import plans
from tests.report.making import EVIL, QUOTED
from tests.report.test_page import STRANGE, scripts

HOSTILE = f"{EVIL}{QUOTED}</style></div>"
REMEDY = "Make it again with 'cofactor plan --out'."


@pytest.fixture(scope="session")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plans.plan_folder("shops", tmp_path_factory)


def refusal(folder: Path) -> str:
    """Return why a folder has no page."""
    with pytest.raises(RunError) as refused:
        page(PlanFolder.read(folder))
    assert str(refused.value).startswith(str(folder))
    return str(refused.value)


def test_the_page_in_the_folder_is_made_of_plan_json_alone(shops: Path, tmp_path: Path) -> None:
    copy = tmp_path / shops.name
    copy.mkdir()
    (copy / "plan.json").write_bytes((shops / "plan.json").read_bytes())
    assert page(PlanFolder.read(copy)) == (shops / "plan.html").read_text()


def test_no_file_is_opened_but_plan_json_and_what_pages_are_made_of(
    shops: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    opened, really = [], io.open

    def watched(file: Any, *words: Any, **more: Any) -> Any:
        opened.append(Path(file))
        return really(file, *words, **more)

    monkeypatch.setattr(io, "open", watched)
    monkeypatch.setattr("builtins.open", watched)
    page(PlanFolder.read(shops))
    assert opened[0] == shops / "plan.json"
    assert {each.name for each in opened[1:]} == {"planner.js", "style.css", "page.js"}


def test_what_is_no_plan_folder_says_how_to_make_one(tmp_path: Path) -> None:
    told = refusal(tmp_path)
    assert told == (
        f"{tmp_path} is not a plan folder: it has no plan.json. "
        f"Make one with 'cofactor plan --out {tmp_path}'."
    )
    assert "is not a plan folder" in refusal(tmp_path / "nowhere")


def test_a_newer_plan_says_to_upgrade(shops: Path, tmp_path: Path) -> None:
    newer = plans.changed(shops, tmp_path / "copy", lambda facts: facts.update(format=2))
    assert refusal(newer).endswith("was written by a newer cofactor (format 2). Upgrade cofactor.")


def test_a_plan_that_was_changed_by_hand_is_refused(shops: Path, tmp_path: Path) -> None:
    def promise(facts: plans.Facts) -> None:
        facts["cells"][facts["asked"]]["plan"]["odds"] = 0.5

    told = refusal(plans.changed(shops, tmp_path / "copy", promise, sealed=False))
    assert "plan.json was changed after it was made" in told
    assert told.endswith(REMEDY)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", "7", "{}", '{"format": 1}', '{"format": "1"}', "[" * 5000, "\udcff"]
)
def test_what_is_no_plan_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(content.encode(errors="surrogateescape"))
    told = refusal(tmp_path)
    assert "the plan folder is damaged" in told
    assert told.endswith(REMEDY)


@pytest.mark.parametrize(
    "change",
    [
        {"asked": 24},
        {"asked": -1},
        {"asked": "0"},
        {"cells": []},
        {"axes": {}},
        {"trainings": []},
        {"budget": None},
        {"chosen": ["nothing"]},
    ],
)
def test_a_plan_that_does_not_fit_together_is_refused(
    change: plans.Facts, shops: Path, tmp_path: Path
) -> None:
    told = refusal(plans.changed(shops, tmp_path / "copy", lambda facts: facts.update(change)))
    assert told.endswith(REMEDY)


@pytest.mark.parametrize("name", ["format", "name", "recipe", "split", "parties", "budget", "axes", "cells"])
def test_a_plan_of_which_something_is_missing_is_refused(name: str, shops: Path, tmp_path: Path) -> None:
    told = refusal(plans.changed(shops, tmp_path / "copy", lambda facts: facts.pop(name)))
    assert f"KeyError: '{name}'" in told


def test_whatever_a_plan_says_is_text(shops: Path, tmp_path: Path) -> None:
    def poison(facts: plans.Facts) -> None:
        facts |= {"name": HOSTILE, "split": HOSTILE, "cofactor": HOSTILE, "chosen": ["recipe"]}
        facts["recipe"]["kind"] = facts["budget"]["unit"] = facts["budget"]["adjacency"] = HOSTILE
        facts["trainings"] = json.loads(
            json.dumps(facts["trainings"]).replace('"private"', json.dumps(HOSTILE))
        )
        for cell in facts["cells"]:
            cell |= {"sum": [HOSTILE], "why_no_plan": HOSTILE, "why_no_training": HOSTILE}
            cell["commands"] = dict.fromkeys(cell["commands"], HOSTILE)
            if cell["plan"] is not None:
                cell["plan"] |= {"warnings": [HOSTILE], "accountant": HOSTILE}
                for release in cell["plan"]["releases"]:
                    release["what"] = release["mechanism"]["kind"] = HOSTILE

    text = page(PlanFolder.read(plans.changed(shops, tmp_path / "copy", poison)))
    assert scripts(text) == 1
    assert text.count("</style>") == text.count("</script>") == 1
    assert f"A plan for {HOSTILE}" in html.unescape(text)
    assert text.count(html.escape(EVIL)) > 100


def places(facts: Any) -> list[tuple[Any, Any]]:
    """Return all places in facts in which something stands."""
    inside = facts.items() if isinstance(facts, dict) else enumerate(facts)
    found: list[tuple[Any, Any]] = []
    for key, value in inside:
        found += [(facts, key), *(places(value) if isinstance(value, dict | list) else [])]
    return found


@pytest.mark.parametrize("value", STRANGE)
def test_strange_values_are_shown_or_refused(value: Any, shops: Path, tmp_path: Path) -> None:
    chance, refused = random.Random(3), 0
    for count in range(12):

        def disturb(facts: plans.Facts) -> None:
            cell = facts["cells"][facts["asked"]]
            own = [facts, *[cell] * 3, facts["trainings"][cell["training"]], facts["axes"]]
            holder, key = chance.choice(places(chance.choice(own)))
            holder[key] = value

        folder = plans.changed(shops, tmp_path / str(count), disturb)
        try:
            text = page(PlanFolder.read(folder))
        except RunError as error:
            assert str(folder) in str(error)  # noqa: PT017
            refused += 1
        else:
            assert scripts(text) == 1
            drawn = re.findall(r' (?:[xy][12]?|c[xy]|width|height|d|points)="([^"]*)"', text)
            assert not re.search(r"nan|inf", " ".join(drawn))
    is_number = not isinstance(value, float) or math.isfinite(value)
    assert refused < 12 if is_number else refused == 12


def test_a_plan_with_holes_is_refused(shops: Path, tmp_path: Path) -> None:
    chance, whole = random.Random(5), (shops / "plan.json").read_bytes()
    for _ in range(25):
        start = chance.randrange(len(whole))
        (tmp_path / "plan.json").write_bytes(whole[:start] + whole[start + chance.randrange(1, 300) :])
        assert "the plan folder is damaged" in refusal(tmp_path)
