"""The tools over MCP: which are offered where, how they are described, how they end."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.drivers.catalogues import CATALOGUE, MAIN
from tests.drivers.catalogues import OFFERED as TOOLS
from tests.drivers.golden import GOLDEN
from tests.drivers.mcp import LEGACY, MODERN, PATHS, Mcp, text_of
from tests.drivers.server import Server
from zibaldone.protocol.surface import CONNECTOR_SCHEMA_VERSION, Surface
from zibaldone.tools.catalogue import Catalogue

READONLY = {
    "search_knowledge",
    "list_documents",
    "get_document",
    "get_document_for_rewrite",
    "batch_read",
}
GPT = READONLY | {"upload_document", "update_document", "patch_document"}
TEN = GPT | {"delete_document", "ingest_document"}
DESK = TEN | {
    "recent_changes",
    "document_history",
    "document_revision",
    "document_diff",
    "restore_document",
    "rename_document",
    "document_links",
}
MINE = {"list_documents", "document_history"}

OFFERED = {
    "/mcp": TEN,
    "/mcp-readonly": READONLY,
    "/mcp-gpt": GPT,
    "/mcp-gpt-full": TEN,
    "/mcp-rag": {name for name in TOOLS if name.startswith("rag.")},
    "/mcp-desk": DESK,
    "/mcp-all": {name.replace(".", "_") for name in TOOLS},
    "/mcp-mine": MINE,
}
RECORDED_HASHES = GOLDEN / "schema-hashes.json"
LIST_BYTES_MAX = 4_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With a profile of the operator's own, and a list that may not grow as large as usual."""
    environment = {
        "ZIBALDONE_PROFILES": json.dumps({"mine": sorted(MINE)}),
        "ZIBALDONE_LIST_RESPONSE_BYTES_MAX": str(LIST_BYTES_MAX),
    }
    with Server(tmp_path_factory.mktemp("tools") / "data", environment=environment) as running:
        yield running


@pytest.fixture(scope="module")
def mcp(server: Server) -> Mcp:
    return Mcp(server.client)


def names(mcp: Mcp) -> set[str]:
    return {tool["name"] for tool in mcp.tools()}


class TestWhatIsOffered:
    @pytest.mark.requirement("V1", "V2", "000/D3.01", "7.1.k", "7.1.l", "X-08")
    @pytest.mark.parametrize("path", OFFERED)
    def test_each_path_lists_its_tools(self, server: Server, path: str) -> None:
        assert names(Mcp(server.client, path)) == OFFERED[path]
        assert "move_document" not in OFFERED[path]
        has_ingest = path in ("/mcp", "/mcp-gpt-full", "/mcp-desk", "/mcp-all")
        assert ("ingest_document" in OFFERED[path]) is has_ingest

    @pytest.mark.parametrize("path", OFFERED)
    def test_the_description_by_get_names_the_same(self, server: Server, path: str) -> None:
        info = server.client.get(path).json()
        assert set(info["tools"]) == OFFERED[path]

    @pytest.mark.requirement("V3", "X-09")
    def test_the_main_path_does_not_know_other_tools(self, mcp: Mcp) -> None:
        answer = mcp.rpc("tools/call", {"name": "move_document", "arguments": {}})
        assert answer.status_code == 200
        error = answer.json()["error"]
        assert error["code"] == -32601
        assert "Unknown tool: move_document" in error["message"]

    def test_a_mistyped_tool_is_answered_with_the_right_name(self, mcp: Mcp) -> None:
        answer = mcp.rpc("tools/call", {"name": "searchKnowledge", "arguments": {}})
        assert answer.json()["error"]["message"] == (
            "Unknown tool: searchKnowledge. Did you mean search_knowledge?"
        )

    @pytest.mark.requirement("V4", "X-09")
    @pytest.mark.parametrize("path", ["/mcp-gpt-full", "/mcp-gpt", "/mcp-readonly", "/mcp-mine"])
    def test_the_other_paths_do_not_allow_them(self, server: Server, path: str) -> None:
        error = Mcp(server.client, path).error("tools/call", {"name": "move_document"})
        assert error["code"] == -32601
        assert "not allowed" in error["message"]

    @pytest.mark.requirement("000/D3.02")
    @pytest.mark.parametrize("path", OFFERED)
    def test_what_is_listed_can_be_called_and_nothing_else(self, server: Server, path: str) -> None:
        mcp = Mcp(server.client, path)
        listed = names(mcp)
        others = set(TOOLS) | {"move_document", "", "Get_Document", "get_document "}
        for name in listed | others:
            answer = mcp.rpc("tools/call", {"name": name, "arguments": {"unknown": 1}}).json()
            if name.replace(".", "_") in {one.replace(".", "_") for one in listed}:
                assert text_of(answer["result"])["code"] == "INVALID_ARGUMENT"
            else:
                assert answer["error"]["code"] == -32601

    def test_a_dot_stands_for_an_underscore(self, mcp: Mcp) -> None:
        assert mcp.call("list.documents") == mcp.call("list_documents")


