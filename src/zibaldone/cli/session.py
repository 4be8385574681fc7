"""The opened store and one event loop, for all the calls a command makes.

Imports the store, the models and every tool, so a command imports it only when it runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import orjson

from zibaldone.access.principal import LOCAL
from zibaldone.settings import Settings
from zibaldone.tools.call import call as call_tool
from zibaldone.tools.catalog import BY_NAME
from zibaldone.tools.spec import Answer, Call, Runtime
from zibaldone.wiring.runtime import build_runtime

T = TypeVar("T")


class Session:
    def __init__(self, runtime: Runtime, runner: asyncio.Runner) -> None:
        self.runtime = runtime
        self._runner = runner

    def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Call a tool as the operator, in this process; a server may be serving the same store."""
        answer = self.run(call_tool(BY_NAME[tool], Call(self.runtime, LOCAL), arguments))
        # An answer is made to be sent and may contain encoded JSON; commands need its values.
        values: Answer = orjson.loads(orjson.dumps(answer, default=str))
        return values

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)


@contextmanager
def open_session(settings: Settings) -> Iterator[Session]:
    runtime = build_runtime(settings)
    try:
        with asyncio.Runner() as runner:
            yield Session(runtime, runner)
    finally:
        runtime.close()
