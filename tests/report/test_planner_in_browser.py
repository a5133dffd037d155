"""The planner's page in a browser: a slider moves every number and text to those of plan.json."""

from pathlib import Path

import pytest

from cofactor.figures import percent, rounded_up
from tests.report import plans
from tests.report.conftest import Opened, Seen
from tests.report.looking import UNFOLD, barriers, never_scrolls_sideways, picture
from tests.report.making import EVIL

TEXTS = ("command", "toml", "python", "plan")


@pytest.fixture(scope="session")
def shops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plans.plan_folder("shops", tmp_path_factory) / "plan.html"


@pytest.fixture(scope="session")
def devices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plans.plan_folder("devices", tmp_path_factory) / "plan.html"


def press(seen: Seen, name: str, *keys: str) -> None:
    """Move a slider as somebody without a mouse does."""
    seen.page.get_by_role("slider", name=name, exact=True).focus()
    for key in keys:
        seen.page.keyboard.press(key)


def slot(seen: Seen, name: str) -> str:
    return str(seen.page.locator(f"[data-slot={name}]").text_content())


def rows(seen: Seen) -> list[list[str]]:
    """Return the cells of the table of releases."""
    lines = seen.page.locator("#releases tbody tr").all()
    return [line.locator("th, td").all_text_contents() for line in lines]


def check(seen: Seen, facts: plans.Facts, cell: plans.Facts) -> None:
    """See that all that is shown is about a cell."""
    plan, training = cell["plan"], facts["trainings"][cell["training"]]
    assert slot(seen, "privacy-verdict") == f"A guesser is right at most {percent(plan['odds'])} of the time"
    assert slot(seen, "privacy-2").startswith(f"Epsilon {rounded_up(plan['epsilon'])} at delta 1e-06 ")
    assert f"within the budget of {cell['epsilon']:g}." in slot(seen, "privacy-2")
    own = training["rmse"]["private"]
    assert slot(seen, "accuracy-verdict") == f"Error {own['mean']:.3f}"
    assert f"{own['low']:.3f} to {own['high']:.3f} with 95% confidence" in slot(seen, "accuracy-1")
    odds = f"a guesser is right at most {percent(plan['odds'])} of the time"
    assert f"epsilon {cell['epsilon']:g}: {odds}" in slot(seen, "summary")
    assert f"error about {own['mean']:.3f}" in slot(seen, "summary")
    assert f"{plan['total_bytes'] / 1000:.3g} kB for all 3 together." == slot(seen, "traffic-2")
    shown = rows(seen)
    assert [row[0].lower() for row in shown] == [each["what"] for each in plan["releases"]]
    assert [row[1] for row in shown] == [
        f"Gaussian noise, {each['mechanism']['noise_multiplier']:.4g} times the bound"
        for each in plan["releases"]
    ]
    for name in TEXTS:
        assert seen.page.locator(f"#copy-{name}").text_content() == cell["commands"][name]


def test_the_page_asks_nobody_and_complains_of_nothing(shops: Path, devices: Path, opened: Opened) -> None:
    for path in (shops, devices):
        seen = opened(path)
        seen.page.evaluate(UNFOLD)
        press(seen, "Budget: epsilon", "End", "Home", "ArrowRight")
        assert seen.requests == []
        assert seen.complaints == []


@pytest.mark.parametrize(
    ("keys", "epsilon"),
    [((), 4), (("ArrowRight",), 16), (("ArrowLeft",), 1), (("Home", "ArrowRight"), 4), (("End", "Home"), 1)],
)
def test_the_budget_moves_all_numbers_and_texts(
    keys: tuple[str, ...], epsilon: float, shops: Path, opened: Opened
) -> None:
    seen, facts = opened(shops), plans.facts_of(shops.parent)
    press(seen, "Budget: epsilon", *keys)
    check(seen, facts, plans.cell_at(facts, epsilon=epsilon))
    assert seen.page.locator("#slide-epsilon-value").text_content() == f"{epsilon:g}"
    slider = seen.page.get_by_role("slider", name="Budget: epsilon")
    assert slider.get_attribute("aria-valuetext") == f"{epsilon:g}"
    for name, said in (
        ("command", f"--epsilon {epsilon:g} "),
        ("toml", f"epsilon = {epsilon:.1f}\n"),
        ("python", f"epsilon={epsilon:g},"),
        ("plan", f"--epsilon {epsilon:g} "),
    ):
        assert said in str(seen.page.locator(f"#copy-{name}").text_content())


def test_all_sliders_together_lead_to_one_choice(shops: Path, opened: Opened) -> None:
    seen, facts = opened(shops), plans.facts_of(shops.parent)
    press(seen, "Ratings per person", "Home")
    press(seen, "Rounds", "Home")
    press(seen, "Budget: epsilon", "End")
    cell = plans.cell_at(facts, ratings_each=5.0, rounds=2, epsilon=16.0)
    check(seen, facts, cell)
    assert (cell["ratings"], cell["rounds"]) == (450, 2)
    assert slot(seen, "rounds") == "2"
    charts = seen.page.locator("#accuracy > [data-chart]")
    shown = [each.get_attribute("data-chart") for each in charts.all() if each.is_visible()]
    assert shown == ["1-0-0"]
    assert "90 made-up users with 5 ratings each" in seen.page.locator("figure:visible").inner_text()


