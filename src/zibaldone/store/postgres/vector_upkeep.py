"""Vectors as background work sees them: by storage key, a set of documents at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from zibaldone.errors import Internal
from zibaldone.model.vector import Vectors
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.upkeep import ChunkText, DocumentState


class VectorUpkeep:
    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def states(self, document_keys: Iterable[int]) -> dict[int, DocumentState]:
        raise _missing()

    def chunks_without_vector(
        self, document_keys: Iterable[int], model_id: int, limit: int
    ) -> Mapping[int, Sequence[ChunkText]]:
        raise _missing()

    def lacking(self, document_keys: Iterable[int], model_id: int) -> set[int]:
        raise _missing()

    def lacking_page(self, model_id: int, *, after: int, limit: int) -> list[tuple[int, bool]]:
        raise _missing()

    def put(self, model_id: int, chunk_keys: Sequence[int], vectors: Vectors) -> None:
        raise _missing()

    def delete(self, vectors: Iterable[tuple[int, int]]) -> None:
        raise _missing()

    def drop(self, model_id: int, limit: int) -> int:
        raise _missing()

    def enqueue_missing(self, document_keys: Iterable[int], model_id: int, at_us: int) -> int:
        raise _missing()

    def enqueue_cut(self, document_keys: Iterable[int], at_us: int) -> None:
        raise _missing()

    def set_ready(self, revisions: Iterable[tuple[int, int]]) -> None:
        raise _missing()

    def set_error(self, errors: Iterable[tuple[int, int, str]]) -> None:
        raise _missing()


def _missing() -> Internal:
    return Internal("The PostgreSQL engine keeps no vectors yet.")
