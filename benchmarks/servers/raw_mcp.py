"""The floor of MCP: an ASGI application that does only what the answer cannot do without.

It reads the body, parses it, calls `echo` and writes the answer. No checks of any kind.
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import uvicorn

Message = dict[str, Any]

_SERVER_INFO = {"io.modelcontextprotocol/serverInfo": {"name": "raw", "version": "1"}}
_MODERN_KEY = "io.modelcontextprotocol/protocolVersion"
_TOOLS = orjson.Fragment(
    orjson.dumps(
        [
            {
                "name": "echo",
                "description": "Say it again.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"text": {"type": "string"}},
                    "required": ["text"],
                },
            }
        ]
    )
)


async def app(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    body = b""
    while True:
        part = await receive()
        body += part["body"]
        if not part.get("more_body"):
            break
    message = orjson.loads(body)
    params = message.get("params", {})
    if message["method"] == "tools/call":
        answer = {"text": params["arguments"]["text"]}
        text = orjson.dumps(answer)
        result = {
            "content": [{"type": "text", "text": text.decode()}],
            "structuredContent": orjson.Fragment(text),
            "isError": False,
        }
    else:
        result = {"tools": _TOOLS}
    if _MODERN_KEY in params.get("_meta", ()):
        result["resultType"] = "complete"
        result["_meta"] = _SERVER_INFO
    made = orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(made))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": made})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvicorn.run(
        app,
        port=parser.parse_args().port,
        access_log=False,
        log_config=None,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=75,
    )
