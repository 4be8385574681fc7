"""What one profile offers to MCP clients: its tools, the documents as resources, prompts.

Tool lists are serialized once, at the start: every client asks for them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import orjson

import zibaldone
from zibaldone.errors import Internal, NotFound, ZibaldoneError
from zibaldone.limits import ECHO_CHARS_MAX, LONG_ANSWER_BYTES
from zibaldone.protocol import prompts, tasks
from zibaldone.protocol.guidance import instructions
from zibaldone.protocol.jsonrpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    LongJson,
    Message,
    ProtocolError,
    dumps,
    is_long_id,
)
from zibaldone.protocol.long_answers import dumps_long, quoted_json
from zibaldone.protocol.resources import Resources, no_completion
from zibaldone.protocol.versions import Version
from zibaldone.tools.call import call_tool, start_job
from zibaldone.tools.catalogue import Catalogue, underscored
from zibaldone.tools.profiles import Profile
from zibaldone.tools.schema import input_schema, output_schema
from zibaldone.tools.spec import AnyTool, Call

_log = logging.getLogger("zibaldone.protocol")

CONNECTOR_SCHEMA_VERSION = "2026-11-16.12"
"""Raised by hand when tools come, go or change their meaning; the hash follows by itself."""

SERVER_INFO = {"name": "zibaldone", "title": "Zibaldone", "version": zibaldone.__version__}


class Surface:
    def __init__(self, profile: Profile, catalogue: Catalogue) -> None:
        self.profile = profile
        self._resources = Resources(catalogue)
        tools = catalogue.of_profile(profile)
        self._by_name = {underscored(tool.name): tool for tool in tools}
        names = frozenset(tool.name for tool in tools)
        has_underscores = profile.spelling == "underscores"
        self.instructions = self._spelled(instructions(names), names)
        self._prompts = prompts.offered(names, with_underscores=has_underscores)
        self._completes = "list_documents" in names
        listed = [self._listed(tool) for tool in tools]
        self.schema_hash = hashlib.sha256(dumps(listed)).hexdigest()[:16]
        self._tools = {
            (annotations, structured): orjson.Fragment(
                dumps([_for_version(tool, annotations, structured) for tool in listed])
            )
            for annotations in (True, False)
            for structured in (True, False)
        }

    def _spelled(self, text: str, names: frozenset[str]) -> str:
        """With the tools that the text names spelled as the profile lists them."""
        if self.profile.spelling == "underscores":
            for name in names:
                text = text.replace(name, underscored(name))
        return text

    def _listed(self, tool: AnyTool) -> dict[str, Any]:
        name = tool.name if self.profile.spelling == "as_declared" else underscored(tool.name)
        return {
            "name": name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": input_schema(tool),
            "outputSchema": output_schema(tool),
            "annotations": {
                "readOnlyHint": tool.effect == "read",
                "destructiveHint": tool.effect == "delete",
            },
        }

    @property
    def capabilities(self) -> dict[str, Any]:
        offered = ["tools", "resources", "prompts", "completions"]
        if not self._resources.are_offered:
            offered.remove("resources")
        if not self.list_prompts():
            offered.remove("prompts")
        if not self._completes:
            offered.remove("completions")
        return {name: {} for name in offered}

    @property
    def extensions(self) -> dict[str, Any]:
        """Further capabilities of the modern era: tasks, if a tool may be run as one."""
        if any(tool.job is not None for tool in self._by_name.values()):
            return {"extensions": {tasks.EXTENSION: {}}}
        return {}

    def info(self) -> dict[str, Any]:
        """What a GET on the endpoint shows."""
        return {
            **SERVER_INFO,
            "profile": self.profile.name,
            "tools": list(self.tool_names()),
            "schemaHash": self.schema_hash,
            "connectorSchemaVersion": CONNECTOR_SCHEMA_VERSION,
        }

    def tool_names(self) -> list[str]:
        underscores = self.profile.spelling == "underscores"
        return [underscored(name) if underscores else name for name in self.profile.tools]

    def list_tools(self, version: Version) -> Any:
        return self._tools[version.annotations, version.structured]

    def tool_of(self, message: Message) -> AnyTool | None:
        """The tool that a message calls, if it calls one of the profile's."""
        name = message.params.get("name")
        if message.method != "tools/call" or not isinstance(name, str):
            return None
        return self._by_name.get(underscored(name))

    def streams(self, message: Message) -> bool:
        """Will the answer come with notifications before it?"""
        tool = self.tool_of(message)
        if tool is None or not tool.reports_progress:
            return False
        return "progressToken" in message.meta and not is_long_id(message.meta["progressToken"])

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        call: Call,
        version: Version,
        message: Message,
    ) -> dict[str, Any]:
        tool = self._by_name.get(underscored(name))
        if tool is None:
            code = METHOD_NOT_FOUND if version.era == "legacy" else INVALID_PARAMS
            reason = "Unknown tool" if self.profile.is_main else "Tool not allowed"
            shown = name[:ECHO_CHARS_MAX]
            near = get_close_matches(underscored(shown), self._by_name, n=1)
            hint = f". Did you mean {self._by_name[near[0]].name}?" if near else ""
            raise ProtocolError(code, f"{reason}: {shown}{hint}")
        try:
            if tool.job is not None and version.era == "modern" and tasks.is_declared(message):
                return tasks.created(await start_job(tool, call, arguments), call.runtime)
            answer = await call_tool(tool, call, arguments)
            if tool.is_long:
                return await _long_content(answer, version, call.principal.key_id)
            return _content(answer, version, is_error=False)
        except ZibaldoneError as error:
            described = error.as_dict()
            if isinstance(error, NotFound) and tool.is_missing_an_answer:
                return _content({"error": error.message, **described}, version, is_error=False)
            return _content(described, version, is_error=True)
        except orjson.JSONEncodeError:
            # A number or a depth that JSON cannot carry: the tool's failure, not the protocol's.
            _log.exception("%s answered what cannot be sent, request %s", name, call.request_id)
            failure = Internal(f"The answer of {tool.name} cannot be sent as JSON.")
            return _content(failure.as_dict(), version, is_error=True)

    def require_tasks(self) -> None:
        if not self.extensions:
            raise ProtocolError(METHOD_NOT_FOUND, "No tool at this URL is run as a task.")

    async def get_task(self, task_id: str, call: Call, version: Version) -> dict[str, Any]:
        def to_result(answer: Any, is_error: bool) -> dict[str, Any]:
            return _content(answer, version, is_error=is_error)

        return await tasks.get(task_id, call, to_result)

    async def list_resources(self, cursor: str | None, call: Call) -> dict[str, Any]:
        return await self._resources.page(cursor, call)

    async def read_resource(self, uri: str, call: Call) -> dict[str, Any]:
        return await self._resources.read(uri, call)

    def subscribe(self, uri: str) -> None:
        """Not offered: the server keeps nothing about clients between requests."""
        del uri
        raise ProtocolError(METHOD_NOT_FOUND, "Subscriptions are not offered.")

    def list_resource_templates(self) -> list[dict[str, Any]]:
        return self._resources.templates

    def list_prompts(self) -> list[dict[str, Any]]:
        return prompts.listed(self._prompts)

    def get_prompt(self, name: str, arguments: dict[str, str], message: Message) -> dict[str, Any]:
        del message
        return prompts.get(self._prompts, name, arguments)

    async def complete(
        self, argument: str, value: str, call: Call, prompt: str | None = None
    ) -> dict[str, Any]:
        """Paths, for arguments that are one: of a prompt that is offered here, or of a resource."""
        self._resources.require_listing(call)
        if not self._completes:
            return no_completion()
        if prompt is not None:
            known = self._prompts.get(prompt)
            names = () if known is None else [name for name, _, _ in known.arguments]
            if argument not in names:
                return no_completion()
        return await self._resources.complete(argument, value, call)


