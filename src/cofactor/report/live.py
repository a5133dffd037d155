"""A page that watches a training, served to this machine alone.

Nobody else reaches it: it listens on 127.0.0.1; its address holds a token that no other page can know; a
question must name this address as its host, so that no other name can be bound to it; and only a page that
came from here may ask for something to be done. What it shows is RELEASED.
"""

import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from select import select
from socket import MSG_PEEK
from socketserver import TCPServer
from typing import Any

from cofactor.errors import CofactorError, ConfigError
from cofactor.report.document import document
from cofactor.report.folder import DAMAGES, damaged
from cofactor.report.live_part import damaged_head, live_body, live_head, live_state
from cofactor.report.markup import element
from cofactor.report.underway import Underway, Watch

HOST = "127.0.0.1"
"""Not "localhost": where that is another address as well, somebody else may listen there."""
_PAUSE = 0.5
"""Seconds between two looks at the files."""
_ALIVE = 10.0
"""Seconds after which something is sent to a page even if nothing has changed."""
_SLOW = 10.0
"""Seconds that whoever asks may take for it, and whoever is answered for reading."""
_MOST_PAGES = 16
"""How many pages may watch at the same time."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # What a page may load and run, it says itself, with a hash for each.
    "Content-Security-Policy": "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
_NOTHING = "There is nothing here."
Finished = Callable[[Path, str], str]
"""Makes the page of a finished run: of its folder, with a script that watches for changes."""
News = dict[str, str | bool]


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
        with self._making:
            done = self.watch.finished
            if done is None:
                return self._frame()
            which = _which(done)
            if self._made[0] != which:
                self._made = which, self._finished(done, _script())
            return self._made[1]

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
            f"{self.watch.run.resolve().name} · cofactor",
            element("div", element("h1", self.watch.run.resolve().name), id="head"),
            element("p", button, " ", element("span", id="told", role="status"), class_="drive"),
            element("p", id="state", role="status", class_="unseen"),
            element("div", id="body"),
            script=_script(),
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
        except (CofactorError, *DAMAGES, OSError) as error:
            # Whatever a folder holds, or whoever moves it: the page says so, and goes on looking.
            why = error if isinstance(error, CofactorError) else damaged(self.watch.place, error)
            head = damaged_head(self.watch.run.resolve().name, str(why))
            return {"page": "underway", "head": head, "body": "", "state": "damaged", "stoppable": False}


def _told(found: Underway) -> News:
    return {
        "page": "underway",
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


@contextmanager
def served(run: Path, finished: Finished, *, port: int = 0) -> Iterator[str]:
    """Serve the page of a run that may not be finished; yield its address, and end with the block."""
    live = Live(run, finished)
    try:
        server = _Server(live, port)
    except OSError as error:
        raise ConfigError(
            f"--port {port}: {HOST} cannot be listened on there ({error.strerror}). Name another, or none."
        ) from None
    threads = [threading.Thread(target=each, daemon=True) for each in (server.serve_forever, live.follow)]
    for thread in threads:
        thread.start()
    try:
        yield f"{server.origin}/{server.token}/"
    finally:
        live.end()
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_port = False
    request_queue_size = 64

    def __init__(self, live: Live, port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.live, self.token = live, secrets.token_urlsafe(32)
        self.watching = threading.BoundedSemaphore(_MOST_PAGES)

    def server_bind(self) -> None:
        """Listen, without asking anybody what this machine is called."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.socket.getsockname()[1]

    @property
    def host(self) -> str:
        """What browsers call it; they leave out the usual port."""
        return HOST if self.server_port == 80 else f"{HOST}:{self.server_port}"

    @property
    def origin(self) -> str:
        """What browsers call pages that came from here."""
        return f"http://{self.host}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of pages that were closed in the middle of an answer."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SLOW
    server_version, sys_version = "cofactor", ""

    def do_GET(self) -> None:
        """Send the page, or what changes of it: nothing that is got changes anything."""
        asked = self._asked()
        if asked == "":
            self._send(*self._page())
        elif asked == "events":
            self._follow()
        elif asked is not None:
            self._send(HTTPStatus.NOT_FOUND, _NOTHING)

    def do_POST(self) -> None:
        """Do what the page asks for, if it is the page that asks."""
        asked = self._asked()
        if asked is None:
            return
        if self.headers.get_all("Origin") != [self.server.origin]:
            self._send(HTTPStatus.FORBIDDEN, "Only the page itself may ask for that.")
        elif asked != "stop":
            self._send(HTTPStatus.NOT_FOUND, _NOTHING)
        else:
            self._stop()

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: addresses hold the token."""

    def send_error(
        self,
        code: int,
        message: str | None = None,  # noqa: ARG002
        explain: str | None = None,  # noqa: ARG002
    ) -> None:
        """Refuse what is no question, in as few words as all else, and repeat nothing of it."""
        self.close_connection = True
        self._send(HTTPStatus(code), HTTPStatus(code).phrase)

    def _asked(self) -> str | None:
        """Return what is asked for, behind the token; refuse whoever does not know it."""
        if self.headers.get_all("Host") != [self.server.host]:
            self._send(HTTPStatus.MISDIRECTED_REQUEST, "This page has another address.")
            return None
        first, token, what = (*self.path.split("/", 2), "", "")[:3]
        known = secrets.compare_digest(token.encode(), self.server.token.encode())
        if first or not known or self.path == f"/{token}":
            self._send(HTTPStatus.NOT_FOUND, _NOTHING)
            return None
        return what

    def _page(self) -> tuple[HTTPStatus, str, str]:
        try:
            return HTTPStatus.OK, self.server.live.page(), "text/html"
        except (CofactorError, *DAMAGES, OSError) as error:
            return HTTPStatus.OK, document("cofactor", damaged_head("", str(error))), "text/html"

    def _stop(self) -> None:
        try:
            self.server.live.watch.wish_to_stop()
        except (CofactorError, *DAMAGES, OSError) as error:
            self._send(HTTPStatus.CONFLICT, str(error))
        else:
            self._send(HTTPStatus.OK, "It ends after this round.")

    def _follow(self) -> None:
        """Send what changes, as server-sent events, for as long as somebody looks."""
        if not self.server.watching.acquire(blocking=False):
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, "Too many pages watch already.")
            return
        try:
            self._head(HTTPStatus.OK, "text/event-stream; charset=utf-8")
            version = 0
            while not (self.server.live.ended or self._gone()):
                new, text = self.server.live.news(version)
                # Text of events is JSON, in which no line ends.
                self.wfile.write(f"data: {text}\n\n".encode() if new != version else b": alive\n\n")
                version = new
        except OSError:
            pass  # the page was closed, or takes too long to read
        finally:
            self.server.watching.release()

    def _gone(self) -> bool:
        """Say whether the page was closed: whoever watches has nothing more to say."""
        readable, _, _ = select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, MSG_PEEK)

    def _send(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
        data = text.encode()
        self._head(status, f"{kind}; charset=utf-8", len(data))
        self.wfile.write(data)

    def _head(self, status: HTTPStatus, kind: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()


def _script() -> str:
    return files("cofactor.report").joinpath("live.js").read_text(encoding="utf-8")
