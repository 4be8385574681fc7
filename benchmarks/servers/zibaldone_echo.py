"""The product with one tool more: `echo`, served at /mcp-bench beside the real ones.

The trivial tool makes servers comparable that have nothing else in common. It goes into the catalog
of this process only.
"""

from __future__ import annotations

import argparse

from zibaldone import settings
from zibaldone.tools import catalog
from zibaldone.tools.spec import Answer, Arguments, Call, ToolSpec
from zibaldone.web.server import server
from zibaldone.wiring.application import build_application
from zibaldone.wiring.runtime import build_runtime


class Echo(Arguments):
    text: str


def echo(call: Call, given: Echo) -> Answer:
    del call
    return {"text": given.text}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    catalog.BY_NAME["echo"] = ToolSpec("echo", "Echo", "Say it again.", Echo, "read", echo)
    chosen = {"data": options.data, "profiles": {"bench": ["echo"]}, "embedder": "none"}
    made = settings.load(chosen, {})
    runtime = build_runtime(made)
    server(build_application(made, runtime), "127.0.0.1", options.port).run()
    runtime.store.close()
