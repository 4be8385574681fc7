"""Interrupts reads at their deadline or when they are abandoned, also in mid-statement."""

from __future__ import annotations

import threading
import time

from zibaldone.store.postgres.connection import Transaction

_GRACE_SECONDS = 0.02
"""The server stops a statement by itself at its deadline; this is for when it does not."""


_ABANDONED_SECONDS = 0.1
"""How long a statement may go on that nobody waits for. To interrupt it costs two connections: one
to say so, and the next one for whoever reads then. Clients that come and go by the hundred would
have the server make connections, and nothing else."""


class Watchdog:
    """One thread for all reads; the first one starts it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: dict[Transaction, float] = {}
        self._wakes_s = float("inf")
        self._thread: threading.Thread | None = None
        self._closed = False

    def watch(self, transaction: Transaction) -> None:
        deadline_s = transaction.deadline_s
        if deadline_s is None:
            return
        with self._changed:
            self._watched[transaction] = deadline_s + _GRACE_SECONDS
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="zibaldone-watchdog", daemon=True
                )
                self._thread.start()
            elif deadline_s < self._wakes_s:
                self._changed.notify()

    def hurry(self, transaction: Transaction) -> None:
        """Nobody waits for it any more: interrupt it if it does not end soon by itself."""
        transaction.abandon()
        with self._changed:
            deadline_s = self._watched.get(transaction)
            if deadline_s is None:
                return  # it is over, or just being interrupted
            soon_s = time.monotonic() + _ABANDONED_SECONDS
            self._watched[transaction] = min(deadline_s, soon_s)
            if soon_s < self._wakes_s:
                self._changed.notify()

    def forget(self, transaction: Transaction) -> None:
        with self._changed:
            self._watched.pop(transaction, None)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                now_s = time.monotonic()
                due = [
                    transaction
                    for transaction, deadline_s in self._watched.items()
                    if deadline_s <= now_s
                ]
                for transaction in due:
                    del self._watched[transaction]
                if not due:
                    self._wakes_s = min(self._watched.values(), default=float("inf"))
                    is_idle = self._wakes_s == float("inf")
                    self._changed.wait(None if is_idle else self._wakes_s - now_s)
            for transaction in due:
                transaction.cancel()
