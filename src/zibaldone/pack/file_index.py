"""What is known of the files of one call, in memory: chunks, terms, definitions, vectors.

Blocking and without a clock of its own: `pack/overflow.py` runs it in threads.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from zibaldone.find.fusion import weighted_scores
from zibaldone.limits import OVERFLOW_CANDIDATES, OVERFLOW_TEXT_CHARS_MAX
from zibaldone.model.vector import Vectors, np
from zibaldone.pack.code_ranking import (
    NAMES_SHARE,
    PATH_SHARE,
    SYMBOL_SHARE,
    CodeQuery,
    PathTerms,
    asked_roles,
    name_terms,
    path_match,
    path_terms,
    roles_of,
    terms_of,
    worth_of,
)
from zibaldone.pack.definitions import defined_names
from zibaldone.pack.keywords import KeywordIndex
from zibaldone.pack.vector_cache import vector_keys
from zibaldone.text.chunk import chunk_document

_MIMES = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "mdx": "text/markdown",
    "txt": "text/plain",
    "rst": "text/plain",
    "adoc": "text/plain",
}
_CODE = "text/x-code"

_CARD_CHARS = 900
"""Of a card: as much as a chunk, what the built-in model reads at once."""
_CARD_OPENING_CHARS = 300
_CARD_NAMES_MAX = 60

_BREATHE_CHUNKS = 8
"""Chunks between two moments at which other threads may run: some milliseconds."""

_BLOCK_ROWS = 8_192
"""Vectors compared at once: a block takes twelve megabytes as float32."""

_SCALE = 127.0
_NO_VECTOR = -3.0
_NOWHERE = -1
"""A file that has none of the words: scores are scaled from it, not from the worst candidate, which
may be a good one where there are few."""
_UNKNOWN = -2.0
"""Below it is no cosine: there is no vector."""


class IndexableFile(Protocol):
    @property
    def path(self) -> str:
        """As the assistant names it."""
        ...

    @property
    def load(self) -> Callable[[], str]:
        """Its text. OSError if it cannot be read any more."""
        ...


class Stopped(Exception):
    """The call ended while its index was still being built."""


@dataclass(frozen=True, slots=True)
class FoundChunk:
    path: str
    from_line: int
    """Counted from 1."""
    to_line: int
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class KeywordScores:
    query: CodeQuery
    files: Vectors
    """Between 0 and 1: whole files and their best chunks, half and half."""
    chunks: Vectors
    names: Vectors
    """How well the names that a file defines match, between 0 and 1."""


class FileIndex:
    """Built by `add` for each file, then searched. Vectors come later, one by one.

    The vectors are those of the chunks, in order, and then one of each file's card: its path, its
    first lines and the names that it defines. Files are ranked by their cards as well as by their
    chunks, and cards are made first, for they are few.
    """

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self.files: list[IndexableFile] = []
        self.unreadable: dict[str, str] = {}
        """Path → why."""
        self._by_path: dict[str, int] = {}
        self._first_chunk = array("I", (0,))
        self._starts = array("I")
        self._ends = array("I")
        self._from_lines = array("I")
        self._to_lines = array("I")
        self._in_chunks = KeywordIndex()
        self._in_files = KeywordIndex()
        self._in_names = KeywordIndex()
        self._defining: dict[str, array[int]] = {}
        self._paths: list[PathTerms] = []
        self._roles: list[frozenset[int]] = []
        self._cards: list[str] = []
        self._keys: list[bytes] = []
        self._card_keys: list[bytes] = []
        self._chars = 0
        self._rows: Vectors | None = None
        self._has_row: Vectors | None = None

    @property
    def chunk_count(self) -> int:
        return len(self._starts)

    @property
    def row_count(self) -> int:
        """Vectors that there will be."""
        return self.chunk_count + len(self.files)

    @property
    def is_too_long(self) -> bool:
        return self._chars > OVERFLOW_TEXT_CHARS_MAX

    def add(self, file: IndexableFile, is_stopped: Callable[[], bool]) -> None:
        if file.path in self._by_path:
            return
        try:
            text = file.load()
        except (OSError, ValueError) as problem:
            self.unreadable[file.path] = getattr(problem, "strerror", None) or str(problem)
            text = ""
        self._chars += len(text)
        number = self._by_path[file.path] = len(self.files)
        names: Counter[str] = Counter()
        whole: Counter[str] = Counter()
        line, place, texts = 1, 0, []
        defined: list[str] = []
        for chunk in chunk_document(text, _mime(file.path)):
            if chunk.index % _BREATHE_CHUNKS == 0:
                time.sleep(0)  # lets the event loop run, which waits for the interpreter
                if is_stopped():
                    raise Stopped
            line += text.count("\n", place, chunk.start)
            last_line = line + text.count("\n", chunk.start, chunk.end)
            place, counts = chunk.start, Counter(terms_of(chunk.text))
            self._starts.append(chunk.start)
            self._ends.append(chunk.end)
            self._from_lines.append(line)
            self._to_lines.append(last_line)
            chunk_number = self._in_chunks.add(counts)
            whole.update(counts)
            texts.append(chunk.text)
            for name in defined_names(chunk.text):
                defined.append(name)
                names.update(name_terms(name))
                self._defining.setdefault(name.lower(), array("I")).append(chunk_number)
        self._first_chunk.append(self.chunk_count)
        self._in_files.add(whole)
        self._in_names.add(names)
        self._paths.append(path_terms(file.path))
        self._roles.append(roles_of(file.path))
        self._cards.append(texts[0] if len(texts) == 1 else _card(file.path, text, defined))
        self._keys += vector_keys(self._identity, texts)
        self._card_keys += vector_keys(self._identity, self._cards[number:])
        self.files.append(file)

    @property
    def numbers(self) -> Mapping[str, int]:
        """The number of each file, by its path."""
        return self._by_path

    # ---- vectors

    def key_of(self, row: int) -> bytes:
        """What the vector of a row is cached under, if its file has not changed since."""
        is_card = row >= self.chunk_count
        return self._card_keys[row - self.chunk_count] if is_card else self._keys[row]

    @property
    def vector_keys(self) -> list[bytes]:
        """What the vectors are cached under, row by row."""
        return self._keys + self._card_keys

    def put_vectors(self, rows: Sequence[int], vectors: Sequence[bytes]) -> None:
        if not rows:
            return
        if self._rows is None:
            self._rows = np.zeros((self.row_count, len(vectors[0])), np.int8)
            self._has_row = np.zeros(self.row_count, bool)
        for row, vector in zip(rows, vectors, strict=True):
            self._rows[row] = np.frombuffer(vector, np.int8)
        self._has_row[rows] = True  # type: ignore[index]

    def without_vectors(self, rows: Iterable[int]) -> list[int]:
        if self._has_row is None:
            return list(rows)
        return [row for row in rows if not self._has_row[row]]

    def texts_of(self, rows: Sequence[int]) -> list[str]:
        """What is embedded for rows. Neighbours are cheap: a file is read once."""
        texts: dict[int, str] = {}
        loaded: tuple[int, str] = (-1, "")
        for row in sorted(rows):
            if row >= self.chunk_count:
                texts[row] = self._cards[row - self.chunk_count]
                continue
            number = self._file_of(row)
            if loaded[0] != number:
                loaded = (number, self._load(number))
            texts[row] = loaded[1][self._starts[row] : self._ends[row]]
        return [texts[row] for row in rows]

    def cards_to_embed(self, scores: KeywordScores, limit: int) -> list[int]:
        """The rows that a search misses most: the cards of the files that the words found."""
        best = _best(scores.files + scores.names, limit)
        return self.without_vectors(self.chunk_count + number for number in best)

    def rows_of(self, number: int) -> range:
        """The chunks of a file."""
        return range(self._first_chunk[number], self._first_chunk[number + 1])

    def row_at(self, place: int) -> int:
        """All rows in the order in which they are made, the cards first."""
        return (self.chunk_count + place) % self.row_count

    # ---- searching

    def keyword_scores(self, query: CodeQuery) -> KeywordScores:
        chunks = self._in_chunks.scores(query.terms)
        files = _scaled(self._in_files.scores(query.terms))
        best = _scaled(self._best_of_files(chunks, 0.0))
        both: Vectors = (files + best) * np.float32(0.5)
        names = _scaled(self._in_names.scores(query.terms))
        return KeywordScores(query, both, chunks, names)

    def ranked_files(
        self, scores: KeywordScores, vector: Vectors | None, vector_share: float
    ) -> list[tuple[int, float]]:
        """Files by their score, best first."""
        similar = None if vector is None else self._similarities(vector)
        by_words = [
            (number, float(scores.files[number]))
            for number in _best(scores.files + scores.names, OVERFLOW_CANDIDATES)
            if scores.files[number] > 0
        ]
        near: list[tuple[int, float]] = []
        similarities: dict[int, float] = {}
        if similar is not None:
            best = self._similarities_of_files(similar)
            known = np.flatnonzero(best > _UNKNOWN)
            similarities = {int(number): float(best[number]) for number in known}
            near = [
                (number, float(best[number]))
                for number in _best(best, OVERFLOW_CANDIDATES)
                if number in similarities
            ]
        mixed = weighted_scores(
            [*by_words, (_NOWHERE, 0.0)],
            near,
            {**dict(enumerate(scores.files.tolist())), _NOWHERE: 0.0},
            similarities,
            vector_share=vector_share if similarities else 0.0,
        )
        fused = [hit for hit in mixed if hit.chunk_key != _NOWHERE]
        bonus = self._bonuses(scores, [hit.chunk_key for hit in fused])
        asked = asked_roles(scores.query.text)
        ranked = [
            (
                hit.chunk_key,
                (hit.score + bonus[hit.chunk_key]) * worth_of(self._roles[hit.chunk_key], asked),
            )
            for hit in fused
        ]
        return sorted(ranked, key=lambda hit: (-hit[1], self.files[hit[0]].path))

    def _bonuses(self, scores: KeywordScores, numbers: Sequence[int]) -> dict[int, float]:
        query = scores.query
        rarities = {term: self._in_files.rarity(term) for term in query.terms}
        defining = self._defining_files(query)
        return {
            number: PATH_SHARE * path_match(query, self._paths[number], rarities)
            + NAMES_SHARE * float(scores.names[number])
            + SYMBOL_SHARE * defining.get(number, 0.0)
            for number in numbers
        }

    def _defining_files(self, query: CodeQuery) -> dict[int, float]:
        """Files that define a symbol of the question; what many define is worth less."""
        worths: dict[int, float] = {}
        for symbol in query.symbols:
            files = {self._file_of(chunk) for chunk in self._defining.get(symbol.lower(), ())}
            for number in files:
                worths[number] = max(worths.get(number, 0.0), 1.0 / len(files) ** 0.5)
        return worths

    def chunk_to_show(self, number: int, scores: KeywordScores, vector: Vectors | None) -> int:
        """The chunk of a file that answers best; -1 for a file without text."""
        first, end = self._first_chunk[number], self._first_chunk[number + 1]
        if first == end:
            return -1
        fit = _scaled(scores.chunks[first:end]).astype(np.float32)
        if vector is not None and self._has_row is not None and self._has_row[first:end].any():
            assert self._rows is not None  # noqa: S101
            cosines = self._rows[first:end].astype(np.float32) @ vector / _SCALE
            fit = fit + np.where(self._has_row[first:end], cosines, 0.0)
        for symbol in scores.query.symbols:
            defining = self._defining.get(symbol.lower(), ())
            for chunk in defining[bisect_right(defining, first - 1) :]:
                if chunk >= end:
                    break
                fit[chunk - first] += 1.0
        return first + int(np.argmax(fit))

    def chunk_text(self, chunk: int, score: float) -> FoundChunk:
        number = self._file_of(chunk)
        text = self._load(number)[self._starts[chunk] : self._ends[chunk]]
        path = self.files[number].path
        return FoundChunk(path, self._from_lines[chunk], self._to_lines[chunk], text, score)

    def _load(self, number: int) -> str:
        try:
            return self.files[number].load()
        except (OSError, ValueError):
            return ""  # it is gone since the index was built

    def _file_of(self, chunk: int) -> int:
        return bisect_right(self._first_chunk, chunk) - 1

    def _best_of_files(self, chunks: Vectors, empty: float) -> Vectors:
        """The highest value among the chunks of each file."""
        best = np.full(len(self.files), empty, np.float32)
        starts = np.frombuffer(self._first_chunk, np.uint32)[:-1].astype(np.int64)
        ends = np.frombuffer(self._first_chunk, np.uint32)[1:].astype(np.int64)
        filled = np.flatnonzero(starts < ends)
        if len(filled):
            best[filled] = np.maximum.reduceat(chunks, starts[filled])
        return best

    def _similarities(self, vector: Vectors) -> Vectors | None:
        """The cosine of every row that has a vector, below -2 for the others."""
        if self._rows is None or self._has_row is None:
            return None
        cosines = np.full(self.row_count, _NO_VECTOR, np.float32)
        known = np.flatnonzero(self._has_row)
        for start in range(0, len(known), _BLOCK_ROWS):
            block = known[start : start + _BLOCK_ROWS]
            cosines[block] = self._rows[block].astype(np.float32) @ vector / _SCALE
        return cosines

    def _similarities_of_files(self, cosines: Vectors) -> Vectors:
        """The mean of a file's card and its best chunk.

        A file is not ahead or behind because its chunks have no vectors yet: its best chunk is
        then taken to be better than its card by what is usual among the others.
        """
        cards = cosines[self.chunk_count :]
        chunks = self._best_of_files(cosines[: self.chunk_count], _NO_VECTOR)
        lowest = -self._best_of_files(-cosines[: self.chunk_count], _NO_VECTOR)
        is_whole = (chunks > _UNKNOWN) & (lowest > _UNKNOWN) & (cards > _UNKNOWN)
        usual = float(np.mean((chunks - cards)[is_whole])) if is_whole.any() else 0.0
        best: Vectors = np.where(is_whole, chunks, cards + np.float32(usual))
        mean: Vectors = (cards + best) * np.float32(0.5)
        return np.where(cards > _UNKNOWN, mean, np.float32(_NO_VECTOR))


def _card(path: str, text: str, names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))[:_CARD_NAMES_MAX]
    opening = " ".join(text[: 4 * _CARD_OPENING_CHARS].split())[:_CARD_OPENING_CHARS]
    return f"{path}\n{opening}\n{' '.join(distinct)}"[:_CARD_CHARS]


def _mime(path: str) -> str:
    return _MIMES.get(path.rpartition(".")[2].lower(), _CODE)


def _scaled(values: Vectors) -> Vectors:
    """The highest to 1, 0 stays."""
    high = float(values.max()) if len(values) else 0.0
    return values / high if high > 0 else values


def _best(values: Vectors, limit: int) -> list[int]:
    """The places of the highest values, best first; equal ones in order."""
    return [int(place) for place in np.argsort(-values, kind="stable")[:limit]]
