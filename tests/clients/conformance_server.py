"""A server that also offers the fixtures of the official conformance suite.

`python -m tests.clients.conformance_server --port 8000 --data folder`; stop it with Ctrl-C.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tests.clients.fixtures.surface import ConformanceSurface
from zibaldone import settings, wiring
from zibaldone.web.server import server


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.clients.conformance_server")
    parser.add_argument("--port", type=int)
    parser.add_argument("--data")
    options = parser.parse_args(arguments)
    chosen = settings.load({"data": options.data, "port": options.port})
    runtime = wiring.build_runtime(chosen)
    try:
        app = wiring.build_application(chosen, runtime, surface=ConformanceSurface)
        server(app, chosen.host, chosen.port).run()
    finally:
        runtime.close()


if __name__ == "__main__":
    main()
