"""Migrations: a database that grew is the same as a new one, and nothing else is touched."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
import threading
import time
import unicodedata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from tests.drivers.server import clean_environment
from tests.store.kept import Kept
from tests.store.sqlite import schema_snapshot
from tests.store.sqlite.schema_snapshot import schema_of
from zibaldone.access.principal import Tenant
from zibaldone.errors import ConfigurationError, StorageUnavailable
from zibaldone.index.renewal import renew_terms
from zibaldone.limits import Limits
from zibaldone.model.query import Filter
from zibaldone.store import migrate
from zibaldone.store.open import DATABASE_NAME, open_store, store_url
from zibaldone.store.sqlite import schema
from zibaldone.store.sqlite.match import TOKENIZER, column_text
from zibaldone.store.sqlite.schema import APPLICATION_ID, prepare
from zibaldone.text.query import parse_query
from zibaldone.text.terms import index_terms

PACKAGE = "zibaldone.store.sqlite"
MIGRATIONS = migrate.load(PACKAGE)

SAMPLE_ROWS: dict[str, tuple[str, ...]] = {
    "sources": ("(2, 'home', 'shop', 'mysql', 1, '{}', 5, NULL)",),
    "documents": (
        """(7, 'home', 'a/b', 1, 'a', 'Title', '["x"]', 'text/markdown', '{"k": 1}', NULL, 2,
            x'0badcafe', 4, 1, 2, NULL, 'me', 'update', 'pending', NULL)""",
        """(8, 'home', 'gone', 2, NULL, '', '[]', 'text/plain', '{}', '{"id": 1}', 3,
            x'00', 0, 1, 3, 3, 'me', 'delete', 'skipped', 'why')""",
    ),
    "bodies": ("(7, 'text')", "(8, '')"),
    "revisions": ("(7, 1, 'Old', '[]', 'text/markdown', '{}', 3, 1, 'me', 'create', x'00')",),
    "audit": ("(1, 2, 'home', 'me', 'update', 'a/b', 2, 'ok', 'r1')",),
    "chunks": ("(11, 7, 0, 0, 4, '', 'text', x'01')",),
    "chunk_terms": ("('title', '', 'text')",),
    "models": ("(1, 'minilm', 2, 4)",),
    "vectors": ("(1, 11, x'0102')",),
    "outbox": ("(3, 7, 2, 'index', 2, 0, 0, 0, 0, NULL)",),
    "jobs": (
        """(4, 'j1', 'vectors', 0, 'home', '', '7', 2, 0, NULL, NULL, 0, 0, 0, NULL, NULL, NULL,
            NULL, NULL, NULL, NULL, NULL, NULL)""",
        """(5, 'j2', 'sync', 1, 'home', 'a/', NULL, 2, 3, 'u', '{}', 1, 1, 1, 9, 'token', 4,
            NULL, 1.5, 2.0, 'half', NULL, 'why')""",
    ),
    "schedules": ("('nightly', '0 3 * * *', 'sync', 'home', '{}', 5, NULL)",),
    "facets": ("(7, 1, 2.5, 1)",),
    "document_tags": ("('x', 7)",),
    "index_workers": ("(5, 1, 9)",),
    "vector_changes": ("(1, 1, 11)",),
    "vector_mirrors": ("('http://h:6333/z', 3, 1, 0, NULL)",),
    "vector_mirror_changes": ("('http://h:6333/z', 7, 4)",),
    "pulled_runs": ("(2, 'home', 4, 1)",),
    "pulled_blocks": ("(2, 0, 'home', 1, x'03', '1', 1)",),
    "pulled_rows": ("(2, 'shop/1', 'home', 0, 4, x'04')",),
    "document_links": ("(7, 0, 'a/c', 'home', 0)",),
    "memory_episodes": ("(7, 'home', 'g', 'e1', 5)",),
    "memory_entities": ("(7, 'ada', 'home', 'g', 'Ada', 'Name', 5)",),
    "memory_facts": ("(7, 0, 'home', 'g', 'ada', 'at', 'acme', '', 'Ada at Acme', 5)",),
    "consult_sessions": (
        """(1, 'home', 'k1', 'reviewer', 's', 2, 90, 100, 50, 0, 9, 40, 0.5, '{}', NULL, 1, 2, NULL,
            0)""",
    ),
    "consult_messages": ("(1, 0, x'05')",),
    "stable_inline_lists": ("(1, x'06', 1, 1)",),
    "sent_files": ("(1, '0/a.py', 4, 5, NULL)",),
    "consult_spending": ("('home', 'k1', 20000, 109, 0.5)",),
    "term_scheme": ("(1, 5, 9)",),
    "unsettled_terms": ("(11)",),
    "usage": ("('home', 1, 3, 34)",),
    "api_keys": ("('k1', x'02', 'label', 'home', '', '[\"read\"]', NULL, 1, NULL, NULL)",),
}
"""What a database in use holds, table by table, without the columns that were added later."""

ADDED_LATER = {
    ("sources", "chunking_version"),
    ("documents", "chunking_version"),
    ("jobs", "key_id"),
}
"""Columns that migrations added to tables that were there, with a default."""

BECAME_JOBS = {"outbox", "jobs"}
"""The rows of the first became rows of the second."""


def columns(connection: apsw.Connection, table: str) -> str:
    if table == "chunk_terms":
        return "rowid, title, heading, body"
    names = connection.execute(f"SELECT name FROM pragma_table_info('{table}')")
    return ", ".join(name for (name,) in names if (table, name) not in ADDED_LATER)


def tables(connection: apsw.Connection) -> list[str]:
    return [
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid"
        )
        if name in SAMPLE_ROWS
    ]


def rows(connection: apsw.Connection, table: str) -> list[Any]:
    if table == "chunk_terms":
        found = connection.execute("SELECT rowid FROM chunk_terms WHERE chunk_terms MATCH 'text'")
        return list(found)
    return list(connection.execute(f"SELECT {columns(connection, table)} FROM {table} ORDER BY 1"))


def database_at(path: Path, count: int) -> dict[str, list[Any]]:
    """A file as a version with only the first migrations left it, in use; its rows come back."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON").fetchall()
    schema.add_functions(connection)
    for migration in MIGRATIONS[:count]:
        connection.execute(migration.sql).fetchall()
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {count}")
    for table in tables(connection):
        named = columns(connection, table)
        for row in SAMPLE_ROWS[table]:
            values = row.replace("(", "(11, ", 1) if table == "chunk_terms" else row
            connection.execute(f"INSERT INTO {table} ({named}) VALUES {values}")
    kept = {table: rows(connection, table) for table in tables(connection)}
    connection.close()
    return kept


