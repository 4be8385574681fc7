"""The keyword index as writes see it: the terms of chunks that come and go.

A write stores the terms of a chunk and notes that no posting names it yet; postings are made in the
background (`postings.py`). So a write costs one row, however many terms it has, and no two writes
wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zibaldone.model.chunk import ChunkTerms, TermRuns
from zibaldone.store import statements
from zibaldone.store.postgres.connection import Transaction

_SQL = statements.load("zibaldone.store.postgres", "terms.sql")

IN_TITLE = " "
"""Begins a term of the title; no other term has white space."""

NOTE = "terms"
"""In `Transaction.totals`: terms were changed, so there is something to fold."""

_PLACE_MAX = 16_383
_PLACES_MAX = 255
"""What a tsvector holds: terms further on are all at the last place, and of a term that is there
more often, the first places. A chunk has fewer terms than that, unless it is 13 000 characters of
single letters; only phrases and counts at its end are affected."""


def add_terms(transaction: Transaction, terms: Mapping[int, ChunkTerms]) -> None:
    """Make chunks found by their terms, by chunk key."""
    transaction.totals[NOTE] = True
    transaction.defer(_SQL["add"], term_values(terms))


def term_values(terms: Mapping[int, ChunkTerms]) -> dict[str, list[Any]]:
    """Terms as columns of values."""
    return {
        "chunk_keys": list(terms),
        "lengths": [_length(of_chunk) for of_chunk in terms.values()],
        "terms": [_tsvector(of_chunk) for of_chunk in terms.values()],
    }


def remove_terms(transaction: Transaction, chunk_keys: Sequence[int]) -> None:
    """Chunks are about to be removed."""
    transaction.totals[NOTE] = True
    transaction.defer(_SQL["remove"], {"chunk_keys": list(chunk_keys)})


def _length(terms: ChunkTerms) -> int:
    """How long a chunk is to the ranking. The gaps between runs count, as in the other engine."""
    columns = (terms.title, terms.heading, terms.body)
    return sum(sum(map(len, runs)) + max(0, len(runs) - 1) for runs in columns)


def _tsvector(terms: ChunkTerms) -> str:
    """As text: `'fox':1,7 'run':2`. Between two runs there is an empty place."""
    places: dict[str, list[int]] = {}
    place = _put(places, terms.title, 0, IN_TITLE)
    place = _put(places, terms.title, 0)
    place = _put(places, terms.heading, place)
    _put(places, terms.body, place)
    return " ".join(
        f"{quoted(term)}:{','.join(map(str, where[:_PLACES_MAX]))}"
        for term, where in places.items()
    )


def _put(places: dict[str, list[int]], runs: TermRuns, place: int, mark: str = "") -> int:
    """Note where the terms are; the last place."""
    for run in runs:
        for term in run:
            place += 1
            places.setdefault(mark + term, []).append(min(place, _PLACE_MAX))
        place += 1
    return place


def quoted(term: str) -> str:
    """A term as tsvector and tsquery take it."""
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"
