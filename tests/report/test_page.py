"""Pages of runs as bad as they come: strange names, crowds, one round, and folders that are broken."""

import json
import math
import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cofactor.errors import CofactorError, RunError
from cofactor.report import privacy_part
from cofactor.report.card import card_markdown
from cofactor.report.comparison import compared, comparison
from cofactor.report.folder import Folder
from cofactor.report.page import page
from tests.report import making
from tests.report.conftest import Made
from tests.report.making import EVIL, QUOTED, told

_NUMBERS = (-1, 0, 10**400, 1e308, math.nan, math.inf, True)
STRANGE: tuple[Any, ...] = ("", None, *_NUMBERS, "x", EVIL, [], {}, [None], {"a": 1})
"""What may stand in a file in place of anything."""


def shown(path: Path, other: Path | None = None) -> str:
    """Return the page of a folder, or of two beside each other; none if it is refused by its name."""
    try:
        folder = Folder.read(path)
        text = page(folder)
        if other is not None:
            text = comparison(compared([folder, Folder.read(other)]))
    except CofactorError as error:
        assert isinstance(error, RunError)  # noqa: PT017
        assert str(path) in str(error)  # noqa: PT017
        return ""
    card_markdown(folder, making.BESIDE)  # if there is a page, there is a card
    return text


def scripts(text: str) -> int:
    """Count the scripts of a page, and what could run in other ways."""
    return len(re.findall(r"<script|<img|<iframe|\son\w+=\"?|javascript:", text))


@pytest.mark.parametrize("kind", list(making.COMMANDS))
def test_every_kind_of_folder_has_a_page(kind: str, made: Made) -> None:
    text = page(Folder.read(made(kind)))
    assert text.startswith("<!DOCTYPE html>")
    assert scripts(text) == 1
    assert "nan" not in re.findall(r'(?:[xy][12]?|c[xy]|width|height|d)="([^"]*)"', text)


@pytest.mark.parametrize("name", [EVIL, QUOTED, "a" * 10_000, "\u202eevil", "  ", "}]</style>"])
def test_a_party_may_have_any_name(name: str, small_run: Path, tmp_path: Path) -> None:
    folder = Folder.read(making.renamed(small_run, tmp_path / "copy", "party-1", name))
    text = page(folder)
    assert scripts(text) == 1
    assert text.count("</style>") == 1
    assert name in folder.parties


def test_what_people_wrote_is_text_wherever_it_is_shown(tmp_path: Path) -> None:
    evil = f"{EVIL}{QUOTED}"
    asked = {"question": {"name": evil, "low": 0, "high": 1}, "answered": 1, "mean": 0.5}
    found = {
        "parties": [evil, evil],
        "columns": [[evil]],
        "ranges": [[[0, 1]]],
        "centres": [[0.5]],
        "sizes": [3.0],
        "concerns": [evil],
    }
    promised = {name: [evil] for name in ("against", "covers", "does_not_cover", "warnings")}
    assumed = {"assumptions": [{"what": evil, "met": evil}], "statement": evil}
    survey = {"survey": asked, "recipe": {"kind": evil, "epsilon": 1.0}}
    for more in ({}, survey, {"clustering": found}):
        folder = told({**promised, **assumed}, name=evil.replace("/", "|"), versions={evil: evil}, **more)
        assert scripts(page(folder)) == 1
        assert scripts(comparison(compared([folder, told(name="b")]))) == 1


def test_ten_thousand_parties_are_cut_and_counted(small_run: Path, tmp_path: Path) -> None:
    folder = Folder.read(making.crowd(small_run, tmp_path / "copy", 10_000))
    text = page(folder)
    assert len(folder.parties) == len({each.by for each in folder.releases}) == 10_000
    assert "10,000 parties" in text
    assert "9,800 more parties are in run.json." in text
    assert len(text.encode()) < 1.5e6


def test_a_hundred_rounds_of_ten_parties_are_small(small_run: Path, tmp_path: Path) -> None:
    folder = Folder.read(making.long(small_run, tmp_path / "copy", rounds=100, parties=10))
    text = page(folder)
    assert len(folder.rounds()) == 100
    assert len(folder.releases) == 1_000
    assert "The ledger, round by round (100 rounds)" in text
    assert len(text.encode()) < 1.5e6


def test_a_single_round_can_be_drawn() -> None:
    event = {"stage": "round", "step": 1, "numbers": {"answered": 2, "bytes": 5.0, "epsilon": 1.0}}
    folder = replace(told(), events=(event,))
    assert "Parties that answered" in page(folder)
    drawn = str(privacy_part.spending(folder))
    assert "spent: from 1 to 1" in drawn
    assert len(re.findall("<circle", drawn)) == 1


