"""Servers by fork: this process imports the product once, then each life begins in milliseconds.

It has one thread and no event loop, so a fork is as good as a start. It reads one JSON object per
line and answers each with the process id of the server that it started:

    {"port": 8000, "data": "/folder", "log": "/file", "clock_seconds": 0, "embed_seconds": 0}
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import sys
import threading
import time
from typing import Any

import uvicorn

from zibaldone import settings
from zibaldone.cli.main import main as zibaldone
from zibaldone.embed.hashed import Hashed
from zibaldone.web import openapi
from zibaldone.web.routes import ROUTES
from zibaldone.wiring.catalogue import build_catalogue

_PRELOADED = (
    "concurrent.futures.thread",
    "encodings.idna",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvloop",
    "zibaldone.cli.serve",
    "zibaldone.store.open",
    "zibaldone.web.server",
    "zibaldone.wiring.application",
    "zibaldone.wiring.runtime",
)
"""What a server imports only when it is started."""
_PR_SET_PDEATHSIG = 1


def _warm_up() -> None:
    """What each life would import or compute anew, done once."""
    for name in _PRELOADED:
        importlib.import_module(name)
    uvicorn.Config("zibaldone.web.app:build_app").load()
    catalogue = build_catalogue(settings.load({}, environment={}))
    openapi.build(catalogue, ROUTES)  # the schemas of all tools


def main() -> None:
    _warm_up()
    gc.collect()
    gc.freeze()  # pages that no collection touches stay shared
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a life that ended leaves nothing behind
    for line in sys.stdin.buffer:
        assert threading.active_count() == 1
        wanted = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _live(wanted)
        os.write(1, b"%d\n" % pid)


def _live(wanted: dict[str, Any]) -> None:
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        _die_with_parent()
        log = os.open(wanted["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for number, descriptor in ((0, nothing), (1, log), (2, log)):
            os.dup2(descriptor, number)
        _set_clock(wanted["clock_seconds"])
        _slow_down(wanted["embed_seconds"])
        port, data = str(wanted["port"]), wanted["data"]
        zibaldone(["serve", "--port", port, "--data", data, "--log-level", "warning"])
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        os._exit(code)


def _die_with_parent() -> None:
    """A storm that is stopped leaves no server behind."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _set_clock(ahead_seconds: float) -> None:
    """Later lives are later by the clock, so that leases run out without anybody waiting."""
    time_ns, ahead_ns = time.time_ns, int(ahead_seconds * 1e9)
    time.time_ns = lambda: time_ns() + ahead_ns


def _slow_down(seconds: float) -> None:
    """An embedding model that takes its time: kills come while documents are leased."""
    embed = Hashed.embed

    def slow(self: Hashed, texts: Any) -> Any:
        time.sleep(seconds)
        return embed(self, texts)

    if seconds:
        Hashed.embed = slow  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
