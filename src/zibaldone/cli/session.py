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
from zibaldone.cli.context import IfMissing
from zibaldone.cli.place import usable_store
from zibaldone.settings import Settings
from zibaldone.tools.call import call_tool
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.spec import Answer, Call, Notify, Runtime
from zibaldone.wiring.catalogue import build_catalogue
from zibaldone.wiring.runtime import build_runtime

T = TypeVar("T")

_MODEL_LOADS_SECONDS_MAX = 10.0


class Session:
    def __init__(self, runtime: Runtime, catalogue: Catalogue, runner: asyncio.Runner) -> None:
        self.runtime = runtime
        self._catalogue = catalogue
        self._runner = runner

    def call(self, tool: str, arguments: dict[str, Any], notify: Notify | None = None) -> Answer:
        """Call a tool as the operator, in this process; a server may be serving the same store.

        `notify` receives the progress that the tool reports.
        """
        return self.values(self.run(self.ask(tool, arguments, notify)))

    async def ask(
        self, tool: str, arguments: dict[str, Any], notify: Notify | None = None
    ) -> Answer:
        """The same within the event loop, and the answer as the tool gives it."""
        token = None if notify is None else tool
        call = Call(self.runtime, LOCAL, notify=notify, progress_token=token, is_operator=True)
        answer: Answer = await call_tool(self._catalogue.by_name[tool], call, arguments)
        return answer

    @staticmethod
    def values(answer: Answer) -> Answer:
        """An answer is made to be sent and may contain encoded JSON; this decodes it."""
        values: Answer = orjson.loads(orjson.dumps(answer, default=str))
        return values

    def await_model(self) -> None:
        """Wait until the embedding model is loaded, as a server has done before a call comes."""
        self.run(self.runtime.query_vectors.ready(_MODEL_LOADS_SECONDS_MAX))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)


@contextmanager
def open_session(settings: Settings, if_missing: IfMissing = "refuse") -> Iterator[Session]:
    with usable_store(settings, if_missing) as usable:
        catalogue = build_catalogue(usable)
        runtime = build_runtime(usable)
        try:
            with asyncio.Runner() as runner:
                yield Session(runtime, catalogue, runner)
        finally:
            runtime.close()
