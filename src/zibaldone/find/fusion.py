"""Two rankings into one. Pure: scores in, scores out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from zibaldone.store.port import Scored


@dataclass(frozen=True, slots=True)
class Fused:
    chunk_key: int
    score: float
    score_lexical: float | None
    score_vector: float | None
    rank_lexical: int | None
    """From 1; None: the leg did not bring it."""
    rank_vector: int | None


def reciprocal_ranks(
    lexical: Sequence[Scored],
    vector: Sequence[Scored],
    *,
    k0: float,
    lexical_weight: float,
    vector_weight: float,
) -> list[Fused]:
    """weight / (k0 + rank), summed over the legs; a leg that lacks a chunk adds nothing."""
    word_rank, near_rank = _ranks(lexical), _ranks(vector)
    word_score, near_score = dict(lexical), dict(vector)
    return _sorted(
        Fused(
            key,
            (lexical_weight / (k0 + word_rank[key]) if key in word_rank else 0.0)
            + (vector_weight / (k0 + near_rank[key]) if key in near_rank else 0.0),
            word_score.get(key),
            near_score.get(key),
            word_rank.get(key),
            near_rank.get(key),
        )
        for key in word_rank.keys() | near_rank.keys()
    )


def weighted_scores(
    lexical: Sequence[Scored],
    vector: Sequence[Scored],
    word_scores: Mapping[int, float],
    similarities: Mapping[int, float],
    *,
    vector_share: float,
    word_trust: float = 1.0,
) -> list[Fused]:
    """Both scores scaled to 0…1 over the union of candidates, then mixed.

    The best keyword score becomes `word_trust`.

    `vector_share` is the part that the vectors decide, from 0 to 1. `word_scores` and
    `similarities` also hold scores of chunks that only the other leg brought, so that each is
    judged by both. Unlike ranks, scores keep how much better the best chunk is.
    """
    word_rank, near_rank = _ranks(lexical), _ranks(vector)
    keys = word_rank.keys() | near_rank.keys()
    # What the keyword search did not score holds next to none of the words.
    scores = {key: word_scores.get(key, 0.0) for key in keys} if word_scores else {}
    words = {key: word_trust * score for key, score in _scaled(scores, keys).items()}
    # A chunk whose vector is not there yet is judged by its words alone.
    meaning = {**words, **_scaled(similarities, keys & similarities.keys())}
    return _sorted(
        Fused(
            key,
            (1.0 - vector_share) * words[key] + vector_share * meaning[key],
            word_scores.get(key),
            similarities.get(key),
            word_rank.get(key),
            near_rank.get(key),
        )
        for key in keys
    )


def reranked(lexical: Sequence[Scored], similarities: Mapping[int, float]) -> list[Fused]:
    """Keyword candidates in the order of their cosines; those without one keep theirs, at the end.

    The score is the cosine brought to 0…1.
    """
    word_rank, word_score = _ranks(lexical), dict(lexical)
    order = sorted(word_rank, key=lambda key: (-similarities.get(key, -2.0), word_rank[key]))
    return [
        Fused(
            key,
            min(1.0, (1.0 + similarities[key]) / 2.0) if key in similarities else 0.0,
            word_score[key],
            similarities.get(key),
            word_rank[key],
            rank if key in similarities else None,
        )
        for rank, key in enumerate(order, 1)
    ]


def with_bonus(
    fused: Iterable[Fused], quoting: Set[int], bonus: float, score_max: float = 1.0
) -> list[Fused]:
    """Add to the score of some a part of the best possible one; scores stay below that.

    With a bonus of 1 they come before all others.
    """
    if not quoting:
        return list(fused)
    return _sorted(
        replace(
            chunk,
            score=(chunk.score + bonus * score_max * (chunk.chunk_key in quoting)) / (1.0 + bonus),
        )
        for chunk in fused
    )


def by_words(lexical: Sequence[Scored]) -> list[Fused]:
    """The keyword ranking alone, when there are no vectors."""
    return [
        Fused(key, word_relevance(score), score, None, rank, None)
        for rank, (key, score) in enumerate(lexical, 1)
    ]


def word_relevance(score: float) -> float:
    """BM25, which has no upper end, brought between 0 and 1 without changing any order."""
    return score / (1.0 + score) if score > 0 else 0.0


def _ranks(scored: Sequence[Scored]) -> dict[int, int]:
    return {key: rank for rank, (key, _) in enumerate(scored, 1)}


def _scaled(scores: Mapping[int, float], keys: Iterable[int]) -> dict[int, float]:
    """Smallest to 0, largest to 1; a chunk without a score gets 0."""
    known = {key: scores[key] for key in keys if key in scores}
    if not known:
        return dict.fromkeys(keys, 0.0)
    low, high = min(known.values()), max(known.values())
    span = high - low
    return {
        key: ((known[key] - low) / span if span else 1.0) if key in known else 0.0 for key in keys
    }


def _sorted(fused: Iterable[Fused]) -> list[Fused]:
    """Best first; equal scores in the order of the chunks' keys, so that it never varies."""
    return sorted(fused, key=lambda chunk: (-chunk.score, chunk.chunk_key))
