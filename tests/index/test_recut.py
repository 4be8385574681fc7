"""Cutting anew: what stays the same keeps its vectors, and nobody's edit is undone or invented."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.drivers.drained import BAD, drain, paragraphs, status
from tests.drivers.embedders import Counting, Failing
from tests.drivers.index_state import assert_in_step
from tests.store.backends import Backend
from tests.store.kept import Kept
from zibaldone.access.principal import Tenant
from zibaldone.errors import Conflict, StorageCorrupt
from zibaldone.index.recut import Recut, change_chunking
from zibaldone.limits import RECUT_BATCH_CHARS, RECUT_BATCH_DOCUMENTS, Limits
from zibaldone.model.chunking import Chunking
from zibaldone.model.document import KB_SOURCE_ID
from zibaldone.text.chunk import chunk_by_size, chunk_document

BY_SIZE = Chunking.by_size(500)
LONG = "\n\n".join(paragraphs(4))
SHORT = "One paragraph that any way of cutting leaves whole."
UNTOUCHED = "document_id, revision, updated_at_us, updated_by, operation, content_hash"


async def _silent(steps: int) -> None:
    pass


def change(kept: Kept, chunking: Chunking, report: Callable[[int], None] = lambda _: None) -> Recut:
    async def tell(steps: int) -> None:
        report(steps)

    return asyncio.run(change_chunking(kept.store, KB_SOURCE_ID, chunking, tell))


def passages(tables: Backend, path: str) -> list[tuple[Any, ...]]:
    return tables.query(
        "SELECT c.start_char, c.end_char, c.body FROM chunks c JOIN documents USING (document_key)"
        f" WHERE document_id = '{path}' ORDER BY c.chunk_index"
    )


def by_size(body: str, chunking: Chunking = BY_SIZE) -> list[tuple[int, int, str]]:
    chunks = chunk_by_size(
        body, chunking.size_chars, chunking.overlap_chars, chunking.minimum_chars
    )
    return [(chunk.start, chunk.end, chunk.text) for chunk in chunks]


def by_structure(body: str) -> list[tuple[int, int, str]]:
    return [(chunk.start, chunk.end, chunk.text) for chunk in chunk_document(body)]


def test_documents_are_cut_anew_and_later_writes_too(kept: Kept, tables: Backend) -> None:
    kept.create("long", LONG)
    kept.create("short", SHORT)
    assert passages(tables, "long") == by_structure(LONG) != by_size(LONG)
    assert change(kept, BY_SIZE) == Recut(2, 1, len(by_size(LONG)))
    assert passages(tables, "long") == by_size(LONG)
    kept.create("later", LONG)
    assert passages(tables, "later") == by_size(LONG)
    kept.update("later", body=LONG + " More.")
    assert passages(tables, "later") == by_size(LONG + " More.")
    assert change(kept, BY_SIZE) == Recut(3, 0, 0)
    change(kept, Chunking())
    assert passages(tables, "long") == by_structure(LONG)
    assert tables.broken_invariants() == {}


def test_only_passages_that_are_new_are_embedded(kept: Kept, tables: Backend) -> None:
    embedder = Counting()
    kept.create("long", LONG)
    kept.create("short", SHORT)
    drain(kept, embedder)
    embedder.taken()
    change(kept, BY_SIZE)
    assert (status(kept, "long"), status(kept, "short")) == ("pending", "ready")
    drain(kept, embedder)
    assert embedder.taken() == [text for _, _, text in by_size(LONG)]
    assert_in_step(tables, Counting())
    # Only the last window differs where the minimum decides about it.
    tail_joins = Chunking.by_size(500, minimum_chars=500)
    before = by_size(LONG)
    new = [piece for piece in by_size(LONG, tail_joins) if piece not in before]
    assert 0 < len(new) < len(before)
    assert change(kept, tail_joins) == Recut(2, 1, len(new))
    drain(kept, embedder)
    assert embedder.taken() == [text for _, _, text in new]
    assert_in_step(tables, Counting())


def test_passages_that_only_went_away_leave_the_document_ready(kept: Kept, tables: Backend) -> None:
    """Here a passage that should not be there, as a crash of something else could leave it."""
    embedder = Counting()
    body = "ab" * 100
    change(kept, Chunking.by_size(100, 0, 0))
    kept.create("same", body)
    drain(kept, embedder)
    tables.add_chunk(2)
    embedder.taken()
    assert change(kept, Chunking.by_size(100, 0, 0)) == Recut(1, 1, 0)
    assert status(kept, "same") == "ready"
    assert tables.query("SELECT * FROM jobs WHERE kind = 'vectors'") == []
    assert_in_step(tables, Counting())


def test_nothing_says_that_somebody_edited(kept: Kept, tables: Backend) -> None:
    kept.create("a", LONG, tags=("x",), metadata={"Score": 3})
    kept.update("a", title="A title")
    kept.create("gone", LONG)
    kept.delete("gone")
    kept.create("registries/x", LONG)

    def state() -> Sequence[Any]:
        return [
            tables.query(f"SELECT {UNTOUCHED} FROM documents ORDER BY document_key"),
            tables.query("SELECT * FROM audit ORDER BY audit_key"),
            tables.query("SELECT * FROM revisions ORDER BY document_key, revision"),
            tables.query("SELECT * FROM facets ORDER BY document_key"),
            tables.query("SELECT * FROM document_tags ORDER BY document_key, tag"),
        ]

    before = state()
    assert change(kept, BY_SIZE).documents == 2
    assert state() == before
    assert status(kept, "registries/x") == "skipped"
    assert passages(tables, "registries/x") == by_size(LONG)  # keywords find these
    assert passages(tables, "gone") == []
    drain(kept, Counting())
    assert_in_step(tables, Counting())


def test_a_document_that_had_failed_gets_another_chance(kept: Kept, tables: Backend) -> None:
    failing = Failing(BAD)
    kept.create("long", LONG)
    kept.create("short", SHORT)
    tables.execute("UPDATE jobs SET attempts = 9")
    drain(kept, failing)
    assert status(kept, "long") == status(kept, "short") == "error"
    change(kept, BY_SIZE)
    assert (status(kept, "long"), status(kept, "short")) == ("pending", "error")
    failing.problem = None
    drain(kept, failing)
    assert status(kept, "long") == "ready"


def test_every_namespace_is_reached(kept: Kept, tables: Backend) -> None:
    other = Tenant(namespace="other")
    kept.create("here", LONG)
    kept.create("there", LONG, other)
    assert change(kept, BY_SIZE).documents == 2
    assert passages(tables, "there") == by_size(LONG)


def test_other_sources_keep_their_own(kept: Kept, tables: Backend) -> None:
    kept.create("kb", LONG)
    kept.create("row", LONG)
    tables.execute(
        "INSERT INTO sources (source_id, namespace, name, kind, created_at_us, definition) VALUES"
        """ (2, 'default', 'posts', 'database', 0, '{"table": "posts"}')"""
    )
    tables.execute("UPDATE documents SET source_id = 2 WHERE document_id = 'row'")
    done = asyncio.run(change_chunking(kept.store, 2, BY_SIZE, _silent))
    assert done.documents == 1
    assert passages(tables, "kb") == by_structure(LONG)
    assert passages(tables, "row") == by_size(LONG)
    kept.update("row", body=LONG + " More.")
    assert passages(tables, "row") == by_size(LONG + " More.")
    ((definition,),) = tables.query("SELECT definition FROM sources WHERE source_id = 2")
    assert json.loads(definition)["table"] == "posts"


def test_it_goes_in_batches_and_takes_each_document_as_it_is_then(
    kept: Kept, tables: Backend
) -> None:
    count = 2 * RECUT_BATCH_DOCUMENTS + 1
    for number in range(count):
        kept.create(f"{number:03}", LONG)
    kept.create("huge", "word " * (RECUT_BATCH_CHARS // 4))
    last, deleted = f"{count - 1:03}", f"{count - 2:03}"
    batches: list[int] = []

    def others_write(steps: int) -> None:
        if not batches:
            _write_from_elsewhere(tables, last, deleted)
        batches.append(steps)

    done = change(kept, BY_SIZE, others_write)
    assert sum(batches) == count + 1
    assert len(batches) > 3
    assert max(batches) <= RECUT_BATCH_DOCUMENTS
    assert done.documents == count  # all but the one that was deleted
    assert passages(tables, last) == by_size("changed " * 200)
    assert kept.known(last).body == "changed " * 200
    assert passages(tables, deleted) == []
    assert passages(tables, "new") == by_size(LONG)
    assert tables.broken_invariants() == {}


def test_what_is_committed_behind_the_run_is_cut_too(kept: Kept, tables: Backend) -> None:
    """An engine may give a document a low key and commit it after documents with higher keys."""
    for number in range(RECUT_BATCH_DOCUMENTS + 1):
        kept.create(f"{number:03}", LONG)
    reported: list[int] = []

    def commit_behind(steps: int) -> None:
        reported.append(steps)
        if len(reported) == 2:  # as one that was cut by the chunking of before
            tables.execute("UPDATE documents SET chunking_version = 0 WHERE document_id = '000'")
            tables.execute(
                "UPDATE chunks SET content_hash = ?, body = 'old' WHERE document_key = 1", (b"\0",)
            )

    assert change(kept, BY_SIZE, commit_behind).documents == RECUT_BATCH_DOCUMENTS + 2
    assert passages(tables, "000") == by_size(LONG)
    (source,) = kept.upkeep(lambda work: work.sources.all(), write=False)
    assert source.is_cut


def test_a_run_that_was_interrupted_leaves_the_source_unfinished(kept: Kept) -> None:
    huge = "word " * (RECUT_BATCH_CHARS // 4)  # each of these is a batch
    kept.create("first", huge)
    kept.create("last", huge)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    def is_cut() -> bool:
        (source,) = kept.upkeep(lambda work: work.sources.all(), write=False)
        return source.is_cut

    assert is_cut()
    with pytest.raises(KeyboardInterrupt):
        change(kept, BY_SIZE, interrupt)
    assert not is_cut()
    kept.update("first", title="Cut already")
    assert not is_cut()
    kept.update("last", title="Cut by this write")
    assert is_cut()  # there is nothing left to do
    assert change(kept, BY_SIZE) == Recut(2, 0, 0)


def _write_from_elsewhere(tables: Backend, changed: str, deleted: str) -> None:
    """As a server does: with its own connections, in the middle of the run."""

    def write() -> None:
        store = tables.open(Limits())
        try:
            elsewhere = Kept(store, Limits())
            elsewhere.update(changed, body="changed " * 200)
            elsewhere.delete(deleted)
            elsewhere.create("new", LONG)
        finally:
            store.close()

    _in_thread(write)


def _in_thread(work: Callable[[], object]) -> None:
    """Where no event loop runs yet."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(work).result()


