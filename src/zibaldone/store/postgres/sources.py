"""Sources: how their documents are cut, and which were cut by an earlier definition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from zibaldone.access.principal import Tenant
from zibaldone.model.chunking import Chunking
from zibaldone.model.document import KB_SOURCE_ID
from zibaldone.store import rows, statements
from zibaldone.store.definition import cuts_alike, stored_chunking
from zibaldone.store.port import SourceCounts, SourceRecord
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.locks import (
    lock_documents,
    lock_source,
    lock_source_alone,
    lock_source_names,
)
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

    def all(self) -> list[SourceRecord]:
        selected = self._transaction.execute(_SQL["records"], {"namespace": self._tenant.namespace})
        return [rows.source_record(row) for row in selected]

    def get(self, source_id: int) -> SourceRecord | None:
        values = {"source_id": source_id, "namespace": self._tenant.namespace}
        row = self._transaction.row(_SQL["record"], values)
        return None if row is None else rows.source_record(row)

    def named(self, name: str) -> SourceRecord | None:
        values = {"name": name, "namespace": self._tenant.namespace}
        row = self._transaction.row(_SQL["named"], values)
        return None if row is None else rows.source_record(row)


class SourceUpkeep(_Definitions):
    """Across namespaces, like all upkeep."""

    def all(self) -> list[Source]:
        return [rows.source(row) for row in self._transaction.execute(_SQL["all"])]

    def records(self) -> list[SourceRecord]:
        return [rows.source_record(row) for row in self._transaction.execute(_SQL["all_records"])]

    def set_chunking(self, source_id: int, chunking: Chunking) -> int:
        lock_source_alone(self._transaction, source_id)
        _, stored = self._definition(source_id)
        definition = rows.source_definition(stored)
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

    def add(
        self,
        namespace: str,
        name: str,
        kind: str,
        definition: Mapping[str, Any],
        *,
        at_us: int,
        enabled: bool = True,
    ) -> int:
        values = {
            "namespace": namespace,
            "name": name,
            "kind": kind,
            "enabled": int(enabled),
            "definition": rows.dumps(definition),
            "at_us": at_us,
        }
        lock_source_names(self._transaction)
        taken = self._transaction.value(_SQL["is_taken"], {"namespace": namespace, "name": name})
        if taken:
            raise rows.name_is_taken(name)
        source_id: int = self._transaction.value(_SQL["add"], values)
        return source_id

    def redefine(self, source_id: int, definition: Mapping[str, Any]) -> bool:
        rows.require_removable(source_id)
        lock_source_alone(self._transaction, source_id)
        _, before = self._existing(source_id)
        stored = rows.dumps(definition)
        is_recut = not cuts_alike(before, stored)
        values = {"source_id": source_id, "definition": stored, "is_recut": int(is_recut)}
        self._transaction.defer(_SQL["redefine"], values)
        self._transaction.definitions.clear()
        return is_recut

    def enable(self, source_id: int, enabled: bool) -> None:
        rows.require_removable(source_id)
        values = {"source_id": source_id, "enabled": int(enabled)}
        if not self._transaction.execute(_SQL["enable"], values):
            raise rows.no_such_source(source_id)

    def release(self, source_id: int, limit: int) -> int:
        values = {"source_id": source_id, "limit": limit, "kb_source_id": KB_SOURCE_ID}
        return len(self._transaction.execute(_SQL["release"], values))

    def remove(self, source_id: int) -> None:
        rows.require_removable(source_id)
        values = {"source_id": source_id}
        lock_source_alone(self._transaction, source_id)
        self._existing(source_id)
        if self._transaction.value(_SQL["has_documents"], values):
            raise rows.documents_are_left(source_id)
        for statement in ("forget_rows", "forget_blocks", "forget_runs", "remove"):
            self._transaction.defer(_SQL[statement], values)
        self._transaction.definitions.clear()

    def set_synced(self, source_id: int, at_us: int) -> None:
        values = {"source_id": source_id, "at_us": at_us}
        self._transaction.defer(_SQL["set_synced"], values)

    def _existing(self, source_id: int) -> tuple[str, str]:
        try:
            return self._definition(source_id)
        except UnreadableRowError:
            raise rows.no_such_source(source_id) from None
