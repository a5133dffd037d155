"""An HTTP proxy that connects through and notes to where, as a company's own does."""

import socket
import threading
from typing import Self

from tests.network.relay import joined


class Proxy:
    """Answers CONNECT on a port of its own, for parties that may not connect out themselves."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.asked: list[str] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(near,), daemon=True).start()

    def _connect(self, near: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += near.recv(4096)
        _, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        self.asked.append(target)
        host, _, port = target.rpartition(":")
        far = socket.create_connection((host, int(port)))
        near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        joined(near, far)
