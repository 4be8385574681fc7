"""Which chunks of a document stay, move, are added and removed when it is cut again."""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from zibaldone.model.chunk import ChunkChanges, ChunkTerms, MovedChunk, NewChunk, StoredChunk
from zibaldone.text.chunk import Chunk
from zibaldone.text.terms import index_terms


def chunk_changes(
    stored: Iterable[StoredChunk], title: str, wanted: Sequence[Chunk]
) -> ChunkChanges:
    """What makes the stored chunks the wanted ones.

    A chunk whose title, heading and text are the same keeps its key, and so its vectors. Terms are
    made for new chunks only.
    """
    by_hash: defaultdict[bytes, deque[StoredChunk]] = defaultdict(deque)
    for known in stored:
        by_hash[known.content_hash].append(known)
    added: list[tuple[Chunk, bytes]] = []
    moved: list[MovedChunk] = []
    for chunk in wanted:
        digest = _chunk_hash(title, chunk)
        if same := by_hash.get(digest):
            kept = same.popleft()
            if (kept.index, kept.start, kept.end) != (chunk.index, chunk.start, chunk.end):
                moved.append(MovedChunk(kept.chunk_key, chunk.index, chunk.start, chunk.end))
        else:
            added.append((chunk, digest))
    removed = [gone.chunk_key for left in by_hash.values() for gone in left]
    return ChunkChanges(_new_chunks(title, added), moved, removed)


def _new_chunks(title: str, added: Sequence[tuple[Chunk, bytes]]) -> list[NewChunk]:
    if not added:
        return []
    title_terms = index_terms(title)
    return [
        NewChunk(
            chunk.index,
            chunk.start,
            chunk.end,
            chunk.heading,
            chunk.text,
            digest,
            ChunkTerms(title_terms, index_terms(chunk.heading), index_terms(chunk.text)),
        )
        for chunk, digest in added
    ]


def _chunk_hash(title: str, chunk: Chunk) -> bytes:
    """Over everything that is indexed with a chunk: when one of these changes, it is a new one."""
    text = f"{title}\0{chunk.heading}\0{chunk.text}"
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
