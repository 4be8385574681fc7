"""Chunks: those that an edit leaves as they were keep their identity, and so their vectors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.store.backends import Backend
from tests.store.kept import Kept
from zibaldone.model.chunk import ChunkChanges, ChunkTerms, JoinedRuns, NewChunk, StoredChunk
from zibaldone.model.document import Document
from zibaldone.store.port import Writer
from zibaldone.store.upkeep import Upkeep
from zibaldone.text.chunk import Chunk
from zibaldone.text.chunk_changes import chunk_changes
from zibaldone.text.query import parse_query


def chunks_of(*texts: str, heading: str = "") -> list[Chunk]:
    chunks, start = [], 0
    for index, text in enumerate(texts):
        chunks.append(Chunk(index, start, start + len(text), heading, text))
        start += len(text) + 1
    return chunks


@pytest.fixture
def document(kept: Kept) -> Document:
    """A document whose chunks the tests set themselves."""
    return kept.create("d", "", title="Animals")


def keys(backend: Backend) -> dict[str, int]:
    return dict(backend.query("SELECT body, chunk_key FROM chunks ORDER BY chunk_index"))


def test_unchanged_chunks_keep_their_keys_and_changed_ones_their_words(
    kept: Kept, backend: Backend, document: Document
) -> None:
    kept.put_chunks(document, chunks_of("zebra one", "lion two", "okapi three"))
    before = keys(backend)
    kept.put_chunks(document, chunks_of("zebra one", "tiger two", "okapi three"))
    after = keys(backend)
    assert list(after) == ["zebra one", "tiger two", "okapi three"]
    assert (after["zebra one"], after["okapi three"]) == (
        before["zebra one"], before["okapi three"],
    )  # fmt: skip
    assert after["tiger two"] not in before.values()
    assert kept.found("lion") == set()
    assert [hit.chunk_key for hit in kept.search("tiger")] == [after["tiger two"]]
    assert backend.indexed_chunks() == 3


def test_a_chunk_that_moved_keeps_its_key_and_says_where_it_is(
    kept: Kept, backend: Backend, document: Document
) -> None:
    kept.put_chunks(document, chunks_of("zebra", "lion"))
    before = keys(backend)
    kept.put_chunks(document, chunks_of("a new beginning", "lion", "zebra"))
    assert {text: key for text, key in keys(backend).items() if text in before} == before
    (hit,) = kept.search("zebra")
    assert (hit.chunk_index, hit.start, hit.chunk_key) == (2, 21, before["zebra"])


def test_chunks_with_the_same_text_are_told_apart(
    kept: Kept, backend: Backend, document: Document
) -> None:
    kept.put_chunks(document, chunks_of("again", "again", "again"))
    rows = backend.query("SELECT chunk_key FROM chunks ORDER BY chunk_index")
    assert len(set(rows)) == 3
    kept.put_chunks(document, chunks_of("again", "again"))
    assert backend.query("SELECT chunk_key FROM chunks ORDER BY chunk_index") == rows[:2]
    assert backend.indexed_chunks() == 2


def test_a_heading_is_part_of_a_chunk(kept: Kept, backend: Backend, document: Document) -> None:
    kept.put_chunks(document, chunks_of("text", heading="Savanna"))
    before = keys(backend)
    assert kept.found("savanna") == {"d"}
    kept.put_chunks(document, chunks_of("text", heading="Jungle"))
    assert keys(backend)["text"] != before["text"]
    assert kept.found("savanna") == set()
    assert [hit.heading for hit in kept.search("jungle")] == ["Jungle"]


def test_a_new_title_is_found_and_the_old_one_is_not(kept: Kept) -> None:
    kept.create("d", "some text about them", title="Zebras")
    assert kept.found("title:zebras") == {"d"}
    kept.update("d", title="Giraffes")
    assert kept.found("title:zebras") == kept.found("zebras") == set()
    assert kept.found("title:giraffes") == {"d"}
    assert kept.found("text") == {"d"}


def test_an_edit_of_one_place_leaves_the_other_chunks_of_a_long_document(
    kept: Kept, backend: Backend
) -> None:
    paragraphs = [f"Paragraph {number} says word{number}. " * 20 for number in range(12)]
    kept.create("long", "\n\n".join(paragraphs))
    before = keys(backend)
    assert len(before) > 4
    kept.patch("long", paragraphs[11], paragraphs[11].replace("says", "told"))
    after = keys(backend)
    changed = before.keys() ^ after.keys()
    assert changed
    assert len(before.keys() & after.keys()) >= len(before) - 3
    assert all(after[text] == before[text] for text in before.keys() & after.keys())


def test_deleting_takes_the_chunks_and_recreating_brings_new_ones(
    kept: Kept, backend: Backend
) -> None:
    kept.create("d", "zebra")
    (old_key,) = keys(backend).values()
    kept.delete("d")
    assert (keys(backend), backend.indexed_chunks(), kept.found("zebra")) == ({}, 0, set())
    kept.create("d", "zebra")
    (new_key,) = keys(backend).values()
    assert new_key != old_key  # a key is never used again: a late vector cannot land on it
    assert kept.found("zebra") == {"d"}


def test_a_chunk_that_goes_takes_its_vectors_along(
    kept: Kept, backend: Backend, document: Document
) -> None:
    kept.put_chunks(document, chunks_of("zebra", "lion"))
    before = list(keys(backend).values())

    def embed_all(work: Upkeep) -> list[int]:
        models = [work.models.id(name, 2, 0) for name in ("m", "n")]
        for model_id in models:
            work.vectors.put(model_id, before, np.eye(2, dtype=np.float32))
        return models

    first, second = kept.upkeep(embed_all)
    kept.put_chunks(document, chunks_of("zebra", "tiger"))
    kept_key = keys(backend)["zebra"]
    assert backend.query("SELECT model_id, chunk_key FROM vectors ORDER BY 1") == [
        (first, kept_key), (second, kept_key),
    ]  # fmt: skip


def test_search_finds_live_documents_only_best_first(kept: Kept) -> None:
    kept.create("much", "zebra zebra zebra")
    kept.create("little", "one zebra among many other words that are about other animals")
    kept.create("gone", "zebra")
    kept.delete("gone")
    assert [hit.document_id for hit in kept.search("zebra")] == ["much", "little"]
    (_, best), (_, second) = kept.scored("zebra")
    assert best > second > 0
    assert kept.found("zebra", prefix="mu") == {"much"}
    assert kept.found("zebra", prefix="x") == set()


def test_a_hit_says_where_its_text_stands(kept: Kept) -> None:
    body = "# Animals\n\nA zebra.\n\n# Plants\n\nA baobab."
    document = kept.create("d", body)
    for hit in kept.search("zebra baobab"):
        assert body[hit.start : hit.start + len(hit.text)] == hit.text
        assert hit.title == document.title


def test_a_shared_key_space_does_not_mix_documents(kept: Kept, backend: Backend) -> None:
    first, second = kept.create("a", ""), kept.create("b", "")
    kept.put_chunks(first, chunks_of("same"))
    kept.put_chunks(second, chunks_of("same"))
    kept.put_chunks(replace(first, title="t"), [])
    assert kept.found("same") == {"b"}
    assert backend.indexed_chunks() == 1


def test_what_is_stored_says_what_the_changes_made_of_it(kept: Kept, document: Document) -> None:
    def stored() -> list[StoredChunk]:
        return kept.write(lambda writer: writer.chunks.stored(document))

    assert stored() == []
    changes = kept.put_chunks(document, chunks_of("zebra", "lion", "okapi"))
    assert (len(changes.added), changes.moved, changes.removed) == (3, [], [])
    zebra, lion, okapi = stored()
    assert [(chunk.index, chunk.start, chunk.end) for chunk in stored()] == [
        (0, 0, 5), (1, 6, 10), (2, 11, 16),
    ]  # fmt: skip
    assert [chunk.content_hash for chunk in stored()] == [
        chunk.content_hash for chunk in changes.added
    ]

    changes = kept.put_chunks(document, chunks_of("okapi", "lion", "tiger"))
    assert [chunk.text for chunk in changes.added] == ["tiger"]
    # "lion" is where it was: between two words of the same length.
    assert [chunk.chunk_key for chunk in changes.moved] == [okapi.chunk_key]
    assert changes.removed == [zebra.chunk_key]
    first, second, third = stored()
    assert (first.chunk_key, second) == (okapi.chunk_key, lion)
    assert third.chunk_key not in {zebra.chunk_key, lion.chunk_key, okapi.chunk_key}
    assert not kept.put_chunks(document, chunks_of("okapi", "lion", "tiger"))
    assert stored() == [first, second, third]


def test_no_changes_change_nothing(kept: Kept, backend: Backend, document: Document) -> None:
    kept.put_chunks(document, chunks_of("zebra"))
    before = keys(backend)
    kept.write(lambda writer: writer.chunks.apply(document, ChunkChanges()))
    assert (keys(backend), kept.found("zebra")) == (before, {"d"})


def test_a_writer_finds_what_it_added_and_no_longer_what_it_removed(
    kept: Kept, document: Document
) -> None:
    kept.put_chunks(document, chunks_of("zebra"))

    def work(writer: Writer) -> tuple[int, int]:
        stored = writer.chunks.stored(document)
        writer.chunks.apply(document, chunk_changes(stored, "", chunks_of("lion")))
        counts = (
            len(writer.lexical.search(parse_query(word), limit=9)) for word in ("zebra", "lion")
        )
        return next(counts), next(counts)

    assert kept.write(work) == (0, 1)


def test_terms_of_one_run_make_phrases_and_no_phrase_spans_two(
    kept: Kept, document: Document
) -> None:
    terms = ChunkTerms(
        title=JoinedRuns([["head"]]),
        heading=JoinedRuns([[]]),
        body=JoinedRuns([["red", "fox"], ["run"]]),
    )
    chunk = NewChunk(0, 0, 3, "", "The text does not matter.", b"hash", terms)
    kept.write(lambda writer: writer.chunks.apply(document, ChunkChanges(added=[chunk])))
    for words, is_found in {
        '"red fox"': True,
        '"fox run"': False,
        "running": True,  # stems are compared as they are given
        "title:heads": True,
        "title:fox": False,
        "matter": False,
    }.items():
        assert bool(kept.scored(words)) is is_found, words
