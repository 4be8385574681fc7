"""The primary dies in the middle of a commit, and a standby takes over: what becomes of it?"""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from tests.drivers.replicated import ReplicatedPostgres
from tests.store.kept import ACTOR, Kept
from zibaldone.keep.create import NewDocument, create
from zibaldone.limits import Limits
from zibaldone.store.port import Writer
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.store import PostgresStore

TRANSACTIONS = 1_000
"""More than the primary began after the standby stopped following it."""


def at_first_commit(
    monkeypatch: pytest.MonkeyPatch, happens: Callable[[Callable[[], str]], None]
) -> None:
    """Something happens when the first document is to be committed; it may commit it."""
    finish = Transaction.finish
    happened: list[str] = []

    def finish_after_it(transaction: Transaction, sql: str) -> str:
        if sql == "COMMIT" and transaction.has_queued and not happened:
            happened.append(sql)
            happens(lambda: finish(transaction, sql))
        return finish(transaction, sql)

    monkeypatch.setattr(Transaction, "finish", finish_after_it)


def take_over(pair: ReplicatedPostgres) -> None:
    """The standby becomes the primary, and gives ids to new transactions that all commit. One is
    that of the transaction that was lost."""
    pair.primary.kill()
    pair.promote()
    with psycopg.connect(pair.admin_url(), autocommit=True) as raw:
        for _ in range(TRANSACTIONS):
            raw.execute("SELECT pg_current_xact_id()")


def create_counting(kept: Kept) -> int:
    """How often the work of the transaction ran."""
    runs: list[str] = []

    def work(writer: Writer) -> None:
        runs.append("run")
        create(writer, NewDocument("d", "some text"), ACTOR, Limits())

    kept.write(work)
    return len(runs)


def revision(kept: Kept) -> int:
    document = kept.read(lambda reader: reader.documents.get("d"))
    return 0 if document is None else document.revision


@pytest.mark.timeout(180)
def test_a_commit_that_the_standby_has_is_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    with ReplicatedPostgres() as pair:
        store = PostgresStore(pair.url, Limits())
        kept = Kept(store, Limits())

        def commit_and_die(commit: Callable[[], str]) -> None:
            commit()
            take_over(pair)

        at_first_commit(monkeypatch, commit_and_die)
        assert create_counting(kept) == 1
        assert revision(kept) == 1
        store.close()


@pytest.mark.timeout(180)
def test_a_commit_that_the_standby_never_got_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its transaction id is another's by now, which was committed."""
    with ReplicatedPostgres(is_synchronous=False) as pair:
        store = PostgresStore(pair.url, Limits())
        kept = Kept(store, Limits())

        def die(commit: Callable[[], str]) -> None:
            commit()
            take_over(pair)

        at_first_commit(monkeypatch, die)
        pair.stop_following()
        assert create_counting(kept) == 2
        assert revision(kept) == 1
        store.close()
