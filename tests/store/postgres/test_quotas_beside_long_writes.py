"""Quotas are counted at the end of a write: a long one holds up no other of its namespace."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tests.store.backends import Postgres
from tests.store.kept import ACTOR, Kept
from zibaldone.keep.create import NewDocument, create
from zibaldone.limits import Limits
from zibaldone.store.port import Writer

_LIMITS = replace(Limits(), namespace_documents_max=5, write_wait_seconds_max=5.0)


def test_another_write_is_stored_meanwhile(tables: Postgres) -> None:
    has_added, may_commit = threading.Event(), threading.Event()

    def add_slowly(writer: Writer) -> None:
        create(writer, NewDocument("a", "x"), ACTOR, _LIMITS)
        has_added.set()
        assert may_commit.wait(20)

    store = tables.open(_LIMITS)
    try:
        kept = Kept(store, _LIMITS)
        with ThreadPoolExecutor(1) as threads:
            first = threads.submit(kept.write, add_slowly)
            try:
                assert has_added.wait(20)
                Kept(store, _LIMITS).create("b", "x")
            finally:
                may_commit.set()
            first.result()
        (held,) = kept.upkeep(lambda work: work.usage.all())
        assert (held.documents, held.revisions) == (2, 2)
    finally:
        store.close()
