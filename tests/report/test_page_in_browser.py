"""Every section of the page with the numbers of the folder, as a browser shows it."""

import json
from pathlib import Path
from typing import Any

import pytest

from cofactor.figures import at_least, at_most, fingerprint, percent, rounded_up
from tests.report import making
from tests.report.conftest import Made, Opened, Seen

KINDS = (*making.COMMANDS, "audited", "measured", "alarmed", "compared", "underway")
PARTS = {
    "promise": "What is promised",
    "assumptions": "What it rests on",
    "ledger": "What was released",
    "sight": "Who sees what",
    "attacks": "Attempts to break it",
    "approvals": "Who agreed",
    "checks": "Does the folder bear it out?",
    "card": "Privacy card",
    "accuracy": "How good it is",
    "curves": "Round by round",
    "parties": "Who took part",
    "costs": "Time and bytes",
    "settings": "Do it again",
    "versions": "What this was made of",
}
"""All that the page of a run of real parties, measured in every way, is made of."""
ROWS = """
caption => {
  const tables = [...document.querySelectorAll("table")];
  const found = tables.find(each => each.caption.textContent.trim() === caption);
  return [...found.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent.trim()));
}
"""


def rows(seen: Seen, caption: str) -> list[list[str]]:
    """Return the cells of a table, which may be folded away."""
    found: list[list[str]] = seen.page.evaluate(ROWS, caption)
    return found


def answers(seen: Seen) -> list[str]:
    """Return what the three answers say; a number and its unit are never parted."""
    return [
        text.replace("\N{NO-BREAK SPACE}", " ") for text in seen.page.locator(".answer").all_inner_texts()
    ]


def entries(run: Path) -> list[dict[str, Any]]:
    """Return all events of all ledgers."""
    lines = [line for path in (run / "ledgers").glob("*.ledger") for line in path.read_text().splitlines()]
    return [each["event"] for each in map(json.loads, lines) if "event" in each]


