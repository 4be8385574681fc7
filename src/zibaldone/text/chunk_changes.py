"""Which chunks of a document stay, move, come and go when it is cut anew."""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from zibaldone.model.chunk import ChunkChanges, ChunkTerms, MovedChunk, NewChunk, StoredChunk
from zibaldone.text.chunk import Chunk
from zibaldone.text.terms import chunk_terms
from zibaldone.text.title import title_beside

Checkpoint = Callable[[], None]
"""Called between steps of long work; raises when the work is to end."""


def never_ends() -> None:
    """The checkpoint of work that is short."""


@dataclass(frozen=True, slots=True)
class HashedChunk:
    chunk: Chunk
    digest: bytes
    """Over everything that is indexed with a chunk: when one of these changes, it is a new one."""


@dataclass(frozen=True, slots=True)
class WantedChunks:
    """The chunks that a document shall have, and terms that were made for them in advance."""

    title: str
    chunks: Sequence[HashedChunk]
    terms: dict[bytes, ChunkTerms] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        title: str,
        chunks: Iterable[Chunk],
        terms: dict[bytes, ChunkTerms] | None = None,
        checkpoint: Checkpoint = never_ends,
    ) -> WantedChunks:
        hashed: list[HashedChunk] = []
        for chunk in chunks:
            checkpoint()
            hashed.append(HashedChunk(chunk, _chunk_hash(title, chunk)))
        return cls(title, hashed, {} if terms is None else terms)

    def make_terms(self, stored: Iterable[StoredChunk], checkpoint: Checkpoint) -> None:
        """Make the terms that `changes` needs, in advance."""
        for hashed in self._compared(stored).added:
            checkpoint()
            if hashed.digest not in self.terms:
                self.terms[hashed.digest] = self._terms(hashed.chunk)

    def lacks_terms(self, stored: Iterable[StoredChunk]) -> bool:
        """Would `changes` have to make terms?"""
        return any(hashed.digest not in self.terms for hashed in self._compared(stored).added)

    def changes(self, stored: Iterable[StoredChunk]) -> ChunkChanges:
        """What makes the stored chunks the wanted ones.

        A chunk whose title, heading and text are the same keeps its key, and so its vectors. Terms
        are made for new chunks only.
        """
        compared = self._compared(stored)
        return ChunkChanges(self._new_chunks(compared.added), compared.moved, compared.removed)

    def _compared(self, stored: Iterable[StoredChunk]) -> _Compared:
        by_hash: defaultdict[bytes, deque[StoredChunk]] = defaultdict(deque)
        for known in stored:
            by_hash[known.content_hash].append(known)
        added: list[HashedChunk] = []
        moved: list[MovedChunk] = []
        for hashed in self.chunks:
            chunk = hashed.chunk
            if same := by_hash.get(hashed.digest):
                kept = same.popleft()
                if (kept.index, kept.start, kept.end) != (chunk.index, chunk.start, chunk.end):
                    moved.append(MovedChunk(kept.chunk_key, chunk.index, chunk.start, chunk.end))
            else:
                added.append(hashed)
        removed = [gone.chunk_key for left in by_hash.values() for gone in left]
        return _Compared(added, moved, removed)

    def _terms(self, chunk: Chunk) -> ChunkTerms:
        return chunk_terms(self.title, chunk.heading, chunk.text)

    def _new_chunks(self, added: Sequence[HashedChunk]) -> list[NewChunk]:
        return [
            NewChunk(
                chunk.index,
                chunk.start,
                chunk.end,
                chunk.heading,
                chunk.text,
                digest,
                self.terms.get(digest) or self._terms(chunk),
            )
            for chunk, digest in ((hashed.chunk, hashed.digest) for hashed in added)
        ]


@dataclass(frozen=True, slots=True)
class _Compared:
    added: list[HashedChunk]
    moved: list[MovedChunk]
    removed: list[int]


def chunk_changes(
    stored: Iterable[StoredChunk], title: str, wanted: Iterable[Chunk]
) -> ChunkChanges:
    return WantedChunks.of(title, wanted).changes(stored)


def _chunk_hash(title: str, chunk: Chunk) -> bytes:
    text = f"{title_beside(title, chunk.text)}\0{chunk.heading}\0{chunk.text}"
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
