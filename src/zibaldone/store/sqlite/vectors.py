"""Vector search in memory, over what the file holds.

A process reads all vectors of a model once and then follows the log of changes: before each search
it reads the rest of the log. So a search never misses a vector that any process committed before
it, and never returns one that was removed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw
import orjson

from zibaldone.access.principal import Tenant
from zibaldone.errors import VectorsUnavailable
from zibaldone.limits import VECTOR_CHANGES_KEPT, VECTOR_LOAD_SECONDS_MAX
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.model.vector import Vectors as VectorRows
from zibaldone.model.vector import np
from zibaldone.store import statements
from zibaldone.store.port import VectorCoverage
from zibaldone.store.sqlite.documents import FEW_DOCUMENTS, count_documents
from zibaldone.store.sqlite.filters import filter_values
from zibaldone.store.sqlite.mirrors import unmirrored
from zibaldone.store.sqlite.vector_index import StoredVector, VectorIndex
from zibaldone.store.sqlite.vector_log import ALL_CHUNKS
from zibaldone.store.tenants import range_values

if TYPE_CHECKING:
    import numpy.typing as npt

_SQL = statements.load("zibaldone.store.sqlite", "vectors.sql")

_PAGE_ROWS = 20_000
"""Read at once, of the vectors or of the log: about a tenth of a second."""


_TAGS_PER_DOCUMENT = 5
"""To walk the tags of a document takes as long as to go through so many that have a given one."""


class _Held:
    """What a process has of one model. Until all is read, a search would miss something."""

    def __init__(self, dimensions: int, seen_change: int) -> None:
        self.begin(dimensions, seen_change)

    def begin(self, dimensions: int, seen_change: int) -> None:
        self.index = VectorIndex(dimensions)
        self.seen_change = seen_change
        """The newest change of the file that is reflected here."""
        self.read_through: int | None = 0
        """The last chunk that was read; None when all were."""


class VectorMemory:
    """The vectors in memory, one index for each model in use; shared by a process's readers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_model: dict[int, _Held] = {}

    @contextmanager
    def current(
        self, raw: apsw.Connection, model_id: int, dimensions: int
    ) -> Iterator[VectorIndex]:
        """The index of a model at the reader's snapshot or later, for one search.

        What could not be read in the time is left to the next: in the end it is all there.
        """
        until_s = time.monotonic() + VECTOR_LOAD_SECONDS_MAX
        if not self._lock.acquire(timeout=VECTOR_LOAD_SECONDS_MAX):
            raise _loading()
        try:
            held = self._held(raw, model_id, dimensions)
            while _read_on(held, raw, model_id):
                if time.monotonic() > until_s:
                    raise _loading()
            yield held.index
        finally:
            self._lock.release()

    def load_page(self, raw: apsw.Connection, model_id: int, dimensions: int) -> bool:
        """Read on, ahead of any search; False when there is nothing more."""
        with self._lock:
            return _read_on(self._held(raw, model_id, dimensions), raw, model_id)

    def _held(self, raw: apsw.Connection, model_id: int, dimensions: int) -> _Held:
        newest, oldest = _log_ends(raw)
        held = self._by_model.get(model_id)
        if held is None or held.seen_change < max(oldest - 1, newest - VECTOR_CHANGES_KEPT):
            held = self._by_model[model_id] = _Held(dimensions, newest)
        elif held.read_through is not None:
            # This reader's snapshot may be older than that of the one who began.
            held.seen_change = min(held.seen_change, newest)
        return held


def _log_ends(raw: apsw.Connection) -> tuple[int, int]:
    newest, oldest = raw.execute(_SQL["newest_change"]).fetchone() or (0, 0)
    return newest, oldest


def _read_on(held: _Held, raw: apsw.Connection, model_id: int) -> bool:
    """One step, of which nothing has to be done again; False when all is there."""
    return _read_page(held, raw, model_id) or _follow_log(held, raw, model_id)


