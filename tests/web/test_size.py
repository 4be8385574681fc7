"""What is too large is refused, on every route, whether its length is told before or not."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.drivers.raw import exchange, raw_request
from tests.drivers.server import Server
from tests.drivers.urls import at, refusal


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    environment = {
        "ZIBALDONE_REQUEST_BODY_BYTES_MAX": "4000",
        "ZIBALDONE_DOCUMENT_BODY_BYTES_MAX": "1000",
        "ZIBALDONE_METADATA_BYTES_MAX": "100",
    }
    data = tmp_path_factory.mktemp("small") / "data"
    with Server(data, environment=environment) as server:
        server.create("target", "a" * 990)
        yield server


def test_a_body_of_known_length(small: Server) -> None:
    body = json.dumps({"path": "known", "content": "x" * 5000}).encode()
    answer = small.client.post("/documents", content=body)
    assert refusal(answer, 413, "PAYLOAD_TOO_LARGE") == {"bytes_max": 4000}
    refusal(small.client.get(at("known")), 404, "NOT_FOUND")


def test_a_body_that_is_announced_is_not_waited_for(small: Server) -> None:
    request = raw_request(b"/documents", b"Content-Length: 99999999", method=b"POST")
    exchange(small, request).refused(413, "PAYLOAD_TOO_LARGE")


def test_on_every_route(small: Server) -> None:
    for method, url in (
        ("POST", "/documents"),
        ("GET", "/documents"),
        ("PUT", "/documents/target"),
        ("DELETE", "/documents/target"),
        ("POST", "/batch-read"),
        ("POST", "/search"),
        ("GET", "/health"),
        ("POST", "/nowhere"),
    ):
        answer = small.client.request(method, url, content=b"x" * 4001)
        refusal(answer, 413, "PAYLOAD_TOO_LARGE")


def test_a_body_in_chunks_of_unknown_length(small: Server) -> None:
    def parts() -> Iterator[bytes]:
        yield b'{"path": "chunked", "content": "'
        for _ in range(50):
            yield b"x" * 100
        yield b'"}'

    answer = small.client.post("/documents", content=parts())
    assert refusal(answer, 413, "PAYLOAD_TOO_LARGE") == {"bytes_max": 4000}
    refusal(small.client.get(at("chunked")), 404, "NOT_FOUND")


def test_chunks_within_the_bound_are_one_body(small: Server) -> None:
    whole = json.dumps({"path": "in-parts", "content": "x" * 900}).encode()
    parts = (whole[at : at + 7] for at in range(0, len(whole), 7))
    assert small.client.post("/documents", content=parts).status_code == 201


def test_a_document_that_is_too_long(small: Server) -> None:
    client = small.client
    for answer in (
        client.post("/documents", json={"path": "long", "content": "x" * 1001}),
        client.post("/documents", content='{"path": "long", "content": "%s"}' % ("ü" * 501)),
        client.put(at("target"), json={"content": "x" * 1001}),
        client.post("/ingest", json={"path": "long", "text": "x" * 1001}),
    ):
        details = refusal(answer, 422, "INVALID_ARGUMENT")
        assert details == {"field": "content", "bytes_max": 1000}
    refusal(client.get(at("long")), 404, "NOT_FOUND")


def test_a_patch_that_makes_it_too_long(small: Server) -> None:
    for patch in (
        {"old_str": "a", "new_str": "aa", "replace_all": True},
        {"old_str": "a" * 990, "new_str": "ü" * 600},
    ):
        answer = small.client.patch(at("target"), json=patch)
        assert refusal(answer, 422, "INVALID_ARGUMENT")["bytes_max"] == 1000
    assert small.client.get(at("target")).json()["revision"] == 1


def test_metadata_that_grows_too_long(small: Server) -> None:
    client = small.client
    small.create("growing", metadata={"a": "x" * 60})
    answer = client.put(at("growing"), json={"metadata": {"b": "x" * 60}})
    assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "metadata"
    change = {"a": None, "b": "x" * 60}
    client.put(at("growing"), json={"metadata": change}).raise_for_status()


def test_the_default_is_ten_mebibytes(shared_server: Server) -> None:
    limit = 10 * 1024 * 1024
    given = {"path": "ten-mebibytes", "content": "0123456\n" * (limit // 8)}
    shared_server.client.post("/documents", json=given).raise_for_status()
    document = shared_server.client.get(at("ten-mebibytes")).json()
    assert document["content"] == given["content"]
    answer = shared_server.client.put(at("ten-mebibytes"), json={"content": given["content"] + "x"})
    assert refusal(answer, 422, "INVALID_ARGUMENT")["bytes_max"] == limit
    shared_server.client.delete(at("ten-mebibytes")).raise_for_status()
