"""What would be too large, take too long or is not there yet: cut, interrupted or done without."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from tests.drivers.catalogues import BY_NAME
from tests.drivers.rag import MODES, SEARCHES, asking
from tests.drivers.runtimes import Caller, opened
from zibaldone.access.principal import LOCAL
from zibaldone.embed.hashed import Hashed
from zibaldone.errors import DeadlineExceeded
from zibaldone.index.worker import IndexWorker
from zibaldone.limits import RAG_RESPONSE_BYTES_MAX, RAG_SECONDS_MAX
from zibaldone.store.port import Reader, Store
from zibaldone.store.sqlite import vectors as sqlite_vectors
from zibaldone.tools.call import call_tool
from zibaldone.tools.spec import Call, Runtime

HANG_SECONDS = 6.0
"""Long after a rag tool's two seconds, long before the time of any other call or read."""

METADATA_BYTES = 200_000

BODIES = {
    "plain": "x" * 6_000_000,
    "escaped": '"\n' * 2_000_000,
    "accented": "é" * 3_500_000,
    "denser at the end": "x" * 4_900_000 + "\x01" * 200_000,
    "denser at the start": "\x01" * 800_000 + "x" * 2_000_000,
}
"""Each takes more than an answer may have, once it is written as JSON."""


def size_bytes(answer: dict[str, Any]) -> int:
    return len(orjson.dumps(answer))


def indexed(runtime: Runtime) -> None:
    asyncio.run(IndexWorker(runtime.store, Hashed()).drain())


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    with opened(tmp_path_factory.mktemp("long") / "data") as runtime:
        caller = Caller(runtime)
        for name, body in BODIES.items():
            caller("upload_document", path=name, content=body, metadata={"a": 1})
        caller("upload_document", path="short", content="short")
        yield caller


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    data = tmp_path_factory.mktemp("hits") / "data"
    with opened(data, embedder="hashed", metadata_bytes_max=2 * METADATA_BYTES) as runtime:
        caller = Caller(runtime)
        for number in range(60):
            note = {"note": "m" * METADATA_BYTES}
            text = f"amber {'garnet ' * number}"
            caller("upload_document", path=f"d/{number}", content=text, metadata=note)
        indexed(runtime)
        yield caller


class TestLongDocuments:
    @pytest.mark.requirement("RAG-13", "RAG-15")
    @pytest.mark.parametrize("name", BODIES)
    def test_one_alone_is_cut(self, long: Caller, name: str) -> None:
        answer = long("rag.get_docs", doc_ids=[name])
        (doc,) = answer["docs"]
        assert (doc["doc_id"], doc["metadata"]) == (name, {"a": 1})
        assert doc["body_truncated"] is True
        assert BODIES[name].startswith(doc["body"])
        assert answer["truncated"] is True
        assert (answer["missing"], answer["left_out"]) == ([], [])
        assert RAG_RESPONSE_BYTES_MAX - 100 < size_bytes(answer) <= RAG_RESPONSE_BYTES_MAX

    @pytest.mark.requirement("RAG-13", "RAG-15")
    def test_what_stands_behind_it_is_left_out_and_named(self, long: Caller) -> None:
        answer = long("rag.get_docs", doc_ids=["unknown", "plain", "short", "escaped"])
        assert [doc["doc_id"] for doc in answer["docs"]] == ["plain"]
        assert answer["docs"][0]["body_truncated"] is True
        assert (answer["missing"], answer["left_out"]) == (["unknown"], ["short", "escaped"])
        assert size_bytes(answer) <= RAG_RESPONSE_BYTES_MAX

    @pytest.mark.requirement("RAG-13", "RAG-15")
    def test_behind_another_it_is_left_out_itself(self, long: Caller) -> None:
        answer = long("rag.get_docs", doc_ids=["short", "plain", "short"])
        assert [doc["body"] for doc in answer["docs"]] == ["short"]
        assert "body_truncated" not in answer["docs"][0]
        assert (answer["truncated"], answer["left_out"]) == (True, ["plain"])

    @pytest.mark.requirement("RAG-15")
    def test_without_its_body_nothing_is_cut(self, long: Caller) -> None:
        answer = long("rag.get_docs", doc_ids=[*BODIES], **{"return": {"include_body": False}})
        assert [doc["doc_id"] for doc in answer["docs"]] == [*BODIES]
        assert answer["truncated"] is False
        assert "left_out" not in answer


class TestManyBytesOfHits:
    """Metadata comes with every hit; an operator may allow more of it than there is by default."""

    @pytest.mark.requirement("RAG-13", "RAG-15")
    @pytest.mark.parametrize("tool", SEARCHES)
    def test_as_many_hits_as_fit(self, heavy: Caller, tool: str) -> None:
        answer = heavy(tool, **asking(tool, "amber", k=50))
        size, count = size_bytes(answer), len(answer["results"])
        assert answer["truncated"] is True
        assert count == RAG_RESPONSE_BYTES_MAX // METADATA_BYTES - 1
        assert RAG_RESPONSE_BYTES_MAX - METADATA_BYTES - 1_000 < size <= RAG_RESPONSE_BYTES_MAX
        assert answer["stats"]["k_returned"] == count
        lean = heavy(tool, **asking(tool, "amber", k=50, **{"return": {"include_metadata": False}}))
        assert (len(lean["results"]), lean["truncated"]) == (50, False)
        best = [hit["chunk_id"] for hit in lean["results"][:count]]
        assert [hit["chunk_id"] for hit in answer["results"]] == best
        few = heavy(tool, **asking(tool, "amber", k=count))
        assert (len(few["results"]), few["truncated"]) == (count, False)


