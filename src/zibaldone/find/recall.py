"""What an agent should know about a question: few lines, each with where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from zibaldone.find.memory import EpisodeHit, Question, search_episodes
from zibaldone.find.missing import Missing
from zibaldone.limits import MEMORY_LINE_CHARS_MAX, MEMORY_LINES_MAX
from zibaldone.model.instant import to_iso
from zibaldone.model.memory import EpisodeHead, StoredFact
from zibaldone.store.port import Reader
from zibaldone.text.dates import named_dates
from zibaldone.text.snippet import snippet
from zibaldone.text.terms import index_terms

_CHARS_PER_TOKEN = 4
"""Of English text, for the usual tokenizers."""
_LINE_TOKENS = 12
"""For the time and the source of a line."""
_SAME_SHARE = 0.9
"""Of the terms that two lines have: then they say the same."""


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    """Relative dates in it are followed by the date that they mean."""
    episode: EpisodeHead
    title: str
    tokens: int
    until_us: int | None = None
    """When something later ended what it says."""
    replaced_by: str | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    lines: list[Line]
    missing: tuple[Missing, ...]
    left: int
    """Lines that the budget had no room for."""


def recall(reader: Reader, asked: Question, *, budget_tokens: int) -> Recalled:
    """Best first, but what no longer holds behind all that does. Each thing once, as said last."""
    found = search_episodes(reader, asked, limit=MEMORY_LINES_MAX)
    documents = [hit.chunk.document_id for hit in found.hits]
    heads = {
        document_id: around.episode
        for document_id, around in reader.memory.around(documents).items()
    }
    ended: dict[str, StoredFact] = {}
    for stored in reader.memory.facts_of(documents, until_us=asked.until_us):
        if stored.invalid_at_us is not None:
            ended.setdefault(stored.document_id, stored)
    lines = [
        _line(hit, heads[hit.chunk.document_id], asked, ended.get(hit.chunk.document_id))
        for hit in _different(found.hits, heads)
    ]
    lines.sort(key=lambda line: line.until_us is not None)  # stable: else best first
    kept: list[Line] = []
    left_tokens = budget_tokens
    for line in lines:
        if line.tokens <= left_tokens:
            kept.append(line)
            left_tokens -= line.tokens
    return Recalled(kept, found.missing, len(lines) - len(kept))


def _different(hits: Sequence[EpisodeHit], heads: dict[str, EpisodeHead]) -> list[EpisodeHit]:
    """What says the same once: at the place of the best, as it was said last."""
    kept: list[tuple[EpisodeHit, frozenset[str]]] = []
    for hit in hits:
        if hit.chunk.document_id not in heads:
            continue
        terms = frozenset(term for run in index_terms(hit.chunk.text) for term in run)
        for number, (other, held) in enumerate(kept):
            if len(terms & held) >= _SAME_SHARE * len(terms | held):
                if _at(hit, heads) > _at(other, heads):
                    kept[number] = (replace(hit, score=other.score), terms)
                break
        else:
            kept.append((hit, terms))
    return [hit for hit, _ in kept]


def _at(hit: EpisodeHit, heads: dict[str, EpisodeHead]) -> int:
    return heads[hit.chunk.document_id].valid_at_us


def _line(hit: EpisodeHit, head: EpisodeHead, asked: Question, ended: StoredFact | None) -> Line:
    chunk = hit.chunk
    text = chunk.text.strip()
    if len(text) > MEMORY_LINE_CHARS_MAX:
        text = snippet(text, asked.query, MEMORY_LINE_CHARS_MAX)[0]
    text = with_dates(" ".join(text.split()), head.valid_at_us)
    replaced = None if ended is None else ended.replaced_by
    chars = len(text) + len(chunk.title) + len(replaced or "")
    return Line(
        text,
        head,
        chunk.title,
        _LINE_TOKENS + -(-chars // _CHARS_PER_TOKEN),
        None if ended is None else ended.invalid_at_us,
        replaced,
    )


def with_dates(text: str, at_us: int) -> str:
    """The text with what relative dates mean behind them: "yesterday (2023-05-07)"."""
    parts: list[str] = []
    taken = 0
    for named in named_dates(text, at_us):
        if named.is_relative:
            first, last = to_iso(named.from_us)[:10], to_iso(named.until_us - 1)[:10]
            meant = first if first == last else f"{first} to {last}"
            parts += (text[taken : named.end], f" ({meant})")
            taken = named.end
    return "".join((*parts, text[taken:]))
