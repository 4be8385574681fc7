"""Documents and their revisions."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import apsw

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
from zibaldone.store.quotas import Quotas, revision_bytes, text_bytes
from zibaldone.store.rows import UnreadableRowError
from zibaldone.store.sqlite.faults import extended_code
from zibaldone.store.sqlite.listing import listing
from zibaldone.store.sqlite.usage import add_usage
from zibaldone.store.tenants import (
    AFTER_EVERY_ID,
    id_is_taken,
    recent_values,
    require_visible,
    tenant_values,
    visible_range,
)

_SQL = statements.load("zibaldone.store.sqlite", "documents.sql")
_REVISIONS = statements.load("zibaldone.store.sqlite", "revisions.sql")


_SHORT_CHARS = 8_192
"""A body up to this length is read as a value, which takes less time than opening it as a blob."""

_UTF8_BYTES_MAX = 4
"""Of one character."""


FEW_DOCUMENTS = 5_000
"""A tenant or folder with no more is walked by itself, if others have written much more. To count
them takes less than a millisecond."""

_RECENT_PER_DOCUMENT = 10
"""To read and sort one document takes as long as to go past so many in the order of time."""


class _Place(NamedTuple):
    values: dict[str, Any]
    is_open: Literal["", "_open"]
    """What the names of statements end in where there is no upper bound."""


class Documents:
    """Bound to one tenant: every statement carries its namespace and its range of ids."""

    def __init__(self, raw: apsw.Connection, tenant: Tenant, quotas: Quotas) -> None:
        self._raw = raw
        self._tenant = tenant
        self._quotas = quotas

    def get(self, document_id: str) -> Document | None:
        row = self._raw.execute(
            _SQL["get"],
            {**tenant_values(self._tenant), "document_id": document_id},
        ).fetchone()
        return None if row is None else rows.document(row)

    def peek(self, document_id: str, chars_max: int) -> DocumentPart | None:
        row = self._raw.execute(
            _SQL["peek"],
            {
                **tenant_values(self._tenant),
                "document_id": document_id,
                "chars_max": max(chars_max, _SHORT_CHARS),
            },
        ).fetchone()
        if row is None:
            return None
        if row[-1] is None:
            row = (*row[:-1], self._beginning(row[0], chars_max))
        return rows.document_part(row, chars_max)

    def _beginning(self, document_key: int, chars_max: int) -> str:
        """The first characters of a body: of a value, SQL can only read all of it."""
        try:
            blob = self._raw.blob_open("main", "bodies", "body", document_key, False)
        except apsw.SQLError as problem:
            raise UnreadableRowError(str(problem)) from problem
        with blob:
            data = blob.read(min(blob.length(), chars_max * _UTF8_BYTES_MAX))
        # The last character may be cut: only the ones before it are decoded, and more than enough.
        text, _ = codecs.utf_8_decode(data, "strict", False)
        return text[:chars_max]

    def heads(
        self, prefix: str, *, after: str | None = None, offset: int = 0, limit: int
    ) -> list[DocumentHead]:
        place = self._place(prefix, after, offset)
        if place is None:
            return []
        selected = self._raw.execute(
            _SQL["heads" + place.is_open], {**place.values, "limit": limit}
        )
        return [rows.head(row) for row in selected]

    def listing(
        self, prefix: str, *, after: str | None = None, offset: int = 0, limit: int
    ) -> Listing:
        place = self._place(prefix, after, offset)
        if place is None:
            return Listing((), has_more=False)
        try:
            row = self._raw.execute(
                _SQL["listing" + place.is_open], {**place.values, "limit": limit}
            ).get
        except apsw.SQLError as problem:  # the statement is right, so a value in it is not
            raise UnreadableRowError(str(problem)) from problem
        return listing(row)

    def folders(self, prefix: str, *, limit: int) -> list[FolderCount]:
        values = self._level(prefix)
        if values is None:
            return []
        selected = self._raw.execute(_SQL["folders"], {**values, "limit": limit})
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
        selected = self._raw.execute(_SQL["heads_here"], {**values, "limit": limit})
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
        own = count_documents(self._raw, values, FEW_DOCUMENTS + 1)
        is_few = own <= FEW_DOCUMENTS and own * _RECENT_PER_DOCUMENT < self._all_documents()
        statement = _SQL["recent_own" if is_few else "recent"]
        selected = self._raw.execute(statement, {**values, "offset": offset, "limit": limit})
        return [rows.recent_head(row) for row in selected]

    def _all_documents(self) -> int:
        """Of the namespace, live ones."""
        row = self._raw.execute(_SQL["all"], {"namespace": self._tenant.namespace}).fetchone()
        return 0 if row is None else int(row[0])

    def deleted(
        self, prefix: str, *, before: tuple[int, str] | None = None, limit: int
    ) -> list[RecentHead]:
        values = recent_values(self._tenant, prefix, None, None, before)
        if values is None:
            return []
        selected = self._raw.execute(_SQL["deleted"], {**values, "limit": limit})
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
        bounds = self._bounds(prefix)
        if bounds is None:
            return None
        is_open: Literal["", "_open"] = "_open" if bounds["end"] is None else ""
        if is_open:
            del bounds["end"]
        if offset:
            # Find where the page starts in the index alone, then read only the page's rows.
            before = self._raw.execute(
                _SQL["id_at_offset" + is_open], {**bounds, "offset": offset - 1}
            ).fetchone()
            if before is None:
                return None
            after = max(after or "", before[0])
        if after:
            # As one bound with the prefix: of two, SQLite seeks to the first and reads all that
            # lies between them. No id holds a NUL, so this is the first that could follow.
            bounds["start"] = max(bounds["start"], after + "\0")
        return _Place(bounds, is_open)

    def _bounds(self, prefix: str) -> dict[str, Any] | None:
        """The range that is both asked for and visible; None when there is none."""
        visible = visible_range(self._tenant, prefix)
        if visible is None:
            return None
        start, end = visible
        return {"namespace": self._tenant.namespace, "start": start, "end": end}

    def insert(self, document: Document) -> Document:
        require_visible(self._tenant, document)
        values = {**rows.document_values(document), "namespace": self._tenant.namespace}
        try:
            key = self._raw.execute(_SQL["insert"], values).get
        except apsw.ConstraintError as problem:
            if extended_code(problem) != apsw.SQLITE_CONSTRAINT_UNIQUE:
                raise
            raise Conflict(
                f"A document {document.document_id!r} exists already.",
                document_id=document.document_id,
            ) from problem
        self._raw.execute(_SQL["insert_body"], {"document_key": key, "body": document.body})
        add_usage(
            self._raw,
            self._tenant.namespace,
            self._quotas,
            documents=int(document.is_live),
            size_bytes=revision_bytes(values, document.body),
        )
        return replace(document, storage_key=key)

    def replace(self, before: Document, after: Document) -> Document:
        require_visible(self._tenant, before)
        require_visible(self._tenant, after)
        key = before.storage_key
        values = {
            **rows.document_values(after),
            "document_key": key,
            "namespace": self._tenant.namespace,
            "replaced_revision": before.revision,
        }
        if after.document_id != before.document_id:
            self._rename(values)
        del values["document_id"]
        if self._raw.execute(_SQL["replace"], values).get is None:
            raise Conflict(
                f"{before.document_id!r} is no longer at revision {before.revision}.",
                document_id=before.document_id,
                expected=before.revision,
            )
        revision = rows.revision_values(before)
        self._raw.execute(_REVISIONS["add"], revision)
        if after.body != before.body:
            self._raw.execute(_SQL["replace_body"], {"document_key": key, "body": after.body})
        add_usage(
            self._raw,
            self._tenant.namespace,
            self._quotas,
            documents=int(after.is_live) - int(before.is_live),
            size_bytes=revision_bytes(values, after.body)
            + len(revision["body"])
            - text_bytes(before.body),
            frees=not after.is_live,
        )
        return replace(after, storage_key=key)

    def _rename(self, values: dict[str, Any]) -> None:
        named = {name: values[name] for name in ("namespace", "document_id")}
        if self._raw.execute(_SQL["is_taken"], {**tenant_values(self._tenant), **named}).get:
            raise id_is_taken(values["document_id"])
        self._raw.execute(_SQL["rename"], {**named, "document_key": values["document_key"]})

    def put_facets(self, document: Document, facets: Facets | None) -> None:
        key = rows.storage_key(document)
        self._raw.execute(_SQL["delete_tags"], {"document_key": key})
        if facets is None:
            self._raw.execute(_SQL["delete_facets"], {"document_key": key})
            return
        self._raw.execute(
            _SQL["put_facets"],
            {
                "document_key": key,
                "created_us": facets.created_us,
                "score": facets.score,
                "post_type": facets.post_type,
            },
        )
        if facets.tags:
            self._raw.executemany(
                _SQL["put_tag"], [{"document_key": key, "tag": tag} for tag in facets.tags]
            )


def count_documents(raw: apsw.Connection, values: Mapping[str, Any], count_max: int) -> int:
    """How many live documents a range of ids has, counted so far."""
    bounds = {name: values[name] for name in ("namespace", "start", "end")}
    count: int = raw.execute(_SQL["counted"], {**bounds, "limit": count_max}).get
    return count


class Revisions:
    def __init__(self, raw: apsw.Connection, tenant: Tenant) -> None:
        self._raw = raw
        self._tenant = tenant

    def page(self, document: DocumentFields, *, before: int | None, limit: int) -> list[Revision]:
        selected = self._raw.execute(
            _REVISIONS["page"],
            {
                **self._values(document),
                "before": document.revision if before is None else before,
                "limit": limit,
            },
        )
        return [rows.revision(document.document_id, row) for row in selected]

    def get(self, document: DocumentFields, revision: int) -> Revision | None:
        row = self._raw.execute(
            _REVISIONS["get"], {**self._values(document), "revision": revision}
        ).fetchone()
        return None if row is None else rows.revision(document.document_id, row)

    def _values(self, document: DocumentFields) -> dict[str, Any]:
        return {**tenant_values(self._tenant), "document_key": document.storage_key}
