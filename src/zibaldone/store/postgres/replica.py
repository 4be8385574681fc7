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

from zibaldone.errors import ConfigurationError, ZibaldoneError
from zibaldone.store.port import ReadStoreStatus
from zibaldone.store.postgres.address import Address
from zibaldone.store.postgres.connection import Connections, Raw, connect

_WAIT_SECONDS_MAX = 0.25
"""For the replica to apply what the primary has. Then the primary is read."""

_REST_SECONDS = 1.0
"""A replica that is down or late, or a primary that did not answer, is left alone for so long."""

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
    """How far the primary's log is on disk: everything acknowledged is before that place."""

    def __init__(self, primary: Address) -> None:
        # It must not keep reads waiting: a primary that does not answer is given up soon.
        patience = {"connect_timeout": "2", "tcp_user_timeout": "2000"}
        self._address = replace(primary, parameters={**primary.parameters, **patience})
        self._changed = threading.Condition()
        self._begun = 0
        self._done = 0
        self._is_asking = False
        self._place: str | None = None
        self._raw: Raw | None = None

    def place(self) -> str | None:
        """As of a moment after this call. None: the primary cannot be asked."""
        with self._changed:
            wanted = self._begun + 1
            while self._is_asking and self._done < wanted:
                self._changed.wait()
            if self._done >= wanted:
                return self._place
            self._begun, self._is_asking = wanted, True
        place = None
        try:
            place = self._ask()
        finally:
            with self._changed:
                self._place, self._done, self._is_asking = place, self._begun, False
                self._changed.notify_all()
        return place

    def _ask(self) -> str | None:
        for _ in range(2):  # the connection may be from before a restart
            try:
                if self._raw is None or self._raw.closed:
                    self._raw = connect(self._address)
                row = self._raw.execute(_ASK).fetchone()
            except (psycopg.Error, ZibaldoneError):
                if self._raw is None:
                    return None
                self._raw.close()
                self._raw = None
            else:
                return None if row is None else str(row[0])
        return None

    def close(self) -> None:
        with self._changed:
            if self._raw is not None and not self._is_asking:
                self._raw.close()


class Replica:
    def __init__(self, address: Address, primary: Address) -> None:
        """ConfigurationError: it is no replica of this primary."""
        defaults = {"connect_timeout": "2", **address.parameters}
        self._address = replace(address, parameters=defaults)
        self._connections = Connections(self._address)
        self._horizon = Horizon(primary)
        self._last_place: str | None = None
        self._primary_away_until_s = 0.0
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
        place = self._place()
        try:
            raw = self._connections.take()
        except ZibaldoneError as problem:
            self._rest("unavailable", problem.message)
            return None
        try:
            has_all = self._catches_up(raw, place)
        except psycopg.Error as problem:
            self._connections.give_back(raw)
            self.note_problem(problem)
            return None
        if has_all:
            self.status = _OK
            return raw
        self._connections.give_back(raw)
        if has_all is None:
            self._rest("unavailable", "The read store follows no primary; reads go to the store.")
        else:
            self._rest("late", "The read store lags behind; reads go to the store.")
        return None

    def give_back(self, raw: Raw) -> None:
        self._connections.give_back(raw)

    def note_problem(self, problem: BaseException) -> None:
        """A read failed there that is repeated on the primary."""
        if isinstance(problem, psycopg.errors.SerializationFailure):
            return  # what it read was removed by the primary meanwhile
        self._rest("unavailable", f"A read failed there: {type(problem).__name__}.")

    def note_commit(self) -> None:
        """The primary is there: this process has just written."""
        self._primary_away_until_s = 0.0

    def _place(self) -> str | None:
        """Where the replica must be. If the primary is away: where it was when last heard of."""
        if time.monotonic() < self._primary_away_until_s:
            return self._last_place
        began_s = time.monotonic()
        place = self._horizon.place()
        if place is None:
            now_s = time.monotonic()
            if now_s - began_s > _WAIT_SECONDS_MAX:  # it does not even refuse
                self._primary_away_until_s = now_s + _REST_SECONDS
            return self._last_place
        self._last_place = place
        return place

    def _catches_up(self, raw: Raw, place: str | None) -> bool | None:
        until_s = time.monotonic() + _WAIT_SECONDS_MAX
        pause_s = _PAUSE_SECONDS_MIN
        while True:
            row = raw.execute(_HAS, {"place": place or "0/0"}).fetchone()
            has_all: bool | None = None if row is None else row[0]
            if has_all is not False or time.monotonic() > until_s:
                return has_all
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_SECONDS_MAX)

    def _rest(self, status: Literal["late", "unavailable"], message: str) -> None:
        if self.status.status == "ok":
            _log.warning("%s", message)
        self.status = ReadStoreStatus(status, message)
        self._resting_until_s = time.monotonic() + _REST_SECONDS

    def close(self) -> None:
        self._connections.close()
        self._horizon.close()
