"""The one writer of a process: a thread that commits waiting writes together.

A commit costs an fsync, so writes that wait at the same time share one: each runs in its own
savepoint, then all are committed, and only then is any of them acknowledged. A write that fails
undoes only itself. `write_queue` says whose turn it is, and which writes go together. Other
processes are kept out by SQLite's own lock for the length of a commit.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import apsw

from zibaldone.access.share import current_share
from zibaldone.errors import StorageFull, StorageUnavailable
from zibaldone.store.sqlite.checkpoint import Checkpoints
from zibaldone.store.sqlite.connection import Connection
from zibaldone.store.sqlite.faults import STORE_PROBLEMS, as_storage_error, errno_of
from zibaldone.store.sqlite.write_queue import Write, WriteQueue

T = TypeVar("T")

_log = logging.getLogger("zibaldone.store")


class WriterThread:
    def __init__(self, path: Path, wait_seconds_max: float) -> None:
        self._path = path
        self._connection = Connection(path, wait_seconds_max=wait_seconds_max)
        self._checkpoints = Checkpoints(self._connection)
        self._queue = WriteQueue()
        self.refusal: StorageFull | None = None
        """Why the last write that would have changed something was refused: there was no room."""
        self._thread = threading.Thread(target=self._run, name="zibaldone-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[apsw.Connection], T], *, is_step: bool = False) -> Future[T]:
        """Until its turn comes a write can be cancelled; from then on it happens or fails.

        `is_step`: it is one of the steps that long work was divided into.
        """
        future: Future[T] = Future()
        self._queue.put(Write(current_share(), work, future, is_step))
        return future

    def close(self) -> None:
        """Finish what was submitted, then stop."""
        self._queue.close()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        for group in self._queue.groups():
            if self._commit(group):
                self._checkpoints.make_if_due()
            else:
                self._checkpoints.make_room()

    def _commit(self, group: Iterator[Write[Any]]) -> bool:
        """Acknowledge all of the group, each with its own outcome. False: there was no room."""
        raw = self._connection.raw
        begun = False
        changes = raw.total_changes()
        taken: list[Write[Any]] = []
        outcomes: list[tuple[Write[Any], Any, BaseException | None]] = []
        try:
            if raw.in_transaction:  # the last one could not even be rolled back
                raw.execute("ROLLBACK")
            raw.execute("BEGIN IMMEDIATE")
            begun = True
            for job in group:
                if job.future.set_running_or_notify_cancel():
                    taken.append(job)
                    outcomes.append((job, *self._attempt(job)))
            raw.execute("COMMIT")
        except Exception as problem:  # every caller gets it; the thread lives on
            code = errno_of(raw)
            self._roll_back()
            # Where the lock was not to be had, those behind would wait as long and in vain.
            for job in taken if begun else group:
                job.fail(as_storage_error(problem, self._path, code))
            return self._note_refusal([as_storage_error(problem, self._path, code)])
        if raw.total_changes() != changes:
            self.refusal = None
        has_room = self._note_refusal([failure for *_, failure in outcomes])
        for job, result, failure in outcomes:
            if failure is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(failure)
        return has_room

    def _note_refusal(self, failures: list[BaseException | None]) -> bool:
        """False where one of them says that there was no room."""
        refusals = [failure for failure in failures if isinstance(failure, StorageFull)]
        if refusals:
            self.refusal = refusals[-1]
        return not refusals

    def _attempt(self, job: Write[Any]) -> tuple[Any, BaseException | None]:
        """Run one write in a savepoint. Only a failure that cost the transaction is raised."""
        raw = self._connection.raw
        raw.execute("SAVEPOINT job")
        try:
            result = job.work(raw)
        except BaseException as failure:
            if not raw.in_transaction:
                # SQLite gave up the whole transaction (disk full, I/O error): nobody's is kept.
                if isinstance(failure, STORE_PROBLEMS):
                    raise
                raise StorageUnavailable("The transaction was lost; try again.") from failure
            if isinstance(failure, STORE_PROBLEMS):
                failure = as_storage_error(failure, self._path, errno_of(raw))
            raw.execute("ROLLBACK TO job; RELEASE job")
            return None, failure
        raw.execute("RELEASE job")
        return result, None

    def _roll_back(self) -> None:
        try:
            if self._connection.raw.in_transaction:
                self._connection.raw.execute("ROLLBACK")
        except apsw.Error as problem:
            _log.warning("a failed commit could not be rolled back yet: %s", problem)
