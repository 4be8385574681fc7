"""Documents from elsewhere: what the store says of them afterwards."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.drivers.engines import backend_of
from zibaldone.access.principal import LOCAL
from zibaldone.errors import StorageFull
from zibaldone.keep.commit import Actor
from zibaldone.keep.imports import import_documents, write_batch
from zibaldone.limits import PREPARE_INLINE_CHARS_MAX, Limits
from zibaldone.model.chunk import ChunkTerms
from zibaldone.model.document import Document, Revision
from zibaldone.model.incoming import Imported, Incoming
from zibaldone.model.instant import now_us
from zibaldone.store.port import Reader, Store, Writer
from zibaldone.text import terms

ACTOR = Actor("importer", "request-1")
LONG_AGO_US = 1_600_000_000_000_000


def document(document_id: str, body: str = "text", **more: object) -> Document:
    made = Document(
        document_id=document_id,
        body=body,
        title="Title",
        tags=("tag",),
        parent_id=None,
        mime="text/plain",
        metadata={"a": 1},
        revision=5,
        created_at_us=LONG_AGO_US,
        updated_at_us=LONG_AGO_US + 1,
        updated_by="",
        operation="import",
    )
    return replace(made, **more)  # type: ignore[arg-type]


@pytest.fixture
def store(data: Path) -> Iterator[Store]:
    opened = backend_of(data).open(Limits())
    yield opened
    opened.close()


def import_all(store: Store, *batch: Incoming) -> list[Imported]:
    return asyncio.run(
        store.write(
            LOCAL.tenant,
            lambda writer: import_documents(writer, batch, ACTOR, Limits(), "keep_edited"),
        )
    )


def stored(store: Store, document_id: str) -> Document:
    found = asyncio.run(store.read(LOCAL.tenant, lambda reader: reader.documents.get(document_id)))
    assert found is not None
    return found


def test_times_are_the_sources_and_the_audit_trail_says_when_it_came(store: Store) -> None:
    before_us = now_us()
    import_all(store, Incoming(document("a")))
    found = stored(store, "a")
    assert (found.created_at_us, found.updated_at_us) == (LONG_AGO_US, LONG_AGO_US + 1)
    assert (found.revision, found.updated_by, found.operation) == (5, "importer", "import")
    (entry,) = asyncio.run(store.read(LOCAL.tenant, lambda reader: reader.audit.page("a", limit=5)))
    assert before_us <= entry.at_us <= now_us()
    assert (entry.action, entry.principal, entry.revision) == ("import", "importer", 5)
    assert entry.request_id == "request-1"


def test_a_clock_that_ran_ahead_does_not_put_a_document_into_the_future(store: Store) -> None:
    import_all(store, Incoming(document("a", updated_at_us=now_us() + 10**15)))
    assert stored(store, "a").updated_at_us <= now_us()


def test_one_that_cannot_be_kept_does_not_stop_the_others(store: Store) -> None:
    results = import_all(
        store,
        Incoming(document("a")),
        Incoming(document("..")),
        Incoming(document("b", "nul \0")),
        Incoming(document("c", mime="nonsense")),
        Incoming(document("d", revision=-1)),
        Incoming(document("e", metadata={"x": "y" * 100_000})),
        Incoming(document("f")),
    )
    assert [one.outcome for one in results] == ["created", *["failed"] * 5, "created"]
    assert all(one.reason for one in results if one.outcome == "failed")
    heads = asyncio.run(
        store.read(LOCAL.tenant, lambda reader: reader.documents.heads("", limit=9))
    )
    assert [head.document_id for head in heads] == ["a", "f"]


@pytest.mark.parametrize("numbers", [(2, 3), (3, 4, 6), (4, 3), (4, 4), (-1, 0, 1, 2, 3, 4, 5)])
def test_a_history_with_a_gap_is_refused(store: Store, numbers: tuple[int, ...]) -> None:
    now = document("a")
    earlier = tuple(
        Revision("a", number, "", (), "text/plain", {}, LONG_AGO_US, "x", "create", 1, "b")
        for number in numbers
    )
    assert [one.outcome for one in import_all(store, Incoming(now, earlier))] == ["failed"]


def test_a_batch_is_kept_whole_or_not_at_all(store: Store) -> None:
    def fails_afterwards(writer: Writer) -> None:
        import_documents(writer, [Incoming(document("a"))], ACTOR, Limits(), "update")
        raise StorageFull("no space")

    with pytest.raises(StorageFull):
        asyncio.run(store.write(LOCAL.tenant, fails_afterwards))
    assert asyncio.run(store.read(LOCAL.tenant, lambda reader: reader.documents.get("a"))) is None


KNOWN_METADATA = {"a": 1, "deep": {"list": [1, 2], "flag": True}}

CHANGES: dict[str, dict[str, object]] = {
    "body": {"body": "other text"},
    "title": {"title": "Other"},
    "no title": {"title": ""},
    "tags": {"tags": ("tag", "more")},
    "order of tags": {"tags": ("b", "tag")},
    "mime": {"mime": "text/markdown"},
    "parent": {"parent_id": "elsewhere"},
    "value in metadata": {"metadata": {**KNOWN_METADATA, "a": 2}},
    "key in metadata": {"metadata": {**KNOWN_METADATA, "b": None, "c": 1}},
    "no metadata": {"metadata": {}},
    "deep in metadata": {"metadata": {"a": 1, "deep": {"list": [2, 1], "flag": True}}},
    "number to true": {"metadata": {**KNOWN_METADATA, "a": True}},
    "true to number": {"metadata": {"a": 1, "deep": {"list": [1, 2], "flag": 1}}},
    "whole number to float": {"metadata": {**KNOWN_METADATA, "a": 1.0}},
    "number to text": {"metadata": {**KNOWN_METADATA, "a": "1"}},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_of_one_field_alone_is_a_change(store: Store, change: dict[str, object]) -> None:
    first = document("a", tags=("b", "tag"), metadata=KNOWN_METADATA)
    if change == CHANGES["order of tags"]:
        first = replace(first, tags=("tag", "b"))
    import_all(store, Incoming(first))
    (result,) = import_all(store, Incoming(replace(first, **change)))  # type: ignore[arg-type]
    assert result.outcome == "updated"
    after = stored(store, "a")
    assert after.revision == first.revision + 1
    (name, value), *_ = change.items()
    if isinstance(value, dict):
        value = {key: one for key, one in value.items() if one is not None}
    assert repr(getattr(after, name)) == repr(value)
    (again,) = import_all(store, Incoming(replace(first, **change)))  # type: ignore[arg-type]
    assert (again.outcome, stored(store, "a").revision) == ("unchanged", after.revision)


@pytest.mark.parametrize(
    "same",
    [
        {},
        {"metadata": dict(reversed(KNOWN_METADATA.items()))},
        {"metadata": {**KNOWN_METADATA, "none": None}},
        {"created_at_us": LONG_AGO_US - 5},
        {"updated_at_us": LONG_AGO_US + 5, "updated_by": "another"},
        {"revision": 99},
    ],
    ids=str,
)
def test_what_is_no_content_is_no_change(store: Store, same: dict[str, object]) -> None:
    first = document("a", metadata=KNOWN_METADATA)
    import_all(store, Incoming(first))
    before = stored(store, "a")
    (result,) = import_all(store, Incoming(replace(first, **same)))  # type: ignore[arg-type]
    assert result.outcome == "unchanged"
    assert stored(store, "a") == before


@pytest.mark.parametrize("has_labels", [True, False])
@pytest.mark.parametrize("created_at_us", [LONG_AGO_US - 10**12, LONG_AGO_US + 10**12])
def test_a_document_that_is_imported_again_keeps_when_it_was_created(
    store: Store, has_labels: bool, created_at_us: int
) -> None:
    import_all(store, Incoming(document("a")))
    newer = document("a", "newer text", created_at_us=created_at_us, revision=1)
    (result,) = import_all(store, Incoming(newer, has_labels=has_labels))
    after = stored(store, "a")
    assert (result.outcome, after.body, after.revision) == ("updated", "newer text", 6)
    assert after.created_at_us == LONG_AGO_US
    assert after.updated_at_us > LONG_AGO_US + 1


def test_the_chunks_of_a_long_document_are_made_before_its_transaction(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server on the same file could not write for seconds."""
    made, makers = terms.chunk_terms, []

    def noted(title: str, heading: str, text: str) -> ChunkTerms:
        makers.append(threading.current_thread().name)
        return made(title, heading, text)

    monkeypatch.setattr("zibaldone.text.chunk_changes.chunk_terms", noted)
    body = "\n\n".join(f"Paragraph {n} is about wombats." for n in range(3_000))
    assert len(body) > PREPARE_INLINE_CHARS_MAX
    for text in (body, f"{body}\n\nA numbat came by."):
        batch = [Incoming(document("a", text)), Incoming(document("b", "short " + text[-9:]))]
        writing = write_batch(store, LOCAL.tenant, batch, ACTOR, Limits(), "keep_edited")
        assert {one.outcome for one in asyncio.run(writing)} <= {"created", "updated"}
        assert len(makers) > 50
        assert sum("writer" in name for name in makers) == 1, "of the short one"
        makers.clear()
    assert stored(store, "a").body.endswith("came by.")


def test_a_deleted_document_with_the_text_of_a_long_one_has_no_chunks(store: Store) -> None:
    body = "A wombat. " * (PREPARE_INLINE_CHARS_MAX // 10 + 1)
    gone = document("gone", body, deleted_at_us=LONG_AGO_US + 1, operation="delete")
    batch = [Incoming(document("here", body)), Incoming(gone)]
    asyncio.run(write_batch(store, LOCAL.tenant, batch, ACTOR, Limits(), "keep_edited"))

    def count(reader: Reader) -> list[bool]:
        found = map(reader.documents.get, ("here", "gone"))
        return [bool(reader.chunks.stored(one)) for one in found if one is not None]

    assert asyncio.run(store.read(LOCAL.tenant, count)) == [True, False]
