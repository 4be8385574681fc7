"""Runs one client's script in its environment and reads its report."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.clients import environments
from tests.drivers.server import clean_environment

SCRIPTS = environments.HERE / "scripts"
_SECONDS_MAX = 90

Era = Literal["legacy", "modern"]
Report = dict[str, Any]

VERSION_OF_ERA: Mapping[Era, str] = {"legacy": "2025-11-25", "modern": "2026-07-28"}


@dataclass(frozen=True, slots=True)
class Client:
    environment: str
    script: str
    era: Era
    """What it and the server agree on."""
    mode: str | None = None
    """For the clients that can be told whether to try the modern era."""

    @property
    def name(self) -> str:
        return "-".join(part for part in (self.script.partition(".")[0], self.mode) if part)


FASTMCP_2 = Client("fastmcp-2.10.5", "fastmcp2_client.py", "legacy")

CLIENTS: tuple[Client, ...] = (
    Client("mcp-2.3", "mcp2_client.py", "modern", "auto"),
    Client("mcp-2.3", "mcp2_client.py", "legacy", "legacy"),
    Client("mcp-1.30", "mcp1_client.py", "legacy"),
    FASTMCP_2,
    Client("fastmcp-4", "fastmcp4_client.py", "modern", "auto"),
    Client("fastmcp-4", "fastmcp4_client.py", "legacy", "legacy"),
    Client("node", "ts_sdk1.mjs", "legacy"),
    Client("node", "ts_client2.mjs", "modern", "auto"),
    Client("node", "ts_client2.mjs", "legacy", "legacy"),
)


def over_http(
    client: Client, url: str, *, path: str, headers: Mapping[str, str] | None = None
) -> Report:
    given = [f"--header={name}={value}" for name, value in (headers or {}).items()]
    return _report(client, [f"--url={url}", f"--path={path}", *given])


def over_stdio(client: Client, command: Sequence[str], *, path: str) -> Report:
    return _report(client, [f"--path={path}", "--stdio", *command])


def _report(client: Client, arguments: Sequence[str]) -> Report:
    # A proxy of whoever runs the tests must not come between the client and this machine.
    extra = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    if client.environment == "node":
        built = environments.node()
        interpreter = built.node
        extra["NODE_PATH"] = str(built.modules)
    else:
        interpreter = environments.python(client.environment)
    mode = [] if client.mode is None else [f"--mode={client.mode}"]
    done = subprocess.run(
        [str(interpreter), str(SCRIPTS / client.script), *mode, *arguments],
        capture_output=True,
        text=True,
        env=clean_environment(extra),
        timeout=_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"{client.name} failed:\n{done.stdout}\n{done.stderr}"
    lines = done.stdout.splitlines()
    assert len(lines) == 1, f"{client.name} said more than its report:\n{done.stdout}"
    report: Report = json.loads(lines[0])
    return report
