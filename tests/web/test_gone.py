"""A client that leaves: what it wanted to read is not looked for any more, what it wrote is."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator

import pytest

from tests.drivers.server import Server
from tests.drivers.slow_host import SlowHost
from tests.hostile.peers import call, post_head

WAIT_SECONDS_MAX = 20


@pytest.fixture(scope="module")
def host() -> Iterator[SlowHost]:
    with SlowHost() as running:
        yield running


@pytest.fixture(scope="module")
def silent() -> Iterator[socket.socket]:
    """A server of embeddings that takes questions and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield listening


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, host: SlowHost, silent: socket.socket
) -> Iterator[Server]:
    environment = {
        "ZIBALDONE_INGEST_HOSTS": f"127.0.0.1:{host.port}",
        "ZIBALDONE_EMBEDDER": "remote",
        "ZIBALDONE_EMBEDDING_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
        "ZIBALDONE_EMBEDDING_MODEL": "silent",
        "ZIBALDONE_EMBEDDING_DIMENSIONS": "8",
        "NO_PROXY": "*",
    }
    data = tmp_path_factory.mktemp("gone") / "data"
    with Server(data, environment=environment) as running:
        yield running


def was_cancelled(server: Server, tool: str) -> float:
    pattern = rf'^zibaldone_tool_calls_total\{{outcome="CANCELLED",tool="{tool}"\}} (\S+)$'
    found = re.search(pattern, server.client.get("/metrics").text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def asked(server: Server, path: str, body: bytes) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", server.port))
    peer.sendall(post_head(path, len(body), "accept: application/json") + body)
    return peer


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/search", json.dumps({"query": "what nobody waits for"}).encode()),
        ("/mcp", call("search_knowledge", {"query": "what nobody waits for"})),
    ],
    ids=["rest", "mcp"],
)
def test_a_read_ends(server: Server, silent: socket.socket, path: str, body: bytes) -> None:
    before = was_cancelled(server, "search_knowledge")
    silent.settimeout(WAIT_SECONDS_MAX)
    with asked(server, path, body):
        embedding, _ = silent.accept()  # the search is under way
    until_s = time.monotonic() + WAIT_SECONDS_MAX
    while was_cancelled(server, "search_knowledge") == before:
        assert time.monotonic() < until_s
        time.sleep(0.05)
    embedding.close()
    assert "Traceback" not in server.log()


@pytest.mark.parametrize(
    ("path", "is_batch"), [("/ingest", False), ("/mcp", False), ("/mcp", True)]
)
def test_a_write_goes_on(server: Server, host: SlowHost, path: str, is_batch: bool) -> None:
    host.rearm()
    document = f"left{path}/{is_batch}"
    arguments = {"source": host.url, "path": document}
    body = json.dumps(arguments).encode() if path != "/mcp" else call("ingest_document", arguments)
    body = b"[%s]" % body if is_batch else body
    with asked(server, path, body):
        assert host.asked.wait(WAIT_SECONDS_MAX)
    time.sleep(0.2)  # the server notices that the client is gone
    assert not host.abandoned.is_set()
    host.release.set()
    until_s = time.monotonic() + WAIT_SECONDS_MAX
    while server.client.get(f"/documents/{document}").status_code != 200:
        assert time.monotonic() < until_s
        time.sleep(0.05)