class TestDescriptions:
    @pytest.mark.parametrize("version", [*LEGACY, MODERN])
    def test_titles_and_annotations_by_version(self, server: Server, version: str) -> None:
        for tool in Mcp(server.client, version=version).tools():
            assert ("annotations" in tool) is (version != "2024-11-05")
            assert ("title" in tool) is (version not in ("2024-11-05", "2025-03-26"))
            assert {"name", "description", "inputSchema"} <= tool.keys()

    def test_the_hints_say_what_a_tool_does(self, mcp: Mcp) -> None:
        hints = {tool["name"]: tool["annotations"] for tool in mcp.tools()}
        for name, hint in hints.items():
            assert hint["readOnlyHint"] is (name in READONLY)
            assert hint["destructiveHint"] is (name == "delete_document")

    @pytest.mark.parametrize("path", OFFERED)
    def test_every_host_can_take_the_names_and_schemas(self, server: Server, path: str) -> None:
        for tool in Mcp(server.client, path).tools():
            # The rag tools keep the names of their contract; /mcp-all lists them without dots.
            name = tool["name"].replace(".", "_") if path == "/mcp-rag" else tool["name"]
            assert name.replace("_", "").replace("-", "").isalnum()
            assert len(tool["name"]) <= 64
            schema = tool["inputSchema"]
            assert schema["type"] == "object"
            assert schema["additionalProperties"] is False
            assert "$ref" not in json.dumps(schema)
            assert set(schema.get("required", [])) <= schema["properties"].keys()

    @pytest.mark.parametrize("version", [*LEGACY, MODERN])
    def test_the_list_of_the_ten_is_small(self, server: Server, version: str) -> None:
        answer = Mcp(server.client, version=version).rpc("tools/list")
        assert len(answer.content) < 10_000

    @pytest.mark.requirement("000/PG.09", "000/PG.06", "000/D1.12")
    def test_list_documents_explains_its_pages(self, mcp: Mcp) -> None:
        (tool,) = [tool for tool in mcp.tools() if tool["name"] == "list_documents"]
        properties = tool["inputSchema"]["properties"]
        assert properties["limit"] == {
            "type": "integer",
            "default": 50,
            "minimum": 1,
            "maximum": 100,
        }
        assert properties["offset"]["type"] == "integer"
        assert "count is the number of items in this page" in tool["description"]
        assert "next_offset" in tool["description"]
        # The seed's phase had no cursor; ours goes beyond the offset's cap, and is optional.
        assert "cursor" not in tool["inputSchema"].get("required", [])

    @pytest.mark.requirement("V6", "000/D3.03")
    def test_the_hash_and_version_of_the_schema_are_as_recorded(self, server: Server) -> None:
        """A changed tool changes the hash; then raise the version and record (GOLDEN_WRITE=1)."""
        found = {"connectorSchemaVersion": CONNECTOR_SCHEMA_VERSION}
        for path in (*PATHS, "/mcp-all"):
            result = Mcp(server.client, path).result("initialize")
            meta = result["_meta"]
            assert meta["zibaldone/connectorSchemaVersion"] == CONNECTOR_SCHEMA_VERSION
            info = server.client.get(path).json()
            assert info["connectorSchemaVersion"] == CONNECTOR_SCHEMA_VERSION
            assert info["schemaHash"] == meta["zibaldone/schemaHash"]
            found[path] = meta["zibaldone/schemaHash"]
        if os.environ.get("GOLDEN_WRITE"):
            RECORDED_HASHES.write_text(json.dumps(found, indent=2) + "\n")
        assert found == json.loads(RECORDED_HASHES.read_text())
        assert found["/mcp"] == found["/mcp-gpt-full"]
        assert len({found[path] for path in ("/mcp", "/mcp-readonly", "/mcp-gpt")}) == 3

    @pytest.mark.requirement("000/D3.03", "V6")
    @pytest.mark.parametrize("changed", ["description", "title", "effect"])
    def test_any_edit_of_a_tool_changes_the_hash(self, changed: str) -> None:
        before = Surface(MAIN, CATALOGUE).schema_hash
        assert Surface(MAIN, CATALOGUE).schema_hash == before
        tool = TOOLS["get_document"]
        values: dict[str, Any] = {
            "description": "Other words.",
            "title": "Other",
            "effect": "delete",
        }
        edited = dataclasses.replace(tool, **{changed: values[changed]})
        tools = tuple(edited if known is tool else known for known in CATALOGUE.tools)
        assert Surface(MAIN, Catalogue(tools)).schema_hash != before