def test_there_are_sample_rows_for_every_table(tmp_path: Path) -> None:
    prepare(tmp_path / "new.db", 5)
    declared = {
        name for name, sql in schema_of(tmp_path / "new.db") if "TABLE" in sql.split("(")[0]
    }
    assert declared == set(SAMPLE_ROWS) - {"outbox"}


@pytest.mark.parametrize("count", range(1, len(MIGRATIONS) + 1))
def test_a_database_that_grew_is_the_same_as_a_new_one(tmp_path: Path, count: int) -> None:
    prepare(tmp_path / "new.db", 5)
    before = database_at(tmp_path / "grown.db", count)
    prepare(tmp_path / "grown.db", 5)
    assert schema_of(tmp_path / "grown.db") == schema_of(tmp_path / "new.db")
    connection = apsw.Connection(str(tmp_path / "grown.db"))
    assert all(before.values())
    stay = {table: held for table, held in before.items() if table not in BECAME_JOBS}
    assert {table: rows(connection, table) for table in stay} == stay
    if "jobs" in before:
        assert set(before["jobs"]) <= set(rows(connection, "jobs"))
    assert connection.execute("PRAGMA user_version").get == len(MIGRATIONS)
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    assert list(connection.execute("PRAGMA foreign_key_check")) == []
    connection.close()


