"""Listing: byte order, literal prefixes, pages. On the seed's corpus, against a server process."""

from __future__ import annotations

import base64
import json
import sqlite3
import unicodedata
from collections.abc import Iterator
from typing import Any

import httpx2 as httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drivers.corpus import (
    ALIVE_ROWS,
    BODY_BYTES,
    KNOWLEDGE_ALIVE,
    LISTED,
    PROBES,
    ROWS,
    UNDERSCORE_ALIVE,
    agent_data_rows,
    alive_ids,
)
from tests.drivers.server import Server, parsed, run_cli
from tests.drivers.urls import at, refusal
from zibaldone.limits import Limits

PREFIXES = (
    "",
    "k",
    "knowledge",
    "knowledge/",
    "knowledge/current-state/reports/",
    "knowledge/test/",
    "knowledge/test/note_",
    "knowledge_",
    "knowledge_/",
    "knowledge%",
    "knowledgeX/",
    "Knowledge",
    "A",
    "a",
    "100",
    "100%",
    "100%/",
    "100_",
    "100\\",
    "windows\\",
    "windows\\p",
    "windows\\\\",
    "_",
    "%",
    "\\",
    "kiến",
    "kiến-thức/ghi-chú/item-0",
    "\U0010ffff",
    "no/such/path/",
)

ORDERED = alive_ids()


def expected(prefix: str) -> list[str]:
    return [one for one in ORDERED if one.startswith(prefix)]


def short_rows() -> Iterator[dict[str, Any]]:
    """The corpus with short texts, which no list reads, and with gaps that real rows have."""
    for number, row in enumerate(agent_data_rows()):
        data = {**row["data"], "content": f"text {number}"}
        match number % 50:
            case 1:
                del data["metadata"]
            case 2:
                data["metadata"] = {"tags": None, "title": None}
            case 3:
                data["revision"] = ""
            case 4:
                data.pop("revision", None)
            case 5:
                data["revision"] = str(data.get("revision", 7))
        yield {"key": row["key"], "data": data}


def listing(client: httpx.Client, **params: Any) -> dict[str, Any]:
    answer = client.get("/documents", params=params)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


def ids(page: dict[str, Any]) -> list[str]:
    return [item["document_id"] for item in page["items"]]


def pages_by_offset(client: httpx.Client, prefix: str, limit: int) -> Iterator[dict[str, Any]]:
    offset: int | None = 0
    while offset is not None:
        page = listing(client, prefix=prefix, limit=limit, offset=offset)
        yield page
        offset = page["next_offset"]


def pages_by_cursor(client: httpx.Client, prefix: str, limit: int) -> Iterator[dict[str, Any]]:
    more: dict[str, str] = {}
    while True:
        page = listing(client, prefix=prefix, limit=limit, **more)
        yield page
        if "next_cursor" not in page:
            return
        more = {"cursor": page["next_cursor"]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The seed's knowledge base, imported, behind a server. Tests only read it."""
    folder = tmp_path_factory.mktemp("corpus")
    rows = folder / "kb_documents.jsonl"
    with rows.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in short_rows())
    imported = run_cli(
        "import", "agent-data", str(rows), "--with-deleted", "--json", data=folder / "data"
    )
    assert imported.returncode == 0, imported.stderr
    assert parsed(imported)["created"] == ROWS - 1
    with Server(folder / "data") as server:
        yield server.client


class TestCorpus:
    @pytest.mark.requirement("000/AP.01")
    def test_has_the_numbers_of_the_seed(self) -> None:
        rows = list(agent_data_rows())
        live = [row["data"] for row in rows if row["data"].get("deleted_at") is None]
        named = [data["document_id"] for data in live]
        assert len(rows) == ROWS == 5_040
        assert len(live) == ALIVE_ROWS == LISTED + 1 == 2_907
        assert sum("_" in one for one in named) == UNDERSCORE_ALIVE == 1_184
        under_knowledge = sum(one.startswith("knowledge/") for one in named)
        assert under_knowledge == KNOWLEDGE_ALIVE == 2_570
        assert sum(not row["data"]["document_id"] for row in rows) == 1
        body_bytes = sum(len(body_of(row).encode()) for row in rows)
        assert body_bytes == pytest.approx(BODY_BYTES, rel=0.01)
        for start in ("knowledge_/", "knowledgeX/", "100%", "100x"):
            assert any(one.startswith(start) for one in named)
        assert sum("\\" in one for one in named) == 1

    @pytest.mark.requirement("000/AP.02")
    def test_keys_are_ids_with_slashes_replaced(self) -> None:
        rows = list(agent_data_rows())
        assert all(row["key"] == row["data"]["document_id"].replace("/", "__") for row in rows)
        assert len({row["key"] for row in rows}) == ROWS


