"""A profile with the suite's fixtures before its own tools."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from mcp_types import LOG_LEVEL_META_KEY

from zibaldone.protocol.conformance import rounds
from zibaldone.protocol.conformance.rounds import Result, Round, text
from zibaldone.protocol.jsonrpc import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    Message,
    ProtocolError,
    dumps,
)
from zibaldone.protocol.surface import Surface
from zibaldone.protocol.versions import Version
from zibaldone.tools.profiles import Profile
from zibaldone.tools.spec import Call

_PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAA"
    "AABJRU5ErkJggg=="
)
_WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
_IMAGE = {"type": "image", "data": _PNG, "mimeType": "image/png"}

_RESOURCES: dict[str, dict[str, str]] = {
    "test://static-text": {
        "mimeType": "text/plain",
        "text": "This is the content of the static text resource.",
    },
    "test://static-binary": {"mimeType": "image/png", "blob": _PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content"},
}
_TEMPLATE = re.compile(r"test://template/([^/]+)/data")

_SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def _embedded(uri: str, mime: str, words: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": words}}


_FIXED: dict[str, Result] = {
    "test_simple_text": text("This is a simple text response for testing."),
    "test_image_content": {"content": [_IMAGE]},
    "test_audio_content": {"content": [{"type": "audio", "data": _WAV, "mimeType": "audio/wav"}]},
    "test_embedded_resource": {
        "content": [
            _embedded(
                "test://embedded-resource", "text/plain", "This is an embedded resource content."
            )
        ]
    },
    "test_multiple_content_types": {
        "content": [
            {"type": "text", "text": "Multiple content types test:"},
            _IMAGE,
            _embedded(
                "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
            ),
        ]
    },
    "test_error_handling": text(
        "This tool intentionally returns an error for testing", isError=True
    ),
    "json_schema_2020_12_tool": text("ok"),
}


async def _with_progress(call: Call, message: Message, version: Version) -> Result:
    del message, version
    for done in (0, 50, 100):
        await call.progress(done, 100, "working")
    return text("done")


async def _with_logging(call: Call, message: Message, version: Version) -> Result:
    wanted = version.era == "legacy" or LOG_LEVEL_META_KEY in message.meta
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        if wanted and call.notify is not None:
            await call.notify("notifications/message", {"level": "info", "data": words})
    return text("done")


async def _missing_capability(call: Call, message: Message, version: Version) -> Result:
    del call
    if version.era == "modern" and "sampling" not in Round.of(message).capabilities:
        raise ProtocolError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            "The client must be able to sample.",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return text("ok")


_RUN: dict[str, Callable[[Call, Message, Version], Awaitable[Result]]] = {
    "test_tool_with_progress": _with_progress,
    "test_tool_with_logging": _with_logging,
    "test_logging_tool": _with_logging,
    "test_missing_capability": _missing_capability,
}
_STREAMING = frozenset({"test_tool_with_progress", "test_tool_with_logging", "test_logging_tool"})
_NAMES = (*_FIXED, *_RUN, *rounds.TOOLS)

_PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


class ConformanceSurface(Surface):
    def __init__(self, profile: Profile) -> None:
        super().__init__(profile)
        empty = {"type": "object", "properties": {}}
        schemas = {"json_schema_2020_12_tool": _SCHEMA_2020_12}
        self._fixtures = [
            {
                "name": name,
                "description": f"Fixture {name}.",
                "inputSchema": schemas.get(name, empty),
            }
            for name in _NAMES
        ]

    def list_tools(self, version: Version) -> Any:
        own = orjson.loads(dumps(super().list_tools(version)))
        return [*self._fixtures, *own]

    def streams(self, message: Message) -> bool:
        name = message.params.get("name")
        return super().streams(message) or (message.method == "tools/call" and name in _STREAMING)

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        call: Call,
        version: Version,
        message: Message,
    ) -> dict[str, Any]:
        if name in _FIXED:
            return dict(_FIXED[name])
        if name in _RUN:
            return await _RUN[name](call, message, version)
        if name in rounds.TOOLS:
            return rounds.TOOLS[name](Round.of(message))
        return await super().call_tool(name, arguments, call, version, message)

    async def list_resources(self, cursor: str | None, call: Call) -> dict[str, Any]:
        page = await super().list_resources(cursor, call)
        if cursor is None:
            fixtures = [
                {"uri": uri, "name": uri, "mimeType": known["mimeType"]}
                for uri, known in _RESOURCES.items()
            ]
            page["resources"] = [*fixtures, *page["resources"]]
        return page

    async def read_resource(self, uri: str, call: Call) -> dict[str, Any]:
        if uri in _RESOURCES:
            return {"contents": [{"uri": uri, **_RESOURCES[uri]}]}
        if found := _TEMPLATE.fullmatch(uri):
            data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
            content = {"uri": uri, "mimeType": "application/json", "text": dumps(data).decode()}
            return {"contents": [content]}
        return await super().read_resource(uri, call)

    def subscribe(self, uri: str) -> None:
        del uri

    def list_resource_templates(self) -> list[dict[str, Any]]:
        fixture = {
            "uriTemplate": "test://template/{id}/data",
            "name": "template",
            "mimeType": "application/json",
        }
        return [fixture, *super().list_resource_templates()]

    def list_prompts(self) -> list[dict[str, Any]]:
        fixtures = [
            {
                "name": name,
                "description": f"Fixture {name}.",
                "arguments": [{"name": argument, "required": True} for argument in arguments],
            }
            for name, arguments in _PROMPTS.items()
        ]
        return [*fixtures, *super().list_prompts()]

    def get_prompt(self, name: str, arguments: dict[str, str], message: Message) -> dict[str, Any]:
        if name not in _PROMPTS:
            return super().get_prompt(name, arguments, message)
        if name == "test_input_required_result_prompt":
            return rounds.prompt_with_context(Round.of(message))
        if missing := set(_PROMPTS[name]) - arguments.keys():
            raise ProtocolError(INVALID_PARAMS, f"The argument {min(missing)} is missing.")
        return {"messages": [{"role": "user", "content": part} for part in _parts(name, arguments)]}


def _parts(name: str, arguments: dict[str, str]) -> list[dict[str, Any]]:
    match name:
        case "test_simple_prompt":
            return [{"type": "text", "text": "This is a simple prompt for testing."}]
        case "test_prompt_with_arguments":
            words = f"arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
            return [{"type": "text", "text": f"Prompt with arguments: {words}"}]
        case "test_prompt_with_embedded_resource":
            words = "Embedded resource content for testing."
            return [
                _embedded(arguments["resourceUri"], "text/plain", words),
                {"type": "text", "text": "Please process the embedded resource above."},
            ]
        case _:
            return [_IMAGE, {"type": "text", "text": "Please analyze the image above."}]
