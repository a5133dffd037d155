"""The page for whoever cannot see it, has no mouse, a small window, or a printer."""

import json
import re
from pathlib import Path

import pytest

from tests.report import making
from tests.report.conftest import Made, Opened
from tests.report.looking import UNFOLD, barriers, never_scrolls_sideways, picture

KINDS = ("private", "audited", "pooled", "plain", "survey", "clustering", "compared", "underway")
DRAWN = ("measured", "masked", "plain", "survey", "clustering", "compared", "underway")


@pytest.mark.parametrize("kind", [*KINDS, "measured", "alarmed"])
def test_axe_finds_no_barrier(kind: str, pages: Made, opened: Opened) -> None:
    page = opened(pages(kind)).page
    page.evaluate(UNFOLD)
    assert not (found := barriers(page)), found


def test_axe_would_find_a_barrier(pages: Made, opened: Opened) -> None:
    page = opened(pages("pooled"), bypass_csp=True).page
    page.evaluate("document.querySelector('h1').outerHTML = '<img src=\"data:,\"><button></button>'")
    page.add_style_tag(content="@media (prefers-color-scheme: dark) { p { color: #333 !important } }")
    found = {(scheme, rule) for scheme, rule, *_ in json.loads(barriers(page))}
    assert {("light", "image-alt"), ("light", "button-name"), ("light", "page-has-heading-one")} <= found
    assert ("dark", "color-contrast") in found
    assert ("light", "color-contrast") not in found


def luminance(colour: str) -> float:
    """Return how bright a colour is, from 0 to 1, as the standard on contrast has it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(("scheme", "bright"), [("light", True), ("dark", False)])
def test_the_page_is_light_or_dark_as_the_reader_has_it(
    scheme: str, bright: bool, pages: Made, opened: Opened
) -> None:
    page = opened(pages("private"), color_scheme=scheme).page
    paper, ink = page.eval_on_selector(
        "body", "e => [getComputedStyle(e).backgroundColor, getComputedStyle(e).color]"
    )
    assert (luminance(paper) > 0.9) is bright
    assert (luminance(ink) < 0.1) is bright
    line, tick = page.eval_on_selector_all(
        ".chart .s0.line, .chart text.tick",
        "all => [getComputedStyle(all.find(e => e.tagName == 'path')).stroke,"
        " getComputedStyle(all.find(e => e.tagName == 'text')).fill]",
    )
    for colour in (line, tick):  # 3 to 1 for lines, and more for words
        high, low = sorted((luminance(colour), luminance(paper)), reverse=True)
        assert (high + 0.05) / (low + 0.05) > 3


@pytest.mark.parametrize("kind", ["plain", "pooled", "alarmed"])
def test_what_is_not_private_is_red(kind: str, pages: Made, opened: Opened) -> None:
    page = opened(pages(kind)).page
    box = page.locator(".alarm")
    assert box.locator("p").first.text_content() == "NOT PRIVATE"
    assert page.locator("h1 .badge.bad").text_content() == "NOT PRIVATE"
    red, green, blue = map(int, re.findall(r"\d+", box.evaluate("each => getComputedStyle(each).color"))[:3])
    assert red > 2 * max(green, blue)
    assert "bad" in str(page.locator(".answer").first.get_attribute("class"))


def test_all_can_be_reached_and_done_by_keyboard(pages: Made, opened: Opened) -> None:
    page = opened(pages("private")).page
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    assert skip.evaluate("each => each === document.activeElement && each.getBoundingClientRect().left >= 0")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "What is promised"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    fold = page.locator("#promise details")
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    assert fold.evaluate("each => each.open")
    assert page.eval_on_selector_all(".scrolls, .chart, pre", "all => all.every(each => each.tabIndex === 0)")


def test_a_screen_reader_is_told_what_everything_is(pages: Made, opened: Opened) -> None:
    page = opened(pages("private")).page
    assert page.get_by_role("main").count() == 1
    assert page.get_by_role("navigation", name="Parts of this page").get_by_role("link").count() == 13
    for name in ("Assumptions of the guarantee", "cofactor verify", "Parties, in public numbers"):
        assert page.get_by_role("region", name=name, exact=True).get_by_role("table", name=name).count() == 1
    for name in ("Who sees what", "How good it is"):
        assert page.get_by_role("region", name=name, exact=True).count() == 1
    curve = page.get_by_role(
        "img", name=re.compile(r"^Epsilon spent, round by round \(at most\)\. epsilon by round")
    )
    assert curve.count() == 1
    assert page.get_by_role("rowheader", name="party-2").count() > 0
    tree = page.get_by_role("main").aria_snapshot()
    assert 'heading "Is it private?" [level=2]' in tree
    assert 'columnheader "epsilon if all others collude"' in tree


@pytest.mark.parametrize("kind", [*KINDS, "measured"])
def test_the_page_never_scrolls_sideways(kind: str, pages: Made, opened: Opened) -> None:
    page = opened(pages(kind)).page
    page.evaluate(UNFOLD)
    assert never_scrolls_sideways(page)


def test_no_words_of_a_picture_are_cut_off(pages: Made, opened: Opened) -> None:
    for kind in ("measured", "audited", "clustering", "compared", "survey"):
        page = opened(pages(kind), viewport={"width": 1100, "height": 900}).page
        beyond = page.eval_on_selector_all(
            ".chart text",
            "all => all.filter(each => { const own = each.getBoundingClientRect();"
            " const whole = each.ownerSVGElement.getBoundingClientRect();"
            " return own.left < whole.left - 1 || own.right > whole.right + 1 || own.top < whole.top - 1"
            " || own.bottom > whole.bottom + 1; }).map(each => each.textContent)",
        )
        assert beyond == [], kind


def test_copying_puts_the_text_on_the_clipboard(pages: Made, opened: Opened) -> None:
    seen = opened(pages("private"), permissions=["clipboard-read", "clipboard-write"])
    button = seen.page.locator("button[data-copies=remake-command]")
    button.focus()
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_function(
        "document.querySelector('[data-copies=remake-command]').textContent == 'Copied'"
    )
    copied = seen.page.evaluate("navigator.clipboard.readText()")
    assert copied == "cofactor train FILE --from private --seed 0"
    assert seen.complaints == []


def test_where_copying_is_forbidden_the_text_is_selected(pages: Made, opened: Opened) -> None:
    page = opened(pages("private")).page
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    page.locator("button[data-copies=remake-command]").click()
    page.wait_for_function("document.querySelector('[data-copies=remake-command]').textContent == 'Selected'")
    assert page.evaluate("getSelection().toString()") == "cofactor train FILE --from private --seed 0"


def test_the_card_can_be_saved_from_the_page(pages: Made, opened: Opened, small_run: Path) -> None:
    page = opened(pages("private"), accept_downloads=True).page
    with page.expect_download() as waited:
        page.get_by_role("link", name="Save as JSON").click()
    assert waited.value.suggested_filename == "privacy-card.json"
    card = json.loads(Path(waited.value.path()).read_text())
    assert card["seal"] == making.facts_of(small_run)["seal"]


@pytest.mark.parametrize(
    ("scheme", "kinds"),
    [("light", DRAWN), ("dark", ("measured", "plain", "compared"))],
)
def test_screenshots_are_taken_for_people_to_look_at(
    scheme: str, kinds: tuple[str, ...], pages: Made, opened: Opened, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in kinds:
        page = opened(pages(kind), color_scheme=scheme, viewport={"width": 1100, "height": 900}).page
        written = picture(page, f"{kind}-{scheme}")
    with capsys.disabled():
        print(f"\nScreenshots are in {written.parent.resolve()}")
