"""The keyword index over the passages, and what is shown of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import orjson

from zibaldone.access.principal import Tenant
from zibaldone.limits import (
    LEXICAL_ENOUGH,
    LEXICAL_EXACT_PASSAGES_MAX,
    LEXICAL_RANKED_MAX,
)
from zibaldone.model.document import Document
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.store import statements
from zibaldone.store.port import PassageView, Scored, SourceCounts
from zibaldone.store.sqlite import rows
from zibaldone.store.sqlite.filters import filter_values, range_values
from zibaldone.store.sqlite.passages import replace_passages
from zibaldone.store.sqlite.tiers import tiers
from zibaldone.text.chunk import Chunk
from zibaldone.text.facets import facets_of
from zibaldone.text.tokens import Query, to_fts5

_SCORED: rows.Kinds = (int, float)
_NAMED: rows.Kinds = (str, str)
_OWNED: rows.Kinds = (int, str)
_VIEW: rows.Kinds = (int, str, int, str, str, str, int, int, str, str, str)

_SQL = statements.load("zibaldone.store.sqlite", "lexical.sql")


class Lexical:
    def __init__(self, raw: apsw.Connection, tenant: Tenant) -> None:
        self._raw = raw
        self._tenant = tenant

    def search(
        self,
        query: Query,
        *,
        limit: int,
        offset: int = 0,
        wanted: Filter = NO_FILTER,
        enough: int | None = None,
    ) -> list[Scored]:
        values = filter_values(self._tenant, wanted)
        if query.is_empty or values is None:
            return []
        if self._newest_chunk() <= LEXICAL_EXACT_PASSAGES_MAX:
            return self._best(to_fts5(query), values, limit, offset)
        last = offset + limit
        found = self._best_in_tiers(query, values, last, last if enough is None else enough)
        return found[offset:last]

    def _best(
        self, match: str, values: dict[str, Any], limit: int, offset: int = 0
    ) -> list[Scored]:
        found = self._raw.execute(
            _SQL["search"], {**values, "match": match, "limit": limit, "offset": offset}
        )
        return [(row[0], row[1]) for row in (rows.require(row, _SCORED) for row in found)]

    def _best_in_tiers(
        self, query: Query, values: dict[str, Any], limit: int, enough: int
    ) -> list[Scored]:
        """The order depends on the query and the filter alone, so that pages fit together."""
        *narrow, everything = tiers(query, self._passages_with, LEXICAL_RANKED_MAX)
        found: dict[int, float] = {}
        for tier in narrow:
            fetched = max(limit, LEXICAL_ENOUGH) + len(found)
            for key, score in self._best(tier.match, values, fetched):
                found.setdefault(key, score / tier.times)
            if len(found) >= LEXICAL_ENOUGH:
                break
        else:
            return self._best(everything.match, values, limit)
        best = sorted(found.items(), key=lambda scored: (-scored[1], scored[0]))
        if len(best) < min(limit, enough):
            _, least = best[-1]
            further = self._best(everything.match, values, limit + len(best))
            best += [(key, min(score, least)) for key, score in further if key not in found]
        return best[:limit]

    def _passages_with(self, match: str) -> int:
        limit = LEXICAL_RANKED_MAX + 1
        row = self._raw.execute(_SQL["passages_with"], {"match": match, "limit": limit}).fetchone()
        return 0 if row is None else int(row[0])

    def _newest_chunk(self) -> int:
        """How large the index is, or was: counting it would take as long as searching it."""
        row = self._raw.execute(_SQL["newest_chunk"]).fetchone()
        return 0 if row is None else int(row[0])

    def matching(self, query: Query, chunk_keys: Iterable[int]) -> set[int]:
        keys = orjson.dumps(list(chunk_keys)).decode()
        if query.is_empty or keys == "[]":
            return set()
        values = {**range_values(self._tenant), "match": to_fts5(query), "chunk_keys": keys}
        return {row[0] for row in self._raw.execute(_SQL["matching"], values)}

    def documents_of(self, chunk_keys: Iterable[int]) -> dict[int, str]:
        listed = {"chunk_keys": orjson.dumps(list(chunk_keys)).decode()}
        found = self._raw.execute(_SQL["documents_of"], {**range_values(self._tenant), **listed})
        return {row[0]: row[1] for row in (rows.require(row, _OWNED) for row in found)}

    def passages(self, chunk_keys: Iterable[int]) -> dict[int, PassageView]:
        keys = orjson.dumps(list(chunk_keys)).decode()
        found = self._views("passages", {"chunk_keys": keys})
        return {view.chunk_key: view for view in found}

    def passages_at(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], PassageView]:
        listed = orjson.dumps(list(places)).decode()
        found = self._views("passages_by_place", {"places": listed})
        return {(view.document_id, view.chunk_index): view for view in found}

    def _views(self, statement: str, values: dict[str, str]) -> list[PassageView]:
        found = self._raw.execute(_SQL[statement], {**range_values(self._tenant), **values})
        return [_view(rows.require(row, _VIEW)) for row in found]

    def source_names(self, document_ids: Iterable[str]) -> dict[str, str]:
        ids = orjson.dumps(list(document_ids)).decode()
        values = {**range_values(self._tenant), "document_ids": ids}
        found = self._raw.execute(_SQL["source_names"], values)
        return {row[0]: row[1] for row in (rows.require(row, _NAMED) for row in found)}

    def sources(self) -> list[SourceCounts]:
        found = self._raw.execute(_SQL["sources"], range_values(self._tenant))
        return [
            SourceCounts(source_id, name, bool(enabled), synced, documents, chunks)
            for source_id, name, enabled, synced, documents, chunks in found
        ]

    def replace(self, document: Document, chunks: Sequence[Chunk]) -> None:
        replace_passages(self._raw, document.storage_key, document.title, chunks)
        self._replace_facets(document)

    def _replace_facets(self, document: Document) -> None:
        key = {"document_key": document.storage_key}
        self._raw.execute(_SQL["delete_tags"], key)
        if not document.is_live:
            self._raw.execute(_SQL["delete_facets"], key)
            return
        facets = facets_of(document.tags, document.metadata, document.created_at_us)
        self._raw.execute(
            _SQL["put_facets"],
            {
                **key,
                "created_us": facets.created_us,
                "score": facets.score,
                "post_type": facets.post_type,
            },
        )
        for tag in facets.tags:
            self._raw.execute(_SQL["put_tag"], {**key, "tag": tag})


def _view(row: rows.Row) -> PassageView:
    key, document_id, index, title, heading, text, start, source_id, source, metadata, tags = row
    return PassageView(
        chunk_key=key,
        document_id=document_id,
        chunk_index=index,
        title=title,
        heading=heading,
        text=text,
        start=start,
        source_id=source_id,
        source_name=source,
        metadata=orjson.loads(metadata),
        tags=rows.tags(tags),
    )
