"""Episodes, facts and entities found for a question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from zibaldone.errors import DeadlineExceeded
from zibaldone.find.candidates import Candidates, Wanted, gather, joined
from zibaldone.find.meaning import Meaning
from zibaldone.find.memory_ranking import Piece, ranked
from zibaldone.find.missing import Missing
from zibaldone.find.rarest import with_rarest
from zibaldone.limits import MEMORY_NAME_WORDS_MAX, MEMORY_SESSION_GAP_SECONDS
from zibaldone.model.chunk import ChunkView
from zibaldone.model.instant import now_us
from zibaldone.model.memory import MEMORY_PREFIX, Node, StoredFact, node_id
from zibaldone.model.query import Filter, Query
from zibaldone.store.port import Reader
from zibaldone.text.dates import END_OF_TIME_US, named_dates
from zibaldone.text.entities import SPEAKER, entity_key, speakers_of
from zibaldone.text.memory import SOURCE
from zibaldone.text.question import asks_for_many, time_order
from zibaldone.text.terms import index_terms
from zibaldone.text.words import STOP_WORDS

_EPISODES_LOOKED_AT = 50
"""For their facts and entities."""

_CANDIDATES_PER_LEG = 100
"""Beside them their neighbours are ranked, too."""

_VECTOR_SHARE = 0.5

_GAP_US = MEMORY_SESSION_GAP_SECONDS * 1_000_000

_EVENTS_LOOKED_AT = 5
"""Episodes that may tell of the event that a question names."""
_EVENT_COVERED = 0.5
"""Of the event's words, so many stand in the episode that tells of it."""
_EVENT_SHARE = 0.4
"""Of the time that is left, for looking up the event."""
_SENTENCE_END = re.compile(r"[.!?\n]+")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of which groups."""

    text: str
    query: Query
    meaning: Meaning | None
    group_ids: Sequence[str]
    until_us: int | None = None
    """As if nothing that is later were known."""
    people: frozenset[str] = frozenset()
    """Speakers whom it names (`people_in`); its meaning is without their names."""
    before: Question | None = None
    """It asks for what was before this event."""
    after: Question | None = None


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
    """The best chunks of each group's episodes; what was said before and after counts, too."""
    query = query_without(with_rarest(reader, asked.query), asked.people)
    asked = replace(asked, query=query)
    spans = [*_named_times(asked), *_times_around_events(reader, asked)]
    candidates = _gathered(reader, asked)
    keys = dict.fromkeys(key for key, _ in (*candidates.lexical, *candidates.vector))
    views, pieces = _pieces(reader, asked, candidates, reader.chunks.views(keys), spans)
    scores = ranked(
        pieces,
        sorted(terms_of(" ".join(asked.query.terms))),
        named=asked.people | frozenset(names_in(asked.text)),
        vector_share=_vector_share(asked, candidates),
        is_many=asks_for_many(asked.text),
        order=time_order(asked.text),
    )
    best: dict[str, EpisodeHit] = {}
    for key, score in scores:
        view = views[key]
        if view.document_id not in best:
            if len(best) == limit:
                break
            best[view.document_id] = EpisodeHit(score, view)
    return EpisodeHits(list(best.values()), candidates.missing)


def _vector_share(asked: Question, candidates: Candidates) -> float:
    if candidates.lacks_words:
        return 1.0
    if asked.meaning is None or not candidates.similarities:
        return 0.0
    return _VECTOR_SHARE * asked.meaning.trust


def people_in(
    reader: Reader, text: str, group_ids: Sequence[str], until_us: int | None
) -> frozenset[str]:
    """Speakers whom the question names: their names stand in every message of theirs."""
    names = names_in(text)
    return frozenset(
        node.key
        for group_id in group_ids
        for node in reader.memory.nodes(group_id, names, until_us=until_us)
        if SPEAKER in node.labels
    )


def query_without(query: Query, names: frozenset[str]) -> Query:
    """The query without these names, unless nothing else is left of it."""
    words = {word for name in names for word in name.split()}
    kept = tuple(term for term in query.terms if term.removesuffix("'s") not in words)
    left = replace(query, terms=kept)
    return query if left.is_empty else left


