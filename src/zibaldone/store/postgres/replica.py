"""Reads from a replica, as current as reads from the primary; where it is not, the primary is read.

The primary is asked how far its log is on disk, one small statement for all reads that begin at
that time; the replica must have applied as much, or get there soon. So nothing depends on which
process wrote, or which one reads.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from typing import Literal

import psycopg

from zibaldone.errors import ConfigurationError, DeadlineExceeded, ZibaldoneError
from zibaldone.store.port import ReadStoreStatus
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.connection import Connections, Raw, Transaction, connect
from zibaldone.store.postgres.faults import is_full
from zibaldone.store.postgres.watchdog import Watchdog

_WAIT_SECONDS_MAX = 0.25
"""For the replica to apply what the primary has. Then the primary is read."""

_ANSWER_SECONDS_MAX = 1.0
"""For the replica to say anything at all."""

_SLOW_SECONDS_MAX = 2.0
"""For the primary to say how far it is. Then it is read, as if there were no replica."""

_DOWN_SECONDS_MAX = 0.05

_REST_SECONDS_MIN = 1.0
_REST_SECONDS_MAX = 15.0
"""A replica that is down or late is left alone for so long; longer each time."""

_PAUSE_SECONDS_MIN = 0.001
_PAUSE_SECONDS_MAX = 0.02

_ASK = "SELECT pg_current_wal_flush_lsn()::text"

_HAS = """
SELECT CASE WHEN pg_is_in_recovery()
            THEN pg_last_wal_replay_lsn() >= %(place)s::text::pg_lsn END
"""
"""NULL: it follows nobody any more. It may be the primary now, which is found by its own URL."""

_IDENTITY = "SELECT system_identifier FROM pg_control_system()"

_OK = ReadStoreStatus("ok")

_log = logging.getLogger("zibaldone.store")


class Horizon:
    """How far the primary's log is on disk: everything acknowledged is before that place.

    A thread asks, so that nobody waits for ever. The first read starts it.
    """

    def __init__(self, primary: Address) -> None:
        patience = {"connect_timeout": "2", "tcp_user_timeout": "2000"}
        self._address = replace(primary, parameters={**primary.parameters, **patience})
        self._changed = threading.Condition()
        self._wanted = 0
        """The number of the last ask that somebody waits for."""
        self._begun = 0
        self._done = 0
        self._place: str | None = None
        self._is_down = False
        self._thread: threading.Thread | None = None
        self._closed = False

    def place(self) -> str | None:
        """As of a moment after this call. None: the primary is down. TimeoutError: it is slow."""
        with self._changed:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._run, name="zibaldone-horizon", daemon=True
                )
                self._thread.start()
            wanted = self._begun + 1
            self._wanted = max(self._wanted, wanted)
            self._changed.notify_all()
            # Of one that was down we only want to know whether it has come back.
            seconds_max = _DOWN_SECONDS_MAX if self._is_down else _SLOW_SECONDS_MAX
            is_answered = self._changed.wait_for(lambda: self._done >= wanted, seconds_max)
            if is_answered and self._place is not None:
                return self._place
            if self._is_down:
                return None
        raise TimeoutError

    def note_up(self) -> None:
        with self._changed:
            self._is_down = False

    def close(self) -> None:
        """The thread may be stuck: it ends on its own."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_SLOW_SECONDS_MAX)

    def _run(self) -> None:
        raw: Raw | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._wanted > self._done)
                if self._closed:
                    break
                self._begun += 1
            raw, place, is_down = self._ask(raw)
            with self._changed:
                self._place, self._is_down, self._done = place, is_down, self._begun
                self._changed.notify_all()
        if raw is not None:
            raw.close()

    def _ask(self, raw: Raw | None) -> tuple[Raw | None, str | None, bool]:
        """The connection to go on with, the place, and whether the primary is down."""
        for _ in range(2):  # the connection may be from before a restart
            try:
                if raw is None or raw.closed:
                    raw = connect(self._address)
                row = raw.execute(_ASK).fetchone()
                return raw, None if row is None else str(row[0]), False
            except ZibaldoneError as problem:
                return None, None, not is_full(problem)
            except psycopg.Error:
                if raw is not None:
                    raw.close()
        return None, None, True


