"""The terms of a long change are stored in steps after it, and none is lost."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import apsw
import pytest

from tests.drivers.commands import Commands
from tests.drivers.server import Server
from tests.store.kept import ACTOR, EVERYTHING, Kept
from tests.store.sqlite.invariants import broken_invariants
from zibaldone.access.share import SHARE
from zibaldone.index import renewal
from zibaldone.index.renewal import TERMS_VERSION, renew_terms, settle_terms
from zibaldone.keep.create import NewDocument, create
from zibaldone.keep.delete import delete
from zibaldone.limits import Limits
from zibaldone.model.chunk import ChunkChanges
from zibaldone.model.document import Document
from zibaldone.store.open import DATABASE_NAME, open_store, store_url
from zibaldone.store.port import Store, Writer
from zibaldone.store.rows import storage_key
from zibaldone.store.sqlite import store as sqlite_store
from zibaldone.store.sqlite import term_steps
from zibaldone.store.upkeep import Upkeep

PARAGRAPHS = 3_000


def text(words: str = "word") -> str:
    """Half a megabyte; every paragraph has a word of its own."""
    return "\n\n".join(f"{words}{number} " + "filler " * 25 for number in range(PARAGRAPHS))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(store_url(tmp_path), Limits())
    yield opened
    opened.close()


@pytest.fixture
def kept(store: Store) -> Kept:
    return Kept(store, Limits())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / DATABASE_NAME


def unsettled(file: Path) -> int:
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(connection.execute("SELECT count(*) FROM unsettled_terms").get)
    finally:
        connection.close()


def making(writer: Writer) -> Document:
    return create(writer, NewDocument("long", text()), ACTOR, Limits())[0]


def short_one(writer: Writer) -> Document:
    return create(writer, NewDocument("short", "text"), ACTOR, Limits())[0]


def removing(writer: Writer) -> Document:
    return delete(writer, "long", ACTOR)


async def between(
    store: Store, file: Path, work: Callable[[Writer], Document]
) -> asyncio.Task[Document]:
    """A change that is committed, while its terms are being stored."""
    running = asyncio.create_task(store.write(EVERYTHING, work))
    while not unsettled(file):
        assert not running.done()
        await asyncio.sleep(0)
    return running


async def left_by(store: Store, file: Path, work: Callable[[Writer], Document]) -> Document:
    """The caller gives up as soon as there is something to leave."""
    running = await between(store, file, work)
    running.cancel()
    return await running


@contextlib.asynccontextmanager
async def settling(store: Store) -> AsyncIterator[None]:
    task = asyncio.create_task(settle_terms(store))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def settle(store: Store, file: Path) -> None:
    async with settling(store):
        while unsettled(file):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def found_parts(kept: Kept) -> list[bool]:
    """Whether the first, a middle and the last part are found."""
    return [kept.found(f"word{n}") == {"long"} for n in (0, PARAGRAPHS // 2, PARAGRAPHS - 1)]


def test_a_long_document_is_found_by_all_its_parts_when_it_is_acknowledged(
    kept: Kept, file: Path
) -> None:
    kept.write(making)
    assert found_parts(kept) == [True, True, True]
    assert unsettled(file) == 0
    kept.update("long", body=text("other"))
    assert found_parts(kept) == [False, False, False]
    assert kept.found("other2999") == {"long"}
    kept.delete("long")
    assert kept.found("other2999") == set()
    assert unsettled(file) == 0
    assert broken_invariants(file) == {}


@pytest.mark.parametrize("work", [making, removing])
def test_others_write_while_its_terms_are_stored(
    kept: Kept, store: Store, file: Path, work: Callable[[Writer], Document]
) -> None:
    if work is removing:
        kept.write(making)

    async def left_after_a_short_write() -> int:
        SHARE.set("its own")
        running = await between(store, file, work)
        SHARE.set("others")
        await store.write(EVERYTHING, short_one)
        left = unsettled(file)
        await running
        return left

    assert asyncio.run(left_after_a_short_write()) > 0
    assert unsettled(file) == 0


def test_what_a_caller_who_gave_up_left_is_stored_in_the_background(
    kept: Kept, store: Store, file: Path
) -> None:
    document = asyncio.run(left_by(store, file, making))
    assert kept.get("long") == document  # it was stored, and its caller was told
    assert unsettled(file) > 0
    assert broken_invariants(file) == {}
    assert found_parts(kept) != [True, True, True]
    asyncio.run(settle(store, file))
    assert found_parts(kept) == [True, True, True]
    assert broken_invariants(file) == {}


def test_so_are_removals(kept: Kept, store: Store, file: Path) -> None:
    kept.write(making)
    asyncio.run(left_by(store, file, removing))
    assert unsettled(file) > 0
    assert broken_invariants(file) == {}
    assert found_parts(kept) == [False, False, False]
    asyncio.run(settle(store, file))
    assert broken_invariants(file) == {}


def test_also_what_was_left_while_a_server_runs(
    kept: Kept, store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewal, "TERMS_LEFT_SECONDS", 0.01)

    async def left_beside() -> None:
        async with settling(store):
            await left_by(store, file, making)
            while unsettled(file):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(left_beside(), 60))
    assert found_parts(kept) == [True, True, True]
    assert broken_invariants(file) == {}


def test_an_import_stores_what_an_interrupted_one_left(
    kept: Kept, store: Store, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that the document is there: without a server nobody else would make it found."""
    asyncio.run(left_by(store, file, making))
    imported = tmp_path / "long"
    imported.write_text(text())
    monkeypatch.setenv("ZIBALDONE_EMBEDDER", "none")
    cli = Commands(tmp_path)
    assert cli.json("import", str(imported), "--dry-run")["created"] == 0
    assert unsettled(file) > 0
    assert cli.json("import", str(imported))["created"] == 0
    assert unsettled(file) == 0
    assert found_parts(kept) == [True, True, True]
    assert broken_invariants(file) == {}


