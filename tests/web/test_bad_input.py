"""Whatever is sent: a 4xx that says what is wrong, nothing stored, never a 5xx."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.server import Server
from tests.drivers.urls import at, refusal


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
    ("metadata is deeper than its bound", {"metadata": {"k": nested(64)}}, "metadata"),
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
    def test_on_create(self, untouched: httpx.Client, change: dict[str, Any], field: str) -> None:
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
    def test_on_update(self, untouched: httpx.Client, change: dict[str, Any], field: str) -> None:
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
        "revision", [-1, 2**53, 10**30, 1.5, "one", "1.5", True, [1], {}], ids=repr
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

    @pytest.mark.parametrize("query", ["", "query=", "query=%20%09"])
    def test_a_wrong_search(self, untouched: httpx.Client, query: str) -> None:
        answer = untouched.get(f"/search?{query}")
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "query"

    def test_too_long_a_search(self, untouched: httpx.Client) -> None:
        answer = untouched.get("/search?query=" + "x" * 8193)
        assert refusal(answer, 422, "LIMIT_EXCEEDED")["field"] == "query"

    @pytest.mark.parametrize(
        "query",
        ['"', "*", "-", "-a", "NEAR(", "a AND", "title:", "(", "^", "{x} : y", "\x00", "😀", "'"],
    )
    def test_an_odd_search_is_only_an_odd_search(self, untouched: httpx.Client, query: str) -> None:
        answer = untouched.get("/search", params={"query": query})
        assert answer.status_code == 200, answer.text
