"""Vector search: by an index of the model's vectors, or by comparing those that a filter leaves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from zibaldone.access.principal import Tenant
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.model.vector import Vectors as VectorRows
from zibaldone.store import statements
from zibaldone.store.port import Scored, VectorCoverage
from zibaldone.store.postgres.connection import Transaction, settings_statement
from zibaldone.store.postgres.eligible import (
    PLANNED_ANEW,
    eligible_chunks,
    expected_documents,
    filter_values,
    is_open,
    present_chunks,
    with_filter,
)
from zibaldone.store.postgres.mirrors import unmirrored
from zibaldone.store.tenants import range_values

_SQL = statements.load("zibaldone.store.postgres", "vectors.sql")

_COMPARED_MAX = 50_000
"""Up to about this many vectors, all that pass the filter are compared, some 50 ms: nothing is
missed."""

_COMPARED_OF_MANY_MAX = 250_000
_SHARE_MAX = 0.25
"""So many are compared if they are no more than this share of all: the index would give too much
that does not pass, and miss much of what does."""

_LIST_MIN = 200
_LIST_MAX = 1_000
_LIST_TIMES = 5
"""What the index keeps in mind on its way (`hnsw.ef_search`): five times what is asked for, and as
much as it can where a filter drops most of it."""

_TRIED_MAX = 4
"""How much more than can be compared the planner may expect to pass, for it to be tried: it may be
wrong."""

_ALL = 1_000_000_000

_LOOKED_AT_MAX = 40_000
"""Vectors that the index gives before it gives up finding enough that pass the filter."""


@dataclass(frozen=True, slots=True)
class _Model:
    model_id: int
    dimensions: int
    schema: str
    """Where pgvector is."""
    chunks: int
    """How many the namespace has, about; the same for the next."""
    documents: int

    @property
    def compared_max(self) -> int:
        return max(_COMPARED_MAX, min(_COMPARED_OF_MANY_MAX, int(_SHARE_MAX * self.chunks)))

    def statement(self, name: str, values: dict[str, Any]) -> str:
        """With numbers and names that no placeholder can stand for."""
        return (
            with_filter(_SQL[name], values)
            .replace("/*dimensions*/1", str(int(self.dimensions)))
            .replace("/*model_id*/1", str(int(self.model_id)))
            .replace("public.", f"{self.schema}.")
        )


class Vectors:
    """Bound to one tenant, on one snapshot."""

    def __init__(self, transaction: Transaction, tenant: Tenant) -> None:
        self._transaction = transaction
        self._tenant = tenant
        self._models: dict[str, _Model | None] = {}

    def search(
        self, identity: str, vector: VectorRows, k: int, wanted: Filter = NO_FILTER
    ) -> list[Scored]:
        model = self._model(identity)
        values = filter_values(self._tenant, wanted)
        if model is None or values is None or k < 1:
            return []
        has_all = is_open(self._tenant, wanted)
        hits = self._by_comparing(model, vector, k, values, has_all=has_all)
        if hits is None:
            hits = self._by_index(model, vector, k, values, has_all=has_all)
            if len(hits) < k:  # the filter leaves what is far away
                hits = self._of_few(model, vector, k, values, vectors_max=_ALL)
        return hits or []

    def _by_comparing(
        self, model: _Model, vector: VectorRows, k: int, values: dict[str, Any], *, has_all: bool
    ) -> list[Scored] | None:
        """None: there are too many."""
        vectors_max = model.compared_max
        if model.chunks > vectors_max:
            if has_all:
                return None
            per_document = model.chunks / max(1, model.documents)
            expected = expected_documents(self._transaction, values) * per_document
            if expected > max(_TRIED_MAX * _COMPARED_MAX, vectors_max):
                return None
        return self._of_few(model, vector, k, values, vectors_max=vectors_max)

    def _of_few(
        self,
        model: _Model,
        vector: VectorRows,
        k: int,
        values: dict[str, Any],
        *,
        vectors_max: int,
    ) -> list[Scored] | None:
        self._transaction.defer(*PLANNED_ANEW)
        selected = self._transaction.execute(
            model.statement("nearest_of_few", values),
            {**values, "vector": as_text(vector), "limit": k, "vectors_max": vectors_max},
        )
        if selected[0][0] > vectors_max:
            return None
        return [(key, min(cosine, 1.0)) for _, key, cosine in selected if key is not None]

    def _by_index(
        self, model: _Model, vector: VectorRows, k: int, values: dict[str, Any], *, has_all: bool
    ) -> list[Scored]:
        listed = max(_LIST_MIN, min(_LIST_TIMES * k, _LIST_MAX)) if has_all else _LIST_MAX
        settings = {
            "hnsw.iterative_scan": "strict_order",
            "hnsw.ef_search": str(listed),
            "hnsw.max_scan_tuples": str(_LOOKED_AT_MAX),
            "enable_sort": "off",  # where there is no index, it sorts nevertheless
            "plan_cache_mode": "force_custom_plan",
            "jit": "off",
        }
        self._transaction.defer(*settings_statement(settings))
        hits = self._nearest(model, "nearest", vector, {**values, "limit": k, "is_open": has_all})
        self._transaction.defer(*settings_statement({"enable_sort": "on"}))
        return hits

    def _compared(
        self, model: _Model, vector: VectorRows, k: int, chunk_keys: list[int]
    ) -> list[Scored]:
        if not chunk_keys:
            return []
        values = {"namespace": self._tenant.namespace, "chunk_keys": chunk_keys, "limit": k}
        return self._nearest(model, "nearest_of", vector, values)

    def _nearest(
        self, model: _Model, statement: str, vector: VectorRows, values: dict[str, Any]
    ) -> list[Scored]:
        selected = self._transaction.execute(
            model.statement(statement, values), {**values, "vector": as_text(vector)}
        )
        return [(key, min(cosine, 1.0)) for key, cosine in selected]

    def scores(
        self, identity: str, vector: VectorRows, chunk_keys: Iterable[int]
    ) -> dict[int, float]:
        model = self._model(identity)
        listed = list(chunk_keys)
        if model is None or not listed:
            return {}
        if self._tenant.prefix:
            values = {**range_values(self._tenant), "chunk_keys": listed}
            listed = [row[0] for row in self._transaction.execute(_SQL["visible"], values)]
        return dict(self._compared(model, vector, len(listed), listed))

    def coverage(self, identity: str) -> VectorCoverage:
        values = {**range_values(self._tenant), "identity": identity}
        pending, has_model = self._transaction.row(_SQL["coverage"], values) or (0, False)
        return VectorCoverage(pending, has_model)

    def passing(self, chunk_keys: Iterable[int], wanted: Filter = NO_FILTER) -> set[int]:
        values = filter_values(self._tenant, wanted)
        listed = list(chunk_keys)
        if values is None or not listed:
            return set()
        if is_open(self._tenant, wanted):
            present = present_chunks(self._transaction, values, listed)
            if present is not None:
                return present
        return eligible_chunks(self._transaction, values, listed)

    def unmirrored(self, name: str, limit: int) -> list[str] | None:
        return unmirrored(self._transaction, self._tenant, name, limit)

    def _model(self, identity: str) -> _Model | None:
        if identity not in self._models:
            values = {"identity": identity, "namespace": self._tenant.namespace}
            row = self._transaction.row(_SQL["model"], values)
            self._models[identity] = None if row is None else _Model(*row)
        return self._models[identity]


def as_text(vector: VectorRows) -> str:
    """As pgvector takes it: `[0.1,0.2]`."""
    return orjson.dumps(vector, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def as_array(vector: VectorRows) -> str:
    """As PostgreSQL takes an array: `{0.1,0.2}`."""
    return "{" + as_text(vector)[1:-1] + "}"
