"""Reading a very long document does not hold up the event loop, and so nobody else."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.drivers.catalogues import BY_NAME
from tests.drivers.runtimes import Caller, opened
from zibaldone.access.principal import LOCAL
from zibaldone.access.share import SHARE
from zibaldone.find import render
from zibaldone.keep.reads import Range, View, excerpt
from zibaldone.limits import LONG_ANSWERS_PER_KEY, READ_INLINE_CHARS_MAX
from zibaldone.model.document import Document
from zibaldone.model.query import Query
from zibaldone.text import snippet
from zibaldone.tools.call import call_tool
from zibaldone.tools.spec import Call, Runtime, long_answer_turns

LONG_CHARS = 4_500_000


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    with opened(tmp_path_factory.mktemp("long") / "data") as runtime:
        caller = Caller(runtime)
        for path, chars in (("inline", READ_INLINE_CHARS_MAX), ("thread", 16_390)):
            caller("upload_document", path=path, content="é" * chars)

        async def insert_long() -> None:
            # Without cutting it into thousands of chunks: only its body matters here.
            made = await runtime.store.read(LOCAL.tenant, lambda r: r.documents.get("inline"))
            assert made is not None
            long = replace(made, document_id="long", body="ab" * (LONG_CHARS // 2))
            await runtime.store.write(LOCAL.tenant, lambda writer: writer.documents.insert(long))

        asyncio.run(insert_long())
        yield runtime


def loop_seconds(runtime: Runtime, tool: str, **arguments: object) -> float:
    """How long a call keeps the loop's own thread busy, at best."""

    async def work() -> float:
        start_s = time.thread_time()
        await call_tool(BY_NAME[tool], Call(runtime, LOCAL), arguments)
        return time.thread_time() - start_s

    return min(asyncio.run(work()) for _ in range(10))


def test_the_beginning_of_a_long_document_costs_what_that_of_a_short_one_does(
    runtime: Runtime,
) -> None:
    short = loop_seconds(runtime, "get_document", path="inline", related=False)
    long = loop_seconds(runtime, "get_document", path="long", related=False)
    assert long < 2 * short + 0.001


@pytest.mark.parametrize("path", ["inline", "thread", "long"])
def test_what_is_read_is_the_same_whichever_way_it_is_read(runtime: Runtime, path: str) -> None:
    caller = Caller(runtime)
    whole = caller("get_document_for_rewrite", path=path)
    assert whole["content_length"] == len(whole["content"])
    beginning = caller("get_document", path=path, related=False)
    assert beginning["content"] == whole["content"][:500]
    assert (beginning["content_length"], beginning["truncated"]) == (whole["content_length"], True)
    part = caller("get_document", path=path, from_char=9_000, char_count=10, related=False)
    assert part["content"] == whole["content"][9_000:9_010]
    (item,) = caller("batch_read", paths=[path])["items"]
    assert (item["content"], item["truncated"]) == (beginning["content"], True)
    assert item["content_length"] == whole["content_length"]


def test_a_part_of_a_long_document_keeps_no_more_than_that_in_memory(runtime: Runtime) -> None:
    """Many may wait to be sent, and each had the whole document with it."""

    async def read() -> View:
        return await runtime.store.read(
            LOCAL.tenant, lambda reader: excerpt(reader, "long", Range(from_char=3, char_count=4))
        )

    view = asyncio.run(read())
    assert view.excerpt.text == "baba"
    assert view.content_chars == LONG_CHARS
    assert not isinstance(view.document, Document)


@pytest.mark.parametrize("tool", ["search_knowledge", "rag.search_fts", "rag.search_hybrid"])
def test_what_was_found_is_not_rendered_on_the_event_loop(
    data: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    """To find the words of a query in the text of a hundred hits takes as long as the search."""
    threads: set[threading.Thread] = set()
    found = snippet.matches

    def noted(text: str, query: Query) -> list[snippet.Match]:
        threads.add(threading.current_thread())
        return found(text, query)

    monkeypatch.setattr(snippet, "matches", noted)
    monkeypatch.setattr(render, "matches", noted)
    more = {"return": {"include_snippets": True}} if tool.startswith("rag.") else {}
    with opened(data) as runtime:
        caller = Caller(runtime)
        caller("upload_document", path="a", content="A wombat digs.")
        assert caller(tool, query="wombat", **more)["results"]
    assert threads
    assert threading.main_thread() not in threads


@pytest.mark.parametrize(
    ("tool", "revisions"),
    [("document_diff", {"older": 1, "newer": 1}), ("document_revision", {"revision": 1})],
)
def test_long_revisions_are_read_when_they_have_their_turn(
    runtime: Runtime, tool: str, revisions: dict[str, int]
) -> None:
    """A request of a hundred bytes has both bodies of a difference read."""
    # Turns of its own: beside the callers of other tests a key has fewer places.
    runtime = replace(runtime, long_answers=long_answer_turns())

    async def run() -> None:
        held = asyncio.Semaphore(0)
        is_over = asyncio.Event()

        async def hold() -> None:
            SHARE.set(LOCAL.key_id)
            async with runtime.long_answers:
                held.release()
                await is_over.wait()

        async def read(path: str) -> dict[str, object]:
            given = {"path": path, **revisions}
            answer: dict[str, object] = await call_tool(BY_NAME[tool], Call(runtime, LOCAL), given)
            return answer

        holding = [asyncio.create_task(hold()) for _ in range(LONG_ANSWERS_PER_KEY)]
        for _ in holding:
            await held.acquire()
        long = asyncio.create_task(read("long"))
        assert (await read("inline"))["document_id"] == "inline"
        assert not (await asyncio.wait([long], timeout=0.5))[0]
        is_over.set()
        assert (await long)["document_id"] == "long"
        await asyncio.gather(*holding)

    asyncio.run(run())