def test_of_two_changes_the_later_one_holds(kept: Kept, tables: Backend) -> None:
    for number in range(RECUT_BATCH_DOCUMENTS + 1):
        kept.create(f"{number:03}", LONG)
    later = Chunking.by_size(700)

    def overtake(_: int) -> None:
        _in_thread(lambda: change(kept, later))

    with pytest.raises(Conflict, match="changed again"):
        change(kept, BY_SIZE, overtake)
    assert passages(tables, "000") == passages(tables, "100") == by_size(LONG, later)
    (source,) = kept.upkeep(lambda work: work.sources.all(), write=False)
    assert (source.chunking, source.is_cut) == (later, True)


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ("5", "not an object"),
        ('{"chunking": null}', "must be an object"),
        ('{"chunking": {"by": "tokens"}}', "structure or size, not 'tokens'"),
        ('{"chunking": {"by": ["size"]}}', "structure or size"),
        ('{"chunking": {"by": "size", "size_chars": "4000"}}', "size must be a whole number"),
        ('{"chunking": {"by": "size", "size_chars": true}}', "size must be a whole number"),
        ('{"chunking": {"by": "size", "size_chars": 1e9}}', "size must be a whole number"),
        ('{"chunking": {"by": "size", "overlap_chars": 2001}}', "overlap must be"),
        ('{"chunking": {"by": "size", "minimum_chars": -1}}', "minimum must be"),
        ('{"chunking": {"by": "size", "unit": "bytes"}}', "has no 'unit'"),
        ('{"chunking": {"by": "structure", "size_chars": 900}}', "has no 'size_chars'"),
    ],
)
def test_a_definition_that_cannot_be_used_is_a_clear_error_and_can_be_mended(
    kept: Kept, tables: Backend, definition: str, why: str
) -> None:
    kept.create("there", LONG)
    tables.execute(f"UPDATE sources SET definition = '{definition}'")
    with pytest.raises(StorageCorrupt, match="sources chunking kb --by structure") as refused:
        kept.create("new", LONG)
    assert why in refused.value.message
    assert kept.get("new") is None
    (source,) = kept.upkeep(lambda work: work.sources.all(), write=False)
    assert source.chunking is None
    assert why in source.problem
    change(kept, BY_SIZE)
    kept.create("new", LONG)
    assert passages(tables, "new") == passages(tables, "there") == by_size(LONG)
