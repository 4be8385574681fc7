"""How much of a fused score the vectors decide. No fixed share is right (docs/explain/finding.md).

Two signs tell it, for each query, without anybody's judgement. Where the words of a query single
out a few chunks, they know what is meant; where a hundred chunks hold them about equally, the
vectors know better. And questions about code are seldom put in the words of the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice

from zibaldone.find.candidates import Candidates
from zibaldone.find.meaning import Meaning
from zibaldone.store.port import Reader, Scored
from zibaldone.text.code_likeness import code_likeness

_SHARE = 0.65
"""Where all candidates hold the words about equally."""
_PEAK_WEIGHT = 0.4
_CODE_WEIGHT = 0.5
_SHARE_MIN = 0.2
_SHARE_MAX = 0.9

_PEAK_CHUNKS = 20
_SAMPLE_PER_LEG = 5


def vector_share(
    reader: Reader, candidates: Candidates, meaning: Meaning | None, word_trust: float = 1.0
) -> float:
    """From 0 to 1; less for a language that the model knows little of.

    A stray word singles out nothing, though few chunks hold it: in a small store each is rare.
    """
    if meaning is None or not candidates.similarities:
        return 0.0
    if candidates.lacks_words:
        return 1.0
    stands_out = word_trust * peak(candidates.lexical)
    return meaning.trust * share_of(stands_out, _code(reader, candidates))


def share_of(peak: float, code: float) -> float:
    share = _SHARE - _PEAK_WEIGHT * peak + _CODE_WEIGHT * code
    return min(_SHARE_MAX, max(_SHARE_MIN, share))


def peak(lexical: Sequence[Scored]) -> float:
    """How far the best keyword score stands out from those after it: 0 not at all, 1 it is alone.

    Places that are not taken count as 0: what only few chunks hold stands out by that.
    """
    best = [score for _, score in islice(lexical, _PEAK_CHUNKS)]
    if not best or best[0] <= 0:
        return 0.0
    return 1.0 - sum(best) / _PEAK_CHUNKS / best[0]


def _code(reader: Reader, candidates: Candidates) -> float:
    """How much the best candidates of both legs look like code, on average."""
    legs = (candidates.lexical[:_SAMPLE_PER_LEG], candidates.vector[:_SAMPLE_PER_LEG])
    views = reader.chunks.views({key for key, _ in chain.from_iterable(legs)})
    likeness = [code_likeness(view.text) for view in views.values()]
    return sum(likeness) / len(likeness) if likeness else 0.0
