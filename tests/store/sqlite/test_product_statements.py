"""What the product asks of the file: a page of bounded size for a list, one join for a search."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.drivers.rag import CORPUS, SEARCHES, asking
from tests.drivers.runtimes import Caller, opened
from zibaldone import settings as configuration
from zibaldone.store import statements
from zibaldone.wiring.runtime import build_runtime


class Trace:
    """Every query and every row, on all connections that are opened while it listens."""

    def __init__(self) -> None:
        self.selects: list[str] = []
        self.rows = 0

    def attach(self, connection: apsw.Connection) -> None:
        connection.set_exec_trace(self._on_statement)
        connection.set_row_trace(self._on_row)

    def _on_statement(self, cursor: apsw.Cursor, sql: str, bindings: Any) -> bool:
        del cursor, bindings
        words = " ".join(sql.split()).upper()
        if "SELECT" in words:  # not what begins and ends a snapshot
            self.selects.append(words)
        return True

    def _on_row(self, cursor: apsw.Cursor, row: Any) -> Any:
        del cursor
        self.rows += 1
        return row

    def clear(self) -> None:
        self.selects.clear()
        self.rows = 0


@pytest.fixture(scope="module")
def listened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Caller, Trace]]:
    trace = Trace()
    apsw.connection_hooks.append(trace.attach)
    try:
        with opened(tmp_path_factory.mktemp("traced") / "data") as runtime:
            caller = Caller(runtime)
            for number in range(300):
                caller("upload_document", path=f"{'ab'[number % 2]}/{number:03}", content="text")
            yield caller, trace
    finally:
        apsw.connection_hooks.remove(trace.attach)


@pytest.fixture
def traced(listened: tuple[Caller, Trace]) -> tuple[Caller, Trace]:
    listened[1].clear()
    return listened


@pytest.mark.requirement("000/D1.09", "000/D1.10")
@pytest.mark.parametrize(
    ("arguments", "selects_max"),
    [
        ({}, 1),
        ({"prefix": "a/"}, 1),
        ({"prefix": "a/", "limit": 100}, 1),
        ({"prefix": "b/1", "limit": 1}, 1),
        ({"prefix": "none/"}, 1),
        ({"count": True}, 1),
        # With an offset the page's first id is looked up in the index before.
        ({"offset": 100, "limit": 50}, 2),
        ({"prefix": "b/", "offset": 149}, 2),
        ({"offset": 9_999}, 2),
    ],
)
def test_a_page_is_one_bounded_select(
    traced: tuple[Caller, Trace], arguments: dict[str, Any], selects_max: int
) -> None:
    caller, trace = traced
    page = caller("list_documents", **arguments)
    assert 1 <= len(trace.selects) <= selects_max
    assert all("LIMIT" in one for one in trace.selects)
    # What is counted is the page: nothing counts beyond the innermost, limited select.
    counting = [one for one in trace.selects if "COUNT(" in one]
    assert all(one.count("COUNT(") == 1 and one.endswith("LIMIT :LIMIT))") for one in counting)
    assert trace.rows <= len(page["items"]) + 2, "only the page comes out, and what follows it"


@pytest.mark.requirement("000/D1.09")
def test_a_cursor_page_is_one_bounded_select(traced: tuple[Caller, Trace]) -> None:
    caller, trace = traced
    cursor = caller("list_documents", limit=100)["next_cursor"]
    trace.clear()
    page = caller("list_documents", limit=100, cursor=cursor)
    assert len(trace.selects) == 1
    assert trace.rows <= len(page["items"]) + 1


@pytest.mark.requirement("000/D1.07")
def test_no_pattern_is_matched(traced: tuple[Caller, Trace]) -> None:
    caller, trace = traced
    for prefix in ("", "a/", "100%", "a_b\\"):
        caller("list_documents", prefix=prefix)
    assert trace.selects
    assert not [one for one in trace.selects if "LIKE" in one or "GLOB" in one]


@pytest.mark.requirement("RAG-88")
@pytest.mark.parametrize("tool", SEARCHES)
def test_hits_are_joined_in_one_statement(data: Path, tool: str) -> None:
    trace = Trace()
    apsw.connection_hooks.append(trace.attach)
    runtime = build_runtime(
        configuration.load({"data": str(data), "embedder": "hashed"}, environment={})
    )
    try:
        caller = Caller(runtime)
        for post in CORPUS[:40]:
            caller("upload_document", path=post.doc_id, content=post.body)
        assert runtime.index is not None
        asyncio.run(runtime.index.drain())
        caller(tool, **asking(tool, k=1))  # reads the vectors into memory
        counts = []
        for k in (2, 30):
            trace.clear()
            assert len(caller(tool, **asking(tool, k=k))["results"]) == k
            counts.append(len(trace.selects))
            joins = [one for one in trace.selects if "D.METADATA" in one]
            assert len(joins) == 1
        assert counts[0] == counts[1], "no more statements for more hits"
    finally:
        runtime.store.close()
        apsw.connection_hooks.remove(trace.attach)


def test_recent_changes_read_nothing_of_others() -> None:
    with closing(apsw.Connection(":memory:")) as raw:
        raw.execute(files("zibaldone.store.sqlite").joinpath("schema.sql").read_text())
        values = {"namespace": "a", "tenant_start": "", "tenant_end": None, "limit": 9}
        statement = statements.load("zibaldone.store.sqlite", "audit.sql")["page_further"]
        plan = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    assert any("COVERING INDEX audit_by_document (namespace=?" in step for step in plan), plan
    assert not any(step.startswith("SCAN") for step in plan), plan
