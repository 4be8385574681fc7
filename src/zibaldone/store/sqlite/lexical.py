"""The keyword index over the chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import orjson

from zibaldone.access.principal import Tenant
from zibaldone.limits import LEXICAL_ENOUGH, TERM_CHUNKS_COUNTED_MAX, Limits
from zibaldone.model.query import NO_FILTER, Filter, Query
from zibaldone.store import rows, statements
from zibaldone.store.port import Scored, TermFrequencies
from zibaldone.store.sqlite.filters import filter_values
from zibaldone.store.sqlite.match import quoted, to_fts5, wanted_groups
from zibaldone.store.sqlite.tiers import tiers
from zibaldone.store.tenants import range_values

_SCORED: rows.Kinds = (int, float)

_SCANNED_PER_KEY = 50
"""To look up one key takes FTS5 as long as to go through so many matches in their order."""

_OWN_PART = 10
"""A tenant has few chunks if they are less than a tenth of all that are or were there,"""

_OWN_MAX = 5_000
"""and no more than this: to count them takes a millisecond."""

_AFTER_ALL = b""
"""For SQLite every blob is after every text: an end of a range that has none."""

_MATCHING_FEW = 1_000
"""Chunks that match, of all tenants: as many are ranked in some milliseconds."""

_SQL = statements.load("zibaldone.store.sqlite", "lexical.sql")


class Lexical:
    def __init__(self, raw: apsw.Connection, tenant: Tenant, limits: Limits) -> None:
        self._raw = raw
        self._tenant = tenant
        self._exact_max = limits.keyword_exact_chunks_max
        self._ranked_max = limits.keyword_ranked_chunks_max

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
        newest = self._newest_chunk()
        bounded = values if values["end"] is not None else {**values, "end": _AFTER_ALL}
        if self._has_few(query, bounded, newest):
            own = {**bounded, "match": to_fts5(query), "limit": limit, "offset": offset}
            return self._scored("search_own", own)
        if newest <= self._exact_max:
            return self._best(to_fts5(query), values, limit, offset)
        last = offset + limit
        hits = self._best_in_tiers(query, values, last, last if enough is None else enough)
        return hits[offset:last]

    def _has_few(self, query: Query, values: dict[str, Any], newest: int) -> bool:
        """Whether more chunks match than the tenant has, in an index that is mostly of others.

        To rank all of them would make a small tenant's searches as slow as others have written
        much.
        """
        own_max = min(newest // _OWN_PART, _OWN_MAX)
        own: int = self._raw.execute(_SQL["own_chunks"], {**values, "limit": own_max + 1}).get
        if own > own_max:
            return False
        few = max(own, _MATCHING_FEW)
        return self._counted(to_fts5(query), few + 1) > few

    def _best(
        self, match: str, values: dict[str, Any], limit: int, offset: int = 0
    ) -> list[Scored]:
        return self._scored("search", {**values, "match": match, "limit": limit, "offset": offset})

    def _scored(self, statement: str, values: dict[str, Any]) -> list[Scored]:
        selected = self._raw.execute(_SQL[statement], values)
        return [(row[0], row[1]) for row in (rows.require(row, _SCORED) for row in selected)]

    def _best_in_tiers(
        self, query: Query, values: dict[str, Any], limit: int, enough: int
    ) -> list[Scored]:
        """The order depends on the query and the filter alone, so that pages fit together."""
        *narrow, everything = tiers(query, self._chunks_with, self._ranked_max)
        scores: dict[int, float] = {}
        for tier in narrow:
            fetched = max(limit, LEXICAL_ENOUGH) + len(scores)
            for key, score in self._best(tier.match, values, fetched):
                scores.setdefault(key, score / tier.times)
            if len(scores) >= LEXICAL_ENOUGH:
                break
        else:
            return self._best(everything.match, values, limit)
        best = sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))
        if len(best) < min(limit, enough):
            _, least = best[-1]
            further = self._best(everything.match, values, limit + len(best))
            best += [(key, min(score, least)) for key, score in further if key not in scores]
        return best[:limit]

    def chunk_counts(self, words: Sequence[str], *, count_max: int) -> list[int]:
        return [
            min(
                self._counted(" OR ".join(group), count_max + 1)
                for group in wanted_groups(Query(terms=(word,)))
            )
            for word in words
        ]

    def _chunks_with(self, match: str) -> int:
        return self._counted(match, self._ranked_max + 1)

    def _counted(self, match: str, limit: int) -> int:
        row = self._raw.execute(_SQL["chunks_with"], {"match": match, "limit": limit}).fetchone()
        return 0 if row is None else int(row[0])

    def _newest_chunk(self) -> int:
        """How large the index is, or was: counting it would take as long as searching it."""
        row = self._raw.execute(_SQL["newest_chunk"]).fetchone()
        return 0 if row is None else int(row[0])

    def matching(self, query: Query, chunk_keys: Iterable[int]) -> set[int]:
        keys = sorted(set(chunk_keys))
        if query.is_empty or not keys:
            return set()
        match = to_fts5(query)
        scanned = self._scan(match, keys)
        matching = scanned.intersection(keys)
        if len(scanned) == _SCANNED_PER_KEY * len(keys):
            reached = max(scanned)
            matching |= self._look_up(match, [key for key in keys if key > reached])
        values = {**range_values(self._tenant), "chunk_keys": _json(matching)}
        return {row[0] for row in self._raw.execute(_SQL["visible"], values)}

    def _scan(self, match: str, keys: Sequence[int]) -> set[int]:
        """Every chunk that matches, from the first of these to the last, up to a number."""
        values = {
            "match": match,
            "first": keys[0],
            "last": keys[-1],
            "limit": _SCANNED_PER_KEY * len(keys),
        }
        return {row[0] for row in self._raw.execute(_SQL["matching_scan"], values)}

    def _look_up(self, match: str, keys: Sequence[int]) -> set[int]:
        values = {"match": match, "chunk_keys": _json(keys)}
        return {row[0] for row in self._raw.execute(_SQL["matching_keys"], values)}

    def frequencies(self, terms: Iterable[str]) -> TermFrequencies:
        totals = self._raw.execute(_SQL["totals"]).get
        chunks = _first_varint(totals) if totals else 0
        newest = self._newest_chunk()
        counts = {term: self._estimated(quoted(term), newest) for term in set(terms)}
        return TermFrequencies(chunks, {term: min(count, chunks) for term, count in counts.items()})

    def _estimated(self, match: str, newest: int) -> float:
        """Counted as far as it goes; beyond that, as common as among the chunks up to there."""
        values = {"match": match, "limit": TERM_CHUNKS_COUNTED_MAX}
        count, reached = self._raw.execute(_SQL["first_chunks_with"], values).fetchone() or (0, 0)
        is_all = count < TERM_CHUNKS_COUNTED_MAX
        return float(count) if is_all else count * max(1.0, newest / reached)


def _first_varint(block: bytes) -> int:
    """A number as SQLite writes it: seven bits in each byte, the highest first."""
    number = 0
    for byte in block[:8]:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return number


def _json(keys: Iterable[int]) -> str:
    return orjson.dumps(list(keys)).decode()
