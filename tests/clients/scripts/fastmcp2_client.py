# Runs in its own environment, against a library the project's type checker does not see.
# mypy: ignore-errors
"""The FastMCP client, 2.x."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import conversation
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp import McpError


def plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Session:
    error_type = McpError

    def __init__(self, client: Client) -> None:
        self._client = client
        self.protocol_version = client.initialize_result.protocolVersion
        self.server_info = plain(client.initialize_result.serverInfo)

    async def tools(self) -> Any:
        return [plain(tool) for tool in await self._client.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        # `call_tool` is what users call: it also parses structured content, and logs if it cannot.
        await self._client.call_tool(name, arguments, raise_on_error=False)
        return plain(await self._client.call_tool_mcp(name, arguments))

    async def resources(self) -> Any:
        return [plain(resource) for resource in await self._client.list_resources()]

    async def read(self, uri: str) -> Any:
        return [plain(contents) for contents in await self._client.read_resource(uri)]

    async def templates(self) -> Any:
        return [plain(template) for template in await self._client.list_resource_templates()]

    async def prompts(self) -> Any:
        return [plain(prompt) for prompt in await self._client.list_prompts()]

    async def ping(self) -> bool:
        return await self._client.ping()


@asynccontextmanager
async def connect(options: conversation.Options) -> AsyncIterator[Session]:
    if options.command:
        command, *arguments = options.command
        transport = StdioTransport(command, arguments, keep_alive=False)
    else:
        transport = StreamableHttpTransport(options.url, headers=dict(options.headers))
    async with Client(transport) as client:
        yield Session(client)


if __name__ == "__main__":
    conversation.run(f"fastmcp {version('fastmcp')}", connect)