def text_without(text: str, names: frozenset[str]) -> str:
    """The text without these names, unless no telling word is left of it."""
    if not names:
        return text
    longest_first = sorted(names, key=lambda name: (-len(name), name))
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?:['\u2019`]s)?(?!\w)"
    spaced = " ".join(text.split())  # as names are; and long runs of spaces cost nothing
    left = " ".join(re.sub(pattern, " ", spaced, flags=re.IGNORECASE).split())
    return left if terms_of(left) else text


def _pieces(
    reader: Reader,
    asked: Question,
    candidates: Candidates,
    found: Mapping[int, ChunkView],
    spans: Sequence[tuple[int, int]],
) -> tuple[dict[int, ChunkView], list[Piece]]:
    """What is ranked: what was found, and the messages beside it, which may be the answer."""
    views = dict(found)
    around = reader.memory.around({view.document_id for view in views.values()})
    beside = {
        document_id
        for view in views.values()
        if _is_message(view) and view.document_id in around
        for document_id in (
            *around[view.document_id].before[:1],
            *around[view.document_id].after[:1],
        )
    }
    more = {
        view.chunk_key: view
        for view in reader.chunks.views_at((document_id, 0) for document_id in beside).values()
        if _is_message(view) and view.chunk_key not in found
    }
    views |= more
    around |= reader.memory.around({view.document_id for view in more.values()})
    first_of = {view.document_id: key for key, view in views.items() if view.chunk_index == 0}
    similarities = dict(candidates.similarities)
    if asked.meaning is not None and similarities and more:
        near = reader.vectors.scores(asked.meaning.identity, asked.meaning.vector, more)
        similarities |= near
    groups = {group_id: number for number, group_id in enumerate(asked.group_ids)}

    def piece(key: int, view: ChunkView) -> Piece | None:
        here = around.get(view.document_id)
        if here is None:
            return None
        at_us = here.episode.valid_at_us
        is_message = _is_message(view)

        def next_to(ids: Sequence[str]) -> int | None:
            if not is_message or not ids or ids[0] not in first_of:
                return None
            then_us = around[ids[0]].episode.valid_at_us
            is_known = asked.until_us is None or then_us <= asked.until_us
            return first_of[ids[0]] if is_known and abs(then_us - at_us) <= _GAP_US else None

        speakers = speakers_of(view.text) if is_message else []
        return Piece(
            key,
            _terms(view.text),
            at_us,
            similarities.get(key),
            entity_key(speakers[0]) if speakers else "",
            "" if is_message else view.document_id,
            next_to(here.before),
            next_to(here.after),
            bool(spans) and _is_then(view.text, at_us, spans),
            is_message and view.text.rstrip().endswith("?"),
            is_message and "?" in view.text,
            groups.get(here.episode.group_id, 0),
        )

    pieces = [made for key in found if (made := piece(key, views[key])) is not None]
    linked = {key for made in pieces for key in (made.before, made.after)}
    beside_found = [piece(key, view) for key, view in more.items() if key in linked]
    pieces += [made for made in beside_found if made is not None]
    return views, pieces


def _is_message(view: ChunkView) -> bool:
    return view.metadata.get(SOURCE) == "message"


def _times_around_events(reader: Reader, asked: Question) -> list[tuple[int, int]]:
    """The times before or after the event that the question names. If looking it up takes too
    long, it is answered without."""
    if asked.before is None and asked.after is None:
        return []
    spans = []
    try:
        with reader.within(_EVENT_SHARE):
            for event, is_before in ((asked.before, True), (asked.after, False)):
                at_us = None if event is None else _time_of_event(reader, event)
                if at_us is not None:
                    spans.append((0, at_us + 1) if is_before else (at_us, END_OF_TIME_US))
    except DeadlineExceeded:
        return []
    return spans


def _time_of_event(reader: Reader, event: Question) -> int | None:
    """When it was: the date beside its words in the episode that tells of it, else the time of that
    episode."""
    wanted = terms_of(" ".join(query_without(event.query, event.people).terms))
    hits = search_episodes(reader, event, limit=_EVENTS_LOOKED_AT).hits
    telling = next(
        (hit for hit in hits if _covered(wanted, hit.chunk.text) >= _EVENT_COVERED), None
    )
    if not wanted or telling is None:
        return None
    document_id, text = telling.chunk.document_id, telling.chunk.text
    at_us = reader.memory.around([document_id])[document_id].episode.valid_at_us
    for named in named_dates(text, at_us):
        ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, named.start)]
        rest = _SENTENCE_END.search(text, named.end)
        sentence = text[ends[-1] if ends else 0 : rest.start() if rest else len(text)]
        if wanted & terms_of(sentence):
            return named.from_us
    return at_us


def _named_times(asked: Question) -> list[tuple[int, int]]:
    """What spans of time the question names by dates: "in May", "before June 2023"."""
    now = now_us() if asked.until_us is None else asked.until_us
    spans = []
    for named in named_dates(asked.text, now):
        words = asked.text[: named.end].casefold()
        before = words[: named.start].split()[-1:] + words[named.start :].split()[:1]
        if {"before", "until", "till"} & set(before):
            spans.append((0, named.from_us))
        elif "after" in before:
            spans.append((named.until_us, END_OF_TIME_US))
        elif "since" in before:
            spans.append((named.from_us, END_OF_TIME_US))
        else:
            spans.append((named.from_us, named.until_us))
    return spans


def _is_then(text: str, at_us: int, spans: Sequence[tuple[int, int]]) -> bool:
    times = [(at_us, at_us + 1)]
    times += [(named.from_us, named.until_us) for named in named_dates(text, at_us)]
    return any(start < until and end > since for start, end in times for since, until in spans)


def _terms(text: str) -> list[str]:
    return [term for run in index_terms(text) for term in run]


def _gathered(reader: Reader, asked: Question) -> Candidates:
    found: Candidates | None = None
    for group_id in asked.group_ids:
        before_us = None if asked.until_us is None else asked.until_us + 1
        wanted = Wanted(
            asked.query,
            Filter(prefix=f"{MEMORY_PREFIX}{group_id}/", created_before_us=before_us),
            lexical_max=_CANDIDATES_PER_LEG,
            vector_max=_CANDIDATES_PER_LEG,
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
    return [
        key for key in dict.fromkeys(keys) if key and "\x00" not in key and key not in STOP_WORDS
    ]


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
    return node_id(group_id, fact.subject), node_id(group_id, fact.object)


def _different(facts: Iterable[StoredFact]) -> list[StoredFact]:
    """The same sentence once, as it was said last."""
    latest: dict[str, StoredFact] = {}
    for stored in facts:
        key = " ".join(stored.fact.text.casefold().split())
        known = latest.get(key)
        if known is None or stored.fact.valid_at_us > known.fact.valid_at_us:
            latest[key] = stored
    return list(latest.values())