def body_of(row: dict[str, Any]) -> str:
    content = row["data"]["content"]
    body: str = content if isinstance(content, str) else content["body"]
    return body


class TestTable:
    """T1 to T9 and T13 to T15 of the seed."""

    @pytest.mark.requirement("T1")
    def test_t1_no_prefix(self, corpus: httpx.Client) -> None:
        page = listing(corpus, prefix="", limit=50)
        assert ids(page) == ORDERED[:50]
        assert page["next_offset"] == 50

    @pytest.mark.requirement("T2")
    def test_t2_a_folder(self, corpus: httpx.Client) -> None:
        page = listing(corpus, prefix="knowledge/", limit=50)
        assert ids(page) == expected("knowledge/")[:50]
        assert page["next_offset"] == 50
        everything = [
            one for part in pages_by_offset(corpus, "knowledge/", 100) for one in ids(part)
        ]
        assert len(everything) == KNOWLEDGE_ALIVE
        assert all(one.startswith("knowledge/") for one in everything)

    @pytest.mark.requirement("T3")
    def test_t3_an_underscore_is_an_underscore(self, corpus: httpx.Client) -> None:
        page = listing(corpus, prefix="knowledge_/")
        assert ids(page) == [*PROBES["knowledge_/"]]
        assert page["next_offset"] is None

    @pytest.mark.requirement("T4")
    def test_t4_a_percent_sign_is_a_percent_sign(self, corpus: httpx.Client) -> None:
        page = listing(corpus, prefix="100%")
        assert ids(page) == ["100%-coverage", "100%/plan", "100%/report"]

    @pytest.mark.requirement("T5")
    def test_t5_nothing_there(self, corpus: httpx.Client) -> None:
        assert listing(corpus, prefix="no/such/path/") == {
            "items": [],
            "count": 0,
            "returned_count": 0,
            "truncated": False,
            "next_offset": None,
        }

    @pytest.mark.requirement("T6", "000/D1.06")
    def test_t6_a_deleted_document_is_in_no_list(self, shared_server: Server) -> None:
        client = shared_server.client
        shared_server.create("t6/a/b/deleted")
        shared_server.create("t6/a/b/kept")
        prefixes = ["", "t", "t6", "t6/", "t6/a/", "t6/a/b/", "t6/a/b/d", "t6/a/b/deleted"]
        for prefix in prefixes:
            assert "t6/a/b/deleted" in ids(listing(client, prefix=prefix))
        client.delete(at("t6/a/b/deleted")).raise_for_status()
        for prefix in prefixes:
            assert "t6/a/b/deleted" not in ids(listing(client, prefix=prefix))
        assert ids(listing(client, prefix="t6/")) == ["t6/a/b/kept"]

    @pytest.mark.requirement("T6", "000/D1.06")
    def test_t6_the_deleted_twins_of_the_corpus_are_not_listed(self, corpus: httpx.Client) -> None:
        listed = [one for page in pages_by_offset(corpus, "", 100) for one in ids(page)]
        assert not [one for one in listed if one.endswith("-retired")]
        assert listed == ORDERED

    @pytest.mark.requirement("T7")
    @pytest.mark.parametrize("offset", [0, 24, 49, 50, 99, 100, 2905, 2906, 9999])
    @pytest.mark.parametrize("prefix", ["", "knowledge/"])
    def test_t7_offsets(self, corpus: httpx.Client, prefix: str, offset: int) -> None:
        wanted = expected(prefix)
        page = listing(corpus, prefix=prefix, offset=offset, limit=50)
        assert ids(page) == wanted[offset : offset + 50]
        has_more = offset + 50 < len(wanted)
        assert page["next_offset"] == (offset + 50 if has_more else None)
        assert page["truncated"] is False

    @pytest.mark.requirement("T8", "000/PG.04", "000/PG.05")
    @pytest.mark.parametrize("offset", [10_001, 10**18, 10**30])
    def test_t8_an_offset_that_is_too_large(self, corpus: httpx.Client, offset: int) -> None:
        answer = corpus.get("/documents", params={"offset": offset})
        details = refusal(answer, 422, "INVALID_ARGUMENT")
        assert details == {"field": "offset", "offset_max": 10_000}
        assert "offset too large" in answer.json()["message"]
        assert "narrower prefix" in answer.json()["message"]

    @pytest.mark.requirement("T9", "000/PG.02")
    @pytest.mark.parametrize("limit", [0, 101, -1, 10**18])
    def test_t9_a_limit_out_of_bounds(self, corpus: httpx.Client, limit: int) -> None:
        answer = corpus.get("/documents", params={"limit": limit})
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "limit"

    @pytest.mark.requirement("T13", "000/PG.08")
    @pytest.mark.parametrize("prefix", PREFIXES)
    def test_t13_path_is_another_name_of_prefix(self, corpus: httpx.Client, prefix: str) -> None:
        assert listing(corpus, path=prefix) == listing(corpus, prefix=prefix)

    @pytest.mark.requirement("T14")
    @pytest.mark.parametrize("prefix", ["", "knowledge/", "100"])
    def test_t14_the_same_call_gives_the_same_order(
        self, corpus: httpx.Client, prefix: str
    ) -> None:
        first = listing(corpus, prefix=prefix)
        assert all(listing(corpus, prefix=prefix) == first for _ in range(5))

    @pytest.mark.requirement("T15", "000/D1.02")
    @pytest.mark.parametrize("prefix", ["", "k", "knowledge/", "/"])
    def test_t15_the_row_without_an_id_is_in_no_list(
        self, corpus: httpx.Client, prefix: str
    ) -> None:
        for page in pages_by_offset(corpus, prefix, 100):
            for item in page["items"]:
                assert item["document_id"]
                assert item["document_id"].strip()


