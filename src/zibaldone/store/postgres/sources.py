"""Sources: how their documents are cut, and which were cut by an earlier definition."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from zibaldone.access.principal import Tenant
from zibaldone.model.chunking import Chunking
from zibaldone.store import rows, statements
from zibaldone.store.definition import stored_chunking
from zibaldone.store.port import SourceCounts
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.locks import lock_documents, lock_source, lock_source_alone
from zibaldone.store.rows import UnreadableRowError
from zibaldone.store.tenants import range_values
from zibaldone.store.upkeep import DocumentText, Source

_SQL = statements.load("zibaldone.store.postgres", "sources.sql")

_DEFINITION: rows.Kinds = (str, str)
_TEXT: rows.Kinds = (int, str, str, str)
_COUNTS: rows.Kinds = (int, str, int, rows.INT_OR_NONE, int, int)


class _Definitions:
    """How each source is set up, by its id."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def chunking(self, source_id: int) -> Chunking:
        lock_source(self._transaction, source_id)
        return stored_chunking(*self._definition(source_id))

    def _definition(self, source_id: int) -> tuple[str, str]:
        known = self._transaction.definitions.get(source_id)
        if known is not None:
            return known
        row = self._transaction.row(_SQL["definition"], {"source_id": source_id})
        if row is None:
            raise UnreadableRowError(f"there is no source {source_id}")
        name, definition = rows.require(row, _DEFINITION)
        if self._transaction.is_write:  # it is locked
            self._transaction.definitions[source_id] = (name, definition)
        return name, definition


class Sources(_Definitions):
    """Bound to one tenant: what a source holds beyond it is not counted."""

    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        super().__init__(transaction)
        self._tenant = tenant

    def counts(self) -> list[SourceCounts]:
        selected = self._transaction.execute(_SQL["visible"], range_values(self._tenant))
        return [
            SourceCounts(source_id, name, bool(enabled), synced_at_us, documents, chunks)
            for source_id, name, enabled, synced_at_us, documents, chunks in (
                rows.require(row, _COUNTS) for row in selected
            )
        ]


class SourceUpkeep(_Definitions):
    """Across namespaces, like all upkeep."""

    def all(self) -> list[Source]:
        return [rows.source(row) for row in self._transaction.execute(_SQL["all"])]

    def set_chunking(self, source_id: int, chunking: Chunking) -> int:
        lock_source_alone(self._transaction, source_id)
        _, stored = self._definition(source_id)
        definition = orjson.loads(stored)
        if not isinstance(definition, dict):
            definition = {}  # one that is no object has nothing else
        definition["chunking"] = chunking.as_dict()
        values = {"source_id": source_id, "definition": rows.dumps(definition)}
        version: int = self._transaction.value(_SQL["set_chunking"], values)
        self._transaction.definitions.clear()
        return version

    def chunking_version(self, source_id: int) -> int:
        lock_source(self._transaction, source_id)
        version: int = self._transaction.value(_SQL["chunking_version"], {"source_id": source_id})
        return version

    def stale(self, source_id: int, *, after: int, limit: int) -> list[tuple[int, int]]:
        values = {"source_id": source_id, "after": after, "limit": limit}
        return [(key, chars) for key, chars in self._transaction.execute(_SQL["stale"], values)]

    def set_cut(self, source_id: int, document_keys: Iterable[int]) -> None:
        values = {"source_id": source_id, "document_keys": list(document_keys)}
        self._transaction.defer(_SQL["set_cut"], values)

    def texts(self, source_id: int, document_keys: Iterable[int]) -> list[DocumentText]:
        keys = list(document_keys)
        lock_documents(self._transaction, keys)
        values = {"source_id": source_id, "document_keys": keys}
        selected = self._transaction.execute(_SQL["texts"], values)
        return [DocumentText(*rows.require(row, _TEXT)) for row in selected]
