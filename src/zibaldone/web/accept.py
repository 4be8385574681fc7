"""Take in new connections as fast as they come.

uvloop accepts one new connection in each step of the event loop. Beside a thousand busy clients a
step takes tens of milliseconds, and whoever is new waits for as many steps as there are others
before them at the door. So a second reader of the listening socket accepts many in a step.
asyncio's own loop does that by itself.

How many is bounded by time: whoever only connects and leaves, tens of thousands of times a second,
would else fill every step, and those who are in would wait.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress

_ACCEPTED_MAX = 64
"""In a step: a few milliseconds of work."""

_ACCEPTED_PER_SECOND = 2_000
"""In the long run, a fifth of the time; beside these, uvloop's server accepts one in each step."""

_ACCEPTED_AT_ONCE_MAX = 1_000
"""After a while in which few came: a crowd that comes back together does not wait."""


class Acceptor:
    """Beside the server of uvloop that listens on the same socket."""

    def __init__(self, listening: socket.socket, make: Callable[[], asyncio.Protocol]) -> None:
        self._loop = asyncio.get_running_loop()
        # Its own file descriptor: a loop has one reader for each.
        self._listening = socket.socket(fileno=os.dup(listening.fileno()))
        self._make = make
        self._entering: set[asyncio.Task[None]] = set()
        self._allowed = float(_ACCEPTED_AT_ONCE_MAX)
        self._allowed_at_s = time.monotonic()
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        now_s = time.monotonic()
        earned = (now_s - self._allowed_at_s) * _ACCEPTED_PER_SECOND
        self._allowed = min(self._allowed + earned, _ACCEPTED_AT_ONCE_MAX)
        self._allowed_at_s = now_s
        for _ in range(min(int(self._allowed), _ACCEPTED_MAX)):
            try:
                accepted, _address = self._listening.accept()
            except OSError:  # none is left; where there is no file left, uvloop's server sees to it
                return
            self._allowed -= 1
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
