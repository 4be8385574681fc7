"""Long documents: computed before their transaction, stored as short ones are."""

from __future__ import annotations

import asyncio
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.drivers.runtimes import Caller, opened
from zibaldone.access import presence
from zibaldone.access.presence import Presence
from zibaldone.access.principal import LOCAL
from zibaldone.access.share import SHARE
from zibaldone.errors import Conflict, DeadlineExceeded, NotFound, NotFoundInContent
from zibaldone.keep import commit
from zibaldone.keep.writing import Preparation, Stopped
from zibaldone.limits import LONG_CHANGES_PER_KEY, PREPARE_INLINE_CHARS_MAX, PREPARE_TRIES_MAX
from zibaldone.model.chunk import ChunkTerms
from zibaldone.model.chunking import Chunking
from zibaldone.model.document import KB_SOURCE_ID
from zibaldone.text import terms
from zibaldone.text.chunk import cut
from zibaldone.text.chunk_changes import Checkpoint
from zibaldone.tools.call import call_tool
from zibaldone.tools.documents import patch_document, upload_document
from zibaldone.tools.spec import Call, Runtime

T = TypeVar("T")

LONG = "\n\n".join(f"Paragraph {number} is about wombats." for number in range(4_000))
assert len(LONG) > PREPARE_INLINE_CHARS_MAX


@pytest.fixture
def runtime(data: Path) -> Iterator[Runtime]:
    with opened(data) as runtime:
        yield runtime


@pytest.fixture
def ask(runtime: Runtime) -> Caller:
    return Caller(runtime)


def chunk_rows(runtime: Runtime, path: str) -> list[Any]:
    async def read() -> list[Any]:
        def look(reader: Any) -> list[Any]:
            return [
                (chunk.content_hash, chunk.index, chunk.start, chunk.end)
                for chunk in reader.chunks.stored(reader.documents.get(path))
            ]

        return await runtime.store.read(LOCAL.tenant, look)

    return asyncio.run(read())


def found(ask: Caller, query: str) -> list[str]:
    return [hit["document_id"] for hit in ask("search_knowledge", query=query)["results"]]


class Meddling(Preparation):
    """Somebody else changes the document each time before a change of it is computed."""

    def __init__(self, change: Callable[[int], None], times: int) -> None:
        super().__init__()
        self.runs = 0
        self._change = change
        self._times = times

    async def run(self, work: Callable[[Checkpoint], T]) -> T:
        self.runs += 1
        if self.runs <= self._times:
            await asyncio.to_thread(self._change, self.runs)
        return await super().run(work)