class Replica:
    def __init__(self, address: Address, primary: Address) -> None:
        """ConfigurationError: it is no replica of this primary."""
        defaults = {"connect_timeout": "2", **address.parameters}
        self._address = replace(address, parameters=defaults)
        self._connections = Connections(self._address)
        self._watchdog = Watchdog()
        self._horizon = Horizon(primary)
        self._last_place = "0/0"
        self._rest_s = 0.0
        self._resting_until_s = 0.0
        self.status = _OK
        self._require_same_cluster(primary)

    def _require_same_cluster(self, primary: Address) -> None:
        try:
            with connect(self._address) as raw, connect(primary) as beside:
                same = raw.execute(_IDENTITY).fetchone() == beside.execute(_IDENTITY).fetchone()
                names = [
                    one.execute("SELECT current_database()").fetchone() for one in (raw, beside)
                ]
        except psycopg.Error as problem:
            _log.warning("the read store was not compared: %s", type(problem).__name__)
        except ConfigurationError as problem:
            raise ConfigurationError(f"read_store: {problem.message}") from problem
        except ZibaldoneError as problem:
            self._rest("unavailable", problem.message)
        else:
            if not same or names[0] != names[1]:
                raise ConfigurationError(
                    f"read_store: {self._address.description} is no replica of "
                    f"{primary.description}. Give the URL of a standby that follows it, and the "
                    "same database."
                )

    def take(self) -> Raw | None:
        """A connection that sees all that was acknowledged until now; None: read the primary."""
        if time.monotonic() < self._resting_until_s:
            return None
        try:
            place = self._horizon.place()
        except TimeoutError:
            return None
        if place is not None:
            self._last_place = place
        # Without a primary, what it had when it was last heard of must do.
        place = place or self._last_place
        try:
            raw = self._connections.take()
        except ZibaldoneError as problem:
            self._rest("unavailable", problem.message)
            return None
        is_usable = False
        try:
            is_usable = self._catches_up(raw, place)
        except (psycopg.Error, DeadlineExceeded) as problem:
            self.note_problem(problem)
        finally:
            if not is_usable:
                self._connections.give_back(raw)
        if not is_usable:
            return None
        self.status, self._rest_s = _OK, 0.0
        return raw

    def give_back(self, raw: Raw) -> None:
        self._connections.give_back(raw)

    def note_problem(self, problem: BaseException) -> None:
        """A read failed there that is repeated on the primary."""
        if isinstance(problem, psycopg.errors.SerializationFailure):
            return  # what it read was removed by the primary meanwhile
        self._rest("unavailable", f"A read failed there: {type(problem).__name__}.")

    def note_commit(self) -> None:
        """The primary is there: this process has just written."""
        self._horizon.note_up()

    def _catches_up(self, raw: Raw, place: str) -> bool:
        """Wait until it has applied the log up to the place, but not for long."""
        until_s = time.monotonic() + _WAIT_SECONDS_MAX
        pause_s = _PAUSE_SECONDS_MIN
        # Not a transaction, but interrupted like one: it may not answer at all.
        check = Transaction(raw, (), is_write=False, seconds_max=_ANSWER_SECONDS_MAX)
        self._watchdog.watch(check)
        try:
            while True:
                has_all = check.value(_HAS, {"place": place})
                if has_all:
                    return True
                if has_all is None:
                    raw.close()  # of several hosts another may be a standby now
                    message = "The read store follows no primary; reads go to the store."
                    self._rest("unavailable", message)
                    return False
                if time.monotonic() > until_s:
                    self._rest("late", "The read store lags behind; reads go to the store.")
                    return False
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_SECONDS_MAX)
        finally:
            self._watchdog.forget(check)
            if not check.end():
                raw.close()

    def _rest(self, status: Literal["late", "unavailable"], message: str) -> None:
        if self.status.status == "ok":
            _log.warning("%s", message)
        self.status = ReadStoreStatus(status, message)
        self._rest_s = min(max(2 * self._rest_s, _REST_SECONDS_MIN), _REST_SECONDS_MAX)
        self._resting_until_s = time.monotonic() + self._rest_s

    def close(self) -> None:
        self._horizon.close()
        self._watchdog.close()
        self._connections.close()
