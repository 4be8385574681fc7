"""The parts put together in this process, and callers of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from tests.drivers.answers import check_answer
from tests.drivers.catalogues import BY_NAME
from tests.drivers.engines import store_flags
from zibaldone import settings
from zibaldone.access.principal import LOCAL, Principal, Tenant
from zibaldone.errors import ZibaldoneError
from zibaldone.tools.call import call_tool
from zibaldone.tools.spec import Call, Runtime
from zibaldone.wiring.runtime import build_runtime


@contextmanager
def opened(data: Path, **flags: Any) -> Iterator[Runtime]:
    given = {"data": str(data), **store_flags(data), "embedder": "none", **flags}
    chosen = settings.load(given, environment={})
    runtime = build_runtime(chosen)
    try:
        yield runtime
    finally:
        runtime.store.close()


class Caller:
    """Somebody who calls tools by name."""

    def __init__(self, runtime: Runtime, tenant: Tenant = LOCAL.tenant) -> None:
        self._runtime = runtime
        self._principal = Principal(key_id="test", tenant=tenant)

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        call = Call(self._runtime, self._principal)
        answer = asyncio.run(call_tool(BY_NAME[tool], call, arguments))
        sent: dict[str, Any] = orjson.loads(orjson.dumps(answer))
        check_answer(tool, sent)
        return sent

    def refused(self, tool: str, **arguments: Any) -> str:
        """The code of the refusal."""
        try:
            answer = self(tool, **arguments)
        except ZibaldoneError as error:
            return error.code
        raise AssertionError(f"{tool} was not refused but answered {answer}")

    def ids(self, **arguments: Any) -> list[str]:
        """The ids of a list."""
        return [item["document_id"] for item in self("list_documents", **arguments)["items"]]

    def found(self, query: str, **arguments: Any) -> list[str]:
        """The ids of a search."""
        results = self("search_knowledge", query=query, **arguments)["results"]
        return sorted(hit["document_id"] for hit in results)
