# Runs in an environment of its own, with a library the project's type checker does not see.
# mypy: ignore-errors
"""The official SDK's low-level server with the same `echo`, answering JSON."""

from __future__ import annotations

import argparse
import json

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server

_TOOL = types.Tool(
    name="echo",
    description="Say it again.",
    input_schema={
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
)


async def list_tools(context, params) -> types.ListToolsResult:
    del context, params
    return types.ListToolsResult(tools=[_TOOL])


async def call_tool(context, params) -> types.CallToolResult:
    del context
    answer = {"text": params.arguments["text"]}
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=json.dumps(answer))],
        structured_content=answer,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--stateful", action="store_true")
    options = parser.parse_args()
    server = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    uvicorn.run(
        server.streamable_http_app(json_response=True, stateless_http=not options.stateful),
        port=options.port,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=1,
    )
