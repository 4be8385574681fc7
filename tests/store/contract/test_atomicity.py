"""A write happens whole or not at all, and leaves its traces in the same transaction."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import NoReturn

import pytest

from tests.store.backends import Backend
from tests.store.kept import ACTOR, EVERYTHING, Kept
from zibaldone.access.principal import Tenant
from zibaldone.errors import Conflict, NotFoundInContent
from zibaldone.keep.create import NewDocument, create
from zibaldone.keep.delete import delete
from zibaldone.keep.patch import Replacement, patch
from zibaldone.keep.update import Changes, update
from zibaldone.limits import Limits
from zibaldone.store.port import Writer

TABLES = (
    "documents", "bodies", "revisions", "chunks", "jobs", "audit", "facets", "document_tags",
)  # fmt: skip


def state(backend: Backend) -> dict[str, object]:
    """Everything a write can touch."""
    rows: dict[str, object] = {
        table: backend.query(f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES
    }
    return {**rows, "indexed": backend.indexed_chunks()}


class GivenUpError(Exception):
    pass


def test_a_write_that_fails_at_its_end_leaves_nothing(kept: Kept, backend: Backend) -> None:
    kept.create("old", "alpha beta")
    kept.create("doomed", "gamma")
    before = state(backend)

    def work(writer: Writer) -> NoReturn:
        create(writer, NewDocument("new", "delta"), ACTOR, kept.limits)
        patch(writer, "old", [Replacement("alpha", "epsilon")], ACTOR, kept.limits)
        update(writer, "old", Changes(title="Other", metadata={"k": 1}), ACTOR, kept.limits)
        delete(writer, "doomed", ACTOR)
        raise GivenUpError

    with pytest.raises(GivenUpError):
        kept.write(work)
    assert state(backend) == before
    assert kept.found("delta") == kept.found("epsilon") == set()
    assert kept.found("alpha") == {"old"}
    assert kept.found("gamma") == {"doomed"}


@pytest.mark.parametrize(
    ("part", "method"),
    [
        ("documents", "replace"),
        ("documents", "put_facets"),
        ("chunks", "apply"),
        ("queue", "add"),
        ("audit", "add"),
    ],
)
def test_a_write_that_fails_at_any_part_leaves_nothing(
    kept: Kept, backend: Backend, part: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write path's own order: the part named does its work, then everything is given up."""
    kept.create("old", "alpha")
    before = state(backend)

    def work(writer: Writer) -> None:
        kind = type(getattr(writer, part))
        original = getattr(kind, method)

        def then_fail(*arguments: object) -> NoReturn:
            original(*arguments)
            raise GivenUpError

        monkeypatch.setattr(kind, method, then_fail)
        update(writer, "old", Changes(body="beta", title="New"), ACTOR, Limits())

    with pytest.raises(GivenUpError):
        kept.write(work)
    assert state(backend) == before


def test_a_failed_write_does_not_touch_the_others_that_wait_with_it(
    kept: Kept, backend: Backend
) -> None:
    kept.create("shared", "0")

    async def many() -> list[object]:
        def one(number: int) -> object:
            def work(writer: Writer) -> int:
                create(writer, NewDocument(f"d/{number:02}", f"n{number}"), ACTOR, kept.limits)
                if number % 3 == 0:
                    patch(writer, "shared", [Replacement("no", "yes")], ACTOR, kept.limits)
                return number

            return kept.store.write(EVERYTHING, work)

        return await asyncio.gather(*map(one, range(40)), return_exceptions=True)  # type: ignore[call-overload, no-any-return]

    outcomes = asyncio.run(many())
    kept_numbers = [n for n in range(40) if n % 3]
    assert [o for o in outcomes if isinstance(o, int)] == kept_numbers
    assert sum(isinstance(o, NotFoundInContent) for o in outcomes) == 40 - len(kept_numbers)
    assert kept.ids("d/") == [f"d/{number:02}" for number in kept_numbers]
    assert backend.query("SELECT count(*) FROM jobs") == [(1 + len(kept_numbers),)]
    assert kept.known("shared").revision == 1


def test_each_change_has_one_job_and_one_audit_line(kept: Kept, backend: Backend) -> None:
    kept.create("a", "one")
    kept.update("a", body="two")
    kept.patch("a", "two", "three")
    kept.delete("a")
    kept.create("a", "four")
    jobs = kept.jobs()
    assert [job.payload["revision"] for job in reversed(jobs)] == [1, 2, 3, 4, 5]
    assert {(job.kind, job.subject, job.state) for job in jobs} == {("vectors", "a", "queued")}
    lines = kept.read(lambda reader: reader.audit.page("a", limit=10))
    assert [(line.revision, line.action) for line in lines] == [
        (5, "create"), (4, "delete"), (3, "patch"), (2, "update"), (1, "create"),
    ]  # fmt: skip
    assert {(line.principal, line.outcome, line.request_id) for line in lines} == {
        ("tester", "ok", "request-1")
    }
    document = kept.known("a")
    assert lines[0].at_us == document.updated_at_us
    assert jobs[0].created_at_us == document.updated_at_us


@pytest.mark.requirement("000/CC.01")
def test_a_write_is_read_by_words_and_by_id_in_its_own_transaction(kept: Kept) -> None:
    from zibaldone.text.query import parse_query

    def work(writer: Writer) -> tuple[str, list[str], list[str]]:
        create(writer, NewDocument("x", "zebra crossing"), ACTOR, kept.limits)
        document = writer.documents.get("x")
        assert document is not None
        scored = writer.lexical.search(parse_query("zebra"), limit=5)
        views = writer.chunks.views(key for key, _ in scored)
        heads = writer.documents.heads("", limit=5)
        found = [view.document_id for view in views.values()]
        return document.body, found, [h.document_id for h in heads]

    assert kept.write(work) == ("zebra crossing", ["x"], ["x"])
    assert kept.found("zebra") == {"x"}


def test_an_id_is_inserted_once(kept: Kept, backend: Backend) -> None:
    stored = kept.create("a")
    before = state(backend)
    with pytest.raises(Conflict):
        kept.write(lambda writer: writer.documents.insert(stored))
    assert state(backend) == before
    other = kept.write(lambda writer: writer.documents.insert(stored), Tenant(namespace="other"))
    assert other.storage_key != stored.storage_key


def test_a_state_that_is_no_longer_current_is_not_replaced(kept: Kept, backend: Backend) -> None:
    first = kept.create("a", "one")
    kept.update("a", body="two")
    before = state(backend)
    lost = replace(first, body="lost", revision=2)
    with pytest.raises(Conflict) as refused:
        kept.write(lambda writer: writer.documents.replace(first, lost))
    assert refused.value.details == {"document_id": "a", "expected": 1}
    assert state(backend) == before


def test_a_document_comes_back_as_it_was_stored(kept: Kept) -> None:
    stored = kept.create(
        "ü/日本",
        "line\r\n\ttab \U0001f600 e\u0301 \ufeff end",
        title="Ť 'quoted' \"title\"",
        tags=("a b", "ß"),
        mime="text/plain",
        parent_id="elsewhere",
        metadata={"n": 1.5, "list": [1, None, {"k": "v"}], "big": 2**53 - 1},
    )
    assert kept.get("ü/日本") == stored
    kept.delete("ü/日本")
    deleted = kept.known("ü/日本")
    assert not deleted.is_live
    assert deleted.body == stored.body
    assert deleted.metadata == stored.metadata
