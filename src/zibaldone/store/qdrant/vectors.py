"""Vector search by Qdrant, with the store's word for what may be shown and what is new."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from zibaldone.access.principal import Tenant
from zibaldone.errors import VectorsUnavailable
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.model.vector import Vectors
from zibaldone.store.port import Scored, VectorCoverage, VectorReads
from zibaldone.store.qdrant.filters import admits_nothing
from zibaldone.store.qdrant.index import QdrantIndex

_NEW_DOCUMENTS_MAX = 500
"""Documents that Qdrant lacks are compared by the store; with more, it compares everything."""

_SPARE = 10
_GROWTH = 4
_ROUNDS_MAX = 4
"""If the store drops hits that Qdrant found, so often more are asked for, each time more."""


class MirroredVectors:
    """Bound to one tenant, on one snapshot of the store.

    Qdrant has the namespace and the facets of each point and filters by them. The store decides:
    a hit counts if its chunk is there, in the tenant, and passes the filter, all in this snapshot.
    Documents that Qdrant has not taken over yet are compared in the store, so that a search never
    misses what was committed before it. Where Qdrant cannot be used, the store's vectors are.
    """

    def __init__(self, own: VectorReads, tenant: Tenant, index: QdrantIndex) -> None:
        self._own = own
        self._tenant = tenant
        self._index = index

    def search(
        self, identity: str, vector: Vectors, k: int, wanted: Filter = NO_FILTER
    ) -> list[Scored]:
        hits = None
        is_ours = identity == self._index.identity and self._index.is_usable
        if is_ours and k > 0 and not admits_nothing(wanted):
            new = self._own.unmirrored(self._index.name, _NEW_DOCUMENTS_MAX)
            if new is not None:
                hits = self._nearest(vector, k, wanted, new)
        return self._own.search(identity, vector, k, wanted) if hits is None else hits

    def _nearest(
        self, vector: Vectors, k: int, wanted: Filter, new: list[str]
    ) -> list[Scored] | None:
        """None: it cannot be had this way."""
        try:
            found = self._passing(vector, k, wanted)
        except VectorsUnavailable:
            return None
        if found is None:
            return None
        if new:
            among = new if wanted.document_ids is None else set(new) & set(wanted.document_ids)
            of_new = replace(wanted, document_ids=tuple(among))
            found |= dict(self._own.search(self._index.identity, vector, k, of_new))
        ranked = sorted(found.items(), key=lambda hit: (-hit[1], hit[0]))
        return [(key, min(cosine, 1.0)) for key, cosine in ranked[:k]]

    def _passing(self, vector: Vectors, k: int, wanted: Filter) -> dict[int, float] | None:
        """The nearest that Qdrant knows of and that pass; None: the store dropped too many."""
        limit = k + _SPARE
        for _ in range(_ROUNDS_MAX):
            hits = self._index.search(vector, limit, self._tenant, wanted)
            passing = self._own.passing((key for key, _ in hits), wanted)
            if len(passing) >= k or len(hits) < limit:
                return {key: cosine for key, cosine in hits if key in passing}
            limit *= _GROWTH
        return None

    def scores(self, identity: str, vector: Vectors, chunk_keys: Iterable[int]) -> dict[int, float]:
        return self._own.scores(identity, vector, chunk_keys)

    def coverage(self, identity: str) -> VectorCoverage:
        coverage = self._own.coverage(identity)
        if self._index.problem is None:
            return coverage
        note = f"{self._index.problem}; the vectors in the store were searched instead"
        return replace(coverage, note=note)

    def passing(self, chunk_keys: Iterable[int], wanted: Filter = NO_FILTER) -> set[int]:
        return self._own.passing(chunk_keys, wanted)

    def unmirrored(self, name: str, limit: int) -> list[str] | None:
        return self._own.unmirrored(name, limit)
