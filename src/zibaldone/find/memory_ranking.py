"""Which pieces of memory answer a question. Pure: texts, cosines and times in, scores out.

A message alone says little ("Yes, last week!"), so each is judged together with those before and
after it, and with the best of its session. How much a word says is counted among the candidates
and their neighbours, not in the whole store: a name that half of a group mentions says nothing
there. Who speaks is judged apart: a speaker's name stands in each of their messages.
docs/explain/memory.md has the measurements.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from zibaldone.limits import MEMORY_SESSION_GAP_SECONDS

_K1, _B = 1.2, 0.75
_OWN_SHARE = 0.5
"""Of the keyword score, for the words of a piece itself; the rest is for its window."""
_NEIGHBOUR_WEIGHT = 0.3
"""Of each neighbour's cosine beside its own."""
_SPEAKER_BONUS = 0.1
_TIME_BONUS = 0.15
_SESSION_WEIGHT = 0.8
_SESSION_BEST = 2
"""So many pieces of a session tell how good it is."""
_FREQUENT_SHARE = 0.5
"""A word that more of the candidates have is not looked at, unless there are no others."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk that may answer the question."""

    key: int
    terms: Sequence[str]
    at_us: int
    similarity: float | None = None
    """To the question; None: not known."""
    speaker: str = ""
    """Key of the entity that speaks, in a message."""
    session: str = ""
    """What belongs together whatever its time, such as the chunks of one note. Empty: messages that
    are close in time."""
    before: int | None = None
    """Key of its neighbour."""
    after: int | None = None
    is_then: bool = False
    """It is of the time that the question names, or names that time."""


def ranked(
    candidates: Sequence[Piece],
    wanted: Sequence[str],
    *,
    named: frozenset[str] = frozenset(),
    vector_share: float = 0.5,
) -> list[tuple[int, float]]:
    """The candidates' keys with their scores, best first. `named`: what the question names."""
    if not candidates:
        return []
    pieces = {piece.key: piece for piece in candidates}
    words = _words(candidates, pieces, wanted)
    meaning = _meaning(candidates, pieces)
    asked = named & {piece.speaker for piece in pieces.values()}
    base = {
        piece.key: (1.0 - vector_share) * words[piece.key]
        + vector_share * meaning.get(piece.key, words[piece.key])
        + _SPEAKER_BONUS * (len(asked) == 1 and piece.speaker in asked)
        + _TIME_BONUS * piece.is_then
        for piece in candidates
    }
    scored = {
        key: score + _SESSION_WEIGHT * evidence
        for session in _sessions(candidates)
        for evidence in (_evidence(session, base),)
        for key, score in ((piece.key, base[piece.key]) for piece in session)
    }
    return sorted(scored.items(), key=lambda one: (-one[1], one[0]))


def _words(
    candidates: Sequence[Piece], pieces: Mapping[int, Piece], wanted: Sequence[str]
) -> dict[int, float]:
    """BM25 of each piece and of its window, scaled to 0…1."""
    looked_for = set(wanted)
    counts = {
        key: Counter(term for term in piece.terms if term in looked_for)
        for key, piece in pieces.items()
    }
    held = Counter(term for counted in counts.values() for term in counted)
    share = {term: held[term] / len(pieces) for term in looked_for}
    telling = [term for term in wanted if 0 < share[term] <= _FREQUENT_SHARE]
    weights = {
        term: math.log(1.0 + (1.0 - share[term]) / share[term])
        for term in telling or [term for term in wanted if share[term]]
    }
    length = sum(len(piece.terms) for piece in pieces.values()) / len(pieces) or 1.0
    scores = {}
    for piece in candidates:
        window = [key for key in (piece.before, piece.after) if key in pieces]
        joined = Counter(counts[piece.key])
        size = len(piece.terms)
        for key in window:
            if key is not None:
                joined += counts[key]
                size += len(pieces[key].terms)
        own = _bm25(counts[piece.key], weights, len(piece.terms) / length)
        wide = _bm25(joined, weights, size / (3.0 * length))
        scores[piece.key] = _OWN_SHARE * own + (1.0 - _OWN_SHARE) * wide
    return _scaled(scores)


def _bm25(counted: Mapping[str, int], weights: Mapping[str, float], length: float) -> float:
    return sum(
        weight * count * (_K1 + 1.0) / (count + _K1 * (1.0 - _B + _B * length))
        for term, weight in weights.items()
        if (count := counted.get(term, 0))
    )


def _meaning(candidates: Sequence[Piece], pieces: Mapping[int, Piece]) -> dict[int, float]:
    """Cosines of pieces and of their neighbours, scaled to 0…1. Where a neighbour is missing, its
    place is taken by the piece itself."""
    scores = {}
    for piece in candidates:
        own = piece.similarity
        if own is None:
            continue
        beside = (
            pieces.get(key) if key is not None else None for key in (piece.before, piece.after)
        )
        near = (own if one is None or one.similarity is None else one.similarity for one in beside)
        scores[piece.key] = own + _NEIGHBOUR_WEIGHT * sum(near)
    return _scaled(scores)


def _sessions(candidates: Sequence[Piece]) -> list[list[Piece]]:
    """Messages without a longer pause between them; and what says itself what belongs together."""
    named: dict[str, list[Piece]] = {}
    for piece in candidates:
        if piece.session:
            named.setdefault(piece.session, []).append(piece)
    timed = sorted((piece for piece in candidates if not piece.session), key=lambda one: one.at_us)
    sessions = [[piece] for piece in timed[:1]]
    for earlier, later in pairwise(timed):
        if later.at_us - earlier.at_us > MEMORY_SESSION_GAP_SECONDS * 1_000_000:
            sessions.append([])
        sessions[-1].append(later)
    return [*sessions, *named.values()]


def _evidence(session: Sequence[Piece], base: Mapping[int, float]) -> float:
    best = sorted((base[piece.key] for piece in session), reverse=True)[:_SESSION_BEST]
    return sum(best) / len(best)


def _scaled(scores: Mapping[int, float]) -> dict[int, float]:
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    span = high - low
    return {key: (score - low) / span if span else 0.0 for key, score in scores.items()}
