"""A page that watches a training, served to this machine alone.

Nobody else reaches it: it listens on 127.0.0.1; its address holds a token that no other page can know; a
question must name this address as its host, so that no other name can be bound to it; and only a page that
came from here may ask for something to be done. Until the run is finished, what it shows is RELEASED.
"""

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader, RawIOBase
from pathlib import Path
from select import select
from socket import MSG_PEEK, socket
from socketserver import TCPServer
from typing import Any

from cofactor.errors import ConfigError
from cofactor.report.live import WRONG, Finished, Live

HOST = "127.0.0.1"
"""Not "localhost": where that is another address as well, somebody else may listen there."""
_SLOW = 10.0
"""Seconds that whoever asks may take for it, and whoever is answered for reading."""
_MOST_PAGES = 16
"""How many pages may watch at the same time."""
_MOST_AT_ONCE = 100
"""How many may be answered before whoever asks is turned away: each takes a thread."""
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
        self.answering = threading.BoundedSemaphore(_MOST_AT_ONCE)

    def server_bind(self) -> None:
        """Listen, without asking anybody what this machine is called."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.socket.getsockname()[1]

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        """Turn away whoever is one too many."""
        return self.answering.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and leave the place to somebody else."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.answering.release()

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


class _InTime(RawIOBase):
    """What is asked, if all of it comes in time: letter by letter it would be within that of every letter."""

    def __init__(self, connection: socket) -> None:
        self._connection, self._until = connection, time.monotonic() + _SLOW

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(max(self._until - time.monotonic(), 0.001))
        try:
            return self._connection.recv_into(buffer)
        finally:
            self._connection.settimeout(_SLOW)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SLOW
    server_version, sys_version = "cofactor", ""

    def setup(self) -> None:
        """Wait for a question."""
        super().setup()
        self.rfile = BufferedReader(_InTime(self.connection))

    def do_GET(self) -> None:
        """Send the page, or what changes of it: nothing that is got changes anything."""
        asked = self._asked()
        if asked == "":
            self._send(HTTPStatus.OK, self.server.live.page(), "text/html")
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

    def _stop(self) -> None:
        try:
            self.server.live.watch.wish_to_stop()
        except WRONG as error:
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
        data = text.encode(errors="replace")  # names of files may hold what is no letter
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
