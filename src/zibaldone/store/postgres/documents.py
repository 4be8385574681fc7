"""Documents and their revisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

from zibaldone.access.principal import Tenant
from zibaldone.errors import Conflict
from zibaldone.model.document import (
    Document,
    DocumentFields,
    DocumentHead,
    DocumentPart,
    FolderCount,
    RecentHead,
    Revision,
)
from zibaldone.model.facets import Facets
from zibaldone.store import rows, statements
from zibaldone.store.port import Listing
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.locks import lock_id, lock_source
from zibaldone.store.postgres.usage import add_usage
from zibaldone.store.quotas import Quotas, revision_bytes, text_bytes
from zibaldone.store.tenants import (
    AFTER_EVERY_ID,
    id_is_taken,
    recent_values,
    require_visible,
    tenant_values,
    visible_range,
)

_SQL = statements.load("zibaldone.store.postgres", "documents.sql")
_REVISIONS = statements.load("zibaldone.store.postgres", "revisions.sql")


class _Place(NamedTuple):
    values: dict[str, Any]
    is_open: Literal["", "_open"]
    """What the names of statements end in where there is no upper bound."""


class Documents:
    """Bound to one tenant: every statement carries its namespace and its range of ids."""

    def __init__(self, transaction: Transaction, tenant: Tenant, quotas: Quotas) -> None:
        self._transaction = transaction
        self._tenant = tenant
        self._quotas = quotas

    def get(self, document_id: str) -> Document | None:
        lock_id(self._transaction, self._tenant, document_id)
        values = {**tenant_values(self._tenant), "document_id": document_id}
        statement = "get_locked" if self._transaction.is_write else "get"
        row = self._transaction.row(_SQL[statement], values)
        return None if row is None else rows.document(row)

    def peek(self, document_id: str, chars_max: int) -> DocumentPart | None:
        row = self._transaction.row(
            _SQL["peek"],
            {
                **tenant_values(self._tenant),
                "document_id": document_id,
                "chars_max": chars_max,
            },
        )
        return None if row is None else rows.document_part(row, chars_max)

    def heads(
        self, prefix: str, *, after: str | None = None, offset: int = 0, limit: int
    ) -> list[DocumentHead]:
        place = self._place(prefix, after, offset)
        if place is None:
            return []
        selected = self._transaction.execute(
            _SQL["heads" + place.is_open], {**place.values, "limit": limit}
        )
        return [rows.head(row) for row in selected]

    def listing(
        self, prefix: str, *, after: str | None = None, offset: int = 0, limit: int
    ) -> Listing:
        heads = self.heads(prefix, after=after, offset=offset, limit=limit + 1)
        return Listing(heads[:limit], has_more=bool(limit) and len(heads) > limit)

    def folders(self, prefix: str, *, limit: int) -> list[FolderCount]:
        values = self._level(prefix)
        if values is None:
            return []
        selected = self._transaction.execute(_SQL["folders"], {**values, "limit": limit})
        return [FolderCount(*rows.require(row, (str, int))) for row in selected]

    def heads_here(
        self, prefix: str, *, after: str | None = None, limit: int
    ) -> list[DocumentHead]:
        values = self._level(prefix)
        if values is None:
            return []
        # No id holds a NUL in the embedded engine, nor a character below U+0001 in the other.
        if after is not None:
            values["start"] = max(values["start"], after + "\x01")
        selected = self._transaction.execute(_SQL["heads_here"], {**values, "limit": limit})
        return [rows.head(row) for row in selected]

    def recent(
        self,
        prefix: str,
        *,
        since_us: int | None = None,
        until_us: int | None = None,
        before: tuple[int, str] | None = None,
        offset: int = 0,
        limit: int,
    ) -> list[RecentHead]:
        values = recent_values(self._tenant, prefix, since_us, until_us, before)
        if values is None:
            return []
        selected = self._transaction.execute(
            _SQL["recent"], {**values, "offset": offset, "limit": limit}
        )
        return [rows.recent_head(row) for row in selected]

    def deleted(
        self, prefix: str, *, before: tuple[int, str] | None = None, limit: int
    ) -> list[RecentHead]:
        values = recent_values(self._tenant, prefix, None, None, before)
        if values is None:
            return []
        selected = self._transaction.execute(_SQL["deleted"], {**values, "limit": limit})
        return [rows.recent_head(row) for row in selected]

    def _level(self, prefix: str) -> dict[str, Any] | None:
        """The range of a prefix, and how many characters it has."""
        visible = visible_range(self._tenant, prefix)
        if visible is None:
            return None
        start, end = visible
        return {
            "namespace": self._tenant.namespace,
            "start": start,
            "end": AFTER_EVERY_ID if end is None else end,
            "depth": len(prefix),
        }

    def _place(self, prefix: str, after: str | None, offset: int) -> _Place | None:
        """Where a page starts and the list ends; None where it has nothing to show."""
        visible = visible_range(self._tenant, prefix)
        if visible is None:
            return None
        start, end = visible
        values = {"namespace": self._tenant.namespace, "start": start}
        is_open: Literal["", "_open"] = "_open"
        if end is not None:
            values["end"] = end
            is_open = ""
        if offset:
            self._transaction.expect_several()
            # Find where the page starts in the index alone, then read only the page's rows.
            before = self._transaction.value(
                _SQL["id_at_offset" + is_open], {**values, "offset": offset - 1}
            )
            if before is None:
                return None
            after = max(after or "", before)
        return _Place({**values, "after": after or ""}, is_open)

    def insert(self, document: Document) -> Document:
        require_visible(self._tenant, document)
        values = {**rows.document_values(document), "namespace": self._tenant.namespace}
        key = self._store("insert", values)
        if key is None:
            raise Conflict(
                f"A document {document.document_id!r} exists already.",
                document_id=document.document_id,
            )
        self._transaction.new_documents.add(key)
        body = {"document_key": key, "namespace": self._tenant.namespace, "body": document.body}
        self._transaction.defer(_SQL["insert_body"], body)
        self._add_usage(
            documents=int(document.is_live), size_bytes=revision_bytes(values, document.body)
        )
        return replace(document, storage_key=key)

    def replace(self, before: Document, after: Document) -> Document:
        require_visible(self._tenant, before)
        require_visible(self._tenant, after)
        namespace = self._tenant.namespace
        key = before.storage_key
        values = {
            **rows.document_values(after),
            "document_key": key,
            "namespace": namespace,
            "replaced_revision": before.revision,
        }
        if after.document_id != before.document_id:
            self._rename(values)
        if self._store("replace", values) is None:
            raise Conflict(
                f"{before.document_id!r} is no longer at revision {before.revision}.",
                document_id=before.document_id,
                expected=before.revision,
            )
        revision = rows.revision_values(before)
        self._transaction.defer(_REVISIONS["add"], {**revision, "namespace": namespace})
        if after.body != before.body:
            body = {"document_key": key, "namespace": namespace, "body": after.body}
            self._transaction.defer(_SQL["replace_body"], body)
        self._add_usage(
            documents=int(after.is_live) - int(before.is_live),
            size_bytes=revision_bytes(values, after.body)
            + len(revision["body"])
            - text_bytes(before.body),
            frees=not after.is_live,
        )
        return replace(after, storage_key=key)

    def _store(self, statement: str, values: dict[str, Any]) -> int | None:
        """The key of the document; None: it was not stored. What its source says is kept."""
        source_id: int = values["source_id"]
        lock_id(self._transaction, self._tenant, values["document_id"])
        lock_source(self._transaction, source_id)
        row = self._transaction.row(_SQL[statement], values)
        if row is None:
            return None
        key, name, definition = row
        if name is not None:
            self._transaction.definitions[source_id] = (name, definition)
        return int(key)

    def _add_usage(self, *, documents: int, size_bytes: int, frees: bool = False) -> None:
        add_usage(
            self._transaction,
            self._tenant.namespace,
            self._quotas,
            documents=documents,
            size_bytes=size_bytes,
            frees=frees,
        )

    def _rename(self, values: dict[str, Any]) -> None:
        lock_id(self._transaction, self._tenant, values["document_id"])
        named = {name: values[name] for name in ("namespace", "document_id")}
        if self._transaction.value(_SQL["is_taken"], {**tenant_values(self._tenant), **named}):
            raise id_is_taken(values["document_id"])
        renamed = {**named, "document_key": values["document_key"]}
        self._transaction.defer(_SQL["rename"], renamed)

    def put_facets(self, document: Document, facets: Facets | None) -> None:
        place = {
            "document_key": rows.storage_key(document),
            "namespace": self._tenant.namespace,
        }
        tags = [] if facets is None else sorted(facets.tags)
        if tags or place["document_key"] not in self._transaction.new_documents:
            self._transaction.defer(_SQL["put_tags"], {**place, "tags": tags})
        if facets is None:
            self._transaction.defer(_SQL["delete_facets"], place)
            return
        self._transaction.defer(
            _SQL["put_facets"],
            {
                **place,
                "created_us": facets.created_us,
                "score": facets.score,
                "post_type": facets.post_type,
            },
        )


class Revisions:
    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        self._transaction = transaction
        self._tenant = tenant

    def page(self, document: DocumentFields, *, before: int | None, limit: int) -> list[Revision]:
        selected = self._transaction.execute(
            _REVISIONS["page"],
            {
                **self._values(document),
                "before": document.revision if before is None else before,
                "limit": limit,
            },
        )
        return [rows.revision(document.document_id, row) for row in selected]

    def get(self, document: DocumentFields, revision: int) -> Revision | None:
        row = self._transaction.row(
            _REVISIONS["get"], {**self._values(document), "revision": revision}
        )
        return None if row is None else rows.revision(document.document_id, row)

    def _values(self, document: DocumentFields) -> dict[str, Any]:
        return {**tenant_values(self._tenant), "document_key": document.storage_key}
