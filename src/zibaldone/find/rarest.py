"""Which words of a long question are looked up: the rarest, wherever they stand in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from zibaldone.errors import DeadlineExceeded
from zibaldone.limits import QUERY_TERM_CHUNKS_COUNTED_MAX
from zibaldone.model.query import Query
from zibaldone.store.port import Reader
from zibaldone.text.lookups import lookup_count

_FEW = 30
"""Most words of a question are counted no further than this: enough of them are rarer."""

_SHARE = 0.2
"""Of the time that is left."""


def with_rarest(reader: Reader, query: Query) -> Query:
    """The query with its rarest words, if it has more than are looked up; else as it is."""
    if not query.spare_terms:
        return query
    words = (*query.terms, *query.spare_terms)
    room = sum(map(lookup_count, query.terms))
    try:
        with reader.within(_SHARE):
            kept = _rarest(reader, words, room)
    except DeadlineExceeded:
        return replace(query, spare_terms=())  # the first words will do
    return replace(query, terms=kept, spare_terms=())


def _rarest(reader: Reader, words: Sequence[str], room: int) -> tuple[str, ...]:
    counts = _counted(reader, words, _FEW)
    rare = [word for word in words if 0 < counts[word] <= _FEW]
    if sum(map(lookup_count, rare)) < room:
        common = [word for word in words if counts[word] > _FEW]
        counts |= _counted(reader, common, QUERY_TERM_CHUNKS_COUNTED_MAX)
    return rarest(words, counts, room)


def _counted(reader: Reader, words: Sequence[str], count_max: int) -> dict[str, int]:
    counts = reader.lexical.chunk_counts(words, count_max=count_max)
    return dict(zip(words, counts, strict=True))


def rarest(words: Sequence[str], counts: Mapping[str, int], room: int) -> tuple[str, ...]:
    """The words that are in the fewest chunks, in their order, as many as there is room for.

    A word that is in no chunk finds nothing, however rare it is. Of words that are equally rare,
    the first ones are kept.
    """
    kept = set()
    for word in sorted(words, key=lambda word: counts[word] or float("inf")):
        cost = lookup_count(word)
        if cost <= room:
            room -= cost
            kept.add(word)
    return tuple(word for word in words if word in kept)
