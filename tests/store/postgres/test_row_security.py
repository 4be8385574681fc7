"""The second wall: a statement that forgets its filter does not reach another namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest

from tests.store.backends import Postgres
from tests.store.kept import Kept
from zibaldone.access.principal import Tenant
from zibaldone.model.consult import Message, SentFile, Session, SessionKey
from zibaldone.model.job import NewJob, Schedule
from zibaldone.store.port import Writer
from zibaldone.store.postgres import documents
from zibaldone.store.upkeep import Upkeep

HOME = Tenant("home")
AWAY = Tenant("away")

OF_ONE_NAMESPACE = (
    "documents", "bodies", "revisions", "facets", "document_tags", "audit", "usage_changes",
    "chunks", "jobs", "chunk_terms", "unposted", "removed_terms",
)  # fmt: skip
"""What a write leaves rows in."""

OPEN = {"api_keys": "the operator's", "schedules": "upkeep only, tested apart", "sources": "apart"}
"""Tables with a namespace that are not bound to it."""


@pytest.fixture
def filled(kept: Kept) -> Kept:
    for tenant in (HOME, AWAY):
        kept.create("a", "text", tenant, tags=("x",))
        kept.update("a", tenant, body="other text")
    return kept


@pytest.fixture
def plain(tables: Postgres, filled: Kept) -> Iterator[psycopg.Connection]:
    """What the engine connects as: the owner of the tables, but no superuser."""
    with psycopg.connect(tables.url, autocommit=True) as connection:
        yield connection


def namespaces(connection: psycopg.Connection, table: str) -> set[str]:
    rows = connection.execute(f"SELECT namespace FROM zibaldone.{table}".encode())
    return {row[0] for row in rows}


@pytest.mark.parametrize("table", OF_ONE_NAMESPACE)
def test_a_statement_without_a_filter_sees_its_own_namespace(
    plain: psycopg.Connection, table: str
) -> None:
    plain.execute("SET zibaldone.namespace = 'home'")
    assert namespaces(plain, table) == {"home"}
    plain.execute("SET zibaldone.namespace = 'away'")
    assert namespaces(plain, table) == {"away"}


@pytest.mark.parametrize("table", OF_ONE_NAMESPACE)
def test_where_nobody_said_which_nothing_is_seen(plain: psycopg.Connection, table: str) -> None:
    assert namespaces(plain, table) == set()


@pytest.mark.parametrize("table", OF_ONE_NAMESPACE)
def test_upkeep_sees_everything(plain: psycopg.Connection, table: str) -> None:
    plain.execute("SET zibaldone.upkeep = 'on'")
    assert namespaces(plain, table) == {"home", "away"}


@pytest.mark.parametrize("table", ["consult_messages", "stable_inline_lists", "sent_files"])
def test_what_belongs_to_a_session_is_seen_where_the_session_is(
    tables: Postgres, plain: psycopg.Connection, filled: Kept, table: str
) -> None:
    key = SessionKey("k1", "reviewer", "s")

    def work(writer: Writer) -> None:
        writer.sessions.put(Session(key, turns=1))
        writer.sessions.put_messages(key, [Message("user", "secret")], 0)
        writer.sessions.put_stable(key, ["p/a.py"], 1)
        writer.sessions.put_sent(key, {"p/a.py": SentFile(1, 1)})

    filled.write(work, HOME)

    def count() -> int:
        row = plain.execute(f"SELECT count(*) FROM zibaldone.{table}".encode()).fetchone()
        return 0 if row is None else int(row[0])

    assert count() == 0
    plain.execute("SET zibaldone.namespace = 'away'")
    assert count() == 0
    assert plain.execute(f"DELETE FROM zibaldone.{table}".encode()).rowcount == 0
    plain.execute("SET zibaldone.namespace = 'home'")
    assert count() == 1
    guarded = tables.query(
        "SELECT relrowsecurity AND relforcerowsecurity FROM pg_class "
        f"WHERE oid = 'zibaldone.{table}'::regclass"
    )
    assert list(guarded) == [(True,)]


def test_every_table_with_a_namespace_is_behind_the_wall(tables: Postgres) -> None:
    found = tables.query(
        "SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity FROM pg_class c "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'namespace' "
        "WHERE c.relnamespace = 'zibaldone'::regnamespace AND c.relkind = 'r'"
    )
    assert {name for name, is_guarded in found if not is_guarded} == {"api_keys"}
    assert {name for name, _ in found} >= {*OF_ONE_NAMESPACE, *OPEN}


def test_nothing_is_changed_or_written_in_another_namespace(plain: psycopg.Connection) -> None:
    plain.execute("SET zibaldone.namespace = 'home'")
    changed = plain.execute("UPDATE zibaldone.documents SET title = 'stolen'")
    assert changed.rowcount == 1
    assert plain.execute("DELETE FROM zibaldone.audit WHERE namespace = 'away'").rowcount == 0
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        plain.execute("UPDATE zibaldone.documents SET namespace = 'away'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        plain.execute(
            "INSERT INTO zibaldone.usage_changes (namespace, documents, revisions, bytes) "
            "VALUES ('away', 1, 1, 1)"
        )


def test_a_source_is_seen_by_all_and_changed_by_upkeep_only(plain: psycopg.Connection) -> None:
    plain.execute("SET zibaldone.namespace = 'home'")
    assert namespaces(plain, "sources") == {"*"}
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        plain.execute("UPDATE zibaldone.sources SET enabled = 0")
    plain.execute("SET zibaldone.upkeep = 'on'")
    assert plain.execute("UPDATE zibaldone.sources SET enabled = 1").rowcount == 1


def test_schedules_are_upkeeps(kept: Kept, tables: Postgres) -> None:
    schedule = Schedule("nightly", "0 3 * * *", "sync", "home", {}, 5)

    def put(work: Upkeep) -> None:
        work.schedules.put(schedule)

    kept.upkeep(put)
    with psycopg.connect(tables.url, autocommit=True) as plain:
        plain.execute("SET zibaldone.namespace = 'home'")
        assert namespaces(plain, "schedules") == set()


def test_the_engine_itself_reaches_nothing_without_its_filters(
    filled: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statements as they are, but for the namespace in them."""
    broken = {
        name: re.sub(r"(\w\.)?namespace = %\(namespace\)s", "%(namespace)s::text <> ''", sql)
        for name, sql in documents._SQL.items()
    }
    assert broken != documents._SQL
    monkeypatch.setattr(documents, "_SQL", broken)
    filled.update("a", AWAY, title="of the other")
    at_home = filled.get("a", HOME)
    assert at_home is not None
    assert at_home.title != "of the other"
    assert filled.get("a", Tenant("nobody")) is None
    assert filled.ids("", Tenant("nobody")) == []
    assert len(filled.ids("", HOME)) == 1


def test_one_connection_serves_namespaces_in_turn_and_mixes_none(filled: Kept) -> None:
    """The setting is the transaction's, and so is gone with it."""
    for tenant in (HOME, AWAY, HOME, Tenant("nobody"), AWAY):
        jobs = filled.write(lambda writer: writer.queue.add([NewJob("sync")]), tenant)
        seen = {
            job.job_id for job in filled.read(lambda reader: reader.jobs.page(limit=99), tenant)
        }
        assert set(jobs) <= seen
        expected = ["a"] if tenant != Tenant("nobody") else []
        assert filled.ids("", tenant) == expected
