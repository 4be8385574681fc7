"""Links between documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zibaldone.access.principal import Tenant
from zibaldone.model.document import Document, DocumentFields
from zibaldone.model.link import KINDS, Link, LinkedDocument, Links
from zibaldone.store import rows, statements
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.tenants import range_values

_SQL = statements.load("zibaldone.store.postgres", "links.sql")
_NAME = len(KINDS)
"""The kind of a row that is a name of the document itself."""

_FEW_DOCUMENTS = 5_000
"""A tenant with no more is walked by itself: what others have linked must not slow it down."""


class DocumentLinks:
    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        self._transaction = transaction
        self._tenant = tenant

    def put(self, document: Document, links: Links | None) -> None:
        key = rows.storage_key(document)
        values: dict[str, Any] = {"document_key": key, "namespace": self._tenant.namespace}
        self._transaction.defer(_SQL["clear"], values)
        if links is None:
            return
        kept = [(KINDS.index(link.kind), link.target) for link in links.out]
        kept += [(_NAME, name) for name in links.names]
        self._transaction.defer(_SQL["put"], {**values, **_arrays(kept)})

    def out(self, document: DocumentFields) -> list[Link]:
        values = {"document_key": document.storage_key, "namespace": self._tenant.namespace}
        selected = self._transaction.execute(_SQL["out"], values)
        return [Link(KINDS[row[0]], row[1]) for row in selected]

    def with_names(self, names: Iterable[str], *, each: int) -> dict[str, list[LinkedDocument]]:
        values = {**self._values((_NAME, name) for name in names), "each": each}
        statement = "with_names_own" if self._has_few(values) else "with_names"
        found: dict[str, list[LinkedDocument]] = {}
        for name, document_id, title in self._transaction.execute(_SQL[statement], values):
            found.setdefault(name, []).append(LinkedDocument(document_id, title))
        return found

    def pointing(self, links: Iterable[Link], *, limit: int) -> list[LinkedDocument]:
        kept = ((KINDS.index(link.kind), link.target) for link in links)
        values = {**self._values(kept), "limit": limit}
        statement = "pointing_own" if self._has_few(values) else "pointing"
        selected = self._transaction.execute(_SQL[statement], values)
        return [LinkedDocument(document_id, title) for document_id, title in selected]

    def _values(self, wanted: Iterable[tuple[int, str]]) -> dict[str, Any]:
        return {**range_values(self._tenant), **_arrays(list(wanted))}

    def _has_few(self, values: Mapping[str, Any]) -> bool:
        """Whether the tenant has fewer documents than there are such links in the namespace."""
        if not self._tenant.prefix:
            return False
        self._transaction.expect_several()
        own = self._transaction.value(_SQL["live"], {**values, "limit": _FEW_DOCUMENTS + 1})
        if own > _FEW_DOCUMENTS:
            return False
        return bool(self._transaction.value(_SQL["linked"], {**values, "limit": own + 1}) > own)


def _arrays(kept: Sequence[tuple[int, str]]) -> dict[str, Any]:
    return {"kinds": [kind for kind, _ in kept], "targets": [target for _, target in kept]}
