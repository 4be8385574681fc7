"""The importer: batches bounded in documents and bytes, and a summary of outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from zibaldone.exchange import batches as subject
from zibaldone.exchange.batches import Importer, Summary
from zibaldone.limits import (
    IMPORT_BATCH_BYTES_MAX,
    IMPORT_BATCH_DOCUMENTS_MAX,
    IMPORT_PAUSE_SECONDS,
    IMPORT_PROBLEMS_MAX,
)
from zibaldone.model.document import Document
from zibaldone.model.incoming import Imported, Incoming


def incoming(document_id: str, body: str = "text") -> Incoming:
    return Incoming(
        Document(
            document_id=document_id,
            body=body,
            title="",
            tags=(),
            parent_id=None,
            mime="text/markdown",
            metadata={},
            revision=1,
            created_at_us=1,
            updated_at_us=1,
            updated_by="",
            operation="import",
        )
    )


class Written:
    """Takes batches, and fails the documents whose id says so."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def __call__(self, batch: Sequence[Incoming]) -> Sequence[Imported]:
        self.sizes.append(len(batch))
        ids = [one.document.document_id for one in batch]
        return [
            Imported(one, "failed", "it says so") if "bad" in one else Imported(one, "created")
            for one in ids
        ]


def imported(*documents: Incoming) -> tuple[Written, Summary]:
    written = Written()
    importer = Importer(written)

    async def run() -> None:
        for document in documents:
            await importer.add(f"file {document.document.document_id}", document)
        await importer.flush()
        await importer.flush()

    asyncio.run(run())
    return written, importer.summary


def test_a_batch_is_bounded_in_documents() -> None:
    many = [incoming(str(number)) for number in range(2 * IMPORT_BATCH_DOCUMENTS_MAX + 1)]
    written, summary = imported(*many)
    assert written.sizes == [IMPORT_BATCH_DOCUMENTS_MAX, IMPORT_BATCH_DOCUMENTS_MAX, 1]
    assert summary.counts["created"] == len(many)


def test_a_batch_is_bounded_in_bytes() -> None:
    half = "é" * (IMPORT_BATCH_BYTES_MAX // 4)
    written, _ = imported(*(incoming(str(number), half) for number in range(5)))
    assert written.sizes == [2, 2, 1]
    written, _ = imported(incoming("a"), incoming("b", 3 * half), incoming("c"))
    assert written.sizes == [1, 1, 1]


def test_outcomes_are_counted_and_problems_named_as_the_user_knows_them() -> None:
    _, summary = imported(incoming("a"), incoming("bad"))
    assert summary.as_dict() == {
        "created": 1,
        "updated": 0,
        "unchanged": 0,
        "skipped": 0,
        "failed": 1,
        "problems": [{"path": "file bad", "outcome": "failed", "reason": "it says so"}],
    }


def test_problems_are_bounded_and_counts_are_not() -> None:
    summary = Summary()
    for number in range(IMPORT_PROBLEMS_MAX + 5):
        summary.add(f"\udcff{number}", "skipped", "why")
    assert summary.counts["skipped"] == IMPORT_PROBLEMS_MAX + 5
    assert len(summary.problems) == IMPORT_PROBLEMS_MAX
    assert summary.problems[0]["path"] == "\\udcff0"


def test_others_get_a_pause_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(subject, "IMPORT_HOLD_SECONDS_MAX", -1.0)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    imported(*(incoming(str(number)) for number in range(2 * IMPORT_BATCH_DOCUMENTS_MAX)))
    assert pauses == [IMPORT_PAUSE_SECONDS] * 2
