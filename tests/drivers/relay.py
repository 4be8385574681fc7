"""Passes bytes on between clients and a server, until it freezes: all stay connected, and wait."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class Relay:
    def __init__(
        self, upstream: str | tuple[str, int], *, freezes_at: tuple[bytes, ...] = ()
    ) -> None:
        """`upstream`: the path of a Unix socket, or host and port.

        `freezes_at`: what a client sends when it is time to freeze, by how it begins.
        """
        self._freezes_at = freezes_at
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        """How many there were."""
        self._sockets: list[socket.socket] = []
        self._may_pass = threading.Event()
        self._may_pass.set()
        self._threads = [threading.Thread(target=self._listen, daemon=True)]

    def freeze(self) -> None:
        self._may_pass.clear()

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                server = self._connect()
                self._sockets += [client, server]
                for pair in ((client, server), (server, client)):
                    thread = threading.Thread(target=self._pass_on, args=pair, daemon=True)
                    thread.start()
                    self._threads.append(thread)

    def _connect(self) -> socket.socket:
        if isinstance(self._upstream, tuple):
            return socket.create_connection(self._upstream)
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._upstream)
        return server

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if data.startswith(self._freezes_at):
                    self.freeze()
                self._may_pass.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._may_pass.set()
        for thread in self._threads:
            thread.join()
        for end in (self._listener, *self._sockets):
            end.close()
