"""What is written down: every change with who, what, where and how it went; never a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.engines import backend_of
from tests.drivers.keys import Key, create_key
from tests.drivers.mcp import BOTH, MODERN, PATHS, SSE, Mcp
from tests.drivers.server import Server
from tests.drivers.slow_host import SlowHost

CONTENT = "The body of a document is nobody else's business: ornithorhynchus."
URL_SECRET = "s3cr3t-in-a-query"


@dataclass(frozen=True, slots=True)
class Watched:
    server: Server
    key: Key
    host: SlowHost

    def mcp(self, path: str = "/mcp", version: str | None = None) -> Mcp:
        return Mcp(self.server.client, path, version=version, headers=self.key.headers)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.server.log().splitlines()]

    def changes(self) -> list[dict[str, Any]]:
        """The log's lines about changes."""
        return [
            json.loads(line["message"])
            for line in self.lines()
            if line["logger"] == "zibaldone.audit"
        ]

    def change(self, request_id: str) -> dict[str, Any]:
        (line,) = [line for line in self.changes() if line["request"] == request_id]
        return line

    def rows(self, request_id: str) -> list[tuple[Any, ...]]:
        """The audit table's rows of one request."""
        return backend_of(self.server.data).query(
            "SELECT principal, action, document_id, outcome FROM audit WHERE request_id = ?",
            (request_id,),
        )


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A server that logs all it ever would."""
    data = tmp_path_factory.mktemp("audit") / "data"
    key = create_key(data)
    with SlowHost() as host:
        host.release.set()
        environment = {
            "ZIBALDONE_INGEST_HOSTS": f"127.0.0.1:{host.port}",
            "ZIBALDONE_LOG_LEVEL": "debug",
            "NO_PROXY": "*",
        }
        with Server(data, environment=environment) as server:
            yield Watched(server, key, host)


STEPS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("upload_document", {"path": "audit/a", "content": CONTENT}, "create"),
    ("update_document", {"path": "audit/a", "title": "New"}, "update"),
    (
        "patch_document",
        {"path": "audit/a", "old_str": "nobody else's", "new_str": "our"},
        "patch",
    ),
    ("delete_document", {"document_id": "audit/a"}, "delete"),
    ("ingest_document", {"path": "audit/b", "text": CONTENT}, "create"),
)


class TestTheTrail:
    @pytest.mark.requirement("7.5.c")
    def test_each_change_is_in_the_table_and_the_log(self, watched: Watched) -> None:
        for tool, arguments, action in STEPS:
            request_id = f"trail-{tool}"
            result = watched.mcp().outcome(tool, arguments, x_request_id=request_id)
            assert result["isError"] is False, result
            document = arguments.get("path") or arguments["document_id"]
            line = watched.change(request_id)
            assert line == {
                "key": watched.key.key_id,
                "namespace": "default",
                "tool": tool,
                "document": document,
                "outcome": "ok",
                "request": request_id,
            }
            assert watched.rows(request_id) == [(watched.key.key_id, action, document, "ok")]

    @pytest.mark.requirement("7.5.c")
    @pytest.mark.parametrize(
        ("tool", "arguments", "outcome"),
        [
            ("delete_document", {"path": "audit/missing"}, "NOT_FOUND"),
            ("upload_document", {"path": "../up", "content": CONTENT}, "INVALID_ARGUMENT"),
            ("update_document", {"path": ["audit"]}, "INVALID_ARGUMENT"),
            ("ingest_document", {"source": "/etc/shadow"}, "FORBIDDEN"),
        ],
    )
    def test_an_attempt_that_fails_is_in_the_log(
        self, watched: Watched, tool: str, arguments: dict[str, Any], outcome: str
    ) -> None:
        request_id = f"failed-{tool}"
        assert watched.mcp().outcome(tool, arguments, x_request_id=request_id)["isError"] is True
        line = watched.change(request_id)
        assert (line["tool"], line["outcome"]) == (tool, outcome)
        assert line["key"] == watched.key.key_id
        assert watched.rows(request_id) == []

    @pytest.mark.requirement("7.5.c")
    def test_deletes_over_rest_and_the_capability_route_too(self, watched: Watched) -> None:
        headers = {**watched.key.headers, "x-request-id": "rest-delete"}
        watched.mcp().call("upload_document", path="audit/rest", content="x")
        watched.server.client.delete("/documents/audit/rest", headers=headers).raise_for_status()
        assert watched.change("rest-delete")["tool"] == "delete_document"
        assert watched.rows("rest-delete")[0][1:3] == ("delete", "audit/rest")
        by_url = Mcp(watched.server.client, f"/gpt-mcp/{watched.key.secret}/mcp")
        by_url.outcome(
            "upload_document", {"path": "audit/url", "content": "x"}, x_request_id="by-url"
        )
        assert watched.change("by-url")["key"] == watched.key.key_id

    def test_reads_are_not(self, watched: Watched) -> None:
        watched.mcp().outcome("list_documents", {}, x_request_id="a-read")
        assert not [line for line in watched.changes() if line["request"] == "a-read"]


class TestTheLog:
    @pytest.mark.requirement("7.5.a")
    def test_no_secret_and_no_content_is_in_any_line(self, watched: Watched) -> None:
        """After a session in which much went wrong, at the level that says the most."""
        client, secret = watched.server.client, watched.key.secret
        for path in PATHS:
            for version in (None, MODERN):
                mcp = watched.mcp(path, version)
                mcp.rpc("tools/list", accept=SSE)
                mcp.rpc("tools/call", {"name": "move_document", "arguments": {}})
                mcp.rpc("tools/call", {"name": "get_document", "arguments": {"path": 5}})
            watched.mcp(path).post(b"{" + CONTENT.encode())
        for headers in (
            {"x-api-key": secret + "x"},
            {"authorization": f"Basic {secret}"},
            {"authorization": f"Bearer {secret}", "host": "evil.example.org"},
            {"authorization": f"Bearer {secret}", "origin": "https://evil.example.org"},
        ):
            client.post("/mcp", headers=headers, content=b"{}")
        for url in (
            f"/gpt-mcp/{secret}/mcp",
            f"/gpt-mcp/{secret}x/mcp",
            f"/gpt-mcp/{secret}/nothing",
            f"/wrong-word/{secret}/mcp",
            f"/mcp?api_key={secret}",
            f"/{secret}",
        ):
            client.post(url, content=b"{}")
            client.get(url)
        ingest = {"source": f"{watched.host.url}?token={URL_SECRET}", "path": "audit/page"}
        assert watched.mcp().call("ingest_document", **ingest)["content_length"]
        watched.mcp().call("upload_document", path="audit/c", content=CONTENT)
        log = watched.server.log()
        assert "audit/c" in log
        for unsaid in (secret, URL_SECRET, CONTENT, "ornithorhynchus"):
            assert unsaid not in log

    def test_each_line_is_one_json_object(self, watched: Watched) -> None:
        for line in watched.lines():
            assert {"at", "level", "logger", "message"} <= line.keys()

    @pytest.mark.requirement("001/LG.1", "000/D3.05")
    def test_a_normal_session_and_a_restart_leave_no_warning(self, data: Path) -> None:
        server = Server(data)
        try:
            for number in range(2):
                server.start()
                for path in PATHS:
                    for version in (None, "2025-11-25", MODERN):
                        mcp = Mcp(server.client, path, version=version)
                        if version != MODERN:
                            mcp.result("initialize", {"protocolVersion": version})
                            mcp.note("notifications/initialized")
                        mcp.tools()
                        mcp.call("list_documents")
                        mcp.rpc("tools/call", {"name": "move_document"}, accept=BOTH)
                        server.client.get(path, headers={"accept": SSE})
                Mcp(server.client).call("upload_document", path=f"audit/{number}", content="x")
                server.stop()
        finally:
            server.client.close()
            server.stop()
        levels = [json.loads(line)["level"] for line in server.log().splitlines()]
        assert set(levels) == {"info"}
        assert "Traceback" not in server.log()
