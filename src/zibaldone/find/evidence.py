"""Which document comes first: by its best chunk, and by what else speaks for it. Pure.

A long document has a good chunk for nearly everything; one that is about the question has another
good one, and its title names the subject (docs/explain/finding.md has the figures).
"""

from __future__ import annotations

from collections.abc import Sequence

from zibaldone.model.chunk import ChunkView
from zibaldone.model.query import Query
from zibaldone.text.lookups import Alternatives, wanted_lookups
from zibaldone.text.terms import index_terms
from zibaldone.text.title import naming_title

DOCUMENTS_LOOKED_AT = 20
"""The best by their best chunk; further down nothing else is looked at."""

_SECOND_WEIGHT = 0.2
_GOOD = 0.6
"""A chunk with a lower score says nothing for its document."""
_TITLE_WEIGHT = 0.1
_LONG_FROM_INDEX = 2
"""Of the first two chunks, one may just be the end of the other, in a document of no more."""


def document_score(
    best: float, second: float, chunks: Sequence[ChunkView], asked: Sequence[Alternatives]
) -> float:
    """By the best two chunks of a document, or its only one, and their scores. May be above 1."""
    score = best + _TITLE_WEIGHT * title_share(naming_title(chunks[0].title, chunks[0].text), asked)
    if len(chunks) > 1 and max(chunk.chunk_index for chunk in chunks) >= _LONG_FROM_INDEX:
        score += _SECOND_WEIGHT * max(0.0, second - _GOOD) / (1.0 - _GOOD)
    return score


def title_share(title: str, asked: Sequence[Alternatives]) -> float:
    """The part of what is asked for that the title names."""
    if not title or not asked:
        return 0.0
    terms = {term for run in index_terms(title) for term in run}
    named = sum(any(lookup.term in terms for lookup in group) for group in asked)
    return named / len(asked)


def asked_terms(query: Query) -> list[Alternatives]:
    return list(dict.fromkeys(wanted_lookups(query)))
