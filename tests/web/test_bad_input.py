"""Whatever is sent: a 4xx that says what is wrong, nothing stored, never a 5xx."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server import Server
from tests.web.urls import at, refusal

CODES = {"BAD_REQUEST", "INVALID_ARGUMENT", "NOT_FOUND", "METHOD_NOT_ALLOWED", "CONFLICT"}


def everything(client: httpx.Client) -> dict[str, Any]:
    """What is stored: ids and revisions, to see that a refused request left no trace."""
    page: dict[str, Any] = client.get("/documents", params={"limit": 100}).json()
    assert page["next_offset"] is None
    return page


@pytest.fixture(scope="module")
def target(shared_server: Server) -> Server:
    shared_server.create("target", "the text", title="Title", metadata={"k": 1})
    return shared_server


@pytest.fixture
def untouched(target: Server) -> Iterator[httpx.Client]:
    """A client whose requests must all leave the documents as they are."""
    before = everything(target.client)
    yield target.client
    assert everything(target.client) == before


LONG = "x" * 1025

BAD_IDS = {
    "empty": "",
    "blank": "   ",
    "slashes": "///",
    "dot": ".",
    "dots only": "./. /.",
    "parent": "..",
    "parent inside": "a/../b",
    "parent at the end": "a/..",
    "parent behind a blank": "/ ../a",
    "parent before a blank": "a/.. /",
    "parent behind a dot": "./ ../a",
    "parent behind a wide blank": "/\u3000../a",
    "nul": "a\x00b",
    "line end": "a\nb",
    "line end at the end": "a\n",
    "carriage return": "a\rb",
    "tab": "a\tb",
    "escape": "a\x1bb",
    "delete": "a\x7fb",
    "c1 control": "a\x85b",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "too long": LONG,
    "too long in bytes": "ü" * 513,
    "much too long": "x" * 1_000_000,
    "much too long padding": "./" * 500_000 + "a",
}


class TestIds:
    @pytest.mark.parametrize("name", BAD_IDS)
    def test_in_a_body(self, untouched: httpx.Client, name: str) -> None:
        document_id = BAD_IDS[name]
        for body in (
            {"path": document_id, "content": "x"},
            {"document_id": document_id, "content": "x", "upsert": True},
        ):
            answer = untouched.post("/documents", json=body)
            assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "path"
        if document_id:
            answer = untouched.post("/ingest", json={"path": document_id, "text": "x"})
            assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "path"

    @pytest.mark.parametrize("name", [name for name, bad in BAD_IDS.items() if len(bad) < 2000])
    @pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
    def test_in_a_url(self, untouched: httpx.Client, method: str, name: str) -> None:
        answer = untouched.request(method, at(BAD_IDS[name]), json=BODY_OF[method])
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "path"

    @pytest.mark.parametrize("bad", ["a\x00b", "a\nb", "\x7f", LONG, "x" * 5000])
    def test_in_a_prefix(self, untouched: httpx.Client, bad: str) -> None:
        for url, more in (("/documents", {}), ("/search", {"query": "x"})):
            answer = untouched.get(url, params={"prefix": bad, **more})
            assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "prefix"

    @pytest.mark.parametrize("bad", ["a\x00b", LONG])
    def test_in_a_parent(self, untouched: httpx.Client, bad: str) -> None:
        for answer in (
            untouched.post("/documents", json={"path": "a", "content": "", "parent_id": bad}),
            untouched.put(at("target"), json={"parent_id": bad}),
        ):
            assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "parent_id"


BODY_OF: dict[str, Any] = {
    "GET": None,
    "DELETE": None,
    "PUT": {"content": "x"},
    "PATCH": {"old_str": "a", "new_str": "b"},
}


MALFORMED_JSON = {
    "truncated": b'{"path": "a", "content": "x"',
    "truncated text": b'{"path": "a", "content": "x',
    "trailing comma": b'{"path": "a", "content": "x",}',
    "two values": b'{"path": "a", "content": "x"}{}',
    "single quotes": b"{'path': 'a', 'content': 'x'}",
    "comment": b'{"path": "a", "content": "x" /* why */}',
    "not a number": b'{"path": "a", "content": "x", "metadata": {"n": NaN}}',
    "infinity": b'{"path": "a", "content": "x", "metadata": {"n": Infinity}}',
    "number out of range": b'{"path": "a", "content": "x", "metadata": {"n": 1e400}}',
    "leading zero": b'{"path": "a", "content": "x", "metadata": {"n": 01}}',
    "nested": b'{"path": "a", "content": "x", "metadata": {"n": ' + b"[" * 100_000,
    "nested and closed": b'{"path": "a", "content": "x", "metadata": {"n": '
    + b"[" * 100_000
    + b"]" * 100_000
    + b"}}",
    "nested objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "lone surrogate": b'{"path": "a", "content": "\\ud800"}',
    "lone low surrogate": b'{"path": "a", "content": "\\udc00 x"}',
    "lone surrogate in a key": b'{"path": "a", "content": "x", "metadata": {"\\ud800": 1}}',
    "bad escape": b'{"path": "a", "content": "\\x41"}',
    "raw line end in a text": b'{"path": "a", "content": "x\ny"}',
    "raw nul": b'{"path": "a", "content": "x"}\x00',
    "invalid utf-8": b'{"path": "a", "content": "\xff"}',
    "overlong utf-8": b'{"path": "a", "content": "\xc0\xaf"}',
    "surrogate as utf-8": b'{"path": "a", "content": "\xed\xa0\x80"}',
    "truncated utf-8": b'{"path": "a", "content": "\xe2\x82"}',
    "latin-1": '{"path": "a", "content": "ü"}'.encode("latin-1"),
    "utf-16": '{"path": "a", "content": "x"}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"path": "a", "content": "x"}',
    "array": b'[{"path": "a", "content": "x"}]',
    "text": b'"path"',
    "number": b"1",
    "null": b"null",
    "form": b"path=a&content=x",
    "xml": b"<path>a</path>",
    "blanks": b"   ",
    "binary": bytes(range(256)),
}


class TestJson:
    @pytest.mark.parametrize("name", MALFORMED_JSON)
    @pytest.mark.parametrize(
        ("method", "url"),
        [("POST", "/documents"), ("PUT", "/documents/target"), ("POST", "/batch-read")],
    )
    def test_a_malformed_body(
        self, untouched: httpx.Client, method: str, url: str, name: str
    ) -> None:
        headers = {"Content-Type": "application/json"}
        answer = untouched.request(method, url, content=MALFORMED_JSON[name], headers=headers)
        assert refusal(answer, 400, "BAD_REQUEST")["field"] == "body"

    def test_of_two_equal_names_the_last_counts(self, target: Server) -> None:
        """As JSON readers do; what is stored and what is checked is the same value."""
        body = b'{"path": "../evil", "path": "duplicate", "content": "a", "content": "b"}'
        answer = target.client.post("/documents", content=body)
        assert answer.json()["id"] == "duplicate"
        assert target.client.get(at("duplicate")).json()["content"] == "b"
        body = b'{"path": "good", "path": "../evil", "content": "a"}'
        refusal(target.client.post("/documents", content=body), 422, "INVALID_ARGUMENT")


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


WRONG_FIELDS: list[tuple[str, dict[str, Any], str]] = [
    ("no path", {"path": None}, "path"),
    ("path is a number", {"path": 1}, "path"),
    ("path is a list", {"path": ["a"]}, "path"),
    ("no content", {"content": None}, "content"),
    ("content is a number", {"content": 1}, "content"),
    ("content is an object", {"content": {"text": "x"}}, "content"),
    ("content has a nul", {"content": "a\x00b"}, "content"),
    ("title is a number", {"title": 5}, "title"),
    ("title is null", {"title": None}, "title"),
    ("title is too long", {"title": "x" * 1001}, "title"),
    ("title has a nul", {"title": "a\x00b"}, "title"),
    ("tags are a text", {"tags": "a,b"}, "tags"),
    ("tags are numbers", {"tags": [1]}, "tags.0"),
    ("tags are nulls", {"tags": ["a", None]}, "tags.1"),
    ("too many tags", {"tags": [str(number) for number in range(65)]}, "tags"),
    ("a tag is too long", {"tags": ["x" * 201]}, "tags"),
    ("a tag has a nul", {"tags": ["\x00"]}, "tags"),
    ("metadata is a list", {"metadata": []}, "metadata"),
    ("metadata is a text", {"metadata": "{}"}, "metadata"),
    ("metadata is too long", {"metadata": {"k": "x" * 65_536}}, "metadata"),
    ("metadata is too deep", {"metadata": {"k": nested(500)}}, "metadata"),
    ("metadata has a nul", {"metadata": {"k": ["a", {"b": "\x00"}]}}, "metadata"),
    ("metadata has a nul in a key", {"metadata": {"k": {"\x00": 1}}}, "metadata"),
    ("mime without a slash", {"mime": "markdown"}, "mime"),
    ("mime with parameters", {"mime": "text/html; charset=utf-8"}, "mime"),
    ("mime with a line end", {"mime": "text/html\n"}, "mime"),
    ("mime is empty", {"mime": ""}, "mime"),
    ("mime is too long", {"mime": "text/" + "x" * 128}, "mime"),
    ("parent is a number", {"parent_id": 1}, "parent_id"),
    ("upsert is a text", {"upsert": "true"}, "upsert"),
    ("upsert is a number", {"upsert": 1}, "upsert"),
    ("an unknown field", {"contents": "x"}, "contents"),
    ("an unknown field of odd form", {"a b\n<c>": 1}, "a b\n<c>"),
    ("a field of the model", {"model_config": {}}, "model_config"),
    ("a field the server sets", {"revision": 7}, "revision"),
]


class TestFields:
    @pytest.mark.parametrize(
        ("change", "field"), [row[1:] for row in WRONG_FIELDS], ids=[row[0] for row in WRONG_FIELDS]
    )
    def test_on_create(
        self, untouched: httpx.Client, change: dict[str, Any], field: str
    ) -> None:
        body = {"path": "wrong/field", "content": "x", **change}
        answer = untouched.post("/documents", content=json.dumps(body))
        details = refusal(answer, 422, "INVALID_ARGUMENT")
        assert details["field"] == field

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            row[1:]
            for row in WRONG_FIELDS
            # null leaves a field as it is; path and upsert are not fields of an update
            if None not in row[1].values() and not row[1].keys() & {"path", "upsert"}
        ],
    )
    def test_on_update(
        self, untouched: httpx.Client, change: dict[str, Any], field: str
    ) -> None:
        answer = untouched.put(at("target"), content=json.dumps(change))
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == field

    @pytest.mark.parametrize("field", ["path", "content"])
    def test_what_is_needed_is_named(self, untouched: httpx.Client, field: str) -> None:
        body = {"path": "a", "content": "x"}
        del body[field]
        answer = untouched.post("/documents", json=body)
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == field

    def test_all_problems_are_named_at_once(self, untouched: httpx.Client) -> None:
        answer = untouched.post("/documents", json={"title": 1, "tags": {}, "more": 1})
        problems = refusal(answer, 422, "INVALID_ARGUMENT")["problems"]
        assert {one["field"] for one in problems} == {"path", "content", "title", "tags", "more"}
        assert all(one["why"] for one in problems)

    def test_no_body_at_all(self, untouched: httpx.Client) -> None:
        for method, url in (("POST", "/documents"), ("PUT", "/documents/target")):
            refusal(untouched.request(method, url), 422, "INVALID_ARGUMENT")

    @pytest.mark.parametrize(
        "revision", [-1, 2**53, 10**30, 1.0, 1.5, "1", True, [1], {}], ids=repr
    )
    def test_a_wrong_revision(self, untouched: httpx.Client, revision: object) -> None:
        for answer in (
            untouched.put(at("target"), json={"title": "x", "last_known_revision": revision}),
            untouched.patch(
                at("target"),
                json={"old_str": "text", "new_str": "x", "last_known_revision": revision},
            ),
            untouched.post(
                at("target", "/revisions/1/restore"), json={"last_known_revision": revision}
            ),
        ):
            assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "last_known_revision"

    @pytest.mark.parametrize("revision", ["-1", "one", "1.5", "", "0x1", str(2**53), "9" * 5000])
    def test_a_wrong_revision_in_a_query_string(
        self, untouched: httpx.Client, revision: str
    ) -> None:
        answer = untouched.delete(at("target"), params={"last_known_revision": revision})
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "last_known_revision"

    def test_whole_numbers_beyond_64_bits_stay_numbers(self, target: Server) -> None:
        """JSON has one kind of number; beyond 64 bits it is read as most readers do."""
        body = '{"path": "big", "content": "", "metadata": {"a": 18446744073709551615, "b": 1%s}}'
        target.client.post("/documents", content=body % ("0" * 30)).raise_for_status()
        metadata = target.client.get(at("big")).json()["metadata"]
        assert metadata == {"a": 2**64 - 1, "b": 1e30}

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "source"),
            ({"source": "/etc/passwd", "text": "x"}, "source"),
            ({"text": "x"}, "path"),
            ({"source": "gopher://x"}, "source"),
            ({"source": "a\x00b"}, "source"),
        ],
    )
    def test_on_ingest(self, untouched: httpx.Client, body: dict[str, str], field: str) -> None:
        answer = untouched.post("/ingest", json=body)
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == field

    @pytest.mark.parametrize(
        "source", ["/etc/passwd", "file:///etc/passwd", "http://127.0.0.1:1/", "http://[::1]/"]
    )
    def test_ingest_reads_nothing_that_was_not_allowed(
        self, untouched: httpx.Client, source: str
    ) -> None:
        refusal(untouched.post("/ingest", json={"source": source}), 403, "FORBIDDEN")


class TestQueryStrings:
    @pytest.mark.parametrize(
        "query",
        ["prefix=%ff", "prefix=%ED%A0%80", "%ff=1", "prefix=%C0%AF", "&".join(["a=1"] * 51)],
    )
    def test_not_readable(self, untouched: httpx.Client, query: str) -> None:
        answer = untouched.get(f"/documents?{query}")
        assert refusal(answer, 400, "BAD_REQUEST")["field"] == "query"

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ("limit=x", "limit"),
            ("limit=", "limit"),
            ("limit=1.5", "limit"),
            ("limit=1e1", "limit"),
            ("limit=0x10", "limit"),
            ("limit=true", "limit"),
            ("offset=-1", "offset"),
            ("offset=NaN", "offset"),
            ("offset=" + "9" * 400, "offset"),
            ("offset=" + "9" * 5000, "offset"),
            ("cursor=", "cursor"),
            ("cursor=x", "cursor"),
            ("cursor=%00", "cursor"),
            ("cursor=%C3%BC", "cursor"),
            ("cursor=e30", "cursor"),
            ("cursor=WyIiLDFd", "cursor"),
            ("cursor=WyIiXQ", "cursor"),
            ("cursor=" + "W1tb" * 2_000, "cursor"),
            ("cursor=WyIiLCJhIl0&offset=1", "cursor"),
            ("count=perhaps", "count"),
            ("unknown=1", "unknown"),
        ],
    )
    def test_a_wrong_value(self, untouched: httpx.Client, query: str, field: str) -> None:
        answer = untouched.get(f"/documents?{query}")
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == field

    def test_a_name_given_twice(self, untouched: httpx.Client) -> None:
        answer = untouched.get("/documents?limit=1&limit=2")
        assert refusal(answer, 400, "BAD_REQUEST")["field"] == "limit"

    @pytest.mark.parametrize("query", ["", "query=", "query=%20%09", "query=" + "x" * 8193])
    def test_a_wrong_search(self, untouched: httpx.Client, query: str) -> None:
        answer = untouched.get(f"/search?{query}")
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "query"

    @pytest.mark.parametrize(
        "query",
        ['"', "*", "-", "-a", "NEAR(", "a AND", "title:", "(", "^", "{x} : y", "\x00", "😀", "'"],
    )
    def test_an_odd_search_is_only_an_odd_search(
        self, untouched: httpx.Client, query: str
    ) -> None:
        answer = untouched.get("/search", params={"query": query})
        assert answer.status_code == 200, answer.text


@dataclass(frozen=True, slots=True)
class RawAnswer:
    status: int
    body: bytes

    def refused(self, status: int, code: str) -> None:
        assert self.status == status, self.body
        assert json.loads(self.body)["code"] == code


def exchange(server: Server, request: bytes, seconds_max: float = 10) -> RawAnswer:
    """Send these bytes, as they are, on a connection of their own."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds_max) as connection:
        connection.sendall(request)
        answer = httpx_free_response(connection)
    return answer


