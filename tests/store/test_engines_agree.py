"""Every engine finds the same chunks by words, with the same scores."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.backends import Backend, Postgres, Sqlite
from tests.store.kept import EVERYTHING, Kept
from tests.store.postgres.keywords import post_all, stop_posting
from zibaldone.access.principal import Tenant
from zibaldone.limits import Limits
from zibaldone.model.query import NO_FILTER, Filter
from zibaldone.store.port import Reader
from zibaldone.text.query import parse_query

AWAY = Tenant("away")
WORDS = [
    "zebra",
    "zebras",
    "lion",
    "lions",
    "red",
    "fox",
    "running",
    "runs",
    "ran",
    "configuration",
    "configure",
    "réglage",
    "Größe",
    "việt",
    "nam",
    "json_extract",
    "getUserName",
    "C++",
    "c#",
    "don't",
    "東京",
    "東京都",
    "大阪",
    "state-of-the-art",
    "3.14",
    "the",
    "of",
    "and",
]
QUERIES = (
    "zebra",
    "zebra lion fox",
    "zebras running",
    "réglage",
    "reglage lion",
    "größe fox",
    "việt nam",
    "json_extract",
    "getUserName",
    "user name",
    "c++",
    "c# lion",
    "don't",
    "東京",
    "京",
    "東京都 fox",
    "state-of-the-art",
    "3.14 zebra",
    "the of",
    "config*",
    "ze* li*",
    "configurat* fox",
    '"red fox"',
    '"red fox" "lion zebra"',
    '"red fox" running zebra',
    '"c++ lion"',
    '"réglage fox" lion',
    '"東京 大阪"',
    '"東京"',
    '"the of and"',
    'zebra "red fox"',
    'lion "red fox" "the of"',
    'about "zebra" fox',
    'lion "c++ fox"',
    'lion "réglage fox" zebra',
    'ze* "lion zebra" -fox',
    'lion "東京 大阪"',
    "title:zebra",
    "title:zebra lion",
    "title:zebra title:lion fox ru*",
    'title:fox "red fox"',
    "fox -zebra",
    'fox lion -"red fox"',
    "lion -the",
    "ze* -lion",
    "nothing",
    "zebra nothing",
    "Wie viele Häuser gibt es in den alten Städten?",
    'title:"stadt" wie viele Häuser gibt es und wo',
    "Có bao nhiêu ngôi nhà trong thành phố này?",
    "-zebra",
)
ELSEWHERE = (
    ("Die Städte", "In der Stadt ist ein Haus, und das ist sehr alt. Es gibt auch einen Zoo."),
    ("Zoo", "# Häuser\n\nDie Häuser und die Gärten der alten Städte sind nicht mehr da."),
    ("", "Ngôi nhà này là của thành phố, và nó không có vườn."),
    ("", "Les chevaux sont dans les maisons de la ville avec le zèbre."),
)
FILTERS = (NO_FILTER, Filter(prefix="d/1"), Filter(tags_any=("odd",)))


def fill(kept: Kept, *, has_others: bool) -> None:
    """`has_others`: some documents are in another namespace."""
    luck = random.Random(5)

    def tenant_of(number: int) -> Tenant:
        return AWAY if has_others and number % 7 == 0 else EVERYTHING

    for number in range(60):
        title = " ".join(luck.choices(WORDS, k=luck.randrange(1, 4)))
        sections = (
            f"# {' '.join(luck.choices(WORDS, k=2))}\n\n"
            + " ".join(luck.choices(WORDS, k=luck.randrange(5, 150)))
            for _ in range(luck.randrange(1, 4))
        )
        tags = ("odd",) if number % 2 else ("even",)
        kept.create(f"d/{number}", "\n\n".join(sections), tenant_of(number), title=title, tags=tags)
    for number, (title, body) in enumerate(ELSEWHERE, 60):
        kept.create(f"d/{number}", body, tenant_of(number), title=title)
    for number in range(1, 60, 9):
        kept.update(f"d/{number}", tenant_of(number), body="zebra red fox")
    for number in range(5, 60, 11):
        kept.delete(f"d/{number}", tenant_of(number))


def found(kept: Kept, words: str, wanted: Filter, tenant: Tenant) -> dict[str, float]:
    """Scores by chunk."""
    query = parse_query(words)
    scored = kept.read(lambda r: r.lexical.search(query, limit=1_000, wanted=wanted), tenant)
    views = kept.read(lambda r: r.chunks.views(key for key, _ in scored), tenant)
    return {views[key].chunk_id: score for key, score in scored}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Kept]]:
    """In `posted` all postings are made, in `new` there are none. Some have a second namespace."""

    def folder(name: str) -> Path:
        return tmp_path_factory.mktemp(name.replace(" ", "-"))

    backends: dict[str, Backend] = {
        "sqlite": Sqlite(folder("sqlite")),
        "new": Postgres(folder("new")),
        "posted": Postgres(folder("posted")),
        "sqlite of two": Sqlite(folder("two")),
        "new of two": Postgres(folder("new-two")),
        "posted of two": Postgres(folder("posted-two")),
    }
    opened = {name: Kept(backend.open(Limits()), Limits()) for name, backend in backends.items()}
    for name, kept in opened.items():
        if "new" in name:
            stop_posting(kept.store)
        fill(kept, has_others="two" in name)
        if "posted" in name:
            post_all(kept.store)
    yield opened
    for name, backend in backends.items():
        opened[name].store.close()
        backend.close()


@pytest.mark.parametrize("words", QUERIES)
@pytest.mark.parametrize("name", ["new", "posted"])
def test_the_same_chunks_with_the_same_scores(
    stores: dict[str, Kept], name: str, words: str
) -> None:
    for wanted in FILTERS:
        expected = found(stores["sqlite"], words, wanted, EVERYTHING)
        assert found(stores[name], words, wanted, EVERYTHING) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("words", [q for q in QUERIES if '"' not in q and "*" not in q])
@pytest.mark.parametrize("name", ["new of two", "posted of two"])
def test_words_are_counted_over_all_namespaces(
    stores: dict[str, Kept], name: str, words: str
) -> None:
    for tenant in (EVERYTHING, AWAY):
        expected = found(stores["sqlite of two"], words, NO_FILTER, tenant)
        scores = found(stores[name], words, NO_FILTER, tenant)
        assert scores == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("words", QUERIES)
@pytest.mark.parametrize("name", ["new", "posted"])
def test_the_same_chunks_match(stores: dict[str, Kept], name: str, words: str) -> None:
    query = parse_query(words)

    def matching(kept: Kept) -> set[str]:
        def look(reader: Reader) -> set[str]:
            places = [(f"d/{number}", index) for number in range(60) for index in range(12)]
            views = reader.chunks.views_at(places)
            ids = {view.chunk_key: view.chunk_id for view in views.values()}
            return {ids[key] for key in reader.lexical.matching(query, ids)}

        return kept.read(look)

    assert matching(stores[name]) == matching(stores["sqlite"])


@pytest.mark.parametrize("name", ["new", "posted", "new of two", "posted of two"])
def test_terms_are_equally_common(stores: dict[str, Kept], name: str) -> None:
    terms = {"zebra", "lion", "fox", "configur", "c++", "nothing", "it's", '"', "\\"}
    sqlite = stores[name.replace("new", "sqlite").replace("posted", "sqlite")]
    expected = sqlite.read(lambda reader: reader.lexical.frequencies(terms))
    assert stores[name].read(lambda reader: reader.lexical.frequencies(terms)) == expected
    assert expected.chunks_with["zebra"] > expected.chunks_with["nothing"] == 0


def test_the_corpus_has_something_to_find(stores: dict[str, Kept]) -> None:
    empty = {q for q in QUERIES if not found(stores["sqlite"], q, NO_FILTER, EVERYTHING)}
    assert empty == {"nothing", "-zebra"}