def test_documents_from_before_the_filters_are_found_and_filtered(tmp_path: Path) -> None:
    database_at(tmp_path / DATABASE_NAME, 3)
    connection = apsw.Connection(str(tmp_path / DATABASE_NAME))
    connection.execute(
        """UPDATE documents SET tags = '["X", " Ägypten "]', metadata = '{"Score": 7}'
           WHERE document_key = 7"""
    )
    connection.close()
    store = open_store(store_url(tmp_path), Limits())
    try:
        kept = Kept(store, Limits())
        assert kept.found("text", Tenant("home")) == {"a/b"}

        def keys(wanted: Filter) -> list[int]:
            found = kept.read(
                lambda reader: reader.lexical.search(parse_query("text"), limit=9, wanted=wanted),
                Tenant("home"),
            )
            return [key for key, _ in found]

        for fits in (
            Filter(tags_all=("x",)),
            Filter(min_score=7),
            Filter(created_after_us=1, created_before_us=2),
        ):
            assert keys(fits) == [11], fits
        for other in (Filter(tags_all=("y",)), Filter(min_score=8), Filter(created_after_us=2)):
            assert keys(other) == [], other
    finally:
        store.close()


def test_a_database_from_before_languages_finds_german_plurals_after_it_was_served(
    tmp_path: Path,
) -> None:
    before = [migration.name for migration in MIGRATIONS].index("term_scheme")
    database_at(tmp_path / DATABASE_NAME, before)
    text = "Die Häuser sind sehr alt, und sie stehen nicht mehr am See."
    connection = apsw.Connection(str(tmp_path / DATABASE_NAME))
    connection.execute("UPDATE chunks SET body = ? WHERE chunk_key = 11", (text,))
    connection.execute("DELETE FROM chunk_terms WHERE rowid = 11")
    terms = column_text(index_terms(text))  # no language: so they were made
    connection.execute("INSERT INTO chunk_terms (rowid, body) VALUES (11, ?)", (terms,))
    connection.close()
    store = open_store(store_url(tmp_path), Limits())
    try:
        kept = Kept(store, Limits())
        assert kept.found("Wo sind die Häuser?", Tenant("home")) == {"a/b"}
        assert kept.found("Welches Haus?", Tenant("home")) == set()
        asyncio.run(renew_terms(store))
        assert kept.found("Welches Haus ist das?", Tenant("home")) == {"a/b"}
        assert kept.found("Wo sind die Häuser?", Tenant("home")) == {"a/b"}
    finally:
        store.close()


def test_what_was_there_before_usage_was_counted_is_counted(tmp_path: Path) -> None:
    before = [migration.name for migration in MIGRATIONS].index("usage")
    database_at(tmp_path / "x.db", before)
    prepare(tmp_path / "x.db", 5)
    connection = apsw.Connection(str(tmp_path / "x.db"))
    assert list(connection.execute("SELECT * FROM usage")) == [("home", 1, 3, 34)]
    connection.close()


def test_tags_from_before_are_compared_as_those_from_now(tmp_path: Path) -> None:
    before = [migration.name for migration in MIGRATIONS].index("tags")
    database_at(tmp_path / "x.db", before)
    connection = apsw.Connection(str(tmp_path / "x.db"))
    decomposed = unicodedata.normalize("NFD", "caf\u00e9")
    for tag in (decomposed, "caf\u00e9", "two  words", "\u00c4gypten", "", "plain"):
        connection.execute("INSERT INTO document_tags VALUES (?, 7)", (tag,))
    connection.execute("INSERT INTO document_tags VALUES (?, 8)", (decomposed,))
    prepare(tmp_path / "x.db", 5)
    found = set(connection.execute("SELECT document_key, tag FROM document_tags"))
    connection.close()
    names = ("x", "caf\u00e9", "two words", "\u00e4gypten", "plain")
    assert found == {*((7, name) for name in names), (8, "caf\u00e9")}