def _for_version(tool: dict[str, Any], annotations: bool, structured: bool) -> dict[str, Any]:
    dropped = set() if annotations else {"annotations"}
    if not structured:
        dropped |= {"title", "outputSchema"}
    return {key: value for key, value in tool.items() if key not in dropped}


def _content(answer: Mapping[str, Any], version: Version, *, is_error: bool) -> dict[str, Any]:
    return _content_of(dumps(answer), version, is_error=is_error)


async def _long_content(answer: Mapping[str, Any], version: Version, share: str) -> dict[str, Any]:
    text = LongJson(await dumps_long(answer, share))
    if text.size_bytes <= LONG_ANSWER_BYTES:
        return _content_of(b"".join(text.pieces), version, is_error=False)
    quoted = await quoted_json(
        text, others_bytes=text.size_bytes if version.structured else 0, share=share
    )
    return _result(text, quoted, version, is_error=False)


def _content_of(text: bytes, version: Version, *, is_error: bool) -> dict[str, Any]:
    return _result(orjson.Fragment(text), text.decode(), version, is_error=is_error)


def _result(
    made: orjson.Fragment | LongJson, text: str | LongJson, version: Version, *, is_error: bool
) -> dict[str, Any]:
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if version.structured:
        result["structuredContent"] = made
    return result
