"""A connection to a source: read-only, on one snapshot, with bounds on the time of statements.

Everything here blocks and belongs into one thread, apart from `cancel`. Values come as the driver
gives them; nothing is converted, but for what psycopg cannot (`pull/postgres_values.py`).
"""

from __future__ import annotations

import socket
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast
from urllib.parse import quote

from zibaldone import extras
from zibaldone.errors import InvalidArgument
from zibaldone.limits import SOURCE_CONNECT_SECONDS_MAX
from zibaldone.model.source import SourceDefinition
from zibaldone.pull.faults import translated
from zibaldone.pull.postgres_values import load_leniently

Row = tuple[Any, ...]

_DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
_PROGRESS_INSTRUCTIONS = 20_000
"""Of SQLite's virtual machine, between two looks at the clock: about a millisecond."""

_DAY_SECONDS = 86_400

_CONNECT_SECONDS_MIN = 2.0
"""A shorter time to connect is none to some drivers."""

_KILL_SECONDS_MAX = 1.0
"""How long it may take to ask a server to stop a statement."""

_SEVER_SECONDS = 2.0
"""How long after its time a server that does not even stop its statement is waited for."""


class Connection:
    """One snapshot of a source. Use it as a context manager."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        seconds_max: float,
        is_stream: bool = False,
        is_tolerant: bool = False,
    ) -> None:
        """`is_stream`: rows of a statement are taken while others are written, for as long as that
        takes; the time is for the next rows. `is_tolerant`: SQLite texts that are no UTF-8 are
        read with replacement characters."""
        self.name = name
        self._seconds_max = seconds_max
        self._is_stream = is_stream
        self._is_tolerant = is_tolerant
        self._deadline_s: float | None = None
        self.is_cancelled = False
        self._lock = threading.Lock()
        self._connection: Any = None
        self._raw: Any = None
        """The driver's, which is there first: SQLAlchemy begins with questions to the server."""
        self._is_severed = False
        self._thread_id: int | None = None
        self._secrets: tuple[str, ...] = ()
        sqlalchemy = extras.require("pull", "sqlalchemy")
        with translated(name):
            self.url = _with_driver(sqlalchemy, url)
        if self.url.password:
            self._secrets = (str(self.url.password), quote(str(self.url.password), safe=""))
        self.dialect_name: str = self.url.get_backend_name()
        if self.dialect_name == "mariadb":
            self.dialect_name = "mysql"
        with self.errors():
            self._engine = self._make_engine(sqlalchemy, seconds_max)
            sqlalchemy.event.listen(self._engine, "connect", self._note_raw, insert=True)

    def _note_raw(self, raw: Any, *_: object) -> None:
        with self._lock:
            self._raw = raw
        if self._is_severed:
            self._sever()
        if self.url.get_driver_name() == "psycopg":
            load_leniently(raw)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """A context in which errors of the database become ours, and which ends.

        The server stops a statement at its time. One that hangs does not, and PostgreSQL's driver
        waits for ever: then the connection is cut.
        """
        watch: threading.Timer | None = None
        if self.dialect_name == "postgresql":
            watch = threading.Timer(self._seconds_max + _SEVER_SECONDS, self._sever)
            watch.daemon = True
            watch.start()
        try:
            with translated(self.name, self._secrets):
                yield
        finally:
            if watch is not None:
                watch.cancel()

    # Opening and closing

    def __enter__(self) -> Connection:
        with self.errors():
            try:
                self._open()
            except BaseException:
                self.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make_engine(self, sqlalchemy: Any, seconds_max: float) -> Any:
        options: dict[str, Any] = {"poolclass": extras.require("pull", "sqlalchemy.pool").NullPool}
        connect_seconds = int(
            max(_CONNECT_SECONDS_MIN, min(self._seconds_max, SOURCE_CONNECT_SECONDS_MAX))
        )
        if self.dialect_name == "sqlite":
            return sqlalchemy.create_engine("sqlite://", creator=self._open_file, **options)
        if self.dialect_name == "postgresql":
            options["isolation_level"] = "REPEATABLE READ"
            if self.url.get_driver_name() == "psycopg":
                options["connect_args"] = {"connect_timeout": connect_seconds}
        elif self.dialect_name == "mysql":
            options["isolation_level"] = "REPEATABLE READ"
            if self.url.get_driver_name() == "pymysql":
                options["connect_args"] = {
                    "connect_timeout": connect_seconds,
                    "read_timeout": _read_seconds(seconds_max),
                    "charset": "utf8mb4",
                }
        return sqlalchemy.create_engine(self.url, **options)

    def _open(self) -> None:
        self._connection = self._engine.connect()
        if self.dialect_name == "postgresql":
            self._connection = self._connection.execution_options(postgresql_readonly=True)
        elif self.dialect_name == "mysql":
            self._prepare_mysql()
        self._begin()

    def _begin(self) -> None:
        """Begin the transaction that has the snapshot."""
        if self.dialect_name == "postgresql":
            settings = {
                "statement_timeout": str(max(1, int(self._seconds_max * 1_000))),
                "idle_in_transaction_session_timeout": "0",
                "TimeZone": "UTC",
            }
            calls = ", ".join(
                f"set_config('{name}', '{value}', true)" for name, value in settings.items()
            )
            self._connection.exec_driver_sql(f"SELECT {calls}")
        elif self.dialect_name == "mysql":
            begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"
            self._connection.exec_driver_sql(begin)
        elif self.dialect_name == "sqlite":
            self._connection.exec_driver_sql("BEGIN")
            self._deadline_s = time.monotonic() + self._seconds_max
            self._connection.exec_driver_sql("SELECT count(*) FROM sqlite_schema").fetchall()
            self._deadline_s = None

    def renew(self, seconds_max: float) -> None:
        """Give up the snapshot and take a new one; statements may take so long from here on."""
        self._seconds_max = seconds_max
        with self.errors():
            self._connection.rollback()
            if self.dialect_name == "mysql":
                self._prepare_mysql()
            self._begin()

    def rest(self) -> None:
        """Give up the snapshot until `renew`, so that nothing waits for it."""
        with self.errors():
            self._connection.rollback()

    def _prepare_mysql(self) -> None:
        connection = self._connection
        limit = 0 if self._is_stream else self._seconds_max
        # The one is MariaDB's name for it, the other MySQL's. While rows are streamed the time
        # would include our own pauses; there, the socket's time-out counts.
        timeout = f"max_execution_time = {limit * 1e3:.0f}"
        if getattr(connection.dialect, "is_mariadb", False):
            timeout = f"max_statement_time = {limit:g}"
        settings = f"time_zone = '+00:00', net_write_timeout = {_DAY_SECONDS}"
        connection.exec_driver_sql(f"SET SESSION {timeout}, {settings}")
        raw = connection.connection.driver_connection
        self._thread_id = raw.thread_id() if hasattr(raw, "thread_id") else None
        if self.url.get_driver_name() == "pymysql":
            raw._read_timeout = _read_seconds(self._seconds_max)  # noqa: SLF001 - it has no other way

    def _open_file(self) -> sqlite3.Connection:
        path = self.url.database or ""
        address = path if path.startswith("file:") else f"file:{quote(path)}?mode=ro"
        if not path or path == ":memory:":
            raise InvalidArgument(
                f"The source {self.name!r}: the URL names no file; write sqlite:///folder/file.db, "
                "with a fourth slash for an absolute path.",
                field="url",
            )
        if "mode=" not in address:
            address += ("&" if "?" in address else "?") + "mode=ro"
        raw = sqlite3.connect(
            address,
            uri=True,
            check_same_thread=False,
            isolation_level=None,
            timeout=min(SOURCE_CONNECT_SECONDS_MAX, self._seconds_max),
        )
        raw.execute("PRAGMA query_only = ON")
        raw.set_progress_handler(self._is_over, _PROGRESS_INSTRUCTIONS)
        if self._is_tolerant:
            raw.text_factory = partial(str, encoding="utf-8", errors="replace")
        return raw

    def _is_over(self) -> bool:
        deadline_s = self._deadline_s
        return self.is_cancelled or (deadline_s is not None and time.monotonic() > deadline_s)

    def close(self) -> None:
        with self._lock:
            connection, self._connection, self._raw = self._connection, None, None
        if connection is not None:
            with suppress(Exception):
                if self.dialect_name != "sqlite":
                    connection.invalidate()  # it is closed as it is: nobody uses it again
            with suppress(Exception):
                connection.close()
        with suppress(Exception):
            self._engine.dispose()

    # Statements

    @property
    def raw(self) -> Any:
        """SQLAlchemy's connection."""
        return self._connection

    @property
    def inspector(self) -> Any:
        return extras.require("pull", "sqlalchemy").inspect(self._connection)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """One statement, or one reach for the next rows."""
        with self.errors():
            self._deadline_s = time.monotonic() + self._seconds_max
            try:
                yield
            finally:
                self._deadline_s = None

    def rows(self, statement: Any, values: Mapping[str, Any] | None = None) -> list[Row]:
        """All rows of a statement."""
        with self.timed():
            result = self._connection.execute(statement, dict(values or {}))
            try:
                return cast("list[Row]", list(result.cursor.fetchall()))
            finally:
                result.close()

    def stream(self, statement: Any) -> Stream:
        """Rows of a statement without values, some at a time; the server keeps the rest.

        By the driver's own cursors: those of SQLAlchemy buffer rows and wrap each of them.
        """
        with self.timed():
            driver = self.url.get_driver_name()
            raw = self._connection.connection.driver_connection
            if driver == "psycopg":
                cursor = raw.cursor(name="zibaldone")
            elif driver == "pymysql":
                cursor = raw.cursor(extras.require("pull", "pymysql.cursors").SSCursor)
            elif self.dialect_name == "sqlite":
                cursor = raw.cursor()
            else:
                streaming = self._connection.execution_options(stream_results=True)
                return Stream(self, _Wrapped(streaming.execute(statement)))
            stream = Stream(self, cursor)
            sql = str(statement.compile(self._engine))
            try:
                # With values, though there are none: percent signs in it are doubled.
                cursor.execute(sql, ())
            except BaseException:
                stream.close()
                raise
        return stream

    def now(self) -> float:
        """Seconds since 1970 by the clock of the source: the earlier one of its local time and UTC,
        since nobody can say in which of them its columns are written."""
        if self.dialect_name == "sqlite":
            local = datetime.now().astimezone()
            offset = local.utcoffset()
            shift = offset.total_seconds() if offset is not None else 0.0
            return time.time() + min(0.0, shift)
        statement = {
            "mysql": "SELECT UTC_TIMESTAMP(), CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', "
            "@@global.time_zone)",
            "postgresql": "SELECT clock_timestamp() AT TIME ZONE 'UTC', clock_timestamp() AT TIME "
            "ZONE (SELECT reset_val FROM pg_settings WHERE name = 'TimeZone')",
        }.get(self.dialect_name)
        if statement is None:
            return time.time()
        with self.timed():
            row = self._connection.exec_driver_sql(statement).one()
        moments = [value for value in row if isinstance(value, datetime)]
        return min(moment.replace(tzinfo=UTC).timestamp() for moment in moments)

    # From another thread

    def cancel(self) -> None:
        """Stop what runs; it raises. The connection is of no use then."""
        self.is_cancelled = True
        with self._lock:
            connection = self._connection
        if self.dialect_name == "sqlite":
            return
        with suppress(Exception):
            if connection is None:
                pass  # it is being opened
            elif self.dialect_name == "postgresql":
                connection.connection.driver_connection.cancel_safe(timeout=_KILL_SECONDS_MAX)
            elif self.dialect_name == "mysql" and self._thread_id is not None:
                self._kill(self._thread_id)
        self._sever()  # a server that hangs stops nothing

    def _sever(self) -> None:
        """Cut the connection: whoever waits for an answer gets an error."""
        self._is_severed = True
        with self._lock:
            raw = self._raw
        with suppress(Exception):
            number = getattr(raw, "_sock", raw).fileno()  # PyMySQL does not say it otherwise
            with socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as shared:
                shared.shutdown(socket.SHUT_RDWR)

    def _kill(self, thread_id: int) -> None:
        sqlalchemy = extras.require("pull", "sqlalchemy")
        with self._make_engine(sqlalchemy, _KILL_SECONDS_MAX).connect() as other:
            other.exec_driver_sql(f"KILL {int(thread_id)}")


