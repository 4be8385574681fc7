"""On whose behalf work runs: what threads, processes and the writer are shared by.

`call_tool` sets it for the time of a call. Whoever queues work reads it (`current_share`) in the
caller's task, so nothing in between has to pass it on. Work that no caller waits for has the share
BACKGROUND.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

BACKGROUND = ""

_share: ContextVar[str] = ContextVar("zibaldone_share", default=BACKGROUND)

current_share = _share.get
"""The share of the running task: the key id of the caller that it works for."""


@contextmanager
def working_for(share: str) -> Iterator[None]:
    token = _share.set(share)
    try:
        yield
    finally:
        _share.reset(token)
