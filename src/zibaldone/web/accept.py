"""Take in new connections as fast as they come.

uvloop accepts one new connection in each step of the event loop. Beside a thousand busy clients a
step takes tens of milliseconds, and whoever is new waits for as many steps as there are others
before them at the door. So a second reader of the listening socket accepts many in a step.
asyncio's own loop does that by itself.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress

_ACCEPTED_MAX = 64
"""In a step: a few milliseconds of work."""


class Acceptor:
    """Beside the server of uvloop that listens on the same socket."""

    def __init__(self, listening: socket.socket, make: Callable[[], asyncio.Protocol]) -> None:
        self._loop = asyncio.get_running_loop()
        # Its own file descriptor: a loop has one reader for each.
        self._listening = socket.socket(fileno=os.dup(listening.fileno()))
        self._make = make
        self._entering: set[asyncio.Task[None]] = set()
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_MAX):
            try:
                accepted, _address = self._listening.accept()
            except OSError:  # none is left; where there is no file left, uvloop's server sees to it
                return
            task = self._loop.create_task(self._enter(accepted))
            self._entering.add(task)
            task.add_done_callback(self._entering.discard)

    async def _enter(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        with suppress(OSError):  # the client is gone already
            await self._loop.connect_accepted_socket(self._make, accepted)

    def close(self) -> None:
        self._loop.remove_reader(self._listening)
        self._listening.close()


def accepts_one_by_one(loop: asyncio.AbstractEventLoop) -> bool:
    return type(loop).__module__.partition(".")[0] == "uvloop"
