"""The product with one tool more: `echo`, served at /mcp-bench beside the real ones.

The trivial tool makes servers comparable that have nothing else in common.
"""

from __future__ import annotations

import argparse

from typing_extensions import TypedDict

from zibaldone import settings
from zibaldone.tools.spec import Arguments, Call, ToolSpec
from zibaldone.web.server import server
from zibaldone.wiring.application import build_application
from zibaldone.wiring.catalogue import build_catalogue
from zibaldone.wiring.runtime import build_runtime


class Echo(Arguments):
    text: str


class Echoed(TypedDict):
    text: str


async def echo(call: Call, given: Echo) -> Echoed:
    del call
    return {"text": given.text}


TOOL = ToolSpec("echo", "Echo", "Say it again.", Echo, Echoed, "read", echo)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    chosen = {"data": options.data, "profiles": {"bench": ["echo"]}, "embedder": "none"}
    made = settings.load(chosen, {})
    runtime = build_runtime(made)
    app = build_application(made, runtime, catalogue=build_catalogue(made, [TOOL]))
    server(app, "127.0.0.1", options.port).run()
    runtime.store.close()
