"""Chunks: what is shown of them, and storing those of a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import apsw
import orjson

from zibaldone.access.principal import Tenant
from zibaldone.model.chunk import ChunkChanges, ChunkTerms, ChunkView, NewChunk, StoredChunk
from zibaldone.model.document import Document
from zibaldone.store import rows, statements
from zibaldone.store.sqlite import vector_log
from zibaldone.store.sqlite.match import column_text
from zibaldone.store.tenants import range_values

_ID_AND_NAME: rows.Kinds = (str, str)
_KEY_AND_ID: rows.Kinds = (int, str)

_SQL = statements.load("zibaldone.store.sqlite", "chunks.sql")

T = TypeVar("T")


_AT_ONCE = 1_000
"""Chunks of one statement. SQLite lets go of the interpreter at each step, and where others compute
it takes a millisecond to get it back: with a step for each chunk, a long document would hold the
writer for twenty seconds."""


def add_terms(raw: apsw.Connection, terms: Mapping[Any, ChunkTerms]) -> None:
    """Make chunks found by their terms, by chunk key."""
    for some in _batched(terms.items()):
        listed = _listed(
            (key, *map(column_text, (of_chunk.title, of_chunk.heading, of_chunk.body)))
            for key, of_chunk in some
        )
        raw.execute(_SQL["insert_terms"], {"terms": listed})


def replace_terms(raw: apsw.Connection, terms: Mapping[int, ChunkTerms]) -> None:
    """Make chunks found by other terms than before."""
    raw.execute(_SQL["delete_terms"], {"chunk_keys": _listed(terms)})
    add_terms(raw, terms)


class ChunkTable:
    """The chunks of a document by its storage key, whoever asks."""

    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    def stored(self, document_key: int) -> list[StoredChunk]:
        return _stored(self._raw.execute(_SQL["stored"], {"document_key": document_key}).get)

    def apply(self, document_key: int, changes: ChunkChanges) -> None:
        if changes.removed:
            vector_log.append_removed(self._raw, changes.removed)
            gone = {"chunk_keys": _listed(changes.removed)}
            for statement in ("delete_terms", "delete_vectors", "delete"):
                self._raw.execute(_SQL[statement], gone)
        for moved in _batched(changes.moved):
            listed = _listed(
                (chunk.chunk_key, chunk.index, chunk.start, chunk.end) for chunk in moved
            )
            self._raw.execute(_SQL["move"], {"moved": listed})
        for added in _batched(changes.added):
            self._add(document_key, added)

    def _add(self, document_key: int, added: Sequence[NewChunk]) -> None:
        listed = _listed(
            (
                chunk.index,
                chunk.start,
                chunk.end,
                chunk.heading,
                chunk.text,
                chunk.content_hash.hex(),
            )
            for chunk in added
        )
        self._raw.execute(_SQL["insert"], {"document_key": document_key, "chunks": listed})
        first = self._raw.last_insert_rowid() - len(added) + 1
        add_terms(self._raw, {first + number: chunk.terms for number, chunk in enumerate(added)})


class Chunks:
    """Bound to one tenant: chunks outside it are left out."""

    def __init__(self, raw: apsw.Connection, tenant: Tenant) -> None:
        self._raw = raw
        self._tenant = tenant
        self._table = ChunkTable(raw)

    def views(self, chunk_keys: Iterable[int]) -> dict[int, ChunkView]:
        views = self._views("views", {"chunk_keys": _listed(chunk_keys)})
        return {view.chunk_key: view for view in views}

    def views_at(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], ChunkView]:
        views = self._views("views_at", {"places": _listed(places)})
        return {(view.document_id, view.chunk_index): view for view in views}

    def _views(self, statement: str, values: dict[str, str]) -> list[ChunkView]:
        selected = self._raw.execute(_SQL[statement], {**range_values(self._tenant), **values})
        return [rows.chunk_view(row) for row in selected]

    def documents_of(self, chunk_keys: Iterable[int]) -> dict[int, str]:
        values = {**range_values(self._tenant), "chunk_keys": _listed(chunk_keys)}
        selected = self._raw.execute(_SQL["documents_of"], values)
        return {row[0]: row[1] for row in (rows.require(row, _KEY_AND_ID) for row in selected)}

    def source_names(self, document_ids: Iterable[str]) -> dict[str, str]:
        values = {**range_values(self._tenant), "document_ids": _listed(document_ids)}
        selected = self._raw.execute(_SQL["source_names"], values)
        return {row[0]: row[1] for row in (rows.require(row, _ID_AND_NAME) for row in selected)}

    def stored(self, document: Document) -> list[StoredChunk]:
        values = {**range_values(self._tenant), "document_key": rows.storage_key(document)}
        return _stored(self._raw.execute(_SQL["stored_visible"], values).get)

    def apply(self, document: Document, changes: ChunkChanges) -> None:
        self._table.apply(rows.storage_key(document), changes)


def _batched(items: Iterable[T]) -> Iterator[Sequence[T]]:
    """As many at a time as one statement is given."""
    left = iter(items)
    while some := list(islice(left, _AT_ONCE)):
        yield some


def _stored(listed: str) -> list[StoredChunk]:
    return [
        StoredChunk(key, bytes.fromhex(digest), *place)
        for key, digest, *place in orjson.loads(listed)
    ]


def _listed(values: Iterable[object]) -> str:
    return orjson.dumps(list(values)).decode()
