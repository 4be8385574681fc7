"""Clients that were written for Graphiti's server, against the memory profile of ours.

Their requests are sent byte for byte, and their answers are read as they read them: nothing but
lines that begin with `data: `.
"""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from tests.drivers.server import Server

# As JavaScript's JSON.stringify writes it.
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05",'
    b'"capabilities":{},"clientInfo":{"name":"mcp-wrapper","version":"1.0.0"}}}'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def call(id_: int, tool: str, arguments: dict[str, Any]) -> bytes:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}
    return json.dumps(message, separators=(",", ":")).encode()


def first_data_line(text: str) -> Any:
    """The answer as the seed reads it."""
    for line in text.split("\n"):
        if line.startswith("data: "):
            return json.loads(line[6:])
    raise AssertionError(f"no data line: {text!r}")


class Client:
    def __init__(self, server: Server, path: str, headers: dict[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        self._path = path
        self._headers = {"Content-Type": "application/json", **headers}
        self.session = ""

    def post(self, body: bytes) -> tuple[int, str]:
        headers = {**self._headers, **({"Mcp-Session-Id": self.session} if self.session else {})}
        self._connection.request("POST", self._path, body, headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        self.session = self.session or answer.headers["Mcp-Session-Id"]
        return answer.status, text

    def get(self, path: str) -> int:
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        answer.read()
        return answer.status

    def tool(self, id_: int, name: str, arguments: dict[str, Any]) -> Any:
        status, text = self.post(call(id_, name, arguments))
        assert status == 200
        answer = first_data_line(text)
        assert answer["id"] == id_
        assert not answer["result"].get("isError"), answer
        return json.loads(answer["result"]["content"][0]["text"])

    def close(self) -> None:
        self._connection.close()


EPISODE = {
    "name": "Read the status first",
    "episode_body": "APT-28 error replies carry a session id too.",
    "source": "text",
    "source_description": "LEARNING",
}


@pytest.mark.requirement("X-03", "X-04", "X-37")
@pytest.mark.parametrize(
    "headers",
    [{}, {"Accept": "*/*"}, {"Accept": "application/json, text/event-stream"}],
    ids=["none", "fetch", "both"],
)
def test_the_sequence_of_the_seed(shared_server: Server, headers: dict[str, str]) -> None:
    client = Client(shared_server, "/mcp-memory/", headers)
    status, text = client.post(INITIALIZE)
    assert status == 200
    assert client.session
    assert first_data_line(text)["result"]["protocolVersion"] == "2024-11-05"
    group = f"seed-{len(headers)}-{len(str(headers))}"
    added = client.tool(2, "add_memory", {**EPISODE, "group_id": group})
    assert added["uuid"]
    (episode,) = client.tool(3, "get_episodes", {"group_ids": [group]})["episodes"]
    assert episode["content"] == EPISODE["episode_body"]
    assert client.tool(4, "get_status", {})["status"] == "ok"
    client.close()


@pytest.mark.requirement("X-04")
def test_the_hook_that_came_of_it(shared_server: Server) -> None:
    """It appends `/mcp` and `/health` to the address it is given."""
    client = Client(
        shared_server, "/mcp-memory/mcp", {"Accept": "application/json, text/event-stream"}
    )
    assert client.get("/mcp-memory/health") == 200
    assert client.post(INITIALIZE)[0] == 200
    assert client.post(INITIALIZED)[0] in (202, 204)
    arguments = {**EPISODE, "group_id": "hook", "reference_timestamp": "2026-01-20T10:30:00Z"}
    client.tool(2, "add_memory", arguments)
    (episode,) = client.tool(3, "get_episodes", {"group_ids": ["hook"]})["episodes"]
    assert episode["valid_at"].startswith("2026-01-20T10:30:00")
    client.close()


def test_who_asks_for_json_gets_json(shared_server: Server) -> None:
    for accepted in ("application/json", "application/json, text/event-stream;q=0.5"):
        client = Client(shared_server, "/mcp-memory/", {"Accept": accepted})
        assert json.loads(client.post(INITIALIZE)[1])["result"]
        client.close()
