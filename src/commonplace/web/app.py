"""The application: every path that is served, in one list."""

from __future__ import annotations

from typing import Any

from starlette.routing import Route, Router

from commonplace.errors import NotFound
from commonplace.tools.spec import Runtime
from commonplace.web.guard import Guard, GuardRules
from commonplace.web.health import Health
from commonplace.web.http import Endpoint, HttpScope, Receive, Send, refuse_method
from commonplace.web.openapi import OpenApi
from commonplace.web.rest import Rest, anonymous

App = Endpoint


class Served:
    """An endpoint as Starlette wants it: an object it calls as ASGI, without wrapping it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        await self._endpoint(scope, receive, send)


def build_app(runtime: Runtime, rules: GuardRules) -> App:
    rest = Rest(runtime, anonymous)
    health = Health(runtime)
    routes = [
        _route("/documents", rest.collection),
        _route("/documents/{path:path}", rest.document),
        _route("/batch-read", rest.batch_read),
        _route("/search", rest.search),
        _route("/ingest", rest.ingest),
        _route("/health", _read_only(health.health)),
        _route("/metrics", _read_only(health.metrics)),
        _route("/openapi.json", _read_only(OpenApi().document)),
    ]
    router = Router(routes, redirect_slashes=False, default=_unknown)
    return Guard(router, rules)


def _route(path: str, endpoint: Endpoint) -> Route:
    served: Any = Served(endpoint)
    return Route(path, served)


def _read_only(endpoint: Endpoint) -> Endpoint:
    async def read(scope: HttpScope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("GET", "HEAD"):
            await endpoint(scope, receive, send)
        else:
            await refuse_method(scope, send, "GET")

    return read


async def _unknown(scope: HttpScope, receive: Receive, send: Send) -> None:
    del receive, send
    if scope["type"] == "http":
        raise NotFound(f"Nothing is served at {scope['path']!r}; see /openapi.json.")
