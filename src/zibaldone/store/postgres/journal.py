"""The audit trail."""

from __future__ import annotations

from zibaldone.access.principal import Tenant
from zibaldone.store import rows, statements
from zibaldone.store.port import AuditEntry
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.tenants import tenant_values

_AUDIT = statements.load("zibaldone.store.postgres", "audit.sql")

_ENTRY: rows.Kinds = (int, str, str, str, str, rows.INT_OR_NONE, str)


class Audit:
    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        self._transaction = transaction
        self._tenant = tenant

    def add(self, entry: AuditEntry) -> None:
        self._transaction.defer(
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
        name = "page" if document_id is None else "page_of_document"
        values = {**tenant_values(self._tenant), "limit": limit}
        if document_id is not None:
            values["document_id"] = document_id
        selected = self._transaction.execute(_AUDIT[name], values)
        return [AuditEntry(*rows.require(row, _ENTRY)) for row in selected]
