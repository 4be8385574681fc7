"""The keyword index: what is posted when, and that nobody can tell."""

from __future__ import annotations

import asyncio
import random
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

import psycopg
import pytest

from tests.store.backends import Postgres
from tests.store.kept import EVERYTHING, Kept
from tests.store.postgres.keywords import post_all, stop_posting
from zibaldone.access.principal import Tenant
from zibaldone.errors import ZibaldoneError
from zibaldone.limits import Limits
from zibaldone.model.chunk import ChunkChanges, ChunkTerms, JoinedRuns, NewChunk
from zibaldone.store.port import Writer
from zibaldone.store.postgres import postings, scopes
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.postings import post, tidy
from zibaldone.store.postgres.store import PostgresStore
from zibaldone.text.query import parse_query

AWAY = Tenant("away")
WORDS = [f"word{number}" for number in range(30)]
HANG_SECONDS_MAX = 20.0

MISCOUNTED = """
WITH held AS (
    SELECT lexeme, count(*) AS chunks FROM chunk_terms, unnest(terms) GROUP BY lexeme
), counted AS (
    SELECT term, sum(chunks) AS chunks FROM (
        SELECT term, chunks FROM term_statistics WHERE term <> ''
        UNION ALL
        SELECT lexeme, 1 FROM unposted JOIN chunk_terms USING (chunk_key), unnest(terms)
        UNION ALL
        SELECT lexeme, -1 FROM removed_terms r, unnest(terms)
        WHERE NOT EXISTS (SELECT 1 FROM unposted u WHERE u.chunk_key = r.chunk_key)
    ) changes GROUP BY term
)
SELECT coalesce(lexeme, term), held.chunks, counted.chunks
FROM held FULL JOIN counted ON lexeme = term
WHERE coalesce(held.chunks, 0) <> coalesce(counted.chunks, 0)
"""


@pytest.fixture
def quiet(kept: Kept) -> Kept:
    """A store that posts when it is told to."""
    stop_posting(kept.store)
    return kept


def run(kept: Kept, step: Callable[[Transaction], bool]) -> bool:
    return cast("PostgresStore", kept.store)._writers.run_here(step, scopes.OF_UPKEEP)


def require_sound(kept: Kept, tables: Postgres) -> None:
    assert tables.query(MISCOUNTED) == []
    check = asyncio.run(kept.store.check(thorough=True))
    assert check.problems == ()


