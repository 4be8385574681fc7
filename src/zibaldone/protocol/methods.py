"""The methods of MCP: a table from name to what answers it, in which era."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from zibaldone.access.share import SHARE
from zibaldone.errors import ZibaldoneError
from zibaldone.limits import MESSAGE_BYTES_MAX
from zibaldone.protocol import tasks
from zibaldone.protocol.constants import SERVER_INFO_META_KEY
from zibaldone.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Message,
    ProtocolError,
)
from zibaldone.protocol.resources import ResourceNotFound
from zibaldone.protocol.surface import (
    CONNECTOR_SCHEMA_VERSION,
    SERVER_INFO,
    Surface,
)
from zibaldone.protocol.versions import VERSIONS, Version, negotiated
from zibaldone.tools.spec import Call

LIST_TTL_MS = 60_000
"""Tools and prompts change with a new version of the server only; a minute bounds the surprise."""

CHANGING_TTL_MS = 0
"""Documents change at any time: nobody may hold on to a list or a body."""

_LOG_LEVELS = frozenset(
    {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
)
_MODERN_META = {SERVER_INFO_META_KEY: SERVER_INFO}


@dataclass(slots=True)  # made for every request: frozen costs three times as much
class Request:
    message: Message
    version: Version
    surface: Surface
    call: Call

    def text(self, name: str) -> str:
        value = self.message.params.get(name)
        if not isinstance(value, str):
            raise ProtocolError(INVALID_PARAMS, f"params.{name} must be a string.")
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.message.params.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise ProtocolError(INVALID_PARAMS, f"params.{name} must be an object.")
        return value

    def cursor(self) -> str | None:
        value = self.message.params.get("cursor")
        if value is not None and not isinstance(value, str):
            raise ProtocolError(INVALID_PARAMS, "params.cursor must be a string.")
        return value


Handler = Callable[[Request], Awaitable[dict[str, Any]]]


async def answer(request: Request) -> dict[str, Any]:
    """The result of a request, in the shape of its version."""
    method = METHODS.get((request.version.era, request.message.method))
    if method is None:
        raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {request.message.method[:128]}")
    if method.bytes_max is not None and request.call.request_bytes > method.bytes_max:
        raise ProtocolError(
            INVALID_REQUEST,
            f"{request.message.method} takes at most {method.bytes_max} bytes.",
            {"bytes_max": method.bytes_max},
        )
    shared = SHARE.set(request.call.principal.key_id)
    try:
        result = await method.handler(request)
    except ZibaldoneError as error:
        code = INTERNAL_ERROR if error.status >= 500 else INVALID_REQUEST
        raise ProtocolError(code, error.message, error.as_dict()) from error
    finally:
        SHARE.reset(shared)
    if request.version.era == "legacy":
        return result
    # The result of a call or a read is made for this answer alone, so it may be added to.
    result.setdefault("resultType", "complete")
    result["_meta"] = {**result.get("_meta", {}), **_MODERN_META}
    if method.ttl_ms is not None:
        result["ttlMs"] = method.ttl_ms
        result["cacheScope"] = "private"
    return result


async def _initialize(request: Request) -> dict[str, Any]:
    version = negotiated(request.message.params.get("protocolVersion"))
    return {
        "protocolVersion": version.name,
        "capabilities": {**request.surface.capabilities, "logging": {}},
        "serverInfo": SERVER_INFO,
        "instructions": request.surface.instructions,
        "_meta": _schema_meta(request.surface),
    }


async def _discover(request: Request) -> dict[str, Any]:
    return {
        "supportedVersions": list(VERSIONS),
        "capabilities": {**request.surface.capabilities, **request.surface.extensions},
        "instructions": request.surface.instructions,
        "_meta": _schema_meta(request.surface),
    }


def _schema_meta(surface: Surface) -> dict[str, str]:
    return {
        "zibaldone/schemaHash": surface.schema_hash,
        "zibaldone/connectorSchemaVersion": CONNECTOR_SCHEMA_VERSION,
    }


async def _ping(request: Request) -> dict[str, Any]:
    del request
    return {}


async def _set_level(request: Request) -> dict[str, Any]:
    if request.text("level") not in _LOG_LEVELS:
        raise ProtocolError(INVALID_PARAMS, "params.level is not a log level.")
    return {}


async def _list_tools(request: Request) -> dict[str, Any]:
    _refuse_cursor(request)
    return {"tools": request.surface.list_tools(request.version)}


async def _call_tool(request: Request) -> dict[str, Any]:
    name, arguments = request.text("name"), request.mapping("arguments")
    return await request.surface.call_tool(
        name, arguments, request.call, request.version, request.message
    )


async def _list_resources(request: Request) -> dict[str, Any]:
    return await request.surface.list_resources(request.cursor(), request.call)


async def _read_resource(request: Request) -> dict[str, Any]:
    try:
        return await request.surface.read_resource(request.text("uri"), request.call)
    except ResourceNotFound as missing:
        if request.version.era == "legacy":
            raise
        raise ProtocolError(INVALID_PARAMS, missing.message, missing.data) from None


async def _subscribe(request: Request) -> dict[str, Any]:
    request.surface.subscribe(request.text("uri"))
    return {}


async def _list_templates(request: Request) -> dict[str, Any]:
    _refuse_cursor(request)
    return {"resourceTemplates": request.surface.list_resource_templates()}


async def _list_prompts(request: Request) -> dict[str, Any]:
    _refuse_cursor(request)
    return {"prompts": request.surface.list_prompts()}


async def _get_prompt(request: Request) -> dict[str, Any]:
    arguments = request.mapping("arguments")
    if not all(isinstance(value, str) for value in arguments.values()):
        raise ProtocolError(INVALID_PARAMS, "Arguments of a prompt are strings.")
    return request.surface.get_prompt(request.text("name"), arguments, request.message)


async def _complete(request: Request) -> dict[str, Any]:
    reference, argument = request.mapping("ref"), request.mapping("argument")
    name, value = argument.get("name"), argument.get("value")
    if reference.get("type") not in ("ref/prompt", "ref/resource"):
        raise ProtocolError(INVALID_PARAMS, "params.ref.type is ref/prompt or ref/resource.")
    if not isinstance(name, str) or not isinstance(value, str):
        raise ProtocolError(INVALID_PARAMS, "params.argument has a name and a value.")
    prompt = reference.get("name") if reference["type"] == "ref/prompt" else None
    if prompt is not None and not isinstance(prompt, str):
        raise ProtocolError(INVALID_PARAMS, "params.ref.name must be a string.")
    return await request.surface.complete(name, value, request.call, prompt)


async def _get_task(request: Request) -> dict[str, Any]:
    return await request.surface.get_task(_task_id(request), request.call, request.version)


async def _update_task(request: Request) -> dict[str, Any]:
    task_id = _task_id(request)
    if not isinstance(request.message.params.get("inputResponses"), dict):
        raise ProtocolError(INVALID_PARAMS, "params.inputResponses must be an object.")
    return await tasks.update(task_id, request.call)


async def _cancel_task(request: Request) -> dict[str, Any]:
    return await tasks.cancel(_task_id(request), request.call)


def _task_id(request: Request) -> str:
    request.surface.require_tasks()
    tasks.require_declared(request.message)
    return request.text("taskId")


def _refuse_cursor(request: Request) -> None:
    """These lists have one page; a cursor for another is not one of ours."""
    if request.cursor() is not None:
        raise ProtocolError(INVALID_PARAMS, "Invalid cursor.")


@dataclass(frozen=True, slots=True)
class Method:
    handler: Handler
    ttl_ms: int | None = None
    bytes_max: int | None = MESSAGE_BYTES_MAX
    """None: the tool that is called says it."""


_BOTH_ERAS = {
    "tools/list": Method(_list_tools, LIST_TTL_MS),
    "tools/call": Method(_call_tool, bytes_max=None),
    "resources/list": Method(_list_resources, CHANGING_TTL_MS),
    "resources/read": Method(_read_resource, CHANGING_TTL_MS),
    "resources/templates/list": Method(_list_templates, LIST_TTL_MS),
    "prompts/list": Method(_list_prompts, LIST_TTL_MS),
    "prompts/get": Method(_get_prompt),
    "completion/complete": Method(_complete),
}
METHODS: dict[tuple[str, str], Method] = {
    **{("legacy", name): method for name, method in _BOTH_ERAS.items()},
    **{("modern", name): method for name, method in _BOTH_ERAS.items()},
    ("legacy", "initialize"): Method(_initialize),
    ("legacy", "ping"): Method(_ping),
    ("legacy", "logging/setLevel"): Method(_set_level),
    ("legacy", "resources/subscribe"): Method(_subscribe),
    ("legacy", "resources/unsubscribe"): Method(_subscribe),
    ("modern", "server/discover"): Method(_discover, LIST_TTL_MS),
    ("modern", "tasks/get"): Method(_get_task),
    ("modern", "tasks/update"): Method(_update_task),
    ("modern", "tasks/cancel"): Method(_cancel_task),
}