def _read_page(held: _Held, raw: apsw.Connection, model_id: int) -> bool:
    """Read the next chunks; False when that were the last."""
    if held.read_through is None:
        return False
    values = {"model_id": model_id, "after": held.read_through, "limit": _PAGE_ROWS}
    page = [StoredVector(*row) for row in raw.execute(_SQL["vectors_page"], values)]
    held.index.put(page)
    held.read_through = page[-1].chunk_key if len(page) == _PAGE_ROWS else None
    return held.read_through is not None


def _follow_log(held: _Held, raw: apsw.Connection, model_id: int) -> bool:
    """Take over the next changes; False when these were the last.

    Each chunk is brought to what it is in this reader's snapshot, which may be further than the
    step. What comes later in the log is then brought there once more, so no order is lost.
    """
    newest, _ = _log_ends(raw)
    if held.seen_change >= newest:
        return False
    through = min(newest, held.seen_change + _PAGE_ROWS)
    values = {"model_id": model_id, "after": held.seen_change, "through": through}
    keys = {row[0] for row in raw.execute(_SQL["changed_chunks"], values)}
    if ALL_CHUNKS in keys:
        held.begin(held.index.dimensions, newest)
        return True
    listed = {"model_id": model_id, "chunk_keys": orjson.dumps(list(keys)).decode()}
    present = [StoredVector(*row) for row in raw.execute(_SQL["some_vectors"], listed)]
    held.index.remove(keys - {stored.chunk_key for stored in present})
    held.index.put(present)
    held.seen_change = through
    return through < newest


def _loading() -> VectorsUnavailable:
    return VectorsUnavailable(
        "The vectors are still being read into memory; try again in a moment."
    )