def test_whenever_terms_are_posted_searches_find_what_is_there(
    quiet: Kept, tables: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is posted and merged at random, beside one with the same writes."""
    monkeypatch.setattr(postings, "_POSTED_MAX", 3)
    luck = random.Random(11)
    aside = Postgres(tables.folder / "aside")
    aside.folder.mkdir()
    other = Kept(aside.open(Limits()), Limits())
    stop_posting(other.store)
    live: set[tuple[str, str]] = set()
    try:
        for step in range(120):
            tenant = luck.choice((EVERYTHING, EVERYTHING, AWAY))
            path = f"d/{luck.randrange(15)}"
            body = "\n\n".join(
                " ".join(luck.choices(WORDS, k=12)) for _ in range(luck.randrange(1, 4))
            )
            place = (tenant.namespace, path)
            for each in (quiet, other):
                if place not in live:
                    each.create(path, body, tenant, title=body.split()[0])
                elif step % 3 == 0:
                    each.delete(path, tenant)
                else:
                    each.update(path, tenant, body=body)
            live ^= {place} if place not in live or step % 3 == 0 else set()
            if luck.random() < 0.6:
                run(quiet, post)
            if luck.random() < 0.3:
                run(quiet, tidy)
            if step % 10 == 9:
                require_sound(quiet, tables)
                for words in ("word1 word2 word3", f"title:{luck.choice(WORDS)}", "word1* -word2"):
                    for searcher in (EVERYTHING, AWAY):
                        expected = [s for _, s in other.scored(words, searcher)]
                        assert [s for _, s in quiet.scored(words, searcher)] == pytest.approx(
                            expected, rel=0.05 if "*" in words else 1e-9
                        ), (step, words)
                        assert quiet.found(words, searcher) == other.found(words, searcher)
    finally:
        other.store.close()
        aside.close()


def test_a_chunk_is_found_before_and_after_it_is_posted(quiet: Kept, tables: Postgres) -> None:
    quiet.create("a", "zebra lion", title="Animals")
    before = quiet.scored("zebra"), quiet.scored('"zebra lion"'), quiet.scored("ze*")
    assert all(len(hits) == 1 for hits in before)
    assert run(quiet, post) is False
    assert tables.query("SELECT count(*) FROM unposted") == [(0,)]
    assert tables.query("SELECT count(*) FROM postings WHERE term = 'zebra'") == [(1,)]
    assert (quiet.scored("zebra"), quiet.scored('"zebra lion"'), quiet.scored("ze*")) == before


def test_a_chunk_that_came_and_went_before_posting_leaves_nothing(
    quiet: Kept, tables: Postgres
) -> None:
    quiet.create("a", "zebra")
    quiet.delete("a")
    quiet.create("b", "lion")
    assert len(quiet.scored("lion")) == 1
    post_all(quiet.store)
    assert quiet.scored("zebra") == []
    for table in ("unposted", "removed_terms"):
        assert tables.query(f"SELECT count(*) FROM {table}") == [(0,)]
    assert tables.query("SELECT chunks FROM term_statistics WHERE term = ''") == [(1,)]
    require_sound(quiet, tables)


def test_writes_and_searches_go_on_while_terms_are_posted(quiet: Kept, tables: Postgres) -> None:
    """Whatever is changed under a posting that is not committed yet."""
    for name in ("stays", "goes", "changes"):
        quiet.create(name, "zebra")
    is_posted, may_commit = threading.Event(), threading.Event()

    def slowly(transaction: Transaction) -> bool:
        more = post(transaction)
        transaction.execute("SELECT 1")  # sends what is deferred
        is_posted.set()
        assert may_commit.wait(HANG_SECONDS_MAX)
        return more

    thread = threading.Thread(target=run, args=(quiet, slowly))
    thread.start()
    try:
        assert is_posted.wait(HANG_SECONDS_MAX)
        quiet.delete("goes")
        quiet.update("changes", body="lion")
        quiet.create("comes", "zebra")
        assert quiet.found("zebra") == {"stays", "comes"}
        assert quiet.found("lion") == {"changes"}
        assert run(quiet, post) is False, "one posts at a time"
    finally:
        may_commit.set()
        thread.join()
    for _ in range(2):
        assert quiet.found("zebra") == {"stays", "comes"}
        assert quiet.found("lion") == {"changes"}
        require_sound(quiet, tables)
        post_all(quiet.store)


def test_a_writer_finds_a_chunk_once_that_is_posted_while_it_looks(quiet: Kept) -> None:
    """Its statements see what was committed when each began."""
    quiet.create("a", "zebra")
    quiet.create("b", "zebra zebra")

    def search(writer: Writer) -> list[float]:
        lexical = writer.lexical
        transaction = lexical._transaction  # type: ignore[attr-defined]
        execute = transaction.execute

        def and_post(sql: str, values: object = None) -> object:
            rows = execute(sql, values)
            if "term_statistics" in sql:
                run(quiet, post)
            return rows

        transaction.execute = and_post
        return [score for _, score in lexical.search(parse_query("zebra"), limit=9)]

    assert quiet.write(search) == [score for _, score in quiet.scored("zebra")]


def test_many_small_segments_become_few(
    quiet: Kept, tables: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(70):
        quiet.create(f"d/{number}", f"zebra number{number}")
        run(quiet, post)
        while run(quiet, tidy):
            pass
    ((segments,),) = tables.query("SELECT count(*) FROM segments")
    assert segments < 16
    assert len(quiet.scored("zebra")) == 50
    assert quiet.found("number33") == {"d/33"}
    require_sound(quiet, tables)
    # What is large is left alone.
    monkeypatch.setattr(postings, "_SEGMENT_CHUNKS_MAX", 1)
    for number in range(9):
        quiet.create(f"e/{number}", "zebra")
        run(quiet, post)
    assert run(quiet, tidy) is False


def test_entries_of_chunks_that_are_gone_are_taken_out_once_they_are_many(
    quiet: Kept, tables: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "_WASTE_MIN", 5)
    for number in range(12):
        quiet.create(f"d/{number}", f"zebra unique{number}")
    post_all(quiet.store)
    for number in range(8):
        quiet.delete(f"d/{number}")
    post_all(quiet.store)
    (entries,) = tables.query("SELECT octet_length(entries) / 7 FROM postings WHERE term = 'zebra'")
    assert entries == (4,)
    assert tables.query("SELECT count(*) FROM term_statistics WHERE chunks <= 0") == [(0,)]
    assert tables.query("SELECT count(*) FROM posting_waste") == [(0,)]
    assert quiet.found("zebra") == {f"d/{number}" for number in range(8, 12)}
    require_sound(quiet, tables)


def test_terms_are_posted_soon_after_a_write_and_after_a_start(
    kept: Kept, tables: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.create("a", "zebra")
    wait_until(lambda: tables.query("SELECT count(*) FROM unposted") == [(0,)])
    stop_posting(kept.store)
    kept.create("b", "zebra")
    assert tables.query("SELECT count(*) FROM unposted") == [(1,)]
    again = tables.open(Limits())
    try:
        wait_until(lambda: tables.query("SELECT count(*) FROM unposted") == [(0,)])
    finally:
        again.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(int(HANG_SECONDS_MAX * 20)):
        if is_so():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it did not come to that")


def test_a_store_that_is_closed_does_not_wait_for_a_posting(quiet: Kept, tables: Postgres) -> None:
    """It is stopped, and left to whoever posts next."""
    quiet.create("a", "zebra")
    store = cast("PostgresStore", tables.open(Limits()))
    stopped: list[BaseException] = []

    def endless(transaction: Transaction) -> bool:
        post(transaction)
        try:
            transaction.execute("SELECT pg_sleep(3600)")
        except BaseException as problem:
            stopped.append(problem)
            raise
        return False

    folding = store._folding

    def post_until_stopped() -> None:
        with suppress(ZibaldoneError):
            store._writers.run_here(
                lambda transaction: folding._unless_closing(endless, transaction), scopes.OF_UPKEEP
            )

    thread = threading.Thread(target=post_until_stopped)
    thread.start()
    wait_until(lambda: folding._running is not None)
    wait_until(
        lambda: bool(tables.query("SELECT 1 FROM pg_stat_activity WHERE query LIKE '%3600%'")[1:])
    )
    store.close()
    thread.join(HANG_SECONDS_MAX)
    assert stopped
    assert tables.query("SELECT count(*) FROM unposted") == [(1,)]
    assert quiet.found("zebra") == {"a"}


def test_what_stops_a_posting_late_stops_no_write_after_it(quiet: Kept) -> None:
    """The server is told on another connection, and may hear of it when the posting is over."""
    writers = cast("PostgresStore", quiet.store)._writers

    def backend(transaction: Transaction) -> int:
        return int(transaction.value("SELECT pg_backend_pid()"))

    stopped: list[int] = []

    def stopped_at_its_end(transaction: Transaction) -> None:
        stopped.append(backend(transaction))
        transaction.cancel()

    with suppress(ZibaldoneError):
        writers.run_here(stopped_at_its_end, scopes.OF_UPKEEP)
    assert writers.run_here(backend, scopes.OF_UPKEEP) not in stopped


def chunk_with(terms: ChunkTerms) -> ChunkChanges:
    return ChunkChanges(added=[NewChunk(0, 0, 3, "", "text", b"hash", terms)])


@pytest.mark.parametrize("is_posted", [False, True])
def test_a_chunk_with_more_terms_than_have_places(
    quiet: Kept, tables: Postgres, is_posted: bool
) -> None:
    """All of its terms are found. Phrases, only where there are places."""
    document = quiet.create("d", "")
    body = ["zebra"] * 300 + [f"n{number}" for number in range(20_000)]
    terms = ChunkTerms(
        title=JoinedRuns([["head"]]),
        heading=JoinedRuns([]),
        body=JoinedRuns([body, ["it's", "back\\slash"]]),
    )
    quiet.write(lambda writer: writer.chunks.apply(document, chunk_with(terms)))
    if is_posted:
        post_all(quiet.store)
    for term in ("zebra", "n0", "n19999", "it's", "back\\slash"):
        rows = tables.query("SELECT terms @@ ?::tsquery FROM chunk_terms", [_quoted(term)])
        assert rows == [(True,)], term
    assert quiet.found("zebra") == quiet.found("n19999") == {"d"}
    assert quiet.found('"n5 n6"') == {"d"}
    assert quiet.found('"n6 n5"') == set()
    require_sound(quiet, tables)


def _quoted(term: str) -> str:
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


def test_damage_of_the_keyword_index_is_told(quiet: Kept, tables: Postgres) -> None:
    quiet.create("a", "zebra")
    quiet.create("b", "lion")
    post_all(quiet.store)
    tables.execute("DELETE FROM chunk_terms WHERE terms @@ 'zebra'::tsquery")
    tables.execute("DELETE FROM segments")
    problems = asyncio.run(quiet.store.check(thorough=True)).problems
    told = " ".join(problems)
    for what in (
        "missing from the keyword index: a#0",
        "keyword searches do not find",
        "are not listed",
        "miscounted",
    ):
        assert what in told, problems


def test_a_damaged_index_is_made_anew_as_the_documentation_says(
    quiet: Kept, tables: Postgres
) -> None:
    page = Path(__file__).parents[3] / "docs" / "explain" / "postgresql.md"
    (script,) = re.findall(r"```sql\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    for number in range(5):
        quiet.create(f"d/{number}", f"zebra number{number}", AWAY if number == 4 else EVERYTHING)
    post_all(quiet.store)
    quiet.delete("d/0")
    expected = quiet.scored("zebra number2")
    tables.execute("DELETE FROM postings")
    assert quiet.scored("zebra number2") == []
    with psycopg.connect(tables.url, autocommit=True) as connection:
        connection.execute(script.encode())
    assert quiet.found("zebra") == {"d/1", "d/2", "d/3"}
    post_all(quiet.store)
    assert quiet.scored("zebra number2") == expected
    assert quiet.found("zebra", AWAY) == {"d/4"}
    require_sound(quiet, tables)
