"""Vectors as background work sees them: by storage key, a set of documents at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import apsw

from zibaldone.model.job import VECTORS, new_job_id
from zibaldone.model.vector import Vectors
from zibaldone.store import rows, statements
from zibaldone.store.sqlite import vector_log
from zibaldone.store.sqlite.queue import QueueUpkeep
from zibaldone.store.sqlite.vector_index import pack
from zibaldone.store.upkeep import ChunkText, DocumentState

_SQL = statements.load("zibaldone.store.sqlite", "vector_upkeep.sql")

_STATE: rows.Kinds = (int, str, str, int, str, int)


class VectorUpkeep:
    def __init__(self, raw: apsw.Connection) -> None:
        self._raw = raw
        self._queue = QueueUpkeep(raw)

    def states(self, document_keys: Iterable[int]) -> dict[int, DocumentState]:
        states = {}
        for row in self._raw.execute(_SQL["states"], _keys(document_keys)):
            key, document_id, title, revision, status, is_live = rows.require(row, _STATE)
            states[key] = DocumentState(key, document_id, title, revision, status, bool(is_live))
        return states

    def chunks_without_vector(
        self, document_keys: Iterable[int], model_id: int, limit: int
    ) -> Mapping[int, Sequence[ChunkText]]:
        values = {**_keys(document_keys), "model_id": model_id, "limit": limit}
        chunks: defaultdict[int, list[ChunkText]] = defaultdict(list)
        for document_key, *chunk in self._raw.execute(_SQL["chunks_without_vector"], values):
            chunks[document_key].append(ChunkText(*chunk))
        return chunks

    def hold(self, document_keys: Iterable[int]) -> set[int]:
        return set(document_keys)  # there is one writer at a time

    def lacking(self, document_keys: Iterable[int], model_id: int) -> set[int]:
        values = {**_keys(document_keys), "model_id": model_id}
        return {row[0] for row in self._raw.execute(_SQL["lacking"], values)}

    def lacking_page(self, model_id: int, *, after: int, limit: int) -> list[tuple[int, bool]]:
        values = {"model_id": model_id, "after": after, "limit": limit}
        return [(row[0], bool(row[1])) for row in self._raw.execute(_SQL["lacking_page"], values)]

    def put(self, model_id: int, chunk_keys: Sequence[int], vectors: Vectors) -> None:
        packed = [pack(vector) for vector in vectors]
        if len(packed) != len(chunk_keys):
            raise ValueError(f"{len(packed)} vectors for {len(chunk_keys)} chunks")
        if not packed:
            return
        values = {
            "model_id": model_id,
            "chunk_keys": rows.dumps(list(chunk_keys)),
            "packed": b"".join(packed),
            "size_bytes": len(packed[0]),
        }
        stored = [row[0] for row in self._raw.execute(_SQL["put"], values)]
        vector_log.append(self._raw, ((model_id, chunk_key) for chunk_key in stored))

    def delete(self, vectors: Iterable[tuple[int, int]]) -> None:
        listed = list(vectors)
        self._raw.execute(_SQL["delete"], {"vectors": rows.dumps(listed)})
        vector_log.append(self._raw, listed)

    def drop(self, model_id: int, limit: int) -> int:
        self._raw.execute(_SQL["drop"], {"model_id": model_id, "limit": limit})
        dropped = self._raw.changes()
        if dropped:
            vector_log.append(self._raw, [(model_id, vector_log.ALL_CHUNKS)])
        return dropped

    def enqueue_missing(self, document_keys: Iterable[int], model_id: int, at_us: int) -> int:
        return self._enqueue("enqueue_missing", document_keys, at_us, {"model_id": model_id})

    def enqueue_cut(self, document_keys: Iterable[int], at_us: int) -> None:
        self._enqueue("enqueue_cut", document_keys, at_us, {})

    def _enqueue(
        self, statement: str, document_keys: Iterable[int], at_us: int, values: dict[str, int]
    ) -> int:
        jobs = rows.dumps([(key, new_job_id()) for key in document_keys])
        added = self._raw.execute(
            _SQL[statement], {**values, "jobs": jobs, "kind": VECTORS, "at_us": at_us}
        )
        subjects = [(namespace, subject) for namespace, subject in added]
        if subjects:
            self._queue.forget_ended(VECTORS, subjects)
            self._raw.execute(_SQL["set_pending"], _keys(int(subject) for _, subject in subjects))
        return len(subjects)

    def set_ready(self, revisions: Iterable[tuple[int, int]]) -> None:
        self._raw.execute(_SQL["set_ready"], {"revisions": rows.dumps(list(revisions))})

    def set_error(self, errors: Iterable[tuple[int, int, str]]) -> None:
        self._raw.execute(_SQL["set_error"], {"errors": rows.dumps(list(errors))})


def _keys(document_keys: Iterable[int]) -> dict[str, object]:
    return {"document_keys": rows.dumps(list(document_keys))}
