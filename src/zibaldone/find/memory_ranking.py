"""Which pieces of memory answer a question. Pure: texts, cosines and times in, an order out.

A message alone says little ("Yes, last week!"), so each is judged together with those before and
after it, and with the best of its session. How much a word says is counted among the candidates
and their neighbours, not in the whole store: a name that half of a group mentions says nothing
there. Who speaks is judged apart: a speaker's name stands in each of their messages.
docs/explain/memory.md has the measurements.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from zibaldone.limits import MEMORY_SESSION_GAP_SECONDS
from zibaldone.text.question import TimeOrder

_K1, _B = 1.2, 0.75
_OWN_SHARE, _WINDOW_SHARE, _WIDE_SHARE = 0.5, 0.25, 0.25
"""Of the keyword score: for the words of a piece itself, of its window of three, and of five."""
_NEIGHBOUR_WEIGHT = 0.3
"""Of each neighbour's cosine beside its own."""
_SPEAKER_BONUS = 0.15
_TIME_BONUS = 0.15
_ORDER_BONUS = 0.1
_LENGTH_BONUS = 0.15
_LENGTH_TERMS = 30
"""A message with so many terms, or more, has the whole bonus."""
_ASKING_MALUS = 0.15
_ANSWERING_BONUS = 0.05
_SESSION_WEIGHT = 0.5
_SESSION_WEIGHT_OF_MANY = 0.1
"""Where several answers are asked for: they are seldom all of one session."""
_SESSION_BEST = 2
"""So many pieces of a session tell how good it is."""
_FREQUENT_SHARE = 0.5
"""A word that more of the candidates have is not looked at, unless there are no others."""
_BESIDE_MALUS = 0.1
"""Where several answers are asked for: for each neighbour that is chosen already."""
_SPREAD_AMONG, _SPREAD = 60, 30
"""So many are chosen like that, among so many."""


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
    is_asking: bool = False
    """A message that ends with a question."""
    has_question: bool = False
    """A message with a question anywhere: what follows it may be the answer."""
    group: int = 0
    """Groups share no session."""


def ranked(
    candidates: Sequence[Piece],
    wanted: Sequence[str],
    *,
    named: frozenset[str] = frozenset(),
    vector_share: float = 0.5,
    is_many: bool = False,
    order: TimeOrder | None = None,
) -> list[tuple[int, float]]:
    """The candidates' keys with their scores, best first.

    `named`: what the question names. `is_many`: it asks for several things. `order`: it asks for
    what was first, or last.
    """
    if not candidates:
        return []
    pieces = {piece.key: piece for piece in candidates}
    words = _words(candidates, pieces, wanted)
    meaning = _meaning(candidates, pieces)
    asked = named & {piece.speaker for piece in candidates}
    position = _positions(candidates, order)
    base = {
        piece.key: (1.0 - vector_share) * words[piece.key]
        + vector_share * meaning.get(piece.key, words[piece.key])
        + _SPEAKER_BONUS * (len(asked) == 1 and piece.speaker in asked)
        + _TIME_BONUS * piece.is_then
        + _ORDER_BONUS * position.get(piece.key, 0.0)
        + _of_its_kind(piece, pieces)
        for piece in candidates
    }
    weight = _SESSION_WEIGHT_OF_MANY if is_many else _SESSION_WEIGHT
    scores = {
        piece.key: base[piece.key] + weight * evidence
        for session in _sessions(candidates)
        for evidence in (_evidence(session, base),)
        for piece in session
    }
    keys = sorted(scores, key=lambda key: (-scores[key], key))
    if is_many:
        keys = _spread(keys, scores, pieces)
    return list(_falling(keys, scores))


def _of_its_kind(piece: Piece, pieces: Mapping[int, Piece]) -> float:
    """A long message says more than a short one; what asks is seldom the answer, what follows a
    question often is. A note is written to be kept, however short."""
    if piece.session:
        return _LENGTH_BONUS
    before = None if piece.before is None else pieces.get(piece.before)
    return (
        _LENGTH_BONUS * min(1.0, len(piece.terms) / _LENGTH_TERMS)
        - _ASKING_MALUS * piece.is_asking
        + _ANSWERING_BONUS * (before is not None and before.has_question)
    )


def _positions(candidates: Sequence[Piece], order: TimeOrder | None) -> dict[int, float]:
    """Where pieces stand in time, from 0 to 1 for the one that is first, or last."""
    if order is None or len(candidates) < 2:
        return {}
    times = sorted({piece.at_us for piece in candidates}, reverse=order == "first")
    place = {at_us: number / max(1, len(times) - 1) for number, at_us in enumerate(times)}
    return {piece.key: place[piece.at_us] for piece in candidates}


def _spread(
    keys: Sequence[int], scores: Mapping[int, float], pieces: Mapping[int, Piece]
) -> list[int]:
    """The best first, but what stands beside one that is chosen already comes later."""
    left = {key: scores[key] for key in keys[:_SPREAD_AMONG]}
    chosen: list[int] = []
    while left and len(chosen) < _SPREAD:
        best = max(left, key=left.__getitem__)  # of equal ones the first
        chosen.append(best)
        del left[best]
        for beside in (pieces[best].before, pieces[best].after):
            if beside in left:
                left[beside] -= _BESIDE_MALUS
    taken = set(chosen)
    return [*chosen, *(key for key in keys if key not in taken)]


def _falling(keys: Sequence[int], scores: Mapping[int, float]) -> Iterator[tuple[int, float]]:
    """None is told to be better than one before it."""
    least = math.inf
    for key in keys:
        least = min(least, scores[key])
        yield key, least


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
        window = [piece, *_beside(piece, pieces)]
        wide = [*window, *_next_but_one(piece, pieces)]
        scores[piece.key] = sum(
            share
            * _bm25(
                sum((counts[one.key] for one in part), Counter()),
                weights,
                sum(len(one.terms) for one in part) / (places * length),
            )
            for share, part, places in (
                (_OWN_SHARE, [piece], 1),
                (_WINDOW_SHARE, window, 3),
                (_WIDE_SHARE, wide, 5),
            )
        )
    return _scaled(scores)


def _beside(piece: Piece, pieces: Mapping[int, Piece]) -> list[Piece]:
    return [pieces[key] for key in (piece.before, piece.after) if key is not None and key in pieces]


def _next_but_one(piece: Piece, pieces: Mapping[int, Piece]) -> list[Piece]:
    before = None if piece.before is None else pieces.get(piece.before)
    after = None if piece.after is None else pieces.get(piece.after)
    keys = (
        None if before is None else before.before,
        None if after is None else after.after,
    )
    return [pieces[key] for key in keys if key is not None and key in pieces]


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
    timed = sorted(
        (piece for piece in candidates if not piece.session),
        key=lambda piece: (piece.group, piece.at_us),
    )
    sessions = [[piece] for piece in timed[:1]]
    for earlier, later in pairwise(timed):
        gap_us = later.at_us - earlier.at_us
        if earlier.group != later.group or gap_us > MEMORY_SESSION_GAP_SECONDS * 1_000_000:
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
