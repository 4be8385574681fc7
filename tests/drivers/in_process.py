"""The application without a server around it, for tests that put a tool of their own into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx

from tests.drivers.engines import store_flags
from zibaldone import settings
from zibaldone.tools.spec import AnyTool
from zibaldone.web.app import App
from zibaldone.web.routes import ROUTES, Route
from zibaldone.wiring.application import build_application
from zibaldone.wiring.catalogue import build_catalogue
from zibaldone.wiring.runtime import build_runtime


@contextmanager
def application(
    data: Path, *tools: AnyTool, routes: Sequence[Route] = ROUTES, **flags: Any
) -> Iterator[App]:
    """With these tools and routes beside the built-in ones; `flags` are settings."""
    given = {"data": str(data), **store_flags(data), "embedder": "none", **flags}
    chosen = settings.load(given, environment={})
    runtime = build_runtime(chosen)
    catalogue = build_catalogue(chosen, tools)
    try:
        yield build_application(chosen, runtime, catalogue=catalogue, routes=routes)
    finally:
        runtime.store.close()


async def post(
    app: App, path: str, message: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.post(path, json=message, headers=headers)
