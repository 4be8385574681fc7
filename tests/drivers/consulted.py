"""A server with assistants, whose models are a scripted server of the tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.drivers.keys import Key, create_key
from tests.drivers.mcp import Mcp
from tests.drivers.model_server import ModelServer
from tests.drivers.server import Server

KEYS: dict[str, tuple[str, ...]] = {
    "ada": (),
    "bob": (),
    "eve": ("--namespace", "elsewhere"),
    "reader": ("--effect", "read"),
    "guest": ("--prefix", "guests/"),
}
"""Who asks: the first is whoever nobody is named."""


@dataclass(slots=True)
class Consulted:
    server: Server
    models: ModelServer
    project: Path
    keys: Mapping[str, Key] = field(default_factory=dict)

    def mcp(self, who: str = "ada", path: str = "/mcp-consult") -> Mcp:
        headers = self.keys[who].headers if self.keys else {}
        return Mcp(self.server.client, path, headers=headers)

    def chat(
        self, session_id: str, instructions: str = "Go on.", *, who: str = "ada", **more: Any
    ) -> dict[str, Any]:
        """A turn with `assistant`, which is the reviewer unless it is given."""
        name = more.pop("assistant", "reviewer")
        given = {"session_id": session_id, "instructions": instructions, **more}
        return self.mcp(who).call(f"chat_with_{name}", **given)

    def failure(
        self, session_id: str, instructions: str = "Go on.", *, who: str = "ada", **more: Any
    ) -> dict[str, Any]:
        name = more.pop("assistant", "reviewer")
        given = {"session_id": session_id, "instructions": instructions, **more}
        return self.mcp(who).failure(f"chat_with_{name}", **given)

    def write(self, path: str, text: str) -> Path:
        file = self.project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def path(self, path: str) -> str:
        return str(self.project / path)

    def asked(self) -> list[dict[str, Any]]:
        """What the models were sent since the last time; nothing is kept of it."""
        bodies = [request.json for request in self.models.to_models]
        self.models.requests.clear()
        while self.models.asked.acquire(blocking=False):
            pass
        return bodies


def assistants(models: ModelServer, project: Path, more: Mapping[str, Mapping[str, Any]]) -> str:
    """The setting `assistants`: reviewer and what is given, of Chat Completions unless they say."""
    plain: dict[str, Any] = {
        "provider": "openai",
        "base_url": models.url,
        "model": "gpt-4o-test",
        "api": "chat",
        "roots": [str(project)],
    }
    tables: dict[str, Any] = {"reviewer": plain}
    for name, table in more.items():
        given = {**plain, **table}
        if given["provider"] == "anthropic":
            given = {**given, "base_url": models.anthropic_url}
            del given["api"]
        tables[name] = given
    return json.dumps(tables)


@contextmanager
def consulted(
    folder: Path,
    more: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    has_keys: bool = False,
) -> Iterator[Consulted]:
    """`more`: further assistants, or `reviewer` itself, by name."""
    project, data = folder / "project", folder / "data"
    project.mkdir(exist_ok=True)
    keys = {who: create_key(data, *given) for who, given in KEYS.items()} if has_keys else {}
    with ModelServer() as models:
        environment = {
            "ZIBALDONE_ASSISTANTS": assistants(models, project, more or {}),
            **(settings or {}),
        }
        with Server(data, environment=environment) as server:
            yield Consulted(server, models, project, keys)
