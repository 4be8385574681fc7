"""A store and a source database, and syncs from the one into the other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.pull.databases import Database
from tests.store.kept import Kept
from zibaldone.access.principal import Tenant
from zibaldone.keep.pulled import PulledDocuments
from zibaldone.keep.writing import Preparation
from zibaldone.limits import Limits
from zibaldone.model.document import Document
from zibaldone.model.source import SourceDefinition
from zibaldone.pull.sync import SyncResult, sync
from zibaldone.store.port import Store

POSTS_DOCUMENT: dict[str, Any] = {"title": ["Title"], "body": ["Body"], "tags": "Tags"}


@dataclass
class Pulling:
    store: Store
    database: Database
    limits: Limits = field(default_factory=Limits)
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kept = Kept(self.store, self.limits)
        self._preparation = Preparation()
        self.destination = PulledDocuments(self.store, self._preparation, self.limits)
        self.sources: dict[str, int] = {}

    def define(self, name: str = "posts", **table: Any) -> SourceDefinition:
        values = {
            "url": self.database.url,
            "table": name,
            "key": "Id",
            "document": POSTS_DOCUMENT,
            **table,
        }
        namespace = values.pop("namespace", "default")
        return SourceDefinition.from_table(name, values, namespace)

    def add(self, definition: SourceDefinition) -> int:
        source_id = self.kept.upkeep(
            lambda upkeep: upkeep.sources.add(
                definition.namespace, definition.name, "pulled", definition.stored(), at_us=1
            )
        )
        self.sources[definition.name] = source_id
        return source_id

    def sync(self, definition: SourceDefinition, **options: Any) -> SyncResult:
        source_id = self.sources.get(definition.name) or self.add(definition)
        return asyncio.run(self.start(definition, source_id, **options))

    async def start(
        self, definition: SourceDefinition, source_id: int, **options: Any
    ) -> SyncResult:
        environment = {**self.environment, **options.pop("environment", {})}
        return await sync(
            self.store, self.destination, source_id, definition, environment=environment, **options
        )

    def documents(self, prefix: str = "posts:", namespace: str = "default") -> dict[str, Document]:
        tenant = Tenant(namespace)

        def read(reader: Any) -> dict[str, Document]:
            ids = [head.document_id for head in reader.documents.heads(prefix, limit=10**6)]
            return {document_id: reader.documents.get(document_id) for document_id in ids}

        return self.kept.read(read, tenant, 60.0)

    def contents(self, prefix: str = "posts:") -> dict[str, Mapping[str, Any]]:
        return {
            document_id: {
                "title": document.title,
                "body": document.body,
                "tags": document.tags,
                "metadata": dict(document.metadata),
                "pk": dict(document.pk or {}),
            }
            for document_id, document in self.documents(prefix).items()
        }

    def revisions(self) -> dict[str, int]:
        return {key: document.revision for key, document in self.documents().items()}

    def close(self) -> None:
        self._preparation.close()


def counts(result: SyncResult) -> tuple[int, int, int, int, int]:
    """Created, updated, deleted, unchanged, failed."""
    return (result.created, result.updated, result.deleted, result.unchanged, result.failed)
