"""Statements that are sent together: what comes back, what is prepared, what a failure leaves."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.store.backends import Postgres
from tests.store.kept import Kept
from zibaldone.access.principal import Tenant
from zibaldone.store.port import Reader
from zibaldone.store.postgres import pipeline
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.connection import Raw, connect
from zibaldone.store.postgres.pipeline import Pipeline, Statement

LARGE = 8_000_000
"""More than the buffers of a socket hold."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """These tests leave nothing in its tables."""
    tables = Postgres(tmp_path_factory.mktemp("pipeline"))
    yield tables
    tables.close()


@pytest.fixture
def raw(server: Postgres) -> Iterator[Raw]:
    with connect(Address.parse(server.url)) as made:
        yield made


def prepared(raw: Raw) -> int:
    row = raw.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
    assert row is not None
    return int(row[0])


def test_the_rows_are_those_of_the_last_statement(raw: Raw) -> None:
    select = (
        "SELECT current_setting('zibaldone.namespace'), %(n)s + 1, %(none)s::text, "
        "%(list)s::text[], %(bytes)s::bytea, 7 %% 4, %(n)s::bigint"
    )
    statements: list[Statement] = [
        ("BEGIN", None),
        ("SELECT set_config('zibaldone.namespace', %(name)s, true)", {"name": "mine"}),
        (select, {"n": 2, "none": None, "list": ["a", "ü'\"\\"], "bytes": b"\x00\xff"}),
    ]
    rows = raw.statements.run(statements, "COMMIT")
    assert rows == [("mine", 3, None, ["a", "ü'\"\\"], b"\x00\xff", 3, 2)]
    assert raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert raw.statements.run([("SELECT current_setting('zibaldone.namespace')", None)]) == [("",)]


def test_what_has_no_rows_gives_none(raw: Raw) -> None:
    assert raw.statements.run([("SET LOCAL work_mem = '4MB'", None)]) == []
    assert raw.statements.run([("SELECT 1 WHERE false", None)]) == []


def test_the_first_failure_is_raised_and_nothing_after_it_is_done(raw: Raw) -> None:
    statements: list[Statement] = [
        ("BEGIN", None),
        ("CREATE TABLE made (n int)", None),
        ("SELECT 1 / %(n)s", {"n": 0}),
        ("SELECT 2", None),
    ]
    for _ in range(5):  # some of them are prepared meanwhile
        with pytest.raises(psycopg.errors.DivisionByZero):
            raw.statements.run(statements, "COMMIT")
        assert raw.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        assert raw.statements.command("COMMIT") == "ROLLBACK"
    assert raw.statements.run([("SELECT to_regclass('made')", None)]) == [(None,)]


def test_a_value_that_cannot_be_sent_leaves_the_connection_as_it_was(raw: Raw) -> None:
    statements: list[Statement] = [("BEGIN", None), ("SELECT %(t)s::text", {"t": "a\0b"})]
    for _ in range(4):
        with pytest.raises(psycopg.DataError):
            raw.statements.run(statements)
    assert raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert raw.statements.run([("BEGIN", None), ("SELECT 1", None)], "COMMIT") == [(1,)]


def test_large_values_pass_both_ways(raw: Raw) -> None:
    """Neither side waits for the other to read what it sends."""
    echo: Statement = ("SELECT %(t)s::text", {"t": "x" * LARGE})
    ((text,),) = raw.statements.run([echo, echo, echo])
    assert len(text) == LARGE


def test_what_is_used_again_is_prepared_once(raw: Raw) -> None:
    for number in range(6):
        assert raw.statements.run([("SELECT %(n)s", {"n": number})]) == [(number,)]
    assert prepared(raw) == 1
    for text in ("a", "b", "c", "d"):  # another type, another plan
        assert raw.statements.run([("SELECT %(n)s", {"n": text})]) == [(text,)]
    assert prepared(raw) == 2


def test_the_same_statement_twice_in_one_go_is_prepared_once(raw: Raw) -> None:
    for _ in range(3):
        assert raw.statements.run([("SELECT 1", None)] * 4) == [(1,)]
    assert prepared(raw) == 1


def test_what_could_not_be_prepared_is_tried_again(raw: Raw) -> None:
    read: Statement = ("SELECT n FROM pg_temp.later", None)
    for _ in range(4):
        with pytest.raises(psycopg.errors.UndefinedTable):
            raw.statements.run([read])
    raw.statements.run([("CREATE TEMPORARY TABLE later AS SELECT 5 AS n", None)])
    for _ in range(4):
        assert raw.statements.run([read]) == [(5,)]


def test_no_more_is_prepared_than_the_bound(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_PREPARED_MAX", 10)
    monkeypatch.setattr(pipeline, "_COUNTED_MAX", 50)
    for _ in range(4):
        for number in range(40):
            assert raw.statements.run([(f"SELECT {number}", None)]) == [(number,)]
    assert prepared(raw) <= 10


def test_nothing_is_prepared_where_that_is_not_allowed(raw: Raw) -> None:
    statements = Pipeline(raw, may_prepare=False)
    for _ in range(6):
        statements.run([("SELECT 1", None)])
    assert prepared(raw) == 0


def test_the_reason_why_the_server_closed_it_is_raised(server: Postgres, raw: Raw) -> None:
    raw.statements.run([("SELECT 1", None)])
    server.execute(f"SELECT pg_terminate_backend({raw.info.backend_pid})")
    with pytest.raises(psycopg.OperationalError):
        raw.statements.run([("BEGIN", None), ("SELECT pg_sleep(5)", None)])
    assert raw.closed


class TestSmallReads:
    """`Store.read(…, is_small=True)`: begun, made and ended in one round trip."""

    def test_a_second_statement_sees_the_snapshot_of_the_first(self, kept: Kept) -> None:
        kept.create("a", "before")
        runs = 0

        def work(reader: Reader) -> list[str]:
            nonlocal runs
            runs += 1
            first = reader.documents.get("a")
            if runs == 2:
                kept.create("b", "meanwhile")
            second = reader.documents.get("b")
            return [found.body for found in (first, second) if found is not None]

        assert kept.read(work, is_small=True) == ["before"]
        assert runs == 2, "it runs again, as one transaction"
        assert kept.known("b").body == "meanwhile"

    def test_nothing_of_a_caller_stays_on_the_connection(
        self, kept: Kept, tables: Postgres
    ) -> None:
        kept.create("a", "text", tenant=Tenant("mine"))

        def look(reader: Reader) -> object:
            return reader.documents.peek("a", 10)

        for _ in range(5):
            assert kept.read(look, tenant=Tenant("mine"), is_small=True) is not None
            assert kept.read(look, tenant=Tenant("other"), is_small=True) is None
        states = tables.query(
            "SELECT DISTINCT state FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        assert states == [("idle",)]

    def test_a_failure_leaves_no_transaction_open(self, kept: Kept, tables: Postgres) -> None:
        kept.create("a", "text")

        def fail(reader: object) -> None:
            reader._transaction.execute("SELECT 1 / 0")  # type: ignore[attr-defined]

        for _ in range(3):
            with pytest.raises(Exception, match="division by zero"):
                kept.read(fail, is_small=True)
            assert kept.read(lambda reader: reader.documents.peek("a", 10), is_small=True)

    def test_it_writes_nothing(self, kept: Kept) -> None:
        kept.create("a", "text")

        def change(reader: object) -> None:
            reader._transaction.execute("UPDATE zibaldone.documents SET title = 'x'")  # type: ignore[attr-defined]

        with pytest.raises(Exception, match="read"):
            kept.read(change, is_small=True)
        assert kept.known("a").title != "x"


def test_a_connection_that_was_left_in_the_middle_is_not_used_again(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next answer would be that of the statement before."""

    class Interrupted(BaseException):
        pass

    def interrupt(self: Pipeline) -> None:
        raise Interrupted

    with monkeypatch.context() as patched:
        patched.setattr(Pipeline, "_receive", interrupt)
        with pytest.raises(Interrupted):
            raw.statements.run([("SELECT 1", None)])
    with pytest.raises(psycopg.OperationalError, match="in the middle"):
        raw.statements.run([("SELECT 2", None)])
    raw.close()
