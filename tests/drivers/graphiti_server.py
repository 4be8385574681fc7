"""A server that behaves as Graphiti's MCP server was measured to behave, over real HTTP.

- `POST /mcp/` is redirected (307) to `/mcp`; an Accept without both types is 406; an unknown
  session is 404, none is 400; error replies carry a session header too; answers are events.
- Errors of tools come as HTTP 200 with `isError` false and `{"error": …}`; a missing argument is
  `isError` true; unknown arguments are dropped.
- add_memory is acknowledged when it is queued. Episodes of a group are stored one after the other;
  what waits when the server stops is lost. The same episode twice is stored twice. An episode with
  a uuid that does not exist is dropped in the background.
- With `redisearch`, queries are passed on unescaped, as old FalkorDB set-ups did.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from tests.drivers.memory_server import (
    Answer,
    Asked,
    MemoryServer,
    Reply,
    as_event,
    as_json,
    envelope,
    rpc_error,
)

_REQUIRED = {
    "add_memory": ("name", "episode_body"),
    "delete_episode": ("uuid",),
    "search_nodes": ("query",),
    "search_memory_facts": ("query",),
    "get_episodes": (),
    "clear_graph": (),
    "get_status": (),
}


@dataclass(slots=True)
class StoredEpisode:
    name: str
    content: str
    group_id: str
    source: str
    source_description: str
    reference_time: str | None
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))

    def shown(self) -> dict[str, Any]:
        return {
            "uuid": self.uuid,
            "name": self.name,
            "content": self.content,
            "created_at": "2026-11-16T12:00:00+00:00",
            "source": self.source,
            "source_description": self.source_description,
            "group_id": self.group_id,
        }


class GraphitiServer(MemoryServer):
    def __init__(self, *, stores_at_once: bool = True, redisearch: bool = False) -> None:
        super().__init__()
        self.stored: dict[str, StoredEpisode] = {}
        self.queue: deque[tuple[StoredEpisode, str | None]] = deque()
        self.stores_at_once = stores_at_once
        """Otherwise what is queued waits for `work`."""
        self._redisearch = redisearch

    def bodies(self, group: str = "main") -> list[str]:
        return sorted(one.content for one in self.stored.values() if one.group_id == group)

    def work(self, count: int | None = None) -> None:
        """Store so many of the queued episodes; None: all."""
        with self.lock:
            while self.queue and count != 0:
                episode, given_uuid = self.queue.popleft()
                if given_uuid is None:
                    self.stored[episode.uuid] = episode
                count = None if count is None else count - 1

    def restart(self) -> None:
        """What it had in memory is gone: sessions, and episodes that it acknowledged."""
        with self.lock:
            self.sessions.clear()
            self.queue.clear()

    def respond(self, asked: Asked) -> Reply:
        if asked.path == "/mcp/":
            return Answer(307, b"", {"Location": f"http://127.0.0.1:{self.port}/mcp"})
        if asked.path != "/mcp" or asked.method != "POST":
            return Answer(404 if asked.path != "/mcp" else 405, b"Not Found")
        accepted = asked.headers.get("accept", "")
        if "application/json" not in accepted or "text/event-stream" not in accepted:
            problem = (
                "Not Acceptable: Client must accept both application/json and text/event-stream"
            )
            return self._refused(asked, 406, problem)
        if asked.rpc_method == "initialize":
            return self._initialize(asked)
        session_id = asked.headers.get("mcp-session-id")
        if session_id is None:
            return self._refused(asked, 400, "Bad Request: Missing session ID")
        if session_id not in self.sessions:
            return self._refused(asked, 404, "Session not found")
        if "id" not in asked.message:
            return Answer(202, b"", {"Content-Type": "application/json"})
        if asked.rpc_method == "tools/call":
            return as_event(envelope(asked, self._call(asked)), **{"mcp-session-id": session_id})
        error = rpc_error(asked, -32602, "Invalid request parameters")
        return as_event(error, **{"mcp-session-id": session_id})

    def _refused(self, asked: Asked, status: int, message: str) -> Answer:
        del asked
        problem = {"code": -32600, "message": message}
        error: dict[str, Any] = {"jsonrpc": "2.0", "id": "server-error", "error": problem}
        return as_json(error, status, **{"mcp-session-id": uuid.uuid4().hex})

    def _initialize(self, asked: Asked) -> Answer:
        result = {
            "protocolVersion": asked.message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "Graphiti Agent Memory", "version": "1.28.1"},
        }
        return as_event(envelope(asked, result), **{"mcp-session-id": self.new_session()})

    def _call(self, asked: Asked) -> dict[str, Any]:
        if asked.tool not in _REQUIRED:
            return _failed(f"Unknown tool: {asked.tool}")
        missing = [name for name in _REQUIRED[asked.tool] if name not in asked.arguments]
        if missing:
            return _failed(f"Error executing tool {asked.tool}: {missing[0]} Field required")
        answer = getattr(self, f"_{asked.tool}")(asked.arguments)
        text = json.dumps(answer)
        return {
            "content": [{"type": "text", "text": text}],
            "structuredContent": {"result": answer},
            "isError": False,
        }

    def _add_memory(self, arguments: dict[str, Any]) -> dict[str, Any]:
        group = arguments.get("group_id") or "main"
        if not re.fullmatch(r"[A-Za-z0-9_-]+", group):
            return {"error": f"Error queuing episode: invalid group_id {group}"}
        reference_time = arguments.get("reference_time")
        if reference_time is not None and not re.match(r"\d{4}-\d{2}-\d{2}", reference_time):
            return {"error": "Invalid reference_time: Invalid isoformat string"}
        episode = StoredEpisode(
            name=arguments["name"],
            content=arguments["episode_body"],
            group_id=group,
            source=arguments.get("source", "text"),
            source_description=arguments.get("source_description", ""),
            reference_time=reference_time,
        )
        self.queue.append((episode, arguments.get("uuid")))
        if self.stores_at_once:
            self.work()
        message = f"Episode '{episode.name}' queued for processing in group '{group}'"
        return {"message": message}

    def _get_episodes(self, arguments: dict[str, Any]) -> dict[str, Any]:
        groups = arguments.get("group_ids") or ["main"]
        groups = [groups] if isinstance(groups, str) else groups
        found = [one for one in self.stored.values() if one.group_id in groups]
        found.sort(key=lambda one: one.uuid, reverse=True)
        if not found:
            return {"message": "No episodes found", "episodes": []}
        shown = [one.shown() for one in found[: arguments.get("max_episodes", 10)]]
        return {"message": "Episodes retrieved successfully", "episodes": shown}

    def _delete_episode(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if self.stored.pop(arguments["uuid"], None) is None:
            return {"error": f"Error deleting episode: node {arguments['uuid']} not found"}
        return {"message": f"Episode with UUID {arguments['uuid']} deleted successfully"}

    def _clear_graph(self, arguments: dict[str, Any]) -> dict[str, Any]:
        groups = arguments.get("group_ids") or ["main"]
        self.stored = {key: one for key, one in self.stored.items() if one.group_id not in groups}
        return {"message": f"Graph data cleared successfully for group IDs: {', '.join(groups)}"}

    def _get_status(self, arguments: dict[str, Any]) -> dict[str, Any]:
        del arguments
        return {"status": "ok", "message": "Graphiti MCP server is running and connected"}

    def _search_nodes(self, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            groups = [self._read_term(group) for group in arguments.get("group_ids") or ()]
            query = self._read_term(arguments["query"])
        except ValueError as problem:
            return {"error": f"Error searching nodes: {problem}"}
        nodes = [
            {"uuid": one.uuid, "name": one.name, "summary": one.content, "group_id": one.group_id}
            for one in self.stored.values()
            if query.lower() in one.content.lower() and (not groups or one.group_id in groups)
        ]
        return {"message": "Nodes retrieved successfully", "nodes": nodes}

    def _search_memory_facts(self, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = self._search_nodes(arguments)
        if "error" in answer:
            return answer
        return {"message": "Facts retrieved successfully", "facts": answer["nodes"]}

    def _read_term(self, text: str) -> str:
        """What the database makes of a query: an operator in it is an error unless escaped."""
        if not self._redisearch:
            return text
        if re.search(r'(?<!\\)(?:\\\\)*[-+!(){}\[\]^"~*?:/]', text):
            raise ValueError(f"RediSearch: Syntax error at offset 3 near {text}")
        return re.sub(r"\\(.)", r"\1", text)


def _failed(message: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": message}], "isError": True}
