"""Sources: how their documents are cut, and which were cut by an earlier definition."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from zibaldone.access.principal import Tenant
from zibaldone.model.chunking import Chunking
from zibaldone.store import rows, statements
from zibaldone.store.definition import stored_chunking
from zibaldone.store.port import SourceCounts
from zibaldone.store.rows import UnreadableRowError
from zibaldone.store.tenants import range_values
from zibaldone.store.upkeep import DocumentText, Source

_DEFINITION: rows.Kinds = (str, str)
_TEXT: rows.Kinds = (int, str, str, str)
_COUNTS: rows.Kinds = (int, str, int, rows.INT_OR_NONE, int, int)

_SQL = statements.load("zibaldone.store.sqlite", "sources.sql")


class _Definitions:
    """How each source is set up, by its id."""

    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw

    def chunking(self, source_id: int) -> Chunking:
        row = self._raw.execute(_SQL["definition"], {"source_id": source_id}).fetchone()
        if row is None:
            raise UnreadableRowError(f"there is no source {source_id}")
        return stored_chunking(*rows.require(row, _DEFINITION))


class Sources(_Definitions):
    """Bound to one tenant: what a source holds beyond it is not counted."""

    def __init__(self, raw: apsw.Connection, tenant: Tenant) -> None:
        super().__init__(raw)
        self._tenant = tenant

    def counts(self) -> list[SourceCounts]:
        selected = self._raw.execute(_SQL["visible"], range_values(self._tenant))
        return [
            SourceCounts(source_id, name, bool(enabled), synced_at_us, documents, chunks)
            for source_id, name, enabled, synced_at_us, documents, chunks in (
                rows.require(row, _COUNTS) for row in selected
            )
        ]


class SourceUpkeep(_Definitions):
    """Across namespaces, like all upkeep."""

    def all(self) -> list[Source]:
        return [rows.source(row) for row in self._raw.execute(_SQL["all"])]

    def set_chunking(self, source_id: int, chunking: Chunking) -> int:
        values = {"source_id": source_id, "chunking": rows.dumps(chunking.as_dict())}
        version: int = self._raw.execute(_SQL["set_chunking"], values).get
        return version

    def chunking_version(self, source_id: int) -> int:
        version: int = self._raw.execute(_SQL["chunking_version"], {"source_id": source_id}).get
        return version

    def stale(self, source_id: int, *, after: int, limit: int) -> list[tuple[int, int]]:
        values = {"source_id": source_id, "after": after, "limit": limit}
        return [(key, chars) for key, chars in self._raw.execute(_SQL["stale"], values)]

    def set_cut(self, source_id: int, document_keys: Iterable[int]) -> None:
        values = {"source_id": source_id, "document_keys": rows.dumps(list(document_keys))}
        self._raw.execute(_SQL["set_cut"], values)

    def texts(self, source_id: int, document_keys: Iterable[int]) -> list[DocumentText]:
        values = {"source_id": source_id, "document_keys": rows.dumps(list(document_keys))}
        selected = self._raw.execute(_SQL["texts"], values)
        return [DocumentText(*rows.require(row, _TEXT)) for row in selected]