class TestItems:
    @pytest.mark.requirement("000/D1.03", "000/D1.04", "000/D1.05", "000/D1.11", "000/AP.04")
    def test_every_item_is_what_the_row_says(self, corpus: httpx.Client) -> None:
        rows = {
            row["data"]["document_id"]: row["data"]
            for row in short_rows()
            if row["data"].get("deleted_at") is None
        }
        seen = {"no metadata": 0, "no title": 0, "empty revision": 0, "no revision": 0}
        for page in pages_by_offset(corpus, "", 100):
            assert page["count"] == page["returned_count"] == len(page["items"])
            for item in page["items"]:
                data = rows[item["document_id"]]
                metadata = data.get("metadata", {})
                title, tags = metadata.get("title"), metadata.get("tags")
                assert item == {
                    "document_id": data["document_id"],
                    "parent_id": data["parent_id"],
                    "title": title or "",
                    "tags": tags or [],
                    "revision": int(data.get("revision") or 0),
                }
                seen["no metadata"] += "metadata" not in data
                seen["no title"] += "metadata" in data and title is None
                seen["empty revision"] += data.get("revision") == ""
                seen["no revision"] += "revision" not in data
        assert all(seen.values()), "the corpus holds each of these cases"

    @pytest.mark.requirement("000/PG.11", "000/D1.10", "000/AP.04")
    @pytest.mark.parametrize("prefix", PREFIXES)
    def test_the_answer_has_these_keys(self, corpus: httpx.Client, prefix: str) -> None:
        page = listing(corpus, prefix=prefix)
        known = {"items", "count", "returned_count", "truncated", "next_offset"}
        further = {"next_cursor"} if page["next_offset"] is not None else set()
        assert set(page) == known | further
        assert "total_count" not in page

    @pytest.mark.requirement("000/D1.13")
    @pytest.mark.parametrize("prefix", ["", "knowledge/", "100%"])
    def test_asking_for_a_count_changes_nothing(self, corpus: httpx.Client, prefix: str) -> None:
        assert listing(corpus, prefix=prefix, count="true") == listing(corpus, prefix=prefix)

    @pytest.mark.requirement("000/R5")
    def test_the_largest_page_stays_far_under_the_guard(self, corpus: httpx.Client) -> None:
        largest = max(
            len(corpus.get("/documents", params={"limit": 100, "offset": offset}).content)
            for offset in range(0, len(ORDERED), 100)
        )
        assert largest < Limits().list_response_bytes_max / 20


