"""Chunks: what is shown of them, and storing those of a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw
import orjson

from zibaldone.access.principal import Tenant
from zibaldone.model.chunk import ChunkChanges, ChunkView, NewChunk, StoredChunk
from zibaldone.model.document import Document
from zibaldone.store import rows, statements
from zibaldone.store.sqlite import vector_log
from zibaldone.store.sqlite.batches import batched
from zibaldone.store.sqlite.term_steps import TermSteps, are_many, is_long_removal
from zibaldone.store.sqlite.terms import add_terms, remove_terms
from zibaldone.store.tenants import range_values

_ID_AND_NAME: rows.Kinds = (str, str)
_KEY_AND_ID: rows.Kinds = (int, str)
_STORED: rows.Kinds = (int, str, int, int, int)

_SQL = statements.load("zibaldone.store.sqlite", "chunks.sql")


class ChunkTable:
    """The chunks of a document by its storage key, whoever asks.

    `later`: receives the terms of a long change. Without it they are stored with the chunks.
    """

    def __init__(self, raw: apsw.Connection, later: TermSteps | None = None) -> None:
        self._raw = raw
        self._later = later

    def stored(self, document_key: int) -> list[StoredChunk]:
        return _stored(self._raw.execute(_SQL["stored"], {"document_key": document_key}).get)

    def apply(self, document_key: int, changes: ChunkChanges) -> None:
        if changes.removed:
            self._remove(changes.removed)
        for moved in batched(changes.moved):
            listed = _listed(
                (chunk.chunk_key, chunk.index, chunk.start, chunk.end) for chunk in moved
            )
            self._raw.execute(_SQL["move"], {"moved": listed})
        is_long = are_many(chunk.terms for chunk in changes.added)
        for added in batched(changes.added):
            self._add(document_key, added, self._later if is_long else None)

    def _remove(self, chunk_keys: Sequence[int]) -> None:
        vector_log.append_removed(self._raw, chunk_keys)
        if self._later is not None and is_long_removal(chunk_keys):
            self._later.remove(self._raw, chunk_keys)
        else:
            remove_terms(self._raw, chunk_keys)
        gone = {"chunk_keys": _listed(chunk_keys)}
        self._raw.execute(_SQL["delete_vectors"], gone)
        self._raw.execute(_SQL["delete"], gone)

    def _add(self, document_key: int, added: Sequence[NewChunk], later: TermSteps | None) -> None:
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
        terms = {first + number: chunk.terms for number, chunk in enumerate(added)}
        if later is None:
            add_terms(self._raw, terms)
        else:
            later.add(self._raw, terms)


class Chunks:
    """Bound to one tenant: chunks outside it are left out."""

    def __init__(
        self, raw: apsw.Connection, tenant: Tenant, later: TermSteps | None = None
    ) -> None:
        self._raw = raw
        self._tenant = tenant
        self._table = ChunkTable(raw, later)

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


def _stored(listed: str) -> list[StoredChunk]:
    stored = (rows.require(row, _STORED) for row in orjson.loads(listed))
    return [StoredChunk(key, bytes.fromhex(digest), *place) for key, digest, *place in stored]


def _listed(values: Iterable[object]) -> str:
    return rows.dumps(list(values))
