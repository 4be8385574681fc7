"""Revisions: every state a document had is kept, whole."""

from __future__ import annotations

import tracemalloc

import pytest

from tests.store.backends import Backend
from tests.store.kept import Kept
from zibaldone.keep import commit
from zibaldone.keep.revisions import history, revision_chars
from zibaldone.model.document import Revision
from zibaldone.model.instant import now_us

DAY_US = 86_400_000_000


def revisions(kept: Kept, path: str, **more: int | None) -> list[Revision]:
    document = kept.known(path)
    arguments = {"before": None, "limit": 100, **more}
    return kept.read(lambda reader: reader.revisions.page(document, **arguments))  # type: ignore[arg-type]


def test_every_replaced_state_is_kept_as_it_was(kept: Kept) -> None:
    states = [kept.create("a", "one", title="T1", tags=("x",), metadata={"k": 1})]
    states.append(kept.update("a", body="two", title="T2", tags=(), metadata={"k": None, "l": 2}))
    states.append(kept.update("a", mime="text/plain"))
    states.append(kept.delete("a"))
    states.append(kept.create("a", "grün " * 5_000))
    current = kept.known("a")
    assert current.revision == 5
    for state in states[:-1]:
        revision = kept.read(
            lambda reader, number=state.revision: reader.revisions.get(current, number)  # type: ignore[misc]
        )
        assert revision == Revision(
            document_id="a",
            revision=state.revision,
            title=state.title,
            tags=state.tags,
            mime=state.mime,
            metadata=state.metadata,
            written_at_us=state.updated_at_us,
            written_by=state.updated_by,
            operation=state.operation,
            content_chars=len(state.body),
            body=state.body,
        )


def test_the_current_state_is_not_among_the_earlier_ones(kept: Kept) -> None:
    kept.create("a")
    document = kept.update("a", body="two")
    assert [revision.revision for revision in revisions(kept, "a")] == [1]
    assert kept.read(lambda reader: reader.revisions.get(document, 2)) is None
    assert kept.read(lambda reader: reader.revisions.get(document, 7)) is None


def test_pages_go_back_in_time_without_bodies(kept: Kept) -> None:
    kept.create("a", "0")
    for number in range(1, 8):
        kept.update("a", body=str(number))
    kept.create("b")
    whole = revisions(kept, "a")
    assert [revision.revision for revision in whole] == [7, 6, 5, 4, 3, 2, 1]
    assert {revision.body for revision in whole} == {""}
    assert [revision.revision for revision in revisions(kept, "a", limit=2)] == [7, 6]
    assert [revision.revision for revision in revisions(kept, "a", before=6, limit=3)] == [5, 4, 3]
    assert revisions(kept, "a", before=1) == []
    assert revisions(kept, "b") == []


def test_a_long_history_is_small_beside_its_bodies(kept: Kept, backend: Backend) -> None:
    body = "The same sentence, again and again, as edits of one document are. " * 200
    kept.create("a", body)
    for number in range(5):
        kept.update("a", body=f"{body}{number}")
    ((kept_bytes,),) = backend.query("SELECT sum(length(body)) FROM revisions")
    assert kept_bytes * 10 < len(body) * 5


def test_instants_of_a_history_never_step_back(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the clock does: to and fro by a day, a microsecond, not at all."""
    start_us = now_us()
    steps_us = [0, -DAY_US, -DAY_US, 5, 4, 5, 5, 6, DAY_US, DAY_US - 1, -5 * DAY_US, DAY_US, 7]
    clock = iter(steps_us)
    monkeypatch.setattr(commit, "now_us", lambda: start_us + next(clock))
    kept.create("a")
    for number in range(len(steps_us) - 3):
        kept.update("a", body=str(number))
    kept.delete("a")
    kept.create("a", "again")
    instants = [revision.written_at_us for revision in revisions(kept, "a")]
    assert len(instants) == len(steps_us) - 1
    assert instants == sorted(set(instants), reverse=True)
    assert kept.known("a").updated_at_us > instants[0]
    assert next(clock, None) is None, "the clock was asked each time"


def test_a_history_and_its_lengths_are_told_without_reading_a_body(kept: Kept) -> None:
    kept.create("a", "word " * 1_000_000)
    kept.update("a", body="longer " * 1_000_000)
    kept.read(lambda reader: history(reader, "a", before=None, limit=10))  # what is prepared once
    tracemalloc.start()
    try:
        page, _ = kept.read(lambda reader: history(reader, "a", before=None, limit=10))
        lengths = kept.read(lambda reader: [revision_chars(reader, "a", each) for each in (1, 2)])
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [each.content_chars for each in page] == [7_000_000, 5_000_000]
    assert lengths == [5_000_000, 7_000_000]
    assert peak_bytes < 1_000_000