class TestOrderAndPrefix:
    @pytest.mark.requirement("000/IX.01", "7.1.b", "000/D1.07")
    @pytest.mark.parametrize("prefix", PREFIXES)
    def test_the_prefix_is_literal_and_the_order_is_of_bytes(
        self, corpus: httpx.Client, prefix: str
    ) -> None:
        listed = [one for page in pages_by_offset(corpus, prefix, 100) for one in ids(page)]
        assert listed == expected(prefix)

    @pytest.mark.requirement("000/IX.01")
    def test_all_kinds_of_signs_in_byte_order(self, shared_server: Server) -> None:
        names = [
            *"AZaz09_-.~!$&'()*+,;=@ %\\\"<>[]^`{|}#?",
            *("é", "É", "ß", "\u017f", "ﬁ", "日", "\ue000", "\uffee", "😀", "\U0010fffd"),
            *("a0", "aA", "a_", "aa", "a/b", "a-b", "a b", "a!", "aé", "Aa"),
        ]
        made = [f"bytes/x{name}x" for name in names]
        for one in made:
            shared_server.create(one)
        listed = ids(listing(shared_server.client, prefix="bytes/", limit=100))
        assert listed == sorted(made, key=str.encode)
        assert len(listed) == len(set(made))

    @settings(max_examples=300)
    @given(
        whole=st.sampled_from(ORDERED),
        cut=st.integers(0, 40),
        tail=st.text(st.sampled_from("\\%_/aA0~é") | st.characters(codec="utf-8"), max_size=3),
    )
    @pytest.mark.requirement("000/D1.07")
    def test_any_prefix(self, corpus: httpx.Client, whole: str, cut: int, tail: str) -> None:
        prefix = whole[:cut] + tail
        answer = corpus.get("/documents", params={"prefix": prefix, "limit": 100})
        if answer.status_code == 422:
            assert answer.json()["details"]["field"] == "prefix"
            assert not prefix.isprintable()
            return
        literal = unicodedata.normalize("NFC", prefix).lstrip("/")
        assert ids(answer.json()) == expected(literal)[:100]


def like_pattern(prefix: str, escaped_in_order: str = "\\%_") -> str:
    """How the seed makes a LIKE pattern of a prefix: the backslash first, then the wildcards."""
    for sign in escaped_in_order:
        prefix = prefix.replace(sign, "\\" + sign)
    return prefix + "%"


@pytest.fixture(scope="module")
def by_pattern() -> Iterator[sqlite3.Connection]:
    """The live ids in a table that understands the seed's own statement."""
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA case_sensitive_like = ON")
    connection.execute("CREATE TABLE live (id TEXT)")
    connection.executemany("INSERT INTO live VALUES (?)", [(one,) for one in ORDERED])
    yield connection
    connection.close()


def found_by_pattern(connection: sqlite3.Connection, pattern: str) -> list[str] | None:
    """None where the pattern is not even valid."""
    try:
        rows = connection.execute(
            "SELECT id FROM live WHERE id LIKE ? ESCAPE '\\' ORDER BY id LIMIT 100", (pattern,)
        ).fetchall()
    except sqlite3.OperationalError:
        return None
    return [one for (one,) in rows]


class TestEscaping:
    """Our lists use bounds, not patterns, so there is nothing to escape: the outcome must be that
    of the seed's rightly escaped pattern, and unlike that of a wrongly escaped one."""

    @pytest.mark.requirement("000/D1.08")
    def test_the_seeds_pattern(self) -> None:
        assert like_pattern("a\\b%_") == "a\\\\b\\%\\_%"

    @pytest.mark.requirement("000/D1.08", "000/D1.07")
    @pytest.mark.parametrize("prefix", PREFIXES)
    def test_lists_what_the_rightly_escaped_pattern_finds(
        self, corpus: httpx.Client, by_pattern: sqlite3.Connection, prefix: str
    ) -> None:
        listed = ids(listing(corpus, prefix=prefix, limit=100))
        assert listed == found_by_pattern(by_pattern, like_pattern(prefix))

    @pytest.mark.requirement("000/R1")
    @pytest.mark.parametrize(
        "order", ["", "\\", "%_", "\\%", "\\_", "%\\_", "%_\\", "_%\\", "_\\%"]
    )
    def test_every_wrong_escaping_would_be_caught(
        self, corpus: httpx.Client, by_pattern: sqlite3.Connection, order: str
    ) -> None:
        differing = [
            prefix
            for prefix in PREFIXES
            if found_by_pattern(by_pattern, like_pattern(prefix, order))
            != ids(listing(corpus, prefix=prefix, limit=100))
        ]
        assert differing


