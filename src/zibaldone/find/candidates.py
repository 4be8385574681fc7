"""The two legs of a search, lexical and vector, each bringing its best chunks.

A leg that is late is left out, and the answer says so: only a search of which both are late fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from zibaldone.errors import DeadlineExceeded, VectorsUnavailable
from zibaldone.find.meaning import Meaning
from zibaldone.find.missing import LATE_QUOTATIONS, LATE_VECTORS, LATE_WORDS, Missing
from zibaldone.find.parse import QuotingRank, demanded, demands_words
from zibaldone.find.rarest import with_rarest
from zibaldone.limits import CANDIDATES_MAX
from zibaldone.model.query import Filter, Query
from zibaldone.store.port import Reader, Scored

_NEAREST_MAX = 2_000
"""Chunks looked at for the sake of those that a query with demands admits."""

_WORDS_SHARE = 0.5
"""Of the time that is left, for the lexical leg beside another."""
_QUOTED_SHARE = 0.5
"""Of what is left then, for quotations."""
_VECTOR_SHARE = 0.8
"""Of what is left then; the rest is for showing what was found."""

QUOTING_FIRST = 1.0
"""The bonus of what holds a quotation that few chunks hold: they come first."""
_QUOTING_BONUS = 0.05
"""The same where more of them do: in a long question many a quoted word says little, and what has
it is not better for that (docs/explain/finding.md)."""
_FEW_QUOTING = 3
"""Chunks with a quotation of several words. With one of a single word, it is one chunk."""


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
    quoting: frozenset[int] = frozenset()
    """Those that hold a quotation of the query."""
    quoting_bonus: float = 0.0
    """For them, as a part of the best possible score; with 1 they come first."""
    missing: tuple[Missing, ...] = ()
    """What could not be asked, or not in time."""

    @property
    def quoting_rank(self) -> QuotingRank | None:
        """Where those that hold a quotation are ranked. None: it is not known whether any does."""
        if self.quoting_bonus == QUOTING_FIRST:
            return "first" if self.quoting else "nowhere"
        return "higher" if self.quoting else None

    @property
    def lacks_words(self) -> bool:
        """Was the lexical leg late?"""
        return LATE_WORDS in self.missing

    @property
    def lacks_vectors(self) -> bool:
        return any(item.part == "vectors" for item in self.missing)


def gather(reader: Reader, wanted: Wanted, meaning: Meaning | None) -> Candidates:
    """Both legs on one snapshot. Without a meaning there is only the lexical one."""
    if meaning is None or wanted.query.is_empty:
        return _by_words(reader, wanted)
    try:
        with reader.within(_WORDS_SHARE):
            words = _by_words(reader, wanted)
    except DeadlineExceeded:
        words = Candidates(missing=(LATE_WORDS,))

    def with_near() -> Candidates:
        near = _near(reader, wanted, meaning, words)
        similarities = {**_similarities(reader, words.lexical, meaning), **dict(near)}
        both = replace(words, vector=near, similarities=similarities)
        is_known = not wanted.query.wishes or words.quoting_bonus == QUOTING_FIRST
        return both if is_known else _with_near_quoting(reader, both, wanted.query)

    return _with_vectors(reader, words, with_near)


def gather_by_words(reader: Reader, wanted: Wanted, meaning: Meaning | None) -> Candidates:
    """The lexical leg alone, with the cosines of what it brought."""
    words = _by_words(reader, wanted)
    if meaning is None:
        return words

    def with_similarities() -> Candidates:
        return replace(words, similarities=_similarities(reader, words.lexical, meaning))

    return _with_vectors(reader, words, with_similarities)


def joined(first: Candidates, second: Candidates) -> Candidates:
    """Of two searches with the same query, of which the second left out what the first found."""
    return Candidates(
        (*first.lexical, *second.lexical),
        (*first.vector, *second.vector),
        {**second.word_scores, **first.word_scores},
        {**second.similarities, **first.similarities},
        first.quoting | second.quoting,
        first.quoting_bonus,
        tuple(dict.fromkeys((*first.missing, *second.missing))),
    )


def _by_words(reader: Reader, wanted: Wanted) -> Candidates:
    # Beyond what it may bring, the leg is asked for scores of what the other one brings.
    scored = reader.lexical.search(
        wanted.query,
        limit=max(wanted.lexical_max, CANDIDATES_MAX),
        wanted=wanted.where,
        enough=wanted.lexical_max,
    )
    words = Candidates(scored[: wanted.lexical_max], word_scores=dict(scored))
    if not wanted.query.wishes:
        return words
    try:
        with reader.within(_QUOTED_SHARE):
            return _with_quoting(reader, words, wanted)
    except DeadlineExceeded:
        return replace(words, missing=(LATE_QUOTATIONS,))


def _with_quoting(reader: Reader, words: Candidates, wanted: Wanted) -> Candidates:
    """Tell which candidates hold a quotation. Where few chunks do, all of them are candidates."""
    query, few = wanted.query, _few(wanted.query)
    keys = [key for key, _ in words.lexical]
    quoting = frozenset(reader.lexical.matching(Query(wishes=query.wishes), keys[:CANDIDATES_MAX]))
    has_demands = bool(query.phrases or query.title_terms)
    if len(quoting) > few or (has_demands and not _has_all(words, wanted)):
        return replace(words, quoting=quoting, quoting_bonus=_QUOTING_BONUS)
    holding: list[Scored] = []
    if not has_demands:
        # They may stand further down, where the other words of a long question matter more.
        alone = replace(query, terms=(), prefixes=())
        holding = reader.lexical.search(alone, limit=few + 1, wanted=wanted.where)
    least = min(words.word_scores.values(), default=float("inf"))
    further = [(key, min(score, least)) for key, score in holding if key not in words.word_scores]
    scores = {**words.word_scores, **dict(further)}
    lexical = dict.fromkeys((*keys, *(key for key, _ in holding)))
    quoting = quoting.union(key for key, _ in holding)
    return replace(
        words,
        lexical=[(key, scores[key]) for key in lexical],
        word_scores=scores,
        quoting=quoting,
        quoting_bonus=QUOTING_FIRST if len(quoting) <= few else _QUOTING_BONUS,
    )


def _few(query: Query) -> int:
    return _FEW_QUOTING if any(len(wish) > 1 for wish in query.wishes) else 1


def _with_near_quoting(reader: Reader, both: Candidates, query: Query) -> Candidates:
    """Tell it of those that only the vector leg brought, too."""
    keys = {key for key, _ in both.vector} - {key for key, _ in both.lexical}
    try:
        with reader.within(_QUOTED_SHARE):
            quoting = reader.lexical.matching(Query(wishes=query.wishes), keys)
    except DeadlineExceeded:
        return replace(both, missing=(*both.missing, LATE_QUOTATIONS))
    return replace(both, quoting=both.quoting | quoting, quoting_bonus=_QUOTING_BONUS)


def _with_vectors(reader: Reader, lexical: Candidates, ask: Callable[[], Candidates]) -> Candidates:
    """Add what the vectors say; the one place that goes on without them when it has to."""
    try:
        with reader.within(_VECTOR_SHARE):
            return ask()
    except VectorsUnavailable as error:
        missing = Missing("vectors", error.message)
    except DeadlineExceeded:
        if lexical.lacks_words:
            raise
        missing = LATE_VECTORS
    return replace(lexical, missing=(*lexical.missing, missing))


@dataclass(frozen=True, slots=True)
class WordRanking:
    page: list[Scored]
    candidates: Candidates = Candidates()


def ranked_by_words(
    reader: Reader, query: Query, where: Filter, *, limit: int, offset: int = 0
) -> WordRanking:
    """A page of the keyword ranking."""
    query = with_rarest(reader, query)
    if not query.wishes:
        return WordRanking(reader.lexical.search(query, limit=limit, offset=offset, wanted=where))
    words = _by_words(reader, Wanted(query, where, offset + limit, 0))
    if words.quoting_bonus < QUOTING_FIRST:
        return WordRanking(list(words.lexical[offset:]), words)
    best = words.lexical[0][1] if words.lexical else 0.0
    first = [(key, score + best) for key, score in words.lexical if key in words.quoting]
    others = [(key, score) for key, score in words.lexical if key not in words.quoting]
    return WordRanking([*first, *others][offset : offset + limit], words)


def _similarities(reader: Reader, lexical: Sequence[Scored], meaning: Meaning) -> dict[int, float]:
    return reader.vectors.scores(meaning.identity, meaning.vector, (key for key, _ in lexical))


def _near(reader: Reader, wanted: Wanted, meaning: Meaning, words: Candidates) -> list[Scored]:
    """The nearest chunks that the query admits: for those it refuses, others are looked for."""
    if demands_words(wanted.query) and _has_all(words, wanted):
        # There are no others than those that the lexical leg brought.
        scores = _similarities(reader, words.lexical, meaning)
        nearest = sorted(scores.items(), key=lambda hit: (-hit[1], hit[0]))
        return _similar(nearest, wanted)[: wanted.vector_max]
    for limit in (wanted.vector_max, max(wanted.vector_max, _NEAREST_MAX)):
        nearest = reader.vectors.search(meaning.identity, meaning.vector, limit, wanted.where)
        near = _similar(nearest, wanted)
        admitted = _admitted(reader, wanted.query, near)
        if len(admitted) == len(near) or len(admitted) >= wanted.vector_max:
            break
    return admitted[: wanted.vector_max]


def _has_all(words: Candidates, wanted: Wanted) -> bool:
    """Does the query find no more chunks than the lexical leg brought?"""
    return not words.lacks_words and len(words.lexical) < wanted.lexical_max


def _similar(nearest: Iterable[Scored], wanted: Wanted) -> list[Scored]:
    return [(key, cosine) for key, cosine in nearest if cosine >= wanted.similarity_min]


def _admitted(reader: Reader, query: Query, near: list[Scored]) -> list[Scored]:
    """A query's demands hold for chunks that are near in meaning too."""
    keys = [key for key, _ in near]
    if demands_words(query):
        admitted = reader.lexical.matching(demanded(query), keys)
    elif query.excluded:
        admitted = set(keys) - reader.lexical.matching(Query(wishes=query.excluded), keys)
    else:
        return near
    return [(key, cosine) for key, cosine in near if key in admitted]
