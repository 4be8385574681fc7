"""Chunks: what is shown of them, and storing those of a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import apsw
import orjson

from zibaldone.access.principal import Tenant
from zibaldone.model.chunk import ChunkChanges, ChunkTerms, ChunkView, StoredChunk
from zibaldone.model.document import Document
from zibaldone.store import rows, statements
from zibaldone.store.sqlite import vector_log
from zibaldone.store.sqlite.match import column_text
from zibaldone.store.tenants import range_values

_ID_AND_NAME: rows.Kinds = (str, str)
_KEY_AND_ID: rows.Kinds = (int, str)
_STORED: rows.Kinds = (int, bytes, int, int, int)

_SQL = statements.load("zibaldone.store.sqlite", "chunks.sql")


def add_terms(raw: apsw.Connection, terms: Mapping[Any, ChunkTerms]) -> None:
    """Make chunks found by their terms, by chunk key."""
    raw.executemany(
        _SQL["insert_terms"],
        [
            {
                "chunk_key": key,
                "title": column_text(of_chunk.title),
                "heading": column_text(of_chunk.heading),
                "body": column_text(of_chunk.body),
            }
            for key, of_chunk in terms.items()
        ],
    )


def replace_terms(raw: apsw.Connection, terms: Mapping[int, ChunkTerms]) -> None:
    """Make chunks found by other terms than before."""
    raw.executemany(_SQL["delete_terms"], [{"chunk_key": key} for key in terms])
    add_terms(raw, terms)


class ChunkTable:
    """The chunks of a document by its storage key, whoever asks."""

    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    def stored(self, document_key: int) -> list[StoredChunk]:
        selected = self._raw.execute(_SQL["stored"], {"document_key": document_key})
        return [StoredChunk(*rows.require(row, _STORED)) for row in selected]

    def apply(self, document_key: int, changes: ChunkChanges) -> None:
        if changes.removed:
            gone = [{"chunk_key": key} for key in changes.removed]
            vector_log.append_removed(self._raw, changes.removed)
            for statement in ("delete_terms", "delete_vectors"):
                self._raw.executemany(_SQL[statement], gone)
            self._raw.execute(_SQL["delete"], {"chunk_keys": rows.dumps(list(changes.removed))})
        if changes.moved:
            self._raw.executemany(
                _SQL["move"],
                [
                    {
                        "chunk_key": chunk.chunk_key,
                        "chunk_index": chunk.index,
                        "start_char": chunk.start,
                        "end_char": chunk.end,
                    }
                    for chunk in changes.moved
                ],
            )
        if changes.added:
            self._add(document_key, changes)

    def _add(self, document_key: int, changes: ChunkChanges) -> None:
        first_key = int(self._raw.execute(_SQL["last_key"]).get) + 1
        keyed = dict(enumerate(changes.added, first_key))
        self._raw.executemany(
            _SQL["insert"],
            [
                {
                    "chunk_key": key,
                    "document_key": document_key,
                    "chunk_index": chunk.index,
                    "start_char": chunk.start,
                    "end_char": chunk.end,
                    "heading": chunk.heading,
                    "body": chunk.text,
                    "content_hash": chunk.content_hash,
                }
                for key, chunk in keyed.items()
            ],
        )
        add_terms(self._raw, {key: chunk.terms for key, chunk in keyed.items()})


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
        selected = self._raw.execute(_SQL["stored_visible"], values)
        return [StoredChunk(*rows.require(row, _STORED)) for row in selected]

    def apply(self, document: Document, changes: ChunkChanges) -> None:
        self._table.apply(rows.storage_key(document), changes)


def _listed(values: Iterable[object]) -> str:
    return orjson.dumps(list(values)).decode()
