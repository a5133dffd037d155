"""How pages are looked at: by axe, which knows what stands in anybody's way, and by people."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axe_playwright_python.sync_playwright import Axe

if TYPE_CHECKING:
    from playwright.sync_api import Page

UNFOLD = "document.querySelectorAll('details').forEach(each => each.open = true)"
FOLD = UNFOLD.replace("true", "false")
WIDTHS = (320, 768)
"""Of a telephone, and of a tablet."""
_PICTURES = Path("build/screenshots")
_STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RULES = {
    "light": {"type": "tag", "values": _STANDARDS},
    "dark": {"type": "rule", "values": ["color-contrast"]},  # nothing else differs when it is dark
}


def barriers(page: "Page") -> str:
    """Return what axe finds, light and dark, told for people; nothing if there is nothing."""
    told = []
    for scheme, rules in _RULES.items():
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        options: dict[str, Any] = {"runOnly": rules, "resultTypes": ["violations"]}
        for each in Axe().run(page, options=options).response["violations"]:
            nodes = [node["html"][:200] for node in each["nodes"][:3]]
            told.append((scheme, each["id"], each["help"], nodes))
    return json.dumps(told, indent=1) if told else ""


def never_scrolls_sideways(page: "Page") -> bool:
    """Say whether all of a page has room in a small window."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 700})
        if page.evaluate("document.documentElement.scrollWidth") > width:
            return False
    return True


def picture(page: "Page", name: str) -> Path:
    """Write a screenshot for people to look at."""
    _PICTURES.mkdir(parents=True, exist_ok=True)
    target = _PICTURES / f"{name}.jpeg"
    page.screenshot(path=target, full_page=True, quality=90)
    assert target.stat().st_size > 20_000
    return target
