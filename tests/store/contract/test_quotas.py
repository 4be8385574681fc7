"""What a namespace holds is counted with each write, and bounded if the operator says so."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pytest

from tests.store.backends import Backend
from tests.store.kept import ACTOR, Kept
from zibaldone.access.principal import Tenant
from zibaldone.errors import QuotaExceeded, ZibaldoneError
from zibaldone.keep.create import NewDocument, create
from zibaldone.limits import Limits
from zibaldone.model.usage import NamespaceUsage
from zibaldone.store.port import Writer

Opened = Callable[[Limits], AbstractContextManager[Kept]]


@pytest.fixture
def opened(backend: Backend) -> Opened:
    @contextmanager
    def open_with(limits: Limits) -> Iterator[Kept]:
        store = backend.open(limits)
        try:
            yield Kept(store, limits)
        finally:
            store.close()

    return open_with


def usage(kept: Kept) -> dict[str, NamespaceUsage]:
    held = kept.upkeep(lambda work: work.usage.all())
    return {each.namespace: each for each in held}


def counts(kept: Kept, namespace: str = "default") -> tuple[int, int]:
    held = usage(kept)[namespace]
    return held.documents, held.revisions


def test_writes_are_counted(kept: Kept) -> None:
    assert usage(kept) == {}
    kept.create("a", "x" * 1_000)
    first = usage(kept)["default"]
    assert (first.documents, first.revisions) == (1, 1)
    assert 1_000 <= first.bytes < 1_200  # with a title of its first line
    kept.update("a", body="y" * 3_000)
    second = usage(kept)["default"]
    assert (second.documents, second.revisions) == (1, 2)
    assert 3_000 < second.bytes <= first.bytes + 3_000  # the earlier one may be compressed
    kept.delete("a")
    assert counts(kept) == (0, 3)
    kept.create("a", "again")
    assert counts(kept) == (1, 4)


def test_bytes_are_bytes_not_characters(kept: Kept) -> None:
    kept.create("a", "é" * 1_000)
    assert usage(kept)["default"].bytes >= 2_000


def test_a_write_that_fails_counts_for_nothing(kept: Kept) -> None:
    kept.create("a", "x")
    before = usage(kept)
    with pytest.raises(ZibaldoneError):
        kept.create("a", "x")
    assert usage(kept) == before


def test_writes_at_the_same_time_are_counted_one_after_the_other(opened: Opened) -> None:
    """Of two processes: whichever commits last sees what the other added."""
    limits = replace(Limits(), namespace_documents_max=1)
    has_added, may_commit = threading.Event(), threading.Event()
    with opened(limits) as one, opened(limits) as other, ThreadPoolExecutor(2) as threads:

        def add_slowly(writer: Writer) -> None:
            create(writer, NewDocument("a", "x"), ACTOR, limits)
            has_added.set()
            may_commit.wait(1)

        first = threads.submit(one.write, add_slowly)
        assert has_added.wait(20)
        second = threads.submit(other.create, "b", "x")
        wait([second], timeout=0.5)  # it waits for the first, unless it counts without it
        may_commit.set()
        refused = [each for each in (first, second) if each.exception() is not None]
        assert [type(each.exception()) for each in refused] == [QuotaExceeded]
        assert counts(one) == (1, 1)


def test_namespaces_are_counted_apart(kept: Kept) -> None:
    kept.create("a", "x")
    kept.create("b", "y", Tenant("other"))
    assert counts(kept) == counts(kept, "other") == (1, 1)


@pytest.mark.parametrize("seed", range(3))
def test_the_counts_are_those_of_the_tables(kept: Kept, backend: Backend, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        path = chance.choice("abcde")
        text = chance.choice(("short", "long " * 100, "ünïcode", ""))
        try:
            match chance.randrange(4):
                case 0:
                    kept.create(path, text)
                case 1:
                    kept.update(path, body=text)
                case 2:
                    kept.update(path, title=text)
                case _:
                    kept.delete(path)
        except ZibaldoneError:
            pass
    texts = "octet_length(title) + octet_length(tags) + octet_length(metadata) + octet_length(body)"
    ((documents, current, current_bytes),) = backend.query(
        f"SELECT count(*) FILTER (WHERE deleted_at_us IS NULL), count(*), sum({texts}) "
        "FROM documents JOIN bodies USING (document_key)"
    )
    ((earlier, earlier_bytes),) = backend.query(f"SELECT count(*), sum({texts}) FROM revisions")
    assert usage(kept)["default"] == NamespaceUsage(
        "default", documents, current + earlier, current_bytes + (earlier_bytes or 0)
    )


class TestQuotas:
    def test_documents(self, opened: Opened) -> None:
        with opened(replace(Limits(), namespace_documents_max=2)) as kept:
            kept.create("a", "x")
            kept.create("b", "x")
            with pytest.raises(QuotaExceeded, match="2 documents") as refusal:
                kept.create("c", "x")
            assert refusal.value.details == {"quota": "documents", "maximum": 2}
            kept.update("a", body="those that are there can change")
            kept.delete("a")
            kept.create("c", "x")
            assert counts(kept) == (2, 5)

    def test_revisions(self, opened: Opened) -> None:
        with opened(replace(Limits(), namespace_revisions_max=3)) as kept:
            kept.create("a", "1")
            kept.update("a", body="2")
            kept.update("a", body="3")
            with pytest.raises(QuotaExceeded, match="3 revisions"):
                kept.update("a", body="4")
            with pytest.raises(QuotaExceeded):
                kept.create("b", "1")
            assert kept.known("a").body == "3"
            kept.delete("a")  # never refused

    def test_bytes(self, opened: Opened) -> None:
        with opened(replace(Limits(), namespace_bytes_max=10_000)) as kept:
            kept.create("a", "x" * 9_000)
            with pytest.raises(QuotaExceeded, match="10,000 bytes"):
                kept.create("b", "x" * 2_000)
            kept.create("b", "x" * 500)
            with pytest.raises(QuotaExceeded):
                kept.update("b", metadata={"long": "x" * 1_000})
            kept.delete("b")

    def test_one_namespace_does_not_use_up_anothers(self, opened: Opened) -> None:
        with opened(replace(Limits(), namespace_documents_max=1)) as kept:
            kept.create("a", "x")
            kept.create("a", "x", Tenant("other"))
            with pytest.raises(QuotaExceeded):
                kept.create("b", "x", Tenant("other"))

    def test_a_store_that_holds_more_already_can_be_read_and_emptied(self, opened: Opened) -> None:
        with opened(Limits()) as kept:
            for path in "abc":
                kept.create(path, "x")
        with opened(replace(Limits(), namespace_documents_max=1)) as kept:
            assert kept.known("a").body == "x"
            kept.update("a", body="y")
            with pytest.raises(QuotaExceeded):
                kept.create("d", "x")
            for path in "abc":
                kept.delete(path)
            kept.create("d", "x")
