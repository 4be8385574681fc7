"""Episodes, facts and entities found for a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zibaldone.find.candidates import Candidates, Wanted, gather, joined
from zibaldone.find.documents import CANDIDATES_PER_LEG
from zibaldone.find.fusion import weighted_scores
from zibaldone.find.meaning import Meaning
from zibaldone.find.missing import Missing
from zibaldone.find.share import vector_share
from zibaldone.limits import MEMORY_NAME_WORDS_MAX
from zibaldone.model.chunk import ChunkView
from zibaldone.model.memory import MEMORY_PREFIX, Node, StoredFact
from zibaldone.model.query import Filter, Query
from zibaldone.store.port import Reader
from zibaldone.text.entities import entity_key
from zibaldone.text.terms import index_terms
from zibaldone.text.words import STOP_WORDS

_EPISODES_LOOKED_AT = 50
"""For their facts and entities."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of which groups."""

    text: str
    query: Query
    meaning: Meaning | None
    group_ids: Sequence[str]
    until_us: int | None = None
    """As if nothing that is later were known."""


@dataclass(frozen=True, slots=True)
class EpisodeHit:
    score: float
    chunk: ChunkView


@dataclass(frozen=True, slots=True)
class EpisodeHits:
    hits: list[EpisodeHit]
    """Best first; an episode once, by its best chunk."""
    missing: tuple[Missing, ...]


def search_episodes(reader: Reader, asked: Question, *, limit: int) -> EpisodeHits:
    candidates = _gathered(reader, asked)
    fused = weighted_scores(
        candidates.lexical,
        candidates.vector,
        candidates.word_scores,
        candidates.similarities,
        vector_share=vector_share(reader, candidates, asked.meaning),
    )
    document_of = reader.chunks.documents_of(chunk.chunk_key for chunk in fused)
    best: dict[str, tuple[int, float]] = {}
    for chunk in fused:
        document_id = document_of.get(chunk.chunk_key)
        if document_id is not None and len(best) < limit:
            best.setdefault(document_id, (chunk.chunk_key, chunk.score))
    views = reader.chunks.views(key for key, _ in best.values())
    hits = [EpisodeHit(score, views[key]) for key, score in best.values() if key in views]
    return EpisodeHits(hits, candidates.missing)


def _gathered(reader: Reader, asked: Question) -> Candidates:
    found: Candidates | None = None
    for group_id in asked.group_ids:
        before_us = None if asked.until_us is None else asked.until_us + 1
        wanted = Wanted(
            asked.query,
            Filter(prefix=f"{MEMORY_PREFIX}{group_id}/", created_before_us=before_us),
            lexical_max=CANDIDATES_PER_LEG,
            vector_max=CANDIDATES_PER_LEG,
        )
        latest = gather(reader, wanted, asked.meaning)
        found = latest if found is None else joined(found, latest)
    return found or Candidates()


def search_facts(
    reader: Reader, asked: Question, *, limit: int, about: str | None = None
) -> tuple[list[StoredFact], tuple[Missing, ...]]:
    """Facts of the episodes that are found, best first; what holds now before what was ended.

    `about`: only facts that this node is part of.
    """
    found = search_episodes(reader, asked, limit=_EPISODES_LOOKED_AT)
    score_of = {hit.chunk.document_id: hit.score for hit in found.hits}
    facts = reader.memory.facts_of(score_of, until_us=asked.until_us)
    if about is not None:
        facts = [fact for fact in facts if about in _node_ids(fact)]
    wanted = terms_of(asked.text)
    ranked = sorted(
        _different(facts),
        key=lambda stored: (
            -(
                score_of[stored.document_id]
                + _covered(wanted, stored.fact.text)
                - 0.25 * (stored.invalid_at_us is not None)
            )
        ),
    )
    return ranked[:limit], found.missing


def search_nodes(
    reader: Reader, asked: Question, *, limit: int, labels: Sequence[str] = ()
) -> tuple[list[Node], tuple[Missing, ...]]:
    """Entities that the question names, then those of the episodes that are found."""
    found = search_episodes(reader, asked, limit=_EPISODES_LOOKED_AT)
    entities = reader.memory.entities_of(hit.chunk.document_id for hit in found.hits)
    scores: dict[str, float] = {}
    wanted = terms_of(asked.text)
    for hit in found.hits:
        for entity in entities.get(hit.chunk.document_id, ()):
            named = _covered(wanted, entity.name)
            scores[entity.key] = scores.get(entity.key, named) + hit.score / 10
    for name in names_in(asked.text):
        scores[name] = scores.get(name, 0.0) + 10.0
    keys = sorted(scores, key=lambda key: (-scores[key], key))
    nodes = [
        node
        for group_id in asked.group_ids
        for node in reader.memory.nodes(group_id, keys, until_us=asked.until_us)
        if not labels or set(labels) & {"Entity", *node.labels}
    ]
    nodes.sort(key=lambda node: -scores[node.key])
    return nodes[:limit], found.missing


def names_in(text: str) -> list[str]:
    """Every run of words of a question that could be the name of an entity."""
    words = [word.strip(".,;:!?\"'()[]") for word in text.split()][:MEMORY_NAME_WORDS_MAX]
    words = [word.removesuffix("'s").removesuffix("\u2019s") for word in words]
    runs = (
        words[start : start + length]
        for length in (4, 3, 2, 1)
        for start in range(len(words) - length + 1)
    )
    keys = (entity_key(" ".join(run)) for run in runs)
    return [key for key in dict.fromkeys(keys) if key and key not in STOP_WORDS]


def terms_of(text: str) -> frozenset[str]:
    """What is looked for of a question: its stems without function words."""
    kept = " ".join(word for word in text.split() if word.strip(".,?!").lower() not in STOP_WORDS)
    return frozenset(term for run in index_terms(kept) for term in run)


def _covered(wanted: frozenset[str], text: str) -> float:
    """The share of the terms that the text has."""
    held = {term for run in index_terms(text) for term in run}
    return len(wanted & held) / len(wanted) if wanted else 0.0


def _node_ids(stored: StoredFact) -> tuple[str, str]:
    group_id, fact = stored.group_id, stored.fact
    return (
        Node(group_id, fact.subject, "", (), 0, 0).node_id,
        Node(group_id, fact.object, "", (), 0, 0).node_id,
    )


def _different(facts: Iterable[StoredFact]) -> list[StoredFact]:
    """The same sentence once, as it was said last."""
    latest: dict[str, StoredFact] = {}
    for stored in facts:
        key = " ".join(stored.fact.text.casefold().split())
        known = latest.get(key)
        if known is None or stored.fact.valid_at_us > known.fact.valid_at_us:
            latest[key] = stored
    return list(latest.values())
