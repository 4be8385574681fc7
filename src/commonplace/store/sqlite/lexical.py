"""Passages and the keyword index over them."""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Sequence

import apsw

from commonplace.access.principal import Scope
from commonplace.model.document import Document
from commonplace.store import statements
from commonplace.store.port import LexicalHit
from commonplace.store.sqlite import rows
from commonplace.text.chunk import Chunk
from commonplace.text.normalize import prefix_end
from commonplace.text.tokens import Query, index_terms, to_fts5

_HIT: rows.Kinds = (int, str, int, str, str, str, int, float)

_SQL = statements.load("commonplace.store.sqlite", "lexical.sql")


class Lexical:
    def __init__(self, raw: apsw.Connection, scope: Scope) -> None:
        self._raw = raw
        self._scope = scope

    def search(self, query: Query, *, limit: int, prefix: str = "") -> list[LexicalHit]:
        match = to_fts5(query)
        start = max(prefix, self._scope.prefix, key=len)
        in_scope = start.startswith(prefix) and start.startswith(self._scope.prefix)
        if not match or not in_scope:
            return []
        found = self._raw.execute(
            _SQL["search"],
            {
                "match": match,
                "namespace": self._scope.namespace,
                "start": start,
                "end": prefix_end(start),
                "limit": limit,
            },
        )
        return [LexicalHit(*rows.require(row, _HIT)) for row in found]

    def replace(self, document: Document, chunks: Sequence[Chunk]) -> None:
        stored: defaultdict[bytes, deque[tuple[int, int, int, int]]] = defaultdict(deque)
        key = document.storage_key
        for chunk_key, digest, *place in self._raw.execute(
            _SQL["stored_chunks"], {"document_key": key}
        ):
            stored[digest].append((chunk_key, *place))
        title_terms = " ".join(index_terms(document.title))
        for chunk in chunks:
            digest = _passage_hash(document.title, chunk)
            if same := stored.get(digest):
                chunk_key, *place = same.popleft()
                if place != [chunk.index, chunk.start, chunk.end]:
                    self._move(chunk_key, chunk)
            else:
                self._insert(key, chunk, digest, title_terms)
        for gone in stored.values():
            for chunk_key, *_ in gone:
                self._delete(chunk_key)

    def _move(self, chunk_key: int, chunk: Chunk) -> None:
        self._raw.execute(
            _SQL["move_chunk"],
            {
                "chunk_key": chunk_key,
                "chunk_index": chunk.index,
                "start_char": chunk.start,
                "end_char": chunk.end,
            },
        )

    def _insert(
        self, document_key: int | None, chunk: Chunk, digest: bytes, title_terms: str
    ) -> None:
        (chunk_key,) = self._raw.execute(
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
        self._raw.execute(
            _SQL["insert_terms"],
            {
                "chunk_key": chunk_key,
                "title": title_terms,
                "heading": " ".join(index_terms(chunk.heading)),
                "body": " ".join(index_terms(chunk.text)),
            },
        )

    def _delete(self, chunk_key: int) -> None:
        for statement in ("delete_terms", "delete_vectors", "delete_chunk"):
            self._raw.execute(_SQL[statement], {"chunk_key": chunk_key})


def _passage_hash(title: str, chunk: Chunk) -> bytes:
    """Everything that is indexed with a passage: when one of these changes, it is a new one."""
    text = f"{title}\0{chunk.heading}\0{chunk.text}"
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
