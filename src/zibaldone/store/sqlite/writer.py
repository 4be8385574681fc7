"""The one writer of a process: a thread that commits waiting writes together.

A commit costs an fsync, so writes that wait at the same time share one: each runs in its own
savepoint, then all are committed, and only then is any of them acknowledged. A write that fails
undoes only itself. Other processes are kept out by SQLite's own lock for the length of a commit.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import apsw

from zibaldone.errors import StorageFull, StorageUnavailable
from zibaldone.store.sqlite.checkpoint import Checkpoints
from zibaldone.store.sqlite.connection import Connection
from zibaldone.store.sqlite.faults import STORE_PROBLEMS, as_storage_error, errno_of

T = TypeVar("T")

_JOBS_PER_COMMIT_MAX = 128
"""Bounds the work that a failed commit undoes."""

_GROUP_SECONDS_MAX = 0.05
"""Once a group has worked this long it commits: the first must not wait for ever longer writes."""

_log = logging.getLogger("zibaldone.store")


@dataclass(frozen=True, slots=True)
class _Job(Generic[T]):
    work: Callable[[apsw.Connection], T]
    future: Future[T]

    def fail(self, error: BaseException) -> None:
        if self.future.running() or self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class WriterThread:
    def __init__(self, path: Path, wait_seconds_max: float) -> None:
        self._path = path
        self._connection = Connection(path, wait_seconds_max=wait_seconds_max)
        self._checkpoints = Checkpoints(self._connection)
        self._queue: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self.refusal: StorageFull | None = None
        """Why the last write that would have changed something was refused: there was no room."""
        self._thread = threading.Thread(target=self._run, name="zibaldone-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[apsw.Connection], T]) -> Future[T]:
        """Until its turn comes a write can be cancelled; from then on it happens or fails."""
        future: Future[T] = Future()
        with self._closing:  # nothing may be queued behind the mark that ends the thread
            if self._closed:
                future.set_exception(StorageUnavailable("The store is closed."))
            else:
                self._queue.put(_Job(work, future))
        return future

    def close(self) -> None:
        """Finish what was submitted, then stop."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        for first in iter(self._queue.get, None):
            if self._commit(self._group(first)):
                self._checkpoints.make_if_due()
            else:
                self._checkpoints.make_room()

    def _group(self, first: _Job[Any]) -> Iterator[_Job[Any]]:
        """The writes of one commit, each taken from the queue only when its turn comes."""
        deadline_s = time.monotonic() + _GROUP_SECONDS_MAX
        yield first
        for _ in range(_JOBS_PER_COMMIT_MAX - 1):
            if time.monotonic() > deadline_s:
                return
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return
            if job is None:
                self._queue.put(None)
                return
            yield job

    def _commit(self, group: Iterator[_Job[Any]]) -> bool:
        """Acknowledge all of the group, each with its own outcome. False: there was no room."""
        raw = self._connection.raw
        begun = False
        changes = raw.total_changes()
        taken: list[_Job[Any]] = []
        outcomes: list[tuple[_Job[Any], Any, BaseException | None]] = []
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

    def _attempt(self, job: _Job[Any]) -> tuple[Any, BaseException | None]:
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
