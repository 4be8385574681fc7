"""Requests that no proper client sends, and any request at all: answered, never with a fault."""

from __future__ import annotations

import json
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drivers.catalogues import OFFERED
from tests.drivers.raw import exchange, raw_request, received
from tests.drivers.server import Server


@pytest.fixture(scope="module")
def target(shared_server: Server) -> Server:
    shared_server.create("target", "the text")
    return shared_server


class TestRawUrls:
    @pytest.mark.parametrize("url", [b"%ff", b"a/%80", b"%ED%A0%80", b"%C0%AE%C0%AE/etc"])
    @pytest.mark.parametrize("method", [b"GET", b"PUT", b"DELETE"])
    def test_an_id_that_is_not_utf_8(self, target: Server, method: bytes, url: bytes) -> None:
        body = b'{"content": "x"}' if method == b"PUT" else b""
        request = raw_request(b"/documents/" + url, method=method, body=body)
        exchange(target, request).refused(400, "BAD_REQUEST")

    @pytest.mark.parametrize(
        ("url", "status", "code"),
        [
            (b"/documents/", 422, "INVALID_ARGUMENT"),
            (b"/documents//", 422, "INVALID_ARGUMENT"),
            (b"/documents/..", 422, "INVALID_ARGUMENT"),
            (b"/documents/a/../b", 422, "INVALID_ARGUMENT"),
            (b"/documents/%2e%2e/b", 422, "INVALID_ARGUMENT"),
            (b"/documents/..%2Fb", 422, "INVALID_ARGUMENT"),
            (b"/documents/a%00b", 422, "INVALID_ARGUMENT"),
            (b"/documents/a%0Ab", 422, "INVALID_ARGUMENT"),
            (b"/documents%0A", 404, "NOT_FOUND"),
            (b"/health%0A", 404, "NOT_FOUND"),
            (b"/documents/%", 404, "NOT_FOUND"),
            (b"/documents/%zz", 404, "NOT_FOUND"),
            (b"/documents/" + b"x" * 30_000, 422, "INVALID_ARGUMENT"),
            (b"/documents/" + b"x" * 60_000, 414, "URL_TOO_LONG"),
            (b"/documents//revisions", 422, "INVALID_ARGUMENT"),
            (b"/documents/revisions/1", 404, "NOT_FOUND"),
        ],
    )
    def test_an_odd_url(self, target: Server, url: bytes, status: int, code: str) -> None:
        exchange(target, raw_request(url)).refused(status, code)

    def test_no_host_at_all_is_http_1_0(self, target: Server) -> None:
        assert exchange(target, b"GET /health HTTP/1.0\r\n\r\n").status == 200

    def test_an_upgrade_to_something_else_is_ignored_or_refused(self, target: Server) -> None:
        request = raw_request(
            b"/documents",
            b"Upgrade: websocket",
            b"Sec-WebSocket-Version: 13",
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ).replace(b"Connection: close", b"Connection: Upgrade")
        assert exchange(target, request).status < 500


TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
FIELD = st.sampled_from(
    sorted({name for tool in OFFERED.values() for name in tool.arguments.model_fields})
)
JSON_BODY = st.dictionaries(FIELD | TEXT, JSON_VALUE, max_size=6).map(
    lambda value: json.dumps(value).encode("utf-8", "surrogatepass")
)
SEGMENT = st.sampled_from(
    [b"documents", b"a", b"..", b".", b"", b"revisions", b"1", b"diff", b"restore", b"move"]
) | st.binary(max_size=8).map(lambda raw: b"".join(b"%%%02X" % byte for byte in raw))
URL = st.one_of(
    st.lists(SEGMENT, max_size=5).map(lambda parts: b"/documents/" + b"/".join(parts)),
    st.lists(SEGMENT, max_size=3).map(lambda parts: b"/" + b"/".join(parts)),
    st.sampled_from([b"/documents", b"/batch-read", b"/search", b"/ingest"]),
)
QUERY = st.lists(
    st.tuples(
        st.sampled_from(
            [b"limit", b"offset", b"cursor", b"prefix", b"view", b"query", b"older", b"from_line"]
        ),
        st.sampled_from([b"0", b"1", b"-1", b"x", b"%00", b"%ff", b"9" * 30, b""])
        | st.binary(max_size=6).map(lambda raw: b"".join(b"%%%02x" % byte for byte in raw)),
    ),
    max_size=3,
).map(lambda pairs: b"?" + b"&".join(b"=".join(pair) for pair in pairs) if pairs else b"")
METHOD = st.sampled_from([b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD", b"BREW"])


class TestAnythingAtAll:
    @settings(max_examples=400)
    @given(method=METHOD, url=URL, query=QUERY, body=st.one_of(JSON_BODY, st.binary(max_size=60)))
    def test_any_request_is_answered_without_a_fault(
        self, target: Server, method: bytes, url: bytes, query: bytes, body: bytes
    ) -> None:
        answer = exchange(target, raw_request(url + query, method=method, body=body))
        assert 200 <= answer.status < 500 or answer.status == 501, answer
        if answer.status >= 400 and answer.body and method != b"HEAD":
            try:
                error = json.loads(answer.body)
            except ValueError:
                # A method that HTTP does not know never gets past the parser.
                assert (method, answer.status) == (b"BREW", 400)
            else:
                assert set(error) == {"code", "message", "details", "request_id"}

    @settings(max_examples=150)
    @given(junk=st.binary(max_size=200))
    def test_bytes_that_are_no_request_are_refused_and_the_server_lives(
        self, target: Server, junk: bytes
    ) -> None:
        with socket.create_connection(("127.0.0.1", target.port), timeout=10) as connection:
            connection.sendall(junk + b"\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            answer = received(connection)
        assert answer.status < 500
        assert target.client.get("/health").json()["status"] == "healthy"

    def test_no_request_left_a_fault_in_the_log(self, target: Server) -> None:
        assert '"level":"error"' not in target.log()
        assert "Traceback" not in target.log()
