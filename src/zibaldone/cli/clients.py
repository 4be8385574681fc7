"""MCP clients that `zibaldone connect` knows: where each keeps its servers, and in which form."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Format = Literal["json", "toml"]
Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Client:
    name: str
    title: str
    key: str
    """The table of servers in its file."""
    format: Format = "json"
    has_http: bool = True
    """False: its file takes only servers that it starts itself."""
    names_type: bool = False
    """True: an entry says its transport."""
    variable: str = "${%s}"
    """How a header refers to an environment variable."""
    after: str = "Restart {title} to take the change over."
    """What to do when its file was written."""

    def file(self, environment: Mapping[str, str]) -> Path:
        """The file that is written, on this platform."""
        home = Path.home()
        match self.name:
            case "claude-code":
                return Path.cwd() / ".mcp.json"
            case "claude-desktop":
                return _application_folder(home, environment) / "claude_desktop_config.json"
            case "codex":
                return Path(environment.get("CODEX_HOME") or home / ".codex") / "config.toml"
            case "cursor":
                return home / ".cursor" / "mcp.json"
            case _:
                return Path.cwd() / ".vscode" / "mcp.json"

    def stdio_entry(self, command: str, arguments: list[str]) -> Entry:
        transport = {"type": "stdio"} if self.names_type else {}
        return {**transport, "command": command, "args": arguments}

    def http_entry(self, url: str, key_variable: str | None) -> Entry:
        transport = {"type": "http"} if self.names_type else {}
        return {**transport, "url": url, **self._authorization(key_variable)}

    def _authorization(self, variable: str | None) -> Entry:
        if variable is None:
            return {}
        if self.name == "codex":
            return {"bearer_token_env_var": variable}
        return {"headers": {"Authorization": f"Bearer {self.variable % variable}"}}


def _application_folder(home: Path, environment: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "Claude"
    if os.name == "nt":
        return Path(environment.get("APPDATA") or home / "AppData" / "Roaming") / "Claude"
    return Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "Claude"


CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            "Claude Code",
            "mcpServers",
            names_type=True,
            after="Start claude in this folder and accept the server.",
        ),
        Client("claude-desktop", "Claude Desktop", "mcpServers", has_http=False),
        Client("codex", "Codex", "mcp_servers", format="toml"),
        Client("cursor", "Cursor", "mcpServers", variable="${env:%s}"),
        Client(
            "vscode",
            "VS Code",
            "servers",
            names_type=True,
            variable="${env:%s}",
            after="Open this folder in VS Code and start the server there.",
        ),
    )
}
