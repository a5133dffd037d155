"""What is shown of a training while it goes on, and of the run that it becomes: looked at once for all pages.

While it goes on that is RELEASED, whoever looks; the page of a finished run is its report, with all that its
folder holds. `live_server` says who may look.
"""

import json
import threading
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from cofactor.errors import DAMAGES, CofactorError
from cofactor.report.document import document
from cofactor.report.folder import damaged
from cofactor.report.live_part import damaged_head, live_body, live_head, live_state
from cofactor.report.markup import Markup, element
from cofactor.report.underway import Underway, Watch

_PAUSE = 0.5
"""Seconds between two looks at the files."""
_ALIVE = 10.0
"""Seconds after which something is sent to a page even if nothing has changed."""
WRONG = (CofactorError, *DAMAGES, OSError)
"""What is raised by whatever a folder holds, or whoever moves it."""
Finished = Callable[[Path, str], str]
"""Makes the page of a finished run: of its folder, with a script that watches for changes."""
News = dict[str, str | bool]
_UNDERWAY = "underway"
"""Which page it is, as long as a training goes on; that of a finished run is called after its files."""


class Live:
    """What is shown: looked at by one thread, sent by others."""

    def __init__(self, run: Path, finished: Finished) -> None:
        """Watch a run; `finished` makes its page once it is done."""
        self.watch, self._finished = Watch(run), finished
        self._changed, self._stopped = threading.Condition(), threading.Event()
        self._making = threading.Lock()
        self._made: tuple[str, str] = ("", "")
        self._drawn: tuple[Underway | None, News] = (None, {})
        self._text, self._version = json.dumps(self._news()), 1

    def page(self) -> str:
        """Return the whole page as it is now; that of a finished run is made once, however many ask."""
        which = _UNDERWAY
        try:
            with self._making:
                done = self.watch.finished
                if done is None:
                    return self._frame()
                which = _which(done)
                if self._made[0] != which:
                    self._made = which, self._finished(done, _script(which))
                return self._made[1]
        except WRONG as error:
            if which == _UNDERWAY:
                return self._frame()  # news say what is wrong
            return document(f"{self.watch.name} · cofactor", self._damaged(error), script=_script(which))

    def news(self, known: int) -> tuple[int, str]:
        """Wait until there is more than was known, or a while; return the version, and all that changes."""
        with self._changed:
            self._changed.wait_for(lambda: self._version != known or self._stopped.is_set(), timeout=_ALIVE)
            return self._version, self._text

    def follow(self) -> None:
        """Look again and again, until it is told to end."""
        while not self._stopped.wait(_PAUSE):
            text = json.dumps(self._news())
            with self._changed:
                if text != self._text:
                    self._text, self._version = text, self._version + 1
                    self._changed.notify_all()

    def end(self) -> None:
        """Let everybody go."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()

    @property
    def ended(self) -> bool:
        """Whether it was told to end."""
        return self._stopped.is_set()

    def _frame(self) -> str:
        """Return the page of a training that is not finished, still empty: news fill it."""
        button = element("button", "Stop after this round", type="button", id="stop", hidden=True)
        return document(
            f"{self.watch.name} · cofactor",
            element("div", element("h1", self.watch.name), id="head"),
            element("p", button, " ", element("span", id="told", role="status"), class_="drive"),
            element("p", id="state", role="status", class_="unseen"),
            element("div", id="body"),
            script=_script(_UNDERWAY),
        )

    def _news(self) -> News:
        """Return what pages show now; where `page` is another than before, they load anew."""
        try:
            done = self.watch.finished
            if done is not None:
                # Scores come later than the run: with them it is another page.
                return {"page": _which(done)}
            found = self.watch.look()
            if found != self._drawn[0]:
                self._drawn = found, _told(found)
            return self._drawn[1]
        except WRONG as error:
            told = {"page": _UNDERWAY, "head": self._damaged(error), "body": "", "state": "damaged"}
            return {**told, "stoppable": False}

    def _damaged(self, error: Exception) -> Markup:
        """Say what is wrong: the page goes on looking."""
        why = error if isinstance(error, CofactorError) else damaged(self.watch.place, error)
        return damaged_head(self.watch.name, str(why))


def _told(found: Underway) -> News:
    return {
        "page": _UNDERWAY,
        "head": live_head(found),
        "body": live_body(found),
        "state": live_state(found)[0],
        "stoppable": found.stoppable,
    }


def _which(done: Path) -> str:
    """Return what tells one version of a finished run from another: audits are added to it."""
    times = [
        path.stat().st_mtime_ns for path in (done / "run.json", *sorted((done / "audits").glob("*.json")))
    ]
    return f"finished {'-'.join(map(str, times))}"


def _script(which: str) -> str:
    """Return what a page runs that is shown live: it knows which page it is, and loads anew for another."""
    text = files("cofactor.report").joinpath("live.js").read_text(encoding="utf-8")
    return f"const PAGE = {json.dumps(which)};\n{text}"