def test_upkeep_that_is_cancelled_in_its_last_step_ends(
    store: Store, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go on with the next document."""
    kept.write(making)
    key = storage_key(kept.known("long"))

    def cut_anew(work: Upkeep) -> None:
        removed = [chunk.chunk_key for chunk in work.chunks.stored(key)]
        work.chunks.apply(key, ChunkChanges([], [], removed))

    async def cancelled() -> None:
        loop, is_cancelled = asyncio.get_running_loop(), threading.Event()

        def settle_last(raw: apsw.Connection, step: term_steps.Step) -> None:
            if raw.execute("SELECT count(*) FROM unsettled_terms").get <= len(step):
                loop.call_soon_threadsafe(running.cancel)
                loop.call_soon_threadsafe(is_cancelled.set)
                assert is_cancelled.wait(10)
            term_steps.settle(raw, step)

        monkeypatch.setattr(sqlite_store, "settle", settle_last)
        running = asyncio.create_task(store.upkeep(cut_anew))
        await running

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


def test_a_document_that_is_removed_before_its_terms_are_stored_leaves_none(
    kept: Kept, store: Store, file: Path
) -> None:
    asyncio.run(left_by(store, file, making))
    kept.delete("long")
    asyncio.run(settle(store, file))
    assert found_parts(kept) == [False, False, False]
    assert broken_invariants(file) == {}


def test_terms_made_anew_in_between_are_not_stored_twice(
    kept: Kept, store: Store, file: Path
) -> None:
    german = "\n\n".join(
        f"Die alten Häuser stehen am See und sind nicht neu, sagt wort{number}. " * 3
        for number in range(PARAGRAPHS)
    )

    def work(writer: Writer) -> Document:
        return create(writer, NewDocument("long", german), ACTOR, Limits())[0]

    asyncio.run(left_by(store, file, work))
    connection = apsw.Connection(str(file))
    connection.execute("UPDATE term_scheme SET version = ?", (TERMS_VERSION - 1,))
    connection.close()
    asyncio.run(renew_terms(store))
    assert broken_invariants(file) == {}
    asyncio.run(settle(store, file))
    assert kept.found("wort2999 Haus") == {"long"}
    assert broken_invariants(file) == {}
    document = kept.known("long")
    chunks = kept.read(lambda reader: reader.chunks.stored(document))
    assert kept.read(lambda reader: reader.lexical.frequencies([]).chunks) == len(chunks)


def test_a_store_that_is_closed_in_between_has_stored_the_document(
    store: Store, file: Path, tmp_path: Path
) -> None:
    async def closed() -> Document:
        running = await between(store, file, making)
        await asyncio.to_thread(store.close)
        return await running

    asyncio.run(closed())
    assert unsettled(file) > 0
    with Server(tmp_path) as server:
        while unsettled(file):
            assert server.process.poll() is None
        hits = server.client.post("/search", json={"query": f"word{PARAGRAPHS - 1}"}).json()
    assert {hit["document_id"] for hit in hits["results"]} == {"long"}
