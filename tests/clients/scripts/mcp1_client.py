# Runs in its own environment, against a library the project's type checker does not see.
# mypy: ignore-errors
"""The official Python client, 1.x."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import conversation
from mcp import ClientSession, McpError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


def plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Session:
    error_type = McpError

    def __init__(self, session: ClientSession, initialized: Any) -> None:
        self._session = session
        self.protocol_version = initialized.protocolVersion
        self.server_info = plain(initialized.serverInfo)

    async def tools(self) -> Any:
        return plain(await self._session.list_tools())["tools"]

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return plain(await self._session.call_tool(name, arguments))

    async def resources(self) -> Any:
        return plain(await self._session.list_resources())["resources"]

    async def read(self, uri: str) -> Any:
        return plain(await self._session.read_resource(uri))["contents"]

    async def templates(self) -> Any:
        return plain(await self._session.list_resource_templates())["resourceTemplates"]

    async def prompts(self) -> Any:
        return plain(await self._session.list_prompts())["prompts"]

    async def ping(self) -> bool:
        await self._session.send_ping()
        return True


@asynccontextmanager
async def streams(options: conversation.Options) -> AsyncIterator[tuple[Any, Any]]:
    if options.command:
        command, *arguments = options.command
        parameters = StdioServerParameters(command=command, args=arguments)
        async with stdio_client(parameters) as (read, write):
            yield read, write
    else:
        http_client = create_mcp_http_client(headers=dict(options.headers))
        async with (
            http_client,
            streamable_http_client(options.url, http_client=http_client) as opened,
        ):
            read, write, _ = opened
            yield read, write


@asynccontextmanager
async def connect(options: conversation.Options) -> AsyncIterator[Session]:
    async with streams(options) as (read, write), ClientSession(read, write) as session:
        yield Session(session, await session.initialize())


if __name__ == "__main__":
    conversation.run(f"mcp {version('mcp')}", connect)
