"""The application on an event loop, without a socket, and a watch over the loop."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import gc
import json
import logging
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import psutil

from tests.nightly.cases import HttpRequest, Surface, described
from tests.nightly.second_client import STALL_SECONDS_MAX, Late, caused
from tests.nightly.values import IDS
from tests.nightly.verdict import Answer
from zibaldone import settings
from zibaldone.web.app import App
from zibaldone.wiring.application import build_application
from zibaldone.wiring.runtime import build_runtime

ANSWER_SECONDS_MAX = 45.0
"""Longer than the longest deadline of the product."""
INGEST_SECONDS_MAX = 15.0
"""Many a hostile file uses up its time, whatever it is; a fuzzer has better uses for it."""
CLOSE_SECONDS_MAX = 20.0
_BEAT_SECONDS = 0.05
_FIRST_BYTES, _PART_BYTES = 7, 1 << 16
"""Of a body: a first part that is too short to say anything, then as much as a socket gives."""


class StillBusy(Exception):
    """Work goes on after all its callers have been answered."""


@dataclass(slots=True)
class Heartbeat:
    """Notices when the event loop does not get round: nobody is served in that time.

    `second_client` says which part of a wait counts. The CPU time is that of all threads: one that
    holds the interpreter's lock stops the loop as well as work on the loop itself does. What all
    threads were doing when a wait became too long is written to standard error.
    """

    on_stall: Callable[[float], None] = lambda _: None
    late: Late = field(default_factory=Late)
    """Of a control process."""
    longest_s: float = 0.0
    stalls: list[float] = field(default_factory=list)
    """Seconds of each stall that this process caused."""
    _own_s: float = 0.0
    _task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def own_work(self) -> Iterator[None]:
        """What the fuzzer itself computes on the loop is not the product's stall."""
        started_s = time.monotonic()
        try:
            yield
        finally:
            self._own_s += time.monotonic() - started_s

    async def _beat(self) -> None:
        while True:
            self._own_s = 0.0
            wall_s, cpu_s = time.monotonic(), time.process_time()
            faulthandler.dump_traceback_later(_BEAT_SECONDS + STALL_SECONDS_MAX)
            await asyncio.sleep(_BEAT_SECONDS)
            now_s = time.monotonic()
            lag_s = now_s - wall_s - _BEAT_SECONDS - self._own_s
            busy_s = time.process_time() - cpu_s - self._own_s
            if lag_s > STALL_SECONDS_MAX / 2:
                await asyncio.sleep(_BEAT_SECONDS)  # the control has to say how late it was
            lag_s = caused(lag_s, self.late.between(wall_s, now_s), busy_s)
            self.longest_s = max(self.longest_s, lag_s)
            if lag_s > STALL_SECONDS_MAX:
                self.stalls.append(lag_s)
                self.on_stall(lag_s)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._beat())
        await asyncio.sleep(0)  # it beats before anything can stall
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        await asyncio.sleep(3 * _BEAT_SECONDS)  # the last stretch counts too
        self._task.cancel()
        faulthandler.cancel_dump_traceback_later()


@dataclass(slots=True)
class ErrorLog(logging.Handler):
    """What the product logs as an error while it answers: each is a fault of ours."""

    messages: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        logging.Handler.__init__(self, logging.ERROR)

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f" ({record.exc_info[1]!r})"[:300]
        self.messages.append(text)

    def __hash__(self) -> int:
        return id(self)


@contextlib.contextmanager
def errors_logged() -> Iterator[ErrorLog]:
    log = ErrorLog()
    root = logging.getLogger()
    root.addHandler(log)
    try:
        yield log
    finally:
        root.removeHandler(log)