def test_numbers_of_epsilon_are_never_rounded_down() -> None:
    event = {"stage": "round", "step": 1, "numbers": {"epsilon": 1.23401}}
    audit = {"seen_by": "c", "verdict": "resisted", "headline": "h", "figures": {}}
    folder = replace(told({"epsilon": 1.23401}), events=(event,), audits={"a": audit})
    assert "spent: 1.235 at 1" in str(privacy_part.spending(folder))
    assert ">1.235</td>" in str(privacy_part.bounds(folder))


@pytest.mark.parametrize("rounds", [0, 10**9])
def test_a_run_that_says_it_had_strange_numbers_of_rounds_has_a_page(rounds: int) -> None:
    together = {**told().facts["together"], "rounds": rounds, "planned_rounds": 10**12}
    assert f"{rounds:,} rounds" in page(told(together=together))


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e6, 1e300])
def test_promises_of_any_size_are_shown(epsilon: float) -> None:
    text = page(told({"epsilon": epsilon, "budget_epsilon": epsilon, "odds": 1.0}))
    assert "Epsilon" in text


def everywhere(facts: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything in a table, however deep."""
    within = (
        facts.items() if isinstance(facts, dict) else enumerate(facts[:2]) if isinstance(facts, list) else ()
    )
    for name, value in within:
        yield (*way, name)
        yield from everywhere(value, (*way, name))


def damaged(facts: dict[str, Any], way: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return facts in which one thing is another; `...` leaves it out."""
    changed: dict[str, Any] = json.loads(json.dumps(facts))
    at: Any = changed
    for step in way[:-1]:
        at = at[step]
    if value is ...:
        del at[way[-1]]
    else:
        at[way[-1]] = value
    return changed


@pytest.mark.parametrize("kind", ["private", "masked", "pooled", "survey", "clustering"])
def test_a_damaged_run_json_is_shown_or_refused_by_name(kind: str, made: Made, tmp_path: Path) -> None:
    source, chance = made(kind), random.Random(5)
    facts, refused = making.facts_of(source), 0
    copy = making.changed(source, tmp_path / "copy")
    ways = list(everywhere(facts))
    for way in chance.sample(ways, min(len(ways), 60)):
        value = chance.choice((..., *STRANGE))
        (copy / "run.json").write_text(json.dumps(damaged(facts, way, value)))
        text = shown(copy, source if chance.random() < 0.3 else None)
        assert scripts(text) == bool(text), (way, value)
        refused += not text
    assert 0 < refused < 60


@pytest.mark.parametrize("name", ["run.json", "events.jsonl", "transcript.jsonl", "ledgers/party-1.ledger"])
def test_files_with_holes_are_shown_or_refused_by_name(name: str, small_run: Path, tmp_path: Path) -> None:
    chance, copy = random.Random(7), making.changed(small_run, tmp_path / "copy")
    whole = (copy / name).read_bytes()
    for _ in range(25):
        start = chance.randrange(len(whole))
        hole = bytes(chance.randrange(256) for _ in range(chance.randrange(9)))
        (copy / name).write_bytes(whole[:start] + hole + whole[start + chance.randrange(200) :])
        text = shown(copy)
        assert scripts(text) == bool(text)


@pytest.mark.parametrize("stage", ["round", "simulation"])
@pytest.mark.parametrize("value", STRANGE)
def test_strange_events_are_shown_or_refused(stage: str, value: Any, small_run: Path, tmp_path: Path) -> None:
    copy = making.changed(small_run, tmp_path / "copy")
    event = {
        "stage": stage,
        "step": 3,
        "note": value,
        "numbers": {"epsilon": value, "signal_to_noise": value},
    }
    making.with_events(
        copy, [event, {**event, "numbers": value}, {**event, "step": value, "numbers": {"bytes": 1}}]
    )
    text = shown(copy)
    assert scripts(text) == bool(text)


def test_a_folder_of_which_files_are_missing_still_has_a_page(small_run: Path, tmp_path: Path) -> None:
    copy = making.changed(small_run, tmp_path / "copy")
    for name in ("events.jsonl", "transcript.jsonl"):
        (copy / name).unlink()
    shutil.rmtree(copy / "ledgers")
    text = page(Folder.read(copy))
    assert "What is promised" in text
    assert "Who sees what" not in text
