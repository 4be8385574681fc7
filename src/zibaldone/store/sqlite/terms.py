"""The rows of the keyword index: one for each chunk, with its terms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import apsw

from zibaldone.model.chunk import ChunkTerms
from zibaldone.store import rows, statements
from zibaldone.store.sqlite.batches import batched
from zibaldone.store.sqlite.match import column_text

_SQL = statements.load("zibaldone.store.sqlite", "terms.sql")


def add_terms(raw: apsw.Connection, terms: Mapping[int, ChunkTerms]) -> None:
    """Make chunks found by their terms, by chunk key."""
    for some in batched(terms.items()):
        listed = [
            (key, *map(column_text, (of_chunk.title, of_chunk.heading, of_chunk.body)))
            for key, of_chunk in some
        ]
        raw.execute(_SQL["insert"], {"terms": rows.dumps(listed)})


def remove_terms(raw: apsw.Connection, chunk_keys: Iterable[int]) -> None:
    """Chunks without terms are passed over."""
    raw.execute(_SQL["delete"], {"chunk_keys": rows.dumps(list(chunk_keys))})


def replace_terms(raw: apsw.Connection, terms: Mapping[int, ChunkTerms]) -> None:
    """Make chunks found by other terms than before."""
    remove_terms(raw, terms)
    add_terms(raw, terms)
