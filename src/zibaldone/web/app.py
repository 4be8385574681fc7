"""The application: every path that is served, in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field

from zibaldone.errors import NotFound
from zibaldone.jobs.supervisor import Supervisor
from zibaldone.protocol.surface import Surface
from zibaldone.tools.catalogue import Catalogue
from zibaldone.tools.spec import Runtime
from zibaldone.web.auth import TOKEN_KEY, Authenticator
from zibaldone.web.endpoint import McpEndpoint, NotificationStatus
from zibaldone.web.gate import Gate
from zibaldone.web.guard import Guard, GuardRules
from zibaldone.web.health import Health
from zibaldone.web.http import Endpoint, HttpScope, Receive, Send, refuse_method
from zibaldone.web.openapi import OpenApi
from zibaldone.web.pace import STRANGERS, Pace
from zibaldone.web.rest import Rest
from zibaldone.web.routes import Route

App = Endpoint


@dataclass(frozen=True, slots=True)
class Serving:
    """What `wiring` decides about the web face."""

    runtime: Runtime
    catalogue: Catalogue
    authenticator: Authenticator
    gate: Gate
    guard: GuardRules
    surfaces: Sequence[Surface]
    routes: Sequence[Route]
    capability_routes: Mapping[str, str] = field(default_factory=dict)
    """First word of a URL → name of the profile that `/<word>/<token>/mcp` serves."""
    notification_status: NotificationStatus = "auto"
    extra_routes: Mapping[str, Endpoint] = field(default_factory=dict)
    background: Supervisor = field(default_factory=Supervisor)


def build_app(serving: Serving) -> App:
    catalogue, routes = serving.catalogue, serving.routes
    rest = Rest(serving.runtime, catalogue, routes, serving.authenticator, serving.gate)
    health = Health(serving.runtime, serving.authenticator, serving.background)
    exact: dict[str, Endpoint] = {
        **rest.exact,
        "/live": _read_only(health.live),
        "/health": _read_only(health.health),
        "/metrics": _read_only(health.metrics),
    }
    for_everybody = {
        "/openapi.json": _read_only(OpenApi(catalogue, routes).document),
        **serving.extra_routes,
    }
    for path, public in for_everybody.items():
        exact[path] = _in_turn(public, serving.gate.pace)
    by_profile: dict[str, Endpoint] = {}
    for surface in serving.surfaces:
        endpoint = McpEndpoint(
            surface,
            serving.runtime,
            serving.authenticator,
            serving.gate,
            serving.notification_status,
        )
        by_profile[surface.profile.name] = endpoint
        exact[surface.profile.path] = endpoint
        exact[surface.profile.path + "/"] = endpoint
        if surface.profile.is_like_graphiti:
            exact[surface.profile.path + "/mcp"] = endpoint
            exact[surface.profile.path + "/mcp/"] = endpoint
            exact[surface.profile.path + "/health"] = exact["/health"]
    capabilities = {
        word: by_profile[profile] for word, profile in serving.capability_routes.items()
    }
    router = Router(exact, rest.by_start, capabilities)
    return Guard(router, serving.guard, serving.gate.pace, serving.background)


def _read_only(endpoint: Endpoint) -> Endpoint:
    async def serve(scope: HttpScope, receive: Receive, send: Send) -> None:
        if scope["method"] in ("GET", "HEAD"):
            await endpoint(scope, receive, send)
        else:
            await refuse_method(scope, send, "GET")

    return serve


def _in_turn(endpoint: Endpoint, pace: Pace) -> Endpoint:
    """For what everybody may ask for; all who ask without a key share the turns."""

    async def serve(scope: HttpScope, receive: Receive, send: Send) -> None:
        await pace.turn(STRANGERS)
        await endpoint(scope, receive, send)

    return serve


class Router:
    def __init__(
        self,
        exact: Mapping[str, Endpoint],
        by_start: Mapping[str, Endpoint],
        capabilities: Mapping[str, Endpoint],
    ) -> None:
        self._exact = exact
        self._by_start = tuple(by_start.items())
        self._capabilities = capabilities

    def __call__(self, scope: HttpScope, receive: Receive, send: Send) -> Awaitable[None]:
        path: str = scope["path"]
        endpoint = self._exact.get(path) or self._pattern(path, scope)
        return endpoint(scope, receive, send)

    def _pattern(self, path: str, scope: HttpScope) -> Endpoint:
        for start, endpoint in self._by_start:
            if path.startswith(start):
                return endpoint
        match path.rstrip("/").split("/"):
            case ["", word, token, "mcp"] if word in self._capabilities:
                scope[TOKEN_KEY] = token
                return self._capabilities[word]
        # The path is not repeated: it may hold a token that was sent to the wrong address.
        raise NotFound("Nothing is served here; /openapi.json lists what is.")