class TestResults:
    @pytest.mark.parametrize("version", [None, *LEGACY, MODERN])
    def test_structured_content_comes_with_the_revisions_that_have_it(
        self, server: Server, version: str | None
    ) -> None:
        mcp = Mcp(server.client, version=version)
        has_it = version not in (None, "2024-11-05", "2025-03-26")
        for result in (
            mcp.outcome("list_documents", {"prefix": "none/"}),
            mcp.outcome("delete_document", {"path": "results/missing"}),
            mcp.outcome("get_document", {"path": "results/missing"}),
        ):
            assert ("structuredContent" in result) is has_it
            if has_it:
                assert result["structuredContent"] == text_of(result)

    @pytest.mark.requirement("X-12", "7.1.c")
    def test_a_missing_document_is_an_answer_with_an_error(self, mcp: Mcp) -> None:
        result = mcp.outcome("get_document", {"path": "results/missing"})
        assert result["isError"] is False
        answer = text_of(result)
        assert answer["error"] == answer["message"]
        assert (answer["code"], answer["status"]) == ("NOT_FOUND", 404)

    @pytest.mark.requirement("X-12", "7.1.i", "000/FR.11")
    @pytest.mark.parametrize(
        ("tool", "arguments", "code", "status"),
        [
            ("get_document_for_rewrite", {"path": "results/missing"}, "NOT_FOUND", 404),
            ("upload_document", {"path": "results/a", "content": "again"}, "CONFLICT", 409),
            (
                "patch_document",
                {"path": "results/a", "old_str": "one", "new_str": ""},
                "AMBIGUOUS",
                409,
            ),
            (
                "patch_document",
                {"path": "results/a", "old_str": "none", "new_str": ""},
                "NOT_FOUND_IN_CONTENT",
                409,
            ),
            ("update_document", {"path": "results/missing", "title": "x"}, "NOT_FOUND", 404),
            ("delete_document", {"path": "results/missing"}, "NOT_FOUND", 404),
            ("upload_document", {"path": "../x", "content": ""}, "INVALID_ARGUMENT", 422),
            ("list_documents", {"limit": 101}, "INVALID_ARGUMENT", 422),
            ("list_documents", {"limit": "five"}, "INVALID_ARGUMENT", 422),
            ("list_documents", {"offset": 10_001}, "INVALID_ARGUMENT", 422),
            ("get_document", {}, "INVALID_ARGUMENT", 422),
            ("get_document", {"path": "results/a", "pth": "x"}, "INVALID_ARGUMENT", 422),
            ("search_knowledge", {"query": ""}, "INVALID_ARGUMENT", 422),
            ("batch_read", {"paths": []}, "INVALID_ARGUMENT", 422),
            ("ingest_document", {"source": "/etc/passwd"}, "FORBIDDEN", 403),
            ("ingest_document", {"source": "http://127.0.0.1/"}, "FORBIDDEN", 403),
        ],
    )
    def test_a_failure_is_a_result_that_says_what_and_how(
        self, mcp: Mcp, tool: str, arguments: dict[str, Any], code: str, status: int
    ) -> None:
        mcp.outcome("upload_document", {"path": "results/a", "content": "one and one"})
        result = mcp.outcome(tool, arguments)
        assert result["isError"] is True
        failure = text_of(result)
        assert (failure["code"], failure["status"]) == (code, status)
        assert failure["message"]
        assert "details" in failure

    def test_an_argument_that_is_not_known_is_named(self, mcp: Mcp) -> None:
        failure = mcp.failure("list_documents", prefx="a/")
        assert failure["details"]["field"] == "prefx"