def test_texts_from_before_our_own_stems_are_found_by_the_same_words(tmp_path: Path) -> None:
    before = [migration.name for migration in MIGRATIONS].index("terms")
    database_at(tmp_path / DATABASE_NAME, before)
    texts = {
        12: "running shoes of modern technologies",
        13: "possibly the configuration of c++",
        14: "việt nam 東京都庁舎 json_extract",
    }
    connection = apsw.Connection(str(tmp_path / DATABASE_NAME))
    for key, text in texts.items():
        connection.execute(
            "INSERT INTO chunks VALUES (?, 7, ?, 0, 1, 'Headings', ?, x'01')", (key, key, text)
        )
        # As that version did: the words as they are, stemmed by the index itself.
        connection.execute(
            "INSERT INTO chunk_terms (rowid, title, heading, body) VALUES (?, ?, 'headings', ?)",
            (key, "title", text),
        )
    connection.close()
    store = open_store(store_url(tmp_path), Limits())
    try:
        kept = Kept(store, Limits())
        assert asyncio.run(store.check(thorough=True)).problems == (
            "The body of 'a/b' is not the one that was written.",
            "The body of 'gone' is not the one that was written.",
        )

        def found(words: str) -> set[int]:
            return {key for key, _ in kept.scored(words, Tenant("home"))}

        for words, keys in {
            '"run shoe"': {12},
            "technology": {12},
            "possible": {13},
            "configurat*": {13},
            "c++": {13},
            '"việt nam"': {14},
            '"東京都庁"': {14},
            "json_extract": {14},
            "heading": {12, 13, 14},
            "title:titles": {11, 12, 13, 14},
            "text": {11},
        }.items():
            assert found(words) == keys, words
    finally:
        store.close()


def test_the_schema_to_read_is_the_schema_there_is() -> None:
    assert schema_snapshot.FILE.read_text(encoding="utf-8") == schema_snapshot.snapshot(), (
        "run: python -m tests.store.sqlite.schema_snapshot"
    )


def test_the_index_splits_terms_as_they_are_made() -> None:
    assert f'tokenize = "{TOKENIZER}"' in schema_snapshot.FILE.read_text(encoding="utf-8")


def test_a_prepared_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    prepare(path, 5)
    before = path.read_bytes()
    prepare(path, 5)
    assert path.read_bytes() == before


def test_a_failing_migration_leaves_the_database_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.db"
    database_at(path, 2)
    before = schema_of(path)
    broken = (
        *MIGRATIONS,
        migrate.Migration(len(MIGRATIONS) + 1, "x", "CREATE TABLE x (a); BROKEN"),
    )
    monkeypatch.setattr(migrate, "load", lambda package: broken)
    with pytest.raises(Exception, match="BROKEN"):
        prepare(path, 5)
    assert schema_of(path) == before
    assert apsw.Connection(str(path)).execute("PRAGMA user_version").get == 2


def package_with(folder: Path, name: str, *files: str) -> str:
    (folder / name / "migrations").mkdir(parents=True)
    (folder / name / "__init__.py").touch()
    for file in files:
        (folder / name / "migrations" / file).write_text("SELECT 1;")
    return name


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (("0001_a.sql", "0003_c.sql"), "a gap or a repeat"),
        (("0001_a.sql", "0001_b.sql"), "a gap or a repeat"),
        (("0002_a.sql",), "a gap or a repeat"),
        (("1_a.sql",), "not named NNNN_words.sql"),
        (("0001_A.sql",), "not named NNNN_words.sql"),
        (("0001_a.sql", "0002_b.sql~"), "not named NNNN_words.sql"),
    ],
)
def test_odd_files_among_the_migrations_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: tuple[str, ...], message: str
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    package = package_with(tmp_path, f"odd_{abs(hash(files))}", *files)
    with pytest.raises(ValueError, match=message):
        migrate.load(package)


