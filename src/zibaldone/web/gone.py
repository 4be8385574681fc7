"""A client that closes its connection needs no answer: a read that is under way ends.

A write goes on. Whoever sends one and leaves may count on it as little as on any answer that got
lost, but there is no reason to drop it.
"""

from __future__ import annotations

import asyncio

from zibaldone.web.http import HttpScope

GONE = "the client is gone"
"""What the task of such a request is cancelled with."""

_TASK_KEY = "zibaldone.ends_when_gone"


def end_when_gone(scope: HttpScope) -> None:
    """From here on, the request ends when its client leaves."""
    scope[_TASK_KEY] = asyncio.current_task()


def go_on_when_gone(scope: HttpScope) -> None:
    scope.pop(_TASK_KEY, None)


def client_is_gone(scope: HttpScope) -> None:
    task: asyncio.Task[None] | None = scope.pop(_TASK_KEY, None)
    if task is not None:
        task.cancel(GONE)