class TestTheTen:
    """One after the other over MCP, as an agent uses them."""

    @pytest.mark.requirement("7.1.d", "7.1.g", "7.1.h")
    def test_write_read_change_delete(self, mcp: Mcp) -> None:
        body = "Line one\nLine two\n" + "x" * 200_000
        path = {"path": "ten/a.md"}
        assert mcp.call("upload_document", **path, content=body, title="Ten", tags=["t"]) == {
            "id": "ten/a.md",
            "status": "created",
            "revision": 1,
        }
        assert mcp.call("get_document_for_rewrite", **path)["content"] == body
        read = mcp.call("get_document", **path)
        assert (read["content"], read["truncated"]) == (body[:500], True)
        assert mcp.call("update_document", **path, content="Line one")["revision"] == 2
        patched = mcp.call("patch_document", **path, old_str="one", new_str="two")
        assert (patched["revision"], patched["replaced"]) == (3, 1)
        assert mcp.call("get_document", **path)["content"] == "Line two"
        assert mcp.call("delete_document", **path)["status"] == "deleted"
        assert "error" in mcp.call("get_document", **path)
        assert mcp.call("list_documents", prefix="ten/a")["items"] == []

    @pytest.mark.requirement("7.1.e")
    def test_batch_read_gives_three_items_cut_short(self, mcp: Mcp) -> None:
        paths = [f"ten/batch-{number}" for number in range(3)]
        for path in paths:
            mcp.call("upload_document", path=path, content="long " * 500)
        answer = mcp.call("batch_read", paths=paths)
        assert (answer["count"], answer["truncated"]) == (3, True)
        assert all(item["truncated"] and len(item["content"]) == 500 for item in answer["items"])
        assert not mcp.call("batch_read", paths=paths, full=True)["truncated"]

    def test_search_finds_what_was_just_written(self, mcp: Mcp) -> None:
        mcp.call("upload_document", path="ten/search", content="The quokka is a marsupial.")
        answer = mcp.call("search_knowledge", query="quokka")
        assert answer["results"][0]["document_id"] == "ten/search"

    @pytest.mark.requirement("7.1.l")
    def test_ingest_keeps_a_text(self, mcp: Mcp) -> None:
        answer = mcp.call("ingest_document", text="# Heading\n\nText.", path="ten/ingested")
        assert answer == {
            "id": "ten/ingested",
            "status": "created",
            "revision": 1,
            "content_length": 16,
        }
        assert mcp.call("get_document", path="ten/ingested")["content"] == "# Heading\n\nText."


class TestListing:
    IDS = sorted(
        [f"list/n{number:03}" for number in range(60)]
        + ["list_/a", "listX/a", "100%/a", "100%b", "100x/a", "list/Z", "list/é"],
        key=str.encode,
    )

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _documents(cls, server: Server) -> None:
        for document_id in cls.IDS:
            server.create(document_id)
        server.create("list/gone")
        server.client.delete("/documents/list/gone").raise_for_status()

    def ids(self, mcp: Mcp, **arguments: Any) -> list[str]:
        return [item["document_id"] for item in mcp.call("list_documents", **arguments)["items"]]

    def under(self, prefix: str) -> list[str]:
        return [document_id for document_id in self.IDS if document_id.startswith(prefix)]

    @pytest.mark.requirement("T2", "T3", "T4", "T6")
    @pytest.mark.parametrize("prefix", ["list/", "list_/", "list", "100%", "100", "list/n01"])
    def test_a_prefix_is_literal_and_the_order_is_by_bytes(self, mcp: Mcp, prefix: str) -> None:
        expected = self.under(prefix)
        assert expected
        found: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page = mcp.call("list_documents", prefix=prefix, limit=20, offset=offset)
            found += [item["document_id"] for item in page["items"]]
            offset = page["next_offset"]
        assert found == expected
        assert self.ids(mcp, path=prefix, limit=20) == expected[:20]

    @pytest.mark.requirement("T5")
    def test_an_unknown_prefix_is_an_empty_page(self, mcp: Mcp) -> None:
        assert mcp.call("list_documents", prefix="nowhere/") == {
            "items": [],
            "count": 0,
            "returned_count": 0,
            "truncated": False,
            "next_offset": None,
        }

    @pytest.mark.requirement("T7")
    @pytest.mark.parametrize("offset", [0, 24, 49, 50, 61, 62, 63, 9_999])
    def test_offsets(self, mcp: Mcp, offset: int) -> None:
        expected = self.under("list/")[offset : offset + 10]
        assert self.ids(mcp, prefix="list/", limit=10, offset=offset) == expected

    @pytest.mark.requirement("T8")
    def test_an_offset_too_large_says_what_to_do(self, mcp: Mcp) -> None:
        failure = mcp.failure("list_documents", offset=10_001)
        assert (failure["code"], failure["status"]) == ("INVALID_ARGUMENT", 422)
        assert "offset too large" in failure["message"]
        assert "narrower prefix" in failure["message"]

    @pytest.mark.requirement("T9")
    @pytest.mark.parametrize("limit", [0, 101, -1])
    def test_a_limit_out_of_bounds(self, mcp: Mcp, limit: int) -> None:
        assert mcp.failure("list_documents", limit=limit)["status"] == 422

    @pytest.mark.requirement("000/P1.11")
    def test_the_guard_of_the_answers_size_cuts_the_page(self, mcp: Mcp) -> None:
        page = mcp.call("list_documents", prefix="list/", limit=100)
        assert page["truncated"] is True
        assert 0 < page["count"] < 62
        assert page["next_offset"] == page["count"]
        assert len(json.dumps(page["items"], separators=(",", ":"))) <= LIST_BYTES_MAX
