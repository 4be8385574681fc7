"""Answers that are large for nothing: many long documents at once, ids that come back.

A request of a hundred bytes can ask for an answer of a hundred megabytes.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.drivers.mcp import JSON, SSE
from tests.drivers.server import Server
from tests.hostile.peers import Bystander, call, resident_mib
from zibaldone.limits import ANSWER_BYTES_MAX, MESSAGE_ID_CHARS_MAX

AT_ONCE = 24
STRUCTURED = {"mcp-protocol-version": "2025-06-18", "content-type": "application/json"}
CONTROLS = "\x01" * 4_000_000
"""Six bytes each in JSON, seven in JSON within JSON."""
WIDE = "a" * 9_000_000 + "\U0001f600"
"""One character makes all of them take four bytes in memory."""


def peak_mib(server: Server) -> float:
    """The most memory that the process has had."""
    if sys.platform != "linux":
        return resident_mib(server)
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


@pytest.fixture
def full_server(server: Server) -> Server:
    for path, content in (("controls", CONTROLS), ("wide", WIDE)):
        given = {"path": path, "content": content}
        assert server.client.post("/documents", json=given).status_code == 201
    return server


def many(server: Server, send: Callable[[httpx.Client], int]) -> list[int]:
    """As many at once; what each was answered, 0 where the answer was dropped."""
    statuses: list[int] = []

    def run() -> None:
        with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
            try:
                statuses.append(send(client))
            except httpx.HTTPError:
                statuses.append(0)

    threads = [threading.Thread(target=run) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def posted(tool: str, accept: str = JSON, **arguments: object) -> Callable[[httpx.Client], int]:
    headers = {**STRUCTURED, "accept": accept}
    return lambda client: (
        client.post("/mcp-all", content=call(tool, arguments), headers=headers).status_code
    )


_READS: dict[str, Callable[[httpx.Client], int]] = {
    "a whole document": posted("get_document_for_rewrite", path="controls"),
    "as an event": posted("get_document_for_rewrite", SSE, path="wide"),
    "several documents": posted("batch_read", paths=["controls", "wide"], full=True),
    "a revision": posted("document_revision", path="wide", revision=1),
    "a part of a long one": posted("get_document", path="wide", from_char=1, related=False),
    "documents by id": posted("rag.get_docs", doc_ids=["wide"]),
    "without a body": lambda client: client.head("/documents/controls").status_code,
}


@pytest.mark.parametrize("name", _READS)
def test_long_documents_read_at_once_stop_nobody(full_server: Server, name: str) -> None:
    before_mib = peak_mib(full_server)
    with Bystander(full_server) as bystander:
        statuses = many(full_server, _READS[name])
        bystander.wait_for_a_round()
    assert 200 in statuses
    assert set(statuses) <= {0, 200, 504}
    assert peak_mib(full_server) - before_mib < 500


def test_long_differences_at_once_stop_nobody(server: Server) -> None:
    """A million control characters are eleven megabytes of an answer."""
    for content in ("\x01" * 900_000, "\x02" * 900_000):
        given = {"path": "controls", "content": content, "upsert": True}
        assert server.client.post("/documents", json=given).status_code in (200, 201)
    before_mib = peak_mib(server)
    with Bystander(server) as bystander:
        statuses = many(server, posted("document_diff", path="controls", older=1, newer=2))
        bystander.wait_for_a_round()
    assert 200 in statuses
    assert set(statuses) <= {0, 200, 504}
    assert peak_mib(server) - before_mib < 250


def test_small_changes_of_a_long_document_at_once_stop_nobody(full_server: Server) -> None:
    before_mib = peak_mib(full_server)
    given = {"old_str": "nowhere in it", "new_str": "x"}
    with Bystander(full_server) as bystander:
        statuses = many(
            full_server,
            lambda client: client.patch("/documents/wide", json=given).status_code,
        )
        bystander.wait_for_a_round()
    assert 409 in statuses
    assert set(statuses) <= {409, 504}
    assert peak_mib(full_server) - before_mib < 500


def test_an_answer_that_could_never_be_sent_is_refused(server: Server) -> None:
    """Ten megabytes of control characters are 130 of an answer over MCP."""
    half = {"path": "controls", "content": "\x01" * 5_200_000}
    assert server.client.post("/documents", json=half).status_code == 201
    doubled = {"old_str": "\x01", "new_str": "\x01\x01", "replace_all": True}
    assert server.client.patch("/documents/controls", json=doubled).status_code == 200
    body = call("get_document_for_rewrite", {"path": "controls"})
    answer = server.client.post("/mcp", content=body, headers=STRUCTURED).json()["result"]
    assert answer["isError"]
    assert answer["structuredContent"]["code"] == "RESPONSE_TOO_LARGE"
    assert answer["structuredContent"]["details"] == {"bytes_max": ANSWER_BYTES_MAX}
    whole = server.client.get("/documents/controls")
    assert whole.json()["content"] == "\x01" * 10_400_000


_LISTS = b"[[" + b"[]," * 1_000_000 + b'[]],"x"]'
_LONG_ID = "\x85" * 2_000_000


def test_a_cursor_that_holds_a_million_lists_is_not_decoded(shared_server: Server) -> None:
    cursor = base64.urlsafe_b64encode(_LISTS).decode()
    before_mib = peak_mib(shared_server)
    with Bystander(shared_server) as bystander:
        answer = shared_server.client.post(
            "/mcp", content=call("list_documents", {"cursor": cursor}), headers=STRUCTURED
        )
        bystander.wait_for_a_round()
    told = answer.json()["result"]["structuredContent"]
    assert told["code"] == "INVALID_ARGUMENT"
    assert "not one of ours" in told["message"]
    assert peak_mib(shared_server) - before_mib < 60


def test_a_source_of_megabytes_is_refused(shared_server: Server) -> None:
    with Bystander(shared_server) as bystander:
        answer = shared_server.client.post("/ingest", json={"source": "x" * 20_000_000})
        bystander.wait_for_a_round()
    assert answer.status_code == 422
    assert answer.json()["details"]["field"] == "source"


@pytest.mark.parametrize("accept", [JSON, SSE])
@pytest.mark.parametrize(
    "message",
    [
        {"id": _LONG_ID, "method": "ping"},
        {"id": _LONG_ID, "method": "nonsense"},
        {"id": _LONG_ID, "method": 1},
        {"id": 1, "method": "ping", "params": {"x": _LONG_ID}},
        {
            "id": 1,
            "method": "prompts/get",
            "params": {"name": "tidy_folder", "arguments": {"prefix": _LONG_ID}},
        },
    ],
    ids=["id", "unknown", "broken", "parameters", "prompt"],
)
def test_what_a_message_brings_along_does_not_come_back(
    shared_server: Server, accept: str, message: dict[str, object]
) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
    with Bystander(shared_server) as bystander:
        answer = shared_server.client.post(
            "/mcp", content=body, headers={"content-type": JSON, "accept": accept}
        )
        bystander.wait_for_a_round()
    assert b'"error"' in answer.content
    assert len(answer.content) < 1_000


def test_an_id_of_any_length_that_makes_sense_comes_back(shared_server: Server) -> None:
    for id_ in ("x" * MESSAGE_ID_CHARS_MAX, 2**53 - 1, "", -1):
        message = {"jsonrpc": "2.0", "id": id_, "method": "ping"}
        assert shared_server.client.post("/mcp", json=message).json()["id"] == id_


def test_a_progress_token_of_megabytes_is_left_out(shared_server: Server) -> None:
    params = {
        "name": "ingest_document",
        "arguments": {"source": "/nowhere"},
        "_meta": {"progressToken": _LONG_ID},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = shared_server.client.post("/mcp-all", json=message, headers={"accept": SSE})
    assert answer.status_code == 200
    assert len(answer.content) < 1_000