class TestPages:
    @pytest.mark.requirement("000/PG.01", "000/PG.03")
    def test_fifty_from_the_start_by_default(self, corpus: httpx.Client) -> None:
        plain = listing(corpus)
        assert len(plain["items"]) == 50
        assert plain == listing(corpus, limit=50, offset=0) == listing(corpus, offset=0)

    @pytest.mark.requirement("000/PG.02")
    @pytest.mark.parametrize("limit", [1, 2, 99, 100])
    def test_limits_that_are_accepted(self, corpus: httpx.Client, limit: int) -> None:
        assert ids(listing(corpus, limit=limit)) == ORDERED[:limit]

    @pytest.mark.requirement("000/PG.07")
    def test_the_largest_folder_in_26_calls(self, corpus: httpx.Client) -> None:
        pages = list(pages_by_offset(corpus, "knowledge/", 100))
        assert len(pages) == 26
        assert [len(page["items"]) for page in pages] == [100] * 25 + [70]

    @pytest.mark.requirement("000/PG.10", "000/D1.11", "7.1.b")
    @pytest.mark.parametrize("prefix", PREFIXES)
    @pytest.mark.parametrize("limit", [100, 49])
    def test_offset_pages_and_cursor_pages_hold_each_id_once(
        self, corpus: httpx.Client, prefix: str, limit: int
    ) -> None:
        wanted = expected(prefix)
        for walk in (pages_by_offset, pages_by_cursor):
            pages = list(walk(corpus, prefix, limit))
            assert [one for page in pages for one in ids(page)] == wanted
            assert len(pages) == max(1, -(-len(wanted) // limit)), "no empty page at the end"
            assert pages[-1]["next_offset"] is None
            assert "next_cursor" not in pages[-1]
            assert not any(page["truncated"] for page in pages)
            assert all(page["count"] == len(page["items"]) for page in pages)

    def test_single_steps(self, corpus: httpx.Client) -> None:
        for walk in (pages_by_offset, pages_by_cursor):
            stepped = [one for page in walk(corpus, "100", 1) for one in ids(page)]
            assert stepped == expected("100")

    def test_a_cursor_belongs_to_its_prefix(self, corpus: httpx.Client) -> None:
        cursor = listing(corpus, prefix="knowledge/")["next_cursor"]
        answer = corpus.get("/documents", params={"prefix": "operations/", "cursor": cursor})
        assert refusal(answer, 422, "INVALID_ARGUMENT")["field"] == "cursor"

    def test_a_forged_cursor_does_not_leave_the_prefix(self, corpus: httpx.Client) -> None:
        forged = base64.urlsafe_b64encode(b'["knowledge/test/","A"]').decode().rstrip("=")
        page = listing(corpus, prefix="knowledge/test/", cursor=forged, limit=100)
        assert ids(page) == expected("knowledge/test/")[:100]

    def test_a_cursor_goes_on_where_it_was_though_documents_come_and_go(
        self, shared_server: Server
    ) -> None:
        client = shared_server.client
        for number in range(10):
            shared_server.create(f"moving/{number}")
        first = listing(client, prefix="moving/", limit=4)
        assert ids(first) == [f"moving/{number}" for number in range(4)]
        for gone in (0, 3, 4):
            client.delete(at(f"moving/{gone}")).raise_for_status()
        shared_server.create("moving/1-new")
        shared_server.create("moving/5-new")
        second = listing(client, prefix="moving/", limit=100, cursor=first["next_cursor"])
        wanted = ["moving/5", "moving/5-new", "moving/6", "moving/7", "moving/8", "moving/9"]
        assert ids(second) == wanted
