"""The audit trail."""

from __future__ import annotations

from typing import Any

import apsw

from zibaldone.access.principal import Tenant
from zibaldone.store import rows, statements
from zibaldone.store.port import AuditEntry
from zibaldone.store.tenants import tenant_values

_AUDIT = statements.load("zibaldone.store.sqlite", "audit.sql")

_LOOKED_AT = 10_000
"""Lines at the end of the table, of all tenants, that are looked at first."""

_ENTRY: rows.Kinds = (int, str, str, str, str, rows.INT_OR_NONE, str)


class Audit:
    def __init__(self, raw: apsw.Connection, tenant: Tenant) -> None:
        self._raw = raw
        self._tenant = tenant

    def add(self, entry: AuditEntry) -> None:
        self._raw.execute(
            _AUDIT["add"],
            {
                "at_us": entry.at_us,
                "namespace": self._tenant.namespace,
                "principal": entry.principal,
                "action": entry.action,
                "document_id": entry.document_id,
                "revision": entry.revision,
                "outcome": entry.outcome,
                "request_id": entry.request_id,
            },
        )

    def page(self, document_id: str | None, *, limit: int) -> list[AuditEntry]:
        values = {**tenant_values(self._tenant), "limit": limit}
        if document_id is not None:
            return self._entries("page_of_document", {**values, "document_id": document_id})
        newest = self._entries("page", {**values, "looked_at": _LOOKED_AT})
        return newest if len(newest) == limit else self._entries("page_further", values)

    def _entries(self, statement: str, values: dict[str, Any]) -> list[AuditEntry]:
        selected = self._raw.execute(_AUDIT[statement], values)
        return [AuditEntry(*rows.require(row, _ENTRY)) for row in selected]
