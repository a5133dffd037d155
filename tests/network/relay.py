"""Stands between parties and their server, passes all bytes on, and counts them."""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self


class Relay:
    """Listens on a port of its own, and connects everybody through to another."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.bytes = 0
        self._guard = threading.Lock()
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for each in self._open:
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:  # the server is down: whoever calls may call again
                near.close()
                continue
            self._open += [near, far]
            joined(near, far, self._count)

    def _count(self, data: bytes) -> None:
        with self._guard:
            self.bytes += len(data)


def joined(near: socket.socket, far: socket.socket, see: Callable[[bytes], None] = lambda _: None) -> None:
    """Pass on what either side sends, until one of them ends it."""
    for source, sink in ((near, far), (far, near)):
        threading.Thread(target=_pass_on, args=(source, sink, see), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket, see: Callable[[bytes], None]) -> None:
    try:
        while data := source.recv(65536):
            see(data)
            sink.sendall(data)
    except OSError:
        pass
    finally:
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        source.close()
