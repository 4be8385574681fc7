# Runs in its own environment, against a library the project's type checker does not see.
# mypy: ignore-errors
"""The official Python client, 2.x: `--mode auto` tries `server/discover`, `legacy` does not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import conversation
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS


def plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Session:
    error_type = MCPError

    def __init__(self, client: Client) -> None:
        self._client = client
        self.protocol_version = client.protocol_version
        self.server_info = client.server_info and plain(client.server_info)

    async def tools(self) -> Any:
        return plain(await self._client.list_tools())["tools"]

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return plain(await self._client.call_tool(name, arguments))

    async def resources(self) -> Any:
        return plain(await self._client.list_resources())["resources"]

    async def read(self, uri: str) -> Any:
        return plain(await self._client.read_resource(uri))["contents"]

    async def templates(self) -> Any:
        return plain(await self._client.list_resource_templates())["resourceTemplates"]

    async def prompts(self) -> Any:
        return plain(await self._client.list_prompts())["prompts"]

    async def ping(self) -> bool | None:
        if self.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return None
        await self._client.session.send_ping()
        return True


@asynccontextmanager
async def connect(options: conversation.Options) -> AsyncIterator[Session]:
    if options.command:
        command, *arguments = options.command
        server = StdioServerParameters(command=command, args=arguments)
        async with Client(server, mode=options.mode) as client:
            yield Session(client)
    else:
        async with create_mcp_http_client(headers=dict(options.headers)) as http_client:
            server = streamable_http_client(options.url, http_client=http_client)
            async with Client(server, mode=options.mode) as client:
                yield Session(client)


if __name__ == "__main__":
    conversation.run(f"mcp {version('mcp')}", connect)
