"""The product with routes that do what a bug would: they hold threads that nothing can interrupt.

`python -m tests.hostile.server_with_faults serve …`, with the arguments of `zibaldone serve`.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from zibaldone.access.principal import Tenant
from zibaldone.cli import main
from zibaldone.tools.spec import Runtime
from zibaldone.web import app, health, server
from zibaldone.web.guard import Guard
from zibaldone.web.http import (
    KEY_ID_KEY,
    Endpoint,
    HttpScope,
    Receive,
    Send,
    send_json,
    send_start,
)
from zibaldone.web.wire import H11Connection
from zibaldone.wiring import runtime

HANG_SECONDS = 60.0


def _sleep(_: object = None) -> None:
    """Like a loop in C that gives up the interpreter: no deadline reaches it."""
    time.sleep(HANG_SECONDS)


class FaultyGuard(Guard):
    """The faults are behind the guard, where those of a handler would be."""

    def __init__(self, inner: Endpoint, *arguments: Any) -> None:
        super().__init__(_with_faults(inner), *arguments)


def _with_faults(inner: Endpoint) -> Endpoint:
    async def serve(scope: HttpScope, receive: Receive, send: Send) -> None:
        match scope["path"]:
            case "/hang/reader":
                await _runtimes[0].store.read(Tenant(), _sleep)
            case "/hang/writer":
                await _runtimes[0].store.write(Tenant(), _sleep)
            case "/hang/thread":
                await asyncio.to_thread(_sleep)
            case "/hang/stream":
                scope[KEY_ID_KEY] = "admitted"
                await send_start(scope, send, 200, ())
                await send({"type": "http.response.body", "body": b"begun", "more_body": True})
                await asyncio.sleep(HANG_SECONDS)
            case _:
                await inner(scope, receive, send)
                return
        await send_json(scope, send, 200, {})

    return serve


_runtimes: list[Runtime] = []
_build_runtime = runtime.build_runtime


def build_runtime(*arguments: Any) -> Runtime:
    _runtimes.append(_build_runtime(*arguments))
    return _runtimes[0]


if __name__ == "__main__":
    patched: Any
    for patched, name, value in (
        (runtime, "build_runtime", build_runtime),
        (app, "Guard", FaultyGuard),
        (health, "STUCK_SECONDS", 4.0),
    ):
        setattr(patched, name, value)
    if os.environ.pop("HOSTILE_HTTP", "") == "h11":
        patched = server
        patched.connection_class = lambda: H11Connection
    main.main()