class Vectors:
    """Bound to one tenant, on one snapshot."""

    def __init__(self, raw: apsw.Connection, tenant: Tenant, memory: VectorMemory) -> None:
        self._raw = raw
        self._tenant = tenant
        self._memory = memory

    def search(
        self, identity: str, vector: VectorRows, k: int, wanted: Filter = NO_FILTER
    ) -> list[tuple[int, float]]:
        model = self._model(identity)
        values = filter_values(self._tenant, wanted)
        if model is None or values is None:
            return []
        sources = [row[0] for row in self._raw.execute(_SQL["sources"], _only(values, _SOURCES))]
        documents = self._eligible(wanted, values)
        without = None
        if wanted.without_ids:
            unwanted = {**values, "document_ids": values["without_ids"]}
            without = self._keys("identified", _only(unwanted, _IDENTIFIED))
        with self._memory.current(self._raw, *model) as index:
            return index.search(
                vector,
                k,
                namespace=self._tenant.namespace,
                sources=sources,
                documents=documents,
                without=without,
            )

    def scores(
        self, identity: str, vector: VectorRows, chunk_keys: Iterable[int]
    ) -> dict[int, float]:
        model = self._model(identity)
        if model is None:
            return {}
        if self._tenant.prefix:
            chunk_keys = self._visible(chunk_keys)
        with self._memory.current(self._raw, *model) as index:
            return index.scores(vector, chunk_keys, namespace=self._tenant.namespace)

    def passing(self, chunk_keys: Iterable[int], wanted: Filter = NO_FILTER) -> set[int]:
        values = filter_values(self._tenant, wanted)
        if values is None:
            return set()
        sources = {row[0] for row in self._raw.execute(_SQL["sources"], _only(values, _SOURCES))}
        listed = {"chunk_keys": orjson.dumps(list(chunk_keys)).decode()}
        rows = self._raw.execute(_SQL["visible"], {**range_values(self._tenant), **listed})
        chunks = {row[0]: row[1] for row in rows if row[2] in sources}
        documents = np.fromiter(chunks.values(), np.int64)
        if (eligible := self._eligible(wanted, values)) is not None:
            documents = np.intersect1d(documents, eligible)
        if wanted.without_ids:
            unwanted = {**values, "document_ids": values["without_ids"]}
            documents = np.setdiff1d(
                documents, self._keys("identified", _only(unwanted, _IDENTIFIED))
            )
        admitted = set(documents.tolist())
        return {key for key, document_key in chunks.items() if document_key in admitted}

    def unmirrored(self, name: str, limit: int) -> list[str] | None:
        return unmirrored(self._raw, self._tenant, name, limit)

    def _visible(self, chunk_keys: Iterable[int]) -> list[int]:
        listed = {"chunk_keys": orjson.dumps(list(chunk_keys)).decode()}
        rows = self._raw.execute(_SQL["visible"], {**range_values(self._tenant), **listed})
        return [row[0] for row in rows]

    def load_page(self, identity: str) -> bool:
        """Read on into memory; False when there is nothing more to read."""
        model = self._model(identity)
        if model is None or not self.coverage(identity).has_model:
            return False
        return self._memory.load_page(self._raw, *model)

    def coverage(self, identity: str) -> VectorCoverage:
        values = {**range_values(self._tenant), "identity": identity}
        row = self._raw.execute(_SQL["coverage"], values).fetchone()
        pending, has_model = row or (0, 0)
        return VectorCoverage(pending, bool(has_model))

    def _model(self, identity: str) -> tuple[int, int] | None:
        row = self._raw.execute(_SQL["model"], {"identity": identity}).fetchone()
        return None if row is None else (row[0], row[1])

    def _eligible(self, wanted: Filter, values: dict[str, object]) -> npt.NDArray[np.int64] | None:
        """The documents a filter admits, each condition by its own index; None: all of them."""
        key_sets: list[npt.NDArray[np.int64]] = []
        walks = (wanted.min_score, wanted.post_type_ids)
        dates = (wanted.created_after_us, wanted.created_before_us)
        changes = (wanted.updated_after_us, wanted.updated_before_us)
        said = any(part is not None for part in (*walks, *dates, *changes))
        is_bounded = values["start"] != "" or said
        if is_bounded:
            key_sets.append(self._keys("eligible", _only(values, _WALKED)))
        if wanted.document_ids is not None:
            key_sets.append(self._keys("identified", _only(values, _IDENTIFIED)))
        if (any_of := wanted.tags_any) is not None:
            key_sets.append(self._tagged(any_of, 1, values))
        if all_of := wanted.tags_all:
            key_sets.append(self._tagged(all_of, len(all_of), values))
        if not key_sets:
            return None
        keys = key_sets[0]
        for others in key_sets[1:]:
            keys = np.intersect1d(keys, others, assume_unique=True)
        return keys

    def _tagged(
        self, tags: tuple[str, ...], least: int, values: dict[str, object]
    ) -> npt.NDArray[np.int64]:
        """By the tags, or by the tenant's documents if those are fewer: what others have tagged
        must not slow down a small tenant."""
        bounds = _only(values, _RANGE)
        given = {"tags": orjson.dumps(tags).decode()}
        own = count_documents(self._raw, bounds, FEW_DOCUMENTS + 1)
        if own <= FEW_DOCUMENTS:
            counted = {**given, "limit": _TAGS_PER_DOCUMENT * own + 1}
            if self._raw.execute(_SQL["tags_given"], counted).get >= counted["limit"]:
                return self._keys("tagged_own", {**bounds, **given, "least": least})
        return self._keys("tagged", {**given, "least": least})

    def _keys(self, statement: str, values: dict[str, object]) -> npt.NDArray[np.int64]:
        rows = self._raw.execute(_SQL[statement], values)
        return np.fromiter((row[0] for row in rows), np.int64)


_RANGE = ("namespace", "start", "end")
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
    "updated_after",
    "updated_before",
)


def _only(values: dict[str, object], names: tuple[str, ...]) -> dict[str, object]:
    return {name: values[name] for name in names}