def test_migrations_are_sorted_by_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    package = package_with(tmp_path, "sorted_ones", "0002_b.sql", "0001_c.sql", "0003_a.sql")
    assert [(m.number, m.name) for m in migrate.load(package)] == [(1, "c"), (2, "b"), (3, "a")]


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / DATABASE_NAME
    prepare(path, 5)
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(ConfigurationError, match="Upgrade Zibaldone"):
        open_store(store_url(tmp_path), Limits())


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_of_another_program_is_refused_and_untouched(tmp_path: Path, mode: str) -> None:
    path = tmp_path / DATABASE_NAME
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA journal_mode = {mode}; CREATE TABLE theirs (a)").fetchall()
    connection.execute("INSERT INTO theirs VALUES ('precious')")
    if mode == "delete":
        connection.close()
    # else: still open, its last writes only in the WAL, as when that program is running
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(ConfigurationError, match="of another program; it was left untouched"):
        open_store(store_url(tmp_path), Limits())
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    connection.close()


def test_an_empty_file_is_taken_for_a_new_one(tmp_path: Path) -> None:
    (tmp_path / DATABASE_NAME).touch()
    open_store(store_url(tmp_path), Limits()).close()
    assert schema_of(tmp_path / DATABASE_NAME)


MAKER = """
import sys
from pathlib import Path
from zibaldone.store.sqlite.schema import prepare
{stop}
prepare(Path(sys.argv[1]), 5)
"""

STOPS = {
    "in the first transaction": """
import apsw, os
from zibaldone.store import migrate
last = migrate.load("zibaldone.store.sqlite")
broken = (*last, migrate.Migration(len(last) + 1, "x",
          "PRAGMA cache_size = 1; CREATE TABLE filler (a); "
          "INSERT INTO filler SELECT randomblob(9000) FROM json_each('[1,2,3,4,5,6,7,8,9]');"
          "SELECT die()"))
migrate.load = lambda package: broken
apsw.connection_hooks.append(
    lambda raw: raw.create_scalar_function("die", lambda: os.kill(os.getpid(), 9)))
""",
    "before entering WAL mode": """
import os
from zibaldone.store.sqlite import schema
schema._enter_wal = lambda *arguments: os.kill(os.getpid(), 9)
""",
    "before the WAL is moved": """
import os
from zibaldone.store.sqlite.connection import Connection
Connection.close = lambda self: os.kill(os.getpid(), 9)
""",
}


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS.keys())
def test_a_database_whose_making_was_cut_short_is_made_whole(tmp_path: Path, stop: str) -> None:
    path = tmp_path / DATABASE_NAME
    done = subprocess.run(
        [sys.executable, "-c", MAKER.format(stop=stop), str(path)],
        capture_output=True,
        env=clean_environment(),
        check=False,
    )
    assert done.returncode == -9, done.stderr
    store = open_store(store_url(tmp_path), Limits())
    kept = Kept(store, Limits())
    kept.create("a", "zebra")
    assert kept.found("zebra") == {"a"}
    assert asyncio.run(store.check(thorough=True)).ok
    store.close()


