"""The keyword index over the chunks.

A search reads the postings of its terms and adds up their scores here (`bm25.py`), then asks the
database which of the best are visible and pass the filter. Chunks that were written since postings
were last made come with their terms instead.

Where a caller sees a few chunks of a large namespace only, the terms of these are read instead.

What a search reads is bounded: beyond `keyword_entries_max` the rarest terms alone bring chunks,
and the commoner ones count for the best of these. Only if that finds too little is everything read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from zibaldone.access.principal import Tenant
from zibaldone.limits import (
    LEXICAL_LOOKED_AT_MAX,
    LEXICAL_REFINED_MAX,
    LEXICAL_WISHED_MAX,
    Limits,
)
from zibaldone.model.query import NO_FILTER, Filter, Query
from zibaldone.model.vector import np
from zibaldone.store import statements
from zibaldone.store.port import Scored, TermFrequencies
from zibaldone.store.postgres import bm25
from zibaldone.store.postgres.asked import Asked, Group, Part, Together
from zibaldone.store.postgres.bm25 import Corpus, Entries, Ranking
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.eligible import (
    all_eligible,
    eligible_chunks,
    filter_values,
    is_open,
    present_chunks,
)
from zibaldone.store.postgres.terms import quoted
from zibaldone.store.tenants import range_values
from zibaldone.text.lookups import wanted_lookups
from zibaldone.text.normalize import prefix_end

if TYPE_CHECKING:
    from zibaldone.store.postgres.bm25 import Floats, Keys

_SQL = statements.load("zibaldone.store.postgres", "lexical.sql")

_FEW_MAX = 50_000
"""Chunks that pass a filter, to be listed for a search."""

_EXACT_MAX = 1_000
"""Chunks of a namespace up to which those are left out of a count that are gone. Beyond it there
are so many that these make no difference."""

_OWN_MAX = 500
"""Chunks in a range of paths whose terms are read instead of the postings of the namespace; to list
them takes some milliseconds."""

_MATCHING_FEW = 2_000
"""Entries of postings that are read in less time than that."""

_LAST = "\U0010ffff"
"""Above every term that goes on after a beginning."""


class Lexical:
    def __init__(self, transaction: Transaction, tenant: Tenant, limits: Limits) -> None:
        self._transaction = transaction
        self._tenant = tenant
        self._entries_max = limits.keyword_entries_max

    def search(
        self,
        query: Query,
        *,
        limit: int,
        offset: int = 0,
        wanted: Filter = NO_FILTER,
        enough: int | None = None,
    ) -> list[Scored]:
        values = filter_values(self._tenant, wanted)
        if query.is_empty or values is None or not limit:
            return []
        asked = Asked.of(query)
        index = _Index(self._transaction, self._tenant.namespace, values)
        has_all = is_open(self._tenant, wanted)
        walk = _Walk(self._transaction, index, values, asked.unwanted, has_all=has_all)
        last = offset + limit
        bounds = _Bounds(
            self._entries_max, LEXICAL_REFINED_MAX, LEXICAL_LOOKED_AT_MAX, LEXICAL_WISHED_MAX
        )
        ranking = index.ranking(asked, bounds)
        hits = walk.best(ranking, last)
        if ranking.is_cut and len(hits) < min(last, last if enough is None else enough):
            everything = index.ranking(asked, _NO_BOUNDS)
            hits = _continued(hits, walk.best(everything, last + len(hits)))
        return hits[offset:last]

    def chunk_counts(self, words: Sequence[str], *, count_max: int) -> list[int]:
        if not words:
            return []
        groups = [wanted_lookups(Query(terms=(word,))) for word in words]
        asked = Asked.of(Query(terms=tuple(words)))
        counts = _Index(self._transaction, self._tenant.namespace).chunks_with(asked)
        # The beginning of a word, of which there are many, is never rare.
        return [
            min(
                max(count_max + 1 if begins else counts.get(term, 0) for term, begins in group)
                for group in of_word
            )
            for of_word in groups
        ]

    def matching(self, query: Query, chunk_keys: Iterable[int]) -> set[int]:
        keys = list(chunk_keys)
        if query.is_empty or not keys:
            return set()
        values = {"chunk_keys": keys, "demand": Asked.of(query).tsquery}
        selected = self._transaction.execute(
            _SQL["matching"], {**range_values(self._tenant), **values}
        )
        return {row[0] for row in selected}

    def frequencies(self, terms: Iterable[str]) -> TermFrequencies:
        distinct = list(dict.fromkeys(terms))
        index = _Index(self._transaction, self._tenant.namespace)
        facts = index.facts(distinct, " | ".join(map(quoted, distinct)))
        return TermFrequencies(
            facts.chunks, {term: float(max(0, facts.chunks_with[term])) for term in distinct}
        )


@dataclass(frozen=True, slots=True)
class _Bounds:
    entries: float = math.inf
    refined: float = math.inf
    looked_at: float = math.inf
    wished: float = math.inf


_NO_BOUNDS = _Bounds()


def _continued(hits: list[Scored], further: list[Scored]) -> list[Scored]:
    """The order depends on the query and the filter alone, so that pages fit together."""
    known = dict(hits)
    least = hits[-1][1] if hits else math.inf
    return hits + [(key, min(score, least)) for key, score in further if key not in known]


@dataclass
class _Facts:
    """What the statistics say, and the terms of chunks that have no postings yet."""

    chunks: int = 0
    length: int = 0
    chunks_with: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    unposted: dict[str, list[tuple[int, int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    @property
    def corpus(self) -> Corpus:
        return Corpus(self.chunks, max(1.0, self.length / max(1, self.chunks)))


class _Index:
    """The keyword index of one namespace."""

    def __init__(
        self, transaction: Transaction, namespace: str, within: Mapping[str, Any] | None = None
    ) -> None:
        """`within`: values of a filter. If few chunks are in its range, only they are ranked."""
        self._transaction = transaction
        self._namespace = {"namespace": namespace}
        self._within = within if within is not None and within["end"] is not None else None
        self._own: Keys | None = None

    def ranking(self, asked: Asked, bounds: _Bounds) -> Ranking:
        """The chunks that are found, gone ones and such with excluded terms among them."""
        self._own = self._few_beside_unposted()
        facts = self._facts(asked, with_unposted=self._own is None)
        if self._own is None:
            self._own = self._few_beside_matching(asked, facts)
        read = self._affordable(asked, facts, bounds) if self._own is None else set(asked.terms)
        found = _Found(self, asked, facts, self._entries(asked, read, facts), bounds)
        ranking = found.ranking()
        unread = [term for term in asked.terms if term not in read]
        if unread:
            ranking = self._refined(ranking, asked, facts, unread, bounds)
        return replace(ranking, is_cut=found.is_cut or bool(unread))

    def chunks_with(self, asked: Asked) -> Mapping[str, int]:
        """In how many chunks each term is."""
        return self._facts(asked, with_unposted=False).chunks_with

    def own_share(self, facts: _Facts) -> tuple[float, bool]:
        """How many chunks there are in all for each one of the namespace, or for each one that is
        ranked, and whether it knows which of these are gone."""
        if self._own is not None:
            return max(1.0, facts.chunks / max(1, len(self._own))), False
        values = {**self._namespace, "exact_max": _EXACT_MAX}
        is_exact, own = self._transaction.row(_SQL["own_chunks"], values) or (False, 0)
        return max(1.0, facts.chunks / max(1, own)), is_exact

    def present(self, keys: Keys) -> int:
        """How many of these chunks are still there."""
        values = {**self._namespace, "chunk_keys": keys.tolist()}
        count: int = self._transaction.value(_SQL["present"], values)
        return count

    def meeting(self, keys: Keys, demand: str) -> Keys:
        """Those of these chunks that meet a demand."""
        values = {**self._namespace, "chunk_keys": keys.tolist(), "demand": demand}
        selected = self._transaction.execute(_SQL["meeting"], values) if len(keys) else []
        return np.fromiter((row[0] for row in selected), np.int64, len(selected))

    def places(self, keys: Keys, terms: Sequence[str], beginnings: Sequence[str]) -> list[Any]:
        """Rows of chunk, length, term and where it stands."""
        values = {
            **self._namespace,
            "chunk_keys": keys.tolist(),
            "terms": list(terms),
            "beginnings": list(beginnings),
        }
        return self._transaction.execute(_SQL["places"], values) if len(keys) else []

    def _facts(self, asked: Asked, *, with_unposted: bool) -> _Facts:
        beginnings = asked.beginnings if with_unposted else None
        return self.facts(asked.terms, asked.any_term, beginnings)

    def facts(
        self, terms: Sequence[str], any_term: str, beginnings: Sequence[str] | None = None
    ) -> _Facts:
        """Of these terms; `beginnings`: with what has no postings yet, also of these."""
        facts = _Facts()
        values = {
            **self._namespace,
            "terms": terms,
            "any_term": any_term,
            "with_unposted": beginnings is not None,
            "beginnings": list(beginnings or ()),
        }
        for chunk_key, length, term, count in self._transaction.execute(_SQL["statistics"], values):
            if chunk_key is not None:
                facts.unposted[term].append((chunk_key, length, count))
            elif term:
                facts.chunks_with[term] += count
            else:
                facts.chunks += count
                facts.length += length
        return facts

    def _few_beside_unposted(self) -> Keys | None:
        """The chunks in the range, if they are few and more than these have no postings yet."""
        if self._within is None:
            return None
        values = {**self._namespace, "limit": _OWN_MAX + 1}
        unposted = self._transaction.value(_SQL["unposted_chunks"], values)
        return self._few() if unposted > _OWN_MAX else None

    def _few_beside_matching(self, asked: Asked, facts: _Facts) -> Keys | None:
        """The chunks in the range, if they are few and more than these are likely to match.

        To rank all that match would make searches in a small folder as slow as others have written
        much elsewhere.
        """
        matching = sum(facts.chunks_with[term] for term in asked.terms)
        if self._within is None or (matching <= _MATCHING_FEW and not asked.beginnings):
            return None
        return self._few()

    def _few(self) -> Keys | None:
        selected = self._transaction.execute(
            _SQL["own"], {**(self._within or {}), "limit": _OWN_MAX + 1}
        )
        if len(selected) > _OWN_MAX:
            return None
        return np.fromiter((row[0] for row in selected), np.int64, len(selected))

    def _affordable(self, asked: Asked, facts: _Facts, bounds: _Bounds) -> set[str]:
        """The terms whose postings are read: all, or the rarest."""
        sizes: Mapping[str, int] = facts.chunks_with
        if sum(sizes[term] for term in asked.terms) <= bounds.entries:
            return set(asked.terms)
        values = {**self._namespace, "terms": asked.terms}
        posted: dict[str, int] = dict(self._transaction.execute(_SQL["sizes"], values))
        # With what is not posted yet: which terms are read must not depend on when that happens,
        # or the next page would be one of another order.
        sizes = {term: posted.get(term, 0) + len(facts.unposted[term]) for term in asked.terms}
        read: set[str] = set()
        left = bounds.entries
        for term in sorted(asked.terms, key=lambda term: sizes[term]):
            left -= sizes[term]
            if read and left < 0:
                break
            read.add(term)
        return read

    def _entries(self, asked: Asked, read: set[str], facts: _Facts) -> dict[Part, Entries]:
        """By single term: what was read, and what has no postings yet."""
        if self._own is not None:
            return self._own_entries(asked, self._own)
        rows: dict[Part, list[tuple[int, bytes]]] = {Part((term,)): [] for term in read}
        values = {**self._namespace, "terms": list(read)}
        for term, base, entries in self._transaction.execute(_SQL["postings"], values):
            rows[Part((term,))].append((base, entries))
        beginnings = {start: Part((start,), is_open=True) for start in asked.beginnings}
        rows.update((part, []) for part in beginnings.values())
        for start, base, entries in self._begun(asked.beginnings):
            rows[beginnings[start]].append((base, entries))
        return {part: self._with_unposted(part, of_part, facts) for part, of_part in rows.items()}

    def _own_entries(self, asked: Asked, own: Keys) -> dict[Part, Entries]:
        """The same of some chunks, out of their terms."""
        rows: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for key, length, term, places in self.places(own, asked.terms, asked.beginnings):
            rows[term].append((key, length, len(places)))
        entries = {Part((term,)): bm25.entries_of(rows.get(term, ())) for term in asked.terms}
        for start in asked.beginnings:
            begun = [row for term in rows if term.startswith(start) for row in rows[term]]
            entries[Part((start,), is_open=True)] = bm25.added_up(bm25.entries_of(begun))
        return entries

    def _begun(self, beginnings: Sequence[str]) -> list[Any]:
        if not beginnings:
            return []
        ends = [prefix_end(start) or start + _LAST for start in beginnings]
        values = {**self._namespace, "beginnings": list(beginnings), "ends": ends}
        return self._transaction.execute(_SQL["postings_begun"], values)

    def _with_unposted(
        self, part: Part, rows: Iterable[tuple[int, bytes]], facts: _Facts
    ) -> Entries:
        posted = bm25.unpack(rows)
        (term,) = part.terms
        unposted = [
            row
            for other, entries in facts.unposted.items()
            if other == term or (part.is_open and other.startswith(term))
            for row in entries
        ]
        entries = posted
        if unposted:
            new = bm25.entries_of(unposted)
            if self._transaction.is_write:  # they may have been posted since they were read
                posted = bm25.without(posted, new.keys)
            entries = bm25.joined((posted, new))
        return bm25.added_up(entries) if part.is_open else entries

    def _refined(
        self,
        ranking: Ranking,
        asked: Asked,
        facts: _Facts,
        unread: Sequence[str],
        bounds: _Bounds,
    ) -> Ranking:
        """The best of them, with the score of the terms that were not read."""
        best = ranking.best(bounds.refined)
        meeting = self.meeting(best.keys, asked.tsquery)
        best = best.of(meeting)
        rows: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for key, length, term, places in self.places(best.keys, unread, ()):
            rows[term].append((key, length, len(places)))
        parts = [(best.keys, best.scores)]
        corpus = facts.corpus
        for term, of_term in rows.items():
            entries = bm25.entries_of(of_term)
            weight = asked.weights.get(Part((term,)), 0) * corpus.idf(facts.chunks_with[term])
            if weight:
                parts.append((entries.keys, corpus.scores(entries, weight)))
        return Ranking.adding(parts)


class _Found:
    """What the entries of single terms say about a query."""

    def __init__(
        self,
        index: _Index,
        asked: Asked,
        facts: _Facts,
        entries: dict[Part, Entries],
        bounds: _Bounds,
    ) -> None:
        self._bounds = bounds
        self.is_cut = False
        """More chunks than were looked at have the terms of a phrase."""
        self._index = index
        self._asked = asked
        self._facts = facts
        self._corpus = facts.corpus
        self._entries = entries
        self._chunks_with: dict[Part, float] = {
            part: facts.chunks_with[part.terms[0]] for part in entries if not part.is_open
        }

    def ranking(self) -> Ranking:
        asked = self._asked
        estimated = [part for part in asked.parts if part.is_open or part.is_phrase]
        if estimated:
            share, is_exact = self._index.own_share(self._facts)
            for part in estimated:
                if part.is_phrase:
                    self._find_phrase(part)
                elif part in self._entries:
                    keys = self._entries[part].keys
                    self._chunks_with[part] = self._index.present(keys) if is_exact else len(keys)
                if part in self._entries:
                    own = self._chunks_with[part]
                    self._chunks_with[part] = min(own * share, self._facts.chunks)
        scored = [
            self._scored(part, self._entries[part], count)
            for part, count in asked.weights.items()
            if part in self._entries
        ]
        for together in asked.wishes:
            keys = self._holding(together)
            scored += [
                self._scored(part, bm25.only(self._entries[part], keys), 1)
                for part in together
                if part in self._entries
            ]
        ranking = Ranking.adding(scored)
        return ranking if asked.is_any else ranking.of(self._required())

    def _scored(self, part: Part, entries: Entries, count: int) -> tuple[Keys, Floats]:
        weight = count * self._corpus.idf(self._chunks_with[part])
        return entries.keys, self._corpus.scores(entries, weight)

    def _required(self) -> Keys:
        """Chunks that meet every group of which something was read."""
        sets = [keys for group in self._asked.groups if (keys := self._meeting(group)) is not None]
        return reduce(np.intersect1d, sets) if sets else np.empty(0, np.int64)

    def _meeting(self, group: Group) -> Keys | None:
        read = [self._holding(together) for together in group if self._is_read(together)]
        return np.unique(np.concatenate(read)) if read else None

    def _is_read(self, together: Together) -> bool:
        return any(part in self._entries for part in together)

    def _holding(self, together: Together) -> Keys:
        """Chunks that have all these parts, as far as they were read."""
        read = [self._entries[part].keys for part in together if part in self._entries]
        return reduce(np.intersect1d, read) if read else np.empty(0, np.int64)

    def _find_phrase(self, phrase: Part) -> None:
        """Of the chunks that have all of its terms, those in which they stand side by side."""
        single = [Part((term,)) for term in phrase.closed]
        if phrase.is_open:
            single.append(Part((phrase.terms[-1],), is_open=True))
        read = [self._entries[part] for part in dict.fromkeys(single) if part in self._entries]
        if not read:
            return
        words = bm25.shared(read, self._corpus)
        is_required = self._asked.is_required(phrase)
        bound = self._bounds.looked_at if is_required else self._bounds.wished
        looked_at = words.best(bound)
        self.is_cut |= len(looked_at) < len(words)
        meeting = looked_at.of(self._index.meeting(looked_at.keys, phrase.tsquery))
        self._chunks_with[phrase] = len(meeting) * len(words) / max(1, len(looked_at))
        best = meeting.best(self._bounds.refined)
        counts = _phrase_counts(phrase, self._index, best.keys)
        self._entries[phrase] = Entries(
            meeting.keys,
            bm25.only(read[0], meeting.keys).by_key().lengths,
            np.array([counts.get(key, 1) for key in meeting.keys.tolist()], np.float64),
        )


def _phrase_counts(phrase: Part, index: _Index, keys: Keys) -> dict[int, int]:
    """How often chunks have a phrase."""
    beginnings = [phrase.terms[-1]] if phrase.is_open else []
    places: dict[int, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for key, _, term, of_term in index.places(keys, phrase.closed, beginnings):
        if term in phrase.closed:
            places[key][term].update(of_term)
        if beginnings and term.startswith(beginnings[0]):
            places[key][f"{beginnings[0]}*"].update(of_term)
    names = [*phrase.closed, *(f"{start}*" for start in beginnings)]
    return {
        key: max(
            1, len(set.intersection(*(_moved(of_key[name], n) for n, name in enumerate(names))))
        )
        for key, of_key in places.items()
    }


def _moved(places: set[int], back: int) -> set[int]:
    return {place - back for place in places}


class _Walk:
    """Through a ranking, from the best down, over what may be seen."""

    def __init__(
        self,
        transaction: Transaction,
        index: _Index,
        values: dict[str, Any],
        unwanted: str | None,
        *,
        has_all: bool,
    ) -> None:
        self._has_all = has_all
        self._transaction = transaction
        self._index = index
        self._values = values
        self._unwanted = unwanted

    def best(self, ranking: Ranking, count: int) -> list[Scored]:
        hits: list[Scored] = []
        seen, step = 0, count + count // 4 + 64
        is_eligible, may_be_few = False, True
        while seen < len(ranking) and len(hits) < count:
            keys, scores = ranking.best(seen + step).in_order()
            keys, scores = keys[seen : seen + step], scores[seen : seen + step]
            passing = self._passing(keys, is_eligible)
            listed = zip(keys.tolist(), scores.tolist(), strict=True)
            hits += [(key, score) for key, score in listed if key in passing]
            seen += len(keys)
            step = self._next_step(seen, len(hits), count)
            if may_be_few and min(step, len(ranking) - seen) > LEXICAL_LOOKED_AT_MAX:
                may_be_few = False
                few = all_eligible(self._transaction, self._values, _FEW_MAX)
                if few is not None:
                    hits, seen, step, is_eligible = [], 0, count + 64, True
                    ranking = ranking.of(np.array(few, np.int64))
        return hits[:count]

    def _next_step(self, seen: int, passed: int, count: int) -> int:
        """As many as it may take to find the rest, and some."""
        return 5 * (count - passed) * seen // (4 * max(1, passed)) + 64

    def _passing(self, keys: Keys, is_eligible: bool) -> set[int]:
        listed = keys.tolist()
        passing = set(listed)
        if not is_eligible:
            passing = self._eligible(listed)
        if self._unwanted and passing:
            left = np.array(sorted(passing), np.int64)
            passing -= set(self._index.meeting(left, self._unwanted).tolist())
        return passing

    def _eligible(self, keys: list[int]) -> set[int]:
        if self._has_all:
            present = present_chunks(self._transaction, self._values, keys)
            if present is not None:
                return present
            self._has_all = False
        return eligible_chunks(self._transaction, self._values, keys)
