# Runs in an environment of its own, with a library the project's type checker does not see.
# mypy: ignore-errors
"""FastMCP with the same `echo`, stateless, answering JSON."""

from __future__ import annotations

import argparse

import uvicorn
from fastmcp import FastMCP

server = FastMCP("echo")


@server.tool
def echo(text: str) -> dict[str, str]:
    """Say it again."""
    return {"text": text}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    uvicorn.run(
        server.http_app(path="/mcp", json_response=True, stateless_http=True),
        port=options.port,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=1,
    )