def httpx_free_response(connection: socket.socket) -> RawAnswer:
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(65536)
        if not part:
            return RawAnswer(0, received)
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in lines[1:])
    }
    length = int(headers.get(b"content-length", b"-1"))
    while length < 0 or len(body) < length:
        part = connection.recv(65536)
        if not part:
            break
        body += part
    return RawAnswer(int(lines[0].split()[1]), body)


def raw_request(target: bytes, *headers: bytes, method: bytes = b"GET", body: bytes = b"") -> bytes:
    lines = [method + b" " + target + b" HTTP/1.1", b"Host: localhost", b"Connection: close"]
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*lines, *headers, b"", body])


class TestRawUrls:
    @pytest.mark.parametrize("url", [b"%ff", b"a/%80", b"%ED%A0%80", b"%C0%AE%C0%AE/etc"])
    @pytest.mark.parametrize("method", [b"GET", b"PUT", b"DELETE"])
    def test_an_id_that_is_not_utf_8(
        self, target: Server, untouched: httpx.Client, method: bytes, url: bytes
    ) -> None:
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
            (b"/documents/" + b"x" * 60_000, 422, "INVALID_ARGUMENT"),
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


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    environment = {
        "COMMONPLACE_REQUEST_BODY_BYTES_MAX": "4000",
        "COMMONPLACE_DOCUMENT_BODY_BYTES_MAX": "1000",
        "COMMONPLACE_METADATA_BYTES_MAX": "100",
    }
    data = tmp_path_factory.mktemp("small") / "data"
    with Server(data, environment=environment) as server:
        server.create("target", "a" * 990)
        yield server