def test_what_cannot_be_planned_says_why_and_leaves_no_number(shops: Path, opened: Opened) -> None:
    seen, facts = opened(shops), plans.facts_of(shops.parent)
    press(seen, "Population", "Home")
    for card in ("privacy", "accuracy", "traffic"):
        assert slot(seen, f"{card}-verdict") == "Not planned"
    assert slot(seen, "privacy-1") == plans.cell_at(facts, users=2)["why_no_plan"]
    assert slot(seen, "privacy-2") == slot(seen, "accuracy-1") == slot(seen, "traffic-1") == ""
    assert rows(seen) == []
    assert seen.page.get_by_text("For this population nothing was tried.").is_visible()
    press(seen, "Population", "End")
    check(seen, facts, facts["cells"][facts["asked"]])


def test_what_the_sum_needs_and_warnings_follow_the_choice(
    devices: Path, opened: Opened, tmp_path: Path
) -> None:
    def warn(facts: plans.Facts) -> None:
        facts["cells"][0]["plan"]["warnings"] = []
        facts["cells"][1]["plan"]["warnings"] = [f"delta is large {EVIL}"]
        facts["cells"][1]["sum"] = []

    from cofactor.report.planner import page
    from cofactor.report.planner_folder import PlanFolder

    copy = plans.changed(devices.parent, tmp_path / "copy", warn)
    (copy / "plan.html").write_text(page(PlanFolder.read(copy)))
    seen = opened(copy / "plan.html")
    warnings, needs = (
        seen.page.get_by_role("note", name="Warnings"),
        seen.page.get_by_text("What the sum needs"),
    )
    assert (warnings.is_visible(), needs.is_visible()) == (False, True)
    press(seen, "Budget: epsilon", "ArrowRight")
    assert (warnings.is_visible(), needs.is_visible()) == (True, False)
    assert warnings.inner_text() == f"Delta is large {EVIL}"
    press(seen, "Budget: epsilon", "ArrowLeft")
    assert (warnings.is_visible(), needs.is_visible()) == (False, True)
    assert seen.complaints == []


@pytest.mark.parametrize("name", TEXTS)
def test_copying_takes_what_was_chosen(name: str, shops: Path, opened: Opened) -> None:
    seen, facts = (
        opened(shops, permissions=["clipboard-read", "clipboard-write"]),
        plans.facts_of(shops.parent),
    )
    press(seen, "Budget: epsilon", "End")
    button = f"button[data-copies=copy-{name}]"
    seen.page.locator(button).focus()
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_function(f"document.querySelector('{button}').textContent == 'Copied'")
    copied = seen.page.evaluate("navigator.clipboard.readText()")
    assert copied == plans.cell_at(facts, epsilon=16.0)["commands"][name]


def test_without_a_script_the_page_shows_what_was_asked_for(shops: Path, opened: Opened) -> None:
    seen, facts = opened(shops, java_script_enabled=False), plans.facts_of(shops.parent)
    check(seen, facts, facts["cells"][facts["asked"]])
    assert "Without a script, this page shows what was asked for." in seen.page.content()
    assert all(each.is_disabled() for each in seen.page.get_by_role("slider").all())


def test_a_screen_reader_is_told_what_is_slid_and_what_changed(shops: Path, opened: Opened) -> None:
    page = opened(shops).page
    names = ("Population", "Ratings per person", "Rounds", "Budget: epsilon")
    assert page.get_by_role("slider").count() == len(names)
    for name in names:
        assert page.get_by_role("slider", name=name, exact=True).is_enabled()
    described = page.locator("#slide-epsilon").get_attribute("aria-describedby")
    assert page.locator(f"#{described} > span").all_text_contents() == ["more private", "more accurate"]
    ends = page.locator(f"#{described} > span").all()
    left, right = (each.bounding_box() for each in ends)
    assert left is not None
    assert right is not None
    assert left["x"] < right["x"]
    told = page.locator("[role=status], output:not([aria-live=off])")
    assert told.all_text_contents() == [page.locator("[data-slot=summary]").text_content()]


@pytest.mark.parametrize("kind", ["shops", "devices"])
def test_axe_finds_no_barrier_before_or_after_a_choice(
    kind: str, opened: Opened, request: pytest.FixtureRequest
) -> None:
    seen = opened(request.getfixturevalue(kind))
    seen.page.evaluate(UNFOLD)
    assert not (found := barriers(seen.page)), found
    press(seen, "Budget: epsilon", "End")
    if kind == "shops":
        press(seen, "Population", "Home")  # nothing is planned there
    assert not (found := barriers(seen.page)), found


def test_the_page_never_scrolls_sideways(shops: Path, devices: Path, opened: Opened) -> None:
    for path in (shops, devices):
        seen = opened(path)
        seen.page.evaluate(UNFOLD)
        press(seen, "Budget: epsilon", "End")
        assert never_scrolls_sideways(seen.page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshots_are_taken_for_people_to_look_at(
    scheme: str, shops: Path, devices: Path, opened: Opened
) -> None:
    for name, path in (("plan", shops), ("plan-devices", devices)):
        page = opened(path, color_scheme=scheme, viewport={"width": 1100, "height": 900}).page
        picture(page, f"{name}-{scheme}")
