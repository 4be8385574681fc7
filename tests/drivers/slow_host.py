"""A web server on loopback that answers when it is told to, and notices when nobody waits."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self

WAIT_SECONDS_MAX = 20

PAGE = b"# Slow page\n\nIt took its time.\n"


class SlowHost:
    """Accepts connections one after the other; each sends its answer after `release` is set."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/page.md"
        self.asked = threading.Event()
        self.release = threading.Event()
        self.abandoned = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release.set()
        # Closing alone would not wake a thread that waits in accept().
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(WAIT_SECONDS_MAX)

    def rearm(self) -> None:
        for event in (self.asked, self.release, self.abandoned):
            event.clear()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        connection.recv(65536)
        self.asked.set()
        connection.settimeout(0.02)
        while not self.release.is_set():
            try:
                if connection.recv(1) == b"":
                    self.abandoned.set()
                    return
            except TimeoutError:
                continue
            except OSError:
                self.abandoned.set()
                return
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/markdown\r\nContent-Length: {len(PAGE)}\r\n"
        connection.sendall(head.encode() + b"Connection: close\r\n\r\n" + PAGE)
