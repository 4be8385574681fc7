"""A server that also offers the fixtures of the official conformance suite.

`python -m tests.clients.conformance_server --port 8000 --data folder`; stop it with Ctrl-C.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from tests.clients.fixtures.surface import ConformanceSurface
from tests.clients.fixtures.tasks import FIXTURE_KIND, KIND, TOOLS
from zibaldone import settings
from zibaldone.jobs.runner import JobRunner
from zibaldone.tools.catalogue import Catalogue
from zibaldone.web.server import server
from zibaldone.wiring.application import build_application
from zibaldone.wiring.catalogue import build_catalogue
from zibaldone.wiring.runtime import build_runtime


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.clients.conformance_server")
    parser.add_argument("--port", type=int)
    parser.add_argument("--data")
    options = parser.parse_args(arguments)
    chosen = settings.load({"data": options.data, "port": options.port})
    runtime = build_runtime(chosen)
    runtime = replace(runtime, jobs=JobRunner(runtime.store, {KIND: FIXTURE_KIND}))
    try:
        app = build_application(
            chosen, runtime, catalogue=_catalogue(chosen), surface=ConformanceSurface
        )
        server(app, chosen.host, chosen.port).run()
    finally:
        runtime.close()


def _catalogue(chosen: settings.Settings) -> Catalogue:
    """The product's, with the fixtures that are tools on the main profile."""
    known = build_catalogue(chosen)
    names = tuple(tool.name for tool in TOOLS)
    profiles = (
        replace(profile, tools=(*names, *profile.tools)) if profile.is_main else profile
        for profile in known.profiles
    )
    return Catalogue((*known.tools, *TOOLS), tuple(profiles))


if __name__ == "__main__":
    main()
