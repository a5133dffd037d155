"""The page that watches a training, in a browser: it shows what is new, and stops a real training."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cofactor.report.live_server import served
from tests.cli import worlds
from tests.report.conftest import Opened, Seen
from tests.report.looking import FOLD, UNFOLD, barriers, never_scrolls_sideways, picture
from tests.report.making import facts_of
from tests.report.test_underway import words_of
from tests.report.watching import SECONDS, Making, no_page

EPSILON, ROUNDS = 4, 3_000
PATIENCE = 90
"""Seconds: kernels may have to be compiled first."""
TRAIN = ("train", "all.csv", "--parties", 3, "--split", "horizontal", "--recipe", "horizontal-mf", "--quiet")
STEPS = ("--rounds", ROUNDS, "--factors", 2, "--epsilon", EPSILON, "--out", "private")
ATTACK = """async address => {
  await fetch(address + "stop", { method: "POST", mode: "no-cors" }).catch(() => null);
  return fetch(address).then(each => each.text()).catch(() => "refused");
}"""
"""What a page from elsewhere could try that has got hold of the address."""
Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def making(tmp_path: Path) -> Making:
    """A training of three shops after eight of twenty rounds, in one of which somebody was lost."""
    return Making(tmp_path / "private").begin().rounds(7).round(8, lost=["west"])


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Start commands in a folder of files, as a user does; whatever still runs is ended."""
    worlds.write(tmp_path)
    running: list[subprocess.Popen[str]] = []

    def start(*words: object) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "cofactor", *map(str, words)]
        pipe = subprocess.PIPE
        running.append(subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def ended(process: "subprocess.Popen[str]") -> str:
    """Wait for the end of a command that must succeed; return what it printed."""
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out + err
    return out


def watched(process: "subprocess.Popen[str]") -> str:
    """Return the address that a command prints when it is ready."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line.startswith("}"):
            return str(json.loads(text)["address"])
    raise AssertionError(process.communicate()[1])


def heading(seen: Seen, words: str) -> None:
    """Wait until the state stands beside the name."""
    seen.page.locator("h1", has_text=words).wait_for(timeout=1000 * PATIENCE)


@contextmanager
def watching(making: Making, opened: Opened, **options: Any) -> Iterator[Seen]:
    """Serve the page of a training, and look at it; it may ask nobody else, and complain of nothing."""
    with served(making.run, no_page) as address:
        seen = opened(address, viewport={"width": 1100, "height": 900}, **options)
        seen.page.wait_for_selector("#head header")
        yield seen
        alone_and_content(seen, address)


def alone_and_content(seen: Seen, address: str) -> None:
    assert {each for each in seen.requests if not each.startswith(address)} == set()
    assert seen.complaints == []


def press_stop(seen: Seen, *, sure: bool) -> str:
    """Go to the button by keyboard, press it, and answer what is asked; return the question."""
    page = seen.page
    page.once("dialog", lambda dialog: dialog.accept() if sure else dialog.dismiss())
    page.locator("#stop").wait_for()
    there = "document.activeElement.id === 'stop'"
    for _ in range(5):
        if not page.evaluate(there):
            page.keyboard.press("Tab")
    assert page.evaluate(there)
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    with page.expect_event("dialog") as asked:
        page.keyboard.press("Enter")
    return asked.value.message


def test_a_new_round_is_shown_by_itself(making: Making, opened: Opened) -> None:
    with watching(making, opened) as seen:
        assert "Round 8 of 20" in words_of(seen.page.locator("#head").inner_html())
        assert "2 of 3 answered" in words_of(seen.page.locator("#head").inner_html())
        fold = seen.page.locator("figure details").first
        fold.locator("summary").focus()
        seen.page.keyboard.press("Enter")
        making.round(9)
        seen.page.locator("#head", has_text="Round 9 of 20").wait_for()
        assert fold.evaluate("each => each.open")  # what was opened stays so
        assert fold.evaluate("each => each.firstElementChild === document.activeElement")
        making.tell("failed")
        heading(seen, "failed")
        assert seen.page.locator("#state").text_content() == "It is failed now."
        assert seen.page.locator("#stop").is_hidden()


def test_a_training_is_stopped_by_keyboard_and_only_by_whoever_is_sure(
    making: Making, opened: Opened
) -> None:
    stop = making.place / "stop"
    with watching(making, opened) as seen:
        question = press_stop(seen, sure=False)
        assert question.startswith("End the training after this round?")
        making.round(9)
        seen.page.locator("#head", has_text="Round 9 of 20").wait_for()
        assert not stop.exists()
        press_stop(seen, sure=True)
        heading(seen, "stopping")
        assert stop.exists()
        assert seen.page.locator("#stop").is_hidden()
        assert seen.page.locator("#state").text_content() == "It is stopping now."


def test_another_site_can_neither_read_nor_stop(making: Making, opened: Opened, tmp_path: Path) -> None:
    evil = tmp_path / "evil.html"
    evil.write_text("<!DOCTYPE html><title>evil</title>")
    with served(making.run, no_page) as address:
        page = opened(evil).page
        told = page.evaluate(ATTACK, address)
        framed = opened(evil)
        framed.page.set_content(f"<iframe src='{address}'></iframe>")
        framed.page.wait_for_load_state("networkidle")
        assert "Stop after this round" not in framed.page.frames[-1].content()
    assert told == "refused"
    assert not (making.place / "stop").exists()


def test_a_page_that_is_left_alone_says_so(making: Making, opened: Opened) -> None:
    with served(making.run, no_page) as address:
        page = opened(address).page
        page.wait_for_selector("#head header")
    page.locator("#told", has_text="does not answer").wait_for()
    assert "Round 8 of 20" in words_of(page.locator("#head").inner_html())


def test_axe_finds_no_barrier_and_screenshots_are_taken(making: Making, opened: Opened) -> None:
    with watching(making, opened) as seen:
        seen.page.evaluate(UNFOLD)
        assert not (found := barriers(seen.page)), found
        seen.page.evaluate(FOLD)
        picture(seen.page, "live-dark")
        seen.page.emulate_media(color_scheme="light")
        picture(seen.page, "live-light")
        assert never_scrolls_sideways(seen.page)


def test_a_page_of_a_run_to_which_errors_were_added_meanwhile_loads_anew(
    making: Making, opened: Opened
) -> None:
    (making.place / "session.json").unlink()
    making.run.mkdir()
    (making.run / "run.json").write_text("{}")
    with served(making.run, no_page) as address:
        page = opened(address).page
        page.wait_for_function("typeof show == 'function'")
        with page.expect_navigation():
            page.evaluate("show({ page: 'finished later' })")  # the first that it hears of


def test_a_real_training_is_watched_stopped_and_reported(
    started: Started, tmp_path: Path, opened: Opened
) -> None:
    watcher = started("report", "private", "--live", "--json")
    address = watched(watcher)
    seen = opened(address, viewport={"width": 1100, "height": 900})
    heading(seen, "waiting")
    training = started(*TRAIN, *STEPS)
    heading(seen, "training")
    press_stop(seen, sure=True)
    ended(training)
    heading(seen, "stopped after round")  # it has turned into the report, by itself
    run = tmp_path / "private"
    facts = facts_of(run)
    together, guarantee = facts["together"], facts["guarantee"]
    assert 1 <= together["rounds"] < together["planned_rounds"]
    assert together["planned_rounds"] >= ROUNDS
    assert guarantee["holds"]
    assert 0 < guarantee["epsilon"] < 0.95 * EPSILON  # whatever runs to its end spends nearly all
    told = json.loads(ended(started("verify", "private", "--json")))
    assert told["holds"]
    text = str(seen.page.locator("body").text_content())
    assert f"stopped after round {together['rounds']:,} of {together['planned_rounds']:,}" in text
    for part in ("Is it private?", "Is it useful?", "What did it cost?"):
        assert part in text
    assert seen.page.locator("#stop").count() == 0
    alone_and_content(seen, address)
    picture(seen.page, "live-stopped")
    watcher.send_signal(signal.SIGINT)
    watcher.communicate(timeout=SECONDS)
