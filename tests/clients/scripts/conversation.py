"""What every Python client does and reports; each client's own script only adapts its library.

Runs inside the client's environment, so it knows nothing but the standard library.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

CONVERSATION_SECONDS_MAX = 60
UNKNOWN_TOOL = "no_such_tool"
MISSING_PATH = "no/such/document.md"


@dataclass(frozen=True, slots=True)
class Options:
    url: str | None
    command: tuple[str, ...]
    headers: Mapping[str, str]
    path: str
    mode: str


class Session(Protocol):
    """A connected client. Results are the wire's objects as plain JSON values."""

    protocol_version: str | None
    server_info: Any
    error_type: type[Exception]
    """What the library raises for a JSON-RPC error; it has `error.code` and `error.message`."""

    async def tools(self) -> list[dict[str, Any]]: ...
    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]: ...
    async def resources(self) -> list[dict[str, Any]]: ...
    async def read(self, uri: str) -> list[dict[str, Any]]: ...
    async def templates(self) -> list[dict[str, Any]]: ...
    async def prompts(self) -> list[dict[str, Any]]: ...
    async def ping(self) -> bool | None:
        """None where the negotiated revision has no ping."""
        ...


Connect = Callable[[Options], AbstractAsyncContextManager[Session]]


def run(client: str, connect: Connect) -> None:
    """Hold the conversation and print its report, the only line on stdout.

    Warnings count from here on: what a library says of its own dependencies while it is imported
    is nothing the server could change.
    """
    options = _options()
    recorded = _record_warnings()
    report = asyncio.run(_bounded(_converse(connect, options)))
    report = {"client": client, **report, "warnings": recorded}
    sys.stdout.write(json.dumps(report, ensure_ascii=False) + "\n")


async def _bounded(conversation: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    return await asyncio.wait_for(conversation, CONVERSATION_SECONDS_MAX)


async def _converse(connect: Connect, options: Options) -> dict[str, Any]:
    async with connect(options) as session:
        tools = await session.tools()
        documents = await session.call("list_documents", {})
        document = await session.call("get_document", {"path": options.path})
        missing = await session.call("get_document", {"path": MISSING_PATH})
        unknown_tool_error = await _error_of(session, session.call(UNKNOWN_TOOL, {}))
        resources = await session.resources()
        contents = await session.read(resources[0]["uri"]) if resources else None
        return {
            "protocol_version": session.protocol_version,
            "server_info": session.server_info,
            "tools": [tool["name"] for tool in tools],
            "list_documents": documents,
            "get_document": document,
            "missing": missing,
            "unknown_tool_error": unknown_tool_error,
            "resources": {
                "uris": [resource["uri"] for resource in resources],
                "first": contents,
                "templates": [one["uriTemplate"] for one in await session.templates()],
            },
            "prompts": [prompt["name"] for prompt in await session.prompts()],
            "ping": await session.ping(),
        }


async def _error_of(session: Session, request: Awaitable[Any]) -> dict[str, Any] | None:
    """The JSON-RPC error a request ends in; None when it wrongly succeeds."""
    try:
        await request
    except session.error_type as refused:
        error = refused.error  # type: ignore[attr-defined]
        return {"code": error.code, "message": error.message}
    return None


def _options() -> Options:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--header", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--path", required=True, help="a document that exists")
    parser.add_argument("--mode", default="auto", help="auto or legacy, where the client has both")
    parser.add_argument("--stdio", nargs=argparse.REMAINDER, default=[], metavar="COMMAND")
    given = parser.parse_args()
    if (given.url is None) == (not given.stdio):
        parser.error("give either --url or --stdio")
    headers = dict(header.split("=", 1) for header in given.header)
    return Options(given.url, tuple(given.stdio), headers, given.path, given.mode)


def _record_warnings() -> list[str]:
    """A list that grows with each warning or worse, whichever logger it goes to.

    The record factory sees them all: a handler on the root logger would miss those of libraries
    that do not propagate (fastmcp).
    """
    recorded: list[str] = []
    make_record = logging.getLogRecordFactory()

    def make_and_note(*arguments: Any, **more: Any) -> logging.LogRecord:
        record = make_record(*arguments, **more)
        if record.levelno >= logging.WARNING:
            recorded.append(f"{record.name}: {record.getMessage()}")
        return record

    logging.setLogRecordFactory(make_and_note)
    logging.captureWarnings(True)
    # One library telling another of its old calls (fastmcp 2 on mcp 1.30) is not about the server.
    warnings.simplefilter("ignore", DeprecationWarning)
    return recorded
