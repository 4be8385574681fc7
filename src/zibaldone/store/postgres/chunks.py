"""Chunks: what is shown of them, and storing those of a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from zibaldone.access.principal import Tenant
from zibaldone.model.chunk import ChunkChanges, ChunkView, StoredChunk
from zibaldone.model.document import Document
from zibaldone.store import rows, statements
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.locks import lock_documents
from zibaldone.store.postgres.terms import add_terms, remove_terms
from zibaldone.store.tenants import range_values

_SQL = statements.load("zibaldone.store.postgres", "chunks.sql")

_ID_AND_NAME: rows.Kinds = (str, str)
_KEY_AND_ID: rows.Kinds = (int, str)
_STORED: rows.Kinds = (int, bytes, int, int, int)


class ChunkTable:
    """The chunks of a document by its storage key, whoever asks."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def stored(self, document_key: int) -> list[StoredChunk]:
        lock_documents(self._transaction, [document_key])
        selected = self._transaction.execute(_SQL["stored"], {"document_key": document_key})
        return [StoredChunk(*rows.require(row, _STORED)) for row in selected]

    def apply(self, document_key: int, changes: ChunkChanges) -> None:
        if changes.removed:
            self._remove(document_key, list(changes.removed))
        if changes.moved:
            self._transaction.defer(
                _SQL["move"],
                {
                    "document_key": document_key,
                    "chunk_keys": [chunk.chunk_key for chunk in changes.moved],
                    **_places(changes.moved),
                },
            )
        if changes.added:
            self._add(document_key, changes)

    def _remove(self, document_key: int, chunk_keys: list[int]) -> None:
        remove_terms(self._transaction, chunk_keys)
        values = {"document_key": document_key, "chunk_keys": chunk_keys}
        self._transaction.defer(_SQL["delete"], values)
        # Last: a worker may be storing some, and the chunks cannot go before it is done.
        self._transaction.defer(_SQL["delete_vectors"], {"chunk_keys": chunk_keys})

    def _add(self, document_key: int, changes: ChunkChanges) -> None:
        self._transaction.new_documents.discard(document_key)
        keys = self._transaction.execute(
            _SQL["insert"],
            {
                "document_key": document_key,
                "headings": [chunk.heading for chunk in changes.added],
                "bodies": [chunk.text for chunk in changes.added],
                "hashes": [chunk.content_hash for chunk in changes.added],
                **_places(changes.added),
            },
        )
        terms = {chunk.index: chunk.terms for chunk in changes.added}
        add_terms(self._transaction, {key: terms[index] for index, key in keys})


class Chunks:
    """Bound to one tenant: chunks outside it are left out."""

    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        self._transaction = transaction
        self._tenant = tenant
        self._table = ChunkTable(transaction)

    def views(self, chunk_keys: Iterable[int]) -> dict[int, ChunkView]:
        selected = self._select("views", {"chunk_keys": list(chunk_keys)})
        return {view.chunk_key: view for view in map(rows.chunk_view, selected)}

    def views_at(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], ChunkView]:
        listed = list(places)
        values = {
            "document_ids": [document_id for document_id, _ in listed],
            "indexes": [index for _, index in listed],
        }
        selected = self._select("views_at", values)
        return {
            (view.document_id, view.chunk_index): view for view in map(rows.chunk_view, selected)
        }

    def documents_of(self, chunk_keys: Iterable[int]) -> dict[int, str]:
        selected = self._select("documents_of", {"chunk_keys": list(chunk_keys)})
        return {row[0]: row[1] for row in (rows.require(row, _KEY_AND_ID) for row in selected)}

    def source_names(self, document_ids: Iterable[str]) -> dict[str, str]:
        selected = self._select("source_names", {"document_ids": list(document_ids)})
        return {row[0]: row[1] for row in (rows.require(row, _ID_AND_NAME) for row in selected)}

    def _select(self, statement: str, values: dict[str, Any]) -> list[rows.Row]:
        return self._transaction.execute(_SQL[statement], {**range_values(self._tenant), **values})

    def stored(self, document: Document) -> list[StoredChunk]:
        key = rows.storage_key(document)
        if key in self._transaction.new_documents:
            return []
        lock_documents(self._transaction, [key])
        selected = self._select("stored_visible", {"document_key": key})
        return [StoredChunk(*rows.require(row, _STORED)) for row in selected]

    def apply(self, document: Document, changes: ChunkChanges) -> None:
        self._table.apply(rows.storage_key(document), changes)


def _places(chunks: Sequence[Any]) -> dict[str, list[int]]:
    return {
        "indexes": [chunk.index for chunk in chunks],
        "starts": [chunk.start for chunk in chunks],
        "ends": [chunk.end for chunk in chunks],
    }