async def exchange(app: App, request: HttpRequest) -> Answer:
    answer = Answer()
    path, _, query = request.target.partition(b"?")
    body = memoryview(request.body)
    starts = [0, *range(_FIRST_BYTES, len(body), _PART_BYTES)]
    parts = deque(body[a:b] for a, b in pairwise([*starts, len(body)]))

    async def receive() -> dict[str, Any]:
        if parts:
            await asyncio.sleep(0)  # as a socket does, it lets others have their turn
            part = parts.popleft()
            return {"type": "http.request", "body": bytes(part), "more_body": bool(parts)}
        await asyncio.Event().wait()  # the client stays until it has its answer
        raise AssertionError

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            if answer.status:
                answer.problem = "a second answer began"
            answer.status, answer.headers = message["status"], list(message["headers"])
        else:
            if answer.is_complete or not answer.status:
                answer.problem = "something was sent outside the answer"
            answer.body += message.get("body", b"")
            answer.is_complete = not message.get("more_body", False)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": request.method,
        "path": _decoded(path),
        "raw_path": path,
        "query_string": query,
        "headers": list(request.headers),
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            await app(scope, receive, send)
    except TimeoutError:
        answer.problem = f"no answer in {ANSWER_SECONDS_MAX:g} s"
    except Exception as error:
        answer.problem = f"the application raised {error!r}"[:300]
    return answer


def _decoded(path: bytes) -> str:
    from urllib.parse import unquote

    return unquote(path.decode("latin-1"))


@contextlib.asynccontextmanager
async def serving(data: Path, **flags: Any) -> AsyncIterator[App]:
    """An application with its background work, as in a server."""
    given = {
        "data": str(data),
        "embedder": "hashed",
        "ingest_seconds_max": INGEST_SECONDS_MAX,
        **flags,
    }
    chosen = settings.load(given, environment={})
    runtime = build_runtime(chosen)
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    started, ended = asyncio.Event(), asyncio.Event()

    async def send(message: Any) -> None:
        (started if message["type"].startswith("lifespan.startup") else ended).set()

    try:
        app = build_application(chosen, runtime)
        living: Any = app({"type": "lifespan"}, messages.get, send)
        life: asyncio.Task[None] = asyncio.create_task(living)
        messages.put_nowait({"type": "lifespan.startup"})
        await started.wait()
        try:
            yield app
        finally:
            messages.put_nowait({"type": "lifespan.shutdown"})
            await ended.wait()
            await life
    finally:
        closing = asyncio.get_running_loop().run_in_executor(None, runtime.close)
        try:
            await asyncio.wait_for(asyncio.shield(closing), CLOSE_SECONDS_MAX)
        except TimeoutError:
            raise StillBusy(f"the store did not close in {CLOSE_SECONDS_MAX:g} s") from None


async def prepare(app: App) -> Surface:
    """Fill the store with the documents that cases speak of; what the server offers."""
    for number, path in enumerate(IDS):
        content = f"# Friday {number}\n\nThe deploy runs on Friday, tiếng Việt, some text.\n"
        if path == "notes/long":
            content = "\n".join(f"line {line} of a longer text\n" for line in range(3_000))
        if path == "notes/lines":
            content = "\n" * 5_000
        for revision in range(3):
            await call(app, "POST", "/documents", path=path, upsert=True, tags=["ops"],
                       content=f"{content}{revision}")  # fmt: skip
    await call(app, "DELETE", "/documents/notes/deleted")
    tools = await call(app, "POST", "/mcp-all", jsonrpc="2.0", id=1, method="tools/list")
    return described(tools["result"], await call(app, "GET", "/openapi.json"))


async def call(app: App, verb: str, url: str, /, **body: Any) -> Any:
    headers = ((b"host", b"localhost"), (b"content-type", b"application/json"))
    data = json.dumps(body).encode() if body else b""
    answer = await exchange(app, HttpRequest(verb, url.encode(), headers, data))
    assert answer.problem is None, (url, answer.problem)
    assert answer.status < 300, (url, answer.body)
    return json.loads(answer.body)


class _MallInfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemorySample:
    rss_bytes: int
    """What the system counts; allocators keep some of what was given back to them."""
    malloc_bytes: int
    """In use by C code; 0 where the C library cannot say."""
    blocks: int
    """In use by Python objects."""


def settled_memory() -> MemorySample:
    """Memory of this process with all that can be given back given back, and bounded caches empty:
    of a million different requests, the last still fill them."""
    for cached in [each for each in gc.get_objects() if isinstance(each, _lru_cache_wrapper)]:
        if cached.cache_parameters()["maxsize"] is not None:
            cached.cache_clear()
    gc.collect()
    in_use = 0
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.malloc_trim(0)
        libc.mallinfo2.restype = _MallInfo
        info = libc.mallinfo2()
        in_use = info.uordblks + info.hblkhd
    rss: int = psutil.Process().memory_info().rss
    return MemorySample(rss, in_use, sys.getallocatedblocks())
