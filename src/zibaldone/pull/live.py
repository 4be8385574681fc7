"""Following sources: a sync soon after something changed.

A PostgreSQL source that is `live` tells us by NOTIFY, from a trigger that its owner installs
(`trigger_sql`). Any other live source is asked every `poll_seconds`; so is a PostgreSQL source if
its definition has them. Either way a job is added that syncs the source; one that is queued already
is not added again.

A connection that breaks is made again after a pause that grows. What changed meanwhile is not lost:
the first thing after connecting is a sync. Several processes may follow the same source: whether a
sync is needed is decided by when the last one began, which the store knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from zibaldone import extras
from zibaldone.errors import InvalidArgument, NotConfigured, ZibaldoneError
from zibaldone.limits import (
    LIVE_LATE_SECONDS,
    LIVE_LOOK_SECONDS,
    LIVE_QUIET_SECONDS,
    LIVE_RETRY_SECONDS_MAX,
    LIVE_RETRY_SECONDS_MIN,
    SOURCE_CONNECT_SECONDS_MAX,
    SOURCE_POLL_SECONDS_DEFAULT,
)
from zibaldone.model.instant import now_us
from zibaldone.model.source import SourceDefinition
from zibaldone.pull.job import queue_sync
from zibaldone.pull.registry import all_records, definition_of
from zibaldone.store.port import Store
from zibaldone.store.upkeep import SourceRecord, Upkeep

_log = logging.getLogger("zibaldone.pull")

_CHANNEL_BYTES_MAX = 63
_SECOND_US = 1_000_000
_NOTIFICATION_BYTES = 32
"""About what one without a payload takes."""
_WAITING_BYTES_MAX = 8_192
"""Of notifications that come at once. The driver reads twice that at a time, so that there may be
more where there are as many."""
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}


@dataclass(slots=True)
class _Listener:
    """Waits for notifications of one source."""

    definition: SourceDefinition
    task: asyncio.Task[None] | None = None
    is_connected: bool = False
    first_change_us: int | None = None
    """When the oldest change was heard of that no sync has begun after."""
    last_change_us: int | None = None
    lost_at_us: int | None = None
    """Since when nothing would be heard."""
    problem: str | None = None

    def note_change(self, at_us: int) -> None:
        self.last_change_us = at_us
        if self.first_change_us is None:
            self.first_change_us = at_us

    def note_sync(self, began_us: int) -> None:
        """A sync that began then has ended well: it saw the changes before."""
        if self.last_change_us is not None and began_us > self.last_change_us:
            self.first_change_us = self.last_change_us = None
        elif self.first_change_us is not None:
            self.first_change_us = max(self.first_change_us, began_us)


@dataclass(slots=True)
class _Attempt:
    """The last job that was added for a source."""

    job_id: str
    synced_at_us: int | None
    """When the last sync had begun then."""
    failures: int = 0
    """Jobs one after another that ended without a sync."""
    wait_until_us: int = 0


@dataclass(frozen=True, slots=True)
class SourceLag:
    """How far a source may be behind its database."""

    source_id: int
    name: str
    namespace: str
    enabled: bool
    mode: str
    """listening, polling or on request."""
    seconds: float | None
    """None: it was never synced."""
    last_sync_at_us: int | None
    problem: str | None
    is_late: bool
    """It is followed, and further behind than it should be."""


class LiveSources:
    """Follows all live sources that are enabled, until cancelled."""

    def __init__(
        self,
        store: Store,
        environment: Mapping[str, str],
        *,
        on_added: Callable[[], None] = lambda: None,
        clock: Callable[[], int] = now_us,
    ) -> None:
        """`on_added` is called after jobs were added."""
        self._store = store
        self._environment = environment
        self._on_added = on_added
        self._clock = clock
        self._listeners: dict[int, _Listener] = {}
        self._records: list[SourceRecord] = []
        self._attempts: dict[int, _Attempt] = {}
        self._is_news = asyncio.Event()
        self._is_warm = False

    async def run(self) -> None:
        try:
            while True:
                self._is_news.clear()
                try:
                    await self.look()
                except ZibaldoneError as error:
                    _log.warning("live sources wait: %s [%s]", error.message, error.code)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LIVE_LOOK_SECONDS):
                        await self._is_news.wait()
                await asyncio.sleep(LIVE_QUIET_SECONDS)  # changes seldom come alone
        finally:
            await self._stop(list(self._listeners))

    async def look(self) -> None:
        """Listen to what is to be listened to, and add the jobs that are due."""
        self._records = await all_records(self._store)
        if self._records and not self._is_warm:
            self._is_warm = True
            await asyncio.to_thread(_load_library)
        definitions = {}
        for record in self._records:
            if record.enabled and (definition := _usable(record)) is not None and definition.live:
                definitions[record.source_id] = definition
        await self._listen(definitions)
        due = [
            record
            for record in self._records
            if record.source_id in definitions
            and self._is_due(record, definitions[record.source_id])
        ]
        if due:
            job_ids = await self._store.upkeep(lambda upkeep: _add_jobs(upkeep, due))
            for record, job_id in zip(due, job_ids, strict=True):
                self._note_added(record, job_id)
            self._on_added()

    def _is_due(self, record: SourceRecord, definition: SourceDefinition) -> bool:
        synced_us, now = record.last_sync_at_us, self._clock()
        attempt = self._attempts.get(record.source_id)
        has_failed = attempt is not None and attempt.synced_at_us == synced_us
        if attempt is not None and has_failed and now < attempt.wait_until_us:
            return False
        listener = self._listeners.get(record.source_id)
        if listener is not None:
            if synced_us is not None:
                listener.note_sync(synced_us)
            if listener.first_change_us is not None:
                return True
            if definition.poll_seconds is None:
                return False
        poll_us = int(_poll_seconds(definition) * _SECOND_US)
        return synced_us is None or not 0 <= now - synced_us < poll_us

    def _note_added(self, record: SourceRecord, job_id: str) -> None:
        """After jobs that failed the next one waits longer; a job that goes on is no other job."""
        before = self._attempts.get(record.source_id)
        attempt = _Attempt(job_id, record.last_sync_at_us)
        if before is not None and before.synced_at_us == record.last_sync_at_us:
            if before.job_id == job_id:
                return
            attempt.failures = before.failures + 1
            pause_s = min(LIVE_RETRY_SECONDS_MIN * 2.0**attempt.failures, LIVE_RETRY_SECONDS_MAX)
            attempt.wait_until_us = self._clock() + int(pause_s * _SECOND_US)
        self._attempts[record.source_id] = attempt

    # Listening

    async def _listen(self, definitions: Mapping[int, SourceDefinition]) -> None:
        wanted = {
            source_id: definition
            for source_id, definition in definitions.items()
            if can_notify(definition, self._environment)
        }
        await self._stop(
            [
                source_id
                for source_id, listener in self._listeners.items()
                if wanted.get(source_id) != listener.definition
            ]
        )
        for source_id, definition in wanted.items():
            if source_id not in self._listeners:
                listener = _Listener(definition, lost_at_us=self._clock())
                listener.task = asyncio.create_task(
                    self._keep_listening(listener), name=f"listening for {definition.name}"
                )
                self._listeners[source_id] = listener

    async def _stop(self, source_ids: list[int]) -> None:
        tasks = [
            listener.task
            for source_id in source_ids
            if (listener := self._listeners.pop(source_id)).task is not None
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_listening(self, listener: _Listener) -> None:
        pause_s = 0.0
        while True:
            try:
                while True:
                    await self._listen_until_much_waits(listener)
            except ZibaldoneError as error:
                problem = error.message
            except Exception as error:
                problem = f"Listening failed: {type(error).__name__}."
            if listener.is_connected:
                pause_s = 0.0
                listener.is_connected, listener.lost_at_us = False, self._clock()
            if listener.problem != problem:
                _log.warning("source %s: %s", listener.definition.name, problem)
            listener.problem = problem
            pause_s = min(max(2 * pause_s, LIVE_RETRY_SECONDS_MIN), LIVE_RETRY_SECONDS_MAX)
            await asyncio.sleep(pause_s)

    async def _listen_until_much_waits(self, listener: _Listener) -> None:
        """Then the connection is given up, with what waits in it: nobody has to read that, but it
        would fill the queue of the database server, which refuses everybody's commits when it is
        full."""
        psycopg = extras.require("pull", "psycopg")
        url = libpq_url(listener.definition.resolved_url(self._environment))
        connection = await psycopg.AsyncConnection.connect(
            url,
            autocommit=True,
            application_name="zibaldone",
            connect_timeout=int(SOURCE_CONNECT_SECONDS_MAX),
            **_KEEPALIVE,
        )
        async with connection:
            channel = psycopg.sql.Identifier(channel_of(listener.definition.name))
            await connection.execute(psycopg.sql.SQL("LISTEN {}").format(channel))
            if not listener.is_connected:
                _log.info("source %s: listening", listener.definition.name)
            listener.is_connected, listener.lost_at_us, listener.problem = True, None, None
            self._note_change(listener)  # something may have changed before
            read_bytes = 0
            while read_bytes <= _WAITING_BYTES_MAX:
                # What comes meanwhile waits in the connection: a database that notifies all the
                # time must not keep this event loop busy with it.
                await asyncio.sleep(LIVE_QUIET_SECONDS)
                read_bytes = 0
                async for notification in connection.notifies(stop_after=1):
                    read_bytes += _NOTIFICATION_BYTES + len(notification.payload)
                    self._note_change(listener)

    def _note_change(self, listener: _Listener) -> None:
        listener.note_change(self._clock())
        self._is_news.set()

    # Telling

    def lags(self) -> list[SourceLag]:
        """As of the last look, a few seconds ago at most."""
        return [self._lag(record) for record in self._records]

    def _lag(self, record: SourceRecord) -> SourceLag:
        now = self._clock()
        synced_us = record.last_sync_at_us
        behind_us = None if synced_us is None else max(0, now - synced_us)
        definition = _usable(record)
        listener = self._listeners.get(record.source_id)
        mode, problem, is_late = "on request", None, False
        if definition is None:
            problem = "The definition cannot be used."
        elif listener is not None:
            mode, problem = "listening", listener.problem
            since_us = listener.lost_at_us or listener.first_change_us
            if synced_us is not None:
                behind_us = 0 if since_us is None else max(0, now - since_us)
            is_late = not listener.is_connected
        elif definition.live and record.enabled:
            mode = "polling"
        if record.enabled and mode != "on request" and definition is not None:
            allowed_us = (_poll_seconds(definition) + LIVE_LATE_SECONDS) * _SECOND_US
            is_late = is_late or behind_us is None or behind_us > allowed_us
        return SourceLag(
            record.source_id,
            record.name,
            record.namespace,
            record.enabled,
            mode,
            None if behind_us is None else behind_us / _SECOND_US,
            synced_us,
            problem,
            is_late,
        )


def _load_library() -> None:
    """Loading it takes longer than fetching a row; the first caller should not wait for that."""
    with contextlib.suppress(NotConfigured):
        extras.require("pull", "sqlalchemy")


def _poll_seconds(definition: SourceDefinition) -> float:
    given = definition.poll_seconds
    return SOURCE_POLL_SECONDS_DEFAULT if given is None else given


def _usable(record: SourceRecord) -> SourceDefinition | None:
    try:
        return definition_of(record)
    except InvalidArgument:
        return None


def _add_jobs(upkeep: Upkeep, due: list[SourceRecord]) -> list[str]:
    return [queue_sync(upkeep, record) for record in due]


def can_notify(definition: SourceDefinition, environment: Mapping[str, str]) -> bool:
    """Whether the database of the source can tell us of changes."""
    url = definition.url
    if url.startswith("${"):
        with contextlib.suppress(InvalidArgument):
            url = definition.resolved_url(environment)
    scheme = url.partition(":")[0].lower()
    return scheme.partition("+")[0] in ("postgresql", "postgres")


def libpq_url(url: str) -> str:
    """The URL without the name of a driver, as libpq takes it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(scheme="postgresql"))


def channel_of(name: str) -> str:
    """What a source of that name listens to; PostgreSQL allows 63 bytes."""
    channel = f"zibaldone_{name}"
    if len(channel.encode()) <= _CHANNEL_BYTES_MAX:
        return channel
    digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    return f"zibaldone_{name[:36]}_{digest}"


def trigger_sql(definition: SourceDefinition) -> str:
    """What the owner of a PostgreSQL table runs once, so that it tells us of changes."""
    channel = channel_of(definition.name)
    table = ".".join(map(_quoted, definition.table.split("."))) or "YOUR_TABLE"
    trigger = _quoted(channel)
    return f"""\
CREATE OR REPLACE FUNCTION zibaldone_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(TG_ARGV[0], '');
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER {trigger}
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION zibaldone_notify('{channel}');
-- To remove it: DROP TRIGGER {trigger} ON {table};
"""


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
