"""Reading: the whole, the short view, parts, and several at once."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx
import pytest

from tests.drivers.server import Server
from tests.drivers.urls import at, refusal
from zibaldone.limits import (
    BATCH_PATHS_MAX,
    READ_CHARS_MAX,
    READ_CUT_CHARS,
    READ_LINES_MAX,
    RELATED_MAX,
    RELATED_SNIPPET_CHARS_MAX,
)

DOCUMENT_KEYS = {
    "document_id",
    "parent_id",
    "title",
    "tags",
    "revision",
    "mime",
    "metadata",
    "created_at",
    "updated_at",
    "updated_by",
    "vector_status",
    "content",
    "content_length",
    "truncated",
}


@pytest.fixture
def client(shared_server: Server) -> httpx.Client:
    return shared_server.client


def preview(client: httpx.Client, document_id: str, **more: Any) -> dict[str, Any]:
    answer = client.get(at(document_id), params={"view": "preview", **more})
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


class TestWhole:
    @pytest.mark.requirement("7.1.d")
    def test_a_long_body_comes_back_equal(self, shared_server: Server) -> None:
        body = "".join(f"Line {number}: Ünïcode 😀 text.\n" for number in range(7000))
        assert len(body.encode()) > 200_000
        shared_server.create("read/long", body)
        document = shared_server.client.get(at("read/long")).json()
        assert document["content"] == body
        assert document["content_length"] == len(body)
        assert document["truncated"] is False
        assert set(document) == DOCUMENT_KEYS

    def test_view_full_is_the_default(self, shared_server: Server) -> None:
        shared_server.create("read/default", "x" * 1000)
        plain = shared_server.client.get(at("read/default")).json()
        assert shared_server.client.get(at("read/default"), params={"view": "full"}).json() == plain

    def test_view_full_is_never_cut_in_silence(self, shared_server: Server) -> None:
        shared_server.create("read/full-related", "x" * 1000)
        answer = shared_server.client.get(
            at("read/full-related"), params={"view": "full", "related": "true"}
        )
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "related"

    def test_an_unknown_view_is_refused(self, shared_server: Server) -> None:
        shared_server.create("read/view")
        answer = shared_server.client.get(at("read/view"), params={"view": "half"})
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "view"


class TestPreview:
    @pytest.mark.requirement("7.1.c")
    def test_found_has_the_whole_payload(self, shared_server: Server) -> None:
        shared_server.create("read/payload", "text", title="T", tags=["a"], metadata={"k": "v"})
        document = preview(shared_server.client, "read/payload")
        assert set(document) == DOCUMENT_KEYS | {"related"}
        assert document["content"] == "text"
        assert document["tags"] == ["a"]
        assert document["metadata"] == {"k": "v"}

    @pytest.mark.requirement("7.1.c")
    def test_missing_is_an_error_with_a_status(self, client: httpx.Client) -> None:
        for params in ({}, {"view": "preview"}, {"from_line": "1"}):
            answer = client.get(at("read/never-there"), params=params)
            assert refusal(answer, 404, "NOT_FOUND")["document_id"] == "read/never-there"

    @pytest.mark.parametrize("length", [0, 1, 499, 500, 501, 5000])
    def test_cut_at_500_characters(self, client: httpx.Client, length: int) -> None:
        body = "😀" * length
        given = {"path": "read/cut", "content": body, "upsert": True}
        client.post("/documents", json=given).raise_for_status()
        document = preview(client, "read/cut")
        assert document["content"] == body[:READ_CUT_CHARS]
        assert document["truncated"] is (length > READ_CUT_CHARS)
        assert document["content_length"] == length

    def test_related_are_few_short_and_others(self, shared_server: Server) -> None:
        for number in range(5):
            shared_server.create(
                f"related/other-{number}", f"Axolotl care, part {number}. " + "word " * 200
            )
        shared_server.create("related/self", "Something else.", title="Axolotl care")
        found = preview(shared_server.client, "related/self")["related"]
        assert len(found) == RELATED_MAX == 3
        for one in found:
            assert set(one) == {"document_id", "title", "snippet"}
            assert one["document_id"].startswith("related/other-")
            assert 0 < len(one["snippet"]) <= RELATED_SNIPPET_CHARS_MAX
        assert len({one["document_id"] for one in found}) == RELATED_MAX

    def test_a_long_document_has_related_ones(self, shared_server: Server) -> None:
        """Its own passages all have the words of the title, and come first."""
        section = "The kestrel engine manual on this part. " * 25
        long = "\n\n".join(f"## Part {number}\n\n{section}" for number in range(60))
        shared_server.create("related-long/manual", long, title="Kestrel engine manual")
        shared_server.create("related-long/copy", long, title="Kestrel engine manual, second print")
        for number in range(2):
            aside = "A page of misprints. Once more the torque of the kestrel is wrong. "
            shared_server.create(f"related-long/errata-{number}", aside, title="Errata")
        found = preview(shared_server.client, "related-long/manual")["related"]
        assert [one["document_id"].rpartition("/")[2] for one in found] == [
            "copy", "errata-0", "errata-1",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "title",
        [
            'Quokka "plan B" -island',
            "-quokka -island",
            '"the quokka on an island"',
            "title:quokka nowhere",
            'title:"quokka" nowhere',
            "Quokka* (Island)",
        ],
    )
    def test_a_title_is_words_not_a_query(self, client: httpx.Client, title: str) -> None:
        for path, body, name in (
            ("related-words/a", "none", title),
            ("related-words/b", "How a quokka is fed on its island", "Feeding"),
        ):
            given = {"path": path, "content": body, "title": name, "upsert": True}
            client.post("/documents", json=given).raise_for_status()
        found = preview(client, "related-words/a")["related"]
        assert [one["document_id"] for one in found] == ["related-words/b"]

    def test_deleted_documents_are_not_related(self, shared_server: Server) -> None:
        shared_server.create("related-gone/a", "Okapi habits")
        shared_server.create("related-gone/b", "none", title="Okapi habits")
        shared_server.client.delete(at("related-gone/a")).raise_for_status()
        assert preview(shared_server.client, "related-gone/b")["related"] == []

    def test_related_can_be_left_out(self, shared_server: Server) -> None:
        shared_server.create("read/unrelated")
        assert "related" not in preview(shared_server.client, "read/unrelated", related="false")

    @pytest.mark.parametrize(
        "title",
        ['"', "-", "*", "AND OR NOT", "title:", '-"x', "(((", "NEAR(a b)", "^a", "a:b", "''"],
    )
    def test_a_title_that_looks_like_a_query_is_harmless(
        self, client: httpx.Client, title: str
    ) -> None:
        client.post(
            "/documents",
            json={"path": "read/odd-title", "content": "x", "title": title, "upsert": True},
        ).raise_for_status()
        assert isinstance(preview(client, "read/odd-title")["related"], list)


class TestRange:
    BODY = "\n".join(f"line {number}" for number in range(1, 101))

    @pytest.fixture(autouse=True)
    def _document(self, client: httpx.Client) -> None:
        client.post("/documents", json={"path": "range/lines", "content": self.BODY})

    def part(self, client: httpx.Client, **params: int) -> dict[str, Any]:
        answer = client.get(at("range/lines"), params=params)
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        assert document["content_length"] == len(self.BODY)
        return document

    @pytest.mark.parametrize("count", [1, 7, 99, 100, 101, 2000])
    def test_lines_page_to_the_end(self, client: httpx.Client, count: int) -> None:
        parts: list[str] = []
        line: int | None = 1
        while line is not None:
            document = self.part(client, from_line=line, line_count=count)
            parts.append(document["content"])
            line = document.get("next_line")
            assert document["truncated"] is (line is not None)
        assert "\n".join(parts) == self.BODY
        assert len(parts) == -(-100 // count)

    @pytest.mark.parametrize("count", [1, 13, 890, 200_000])
    def test_characters_page_to_the_end(self, client: httpx.Client, count: int) -> None:
        parts: list[str] = []
        char: int | None = 0
        while char is not None:
            document = self.part(client, from_char=char, char_count=count)
            parts.append(document["content"])
            char = document.get("next_char")
            assert document["truncated"] is (char is not None)
        assert "".join(parts) == self.BODY

    def test_a_start_alone_reads_to_the_end(self, client: httpx.Client) -> None:
        assert self.part(client, from_line=99)["content"] == "line 99\nline 100"
        assert self.part(client, from_char=len(self.BODY) - 3)["content"] == "100"
        assert self.part(client, line_count=1)["content"] == "line 1"
        assert self.part(client, char_count=4)["content"] == "line"

    def test_beyond_the_end_is_empty(self, client: httpx.Client) -> None:
        for params in ({"from_line": 101}, {"from_char": len(self.BODY)}, {"from_line": 10**18}):
            document = self.part(client, **params)
            assert document["content"] == ""
            assert document["truncated"] is False

    @pytest.mark.parametrize(
        ("params", "field"),
        [
            ({"from_line": 0}, "from_line"),
            ({"from_line": -1}, "from_line"),
            ({"line_count": 0}, "line_count"),
            ({"line_count": READ_LINES_MAX + 1}, "line_count"),
            ({"from_char": -1}, "from_char"),
            ({"char_count": READ_CHARS_MAX + 1}, "char_count"),
            ({"from_line": 1, "from_char": 1}, "from_char"),
            ({"from_line": "one"}, "from_line"),
            ({"from_line": "9" * 5000}, "from_line"),
        ],
    )
    def test_a_wrong_range_is_refused(
        self, client: httpx.Client, params: dict[str, Any], field: str
    ) -> None:
        answer = client.get(at("range/lines"), params=params)
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == field

    def test_lines_that_are_too_long_are_paged_by_characters(self, shared_server: Server) -> None:
        shared_server.create("range/wide", "x" * 250_000)
        answer = shared_server.client.get(at("range/wide"), params={"from_line": 1})
        assert refusal(answer, 422, "RESPONSE_TOO_LARGE") == {"chars_max": READ_CHARS_MAX}
        first = shared_server.client.get(at("range/wide"), params={"from_char": 0}).json()
        assert first["next_char"] == READ_CHARS_MAX


class TestBatch:
    def batch(self, client: httpx.Client, **given: Any) -> dict[str, Any]:
        answer = client.post("/batch-read", json=given)
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()
        assert result["count"] == len(result["items"]) == len(given["paths"])
        return result

    @pytest.mark.requirement("7.1.e")
    def test_three_are_three_cut_by_default(self, shared_server: Server) -> None:
        paths = [f"batch/{number}" for number in range(3)]
        for path in paths:
            shared_server.create(path, path + "x" * 1000)
        result = self.batch(shared_server.client, paths=paths)
        assert [item["path"] for item in result["items"]] == paths
        for item in result["items"]:
            assert item["status"] == "ok"
            assert item["content"] == (item["path"] + "x" * 1000)[:READ_CUT_CHARS]
            assert item["truncated"] is True
            assert item["content_length"] == len(item["path"]) + 1000
        assert result["truncated"] is True

    def test_full(self, shared_server: Server) -> None:
        shared_server.create("batch-full/long", "y" * 2000)
        shared_server.create("batch-full/short", "z")
        result = self.batch(
            shared_server.client, paths=["batch-full/long", "batch-full/short"], full=True
        )
        assert [item["content"] for item in result["items"]] == ["y" * 2000, "z"]
        assert result["truncated"] is False
        assert set(result["items"][0]) == DOCUMENT_KEYS | {"path", "status"}

    def test_each_item_is_ok_or_says_what_is_wrong(self, shared_server: Server) -> None:
        shared_server.create("batch-mixed/there", "text")
        shared_server.create("batch-mixed/deleted", "text")
        shared_server.client.delete(at("batch-mixed/deleted")).raise_for_status()
        paths = [
            "batch-mixed/missing",
            "/batch-mixed/there/",
            "../etc/passwd",
            "",
            "batch-mixed/deleted",
            "batch-mixed/there",
        ]
        items = self.batch(shared_server.client, paths=paths)["items"]
        outcomes = [
            item["error"]["code"] if item["status"] == "error" else item["document_id"]
            for item in items
        ]
        assert outcomes == [
            "NOT_FOUND",
            "batch-mixed/there",
            "INVALID_ARGUMENT",
            "INVALID_ARGUMENT",
            "NOT_FOUND",
            "batch-mixed/there",
        ]
        assert [item["path"] for item in items] == paths
        assert set(items[0]["error"]) == {"code", "status", "message", "details"}
        assert items[0]["error"]["status"] == 404

    def test_twenty_are_read(self, shared_server: Server) -> None:
        shared_server.create("batch-twenty", "text")
        self.batch(shared_server.client, paths=["batch-twenty"] * BATCH_PATHS_MAX)

    @pytest.mark.parametrize(
        "paths", [[], ["a"] * (BATCH_PATHS_MAX + 1), "a", None, {"a": 1}], ids=repr
    )
    def test_none_or_more_than_twenty_are_refused(
        self, client: httpx.Client, paths: object
    ) -> None:
        answer = client.post("/batch-read", json={"paths": paths})
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "paths"

    def test_what_does_not_fit_says_so_and_the_rest_comes(
        self, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        environment = {"ZIBALDONE_BATCH_RESPONSE_BYTES_MAX": "1000"}
        data = tmp_path_factory.mktemp("small-batch") / "data"
        with Server(data, environment=environment) as server:
            server.create("a", "x" * 600)
            server.create("b", "y" * 600)
            server.create("c", "z" * 300)
            result = self.batch(server.client, paths=["a", "b", "c"], full=True)
        first, second, third = result["items"]
        assert (first["status"], second["status"], third["status"]) == ("ok", "error", "ok")
        assert second["error"]["code"] == "RESPONSE_TOO_LARGE"
        assert result["truncated"] is True
