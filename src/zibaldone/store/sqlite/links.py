"""Links between documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import orjson

from zibaldone.access.principal import Tenant
from zibaldone.model.document import Document, DocumentFields
from zibaldone.model.link import KINDS, Link, LinkedDocument, Links
from zibaldone.store import rows, statements
from zibaldone.store.sqlite.documents import FEW_DOCUMENTS, count_documents
from zibaldone.store.tenants import range_values

_SQL = statements.load("zibaldone.store.sqlite", "links.sql")
_NAME = len(KINDS)
"""The kind of a row that is a name of the document itself."""


class DocumentLinks:
    def __init__(self, raw: apsw.Connection, tenant: Tenant) -> None:
        self._raw = raw
        self._tenant = tenant

    def put(self, document: Document, links: Links | None) -> None:
        key = rows.storage_key(document)
        values: dict[str, Any] = {"document_key": key, "namespace": self._tenant.namespace}
        self._raw.execute(_SQL["clear"], values)
        if links is None:
            return
        kept = [(KINDS.index(link.kind), link.target) for link in links.out]
        kept += [(_NAME, name) for name in links.names]
        self._raw.execute(_SQL["put"], {**values, "links": rows.dumps(kept)})

    def out(self, document: DocumentFields) -> list[Link]:
        values = {"document_key": document.storage_key, "namespace": self._tenant.namespace}
        selected = self._raw.execute(_SQL["out"], values)
        return [Link(KINDS[row[0]], row[1]) for row in selected]

    def with_names(self, names: Iterable[str], *, each: int) -> dict[str, list[LinkedDocument]]:
        listed = list(names)
        values = {**range_values(self._tenant), "names": rows.dumps(listed), "each": each}
        is_few = self._has_few([(_NAME, name) for name in listed])
        statement = _SQL["with_names_own" if is_few else "with_names"]
        found = {
            name: [LinkedDocument(*one) for one in orjson.loads(documents)]
            for name, documents in self._raw.execute(statement, values)
        }
        return {name: documents for name, documents in found.items() if documents}

    def pointing(self, links: Iterable[Link], *, limit: int) -> list[LinkedDocument]:
        kept: Sequence[tuple[int, str]] = [(KINDS.index(link.kind), link.target) for link in links]
        values = {**range_values(self._tenant), "links": rows.dumps(kept), "limit": limit}
        statement = _SQL["pointing_own" if self._has_few(kept) else "pointing"]
        selected = self._raw.execute(statement, values)
        return [LinkedDocument(document_id, title) for document_id, title in selected]

    def _has_few(self, wanted: Sequence[tuple[int, str]]) -> bool:
        """Whether the tenant has fewer documents than there are such links in the namespace: what
        others have linked must not slow down a small tenant."""
        values = range_values(self._tenant)
        if not self._tenant.prefix:
            return False
        own = count_documents(self._raw, values, FEW_DOCUMENTS + 1)
        counted = {"namespace": values["namespace"], "links": rows.dumps(wanted), "limit": own + 1}
        return own <= FEW_DOCUMENTS and self._raw.execute(_SQL["rows_of"], counted).get > own
