"""Writing many documents: in batches, with a count of outcomes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from zibaldone.limits import (
    IMPORT_BATCH_BYTES_MAX,
    IMPORT_BATCH_DOCUMENTS_MAX,
    IMPORT_HOLD_SECONDS_MAX,
    IMPORT_PAUSE_SECONDS,
    IMPORT_PROBLEMS_MAX,
)
from zibaldone.model.incoming import Imported, Incoming, Outcome

OUTCOMES: tuple[Outcome, ...] = ("created", "updated", "unchanged", "skipped", "failed")


class WriteBatch(Protocol):
    """Stores documents in one transaction, or says what storing them would do."""

    async def __call__(self, batch: Sequence[Incoming]) -> Sequence[Imported]:
        """The outcome of each document, in the order of the batch."""
        ...


@dataclass(slots=True)
class Summary:
    counts: Counter[Outcome] = field(default_factory=Counter)
    problems: list[dict[str, str]] = field(default_factory=list)
    """What was skipped or failed, and why."""

    def add(self, name: str, outcome: Outcome, reason: str = "") -> None:
        self.counts[outcome] += 1
        if reason and len(self.problems) < IMPORT_PROBLEMS_MAX:
            # File names may not be UTF-8; those bytes are shown escaped.
            path = name.encode(errors="backslashreplace").decode()
            self.problems.append({"path": path, "outcome": outcome, "reason": reason})

    def as_dict(self) -> dict[str, Any]:
        counts: dict[str, Any] = {outcome: self.counts[outcome] for outcome in OUTCOMES}
        return {**counts, "problems": self.problems}


class Importer:
    """Takes documents one by one and holds at most one batch of them."""

    def __init__(self, write_batch: WriteBatch) -> None:
        self.summary = Summary()
        self.revisions: dict[str, int] = {}
        """Of the documents that are as they were imported, by id."""
        self._write_batch = write_batch
        self._batch: list[Incoming] = []
        self._names: list[str] = []
        self._batch_bytes = 0
        self._held_seconds = 0.0

    async def add(self, name: str, incoming: Incoming) -> None:
        """`name` is what the user knows the document by: a file, a row."""
        bodies = (incoming.document.body, *(revision.body for revision in incoming.earlier))
        size = sum(len(body.encode(errors="surrogatepass")) for body in bodies)
        if self._batch and self._batch_bytes + size > IMPORT_BATCH_BYTES_MAX:
            await self.flush()
        self._batch.append(incoming)
        self._names.append(name)
        self._batch_bytes += size
        if len(self._batch) == IMPORT_BATCH_DOCUMENTS_MAX:
            await self.flush()

    def leave_out(self, name: str, outcome: Outcome, reason: str) -> None:
        """Count something that cannot be a document."""
        self.summary.add(name, outcome, reason)

    async def flush(self) -> None:
        if not self._batch:
            return
        started_s = time.monotonic()
        results = await self._write_batch(self._batch)
        for name, result in zip(self._names, results, strict=True):
            self.summary.add(name, result.outcome, result.reason)
            if result.revision is not None:
                self.revisions[result.document_id] = result.revision
        self._batch, self._names, self._batch_bytes = [], [], 0
        await self._let_others_write(time.monotonic() - started_s)

    async def _let_others_write(self, held_seconds: float) -> None:
        self._held_seconds += held_seconds
        if self._held_seconds > IMPORT_HOLD_SECONDS_MAX:
            await asyncio.sleep(IMPORT_PAUSE_SECONDS)
            self._held_seconds = 0.0
