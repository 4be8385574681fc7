"""The part of Zibaldone's memory profile that a push uses, in memory: for tests of many runs.

Stored when acknowledged; a uuid is an idempotency key; no session is needed.
"""

from __future__ import annotations

import json
from typing import Any

from tests.drivers.memory_server import Answer, Asked, MemoryServer, Reply, as_json, envelope


class ZibaldoneStub(MemoryServer):
    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, dict[str, Any]] = {}
        self.revisions = 0

    def bodies(self, group: str = "main") -> list[str]:
        return sorted(
            one["episode_body"] for one in self.stored.values() if one["group_id"] == group
        )

    def respond(self, asked: Asked) -> Reply:
        if asked.rpc_method == "initialize":
            result = {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "zibaldone", "version": "1"},
            }
            return as_json(envelope(asked, result), 200, **{"Mcp-Session-Id": self.new_session()})
        if "id" not in asked.message:
            return Answer(204)
        if asked.tool == "add_memory":
            known = self.stored.get(asked.arguments["uuid"])
            if known != asked.arguments:
                self.revisions += 1
                self.stored[asked.arguments["uuid"]] = asked.arguments
            answer = {"message": "stored"}
        elif asked.tool == "delete_episode":
            if self.stored.pop(asked.arguments["uuid"], None) is None:
                error = {"code": "NOT_FOUND", "status": 404, "message": "No such episode."}
                return self._result(asked, {"error": error}, is_error=True)
            answer = {"message": "deleted"}
        else:
            answer = {"status": "ok"}
        return self._result(asked, answer)

    @staticmethod
    def _result(asked: Asked, answer: dict[str, Any], *, is_error: bool = False) -> Answer:
        content = [{"type": "text", "text": json.dumps(answer)}]
        return as_json(envelope(asked, {"content": content, "isError": is_error}))
