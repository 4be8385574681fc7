"""The passages of a document: those that stayed the same keep their keys, and so their vectors."""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Sequence

import apsw

from zibaldone.store import statements
from zibaldone.store.upkeep import PassagesReplaced
from zibaldone.text.chunk import Chunk
from zibaldone.text.tokens import index_terms

_SQL = statements.load("zibaldone.store.sqlite", "passages.sql")


def replace_passages(
    raw: apsw.Connection, document_key: int | None, title: str, chunks: Sequence[Chunk]
) -> PassagesReplaced:
    """Make these the document's passages."""
    stored: defaultdict[bytes, deque[tuple[int, int, int, int]]] = defaultdict(deque)
    for chunk_key, digest, *place in raw.execute(
        _SQL["stored_chunks"], {"document_key": document_key}
    ):
        stored[digest].append((chunk_key, *place))
    title_terms = " ".join(index_terms(title))
    added = moved = removed = 0
    for chunk in chunks:
        digest = _passage_hash(title, chunk)
        if same := stored.get(digest):
            chunk_key, *place = same.popleft()
            if place != [chunk.index, chunk.start, chunk.end]:
                _move(raw, chunk_key, chunk)
                moved += 1
        else:
            _insert(raw, document_key, chunk, digest, title_terms)
            added += 1
    for gone in stored.values():
        for chunk_key, *_ in gone:
            _delete(raw, chunk_key)
            removed += 1
    return PassagesReplaced(added, moved, removed)


def _move(raw: apsw.Connection, chunk_key: int, chunk: Chunk) -> None:
    raw.execute(
        _SQL["move_chunk"],
        {
            "chunk_key": chunk_key,
            "chunk_index": chunk.index,
            "start_char": chunk.start,
            "end_char": chunk.end,
        },
    )


def _insert(
    raw: apsw.Connection, document_key: int | None, chunk: Chunk, digest: bytes, title_terms: str
) -> None:
    (chunk_key,) = raw.execute(
        _SQL["insert_chunk"],
        {
            "document_key": document_key,
            "chunk_index": chunk.index,
            "start_char": chunk.start,
            "end_char": chunk.end,
            "heading": chunk.heading,
            "body": chunk.text,
            "content_hash": digest,
        },
    ).fetchone()  # type: ignore[misc]
    raw.execute(
        _SQL["insert_terms"],
        {
            "chunk_key": chunk_key,
            "title": title_terms,
            "heading": " ".join(index_terms(chunk.heading)),
            "body": " ".join(index_terms(chunk.text)),
        },
    )


def _delete(raw: apsw.Connection, chunk_key: int) -> None:
    for statement in ("delete_terms", "log_vectors", "delete_vectors", "delete_chunk"):
        raw.execute(_SQL[statement], {"chunk_key": chunk_key})


def _passage_hash(title: str, chunk: Chunk) -> bytes:
    """Everything that is indexed with a passage: when one of these changes, it is a new one."""
    text = f"{title}\0{chunk.heading}\0{chunk.text}"
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
