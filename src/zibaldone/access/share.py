"""On whose behalf work runs: what threads, processes and the writer are shared by.

`call_tool` sets it for the time of a call. Whoever queues work reads it (`current_share`) in the
caller's task, so nothing in between has to pass it on.
"""

from __future__ import annotations

from contextvars import ContextVar

BACKGROUND = ""
"""The share of work that no caller waits for."""

AUTHENTICATION = "authentication"
"""The share of reading the API keys: every caller waits for it."""

NO_CALLERS = (BACKGROUND, AUTHENTICATION)
"""Shares that nobody has to make way for: they are there all the time."""

SHARE: ContextVar[str] = ContextVar("zibaldone_share", default=BACKGROUND)
"""The key id of the caller that the running task works for."""

current_share = SHARE.get
