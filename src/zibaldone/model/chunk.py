"""A chunk: the stored piece of a document that is found, shown and embedded on its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TermRuns = Sequence[Sequence[str]]
"""The index terms of a text, in runs: terms of one run stand side by side, and no phrase may span
two runs. The first run holds the words in reading order."""


class JoinedRuns(Sequence[Sequence[str]]):
    """Runs of terms, each kept as one text: a long document has millions of terms, which as values
    of their own take thirty times the room of the document."""

    __slots__ = ("texts",)

    def __init__(self, runs: Iterable[Sequence[str]]) -> None:
        self.texts = tuple(map(" ".join, runs))
        """The terms of each run with spaces between them."""

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: Any) -> Any:
        text = self.texts[index]
        return text.split(" ") if text else []


@dataclass(frozen=True, slots=True)
class ChunkTerms:
    """What the keyword index stores for a chunk, field by field."""

    title: JoinedRuns
    heading: JoinedRuns
    body: JoinedRuns

    @property
    def chars(self) -> int:
        return sum(
            len(text) for runs in (self.title, self.heading, self.body) for text in runs.texts
        )


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """What has to be known of a stored chunk to see whether it stays."""

    chunk_key: int
    content_hash: bytes
    index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NewChunk:
    index: int
    start: int
    end: int
    heading: str
    text: str
    content_hash: bytes
    terms: ChunkTerms


@dataclass(frozen=True, slots=True)
class MovedChunk:
    """A chunk with the same content at another place; it keeps its key and its vectors."""

    chunk_key: int
    index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ChunkChanges:
    """What turns the stored chunks of a document into the wanted ones."""

    added: Sequence[NewChunk] = ()
    moved: Sequence[MovedChunk] = ()
    removed: Sequence[int] = ()
    """Keys."""

    def __bool__(self) -> bool:
        return bool(self.added or self.moved or self.removed)


@dataclass(frozen=True, slots=True)
class ChunkView:
    """A chunk with what is shown of it and of its document."""

    chunk_key: int
    document_id: str
    chunk_index: int
    title: str
    heading: str
    text: str
    start: int
    source_id: int
    source_name: str
    metadata: Mapping[str, Any]
    tags: tuple[str, ...]
    updated_at_us: int
    """When its document was written last."""

    @property
    def chunk_id(self) -> str:
        return f"{self.document_id}#{self.chunk_index}"
