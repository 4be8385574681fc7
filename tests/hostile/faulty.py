"""A server with faults built in (see `server_with_faults`), in its own process."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.drivers.server import Server

_COMMAND = (sys.executable, "-m", "tests.hostile.server_with_faults", "serve")


class FaultyServer(Server):
    def __init__(
        self,
        data: Path,
        *,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(data, command=_COMMAND, arguments=arguments, environment=environment)
        self.protocol = (environment or {}).get("HOSTILE_HTTP", "httptools")
