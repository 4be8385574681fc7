"""The two legs of a search, lexical and vector, each bringing its best chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from zibaldone.errors import VectorsUnavailable
from zibaldone.find.meaning import Meaning
from zibaldone.find.parse import demands_words
from zibaldone.limits import CANDIDATES_MAX
from zibaldone.model.query import Filter, Query
from zibaldone.store.port import Reader, Scored

_NEAREST_MAX = 2_000
"""Chunks looked at for the sake of those that a query with demands admits."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search is after, and how much each leg may bring of it."""

    query: Query
    where: Filter
    lexical_max: int
    vector_max: int
    similarity_min: float = -1.0
    """Chunks that are less near in meaning are not brought for their meaning."""


@dataclass(frozen=True, slots=True)
class Candidates:
    lexical: Sequence[Scored] = ()
    vector: Sequence[Scored] = ()
    word_scores: Mapping[int, float] = field(default_factory=dict)
    """The keyword score of candidates, also of those that only the vector leg brought."""
    similarities: Mapping[int, float] = field(default_factory=dict)
    """The cosine of every candidate that has a vector, whichever leg brought it."""
    reason: str | None = None
    """Why the vector leg brought nothing, if it could not."""


def gather(reader: Reader, wanted: Wanted, meaning: Meaning | None) -> Candidates:
    """Both legs on one snapshot. Without a meaning there is only the lexical one."""
    # Beyond what it may bring, the lexical leg is asked for scores of what the other one brings.
    scored = reader.lexical.search(
        wanted.query,
        limit=max(wanted.lexical_max, CANDIDATES_MAX),
        wanted=wanted.where,
        enough=wanted.lexical_max,
    )
    lexical, word_scores = scored[: wanted.lexical_max], dict(scored)
    if meaning is None or wanted.query.is_empty:
        return Candidates(lexical, (), word_scores)

    def near_and_similarities() -> tuple[Sequence[Scored], dict[int, float]]:
        near = _near(reader, wanted, meaning)
        return near, {**_similarities(reader, lexical, meaning), **dict(near)}

    return _with_vectors(lexical, word_scores, near_and_similarities)


def gather_by_words(reader: Reader, wanted: Wanted, meaning: Meaning | None) -> Candidates:
    """The lexical leg alone, with the cosines of what it brought."""
    lexical = reader.lexical.search(wanted.query, limit=wanted.lexical_max, wanted=wanted.where)
    if meaning is None:
        return Candidates(lexical, (), dict(lexical))
    return _with_vectors(
        lexical, dict(lexical), lambda: ((), _similarities(reader, lexical, meaning))
    )


def joined(first: Candidates, second: Candidates) -> Candidates:
    """Of two searches with the same query, of which the second left out what the first found."""
    return Candidates(
        (*first.lexical, *second.lexical),
        (*first.vector, *second.vector),
        {**second.word_scores, **first.word_scores},
        {**second.similarities, **first.similarities},
        first.reason or second.reason,
    )


def _with_vectors(
    lexical: Sequence[Scored],
    word_scores: Mapping[int, float],
    ask: Callable[[], tuple[Sequence[Scored], dict[int, float]]],
) -> Candidates:
    """Add what the vectors say; the one place that goes on without them when it has to."""
    try:
        near, similarities = ask()
    except VectorsUnavailable as error:
        return Candidates(lexical, (), word_scores, reason=error.message)
    return Candidates(lexical, near, word_scores, similarities)


def _similarities(reader: Reader, lexical: Sequence[Scored], meaning: Meaning) -> dict[int, float]:
    return reader.vectors.scores(meaning.identity, meaning.vector, (key for key, _ in lexical))


def _near(reader: Reader, wanted: Wanted, meaning: Meaning) -> list[Scored]:
    """The nearest chunks that the query admits: for those it refuses, others are looked for."""
    for limit in (wanted.vector_max, max(wanted.vector_max, _NEAREST_MAX)):
        nearest = reader.vectors.search(meaning.identity, meaning.vector, limit, wanted.where)
        near = [(key, cosine) for key, cosine in nearest if cosine >= wanted.similarity_min]
        admitted = _admitted(reader, wanted.query, near)
        if len(admitted) == len(near) or len(admitted) >= wanted.vector_max:
            break
    return admitted[: wanted.vector_max]


def _admitted(reader: Reader, query: Query, near: list[Scored]) -> list[Scored]:
    """A query's demands hold for chunks that are near in meaning too."""
    keys = [key for key, _ in near]
    if demands_words(query):
        admitted = reader.lexical.matching(query, keys)
    elif query.excluded:
        holding = (
            reader.lexical.matching(Query(phrases=(phrase,)), keys) for phrase in query.excluded
        )
        admitted = set(keys).difference(*holding)
    else:
        return near
    return [(key, cosine) for key, cosine in near if key in admitted]
