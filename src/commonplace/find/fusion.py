"""Two rankings into one. Pure: scores in, scores out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from commonplace.store.port import Scored


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
    """weight / (k0 + rank), summed over the legs; a leg that lacks a passage adds nothing."""
    by_lexical, by_vector = _ranked(lexical), _ranked(vector)
    return _sorted(
        Fused(
            key,
            (lexical_weight / (k0 + by_lexical[key][0]) if key in by_lexical else 0.0)
            + (vector_weight / (k0 + by_vector[key][0]) if key in by_vector else 0.0),
            *_details(key, by_lexical, by_vector),
        )
        for key in by_lexical.keys() | by_vector.keys()
    )


def weighted_scores(
    lexical: Sequence[Scored],
    vector: Sequence[Scored],
    similarities: Mapping[int, float],
    *,
    vector_weight: float,
) -> list[Fused]:
    """Both scores brought to 0…1 over the union of candidates, then mixed.

    `similarities` has the cosine of lexical candidates too, so that a passage which only one leg
    brought is judged by both. Unlike ranks, scores keep how much better the best one is.
    """
    by_lexical, by_vector = _ranked(lexical), _ranked(vector)
    keys = by_lexical.keys() | by_vector.keys()
    words = _scaled({key: by_lexical[key][1] for key in by_lexical}, keys)
    meaning = _scaled({key: similarities[key] for key in keys if key in similarities}, keys)
    return _sorted(
        Fused(
            key,
            (1.0 - vector_weight) * words[key] + vector_weight * meaning[key],
            *_details(key, by_lexical, by_vector),
        )
        for key in keys
    )


def _ranked(scored: Sequence[Scored]) -> dict[int, tuple[int, float]]:
    return {key: (rank, score) for rank, (key, score) in enumerate(scored, 1)}


def _details(
    key: int,
    lexical: Mapping[int, tuple[int, float]],
    vector: Mapping[int, tuple[int, float]],
) -> tuple[float | None, float | None, int | None, int | None]:
    rank_lexical, score_lexical = lexical.get(key, (None, None))
    rank_vector, score_vector = vector.get(key, (None, None))
    return score_lexical, score_vector, rank_lexical, rank_vector


def _scaled(scores: Mapping[int, float], keys: Iterable[int]) -> dict[int, float]:
    """Smallest to 0, largest to 1; a passage without a score gets 0."""
    if not scores:
        return dict.fromkeys(keys, 0.0)
    low, high = min(scores.values()), max(scores.values())
    span = high - low
    return {
        key: ((scores[key] - low) / span if span else 1.0) if key in scores else 0.0 for key in keys
    }


def _sorted(fused: Iterable[Fused]) -> list[Fused]:
    """Best first; equal scores in the order of the passages' keys, so that it never varies."""
    return sorted(fused, key=lambda one: (-one.score, one.chunk_key))