class TestSize:
    def test_a_body_of_known_length(self, small: Server) -> None:
        body = json.dumps({"path": "known", "content": "x" * 5000}).encode()
        answer = small.client.post("/documents", content=body)
        assert refusal(answer, 413, "PAYLOAD_TOO_LARGE") == {"bytes_max": 4000}
        refusal(small.client.get(at("known")), 404, "NOT_FOUND")

    def test_a_body_that_is_announced_is_not_waited_for(self, small: Server) -> None:
        request = raw_request(b"/documents", b"Content-Length: 99999999", method=b"POST")
        exchange(small, request).refused(413, "PAYLOAD_TOO_LARGE")

    def test_on_every_route(self, small: Server) -> None:
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

    def test_a_body_in_chunks_of_unknown_length(self, small: Server) -> None:
        def parts() -> Iterator[bytes]:
            yield b'{"path": "chunked", "content": "'
            for _ in range(50):
                yield b"x" * 100
            yield b'"}'

        answer = small.client.post("/documents", content=parts())
        assert refusal(answer, 413, "PAYLOAD_TOO_LARGE") == {"bytes_max": 4000}
        refusal(small.client.get(at("chunked")), 404, "NOT_FOUND")

    def test_chunks_within_the_bound_are_one_body(self, small: Server) -> None:
        whole = json.dumps({"path": "in-parts", "content": "x" * 900}).encode()
        parts = (whole[at : at + 7] for at in range(0, len(whole), 7))
        assert small.client.post("/documents", content=parts).status_code == 201

    def test_a_document_that_is_too_long(self, small: Server) -> None:
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

    def test_a_patch_that_makes_it_too_long(self, small: Server) -> None:
        for given in (
            {"old_str": "a", "new_str": "aa", "replace_all": True},
            {"old_str": "a" * 990, "new_str": "ü" * 600},
        ):
            answer = small.client.patch(at("target"), json=given)
            assert refusal(answer, 422, "INVALID_ARGUMENT")["bytes_max"] == 1000
        assert small.client.get(at("target")).json()["revision"] == 1

    def test_metadata_that_grows_too_long(self, small: Server) -> None:
        client = small.client
        small.create("growing", metadata={"a": "x" * 60})
        answer = client.put(at("growing"), json={"metadata": {"b": "x" * 60}})
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "metadata"
        change = {"a": None, "b": "x" * 60}
        client.put(at("growing"), json={"metadata": change}).raise_for_status()

    def test_the_default_is_ten_mebibytes(self, target: Server) -> None:
        limit = 10 * 1024 * 1024
        given = {"path": "ten-mebibytes", "content": "0123456\n" * (limit // 8)}
        target.client.post("/documents", json=given).raise_for_status()
        document = target.client.get(at("ten-mebibytes")).json()
        assert document["content"] == given["content"]
        answer = target.client.put(at("ten-mebibytes"), json={"content": given["content"] + "x"})
        assert refusal(answer, 422, "INVALID_ARGUMENT")["bytes_max"] == limit
        target.client.delete(at("ten-mebibytes")).raise_for_status()


TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
FIELD = st.sampled_from(
    "path document_id content title tags metadata mime parent_id upsert last_known_revision "
    "old_str new_str replace_all replacements paths full source text query limit prefix".split()
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
    @settings(
        max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(
        method=METHOD, url=URL, query=QUERY, body=st.one_of(JSON_BODY, st.binary(max_size=60))
    )
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

    @settings(
        max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(junk=st.binary(max_size=200))
    def test_bytes_that_are_no_request_are_refused_and_the_server_lives(
        self, target: Server, junk: bytes
    ) -> None:
        with socket.create_connection(("127.0.0.1", target.port), timeout=10) as connection:
            connection.sendall(junk + b"\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            answer = httpx_free_response(connection)
        assert answer.status < 500
        assert target.client.get("/health").json()["status"] == "healthy"

    def test_no_request_left_a_fault_in_the_log(self, target: Server) -> None:
        assert '"level":"error"' not in target.log()
        assert "Traceback" not in target.log()