def _read_seconds(seconds_max: float) -> float:
    """How long to wait for an answer of a server that stops its statements at their time."""
    return max(1.0, seconds_max + 1)


class Stream:
    def __init__(self, connection: Connection, cursor: Any) -> None:
        self._connection = connection
        self._cursor = cursor

    def fetch(self, count: int) -> Sequence[Row]:
        """The next rows, fewer only at the end."""
        with self._connection.timed():
            return cast("Sequence[Row]", self._cursor.fetchmany(count))

    def close(self) -> None:
        """Give up what is left; the connection is of no use for others then."""
        with suppress(Exception), self._connection.errors():
            result = getattr(self._cursor, "_result", None)
            if result is not None:  # else PyMySQL would read all that is left, now or later
                result.unbuffered_active = False
                self._cursor.connection = None
            self._cursor.close()


class _Wrapped:
    """Rows of a driver that we do not know by name, as tuples."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def fetchmany(self, count: int) -> list[Row]:
        return [tuple(row) for row in self._result.fetchmany(count)]

    def close(self) -> None:
        self._result.close()


def open_source(
    definition: SourceDefinition,
    environment: Mapping[str, str],
    *,
    seconds_max: float | None = None,
    is_stream: bool = False,
    is_tolerant: bool = False,
) -> Connection:
    """A connection that is opened by entering it."""
    return Connection(
        definition.name,
        definition.resolved_url(environment),
        seconds_max=definition.seconds_max if seconds_max is None else seconds_max,
        is_stream=is_stream,
        is_tolerant=is_tolerant,
    )


def _with_driver(sqlalchemy: Any, url: str) -> Any:
    parsed = sqlalchemy.make_url(url)
    driver = _DRIVERS.get(parsed.drivername)
    if driver is None:
        return parsed
    if driver.endswith("psycopg"):
        extras.require("pull", "psycopg")
    else:
        extras.require("pull", "pymysql")
    return parsed.set(drivername=driver)
