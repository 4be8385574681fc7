"""What must hold of the vectors, looked at in the tables themselves."""

from __future__ import annotations

from tests.store.backends import Backend
from zibaldone.embed.port import Embedder
from zibaldone.index.embedding import embedded_text
from zibaldone.store.upkeep import ChunkText

_WANTED = """
SELECT c.chunk_key, d.title, c.heading, c.body FROM chunks c JOIN documents d USING (document_key)
WHERE d.deleted_at_us IS NULL AND d.vector_status <> 'skipped'
"""


def stored_vectors(store: Backend, identity: str) -> dict[int, bytes]:
    """The vectors of a model by passage."""
    return store.vectors(identity)


def right_vectors(store: Backend, embedder: Embedder) -> dict[int, bytes]:
    """What there must be: one for each passage of a live document that is not skipped."""
    rows = store.query(_WANTED)
    texts = [
        embedded_text(title, ChunkText(key, heading, body)) for key, title, heading, body in rows
    ]
    vectors = embedder.embed(texts)
    return {row[0]: store.stored_vector(vector) for row, vector in zip(rows, vectors, strict=True)}


def assert_in_step(store: Backend, embedder: Embedder) -> None:
    """Exactly the right vectors, nothing waiting, every status true."""
    assert stored_vectors(store, embedder.identity) == right_vectors(store, embedder)
    assert store.query("SELECT * FROM jobs WHERE kind = 'vectors'") == []
    statuses = store.query(
        "SELECT DISTINCT vector_status FROM documents WHERE deleted_at_us IS NULL"
    )
    assert set(statuses) <= {("ready",), ("skipped",)}