def test_the_way_into_wal_mode_waits_for_another_process_that_is_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite itself gives up at once here, however long it was told to wait."""
    path = tmp_path / DATABASE_NAME
    prepare(path, 5)
    other = apsw.Connection(str(path))
    other.execute("PRAGMA journal_mode = DELETE; BEGIN IMMEDIATE").fetchall()
    waits: list[float] = []

    def finish_the_other(seconds: float) -> None:
        waits.append(seconds)
        if other.in_transaction:
            other.execute("ROLLBACK")

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=finish_the_other)
    monkeypatch.setattr(schema, "time", clock)
    prepare(path, 5)
    assert waits
    assert other.execute("SELECT count(*) FROM documents").get == 0
    assert other.execute("PRAGMA journal_mode").get == "wal"
    other.execute("PRAGMA journal_mode = DELETE; BEGIN IMMEDIATE").fetchall()
    monkeypatch.setattr(clock, "sleep", lambda seconds: None)
    with pytest.raises(StorageUnavailable):
        prepare(path, 0.05)
    other.close()


def test_processes_that_start_at_once_on_a_new_file_all_get_it(tmp_path: Path) -> None:
    """They are held at the line until all are there, then go."""
    code = (
        "import sys; from pathlib import Path; from zibaldone.limits import Limits\n"
        "from zibaldone.store.open import open_store, store_url\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "store = open_store(store_url(Path(sys.argv[1])), Limits())\n"
        "print(store._quick.raw.execute('PRAGMA user_version').get,"
        " store._quick.raw.execute('PRAGMA journal_mode').get)\n"
        "store.close()\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, "."],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd=tmp_path, env=clean_environment(),
        )
        for _ in range(4)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for attempt in processes:
        assert attempt.stdin is not None
        attempt.stdin.write("go\n")
        attempt.stdin.flush()
    outcomes = [process.communicate(timeout=60) for process in processes]
    assert outcomes == [(f"{len(MIGRATIONS)} wal\n", "")] * len(processes)
    digest = hashlib.sha256((tmp_path / DATABASE_NAME).read_bytes()).hexdigest()
    open_store(store_url(tmp_path), Limits()).close()
    assert hashlib.sha256((tmp_path / DATABASE_NAME).read_bytes()).hexdigest() == digest


def test_threads_that_start_at_once_on_new_files_again_and_again(tmp_path: Path) -> None:
    problems: list[BaseException] = []

    def start(folder: Path, line: threading.Barrier) -> None:
        line.wait()
        try:
            prepare(folder / DATABASE_NAME, 20)
        except BaseException as problem:  # shown by the assertion below
            problems.append(problem)

    for number in range(15):
        line = threading.Barrier(3)
        threads = [
            threading.Thread(target=start, args=(tmp_path / f"deep/{number}", line))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert problems == []


def test_a_source_whose_documents_were_being_cut_still_has_them_to_cut(tmp_path: Path) -> None:
    number = next(m.number for m in MIGRATIONS if m.name == "chunking_version")
    database_at(tmp_path / DATABASE_NAME, number - 1)
    connection = apsw.Connection(str(tmp_path / DATABASE_NAME))
    connection.execute(
        """UPDATE sources SET definition = '{"chunking_unfinished": true, "table": "t"}'
           WHERE source_id = 1"""
    )
    connection.close()
    store = open_store(store_url(tmp_path), Limits())
    try:
        sources = Kept(store, Limits()).upkeep(lambda work: work.sources.all())
        assert [(source.source_id, source.is_cut) for source in sources] == [(1, False), (2, True)]
    finally:
        store.close()


def test_what_waited_for_vectors_waits_as_jobs(tmp_path: Path) -> None:
    number = next(m.number for m in MIGRATIONS if m.name == "vector_jobs")
    database_at(tmp_path / DATABASE_NAME, number - 1)
    connection = apsw.Connection(str(tmp_path / DATABASE_NAME))
    connection.execute(
        """DELETE FROM jobs; DELETE FROM outbox; INSERT INTO outbox VALUES
           (1, 7, 1, 'index', 1000, 0, 0, 0, 0, NULL),
           (2, 7, 2, 'index', 2000, 3, 5000, 0, 0, 'slow'),
           (3, 8, 3, 'remove', 3000, 1, 0, 9000, 0, NULL),
           (4, 7, 2, 'index', 4000, 5, 0, 0, 1, 'bad'),
           (5, 99, 2, 'index', 5000, 0, 0, 0, 0, NULL)"""
    ).fetchall()
    connection.close()
    store = open_store(store_url(tmp_path), Limits())
    try:
        kept = Kept(store, Limits())
        newest_first = kept.jobs(Tenant("home"))
        assert [
            (job.subject, job.state, job.payload["revision"], job.created_at_us,
             job.not_before_us, job.attempts, job.error)
            for job in reversed(newest_first)
        ] == [
            ("a/b", "queued", 1, 1000, 0, 0, None),
            ("a/b", "queued", 2, 2000, 5000, 3, "slow"),
            ("gone", "queued", 3, 3000, 0, 0, None),
            ("a/b", "parked", 2, 4000, 0, 5, "bad"),
        ]  # fmt: skip
    finally:
        store.close()