class TestLongDocuments:
    def test_every_way_to_write_one(self, runtime: Runtime, ask: Caller) -> None:
        assert ask("upload_document", path="a", content=LONG)["status"] == "created"
        assert found(ask, '"Paragraph 3999"') == ["a"]
        ask("update_document", path="a", content=LONG.replace("3999", "numbat"))
        assert found(ask, "numbat") == ["a"]
        patched = ask(
            "patch_document", path="a", old_str="wombats", new_str="quolls", replace_all=True
        )
        assert patched["replaced"] == 4_000
        assert found(ask, "wombats") == []
        ask("update_document", path="a", title="Marsupials")
        assert found(ask, "title:marsupials") == ["a"]
        assert ask("restore_document", path="a", revision=1)["revision"] == 5
        assert found(ask, "wombats") == ["a"]
        assert ask("upload_document", path="a", content="short", upsert=True)["revision"] == 6
        assert len(chunk_rows(runtime, "a")) == 1
        ask("delete_document", path="a")
        assert ask("upload_document", path="a", content=LONG)["revision"] == 8

    def test_is_stored_as_it_would_be_in_one_step(
        self, runtime: Runtime, ask: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ask("upload_document", path="prepared", content=LONG)
        ask("patch_document", path="prepared", old_str="Paragraph 7 ", new_str="Paragraph seven ")
        monkeypatch.setattr("zibaldone.keep.writing.PREPARE_INLINE_CHARS_MAX", len(LONG) + 100)
        ask("upload_document", path="inline", content=LONG)
        ask("patch_document", path="inline", old_str="Paragraph 7 ", new_str="Paragraph seven ")
        assert chunk_rows(runtime, "prepared") == chunk_rows(runtime, "inline")

    def test_refusals_are_the_same(self, ask: Caller) -> None:
        ask("upload_document", path="a", content=LONG)
        with pytest.raises(Conflict, match="exists already"):
            ask("upload_document", path="a", content=LONG)
        with pytest.raises(Conflict, match="not 7"):
            ask("update_document", path="a", content=LONG, last_known_revision=7)
        with pytest.raises(NotFoundInContent):
            ask("patch_document", path="a", old_str="numbat", new_str="x")
        with pytest.raises(NotFound):
            ask("update_document", path="b", content=LONG)


class TestOthersMeanwhile:
    @staticmethod
    def meddled(runtime: Runtime, times: int) -> tuple[Meddling, Caller]:
        other = Caller(runtime)

        def touch(number: int) -> None:
            # A short body, so that it does not go the same way itself.
            other("upload_document", path="a", content=f"short {number}", upsert=True)

        meddling = Meddling(touch, times)
        return meddling, Caller(_with(runtime, meddling))

    @pytest.mark.parametrize("times", [1, PREPARE_TRIES_MAX - 1])
    def test_a_change_is_made_of_what_is_there_then(self, runtime: Runtime, times: int) -> None:
        Caller(runtime)("upload_document", path="a", content="short")
        meddling, ask = self.meddled(runtime, times)
        stored = ask("upload_document", path="a", content=LONG, upsert=True)
        assert meddling.runs == times + 1
        assert stored["revision"] == 2 + times
        assert found(ask, "wombats") == ["a"]
        assert len(chunk_rows(runtime, "a")) == len(set(chunk_rows(runtime, "a"))) > 100

    def test_it_is_cut_as_its_source_is_cut_then(self, runtime: Runtime) -> None:
        """The chunking is changed after the change was computed with the old one."""
        chunking = Chunking.by_size(500)

        def set_chunking(_: int) -> None:
            change = runtime.store.upkeep(
                lambda work: work.sources.set_chunking(KB_SOURCE_ID, chunking)
            )
            asyncio.run(_awaited(change))

        meddling = Meddling(set_chunking, 1)
        Caller(_with(runtime, meddling))("upload_document", path="a", content=LONG)
        assert meddling.runs == 2
        wanted = [(chunk.start, chunk.end) for chunk in cut(LONG, "text/plain", chunking)]
        assert [(start, end) for *_, start, end in chunk_rows(runtime, "a")] == wanted

    def test_terms_that_are_missing_then_are_not_made_in_the_transaction(
        self, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The chunks were all there when the change was computed; then they were gone."""
        Caller(runtime)("upload_document", path="a", content=LONG)
        _, ask = self.meddled(runtime, 1)
        makers: list[str] = []
        made = terms.chunk_terms

        def noted(title: str, heading: str, text: str) -> ChunkTerms:
            if "wombats" in text:
                makers.append(threading.current_thread().name)
            return made(title, heading, text)

        monkeypatch.setattr("zibaldone.text.chunk_changes.chunk_terms", noted)
        ask("upload_document", path="a", content=LONG, upsert=True)
        assert makers
        assert all(name.startswith("zibaldone-prepare") for name in makers)

    def test_a_document_that_never_rests_is_left_alone(self, runtime: Runtime) -> None:
        Caller(runtime)("upload_document", path="a", content="short")
        _, ask = self.meddled(runtime, 99)
        with pytest.raises(Conflict, match="Try again"):
            ask("upload_document", path="a", content=LONG, upsert=True)
        assert found(ask, "wombats") == []


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def _with(runtime: Runtime, preparation: Preparation) -> Runtime:
    return replace(runtime, preparation=preparation)


class TestTurns:
    """A key has one of the threads at a time, so that others find one free."""

    def test_another_key_does_not_wait_for_many_of_one(self) -> None:
        released = threading.Event()
        begun: list[str] = []
        is_begun = {"a": threading.Event(), "b": threading.Event()}

        async def run_for(preparation: Preparation, key_id: str) -> None:
            SHARE.set(key_id)

            def hold(_: Checkpoint) -> None:
                begun.append(key_id)
                is_begun[key_id].set()
                assert released.wait(20)

            await preparation.run(hold)

        async def run() -> None:
            preparation = Preparation()
            calls = [asyncio.create_task(run_for(preparation, "a")) for _ in range(6)]
            await asyncio.sleep(0)
            calls.append(asyncio.create_task(run_for(preparation, "b")))
            try:
                for event in is_begun.values():
                    assert await asyncio.to_thread(event.wait, 10)
                counts = Counter(begun)
            finally:
                released.set()
            assert counts == {"a": 1, "b": 1}
            await asyncio.gather(*calls)
            assert len(begun) == 7
            preparation.close()

        asyncio.run(run())


class Crowded(Preparation):
    """Says how many changes are computed, or are there to be, at once."""

    def __init__(self) -> None:
        super().__init__()
        self.present = self.most = 0

    async def run(self, work: Callable[[Checkpoint], T]) -> T:
        self.present += 1
        self.most = max(self.most, self.present)
        try:
            return await super().run(work)
        finally:
            self.present -= 1


def test_few_changes_of_long_documents_are_in_memory_at_once(runtime: Runtime, ask: Caller) -> None:
    """Each has the document, and what becomes of it; a request of fifty bytes asks for it."""
    ask("upload_document", path="a", content=LONG)
    crowded = Crowded()

    async def patch(number: int) -> object:
        SHARE.set(f"key {number % 2}")
        given = {"path": "a", "old_str": f"Paragraph {number} ", "new_str": "Paragraph "}
        call = Call(_with(runtime, crowded), LOCAL)
        return await call_tool(patch_document.TOOL, call, given)

    async def run() -> list[object]:
        return await asyncio.gather(*map(patch, range(12)), return_exceptions=True)

    answers = asyncio.run(run())
    crowded.close()
    assert not [one for one in answers if not isinstance(one, dict | Conflict)]
    assert crowded.most <= LONG_CHANGES_PER_KEY


class TestDeadline:
    def test_ends_the_work_and_nothing_is_stored(self, data: Path) -> None:
        with opened(data, tool_seconds_max=0.3) as runtime:
            call = Call(runtime, LOCAL)
            content = "\n\n".join(f"Paragraph {number}" for number in range(400_000))
            arguments = {"path": "a", "content": content}
            started_s = time.monotonic()
            with pytest.raises(DeadlineExceeded, match=r"Nothing was stored\."):
                asyncio.run(call_tool(upload_document.TOOL, call, arguments))
            while any(_is_busy(thread) for thread in threading.enumerate()):
                assert time.monotonic() - started_s < 20
                time.sleep(0.01)
            assert Caller(runtime)("list_documents")["items"] == []

    def test_reaches_the_next_checkpoint(self) -> None:
        ended = threading.Event()

        def endless(checkpoint: Checkpoint) -> None:
            try:
                while True:
                    checkpoint()
                    time.sleep(0.001)
            except Stopped:
                ended.set()
                raise

        async def run() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await preparation.run(endless)

        preparation = Preparation()
        asyncio.run(run())
        assert ended.wait(10)
        preparation.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the pauses of a thread")
@pytest.mark.parametrize(("has_others", "is_late"), [(False, False), (True, False), (True, True)])
def test_long_work_pauses_while_others_are_about(
    ask: Caller, monkeypatch: pytest.MonkeyPatch, has_others: bool, is_late: bool
) -> None:
    """It would have the interpreter whenever somebody else's request wants to go on. Where it takes
    very long, it goes on all the same: others who are always about must not make it fail."""
    slices = 50
    if is_late:
        monkeypatch.setattr("zibaldone.keep.writing._PAUSED_SECONDS_MAX", 0.0)
    callers = Presence()
    monkeypatch.setattr(presence, "CALLERS", callers)
    monkeypatch.setattr("zibaldone.tools.call.CALLERS", callers)
    preparation = Preparation()

    def compute(checkpoint: Checkpoint) -> int:
        pauses_before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        until_s = time.thread_time() + slices / 1_000
        while time.thread_time() < until_s:
            checkpoint()
        return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - pauses_before

    async def computed(key_id: str) -> int:
        SHARE.set(key_id)
        return await preparation.run(compute)

    ask("list_documents")  # by a key that is called "test"
    pauses = asyncio.run(computed("another" if has_others else "test"))
    preparation.close()
    assert pauses > slices / 2 if has_others and not is_late else pauses < slices / 5


def _is_busy(thread: threading.Thread) -> bool:
    """Is it still in the work that nobody waits for?"""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_code.co_name == "_prepare":
            return True
        frame = frame.f_back
    return False


class TestCancelled:
    """The writer is held while the write of a call has begun; meanwhile its caller gives up."""

    @staticmethod
    async def held_call(
        runtime: Runtime,
        monkeypatch: pytest.MonkeyPatch,
        content: str,
        give_up: Callable[[Any], Any],
    ) -> asyncio.Task[Any]:
        begun, released = threading.Event(), threading.Event()
        stored = commit.commit

        def held(*arguments: Any, **more: Any) -> Any:
            begun.set()
            assert released.wait(20)
            return stored(*arguments, **more)

        monkeypatch.setattr("zibaldone.keep.writing.commit", held)
        arguments = {"path": "a", "content": content}
        call = asyncio.create_task(call_tool(upload_document.TOOL, Call(runtime, LOCAL), arguments))
        assert await asyncio.to_thread(begun.wait, 20)
        await give_up(call)
        released.set()
        await asyncio.wait([call])
        return call

    @pytest.mark.parametrize("content", ["short", LONG])
    def test_at_its_deadline_it_is_told_that_it_was_stored(
        self, data: Path, monkeypatch: pytest.MonkeyPatch, content: str
    ) -> None:
        async def wait(_: Any) -> None:
            await asyncio.sleep(2.2)

        with opened(data, tool_seconds_max=2) as runtime:
            call = asyncio.run(self.held_call(runtime, monkeypatch, content, wait))
            assert call.result()["status"] == "created"

    def test_by_its_caller_it_ends_once_it_is_stored(
        self, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def cancel(call: asyncio.Task[Any]) -> None:
            call.cancel()
            await asyncio.sleep(0.05)
            assert not call.done()

        call = asyncio.run(self.held_call(runtime, monkeypatch, "short", cancel))
        assert call.cancelled()
        assert Caller(runtime)("get_document", path="a")["content"] == "short"
