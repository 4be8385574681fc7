"""The terms of a long change, stored in steps after the change itself.

FTS5 takes seconds for the terms of ten megabytes, and in one transaction they would hold up all
other writes. So the transaction of a long change only notes its chunks in `unsettled_terms`. The
terms follow in short transactions before the change is acknowledged. Until then its new chunks are
not found by their words; terms that have lost their chunk are found by nobody. If the process ends
in between, `index.renewal` does the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import apsw

from zibaldone.limits import TERM_STEP_CHARS, TERM_STEP_CHUNKS
from zibaldone.model.chunk import ChunkTerms
from zibaldone.store import rows, statements
from zibaldone.store.sqlite.terms import add_terms, remove_terms
from zibaldone.store.upkeep import TermSource

_SQL = statements.load("zibaldone.store.sqlite", "term_steps.sql")

_KEY_AND_IS_THERE: rows.Kinds = (int, int)

_SHORT_STEPS = 8
"""What would take no more steps than this is done at once."""

Step = Mapping[int, ChunkTerms | None]
"""Chunks whose terms are to be stored, by key. None: the chunk was removed."""


class TermSteps:
    """What a transaction leaves to the steps after its commit. Each is given out once."""

    def __init__(self) -> None:
        self._added: deque[tuple[int, ChunkTerms]] = deque()
        self._removed: deque[int] = deque()

    def add(self, raw: apsw.Connection, terms: Mapping[int, ChunkTerms]) -> None:
        _unsettle(raw, terms)
        self._added.extend(terms.items())

    def remove(self, raw: apsw.Connection, chunk_keys: Iterable[int]) -> None:
        _unsettle(raw, chunk_keys)
        self._removed.extend(chunk_keys)

    def __iter__(self) -> Iterator[Step]:
        while self._removed:
            yield {
                self._removed.popleft(): None
                for _ in range(min(TERM_STEP_CHUNKS, len(self._removed)))
            }
        while self._added:
            step: dict[int, ChunkTerms] = {}
            chars = 0
            while self._added and chars < TERM_STEP_CHARS:
                key, terms = self._added.popleft()
                step[key] = terms
                chars += terms.chars
            yield step


def is_long_removal(chunk_keys: Sequence[int]) -> bool:
    return len(chunk_keys) > _SHORT_STEPS * TERM_STEP_CHUNKS


def are_many(terms: Iterable[ChunkTerms]) -> bool:
    return sum(of_chunk.chars for of_chunk in terms) > _SHORT_STEPS * TERM_STEP_CHARS


def settle(raw: apsw.Connection, step: Step) -> None:
    """Those of these chunks that are not settled yet. One that is gone by now loses its terms."""
    settled = raw.execute(_SQL["settle"], {"chunk_keys": rows.dumps(list(step))})
    keys: dict[int, int] = dict(rows.require(row, _KEY_AND_IS_THERE) for row in settled)
    there = {key: step[key] for key, is_there in keys.items() if is_there}
    remove_terms(raw, [key for key, is_there in keys.items() if not is_there])
    add_terms(raw, {key: terms for key, terms in there.items() if terms is not None})


def last_unsettled(raw: apsw.Connection) -> int | None:
    last: int | None = raw.execute(_SQL["last_unsettled"]).get
    return last


def unsettled(raw: apsw.Connection, last: int, limit: int) -> list[tuple[int, TermSource | None]]:
    selected = raw.execute(_SQL["unsettled"], {"last": last, "limit": limit})
    return [
        (key, None if title is None else TermSource(key, title, heading, text))
        for key, title, heading, text in selected
    ]


def _unsettle(raw: apsw.Connection, chunk_keys: Iterable[int]) -> None:
    raw.execute(_SQL["unsettle"], {"chunk_keys": rows.dumps(list(chunk_keys))})