def messages(run: Path) -> list[dict[str, Any]]:
    """Return all messages of the transcript."""
    return [json.loads(line) for line in (run / "transcript.jsonl").read_text().splitlines()[1:]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_from_disk_asks_nobody_and_complains_of_nothing(
    kind: str, pages: Made, opened: Opened
) -> None:
    seen = opened(pages(kind))
    seen.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert seen.page.get_by_role("heading", level=1).is_visible()
    assert seen.requests == []
    assert seen.complaints == []


def test_the_browser_keeps_the_page_from_loading_and_running_anything(pages: Made, opened: Opened) -> None:
    page = opened(pages("private")).page
    ran = page.evaluate(
        "() => { const own = document.createElement('script'); own.textContent = 'window.ran = 1';"
        " document.body.append(own); return window.ran === 1; }"
    )
    reached = page.evaluate("() => fetch('https://example.org/').then(() => true, () => false)")
    loaded = page.evaluate(
        "() => new Promise(done => { const image = new Image(); image.onload = () => done(true);"
        " image.onerror = () => done(false); image.src = 'https://example.org/a.png'; })"
    )
    assert (ran, reached, loaded) == (False, False, False)


def test_every_part_is_there_in_order_and_linked_from_the_top(pages: Made, opened: Opened) -> None:
    page = opened(pages("measured")).page
    found = page.eval_on_selector_all("main > section", "all => all.map(each => each.id)")
    assert found == list(PARTS)
    titles = page.get_by_role("heading", level=2).all_text_contents()
    assert titles == ["Is it private?", "Is it useful?", "What did it cost?", *PARTS.values()]
    for identity, title in PARTS.items():
        page.get_by_role("navigation").get_by_role("link", name=title, exact=True).click()
        assert page.url.endswith(f"#{identity}")
        assert page.locator(f"#{identity}").evaluate("each => each.getBoundingClientRect().top < innerHeight")


def test_the_three_answers_are_those_of_the_folder(pages: Made, opened: Opened, small_run: Path) -> None:
    cards = answers(opened(pages("private")))
    facts = making.facts_of(small_run)
    given, scores, together = facts["guarantee"], facts["scores"], facts["together"]
    assert f"Epsilon {rounded_up(given['epsilon'])} at delta 1e-06, for each user." in cards[0]
    assert f"right at most {percent(given['odds'])} of the time" in cards[0]
    assert "As promised, but the promise is weak" in cards[0]
    for name, said in (("user_mean", "sends nothing"), ("alone", "alone"), ("private", "private, together")):
        assert f"{said} {scores[name]['rmse']:.4f}" in cards[1]
    assert (
        f"{together['rounds']} rounds, {facts['seconds']:.2g} s, {together['bytes'] / 1e3:.3g} kB" in cards[2]
    )
    assert "No party was lost in any round." in cards[2]


def test_assumptions_are_those_of_the_guarantee(pages: Made, opened: Opened, small_run: Path) -> None:
    given = making.facts_of(small_run)["guarantee"]
    shown = rows(opened(pages("private")), "Assumptions of the guarantee")
    assert shown == [[each["what"], each["met"]] for each in given["assumptions"]]


def test_releases_are_those_of_the_ledgers(pages: Made, opened: Opened, small_run: Path) -> None:
    seen, spent = opened(pages("private")), entries(small_run)
    shown = rows(seen, "Releases, those that are alike together")
    assert sum(int(row[6]) for row in shown) == len(spent) == 18
    vectors = next(row for row in shown if row[0] == "item vectors")
    noise = next(each["mechanism"]["noise_multiplier"] for each in spent if each["dimension"] > 1)
    assert vectors[1:4] == ["2 to 6", "3", f"Gaussian noise, {noise:.4g} times the bound"]
    assert vectors[4:] == ["5 (l2)", "80", "15"]
    by_round = rows(seen, "The ledger, round by round")
    steps = [json.loads(line) for line in (small_run / "events.jsonl").read_text().splitlines()]
    epsilons = [rounded_up(each["numbers"]["epsilon"]) for each in steps if each["stage"] == "round"]
    assert [row[0] for row in by_round] == ["1", "2", "3", "4", "5", "6"]
    assert [row[4] for row in by_round] == epsilons
    assert {row[3] for row in by_round} == {"3"}


def test_the_curve_of_epsilon_has_a_value_to_point_at_for_each_round(
    pages: Made, opened: Opened, small_run: Path
) -> None:
    page = opened(pages("private")).page
    figure = page.locator("#ledger figure").first
    values = figure.locator("circle title").all_text_contents()
    steps = [json.loads(line) for line in (small_run / "events.jsonl").read_text().splitlines()]
    spent = [each["numbers"]["epsilon"] for each in steps if each["stage"] == "round"]
    assert values == [f"spent: {at_most(value):.4g} at {at}" for at, value in enumerate(spent, 1)]
    assert "budget: 4" in str(figure.get_by_role("img").get_attribute("aria-label"))


@pytest.mark.parametrize("kind", ["private", "masked", "plain", "survey", "clustering"])
def test_the_grid_has_every_message_of_the_transcript(
    kind: str, pages: Made, opened: Opened, made: Made
) -> None:
    shown = rows(opened(pages(kind)), "Who saw which message, and how it was protected")
    counted = [int(row[-1].replace(",", "")) for row in shown if row[-1]]
    assert sum(counted) == len(messages(made(kind))) > 0
    assert all(cell == "nothing" for cell in shown[0][2:-1])  # nobody sees ratings


def test_what_the_coordinator_sees_is_said_as_it_was_protected(pages: Made, opened: Opened) -> None:
    caption = "Who saw which message, and how it was protected"
    private = {row[0]: row[2:4] for row in rows(opened(pages("private")), caption)}
    assert private["Vectors: item vectors"] == ["noisy", "nothing"]
    masked = rows(opened(pages("masked")), caption)
    steps = {row[0]: row[2:4] for row in masked if row[0].startswith("Sum step")}
    assert len(steps) == 5, "each step of a sum has a name of its own"
    assert [seen for name, seen in steps.items() if "sums" in name] == [["masked", "nothing"]]
    assert steps["Sum step: shares of keys"] == ["keys", "nothing"]
    assert "plain" not in {cell for row in masked for cell in row[2:4]}
    plain = rows(opened(pages("plain")), caption)
    assert "plain" in {row[2] for row in plain if row[1].startswith("parties")}


def test_what_attacks_found_is_drawn_beside_the_promise(
    pages: Made, opened: Opened, audited_run: Path
) -> None:
    seen = opened(pages("audited"))
    found = json.loads(next((audited_run / "audits").iterdir()).read_text())
    (shown,) = rows(seen, "Attacks and audits")
    assert shown[2:] == ["consistent", found["headline"], "99.99999%"]
    told = seen.page.locator("#attacks circle title").all_text_contents()
    promised, proved = found["figures"]["epsilon promised"], found["figures"]["epsilon proved at least"]
    assert told[0] == f"promised: at most: {rounded_up(promised)}"
    assert told[1].endswith(f"at least: {at_least(proved):.4g} of {rounded_up(promised)}")


def test_all_checks_of_verify_are_listed(pages: Made, opened: Opened) -> None:
    seen = opened(pages("private"))
    shown = {row[0]: row[1] for row in rows(seen, "cofactor verify")}
    assert {"ledger of party-1", "transcript", "guarantee", "files"} <= set(shown)
    assert set(shown.values()) == {"yes"}


def test_errors_by_party_are_those_of_the_folder(pages: Made, opened: Opened, small_run: Path) -> None:
    scores = making.facts_of(small_run)["scores"]
    shown = rows(opened(pages("private")), "Root mean squared error, party by party")
    for row in shown:
        names = ("user_mean", "bias", "alone", "private", "pooled")
        assert row[1:6] == [f"{scores[name]['parties'][row[0]]['rmse']:.4f}" for name in names]
    assert len(shown) == making.PARTIES


def test_what_a_simulation_measured_is_marked_as_such(pages: Made, opened: Opened) -> None:
    page = opened(pages("measured")).page
    captions = page.locator("#curves figcaption").all_text_contents()
    assert captions == [
        "Parties that answered RELEASED",
        "Size of all messages, both ways RELEASED",
        "Signal divided by noise, by release SIMULATION",
        "Share of contributions that were shortened SIMULATION",
        "Share of ratings that were left out SIMULATION",
    ]
    values = page.locator("#curves figure").nth(2).locator("circle title").all_text_contents()
    assert [each for each in values if "made-up" in each] == [
        f"made-up release: 0.75 at {at}" for at in range(2, 7)
    ]


def test_a_curve_has_what_the_simulation_says_of_each_release(
    pages: Made, opened: Opened, small_run: Path
) -> None:
    events = [json.loads(line) for line in (small_run / "events.jsonl").read_text().splitlines()]
    measured = [each for each in events if each["stage"] == "simulation"]
    figure = opened(pages("private")).page.locator("#curves figure", has_text="Signal divided by noise")
    assert sorted(figure.locator("circle title").all_text_contents()) == sorted(
        f"{each['note']}: {each['numbers']['signal_to_noise']:.4g} at {each['step']}" for each in measured
    )
    assert {"the mean rating", "item vectors"} <= set(figure.locator(".legend li").all_text_contents())


def test_groups_phases_and_approvals_are_those_of_the_folder(pages: Made, opened: Opened, made: Made) -> None:
    seen = opened(pages("measured"))
    activity = rows(seen, "Error by how many ratings users have, beside users' own means")
    spread = "0.9000 (0.8000 to 1.1000)"
    assert activity[0] == ["1 to 9 ratings", "40", spread, "1.2500", spread]
    assert activity[1] == [f"10 or more {making.QUOTED}", "20", "0.6250", "-", "-"]
    careful = rows(seen, "Who pays for privacy: error by group of users, beside users' own means")
    assert careful == [
        ["conservative", "9", *["0.8750"] * 3],
        ["liberal", "51", *["0.7500 (0.5000 to 1.0000)"] * 3],
    ]
    assert rows(seen, "Time by phase") == [["rounds", "1 min 11 s"], ["finishing at home", "9.5 s"]]
    agreed = making.facts_of(pages("measured").with_suffix(""))["together"]["approvals"]
    assert rows(seen, "Approvals, signed by the parties") == [
        [
            each["party"],
            "by hand",
            "2026-11-19 08:00:00 UTC",
            fingerprint(bytes.fromhex(each["identity"])),
            "cd" * 8,
        ]
        for each in agreed
    ]


def test_bytes_by_kind_of_message_are_those_of_the_transcript(
    pages: Made, opened: Opened, small_run: Path
) -> None:
    shown = {row[0]: row[1:] for row in rows(opened(pages("private")), "Bytes by kind of message")}
    sent = messages(small_run)
    for kind, row in shown.items():
        own = [each for each in sent if each["kind"] == kind]
        size = sum(each["bytes"] for each in own)
        assert row[1:] == [str(len(own)), f"{size / 1e3:.3g} kB" if size >= 1000 else f"{size} bytes"]


def test_hashes_are_those_of_the_files(pages: Made, opened: Opened, small_run: Path) -> None:
    from hashlib import sha256

    seen, facts = opened(pages("private")), making.facts_of(small_run)
    shown = dict(rows(seen, "Versions and hashes"))
    assert shown["SHA-256 of run.json"] == sha256((small_run / "run.json").read_bytes()).hexdigest()
    assert shown["seal of run.json"] == facts["seal"]
    assert shown["version of cofactor"] == facts["versions"]["cofactor"]
    assert dict(rows(seen, "Files")) == {name: digest[:16] for name, digest in facts["files"].items()}


def test_a_survey_is_drawn_with_its_band(pages: Made, opened: Opened, made: Made) -> None:
    seen, facts = opened(pages("survey")), making.facts_of(made("survey"))["survey"]
    shown = {row[0]: row[1:] for row in rows(seen, "In numbers")}
    assert shown["mean"][0] == f"{facts['mean']:.4g}"
    assert {"10% lie below", "50% lie below"} <= set(shown)
    assert seen.page.locator("#spread path.band").count() == 1
    assert f"{facts['answered']} people answered" in answers(seen)[1]


def test_segments_are_drawn_with_their_sizes(pages: Made, opened: Opened, made: Made) -> None:
    seen, found = opened(pages("clustering")), making.facts_of(made("clustering"))["clustering"]
    shown = rows(seen, "Centres, in the columns' own units")
    assert [row[1] for row in shown] == [f"{size:,.0f}" for size in found["sizes"]]
    assert [row[2] for row in shown] == [f"{centre[0]:.4g}" for centre in found["centres"]]
    columns = sum(map(len, found["columns"]))
    assert seen.page.locator("#segments .cells rect").count() == columns * len(found["sizes"])
