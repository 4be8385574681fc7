"""Sums up, in the background, what writes added in rows of their own, and posts their terms."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from zibaldone.errors import ZibaldoneError
from zibaldone.store import statements
from zibaldone.store.postgres.connection import Transaction
from zibaldone.store.postgres.locks import try_folding
from zibaldone.store.postgres.postings import has_more, post, renew, tidy

T = TypeVar("T")

_SQL = statements.load("zibaldone.store.postgres", "fold.sql")

_PAUSE_SECONDS = 2.0
"""After the first write that is not folded: whoever reads sums up the writes of that time."""

_ROWS_MAX = 10_000
"""In one transaction."""

_log = logging.getLogger("zibaldone.store")


def fold(transaction: Transaction) -> bool:
    """Fold what there is, unless another process is about it. True: there is more to do."""
    if try_folding(transaction):
        transaction.execute(_SQL["usage"], {"limit": _ROWS_MAX})
    return False


Step = Callable[[Transaction], bool]

_STEPS: tuple[Step, ...] = (fold, post, renew, tidy)
"""In transactions of their own, each as often as it has more to do."""


class RunWrite(Protocol):
    def __call__(self, work: Callable[[Transaction], T]) -> T: ...


class Folding:
    """A thread that folds a while after the last time somebody wrote; the first write starts it."""

    def __init__(self, write: RunWrite) -> None:
        """`write` runs a function in a transaction of upkeep."""
        self._write = write
        self._is_due = threading.Event()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._running: Transaction | None = None

    def note_write(self) -> None:
        if self._is_due.is_set():
            return
        with self._lock:
            self._is_due.set()
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(
                    target=self._run, name="zibaldone-fold", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """What is being folded is left to whoever folds next."""
        with self._lock:
            self._closing.set()
            self._is_due.set()
            if self._running is not None:
                self._running.cancel()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._is_due.wait()
            if self._closing.wait(_PAUSE_SECONDS):
                return
            self._is_due.clear()
            try:
                for step in _STEPS:
                    while self._write(partial(self._unless_closing, step)):
                        pass
                if self._write(partial(self._unless_closing, has_more)):
                    self._is_due.set()  # another process may have been about it, or wrote meanwhile
            except ZibaldoneError as problem:
                if not self._closing.is_set():
                    _log.info("folding is left to the next write: %s", problem.message)
            except Exception:  # the thread has to be there for the next write
                _log.exception("folding failed; it is left to the next write")

    def _unless_closing(self, step: Step, transaction: Transaction) -> bool:
        with self._lock:
            if self._closing.is_set():
                return False
            self._running = transaction
        try:
            return step(transaction)
        finally:
            with self._lock:
                self._running = None
