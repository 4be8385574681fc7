"""An event loop in a thread of its own, for blocking code that has to give up on time.

A blocking client limits each read. Only a task can be ended wherever it waits: for a connection,
for headers that come byte by byte, or for the rest of a body.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_CLOSE_SECONDS_MAX = 5.0
"""How long its end is waited for; the end of the process does not wait for the thread."""


class LoopClosed(Exception):
    """It was closed while the work ran, or before."""


class BackgroundLoop:
    def __init__(self, name: str, at_end: Callable[[], Awaitable[None]]) -> None:
        """`at_end` closes what belongs to the loop, when nothing else runs there."""
        self._at_end = at_end
        self._over: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name=name, daemon=True)
        self._thread.start()
        started.wait()

    def _run(self, started: threading.Event) -> None:
        async def serve() -> None:
            self._over, self._loop = asyncio.Event(), asyncio.get_running_loop()
            started.set()
            await self._over.wait()
            running = asyncio.all_tasks() - {asyncio.current_task()}
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await self._at_end()

        asyncio.run(serve())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """From any other thread: await the work there."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except concurrent.futures.CancelledError:
            raise LoopClosed from None
        except RuntimeError:
            if not self._loop.is_closed():
                raise
            work.close()
            raise LoopClosed from None

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._over.set)
            self._thread.join(_CLOSE_SECONDS_MAX)
