"""A store with 400 chunks, opened twice: as a small one, and with limits by which it is large."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.store.backends import Backend
from tests.store.kept import EVERYTHING, Kept
from zibaldone.access.principal import Tenant
from zibaldone.limits import Limits
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.store.port import Scored
from zibaldone.text.chunk import Chunk
from zibaldone.text.query import parse_query

CHUNKS = 400
CHUNKS_PER_DOCUMENT = 20
ALL = 1_000
COUNTS = {"oak": 400, "elm": 200, "ash": 160, "fir": 130, "yew": 60, "bay": 20, "fig": 3}
"""In how many chunks each word is."""
RANKED_MAX = 150
"""So `fir` is rare enough to lead a search, and so are the rarer ones, but not all together."""
AWAY = Tenant(namespace="away")


@dataclass(frozen=True, slots=True)
class Index:
    small: Kept
    large: Kept
    words_of: dict[int, set[str]]
    """By chunk."""

    def exact(self, words: str, wanted: Filter = NO_FILTER) -> list[Scored]:
        return self._search(self.small, words, wanted, ALL, 0, None)

    def found(
        self,
        words: str,
        wanted: Filter = NO_FILTER,
        *,
        limit: int = ALL,
        offset: int = 0,
        enough: int | None = None,
        tenant: Tenant = EVERYTHING,
    ) -> list[Scored]:
        return self._search(self.large, words, wanted, limit, offset, enough, tenant)

    @staticmethod
    def _search(
        kept: Kept,
        words: str,
        wanted: Filter,
        limit: int,
        offset: int,
        enough: int | None,
        tenant: Tenant = EVERYTHING,
    ) -> list[Scored]:
        query = parse_query(words)
        return kept.read(
            lambda reader: reader.lexical.search(
                query, limit=limit, offset=offset, wanted=wanted, enough=enough
            ),
            tenant,
        )


def _texts() -> list[str]:
    chance = random.Random(9)
    texts: list[list[str]] = [[] for _ in range(CHUNKS)]
    for word, count in COUNTS.items():
        for text in chance.sample(texts, count):
            text.extend([word] * chance.randint(1, 3))
    for text in texts:
        text.extend(f"x{chance.randrange(10**6)}" for _ in range(chance.randint(5, 40)))
        chance.shuffle(text)
    return [" ".join(text) for text in texts]


@contextmanager
def large_index(backend: Backend) -> Iterator[Index]:
    limits = Limits()
    small = Kept(backend.open(limits), limits)
    texts = _texts()
    for number in range(CHUNKS // CHUNKS_PER_DOCUMENT):
        name = f"{'low' if number < 10 else 'high'}/{number}"
        tags = ("even",) if number % 2 == 0 else ("odd",)
        title = "Twelve" if number == 12 else "Title"
        document = small.create(name, "", title=title, tags=tags)
        some = texts[number * CHUNKS_PER_DOCUMENT :][:CHUNKS_PER_DOCUMENT]
        small.put_chunks(document, [Chunk(n, n, n + 1, "", text) for n, text in enumerate(some)])
    small.create("away", "fir oak elm", AWAY)
    low = Limits(
        keyword_exact_chunks_max=CHUNKS // 2,
        keyword_ranked_chunks_max=RANKED_MAX,
        keyword_entries_max=RANKED_MAX,
    )
    large = Kept(backend.open(low), low)
    bodies = dict(backend.query("SELECT chunk_key, body FROM chunks"))
    try:
        yield Index(small, large, {key: set(text.split()) for key, text in bodies.items()})
    finally:
        large.store.close()
        small.store.close()
