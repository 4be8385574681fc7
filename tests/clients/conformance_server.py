"""A server that also offers the fixtures of the official conformance suite.

`python -m tests.clients.conformance_server --port 8000 --data folder`; stop it with Ctrl-C.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tests.clients.fixtures.surface import ConformanceSurface
from zibaldone import settings
from zibaldone.web.server import server
from zibaldone.wiring.application import build_application
from zibaldone.wiring.runtime import build_runtime


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.clients.conformance_server")
    parser.add_argument("--port", type=int)
    parser.add_argument("--data")
    options = parser.parse_args(arguments)
    chosen = settings.load({"data": options.data, "port": options.port})
    runtime = build_runtime(chosen)
    try:
        app = build_application(chosen, runtime, surface=ConformanceSurface)
        server(app, chosen.host, chosen.port).run()
    finally:
        runtime.close()


if __name__ == "__main__":
    main()
