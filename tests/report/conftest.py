"""Run folders that are made once for all tests, and a browser that looks at their pages."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.report import making

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "google-chrome", "chromium-browser")
"""What the browser may be called."""
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
Opened = Callable[..., "Seen"]
Made = Callable[[str], Path]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Make a run of a kind when it is first asked for; nobody may change it."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "report-runs"
    shared.mkdir(exist_ok=True)

    def make(kind: str) -> Path:
        with (shared / f"{kind}.lock").open("w") as lock:  # of all workers, one makes it
            fcntl.flock(lock, fcntl.LOCK_EX)
            there = shared / kind / kind
            if not there.exists():
                shutil.rmtree(shared / kind, ignore_errors=True)
                making.made(shared / kind, kind)
            return there

    return make


@pytest.fixture(scope="session")
def small_run(made: Made) -> Path:
    """Three make-believe shops that trained in private, with scores."""
    return made("private")


@pytest.fixture(scope="session")
def audited_run(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, after somebody tried to break it."""
    folder = tmp_path_factory.mktemp("audited") / "made"
    shutil.copytree(made("private").parent, folder, ignore=shutil.ignore_patterns("*.html"))
    sure = ("--confidence", 0.9999999)  # an alarm by chance is so rare
    making.asked(folder, "audit", "private", "all.csv", "--canaries", 60, *sure, "--quiet")
    return folder / "private"


def _folder(kind: str, made: Made, audited: Path, where: Path) -> Path:
    """Return a folder of a kind: one that was really made, or what can be made of one by hand."""
    if kind in making.COMMANDS:
        return made(kind)
    if kind == "audited":
        return audited
    change = {"measured": making.measured, "alarmed": making.alarmed, "underway": making.unfinished}[kind]
    return change(made("private"), where / kind)


@pytest.fixture(scope="session")
def pages(made: Made, audited_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Write the page of a kind of run as the command does, when it is first asked for."""
    where, found = tmp_path_factory.mktemp("pages"), dict[str, Path]()

    def written(kind: str) -> Path:
        if kind not in found:
            found[kind] = where / f"{kind}.html"
            kinds = ("private", "masked") if kind == "compared" else (kind,)
            runs = [_folder(each, made, audited_run, where) for each in kinds]
            more: tuple[object, ...] = ()
            if kind == "measured":  # its facts were changed by hand
                more = ("--no-verify", "--groups", making.compared(runs[0]))
            making.asked(where, "report", *runs, "--out", found[kind], *more)
        return found[kind]

    return written


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A page in a browser, with all that it asked for and complained about."""

    page: "Page"
    requests: list[str] = field(default_factory=list)
    """Addresses that are neither the page itself nor written in it."""
    complaints: list[str] = field(default_factory=list)
    """What the console said, and errors."""


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """One chromium for all tests; without one they are skipped, and fail under `.ci/run`."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        reason = "there is no browser: install chromium, for example with 'apt-get install chromium'"
        pytest.fail(reason) if os.environ.get("COFACTOR_BROWSER") == "needed" else pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        launched = play.chromium.launch(executable_path=path, args=ARGUMENTS.split())
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: "Browser") -> Iterator[Opened]:
    """Open a file or an address, each in a window of its own; options are those of a browser's context."""
    contexts = []

    def show(place: Path | str, **options: Any) -> Seen:
        context = browser.new_context(**options)
        contexts.append(context)
        seen = Seen(page=context.new_page())
        address = place if isinstance(place, str) else place.resolve().as_uri()
        _record(seen, address)
        seen.page.goto(address)
        return seen

    yield show
    for context in contexts:
        context.close()


def _record(seen: Seen, address: str) -> None:
    def requested(request: Any) -> None:
        if request.url != address and not request.url.startswith("data:"):
            seen.requests.append(request.url)

    seen.page.on("request", requested)
    seen.page.on("console", lambda said: seen.complaints.append(said.text))
    seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
