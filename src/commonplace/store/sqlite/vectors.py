"""Vector search over what the file holds, by way of memory.

A process reads all vectors of a model once and then follows the log of changes: before each search
it looks how far the log goes, so that a search never misses a vector that was committed before it,
by whichever process, and never returns one that was removed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import apsw
import numpy as np
import numpy.typing as npt
import orjson

from commonplace.access.principal import Scope
from commonplace.model.query import NO_FILTER, Filter
from commonplace.model.vector import Vectors as VectorRows
from commonplace.store import statements
from commonplace.store.port import VectorCoverage
from commonplace.store.sqlite.filters import filter_values, folded_tags, range_values
from commonplace.store.sqlite.vector_index import StoredVector, VectorIndex

_SQL = statements.load("commonplace.store.sqlite", "vectors.sql")

_ROWS_AT_ONCE = 20_000


class VectorMemory:
    """The vectors in memory, one index for each model in use; shared by a process's readers."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._by_model: dict[int, VectorIndex] = {}

    def current(self, raw: apsw.Connection, model_id: int, dimensions: int) -> VectorIndex:
        """The index of a model, brought up to the reader's snapshot. Call with the lock held."""
        newest, oldest = raw.execute(_SQL["newest_change"]).fetchone() or (0, 0)
        index = self._by_model.get(model_id)
        if index is None or index.seen_change < oldest - 1:
            index = VectorIndex(dimensions)
            _put_all(index, raw.execute(_SQL["all_vectors"], {"model_id": model_id}))
            index.seen_change = newest
            self._by_model[model_id] = index
        elif index.seen_change < newest:
            _follow(index, raw, model_id)
            index.seen_change = newest
        return index

    @property
    def size_bytes(self) -> int:
        return sum(index.size_bytes for index in self._by_model.values())


class Vectors:
    """Bound to one scope, on one snapshot."""

    def __init__(self, raw: apsw.Connection, scope: Scope, memory: VectorMemory) -> None:
        self._raw = raw
        self._scope = scope
        self._memory = memory

    def search(
        self, identity: str, vector: VectorRows, k: int, wanted: Filter = NO_FILTER
    ) -> list[tuple[int, float]]:
        model = self._model(identity)
        values = filter_values(self._scope, wanted)
        if model is None or values is None:
            return []
        sources = [row[0] for row in self._raw.execute(_SQL["sources"], _only(values, _SOURCES))]
        documents = self._eligible(wanted, values)
        with self._memory.lock:
            index = self._memory.current(self._raw, *model)
            return index.search(
                vector,
                k,
                namespace=self._scope.namespace,
                sources=sources,
                documents=documents,
            )

    def scores(
        self, identity: str, vector: VectorRows, chunk_keys: Iterable[int]
    ) -> dict[int, float]:
        model = self._model(identity)
        if model is None:
            return {}
        with self._memory.lock:
            return self._memory.current(self._raw, *model).scores(vector, chunk_keys)

    def coverage(self, identity: str) -> VectorCoverage:
        values = {**range_values(self._scope), "identity": identity}
        row = self._raw.execute(_SQL["coverage"], values).fetchone()
        pending, has_model = row or (0, 0)
        return VectorCoverage(pending, bool(has_model))

    def _model(self, identity: str) -> tuple[int, int] | None:
        row = self._raw.execute(_SQL["model"], {"identity": identity}).fetchone()
        return None if row is None else (row[0], row[1])

    def _eligible(self, wanted: Filter, values: dict[str, object]) -> npt.NDArray[np.int64] | None:
        """The documents a filter admits, each condition by its own index; None: all of them."""
        found: list[npt.NDArray[np.int64]] = []
        walks = (wanted.min_score, wanted.post_type_ids)
        dates = (wanted.created_after_us, wanted.created_before_us)
        is_bounded = values["start"] != "" or any(part is not None for part in (*walks, *dates))
        if is_bounded:
            found.append(self._keys("eligible", _only(values, _WALKED)))
        if wanted.document_ids is not None:
            found.append(self._keys("identified", _only(values, _IDENTIFIED)))
        if (any_of := folded_tags(wanted.tags_any)) is not None:
            found.append(self._tagged(any_of, 1))
        if all_of := folded_tags(wanted.tags_all):
            found.append(self._tagged(all_of, len(all_of)))
        if not found:
            return None
        keys = found[0]
        for others in found[1:]:
            keys = np.intersect1d(keys, others, assume_unique=True)
        return keys

    def _tagged(self, tags: tuple[str, ...], least: int) -> npt.NDArray[np.int64]:
        return self._keys("tagged", {"tags": orjson.dumps(tags).decode(), "least": least})

    def _keys(self, statement: str, values: dict[str, object]) -> npt.NDArray[np.int64]:
        rows = self._raw.execute(_SQL[statement], values)
        return np.fromiter((row[0] for row in rows), np.int64)


_SOURCES = ("namespace", "source_ids", "source_names")
_IDENTIFIED = ("namespace", "document_ids", "start", "end")
_WALKED = (
    "namespace",
    "start",
    "end",
    "min_score",
    "post_types",
    "created_after",
    "created_before",
)


def _only(values: dict[str, object], names: tuple[str, ...]) -> dict[str, object]:
    return {name: values[name] for name in names}


def _put_all(index: VectorIndex, rows: Iterable[tuple[object, ...]]) -> None:
    batch: list[StoredVector] = []
    for row in rows:
        batch.append(StoredVector(*row))  # type: ignore[arg-type]
        if len(batch) == _ROWS_AT_ONCE:
            index.put(batch)
            batch.clear()
    index.put(batch)


def _follow(index: VectorIndex, raw: apsw.Connection, model_id: int) -> None:
    changed = raw.execute(
        _SQL["changed_chunks"], {"model_id": model_id, "after": index.seen_change}
    )
    keys = [row[0] for row in changed]
    listed = {"model_id": model_id, "chunk_keys": orjson.dumps(keys).decode()}
    present = [StoredVector(*row) for row in raw.execute(_SQL["some_vectors"], listed)]
    index.remove(set(keys) - {stored.chunk_key for stored in present})
    index.put(present)
