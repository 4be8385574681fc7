"""Work in threads: starting one, and waiting for a write whose caller may give up."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from zibaldone.errors import DeadlineExceeded, StorageUnavailable
from zibaldone.limits import WRITE_OUTCOME_SECONDS_MAX

T = TypeVar("T")


async def outcome_of(submitted: Future[T]) -> T:
    """What becomes of a write.

    Cancelled before its turn, it never happens. After that its end is awaited for a while all the
    same, so that the caller can be told: it was stored, or why not.
    """
    waiting = asyncio.wrap_future(submitted)
    gives_up_s: float | None = None
    while not waiting.done():
        left_s = None if gives_up_s is None else gives_up_s - time.monotonic()
        if left_s is not None and left_s <= 0:
            waiting.add_done_callback(_forget)
            raise DeadlineExceeded(
                "The write has begun, but its commit takes too long. It may still be stored: read "
                "the document to see."
            )
        try:
            await asyncio.wait([waiting], timeout=left_s)
        except asyncio.CancelledError:
            if submitted.cancel():
                raise
            gives_up_s = gives_up_s or time.monotonic() + WRITE_OUTCOME_SECONDS_MAX
    return waiting.result()


async def over(submitted: Future[T]) -> None:
    """Wait for a while until nothing more becomes of a write that was cancelled."""
    waiting = asyncio.wrap_future(submitted)
    waiting.add_done_callback(_forget)
    await asyncio.wait([waiting], timeout=WRITE_OUTCOME_SECONDS_MAX)


def start_thread(
    thread: threading.Thread, future: Future[T], give_back: Callable[[], None]
) -> bool:
    """Start a thread for work that has its turn. False: the system gives no more; the turn is given
    back, and whoever waits for the work is told."""
    try:
        thread.start()
    except RuntimeError as problem:
        give_back()
        if future.set_running_or_notify_cancel():
            error = StorageUnavailable("The system gives the server no more threads; try again.")
            error.__cause__ = problem
            future.set_exception(error)
        return False
    return True


def _forget(waiting: asyncio.Future[T]) -> None:
    """Nobody asks for the outcome any more; asyncio would complain of an error not asked for."""
    if not waiting.cancelled():
        waiting.exception()