class Endless:
    """A store in which no read ever comes to an end by itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.begun = 0
        self.ended = 0
        self._lock = threading.Lock()

    async def read(self, tenant: Any, work: Any, **more: Any) -> Any:
        del work
        return await self._store.read(tenant, self._read_on, **more)

    def _read_on(self, reader: Reader) -> None:
        with self._lock:
            self.begun += 1
        until_s = time.monotonic() + 3 * HANG_SECONDS  # so that a failing test ends, too
        try:
            while time.monotonic() < until_s:
                reader.documents.heads("", limit=100)
        finally:
            with self._lock:
                self.ended += 1


@pytest.mark.requirement("RAG-28")
def test_a_search_is_interrupted_after_its_time(data: Path) -> None:
    """Answered in time, and no reader is left at work that nobody waits for."""
    calls = {
        **{tool: asking(tool, "amber") for tool in SEARCHES},
        "rag.get_docs": {"doc_ids": ["a"]},
        "rag.get_chunks": {"chunk_ids": ["a#0"]},
        "rag.admin.stats": {},
    }
    with opened(data, embedder="hashed") as runtime:
        Caller(runtime)("upload_document", path="a", content="amber")
        endless = Endless(runtime.store)
        slow = dataclasses.replace(runtime, store=cast("Store", endless))

        async def all_at_once() -> list[Any]:
            return await asyncio.gather(
                *(
                    call_tool(BY_NAME[tool], Call(slow, LOCAL), arguments)
                    for tool, arguments in calls.items()
                ),
                return_exceptions=True,
            )

        started_s = time.monotonic()
        outcomes = asyncio.run(all_at_once())
        taken_s = time.monotonic() - started_s
        assert all(isinstance(outcome, DeadlineExceeded) for outcome in outcomes), outcomes
        assert taken_s + 0.1 >= RAG_SECONDS_MAX
        assert taken_s < HANG_SECONDS
        while endless.ended < endless.begun:
            assert time.monotonic() - started_s < HANG_SECONDS, "a read goes on"
            time.sleep(0.05)
        assert endless.begun
        assert Caller(runtime)("rag.search_fts", query="amber")["results"]


@pytest.mark.engine("sqlite", reason="only the embedded engine reads vectors into memory")
class TestWhileVectorsAreRead:
    @pytest.fixture
    def call(self, data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
        """A process that has just begun, with an index that takes it many searches to read."""
        with opened(data, embedder="hashed") as runtime:
            for number in range(30):
                text = "amber garnet" if number < 12 else "garnet"
                Caller(runtime)("upload_document", path=f"d/{number:02}", content=text)
            indexed(runtime)
        monkeypatch.setattr(sqlite_vectors, "_PAGE_ROWS", 1)
        monkeypatch.setattr(sqlite_vectors, "VECTOR_LOAD_SECONDS_MAX", 0.0)
        with opened(data, embedder="hashed") as runtime:
            yield Caller(runtime)

    @pytest.mark.requirement("RAG-14")
    @pytest.mark.parametrize("mode", MODES)
    def test_a_hybrid_search_goes_on_by_keywords_and_says_so(self, call: Caller, mode: str) -> None:
        asked = {"query": "amber", "mode": mode, "k": 50}
        answer = call("rag.search_hybrid", **asked)
        assert len(answer["results"]) == 12, "those with the word, and none for its meaning"
        assert all(hit["score_vec"] is None for hit in answer["results"])
        assert all(hit["score_fts"] > 0 for hit in answer["results"])
        assert answer["note"].endswith("read into memory; try again in a moment: keywords only")
        assert answer["stats"]["candidates"] == {"fts": 12, "vec": 0}
        for _ in range(100):
            answer = call("rag.search_hybrid", **asked)
            if "note" not in answer:
                break
        assert all(hit["score_vec"] is not None for hit in answer["results"])

    def test_so_does_search_knowledge(self, call: Caller) -> None:
        answer = call("search_knowledge", query="amber", limit=50)
        assert len(answer["results"]) == 12
        assert answer["note"].endswith("keywords only")
        for _ in range(100):
            answer = call("search_knowledge", query="amber", limit=50)
            if "note" not in answer:
                return
        raise AssertionError("the vectors are never there")

    def test_a_vector_search_has_nothing_to_go_on_with(self, call: Caller) -> None:
        assert call.refused("rag.search_vector", query_text="amber") == "VECTORS_LOADING"
        assert len(call("rag.search_fts", query="amber", k=50)["results"]) == 12


@pytest.mark.requirement("RAG-10")
def test_pages_join_in_a_large_index_too(data: Path) -> None:
    flags = {
        "keyword_exact_chunks_max": 10,
        "keyword_ranked_chunks_max": 120,
        "keyword_entries_max": 120,
    }
    with opened(data, **flags) as runtime:
        call = Caller(runtime)
        for number in range(150):
            words = "oak elm " + ("fir " if number % 5 else "") + f"x{number} " * (number % 17)
            call("upload_document", path=f"d/{number:03}", content=words)
        whole: list[str] = []
        for offset in range(0, 160, 20):
            hits = call("rag.search_fts", query="fir oak elm", k=20, offset=offset)["results"]
            assert len(hits) == (20 if offset < 140 else 10 if offset == 140 else 0)
            whole += [hit["doc_id"] for hit in hits]
        assert sorted(whole) == [f"d/{number:03}" for number in range(150)]
        assert all(int(name[2:]) % 5 for name in whole[:120]), "those with the rarest word first"
